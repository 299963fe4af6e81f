//! Checks of hosts, and of rules that must lie within others.

use super::Report;
use crate::{EgressRule, HTTP_METHODS};

const MAX_RULES: usize = 100;
/// Top-level names that are used only inside private networks.
const PRIVATE_TOP_LEVELS: [&str; 10] = [
    "localhost",
    "local",
    "internal",
    "intranet",
    "lan",
    "home",
    "corp",
    "private",
    "arpa",
    "onion",
];
/// Second-level names under country codes below which anyone can register names.
const PUBLIC_SECOND_LEVELS: [&str; 20] = [
    "ac", "co", "com", "edu", "gen", "go", "gob", "gov", "gv", "id", "ind", "ltd", "me", "mil",
    "ne", "net", "nom", "or", "org", "plc",
];
/// Domains of hosting services, below which anyone can get a name.
const SHARED_HOSTING_DOMAINS: [&str; 26] = [
    "appspot.com",
    "azurewebsites.net",
    "blogspot.com",
    "cloudapp.net",
    "cloudfront.net",
    "firebaseapp.com",
    "fly.dev",
    "github.io",
    "gitlab.io",
    "glitch.me",
    "herokuapp.com",
    "netlify.app",
    "ngrok.app",
    "ngrok.io",
    "ngrok-free.app",
    "onrender.com",
    "pages.dev",
    "r2.dev",
    "repl.co",
    "run.app",
    "s3.amazonaws.com",
    "surge.sh",
    "trycloudflare.com",
    "vercel.app",
    "web.app",
    "workers.dev",
];

/// Checks the rules of a list without comparing them with others.
pub(super) fn check_rules(rules: &[EgressRule], report: &mut Report) {
    if rules.len() > MAX_RULES {
        report.add(format_args!(
            "{} rules are too many; at most {MAX_RULES}",
            rules.len()
        ));
    }
    for (index, rule) in rules.iter().enumerate() {
        if rules[..index].contains(rule) {
            report.add(format_args!("the rule for `{}` is listed twice", rule.host));
        }
        check_rule(rule, &mut report.at(&rule.host));
    }
}

fn check_rule(rule: &EgressRule, report: &mut Report) {
    if let Some(problem) = host_problem(&rule.host) {
        report.add(problem);
    }
    if rule.port == Some(0) {
        report.add("0 is not a port");
    }
    for method in rule
        .methods
        .iter()
        .filter(|method| !HTTP_METHODS.contains(&method.as_str()))
    {
        report.add(format_args!(
            "`{method}` is not one of {}",
            HTTP_METHODS.join(", ")
        ));
    }
    super::unique(&rule.methods, report);
    if let Some(path) = &rule.path_prefix {
        let plain = path.bytes().all(|byte| {
            byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#' | b'\\' | b'{' | b'}')
        });
        let steps = path
            .split('/')
            .any(|segment| segment == "." || segment == "..")
            || path.contains('%');
        if !path.starts_with('/') || !plain || steps || path.contains("//") {
            report.add(format_args!(
                "`{path}` is not the beginning of a path; write it like /v1/items, without `..`, `%` and `?`"
            ));
        }
    }
}

/// Returns the error in a host of an egress rule, if it has one.
#[must_use]
pub fn host_problem(host: &str) -> Option<String> {
    let name = host.strip_prefix("*.").unwrap_or(host);
    let wildcard = name.len() != host.len();
    let labels: Vec<&str> = name.split('.').collect();
    let last = labels[labels.len() - 1];
    let problem = if name.contains('*') {
        ": `*` stands only as the first label, as in *.example.com"
    } else if !name.is_ascii() {
        " is not ASCII; write it in Punycode (xn--…)"
    } else if labels.len() < 2 {
        " has fewer than two labels; write a full name such as api.example.com"
    } else if name.len() > 253 || !labels.iter().all(|label| is_label(label)) {
        " is not a host; write lower-case labels of a-z, 0-9 and -, with dots between them"
    } else if last.bytes().all(|byte| byte.is_ascii_digit()) {
        " is an IP address; write a name"
    } else if PRIVATE_TOP_LEVELS.contains(&last) {
        " is a name of a private network"
    } else if wildcard && is_public_suffix(&labels) {
        " covers domains of many owners; write the provider's own domain"
    } else {
        return None;
    };
    Some(format!("`{host}`{problem}"))
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Returns true if names below this domain can belong to anyone. This short rule replaces the
/// public suffix list: it covers the common suffixes, and the operator's policy decides in the end.
fn is_public_suffix(labels: &[&str]) -> bool {
    let two = matches!(labels, [second, country] if country.len() == 2 && PUBLIC_SECOND_LEVELS.contains(second));
    two || SHARED_HOSTING_DOMAINS.contains(&labels.join(".").as_str())
}

/// Returns true if `outer` allows everything that `inner` allows. `read_only` decides what an
/// absent list of methods means for `inner`.
pub(super) fn within(inner: &EgressRule, outer: &EgressRule, read_only: bool) -> bool {
    let methods = match (inner.methods.as_slice(), outer.methods.as_slice()) {
        (_, []) => true,
        ([], outer) => read_only && outer.iter().any(|method| method == "GET"),
        (inner, outer) => inner.iter().all(|method| allows(outer, method)),
    };
    let path = match (&inner.path_prefix, &outer.path_prefix) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(inner), Some(outer)) => inner.starts_with(outer.as_str()),
    };
    methods && path && port(inner) == port(outer) && covers(&outer.host, &inner.host)
}

/// Returns true if a rule's host covers a host, or everything below a host with `*`.
pub(crate) fn covers(outer: &str, inner: &str) -> bool {
    let Some(domain) = outer.strip_prefix("*.") else {
        return outer == inner;
    };
    let below = inner
        .strip_prefix("*.")
        .unwrap_or(inner)
        .strip_suffix(domain);
    outer == inner || below.is_some_and(|below| below.len() > 1 && below.ends_with('.'))
}

/// Returns true if one of the rules allows a request with this method to this address. The host may
/// be `*.example.com`.
pub(super) fn allowed(
    rules: &[EgressRule],
    method: &str,
    host: &str,
    at_port: u16,
    path: &str,
) -> bool {
    rules.iter().any(|rule| {
        covers(&rule.host, host)
            && port(rule) == at_port
            && (rule.methods.is_empty() || allows(&rule.methods, method))
            && rule
                .path_prefix
                .as_ref()
                .is_none_or(|prefix| path.starts_with(prefix.as_str()))
    })
}

fn allows(methods: &[String], method: &str) -> bool {
    methods
        .iter()
        .any(|allowed| allowed == method || (allowed == "GET" && method == "HEAD"))
}

fn port(rule: &EgressRule) -> u16 {
    rule.port.unwrap_or(443)
}
