//! The address of an API: the base URL of its calls, the hosts they may reach, and the fields that
//! an account fills in.

use std::collections::BTreeMap;

use manifest::{EgressRule, Field};

use crate::{Server, Variable, names, text};

/// Largest number of hosts that are listed individually; more become a pattern.
const MAX_HOSTS: usize = 20;

/// A server in the form in which the parts of a toolkit use it.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Address {
    /// Base URL without a slash at the end: `https://{region}.example.com/v1`.
    pub(crate) url: String,
    pub(crate) egress: Vec<EgressRule>,
    /// Fields that an account fills in.
    pub(crate) fields: Vec<Field>,
    /// Values of those fields if the account leaves them empty.
    pub(crate) defaults: BTreeMap<String, String>,
    /// Differences from the description.
    pub(crate) notes: Vec<String>,
}

/// Reads a server.
///
/// # Errors
/// The reason why no request can be sent to this server, and a remedy.
pub(crate) fn parse(server: &Server) -> Result<Address, String> {
    let mut address = Address::default();
    let Some((scheme, rest)) = server.url.split_once("://") else {
        return Err(format!(
            "the server `{}` is not an absolute URL; name one with --server",
            server.url
        ));
    };
    if scheme != "https" {
        let note = format!(
            "the server `{}` must use https; requests are sent over https",
            server.url
        );
        address.notes.extend((scheme == "http").then_some(note));
    }
    let rest = with_path_variable(rest.split(['?', '#']).next().unwrap_or_default(), server);
    let (authority, path) = rest
        .find('/')
        .map_or((rest.as_str(), ""), |slash| rest.split_at(slash));
    let without_user = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let host_and_port = default_port(without_user, server)?;
    let (host, port) = match host_and_port.rsplit_once(':') {
        Some((host, port)) => (host, port.parse::<u16>().ok()),
        None => (host_and_port.as_str(), None),
    };
    let settled_host = address.host(&host.to_ascii_lowercase(), server)?;
    let path = address.path(path.trim_end_matches('/'), server);
    // A port of plain http says nothing about the port of https.
    let port = port.filter(|port| !matches!((scheme, port), (_, 443) | ("http", 80)));
    let hosts = hosts(&settled_host, server);
    address.egress = hosts
        .into_iter()
        .map(|host| EgressRule {
            host,
            port,
            methods: Vec::new(),
            path_prefix: None,
        })
        .collect();
    let suffix = port.map(|port| format!(":{port}")).unwrap_or_default();
    let host = template(&settled_host, server, &mut address);
    address.url = format!("https://{host}{suffix}{path}");
    Ok(address)
}

/// Fills in a variable behind the host that holds the whole path: `{host}{base}` with a base of
/// `/v1`.
fn with_path_variable(rest: &str, server: &Server) -> String {
    let authority = rest.split('/').next().unwrap_or_default();
    let variable = variable_names(authority).into_iter().find_map(|name| {
        let path = default(name, server).filter(|value| value.starts_with('/'))?;
        Some((name, path))
    });
    match variable {
        Some((name, path)) => rest.replacen(&format!("{{{name}}}"), path, 1),
        None => rest.to_owned(),
    }
}

/// Replaces a variable port by its default. An account never chooses the port.
fn default_port(authority: &str, server: &Server) -> Result<String, String> {
    let Some((host, port)) = authority
        .rsplit_once(':')
        .filter(|(_, port)| port.starts_with('{'))
    else {
        return Ok(authority.to_owned());
    };
    match default(port.trim_matches(['{', '}']), server) {
        Some("443" | "") | None => Ok(host.to_owned()),
        Some(port) => Ok(format!("{host}:{port}")),
    }
}

fn variable<'a>(name: &str, server: &'a Server) -> Option<&'a Variable> {
    server
        .variables
        .iter()
        .find(|variable| variable.name.eq_ignore_ascii_case(name))
}

fn default<'a>(name: &str, server: &'a Server) -> Option<&'a str> {
    let variable = variable(name, server)?;
    variable
        .default
        .as_deref()
        .or_else(|| variable.choices.first().map(String::as_str))
}

