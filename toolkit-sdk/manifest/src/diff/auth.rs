//! Comparison of auth schemes. A change is breaking if it can break accounts that are already
//! connected.

use super::{
    Party::{Accounts, Callers},
    Report,
};
use crate::{AuthScheme, Field, Manifest, OAuth2, Placement, Sign};

pub(super) fn compare(old: &Manifest, new: &Manifest, report: &mut Report) {
    report.at("auth", |report| {
        for scheme in &old.auth {
            let name = scheme.mode.as_str();
            match new.scheme(scheme.mode) {
                Some(other) => report.at(name, |report| schemes(scheme, other, report)),
                None => report.add(name, "is gone", &[Callers, Accounts]),
            }
        }
        for scheme in new
            .auth
            .iter()
            .filter(|scheme| old.scheme(scheme.mode).is_none())
        {
            report.add(scheme.mode.as_str(), "is new", &[]);
        }
    });
}

fn schemes(old: &AuthScheme, new: &AuthScheme, report: &mut Report) {
    report.reworded("name", old.name != new.name);
    report.at("fields", |report| {
        for field in &old.fields {
            match new.fields.iter().find(|other| other.name == field.name) {
                Some(other) => report.at(&field.name, |report| fields(field, other, report)),
                None => report.add(&field.name, "is no longer a scheme", &[]),
            }
        }
        for field in new
            .fields
            .iter()
            .filter(|field| old.fields.iter().all(|other| other.name != field.name))
        {
            added(field, new, report);
        }
    });
    if old.request != new.request {
        report.add(
            "request",
            "adds the credential in another place or form",
            &[],
        );
    }
    if old.sign != new.sign {
        report.add("sign", "signs requests in another way", &[]);
    }
    if old.client_certificate != new.client_certificate {
        report.add("client_certificate", "has another description", &[]);
    }
    report.reworded("base_url", old.base_url != new.base_url);
    report.reworded("verify", old.verify != new.verify);
    match (&old.oauth2, &new.oauth2) {
        (Some(old), Some(new)) => report.at("oauth2", |report| flows(old, new, report)),
        (None, None) => {}
        _ => report.add("oauth2", "exists in one version only", &[Accounts]),
    }
    match (&old.oauth1, &new.oauth1) {
        (Some(old), Some(new)) => report.reworded("oauth1", old != new),
        (None, None) => {}
        _ => report.add("oauth1", "exists in one version only", &[Accounts]),
    }
}

/// Reports a new field. Accounts that are already connected have no value for it.
fn added(field: &Field, scheme: &AuthScheme, report: &mut Report) {
    let mark = format!("{{{}}}", field.name);
    let mut placed = scheme.request.iter().flat_map(Placement::templates);
    let placed = placed.any(|template| template.contains(&mark));
    let signs = scheme
        .sign
        .iter()
        .flat_map(Sign::templates)
        .any(|(_, template)| template.contains(&mark));
    let used = placed || signs;
    match (field.optional, field.default.is_some() && !used) {
        (true, _) => report.add(&field.name, "is new and may be left empty", &[]),
        (_, true) => report.add(&field.name, "is new and has a default", &[]),
        _ => report.add(&field.name, "is newly required", &[Callers, Accounts]),
    }
}

fn fields(old: &Field, new: &Field, report: &mut Report) {
    match (is_needed(old), is_needed(new)) {
        (false, true) => report.add("required", "is newly required", &[Callers, Accounts]),
        (true, false) => report.add("required", "is no longer required", &[]),
        _ => {}
    }
    match (&old.pattern, &new.pattern) {
        (old, new) if old == new => {}
        (Some(_), None) => report.add("pattern", "is gone", &[]),
        (_, new) => {
            let new = new.as_deref().unwrap_or_default();
            report.add(
                "pattern",
                format!("must have the form {new}"),
                &[Callers, Accounts],
            );
        }
    }
    if (old.format, &old.one_of) != (new.format, &new.one_of) {
        let narrower = new.format.is_some() || !new.one_of.is_empty();
        let parties: &[_] = if narrower { &[Callers, Accounts] } else { &[] };
        report.add("values", "has other allowed values", parties);
    }
    match (old.secret, new.secret) {
        (true, false) => report.add(
            "secret",
            "is given to the toolkit, and no longer secret",
            &[Accounts],
        ),
        (false, true) => report.add("secret", "is now secret", &[]),
        _ => {}
    }
    let same = old.title == new.title
        && old.description == new.description
        && old.default == new.default
        && old.prefix == new.prefix
        && old.suffix == new.suffix
        && old.optional == new.optional
        && old.hidden == new.hidden;
    report.reworded("text", !same && is_needed(old) == is_needed(new));
}

fn is_needed(field: &Field) -> bool {
    !field.optional && !field.hidden && field.default.is_none()
}

fn flows(old: &OAuth2, new: &OAuth2, report: &mut Report) {
    for (part, old, new) in [
        ("authorize_url", &old.authorize_url, &new.authorize_url),
        ("token_url", &old.token_url, &new.token_url),
        ("issuer", &issuer(old), &issuer(new)),
    ] {
        if old != new {
            let text = format!(
                "is {} instead of {}; tokens have another issuer",
                or_none(new),
                or_none(old)
            );
            report.add(part, text, &[Accounts]);
        }
    }
    report.lists("scopes", &old.scopes, &new.scopes, &[Accounts]);
    report.reworded("flow", rest(old) != rest(new));
}

fn issuer(flow: &OAuth2) -> String {
    flow.issuer
        .clone()
        .or_else(|| flow.resource.clone())
        .unwrap_or_default()
}

fn or_none(url: &str) -> &str {
    if url.is_empty() { "none" } else { url }
}

/// Returns a flow without the settings that are compared one by one.
fn rest(flow: &OAuth2) -> OAuth2 {
    OAuth2 {
        authorize_url: String::new(),
        token_url: String::new(),
        issuer: None,
        resource: None,
        scopes: Vec::new(),
        ..flow.clone()
    }
}
