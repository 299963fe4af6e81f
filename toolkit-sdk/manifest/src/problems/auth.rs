//! Checks of auth schemes: the form of their fields, and that credentials go only to the toolkit's
//! own hosts.

use std::collections::BTreeSet;

use regex::Regex;

use super::{MAX_NAME_BYTES, Report, flow, hosts, oauth1, sign, template, text};
use crate::{AuthMode, AuthScheme, Check, ClientCertificate, Field, Manifest, Placement};

const MAX_HELP_BYTES: usize = 1024;
const MAX_PATTERN_BYTES: usize = 512;
const MAX_FIELDS: usize = 20;
const MAX_CHOICES: usize = 100;
/// Headers that frame or route the message. The host writes them.
const PLATFORM_HEADERS: [&str; 15] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

pub(super) fn check(manifest: &Manifest, report: &mut Report) {
    let mut modes = BTreeSet::new();
    for scheme in &manifest.auth {
        let mut report = report.at(scheme.mode.as_str());
        if !modes.insert(scheme.mode) {
            report.add("another scheme has this mode; write one scheme for each mode");
        }
        check_scheme(manifest, scheme, &mut report);
    }
}

fn check_scheme(manifest: &Manifest, scheme: &AuthScheme, report: &mut Report) {
    text::line(&scheme.name, MAX_NAME_BYTES, &mut report.at("name"));
    check_fields(&scheme.fields, &mut report.at("fields"));
    let mut known: Vec<&str> = scheme
        .fields
        .iter()
        .map(|field| field.name.as_str())
        .collect();
    let by_flow = flow::check(scheme, &known, report);
    oauth1::check(scheme, &known, report);
    for name in sign::taken(scheme).filter(|name| known.contains(name)) {
        report
            .at("fields")
            .at(name)
            .add("the name is reserved for a value of the platform; rename the field");
    }
    known.extend(scheme.flow_values());
    let mut used = check_request(scheme, &known, &mut report.at("request"));
    used.extend(by_flow);
    used.extend(sign::check(scheme, &known, report));
    used.extend(check_certificate(
        scheme,
        &mut report.at("client_certificate"),
    ));
    let secret = |name: &str| scheme.secrets().any(|secret| secret == name);
    if scheme.mode == AuthMode::NoAuth {
        if !scheme.request.is_empty() || known.iter().any(|name| secret(name)) {
            report.add("a scheme without credential has no secret fields and fills nothing");
        }
    } else if !known.iter().any(|name| secret(name)) {
        report
            .at("fields")
            .add("no field is secret; mark the credential as secret");
    }
    for name in known
        .iter()
        .filter(|name| secret(name) && !used.contains(**name))
    {
        report
            .at("fields")
            .at(name)
            .add("this secret is not used; use it in `request` or remove it");
    }
    if let Some(base_url) = &scheme.base_url {
        let mut report = report.at("base_url");
        let fields = template::check(base_url, &known, &mut report);
        for field in fields.iter().filter(|field| secret(field)) {
            report.secret_in_url(field);
        }
        check_address(manifest, "GET", base_url, None, &mut report);
    }
    if let Some(verify) = &scheme.verify {
        check_verify(manifest, scheme, verify, &known, &mut report.at("verify"));
    }
}

fn check_fields(fields: &[Field], report: &mut Report) {
    report.limit(fields.len(), MAX_FIELDS);
    let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    super::unique(&names, report);
    for field in fields {
        let mut report = report.at(&field.name);
        if !crate::template::is_field(&field.name) {
            report.add("write the name as 1 to 48 of a-z, 0-9 and _, beginning with a letter");
        }
        text::line(&field.title, MAX_NAME_BYTES, &mut report.at("title"));
        text::optional(
            &field.description,
            MAX_HELP_BYTES,
            &mut report.at("description"),
        );
        if field.secret && field.default.is_some() {
            report.add("a secret has no default");
        }
        check_choice(field, &mut report);
        check_pattern(field, &mut report.at("pattern"));
    }
}

