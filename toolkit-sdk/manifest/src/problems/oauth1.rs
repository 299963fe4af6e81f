//! Checks of the OAuth 1.0 flow. They are the same as for the other flows, with fewer members.

use std::collections::BTreeMap;

use super::{Report, auth, flow, template};
use crate::{AuthMode, AuthScheme, OAuth1};

/// Prefix of the parameters that the platform writes into addresses and requests (RFC 5849).
const SENT_VALUE: &str = "oauth_";

/// Checks the flow, if the mode requires one. The fields it uses appear only in addresses, which
/// must not contain secrets.
pub(super) fn check(scheme: &AuthScheme, fields: &[&str], report: &mut Report) {
    let mut report = report.at("oauth1");
    let about = match (&scheme.oauth1, scheme.mode) {
        (Some(about), AuthMode::Oauth1) => about,
        (None, AuthMode::Oauth1) => {
            return report.add("has no flow; add `request_url`, `authorize_url` and `token_url`");
        }
        (Some(_), _) => return report.add("only a scheme of mode OAUTH1 has this flow"),
        (None, _) => return,
    };
    let OAuth1 {
        request_url,
        authorize_url,
        token_url,
        request_params,
        authorize_params,
        keep,
        identity,
    } = about;
    for (name, url) in [
        ("request_url", request_url),
        ("authorize_url", authorize_url),
        ("token_url", token_url),
    ] {
        let mut report = report.at(name);
        check_open(scheme, url, fields, &mut report);
        if let Err(problem) = auth::address(url) {
            report.add(problem);
        }
    }
    for (name, params) in [
        ("request_params", request_params),
        ("authorize_params", authorize_params),
    ] {
        check_params(scheme, params, fields, &mut report.at(name));
    }
    let mut kept = report.at("keep");
    for (name, pick) in keep {
        flow::check_kept(name, fields, &mut kept);
        flow::check_pick(pick, &mut kept.at(name));
    }
    drop(kept);
    flow::check_path(
        identity.as_deref().unwrap_or_default(),
        &mut report.at("identity"),
    );
    for field in scheme
        .fields
        .iter()
        .filter(|field| field.hidden && !keep.contains_key(&field.name))
    {
        report.add(format_args!(
            "the hidden field `{}` gets no value; name it in `keep`",
            field.name
        ));
    }
}

fn check_params(
    scheme: &AuthScheme,
    params: &BTreeMap<String, String>,
    fields: &[&str],
    report: &mut Report,
) {
    report.limit(params.len(), flow::MAX_PARAMETERS);
    for (name, value) in params {
        let mut report = report.at(name);
        if name.starts_with(SENT_VALUE) || name == "state" {
            report.add("the platform sets this parameter; remove it");
        }
        flow::check_value(name, value, &mut report);
        check_open(scheme, value, fields, &mut report);
    }
}

/// Checks a template that must not contain secrets.
fn check_open(scheme: &AuthScheme, value: &str, fields: &[&str], report: &mut Report) {
    for name in template::check(value, fields, report) {
        if scheme.secrets().any(|secret| secret == name) {
            report.secret_in_url(name);
        }
    }
}