/// Returns the names of the variables in a template.
fn variable_names(text: &str) -> Vec<&str> {
    let after = text.split('{').skip(1);
    after
        .filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
        .collect()
}

fn filled(text: &str, server: &Server) -> Option<String> {
    let mut out = text.to_owned();
    for name in variable_names(text) {
        let value = default(name, server)?;
        out = out.replace(&format!("{{{name}}}"), value);
    }
    Some(out)
}

impl Address {
    /// Returns the host. It keeps variables only if its end is fixed.
    fn host(&mut self, host: &str, server: &Server) -> Result<String, String> {
        let fixed = host.rsplit_once('}').map_or(host, |(_, end)| end);
        let labels = fixed
            .trim_start_matches('.')
            .split('.')
            .filter(|label| !label.is_empty())
            .count();
        let open = host.contains('}') && (!fixed.starts_with('.') || labels < 2);
        let settled = if open {
            filled(host, server).ok_or_else(|| {
                format!(
                    "the server `{}` may be a host of any owner; name one with --server",
                    server.url
                )
            })?
        } else {
            host.to_owned()
        };
        if open {
            self.notes.push(format!(
                "the server is fixed to `{settled}`; name another with --server"
            ));
        }
        let plain = filled(&settled, server).unwrap_or_else(|| settled.replace(['{', '}'], ""));
        let shown = plain
            .rsplit_once('@')
            .map_or(plain.as_str(), |(_, host)| host);
        if let Some(problem) = manifest::host_problem(shown) {
            return Err(format!(
                "the server `{}` is not a valid egress host: {problem}; name one with --server",
                server.url
            ));
        }
        Ok(settled)
    }

    /// Returns the path. Variables with a default are filled in; those without one become fields.
    fn path(&mut self, path: &str, server: &Server) -> String {
        let mut out = path.to_owned();
        for name in variable_names(path) {
            if let Some(value) = default(name, server) {
                out = out.replace(&format!("{{{name}}}"), value.trim_matches('/'));
            }
        }
        template(out.trim_end_matches('/'), server, self)
    }
}