fn check_choice(field: &Field, report: &mut Report) {
    report.at("one_of").limit(field.one_of.len(), MAX_CHOICES);
    super::unique(&field.one_of, &mut report.at("one_of"));
    for (place, words) in [("prefix", &field.prefix), ("suffix", &field.suffix)] {
        text::optional(words, MAX_NAME_BYTES, &mut report.at(place));
    }
    if field.pattern.is_none() && rejects_default(field) {
        report
            .at("default")
            .add("is not a value that the field accepts");
    }
}

fn check_pattern(field: &Field, report: &mut Report) {
    let Some(pattern) = &field.pattern else {
        return;
    };
    if pattern.len() > MAX_PATTERN_BYTES {
        return report.add(format_args!(
            "{} bytes are too long; at most {MAX_PATTERN_BYTES}",
            pattern.len()
        ));
    }
    match Regex::new(&format!("^(?:{pattern})$")) {
        Err(cause) => report.add(format_args!("is not a regular expression: {cause}")),
        Ok(_) if rejects_default(field) => report.add("the default does not match it"),
        Ok(_) => {}
    }
}

fn rejects_default(field: &Field) -> bool {
    let default = field.default.as_ref();
    default.is_some_and(|default| !field.accepts(default))
}

/// Checks the placements and returns the fields they use.
fn check_request<'a>(
    scheme: &'a AuthScheme,
    known: &[&str],
    report: &mut Report,
) -> BTreeSet<&'a str> {
    let mut used = BTreeSet::new();
    let mut taken = BTreeSet::new();
    for placement in &scheme.request {
        let (place, values) = describe(placement);
        let mut report = report.at(&place);
        if !taken.insert(place.to_ascii_lowercase()) {
            report.add("is filled twice");
        }
        check_target(placement, &mut report);
        let mut fields = BTreeSet::new();
        for value in values {
            fields.extend(template::check(value, known, &mut report));
            if value.chars().any(char::is_control) {
                report.add("the value holds control characters");
            }
        }
        if fields.is_empty() {
            report.add("no field is used here; write `{field}`, or send a fixed value from the toolkit itself");
        }
        used.extend(fields);
    }
    if scheme.mode != AuthMode::NoAuth
        && scheme.request.is_empty()
        && scheme.sign.is_none()
        && scheme.client_certificate.is_none()
    {
        report.add("does not use the credential; add it to `request`");
    }
    used
}

pub(super) fn describe(placement: &Placement) -> (String, Vec<&str>) {
    match placement {
        Placement::Header { name, value } => (format!("header {name}"), vec![value]),
        Placement::Query { name, value } => (format!("query {name}"), vec![value]),
        // Basic auth fills the same header.
        Placement::Basic { username, password } => {
            ("header authorization".to_owned(), vec![username, password])
        }
        Placement::Path { marker, value } => (format!("path {marker}"), vec![value]),
    }
}

pub(super) fn check_target(placement: &Placement, report: &mut Report) {
    match placement {
        Placement::Header { name, .. } => check_header(name, report),
        Placement::Query { name, .. } => {
            let is_plain = name
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !b"&=#?%+".contains(&byte));
            if name.is_empty() || name.len() > 64 || !is_plain {
                report.add("is not the name of a query parameter");
            }
        }
        Placement::Path { marker, .. } => {
            let is_plain = marker
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"~_.-".contains(&byte));
            if !(3..=64).contains(&marker.len()) || !is_plain || !marker.contains('~') {
                report.add("write the marker as 3 to 64 letters and digits with ~, for example ~credential~");
            }
        }
        Placement::Basic { username, .. } => {
            if username.contains(':') {
                report.add("a user name of basic auth cannot hold `:`");
            }
        }
    }
}

pub(super) fn check_header(name: &str, report: &mut Report) {
    let is_token = name.bytes().all(|byte| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&byte)
    });
    if name.is_empty() || name.len() > 64 || !is_token {
        report.add("is not the name of a header; write it in lower case, for example x-api-key");
    }
    if PLATFORM_HEADERS.contains(&name) {
        report.add("only the platform may set this header");
    }
}

