//! Rules for outgoing requests: form first, then destination.

use manifest::EgressRule;
use net::{
    HeaderMap, Method, Url,
    header::{HeaderName, HeaderValue},
};

use super::{credential::contains_name, error};
use crate::{
    Policy,
    contract::v1::http::Error,
    trace::{cut, one_line},
};

const MAX_URL_BYTES: usize = 8 << 10;
const MAX_HEADERS: usize = 64;
const MAX_HEADER_BYTES: usize = 32 << 10;
/// Number of headers that the host and its HTTP client usually add: credential, trace, lengths and encodings of
/// bodies, host and user agent.
const ADDED_HEADERS: usize = 7;

/// Parses a method that a guest may use.
pub(super) fn method(text: &str) -> Result<Method, Error> {
    let known = manifest::HTTP_METHODS
        .contains(&text)
        .then(|| Method::from_bytes(text.as_bytes()).ok())
        .flatten();
    known.ok_or_else(|| {
        let names = manifest::HTTP_METHODS.join(", ");
        error(
            "invalid_request",
            format!(
                "`{}` is not a method; use one of {names}",
                for_message(text)
            ),
        )
    })
}

fn invalid_url(text: &str, problem: &str) -> Error {
    error(
        "invalid_request",
        format!("the URL `{}` {problem}", for_message(without_query(text))),
    )
}

/// Parses a URL that a guest may use.
pub(super) fn url(text: &str) -> Result<Url, Error> {
    if text.len() > MAX_URL_BYTES {
        return Err(invalid_url(text, "is longer than 8 KiB"));
    }
    let mut url =
        Url::parse(text).map_err(|cause| invalid_url(text, &format!("is not valid: {cause}")))?;
    if url.scheme() != "https" {
        return Err(invalid_url(text, "does not begin with https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid_url(
            text,
            "contains a user name or password; the host adds credentials",
        ));
    }
    let Some(name) = url.domain() else {
        let problem = format!("`{}`: addresses cannot be reached, only names", host(&url));
        return Err(error("denied", problem));
    };
    if name.is_empty() || name.ends_with('.') {
        return Err(invalid_url(text, "has no valid host name"));
    }
    url.set_fragment(None);
    Ok(url)
}

/// Checks the headers that a guest may set. `reserved` lists the names that the auth scheme fills.
pub(super) fn headers(given: Vec<(String, String)>, reserved: &[&str]) -> Result<HeaderMap, Error> {
    let size: usize = given
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    if given.len() > MAX_HEADERS || size > MAX_HEADER_BYTES {
        return Err(error(
            "invalid_request",
            "a request has at most 64 headers and 32 KiB of them",
        ));
    }
    let mut headers = HeaderMap::with_capacity(given.len() + ADDED_HEADERS);
    for (name, text) in given {
        let (parsed, value) = header(&name, text, reserved).map_err(|why| {
            let problem = format!("the header `{}` {why}", for_message(&name));
            error("invalid_request", problem)
        })?;
        headers.append(parsed, value);
    }
    Ok(headers)
}

fn header(
    name: &str,
    value: String,
    reserved: &[&str],
) -> Result<(HeaderName, HeaderValue), &'static str> {
    if manifest::is_platform_header(name) || contains_name(reserved, name) {
        return Err("is set by the host; remove it");
    }
    let is_visible = value
        .bytes()
        .all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    match (
        HeaderName::from_bytes(name.as_bytes()),
        HeaderValue::try_from(value),
    ) {
        (Ok(name), Ok(value)) if is_visible => Ok((name, value)),
        _ => Err("is not valid: a name must be a token, a value visible ASCII"),
    }
}

/// Refuses a request that no egress rule of the call permits.
pub(super) fn check_egress(policy: &Policy, method: &Method, url: &Url) -> Result<(), Error> {
    if is_permitted(policy, method, url) {
        return Ok(());
    }
    let reached = policy.egress.iter().any(|rule| host_matches(rule, url));
    let why = match (reached, policy.read_only) {
        (false, _) => "the tool's manifest does not list this host and port under `egress`",
        (true, true) => "the tool is read-only, or its egress rules name other methods or paths",
        (true, false) => "the tool's egress rules name other methods or paths",
    };
    Err(error("denied", format!("{method} {}: {why}", host(url))))
}

