//! Targets of proxy requests: the hosts that a credential of the toolkit may be sent to.
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
    let mismatch = || {
        errors::origin_mismatch(
            crate::core::truncate(without_query(endpoint)),
            &release.slug,
        )
    };
    let base = base.and_then(|base| Url::parse(base).ok());
    let policy = Policy {
        egress: egress_rules(release, base.as_ref()),
        read_only: false,
        ..Policy::default()
    };
    let first_segment = endpoint.split(['/', '?', '#']).next().unwrap_or_default();
    let relative = !first_segment.ends_with(':')
        && !endpoint.starts_with("//")
        && !first_segment.starts_with(['\\', '@']);
    let url = if relative {
        let base = base.ok_or_else(mismatch)?;
        Url::parse(&format!(
            "{}/{}",
            base.as_str().trim_end_matches('/'),
            endpoint.trim_start_matches('/')
        ))
    } else {
        Url::parse(endpoint)
    };
    let url = url.map_err(|_| mismatch())?;
    let plain = url.username().is_empty() && url.password().is_none();
    if plain && policy.reaches(&url) {
        Ok((url, policy))
    } else {
        Err(mismatch())
    }
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
    let rule = |host: String, port: Option<u16>| EgressRule {
        host,
        port,
        methods: Vec::new(),
        path_prefix: None,
    };
    let mut rules: Vec<_> = release
        .egress
        .iter()
        .map(|own| rule(own.host.clone(), own.port))
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
mod tests {
    use sandbox::Digest;
    use serde_json::{Value, json};
    use store::Time;

    use super::*;
    use crate::catalog::SchemaFile;

    fn release(egress: Value) -> Release {
        let manifest = json!({ "abi": "1.0.0", "sdk": "s", "slug": "acme", "name": "n", "description": "d", "version": "20260101_00", "egress": egress, "tools": [], });
        let mut schema_file = SchemaFile::create_in(&tempfile::env::temp_dir()).unwrap();
        let manifest = manifest.to_string();
        let manifest = serde_json::from_str(&manifest).unwrap();
        Release::new(manifest, Digest::compute(b""), 0, Time(0), &mut schema_file).unwrap()
    }

    #[test]
    fn proxy_url_stays_within_provider_domain() {
        let release = release(json!([{"host": "api.acme.co.uk"}, {"host": "files.acme-cdn.net"}]));
        let base = Some("https://api.acme.co.uk/v1/");
        for (endpoint, expected) in [
            ("items?a=b", Some("https://api.acme.co.uk/v1/items?a=b")),
            (
                "/items?to=https://evil.net",
                Some("https://api.acme.co.uk/v1/items?to=https://evil.net"),
            ),
            ("/items", Some("https://api.acme.co.uk/v1/items")),
            (
                "https://api.acme.co.uk/v2",
                Some("https://api.acme.co.uk/v2"),
            ),
            (
                "https://uploads.acme.co.uk/x",
                Some("https://uploads.acme.co.uk/x"),
            ),
            ("https://acme.co.uk/x", Some("https://acme.co.uk/x")),
            (
                "https://files.acme-cdn.net/x",
                Some("https://files.acme-cdn.net/x"),
            ),
            ("https://evil.co.uk/x", None),
            ("https://acme.co.uk.evil.net/x", None),
            ("https://notacme.co.uk/x", None),
            ("http://api.acme.co.uk/x", None),
            ("https://api.acme.co.uk:8443/x", None),
            ("https://u:p@api.acme.co.uk/x", None),
            ("https://api.acme.co.uk@evil.net/x", None),
            ("//evil.net/x", None),
            ("\\\\evil.net/x", None),
            ("@evil.net/x", None),
            ("https://127.0.0.1/x", None),
            ("https://[::1]/x", None),
            ("file:///etc/passwd", None),
        ] {
            let found = resolve_target(&release, base, endpoint)
                .ok()
                .map(|(url, _)| url.to_string());
            assert_eq!(found.as_deref(), expected, "{endpoint}");
        }
    }

    #[test]
    fn public_suffix_does_not_share_domains() {
        let release = release(json!([{"host": "acme.github.io"}]));
        assert!(
            resolve_target(
                &release,
                Some("https://acme.github.io"),
                "https://other.github.io/"
            )
            .is_err()
        );
        assert!(resolve_target(&release, None, "/relative").is_err());
    }
}
