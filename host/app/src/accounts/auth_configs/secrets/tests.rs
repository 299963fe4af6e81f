//! Tests of `secrets`.

use super::*;

#[test]
fn proxy_key_becomes_an_authorization_value() {
    let way = |key: &str| {
        Proxy {
            url: "http://proxy.example:3128".into(),
            key: Some(key.into()),
        }
        .to_net_proxy("")
        .unwrap()
    };
    let with = |value: &str| net::Proxy::new("http://proxy.example:3128", Some(value)).unwrap();
    assert_eq!(way("user:pass"), with("Basic dXNlcjpwYXNz"));
    assert_eq!(way("abc"), with("Bearer abc"));
    assert_eq!(way("Custom a:b"), with("Custom a:b"));
    assert!(
        Proxy {
            url: "proxy.example".into(),
            key: None
        }
        .to_net_proxy("")
        .is_err()
    );
}

#[test]
fn scopes_are_a_text_or_a_list() {
    let of = |json: Value| scopes(json.as_object().unwrap(), "scopes");
    assert_eq!(
        of(serde_json::json!({"scopes": "a, b c,,d"})),
        ["a", "b", "c", "d"]
    );
    assert_eq!(
        of(serde_json::json!({"scopes": ["a", "https://x.example/b c"]})),
        ["a", "https://x.example/b c"]
    );
    assert!(of(serde_json::json!({"user_scopes": "a"})).is_empty());
}
