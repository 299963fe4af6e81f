//! Ways to connect an account, and the operations that need one.
//!
//! A manifest has at most one scheme of each mode, an `OpenAPI` document any number. Keys that go
//! to different places therefore become fields of one scheme, and a field is optional if not every
//! operation asks for it. Bearer tokens and passwords all go into the same header, so one scheme of
//! each is enough.

use std::collections::{BTreeMap, BTreeSet};

use manifest::{ACCESS_TOKEN, AuthMode, AuthScheme, Field, OAuth2, Placement};
use serde_json::Value;

use super::Document;
use crate::{Api, Unsupported, names, parse, text};

const MAX_HELP_BYTES: usize = 600;

/// Location of a scheme's credential in a request.
#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Header(String),
    Query(String),
    Cookie(String),
    Bearer,
    /// OAuth 2.0 with its authorization URL and its token URL.
    Flow(String, String),
    Basic,
    /// A credential that the platform cannot attach.
    Unknown(String),
}

#[derive(Debug)]
struct Scheme<'a> {
    name: &'a str,
    kind: Kind,
    about: &'a Value,
}

/// The security schemes of a document.
#[derive(Debug)]
pub(super) struct Security<'a> {
    schemes: BTreeMap<&'a str, Scheme<'a>>,
    general: Option<&'a Value>,
    /// Number of operations that ask for each set of schemes.
    asked: BTreeMap<BTreeSet<&'a str>, usize>,
    /// True if the document or an operation states its security.
    stated: bool,
}

/// Security requirements of one operation.
#[derive(Debug, Default)]
pub(super) struct Requirements {
    pub(super) scopes: Vec<String>,
    /// True if the operation requires no credential.
    pub(super) none: bool,
    /// Name of a scheme that cannot be attached, if the operation accepts no other.
    pub(super) unsupported: Option<String>,
}

impl<'a> Security<'a> {
    pub(super) fn new(document: &'a Document<'a>) -> Self {
        let all = document.root["components"]["securitySchemes"].as_object();
        let schemes: BTreeMap<_, _> = all
            .into_iter()
            .flatten()
            .take(100)
            .map(|(name, about)| {
                let about = document.follow(about);
                (
                    name.as_str(),
                    Scheme {
                        name,
                        kind: kind(about),
                        about,
                    },
                )
            })
            .collect();
        let general = document
            .root
            .get("security")
            .filter(|security| security.is_array());
        Self {
            schemes,
            general,
            asked: BTreeMap::new(),
            stated: general.is_some(),
        }
    }

    /// Reads the requirements of an operation: its own, otherwise those of the document.
    pub(super) fn requirements_of(&mut self, own: Option<&'a Value>) -> Requirements {
        self.stated |= own.is_some_and(Value::is_array);
        let Some(all) = own.or(self.general).and_then(Value::as_array) else {
            return Requirements::default();
        };
        let sets: Vec<BTreeMap<&'a str, &'a Value>> = all
            .iter()
            .filter_map(Value::as_object)
            .map(|set| {
                set.iter()
                    .map(|(name, scopes)| (name.as_str(), scopes))
                    .collect()
            })
            .collect();
        // An empty requirement, or one that names only undescribed schemes, is met with or without
        // an account.
        let open = sets
            .iter()
            .any(|set| set.keys().all(|name| !self.schemes.contains_key(name)));
        let usable = |set: &&BTreeMap<&'a str, &'a Value>| {
            set.keys().all(|name| {
                !matches!(
                    self.schemes.get(name).map(|it| &it.kind),
                    Some(Kind::Unknown(_))
                )
            })
        };
        let first = sets.iter().find(|set| !set.is_empty() && usable(set));
        let unsupported = match first {
            None if !open => sets.iter().flat_map(BTreeMap::keys).find_map(|name| {
                matches!(self.schemes.get(name)?.kind, Kind::Unknown(_)).then(|| (*name).to_owned())
            }),
            _ => None,
        };
        // Scopes are granted by a flow, which need not be the first alternative.
        let granting = sets
            .iter()
            .find(|set| {
                usable(set)
                    && set.keys().any(|name| {
                        let scheme = self.schemes.get(name);
                        scheme.is_some_and(|scheme| matches!(scheme.kind, Kind::Flow(..)))
                    })
            })
            .or(first);
        let scopes = granting
            .into_iter()
            .flat_map(BTreeMap::values)
            .filter_map(|scopes| scopes.as_array())
            .flatten()
            .filter_map(Value::as_str)
            .filter(|scope| !scope.is_empty() && !scope.contains(char::is_whitespace))
            .map(str::to_owned)
            .collect();
        for set in sets.iter().filter(usable) {
            let names: BTreeSet<&'a str> = set
                .keys()
                .copied()
                .filter(|name| self.schemes.contains_key(name))
                .collect();
            if !names.is_empty() {
                *self.asked.entry(names).or_default() += 1;
            }
        }
        Requirements {
            scopes,
            none: open || sets.is_empty(),
            unsupported,
        }
    }

