//! Destinations of credentials: the provider they belong to, and no other.

use base64::{Engine, engine::general_purpose};
use futures::{StreamExt, stream};
use harness::{Client, Guest, Host, guest, host::Setup, unique};
use serde_json::{Value, json};

use crate::given;

/// Publishes a toolkit that places its key somewhere, connects an account, and returns the tool and
/// the key. The key contains characters that encodings change. Clients and hosts of the harness
/// assert that it is not disclosed.
async fn connected(host: &Host, project: &Client, placement: Value) -> (String, String) {
    let slug = given::slug();
    let manifest = guest::manifest_with_key(&slug, placement);
    host.publish(Guest::fetch().component(), &manifest).await;
    let secret = format!("sk\"+/={}%", harness::secret());
    let values = json!({ "api_key": secret });
    project.connect(&slug, "API_KEY", "default", values).await;
    (guest::tool(&slug), secret)
}

#[tokio::test]
async fn only_the_provider_sees_the_key() {
    let (host, project) = Host::shared_with_project().await;
    let placements = [
        json!({ "in": "header", "name": "authorization", "value": "Bearer {api_key}" }),
        json!({ "in": "header", "name": "x-token", "value": "{api_key}" }),
        json!({ "in": "query", "name": "key", "value": "{api_key}" }),
        json!({ "in": "basic", "username": "{api_key}", "password": "" }),
        json!({ "in": "path", "marker": "~credential~", "value": "{api_key}" }),
    ];
    for placement in placements {
        let (tool, secret) = connected(host, &project, placement.clone()).await;
        let tag = unique(8);
        // The provider reflects everything it received, in body and headers: raw, base64,
        // percent-encoded and escaped.
        let url = format!("https://api.example.com/leak/{tag}/~credential~");
        let answer = project.execute(&tool, json!({ "url": url })).await;
        assert_eq!(answer["successful"], true, "{placement}: {answer:#?}");
        let seen = &Host::application().seen(&tag)[0];
        let plain = format!("{:?}{}{}", seen.headers, seen.query, seen.path);
        let core = &secret[6..secret.len() - 1];
        let basic = general_purpose::STANDARD.encode(format!("{secret}:"));
        assert!(
            plain.contains(core) || plain.contains(&basic),
            "{placement}: {plain}"
        );
        project.log(&answer["log_id"]).await;
        assert!(
            answer.text.contains("redacted"),
            "the guest is told what is missing: {}",
            answer.text
        );
    }
    let logs = project.post("/logs/tool_execution", &json!({})).await;
    logs.expect(200);
}

/// Creates a project with an account of the shared toolkit with a key. Returns it with the tool.
async fn with_account() -> (Client, String) {
    let project = Host::shared().await.new_project().await;
    let slug = given::keyed().await;
    project.connect_with_key(slug, "default").await;
    (project, guest::tool(slug))
}

#[tokio::test]
async fn disallowed_urls_are_typed_errors() {
    let (project, tool) = with_account().await;
    let tag = unique(8);
    let urls = [
        "https://other.example.com/echo/TAG",
        "https://example.com/echo/TAG",
        "https://api.example.com.evil.example.org/echo/TAG",
        "https://api.example.com:8443/echo/TAG",
        "http://api.example.com/echo/TAG",
        "https://user:pass@api.example.com/echo/TAG",
        "https://api.example.com@other.example.com/echo/TAG",
        "https://other.example.com\\\\@api.example.com/echo/TAG",
        "file:///etc/passwd",
        "ftp://api.example.com/TAG",
        "//api.example.com/TAG",
        "api.example.com/TAG",
        "",
    ];
    for url in urls {
        let url = url.replace("TAG", &tag);
        let answer = project.execute(&tool, json!({ "url": url })).await;
        let is_refused = ["denied", "invalid_request"].contains(&answer.failure());
        assert!(is_refused, "{url}: {}", answer.text);
    }
    assert_eq!(given::seen(&tag), 0);
}

