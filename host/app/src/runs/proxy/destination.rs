//! Destinations of proxy requests: the hosts that a credential of the toolkit may be sent to.

use manifest::EgressRule;
use sandbox::Policy;
use url::Url;

use crate::{Result, catalog::Release, runs::errors};

/// Returns the URL of a request, and the policy that also limits its redirects.
pub(super) fn resolve_target(
    release: &Release,
    base: Option<&str>,
    endpoint: &str,
) -> Result<(Url, Policy)> {
    let mismatch = || errors::origin_mismatch(&release.slug);
    let base = base.and_then(|base| Url::parse(base).ok());
    let domain = base.as_ref().and_then(registrable_domain);
    let policy = Policy {
        egress: egress_rules(release, base.as_ref()),
        ..Policy::default()
    };
    let url = endpoint_url(base.as_ref(), endpoint).ok_or_else(mismatch)?;
    let plain = url.username().is_empty() && url.password().is_none();
    // Below the base URL's registrable domain may be public suffixes, with domains of others.
    if plain
        && policy.reaches(&url)
        && (domain == registrable_domain(&url) || is_in_declared_egress(release, &url))
    {
        Ok((url, policy))
    } else {
        Err(mismatch())
    }
}

/// Returns the URL of an endpoint: below the base URL, unless the endpoint names an origin.
fn endpoint_url(base: Option<&Url>, endpoint: &str) -> Option<Url> {
    let first_segment = endpoint.split(['/', '?', '#']).next().unwrap_or_default();
    let relative = !first_segment.ends_with(':')
        && !endpoint.starts_with("//")
        && !first_segment.starts_with(['\\', '@']);
    if !relative {
        return Url::parse(endpoint).ok();
    }
    let base = base?.as_str().trim_end_matches('/');
    Url::parse(&format!("{base}/{}", endpoint.trim_start_matches('/'))).ok()
}

fn is_in_declared_egress(release: &Release, url: &Url) -> bool {
    let declared = Policy {
        egress: egress_rules(release, None),
        ..Policy::default()
    };
    declared.reaches(url)
}

/// Returns a rule for all paths and methods of a host.
pub(super) fn rule(host: String, port: Option<u16>) -> EgressRule {
    EgressRule {
        host,
        port,
        methods: Vec::new(),
        path_prefix: None,
    }
}

fn registrable_domain(url: &Url) -> Option<String> {
    url.domain().and_then(psl::domain_str).map(str::to_owned)
}

/// Removes the query and the fragment of a URL, which may contain secrets.
pub(super) fn without_query(endpoint: &str) -> &str {
    endpoint.split(['?', '#']).next().unwrap_or_default()
}

/// Returns the hosts that a credential of the toolkit may be sent to if the provider's API is at
/// `base`.
pub(in crate::runs) fn allowed_origins(release: &Release, base: Option<&str>) -> Vec<EgressRule> {
    egress_rules(
        release,
        base.and_then(|base| Url::parse(base).ok()).as_ref(),
    )
}

/// Returns the egress rules: the toolkit's own hosts, and all hosts of the base URL's registrable
/// domain.
fn egress_rules(release: &Release, base: Option<&Url>) -> Vec<EgressRule> {
    let mut rules: Vec<_> = release
        .egress
        .iter()
        .map(|declared| rule(declared.host.clone(), declared.port))
        .collect();
    if let Some(base) = base
        && let Some(host) = base.domain()
    {
        rules.push(rule(host.to_owned(), base.port()));
        if let Some(domain) = psl::domain_str(host) {
            rules.push(rule(domain.to_owned(), base.port()));
            rules.push(rule(format!("*.{domain}"), base.port()));
        }
    }
    rules
}

#[cfg(test)]
mod tests;