    pub(super) fn fills_header(&self, name: &str) -> bool {
        self.schemes.values().any(|scheme| match &scheme.kind {
            Kind::Header(own) => own.eq_ignore_ascii_case(name),
            Kind::Bearer | Kind::Flow(..) | Kind::Basic => {
                name.eq_ignore_ascii_case("authorization")
            }
            _ => false,
        })
    }

    pub(super) fn fills_query(&self, name: &str) -> bool {
        self.schemes
            .values()
            .any(|scheme| matches!(&scheme.kind, Kind::Query(own) if own == name))
    }

    pub(super) fn fills_cookie(&self, name: &str) -> bool {
        self.schemes
            .values()
            .any(|scheme| matches!(&scheme.kind, Kind::Cookie(own) if own == name))
    }

    /// Makes the schemes of the manifest.
    pub(super) fn finish(mut self, api: &mut Api) {
        if !self.stated {
            // No requirement is stated, so all schemes are used.
            self.asked = self
                .schemes
                .keys()
                .map(|name| (BTreeSet::from([*name]), 1))
                .collect();
        }
        for scheme in self.schemes.values() {
            if let Kind::Unknown(what) = &scheme.kind {
                api.unsupported.push(Unsupported::whole(format!(
                    "the security scheme `{}`: {what}",
                    scheme.name
                )));
            }
        }
        let mut sets: Vec<(BTreeSet<&'a str>, usize)> =
            std::mem::take(&mut self.asked).into_iter().collect();
        sets.retain(|(set, _)| {
            set.iter()
                .all(|name| !matches!(self.schemes[name].kind, Kind::Unknown(_)))
        });
        sets.sort_by_key(|(set, count)| (std::cmp::Reverse(*count), set.clone()));
        let modes = self.modes(&sets);
        for mode in &modes {
            let own: Vec<&BTreeSet<&str>> = sets
                .iter()
                .map(|(set, _)| set)
                .filter(|set| self.mode(set) == *mode)
                .collect();
            api.auth.push(self.scheme(*mode, &own));
            // A user who already has a token need not go through the authorization flow.
            if *mode == AuthMode::Oauth2 && !modes.contains(&AuthMode::BearerToken) {
                api.auth.push(self.scheme(AuthMode::BearerToken, &own));
            }
        }
        // The API does not support accounts, so `no_auth` is meaningless.
        if api.auth.is_empty() {
            api.operations
                .iter_mut()
                .for_each(|operation| operation.no_auth = false);
        }
    }

    /// Returns the modes, the most used first.
    fn modes(&self, sets: &[(BTreeSet<&'a str>, usize)]) -> Vec<AuthMode> {
        let mut modes = Vec::new();
        for mode in sets.iter().map(|(set, _)| self.mode(set)) {
            if !modes.contains(&mode) {
                modes.push(mode);
            }
        }
        modes
    }

    fn mode(&self, set: &BTreeSet<&str>) -> AuthMode {
        let kinds: Vec<&Kind> = set.iter().map(|name| &self.schemes[name].kind).collect();
        if kinds.iter().any(|kind| matches!(kind, Kind::Flow(..))) {
            AuthMode::Oauth2
        } else if kinds.contains(&&Kind::Bearer) {
            AuthMode::BearerToken
        } else if kinds.contains(&&Kind::Basic) {
            AuthMode::Basic
        } else {
            AuthMode::ApiKey
        }
    }

    fn scheme(&self, mode: AuthMode, sets: &[&BTreeSet<&str>]) -> AuthScheme {
        let mut all: Vec<&Scheme<'_>> = Vec::new();
        for scheme in sets
            .iter()
            .flat_map(|set| set.iter())
            .map(|name| &self.schemes[name])
        {
            if all.iter().all(|known| known.kind != scheme.kind) {
                all.push(scheme);
            }
        }
        let name = match mode {
            AuthMode::BearerToken => "Access token",
            AuthMode::Oauth2 => "OAuth 2.0",
            AuthMode::Basic => "User name and password",
            _ => "API key",
        };
        let mut made = AuthScheme {
            mode,
            name: name.to_owned(),
            ..AuthScheme::default()
        };
        let keys = all
            .iter()
            .filter(|scheme| {
                matches!(
                    scheme.kind,
                    Kind::Header(_) | Kind::Query(_) | Kind::Cookie(_)
                )
            })
            .count();
        for scheme in all.iter().take(15) {
            let everywhere = sets.iter().all(|set| {
                set.iter()
                    .any(|name| self.schemes[name].kind == scheme.kind)
            });
            add(&mut made, scheme, keys == 1, !everywhere);
        }
        made
    }
}

/// Adds the fields and placements of one scheme.
fn add(made: &mut AuthScheme, scheme: &Scheme<'_>, alone: bool, optional: bool) {
    let taken = target(&scheme.kind).is_some_and(|own| {
        made.request.iter().any(|placement| match placement {
            Placement::Header { name, .. } => own == *name,
            Placement::Basic { .. } => own == "authorization",
            _ => false,
        })
    });
    // A header is filled only once; in OAuth 2.0, by the flow.
    if taken || (made.mode == AuthMode::Oauth2 && scheme.kind == Kind::Bearer) {
        return;
    }
    let help = scheme.about["description"].as_str().unwrap_or_default();
    let mut field = |name: &str, title: &str, secret: bool, optional: bool| {
        made.fields.push(Field {
            description: text::block(help, MAX_HELP_BYTES),
            optional,
            ..Field::new(name, title, secret)
        });
    };
    let key = if alone {
        "api_key".to_owned()
    } else {
        names::field(scheme.name)
    };
    let title = |name: &str| {
        if alone {
            "API key".to_owned()
        } else {
            text::line(name, 80)
        }
    };
    match &scheme.kind {
        Kind::Flow(authorize_url, token_url) if made.mode == AuthMode::Oauth2 => {
            let value = format!("Bearer {{{ACCESS_TOKEN}}}");
            made.request.push(Placement::header("authorization", value));
            made.oauth2 = Some(OAuth2::new(authorize_url, token_url));
        }
        Kind::Bearer | Kind::Flow(..) => {
            field("token", "Token", true, optional && !alone);
            let header = Placement::header("authorization", "Bearer {token}");
            made.request.push(header);
        }
        Kind::Basic => {
            field("username", "User name", false, optional);
            field("password", "Password", true, true);
            made.request
                .push(Placement::basic("{username}", "{password}"));
        }
        Kind::Header(name) => {
            field(&key, &title(name), true, optional);
            let value = format!("{{{key}}}");
            made.request
                .push(Placement::header(name.to_ascii_lowercase(), value));
        }
        Kind::Query(name) => {
            field(&key, &title(name), true, optional);
            let value = format!("{{{key}}}");
            made.request.push(Placement::query(name, value));
        }
        Kind::Cookie(name) => {
            field(&key, &title(name), true, optional);
            let value = format!("{name}={{{key}}}");
            made.request.push(Placement::header("cookie", value));
        }
        Kind::Unknown(_) => {}
    }
}

/// Returns the header that a credential goes into, in lower case.
fn target(kind: &Kind) -> Option<String> {
    match kind {
        Kind::Bearer | Kind::Flow(..) | Kind::Basic => Some("authorization".to_owned()),
        Kind::Header(name) => Some(name.to_ascii_lowercase()),
        Kind::Cookie(_) => Some("cookie".to_owned()),
        Kind::Query(_) | Kind::Unknown(_) => None,
    }
}

/// Returns the authorization code flow if both of its URLs can be used.
fn flow_of(about: &Value) -> Option<Kind> {
    let flow = &about["flows"]["authorizationCode"];
    Some(Kind::Flow(
        address(&flow["authorizationUrl"])?,
        address(&flow["tokenUrl"])?,
    ))
}

fn address(value: &Value) -> Option<String> {
    let url = value.as_str()?.trim();
    let host = url
        .strip_prefix("https://")?
        .split(['/', '?', ':'])
        .next()?;
    let plain =
        !url.contains(['#', '\\', ' ', '@', '{', '}']) && manifest::host_problem(host).is_none();
    plain.then(|| url.to_owned())
}

fn word(value: &Value) -> String {
    parse::text(value).trim().to_ascii_lowercase()
}

fn kind(about: &Value) -> Kind {
    let help = word(&about["description"]);
    match word(&about["type"]).as_str() {
        _ if about
            .get("x-amazon-apigateway-authtype")
            .and_then(Value::as_str)
            == Some("awsSigv4") =>
        {
            Kind::Unknown(
                "signed requests (AWS Signature 4) are not supported by the import".to_owned(),
            )
        }
        "apikey" => {
            let name = parse::text(&about["name"]).trim().to_owned();
            let is_plain = name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.[]$".contains(&byte));
            if name.is_empty() || name.len() > 64 || !is_plain {
                return Kind::Unknown(format!(
                    "`{}` is not a supported place of a key",
                    text::line(&name, 80)
                ));
            }
            match word(&about["in"]).as_str() {
                "header"
                    if name.eq_ignore_ascii_case("authorization") && help.contains("bearer") =>
                {
                    Kind::Bearer
                }
                "header" => Kind::Header(name),
                "query" => Kind::Query(name),
                "cookie" => Kind::Cookie(name),
                other => Kind::Unknown(format!("a key in `{}`", text::line(other, 40))),
            }
        }
        "http" => match word(&about["scheme"]).as_str() {
            "bearer" => Kind::Bearer,
            "basic" => Kind::Basic,
            other => Kind::Unknown(format!("the HTTP scheme `{}`", text::line(other, 40))),
        },
        "oauth2" => flow_of(about).unwrap_or(Kind::Bearer),
        "openidconnect" => Kind::Bearer,
        other => Kind::Unknown(format!("a scheme of type `{}`", text::line(other, 40))),
    }
}
