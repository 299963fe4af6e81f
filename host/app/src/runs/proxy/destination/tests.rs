//! Tests of `destination`.

use serde_json::json;

use super::*;

#[test]
fn proxy_url_stays_within_provider_domain() {
    let egress = json!([{"host": "api.acme.co.uk"}, {"host": "files.acme-cdn.net"}]);
    let release = Release::for_test(&egress);
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
    let release = Release::for_test(&json!([{"host": "acme.github.io"}]));
    assert!(
        resolve_target(
            &release,
            Some("https://acme.github.io"),
            "https://other.github.io/"
        )
        .is_err()
    );
    assert!(resolve_target(&release, None, "/relative").is_err());
    let base = Some("https://bedrock-runtime.eu-west-1.amazonaws.com");
    for (host, expected) in [
        ("bedrock.eu-west-1.amazonaws.com", true),
        ("evil.execute-api.eu-west-1.amazonaws.com", false),
    ] {
        let found = resolve_target(&release, base, &format!("https://{host}/"));
        assert_eq!(found.is_ok(), expected, "{host}");
    }
}