#[tokio::test]
async fn a_redirect_carries_no_credential_away() {
    let (host, project) = Host::shared_with_project().await;
    // Both hosts are allowed, so only the redirect rule keeps the credential from the other host.
    let mut manifest = guest::manifest_with_key(&given::slug(), given::bearer());
    manifest["egress"] = json!([{ "host": "api.example.com" }, { "host": "other.example.com" }]);
    host.publish(Guest::fetch().component(), &manifest).await;
    let slug = manifest["slug"].as_str().unwrap();
    project.connect_with_key(slug, "default").await;
    let targets = [
        "https://other.example.com/echo/TAG",
        "https://files.example.net/echo/TAG",
        "https://127.0.0.1/echo/TAG",
        "https://169.254.169.254/TAG",
        "http://api.example.com/echo/TAG",
        "https://api.example.com:8443/echo/TAG",
        "//other.example.com/echo/TAG",
    ];
    for target in targets {
        let tag = unique(8);
        let to = target.replace("TAG", &tag);
        let url = json!({ "url": format!("https://api.example.com/redirect/from?to={to}") });
        let answer = project.execute(&guest::tool(slug), url).await.expect(200);
        let is_denied = answer.failure() == "denied";
        let forbidden = ["files.example.net", "127.0.0.1", "169.254.169.254"];
        let is_forbidden = forbidden.iter().any(|host| target.contains(host));
        let stopped = is_denied || (!is_forbidden && answer["data"] == json!({}));
        assert!(stopped, "{target}: {}", answer.text);
        let seen = Host::application().seen(&tag);
        assert!(seen.is_empty() || !is_forbidden, "{target}: {seen:?}");
        for seen in seen {
            assert_eq!(seen.header("authorization"), "", "{target}");
        }
    }
}

#[tokio::test]
async fn same_origin_redirect_carries_the_credential() {
    let project = Host::shared().await.new_project().await;
    let slug = given::keyed().await;
    let key = harness::secret();
    let values = json!({ "api_key": key });
    project.connect(slug, "API_KEY", "default", values).await;
    let tag = unique(8);
    let url = json!({ "url": format!("https://api.example.com/redirect/from?to=/echo/{tag}") });
    let data = project.execute(&guest::tool(slug), url).await.data();
    assert_eq!(data["path"], format!("/echo/{tag}"));
    let seen = Host::application().seen(&tag);
    let sent = seen.last().unwrap().header("authorization");
    assert_eq!(sent, format!("Bearer {key}"));
}

#[tokio::test]
async fn each_project_and_user_sends_its_own_key() {
    let host = Host::shared().await;
    let slug = given::keyed().await;
    let mut sent = Vec::new();
    for _ in 0..3 {
        let project = host.new_project().await;
        for user in ["amy", "bob"] {
            let secret = harness::secret();
            let values = json!({ "api_key": secret });
            project.connect(slug, "API_KEY", user, values).await;
            sent.push((project.clone(), user, secret));
        }
    }
    let calls = (0..5)
        .flat_map(|_| &sent)
        .map(|(project, user, secret)| async move {
            let tag = unique(8);
            let arguments = json!({ "url": format!("https://api.example.com/echo/{tag}") });
            let body = json!({ "arguments": arguments, "user_id": user, "version": "latest" });
            let path = format!("/tools/execute/{}", guest::tool(slug));
            project.post(&path, &body).await.data();
            let seen = &Host::application().seen(&tag)[0];
            assert_eq!(seen.header("authorization"), format!("Bearer {secret}"));
        });
    let calls = stream::iter(calls).buffer_unordered(6);
    calls.collect::<Vec<_>>().await;
}

#[tokio::test]
async fn a_refused_key_is_not_tried_twice() {
    let (project, tool) = with_account().await;
    let tag = unique(8);
    let url = json!({ "url": format!("https://api.example.com/status/{tag}/401") });
    project.execute(&tool, url).await.expect(200);
    // A key has nothing that could be renewed.
    assert_eq!(given::seen(&tag), 1);
}

#[tokio::test]
async fn answers_that_are_too_large_are_typed_errors() {
    let (project, tool) = with_account().await;
    for path in ["big/large/11534336", "bomb/large"] {
        let url = json!({ "url": format!("https://api.example.com/{path}") });
        let answer = project.execute(&tool, url).await;
        assert_eq!(answer.failure(), "too_large", "{path}: {}", answer.text);
    }
}

#[tokio::test]
async fn a_toolkit_without_an_account_sends_no_credential() {
    let (host, project) = Host::shared_with_project().await;
    let mut manifest = guest::manifest(&given::slug());
    manifest["egress"] = json!([{ "host": "api.example.com" }]);
    host.publish(Guest::fetch().component(), &manifest).await;
    let tag = unique(8);
    let url = json!({ "url": format!("https://api.example.com/echo/{tag}") });
    let tool = guest::tool(manifest["slug"].as_str().unwrap());
    project.execute(&tool, url).await.data();
    let seen = &Host::application().seen(&tag)[0];
    for name in ["authorization", "cookie"] {
        assert_eq!(seen.header(name), "", "{name}");
    }
    assert!(seen.header("user-agent").starts_with("toolhost/"));
}