/// Checks the fields with the certificate and its key, and returns their names.
fn check_certificate<'a>(scheme: &'a AuthScheme, report: &mut Report) -> Vec<&'a str> {
    let Some(ClientCertificate { certificate, key }) = &scheme.client_certificate else {
        return Vec::new();
    };
    for (place, name) in [("certificate", certificate), ("key", key)] {
        match scheme.fields.iter().find(|field| field.name == *name) {
            None => report
                .at(place)
                .add(format_args!("`{name}` is not a field of this scheme")),
            Some(field) if place == "key" && !field.secret => {
                report.at(place).add(format_args!(
                    "mark `{name}` as secret: its holder has access to the account"
                ));
            }
            Some(_) => {}
        }
    }
    vec![certificate, key]
}

fn check_verify(
    manifest: &Manifest,
    scheme: &AuthScheme,
    verify: &Check,
    known: &[&str],
    report: &mut Report,
) {
    if !["GET", "POST"].contains(&verify.method.as_str()) {
        report.add(format_args!("`{}` is not GET or POST", verify.method));
    }
    let fields = template::check(&verify.url, known, report);
    for field in scheme.secrets().filter(|field| fields.contains(field)) {
        report.add(format_args!(
            "`{{{field}}}` is secret; add it with `request` instead"
        ));
    }
    if !verify.url.starts_with('/') {
        return check_address(manifest, &verify.method, &verify.url, None, report);
    }
    match &scheme.base_url {
        Some(base_url) => check_address(
            manifest,
            &verify.method,
            base_url,
            Some(&verify.url),
            report,
        ),
        None => report.add("a path needs a `base_url`; write the whole address"),
    }
}

/// Checks that an address with fields in it can only lead to hosts of the manifest.
fn check_address(
    manifest: &Manifest,
    method: &str,
    url: &str,
    below: Option<&str>,
    report: &mut Report,
) {
    let (host, port, path) = match address(url) {
        Ok(address) => address,
        Err(problem) => return report.add(problem),
    };
    let path = match below {
        Some(below) => format!("{}{below}", path.trim_end_matches('/')),
        None => path.to_owned(),
    };
    // For a base URL, only the host is known. The paths below it are checked when they are
    // requested.
    let inside = match below {
        None if report.place.ends_with("base_url") => manifest
            .egress
            .iter()
            .any(|rule| hosts::covers(&rule.host, &host) && rule.port.unwrap_or(443) == port),
        _ => hosts::allowed(&manifest.egress, method, &host, port, &path),
    };
    if !inside {
        report.add(format_args!(
            "`{host}` is not among the hosts that `egress` allows"
        ));
    }
}

/// Returns the host as a rule would name it, the port and the path of an address with fields in it.
pub(super) fn address(url: &str) -> Result<(String, u16, &str), String> {
    let Some(rest) = url.strip_prefix("https://") else {
        return Err(format!("`{url}` does not begin with https://"));
    };
    let (authority, path) = rest
        .find(['/', '?', '#'])
        .map_or((rest, "/"), |end| (&rest[..end], &rest[end..]));
    if authority.contains('@') || url.contains(['#', '\\', ' ']) {
        return Err(format!(
            "`{url}` holds more than a host, a port, a path and a query"
        ));
    }
    let (host, port) = match authority.rsplit_once(':') {
        None => (authority, 443),
        Some((host, port)) => (
            host,
            port.parse()
                .map_err(|_| format!("`{port}` is not a port"))?,
        ),
    };
    let host = pattern(host)?;
    hosts::host_problem(&host).map_or(Ok((host, port, path)), Err)
}

/// Returns true if an address with fields in it can lead to this host and port. The fields' values
/// come from users and providers, so a caller that sends a secret checks again after filling them.
#[must_use]
pub fn template_matches_host(url: &str, host: &str, port: u16) -> bool {
    address(url).is_ok_and(|(rule, own, _)| own == port && hosts::covers(&rule, host))
}

/// Converts the host of a template to the host of a rule. `{subdomain}.example.com` can be any name
/// below `example.com`: `*.example.com`.
fn pattern(host: &str) -> Result<String, String> {
    let Some(last) = host.rfind('}') else {
        return Ok(host.to_owned());
    };
    match host[last + 1..].split_once('.') {
        Some((_, fixed)) if fixed.contains('.') => Ok(format!("*.{fixed}")),
        _ => Err(format!(
            "`{host}` may be a host of any owner; end it in a fixed domain, as in {{site}}.example.com"
        )),
    }
}