/// Returns the hosts in the form of egress rules.
fn hosts(host: &str, server: &Server) -> Vec<String> {
    let mut hosts = vec![host.to_owned()];
    for name in variable_names(host) {
        let choices = variable(name, server)
            .map(|variable| variable.choices.as_slice())
            .unwrap_or_default();
        if choices.is_empty() || choices.len() * hosts.len() > MAX_HOSTS {
            let fixed = host.rsplit_once('}').map_or(host, |(_, end)| end);
            return vec![format!("*.{}", fixed.trim_start_matches('.'))];
        }
        let hole = format!("{{{name}}}");
        hosts = choices
            .iter()
            .flat_map(|choice| {
                hosts
                    .iter()
                    .map(|host| host.replace(&hole, choice))
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    hosts.retain(|host| manifest::host_problem(host).is_none());
    hosts.sort();
    hosts.dedup();
    hosts
}

/// Renames variables to fields of an account, and adds those fields.
fn template(text: &str, server: &Server, address: &mut Address) -> String {
    let mut out = text.to_owned();
    for name in variable_names(text) {
        let field = names::field(&format!("server_{name}"));
        out = out.replace(&format!("{{{name}}}"), &format!("{{{field}}}"));
        let default = default(name, server)
            .filter(|value| !value.is_empty())
            .map(str::to_owned);
        if address.fields.iter().any(|known| known.name == field) {
            continue;
        }
        let about = variable(name, server);
        let choices = about
            .map(|variable| variable.choices.as_slice())
            .unwrap_or_default();
        let pattern = match choices {
            [] => "[A-Za-z0-9._-]+".to_owned(),
            some if some.len() <= MAX_HOSTS
                && some.iter().all(|value| {
                    value
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
                }) =>
            {
                some.join("|").replace('.', "\\.")
            }
            _ => "[A-Za-z0-9._-]+".to_owned(),
        };
        address
            .defaults
            .extend(default.clone().map(|value| (field.clone(), value)));
        address.fields.push(Field {
            title: text::line(&title(name), 100),
            description: text::block(about.map_or("", |variable| &variable.description), 1000),
            default,
            pattern: Some(pattern),
            name: field,
            ..Field::default()
        });
    }
    out
}

/// Returns a variable's name in words.
fn title(name: &str) -> String {
    use heck::ToTitleCase;
    let title = name.to_title_case();
    if title.is_empty() {
        "Server".to_owned()
    } else {
        title
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: &str, variables: &[(&str, Option<&str>, &[&str])]) -> Server {
        Server {
            url: url.to_owned(),
            variables: variables
                .iter()
                .map(|(name, default, choices)| Variable {
                    name: (*name).to_owned(),
                    default: default.map(str::to_owned),
                    choices: choices.iter().map(|choice| (*choice).to_owned()).collect(),
                    description: String::new(),
                })
                .collect(),
        }
    }

    fn hosts_of(address: &Address) -> Vec<&str> {
        address
            .egress
            .iter()
            .map(|rule| rule.host.as_str())
            .collect()
    }

    #[test]
    fn a_fixed_server_is_one_host() {
        let address = parse(&server("https://API.example.com/v1/", &[])).unwrap();
        assert_eq!(
            (address.url.as_str(), hosts_of(&address)),
            ("https://api.example.com/v1", vec!["api.example.com"])
        );
        let plain = parse(&server("http://api.example.com:80", &[])).unwrap();
        assert_eq!(plain.url, "https://api.example.com");
        assert_eq!(plain.notes.len(), 1);
        let port = parse(&server("https://api.example.com:8443/x", &[])).unwrap();
        assert_eq!(
            (port.url.as_str(), port.egress[0].port),
            ("https://api.example.com:8443/x", Some(8443))
        );
    }

    #[test]
    fn host_suffix_variable_may_hold_path() {
        let address = parse(&server(
            "https://api.example.com{base}",
            &[("base", Some("/sell/v1"), &[])],
        ))
        .unwrap();
        assert_eq!(
            (address.url.as_str(), hosts_of(&address)),
            ("https://api.example.com/sell/v1", vec!["api.example.com"])
        );
    }

    #[test]
    fn host_variable_becomes_account_field() {
        let address = parse(&server(
            "https://{region}.api.example.com",
            &[("region", Some("eu"), &["eu", "us"])],
        ))
        .unwrap();
        assert_eq!(address.url, "https://{server_region}.api.example.com");
        assert_eq!(
            hosts_of(&address),
            ["eu.api.example.com", "us.api.example.com"]
        );
        assert_eq!(address.fields[0].pattern.as_deref(), Some("eu|us"));
        assert_eq!(address.defaults["server_region"], "eu");
        let address = parse(&server(
            "https://{site}.example.com/{base}",
            &[("site", None, &[]), ("base", Some("api/v2"), &[])],
        ))
        .unwrap();
        assert_eq!(
            (address.url.as_str(), hosts_of(&address)),
            (
                "https://{server_site}.example.com/api/v2",
                vec!["*.example.com"]
            )
        );
    }

    #[test]
    fn open_host_uses_default_or_is_refused() {
        let address = parse(&server(
            "https://{host}:{port}/v1",
            &[
                ("host", Some("api.example.com"), &[]),
                ("port", Some("443"), &[]),
            ],
        ))
        .unwrap();
        assert_eq!(
            (address.url.as_str(), hosts_of(&address)),
            ("https://api.example.com/v1", vec!["api.example.com"])
        );
        assert_eq!(address.notes.len(), 1);
        for url in [
            "https://{host}/v1",
            "https://{a}.com",
            "/v1",
            "https://localhost:8080",
            "https://10.0.0.1/x",
            "https://a",
        ] {
            let refused = parse(&server(url, &[])).unwrap_err();
            assert!(refused.contains("--server"), "{url}: {refused}");
        }
    }
}