/// Builds a tool that posts `{}` as JSON to this address and returns the response.
fn poster(url: &str) -> Vec<u8> {
    let texts = [
        (2048, "POST"),
        (2064, url),
        (2304, "content-type"),
        (2320, "application/json"),
        (2340, "{}"),
    ];
    let texts: String = texts
        .iter()
        .map(|(at, text)| format!(r#"(data (i32.const {at}) "{text}")"#))
        .collect();
    // A header list with one entry: addresses and lengths of its name and value.
    let header = r#"(data (i32.const 2560) "\00\09\00\00\0c\00\00\00\10\09\00\00\10\00\00\00")"#;
    let execute = format!(
        "(call $send (i32.const 2048) (i32.const 4) (i32.const 2064) (i32.const {}) (i32.const 2560) (i32.const 1)
            (i32.const 1) (i32.const 0) (i32.const 2340) (i32.const 2)
            (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 1280))
        (if (i32.load8_u (i32.const 1280)) (then (return (call $fail
            (i32.load (i32.const 1284)) (i32.load (i32.const 1288)) (i32.load (i32.const 1292)) (i32.load (i32.const 1296))))))
        (call $ok (i32.load (i32.const 1296)) (i32.load (i32.const 1300)))",
        url.len()
    );
    let items = texts + header;
    Guest {
        imports: guest::imports::SEND,
        items: &items,
        execute: &execute,
        ..Guest::default()
    }
    .component()
}

#[tokio::test]
async fn base_url_without_such_a_field_is_refused() {
    let (host, project) = Host::shared_with_project().await;
    for (has_field, status) in [(false, 400), (true, 200)] {
        let mut manifest = guest::manifest_with_key(&given::slug(), given::bearer());
        if has_field {
            let field = json!({ "name": "base_url", "title": "Address", "secret": false, "optional": true });
            let fields = manifest["auth"][0]["fields"].as_array_mut();
            fields.unwrap().push(field);
        }
        host.publish(Guest::echo().component(), &manifest).await;
        let parameters = json!([{ "name": "x-key", "in": "header", "value": harness::secret() }]);
        let custom = json!({ "base_url": "https://other.example", "parameters": parameters });
        let body = json!({ "arguments": {}, "version": "latest", "custom_auth_params": custom });
        let tool = guest::tool(manifest["slug"].as_str().unwrap());
        let answer = project.post(&format!("/tools/execute/{tool}"), &body).await;
        let answer = answer.expect(status);
        let is_named = answer.text.contains("custom_auth_params.base_url: ");
        assert_eq!(is_named, !has_field, "{answer:#?}");
    }
}

#[tokio::test]
async fn body_credential_never_follows_cross_origin_redirect() {
    let application = Host::application();
    let host = Setup::new()
        .with_application(&["api.example.com", "api.example.com:8443"], application)
        .start()
        .await;
    for (origin, follows) in [
        ("", true),
        ("https://api.example.com", true),
        ("https://api.example.com:8443", false),
    ] {
        let (from, tag, secret) = (unique(8), unique(8), harness::secret());
        let mut manifest = guest::manifest(&given::slug());
        manifest["egress"] =
            json!([{ "host": "api.example.com" }, { "host": "api.example.com", "port": 8443 }]);
        let url = format!("https://api.example.com/redirect307/{from}?to={origin}/echo/{tag}");
        host.publish(poster(&url), &manifest).await;
        let body = json!({ "version": "latest", "custom_auth_params": { "parameters": [], "body": { "token": secret } } });
        let tool = guest::tool(manifest["slug"].as_str().unwrap());
        let path = format!("/tools/execute/{tool}");
        let answer = host.as_project().post(&path, &body).await.expect(200);
        assert_eq!(answer["successful"], true, "{}", answer.text);
        let sent = |tag: &str| -> Vec<Vec<u8>> {
            let seen = application.seen(tag).into_iter();
            seen.map(|seen| seen.body).collect()
        };
        let with_token = vec![json!({ "token": secret }).to_string().into_bytes()];
        assert_eq!(sent(&from), with_token, "the tool sends it there");
        let again = if follows { with_token } else { Vec::new() };
        assert_eq!(sent(&tag), again, "{origin}");
    }
}
