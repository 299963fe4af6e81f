//! Checks of signatures: they use only declared values, and write only where the platform writes
//! nothing else.

use std::collections::BTreeSet;

use super::{Report, auth, template};
use crate::{
    AuthMode, AuthScheme, OAUTH1_VALUES, Placement, REQUEST_VALUES, RSA_SHA1_PROBLEM, Sign,
    SignatureMethod, template::Template,
};

/// Checks the signature of a scheme and returns the fields that it uses. `known` are the names of
/// its values.
pub(super) fn check<'a>(
    scheme: &'a AuthScheme,
    known: &[&str],
    report: &mut Report,
) -> BTreeSet<&'a str> {
    let mut report = report.at("sign");
    let Some(sign) = &scheme.sign else {
        if scheme.mode == AuthMode::Oauth1 {
            report.add("has no signature; write { \"with\": \"oauth1\" }");
        }
        return BTreeSet::new();
    };
    match (sign, scheme.mode) {
        (_, AuthMode::NoAuth) => report.add("a scheme without credential signs nothing"),
        (Sign::AwsSigv4 { .. } | Sign::Template { .. }, AuthMode::Oauth1) => {
            report
                .at("with")
                .add("requests of OAUTH1 are signed with `oauth1`");
        }
        (
            Sign::Oauth1 {
                method: SignatureMethod::RsaSha1,
                ..
            },
            _,
        ) => {
            report.at("method").add(RSA_SHA1_PROBLEM);
            return scheme.secrets().collect();
        }
        _ => {}
    }
    for name in sign.header_names() {
        let filled = scheme.request.iter().any(|placement| match placement {
            Placement::Header { name: own, .. } => own == name,
            Placement::Basic { .. } => name == "authorization",
            Placement::Query { .. } | Placement::Path { .. } => false,
        });
        if filled {
            report.add(format_args!(
                "sets the header `{name}`, and so does `request`; remove it from `request`"
            ));
        }
    }
    let used: BTreeSet<&str> = match sign {
        Sign::Template { request } => check_request(request, known, &mut report.at("request")),
        Sign::Oauth1 { .. } | Sign::AwsSigv4 { .. } => {
            let templates = sign.templates().into_iter();
            templates
                .flat_map(|(name, value)| template::check(value, known, &mut report.at(name)))
                .collect()
        }
    };
    let needed: &[&str] = match sign {
        Sign::Oauth1 { .. } => &["consumer_key", "consumer_secret"],
        Sign::AwsSigv4 { .. } => &["access_key_id", "secret_access_key", "region", "service"],
        Sign::Template { .. } => &[],
    };
    for (name, _) in sign
        .templates()
        .into_iter()
        .filter(|(name, value)| needed.contains(name) && value.is_empty())
    {
        report.at(name).add("is empty; name a field, as in {key}");
    }
    used
}

/// Checks the placements that a template of digests writes.
fn check_request<'a>(
    request: &'a [Placement],
    known: &[&str],
    report: &mut Report,
) -> BTreeSet<&'a str> {
    let known: Vec<_> = known.iter().copied().chain(REQUEST_VALUES).collect();
    let mut used = BTreeSet::new();
    let mut taken = BTreeSet::new();
    let mut signs = false;
    for placement in request {
        let (place, values) = auth::describe(placement);
        let mut report = report.at(&place);
        if !taken.insert(place.to_ascii_lowercase()) {
            report.add("is filled twice");
        }
        if !matches!(
            placement,
            Placement::Header { .. } | Placement::Query { .. }
        ) {
            report.add("a signature goes into a header or a query parameter");
        }
        auth::check_target(placement, &mut report);
        for value in values {
            used.extend(template::check_of_flow(value, &known, &mut report));
            signs |= Template::parse(value).is_ok_and(|template| template.digests());
        }
    }
    if !signs {
        report
            .add("signs nothing; use a digest, as in {hmac_sha256({secret},{method}{path}{now})}");
    }
    used.retain(|name| !REQUEST_VALUES.contains(name));
    used
}

/// Returns the names that fields of a scheme cannot have because a signature defines a value of
/// that name.
pub(super) fn taken(scheme: &AuthScheme) -> impl Iterator<Item = &'static str> {
    let of_request = matches!(scheme.sign, Some(Sign::Template { .. }))
        .then_some(REQUEST_VALUES)
        .into_iter()
        .flatten();
    of_request.chain(
        (scheme.mode == AuthMode::Oauth1)
            .then_some(OAUTH1_VALUES)
            .into_iter()
            .flatten(),
    )
}
