//! The flow of a scheme: the person is sent to the application and nowhere else, and what the platform writes into the address
//! cannot be written over.

use super::{Report, auth, template, text, tools};
use crate::{ACCESS_TOKEN, AuthMode, AuthScheme, OAuth2};

const LONGEST_PARAMETER: usize = 256;
const MOST_PARAMETERS: usize = 20;
/// What the platform writes into the address (RFC 6749, RFC 7636).
const OWN: [&str; 7] =
    ["response_type", "client_id", "redirect_uri", "scope", "state", "code_challenge", "code_challenge_method"];

/// `known` are the names of the scheme's fields.
pub(super) fn check(scheme: &AuthScheme, known: &[&str], report: &mut Report) {
    let mut report = report.at("oauth2");
    match (&scheme.oauth2, scheme.mode == AuthMode::Oauth2) {
        (Some(flow), true) => check_flow(scheme, flow, known, &mut report),
        (None, true) => report.add("says nothing about the flow; add `authorize_url` and `token_url`"),
        (Some(_), false) => report.add("only a scheme of mode OAUTH2 has a flow"),
        (None, false) => {}
    }
}

fn check_flow(scheme: &AuthScheme, flow: &OAuth2, known: &[&str], report: &mut Report) {
    if known.contains(&ACCESS_TOKEN) {
        report.add(format_args!("the flow brings `{ACCESS_TOKEN}`; give the field another name"));
    }
    check_url(scheme, &flow.authorize_url, known, &mut report.at("authorize_url"));
    check_url(scheme, &flow.token_url, known, &mut report.at("token_url"));
    tools::check_scopes(&flow.scopes, &mut report.at("scopes"));
    if let Some(separator) = &flow.scope_separator
        && (separator.len() != 1 || !separator.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '))
    {
        report.at("scope_separator").add("is one character, for example `,`");
    }
    let mut report = report.at("authorize_params");
    if flow.authorize_params.len() > MOST_PARAMETERS {
        report.add(format_args!("{} are too many; at most {MOST_PARAMETERS}", flow.authorize_params.len()));
    }
    for (name, value) in &flow.authorize_params {
        let mut report = report.at(name);
        if OWN.contains(&name.as_str()) {
            report.add("the platform writes this parameter");
        }
        text::line(name, LONGEST_PARAMETER, &mut report);
        text::line(value, LONGEST_PARAMETER, &mut report);
    }
}

fn check_url(scheme: &AuthScheme, url: &str, known: &[&str], report: &mut Report) {
    let fields = template::check(url, known, report);
    for field in scheme.secrets().filter(|secret| fields.contains(secret)) {
        report.add(format_args!("`{{{field}}}` is secret; an address holds only fields that are not"));
    }
    if let Err(problem) = auth::address(url) {
        report.add(problem);
    }
}