/// Returns the host of the first egress rule that names the host and the port of a URL.
pub(super) fn permitted_host<'p>(policy: &'p Policy, url: &Url) -> Option<&'p str> {
    let rule = policy.egress.iter().find(|rule| host_matches(rule, url));
    rule.map(|rule| rule.host.as_str())
}

/// Returns true if an egress rule permits the request; used for redirects.
pub(super) fn is_permitted(policy: &Policy, method: &Method, url: &Url) -> bool {
    url.scheme() == "https"
        && policy.egress.iter().any(|rule| {
            host_matches(rule, url)
                && method_matches(rule, method, policy.read_only)
                && path_matches(rule, url)
        })
}

/// Refuses a response that redirects to a forbidden host. The guest may follow other redirects
/// itself.
pub(super) fn check_redirect(policy: &Policy, answer: &net::Response) -> Result<(), Error> {
    let location = answer
        .headers
        .get(net::header::LOCATION)
        .filter(|_| answer.status.is_redirection());
    let Some(next) = location.and_then(|text| answer.url.join(text.to_str().ok()?).ok()) else {
        return Ok(());
    };
    if next.scheme() == "https" && policy.egress.iter().any(|rule| host_matches(rule, &next)) {
        return Ok(());
    }
    let from = host(&answer.url);
    let to = host(&next);
    Err(error(
        "denied",
        format!("{from} redirects to {to}: the tool's manifest does not list that under `egress`"),
    ))
}

/// Returns true if a rule names the host and the port of a URL. `*.` is not a glob: it matches one
/// or more whole labels.
pub(super) fn host_matches(rule: &EgressRule, url: &Url) -> bool {
    let Some(name) = url.domain() else {
        return false;
    };
    let listed = match rule.host.strip_prefix("*.") {
        Some(parent) => name
            .strip_suffix(parent)
            .is_some_and(|below| below.len() > 1 && below.ends_with('.')),
        None => name.eq_ignore_ascii_case(&rule.host),
    };
    listed && url.port_or_known_default() == Some(rule.port.unwrap_or(443))
}

fn method_matches(rule: &EgressRule, method: &Method, read_only: bool) -> bool {
    if rule.methods.is_empty() {
        return !read_only || matches!(*method, Method::GET | Method::HEAD);
    }
    rule.methods.iter().any(|listed| listed == method.as_str())
}

fn path_matches(rule: &EgressRule, url: &Url) -> bool {
    let Some(prefix) = &rule.path_prefix else {
        return true;
    };
    let path = url.path();
    // A provider may decode these escapes, so they could leave the prefix.
    let mut escapes = path.split('%').skip(1).filter_map(|rest| rest.get(..2));
    path.starts_with(prefix.as_str())
        && !escapes.any(|digits| {
            let mut climbing = ["2e", "2f", "5c"].iter();
            climbing.any(|listed| digits.eq_ignore_ascii_case(listed))
        })
}

/// Returns host and port for messages.
pub(super) fn host(url: &Url) -> String {
    let port = url
        .port()
        .map(|port| format!(":{port}"))
        .unwrap_or_default();
    format!("{}{port}", url.host_str().unwrap_or("?"))
}

fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}

