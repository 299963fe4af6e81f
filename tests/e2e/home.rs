//! The page at the root, and what a request without a key is told.

use harness::{Host, client::RawResponse};
use reqwest::Method;

/// Reads a path of the shared server as a client that accepts a media type.
async fn read(path: &str, accept: &str) -> RawResponse {
    let host = Host::shared().await;
    let (url, headers) = (format!("{}{path}", host.url), [("accept", accept)]);
    let client = host.anonymous();
    client
        .exchange(Method::GET, &url, &headers, Vec::new())
        .await
}

#[tokio::test]
async fn root_page_leads_to_documentation() {
    let page = read("/", "*/*").await;
    assert_eq!(page.status, 200);
    assert!(
        page.header("content-security-policy")
            .contains("default-src 'none'")
    );
    let text = String::from_utf8(page.bytes).unwrap();
    assert!(text.contains("toolhost is running"), "{text}");
    for name in ["x-api-key", "x-org-api-key", "x-user-api-key", ".env"] {
        assert!(text.contains(name), "{name}: {text}");
    }
    let mut followed = 0;
    for link in text.split("href=\"/").skip(1) {
        let path = format!("/{}", link.split('"').next().unwrap());
        assert_eq!(read(&path, "*/*").await.status, 200, "{path}");
        followed += 1;
    }
    assert_eq!(followed, 3, "{text}");
}

#[tokio::test]
async fn final_slash_leads_to_the_page() {
    for (path, target) in [
        ("/docs/", "../docs"),
        ("/docs/?a=b", "../docs?a=b"),
        ("/link/done/", "../done"),
    ] {
        let moved = read(path, "*/*").await;
        assert_eq!(moved.status, 308, "{path}");
        assert_eq!(moved.header("location"), target);
    }
}

#[tokio::test]
async fn unknown_address_is_a_page_for_browsers() {
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let page = read("/nothing/here", browser).await;
    assert_eq!(page.status, 404);
    assert!(page.header("content-type").starts_with("text/html"));
    assert!(
        page.header("content-security-policy")
            .contains("default-src 'none'")
    );
    let text = String::from_utf8(page.bytes).unwrap();
    assert!(text.contains("<h1>Page not found</h1>"), "{text}");
    for (path, accept) in [
        ("/nothing/here", "application/json"),
        ("/nothing/here", "*/*"),
        ("/api/v3.1/nothing", browser),
        ("/api/v9/tools", browser),
    ] {
        let answer = read(path, accept).await;
        assert_eq!(answer.status, 404, "{path}");
        let envelope: serde_json::Value = serde_json::from_slice(&answer.bytes).unwrap();
        assert_eq!(envelope["error"]["slug"], "HTTP_NotFound", "{path}");
    }
}

#[tokio::test]
async fn unknown_path_suggests_a_similar_one() {
    let project = Host::shared().await.new_project().await;
    for (path, similar) in [
        ("/tool_router/sesion", "/tool_router/session`?"),
        ("/connected_account", "/connected_accounts`?"),
        ("/toolkits/", "/toolkits`?"),
    ] {
        let missing = project.get(path).await.expect(404);
        let message = missing["error"]["message"].as_str().unwrap();
        assert!(message.ends_with(similar), "{path}: {message}");
    }
}

#[tokio::test]
async fn missing_key_is_answered_with_its_header() {
    let host = Host::shared().await;
    for (path, header) in [
        (
            "/toolkits",
            "a project key as `x-api-key` or a user key as `x-user-api-key`",
        ),
        (
            "/org/owner/project/list",
            "an organization key as `x-org-api-key`",
        ),
    ] {
        let refused = host.anonymous().get(path).await.expect(401);
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.ends_with(header), "{path}: {message}");
        let fix = refused["error"]["suggested_fix"].as_str().unwrap();
        assert!(!fix.contains("api-key"), "{fix}");
    }
}
