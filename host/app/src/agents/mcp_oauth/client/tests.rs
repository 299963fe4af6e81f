//! Tests of `client`.

use super::*;

fn client(uri: &str) -> Client {
    Client {
        name: None,
        redirect_uris: vec![uri.to_owned()],
    }
}

#[test]
fn only_safe_redirect_uris_are_permitted() {
    for uri in [
        "https://app.example/cb?a=1",
        "http://127.0.0.1/cb",
        "http://[::1]:80/cb",
        "http://localhost:3000/cb",
        "cursor://anysphere.cursor-retrieval/oauth/cb",
        "com.example.app:/cb",
    ] {
        assert!(is_permitted(uri), "{uri}");
    }
    for uri in [
        "",
        "/cb",
        "http://app.example/cb",
        "http://localhost.evil.example/cb",
        "https://app.example/cb#fragment",
        "https://user@app.example/cb",
        "javascript:alert(1)",
        "javascript://app.example/%0aalert(1)",
        "data:text/html,hello",
        "mailto:a@b.example",
        "file:///etc/passwd",
    ] {
        assert!(!is_permitted(uri), "{uri}");
    }
}

#[test]
fn only_loopback_ports_are_free() {
    let local = client("http://127.0.0.1:1/cb");
    assert!(local.has_redirect_uri("http://127.0.0.1:1/cb"));
    assert!(local.has_redirect_uri("http://127.0.0.1:49152/cb"));
    assert!(local.has_redirect_uri("http://127.0.0.1/cb"));
    for other in [
        "http://127.0.0.1:1/cb/",
        "http://127.0.0.1:1/cb?a=1",
        "http://127.0.0.1:1/cb#a",
        "http://localhost:1/cb",
        "https://127.0.0.1:1/cb",
        "http://a@127.0.0.1:1/cb",
    ] {
        assert!(!local.has_redirect_uri(other), "{other}");
    }
    let remote = client("https://app.example/cb");
    assert!(remote.has_redirect_uri("https://app.example/cb"));
    for other in ["https://app.example:444/cb", "https://app.example/CB"] {
        assert!(!remote.has_redirect_uri(other), "{other}");
    }
}