/// Formats the guest's text for a message.
fn for_message(text: &str) -> String {
    one_line(cut(text, 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(host: &str) -> EgressRule {
        EgressRule {
            host: host.to_owned(),
            port: None,
            methods: Vec::new(),
            path_prefix: None,
        }
    }

    fn allows(rule: EgressRule, read_only: bool, method: &Method, url: &str) -> bool {
        let policy = Policy {
            egress: vec![rule],
            read_only,
            ..Policy::default()
        };
        is_permitted(&policy, method, &Url::parse(url).unwrap())
    }

    #[test]
    fn only_listed_hosts_and_ports_are_reached() {
        for (listed, url, expected) in [
            ("api.example.com", "https://api.example.com/x", true),
            ("api.example.com", "https://API.example.COM:443/x", true),
            ("api.example.com", "https://api.example.com:8443/x", false),
            ("api.example.com", "http://api.example.com/x", false),
            ("api.example.com", "https://evil-api.example.com/", false),
            (
                "api.example.com",
                "https://api.example.com.evil.example/",
                false,
            ),
            ("*.example.com", "https://a.example.com/", true),
            ("*.example.com", "https://a.b.example.com/", true),
            ("*.example.com", "https://example.com/", false),
            ("*.example.com", "https://.example.com/", false),
            ("*.example.com", "https://badexample.com/", false),
        ] {
            assert_eq!(
                allows(rule(listed), false, &Method::GET, url),
                expected,
                "{listed} {url}"
            );
        }
        let url = Url::parse("https://a.example/").unwrap();
        assert!(!is_permitted(&Policy::default(), &Method::GET, &url));
    }

    #[test]
    fn read_only_allows_only_reads_or_named_methods() {
        let url = "https://api.example.com/graphql";
        assert!(allows(rule("api.example.com"), true, &Method::GET, url));
        assert!(!allows(rule("api.example.com"), true, &Method::POST, url));
        let named = EgressRule {
            methods: vec!["POST".to_owned()],
            ..rule("api.example.com")
        };
        assert!(allows(named.clone(), true, &Method::POST, url));
        assert!(!allows(named, true, &Method::GET, url));
    }

    #[test]
    fn a_path_prefix_cannot_be_climbed_out_of() {
        let prefixed = EgressRule {
            path_prefix: Some("/v1/".to_owned()),
            ..rule("a.example")
        };
        let inside = "https://a.example/v1/items?x=%2e";
        assert!(allows(prefixed.clone(), false, &Method::GET, inside));
        for path in [
            "/v2/",
            "/v1/../v2",
            "/v1/%2e%2e/v2",
            "/v1/..%2fv2",
            "/v1/%2E%2E%5Cv2",
            "/v1/\\..\\..\\v2",
        ] {
            let url = format!("https://a.example{path}");
            assert!(
                !allows(prefixed.clone(), false, &Method::GET, &url),
                "{path}"
            );
        }
    }

    #[test]
    fn urls_that_hide_something_are_refused() {
        for (text, kind) in [
            ("http://a.example/", "invalid_request"),
            ("https://user:pass@a.example/", "invalid_request"),
            ("https://a.example./", "invalid_request"),
            ("https://127.0.0.1/", "denied"),
            ("https://2130706433/", "denied"),
            ("https://0x7f.1/", "denied"),
            ("https://[::1]/", "denied"),
            ("/relative", "invalid_request"),
            ("", "invalid_request"),
        ] {
            assert_eq!(url(text).unwrap_err().kind, kind, "{text}");
        }
        assert_eq!(
            url("https://a.example/x#y").unwrap().as_str(),
            "https://a.example/x"
        );
        let message = url("http://a.example/?key=secret").unwrap_err().message;
        assert!(!message.contains("secret"), "{message}");
    }

    #[test]
    fn headers_that_frame_route_or_authorize_are_refused() {
        let reserved = ["x-vendor-key"];
        let one =
            |name: &str, value: &str| headers(vec![(name.to_owned(), value.to_owned())], &reserved);
        for name in [
            "Authorization",
            "COOKIE",
            "host",
            "Content-Length",
            "transfer-encoding",
            "X-Vendor-Key",
            "x-api-key",
            "Proxy-Anything",
            "TE",
            "Expect",
            ":authority",
            "a b",
            "",
            "x\r\ny",
            "é",
        ] {
            assert!(one(name, "x").is_err(), "{name}");
        }
        for value in ["a\r\nb: c", "\0", "é", "\u{7f}"] {
            assert!(one("x-fine", value).is_err(), "{value:?}");
        }
        assert!(one("X-Fine", "a\tb ~").is_ok());
        assert!(headers(vec![("a".to_owned(), String::new()); MAX_HEADERS + 1], &[]).is_err());
        assert!(headers(vec![("a".to_owned(), "x".repeat(MAX_HEADER_BYTES))], &[]).is_err());
    }

    #[test]
    fn six_methods_are_known() {
        for text in ["get", "CONNECT", "TRACE", "", "GET\r\n"] {
            assert!(method(text).is_err(), "{text:?}");
        }
        assert_eq!(method("PATCH").unwrap(), Method::PATCH);
    }
}
