//! Tests of `callback`.

use serde_json::json;

use super::*;

fn pairs(query: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect()
}

#[test]
fn callback_of_another_issuer_is_refused() {
    let scheme: AuthScheme = serde_json::from_value(json!({
        "mode": "OAUTH2", "name": "n",
        "oauth2": { "authorize_url": "https://login.example.com/agree", "token_url": "https://api.example.com/token" },
    }))
    .unwrap();
    for (query, good) in [
        ("code=c", true),
        ("iss=https://login.example.com", true),
        ("iss=https://login.example.com/tenant", true),
        ("iss=https://api.example.com/", true),
        ("iss=https://login.example.com.evil.net", false),
        ("iss=http://login.example.com", false),
        ("iss=", false),
        ("iss=data:,x", false),
        ("iss=https://login.example.com&iss=https://evil.net", false),
    ] {
        let checked = check_issuer(&scheme, &pairs(query));
        assert_eq!(checked.is_ok(), good, "{query}");
    }
}

#[test]
fn known_issuer_must_match_exactly() {
    let scheme: AuthScheme = serde_json::from_value(json!({
        "mode": "OAUTH2", "name": "n",
        "oauth2": { "issuer": "https://login.example.com/a", "names_issuer": true },
    }))
    .unwrap();
    for (query, good) in [
        ("iss=https://login.example.com/a", true),
        ("iss=https://login.example.com", false),
        ("iss=https://login.example.com/a/", false),
        ("code=c", false),
        (
            "iss=https://login.example.com/a&iss=https://login.example.com/a",
            false,
        ),
    ] {
        let checked = check_issuer(&scheme, &pairs(query));
        assert_eq!(checked.is_ok(), good, "{query}");
    }
}

#[test]
fn a_parameter_that_comes_twice_is_none() {
    for (query, state) in [
        ("state=a&code=b", Some("a")),
        ("state=a&state=a", None),
        ("code=a", None),
    ] {
        assert_eq!(single_parameter(&pairs(query), "state"), state);
    }
}
