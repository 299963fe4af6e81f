//! Proxy requests: sent with the credential to the provider it belongs to, and to no other.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use harness::{Answer, Client, FakeApp, Guest, Host, client::Body, guest, unique};
use reqwest::Method;
use serde_json::{Value, json};

use crate::given;

const PROXY_PATH: &str = "/tools/execute/proxy";
const ACCOUNT_KEY: &str = harness::marked!("k-");

/// Returns the bytes that the provider sends for a length.
fn counting(length: usize) -> Vec<u8> {
    (0..=255).cycle().take(length).collect()
}

/// A project with an account.
struct Connected {
    project: Client,
    account: String,
}

impl Connected {
    /// Creates a project with an account of the toolkit that requires a key.
    async fn new() -> Self {
        let project = Host::shared().await.new_project().await;
        Self::to(project, given::keyed().await).await
    }

    async fn to(project: Client, toolkit: &str) -> Self {
        let values = json!({ "api_key": ACCOUNT_KEY });
        let account = project.connect(toolkit, "API_KEY", "default", values).await;
        Self { project, account }
    }

    async fn get(&self, endpoint: &str) -> Answer {
        self.send(endpoint, json!({})).await
    }

    /// Sends a proxy request with further fields.
    async fn send(&self, endpoint: &str, more: Value) -> Answer {
        let account = &self.account;
        let body =
            json!({ "connected_account_id": account, "endpoint": endpoint, "method": "GET" });
        let body = given::merged(body, &more);
        self.project.post(PROXY_PATH, &body).await
    }
}

#[tokio::test]
async fn proxy_request_within_domain_carries_the_credential() {
    let older = Connected::new().await;
    let newer = Connected {
        project: older.project.clone().with_newer_prefix(),
        account: older.account.clone(),
    };
    for host in ["", "https://api.example.com", "https://other.example.com"] {
        for account in [&older, &newer] {
            let tag = unique(8);
            let parameters = json!([
                { "name": "q", "value": "a b", "type": "query" },
                { "name": "X-Own", "value": "mine", "type": "header" },
            ]);
            let more = json!({ "parameters": parameters });
            let endpoint = format!("{host}/echo/{tag}?p=1");
            let answer = account.send(&endpoint, more).await.expect(200);
            assert_eq!(answer["status"], 200, "{answer:#?}");
            assert_eq!(answer["data"]["query"], "p=1&q=a+b");
            assert_eq!(answer["data"]["method"], "GET");
            let seen = &Host::application().seen(&tag)[0];
            assert_eq!(
                seen.header("authorization"),
                &*format!("Bearer {ACCOUNT_KEY}")
            );
            assert_eq!(seen.header("x-own"), "mine");
        }
    }
}

#[tokio::test]
async fn other_origin_is_refused_without_a_request() {
    let account = Connected::new().await;
    let tag = unique(8);
    for endpoint in [
        "https://files.example.net/echo/TAG",
        "https://api.example.com.evil.example.net/echo/TAG",
        "http://api.example.com/echo/TAG",
        "https://api.example.com:8443/echo/TAG",
        "https://user:pass@api.example.com/echo/TAG",
        "https://api.example.com@files.example.net/echo/TAG",
        "//files.example.net/echo/TAG",
        "\\\\files.example.net\\echo\\TAG",
        "@files.example.net/echo/TAG",
        "file:///etc/TAG",
    ] {
        let refused = account.get(&endpoint.replace("TAG", &tag)).await;
        let slug = &refused.expect(400)["error"]["slug"];
        assert_eq!(slug, "OriginMismatch", "{endpoint}");
    }
    assert_eq!(given::seen(&tag), 0);
}

#[tokio::test]
async fn redirect_outside_the_domain_is_refused() {
    let account = Connected::new().await;
    let tag = unique(8);
    let endpoint = format!("/redirect/from?to=/echo/{tag}");
    let answer = account.get(&endpoint).await.expect(200);
    assert_eq!(answer["status"], 200);
    assert_eq!(answer["data"]["path"], format!("/echo/{tag}"));
    for target in [
        "https://files.example.net/echo/TAG",
        "https://127.0.0.1/TAG",
        "http://api.example.com/echo/TAG",
    ] {
        let tag = unique(8);
        let endpoint = format!("/redirect/from?to={}", target.replace("TAG", &tag));
        account.get(&endpoint).await.expect(403);
        let seen = Host::application().seen(&tag);
        assert!(
            seen.iter().all(|seen| seen.path.starts_with("/redirect")),
            "{target}: {seen:?}"
        );
    }
}

#[tokio::test]
async fn caller_parameters_cannot_override_the_credential() {
    let account = Connected::new().await;
    let tag = unique(8);
    let parameters = json!([
        { "name": "Authorization", "value": "Bearer forged", "type": "header" },
        { "name": "host", "value": "evil.example.net", "type": "header" },
        { "name": "Cookie", "value": "a=b", "type": "header" },
    ]);
    let more = json!({ "parameters": parameters });
    let answer = account.send(&format!("/echo/{tag}"), more).await;
    let seen = &Host::application().seen(&tag)[0];
    assert_eq!(
        seen.header("authorization"),
        format!("Bearer {ACCOUNT_KEY}")
    );
    assert_eq!(seen.header("cookie"), "");
    assert!(!format!("{seen:?}").contains("evil"), "{seen:?}");
    let log = account.project.log(&answer["log_id"]).await;
    let lines = log["data"]["log"].to_string();
    assert!(lines.contains("was removed"), "{lines}");

    let slug = given::slug();
    let placement = json!({ "in": "query", "name": "key", "value": "{api_key}" });
    let in_query = guest::manifest_with_key(&slug, placement);
    let host = Host::shared().await;
    host.publish(Guest::fetch().component(), &in_query).await;
    let account = Connected::to(account.project, &slug).await;
    let tag = unique(8);
    let parameters = json!([{ "name": "KEY", "value": "forged", "type": "query" }]);
    let endpoint = format!("/echo/{tag}?key=forged&a=b");
    let more = json!({ "parameters": parameters });
    account.send(&endpoint, more).await.expect(200);
    let seen = &Host::application().seen(&tag)[0];
    assert_eq!(seen.query, format!("a=b&key={ACCOUNT_KEY}"));
}

#[tokio::test]
async fn provider_response_is_passed_through() {
    let account = Connected::new().await;
    for status in [201, 204, 400, 401, 404, 500, 503] {
        let answer = account.get(&format!("/status/x/{status}")).await;
        let answer = answer.expect(200);
        assert_eq!(answer["status"], status, "{answer:#?}");
        if status != 204 {
            assert_eq!(answer["data"]["message"], "as asked", "{answer:#?}");
        }
    }
    let head = json!({ "method": "HEAD" });
    let answer = account.send("/echo/x", head).await.expect(200);
    assert_eq!(answer["status"], 200);
    assert_eq!(answer["data"], Value::Null);
}

#[tokio::test]
async fn bodies_go_out_as_they_are_given() {
    let account = Connected::new().await;
    let binary = counting(256);
    let encoded = BASE64.encode(&binary);
    let form = json!([{ "name": "content-type", "value": "application/x-www-form-urlencoded", "type": "header" }]);
    let download = format!("https://files.example.net/bytes/{}/300", unique(8));
    for (more, media_type, body) in [
        (
            json!({ "body": { "a": [1, null] } }),
            "application/json",
            br#"{"a":[1,null]}"#.to_vec(),
        ),
        (
            json!({ "body": "a=b", "parameters": form }),
            "application/x-www-form-urlencoded",
            b"a=b".to_vec(),
        ),
        (
            json!({ "binary_body": { "base64": encoded } }),
            "application/octet-stream",
            binary.clone(),
        ),
        (
            json!({ "binary_body": { "base64": encoded, "content_type": "image/png" } }),
            "image/png",
            binary.clone(),
        ),
        (
            json!({ "binary_body": { "base64": encoded, "contentType": "image/gif" } }),
            "image/gif",
            binary.clone(),
        ),
        (
            json!({ "binary_body": { "url": download } }),
            "application/x-bytes",
            counting(300),
        ),
    ] {
        let tag = unique(8);
        let mut more = more;
        more["method"] = "POST".into();
        let answer = account.send(&format!("/echo/{tag}"), more.clone()).await;
        answer.expect(200);
        let seen = &Host::application().seen(&tag)[0];
        assert_eq!(
            (seen.header("content-type"), &seen.body),
            (media_type, &body),
            "{more}"
        );
    }
    let tag = download.split('/').nth(4).unwrap();
    for fetched in Host::application().seen(tag) {
        assert_eq!(fetched.header("authorization"), "");
    }
}

#[tokio::test]
async fn numbers_keep_their_digits() {
    let account = Connected::new().await;
    for number in [
        "12345678901234567890123",
        "0.1234567890123456789",
        "1.0",
        "18446744073709551615",
        "1E400",
    ] {
        let tag = unique(8);
        let body = format!(r#"{{"n":{number}}}"#);
        let headers = json!({ "content-type": "application/json" });
        let path = FakeApp::said(&tag, &headers, body.as_bytes());
        let text = format!(
            r#"{{"connected_account_id":"{}","endpoint":"{path}","method":"POST","body":{body}}}"#,
            account.account
        );
        let request = Body::Raw("application/json", text.into());
        let sent = account.project.send(Method::POST, PROXY_PATH, request, &[]);
        let answer = sent.await.expect(200);
        let seen = &Host::application().seen(&tag)[0];
        assert_eq!(String::from_utf8_lossy(&seen.body), body);
        let data = format!(r#""data":{body}"#);
        assert!(answer.text.contains(&data), "{}", answer.text);
    }
}

#[tokio::test]
async fn invalid_proxy_body_is_refused() {
    let account = Connected::new().await;
    let tag = unique(8);
    let endpoint = format!("/echo/{tag}");
    let large = BASE64.encode(vec![0; (4 << 20) + 1]);
    for more in [
        json!({ "binary_body": { "base64": large } }),
        json!({ "binary_body": { "base64": "not base64!" } }),
        json!({ "binary_body": {} }),
        json!({ "binary_body": { "base64": "AA==", "url": "https://files.example.net/" } }),
        json!({ "binary_body": { "base64": "AA==" }, "body": {} }),
        json!({ "binary_body": { "url": "https://127.0.0.1/x" } }),
        json!({ "binary_body": { "url": "http://files.example.net/x" } }),
        json!({ "binary_body": { "url": "https://localhost/x" } }),
        json!({ "binary_body": { "url": "https://files.example.net/status/x/404" } }),
        json!({ "binary_body": { "url": format!("https://files.example.net/bytes/x/{}", (4 << 20) + 1) } }),
        json!({ "method": "TRACE" }),
        json!({ "parameters": [{ "name": "a", "value": "b", "type": "cookie" }] }),
        json!({ "parameters": [{ "name": "x y", "value": "b", "type": "header" }] }),
    ] {
        let mut more = more;
        if more["method"].is_null() {
            more["method"] = "POST".into();
        }
        account.send(&endpoint, more).await.expect(400);
    }
    let huge = json!({ "method": "POST", "binary_body": { "base64": "A".repeat(7 << 20) } });
    account.send(&endpoint, huge).await.expect(413);
    assert_eq!(given::seen(&tag), 0);
    let most =
        json!({ "method": "POST", "binary_body": { "base64": BASE64.encode(vec![7; 4 << 20]) } });
    account.send(&endpoint, most).await.expect(200);
    assert_eq!(Host::application().seen(&tag)[0].body.len(), 4 << 20);
}

#[tokio::test]
async fn binary_response_becomes_a_file_link() {
    let account = Connected::new().await;
    let answer = account.get("/bytes/x/1000").await.expect(200);
    let file = &answer["binary_data"];
    assert_eq!(file["content_type"], "application/x-bytes");
    assert_eq!(file["size"], 1000);
    assert_eq!(answer["data"], json!({}), "{answer:#?}");
    assert!(file["expires_at"].as_str().unwrap().ends_with('Z'));
    let got = given::open(&account.project, file["url"].as_str().unwrap()).await;
    assert_eq!(got.status, 200);
    assert_eq!(got.header("content-type"), "application/x-bytes");
    assert_eq!(got.bytes, counting(1000));
    assert!(got.header("content-disposition").starts_with("attachment"));
}

#[tokio::test]
async fn file_keeps_the_name_of_the_provider() {
    let account = Connected::new().await;
    let headers = json!({
        "content-type": "application/pdf",
        "content-disposition": "attachment; filename=\"x.pdf\"; filename*=UTF-8''Angebot%20%E2%82%AC.pdf",
    });
    let path = FakeApp::said(&unique(8), &headers, b"%PDF-1.4 \xff");
    let answer = account.get(&path).await.expect(200);
    let link = answer["binary_data"]["url"].as_str().unwrap();
    let got = given::open(&account.project, link).await;
    assert_eq!(
        got.header("content-disposition"),
        "attachment; filename=\"Angebot _.pdf\"; filename*=UTF-8''Angebot%20%E2%82%AC.pdf"
    );
}

#[tokio::test]
async fn nothing_that_comes_back_holds_the_credential() {
    let account = Connected::new().await;
    let answer = account.get(&format!("/leak/{}", unique(8))).await;
    let answer = answer.expect(200);
    assert!(!answer.text.contains(ACCOUNT_KEY), "{}", answer.text);
    assert!(answer.text.contains("redacted"));
    let log = account.project.log(&answer["log_id"]).await;
    assert_eq!(log["metadata"]["tool_slug"], "PROXY_EXECUTE");
    assert_eq!(log["metadata"]["connected_account_id"], account.account);
    assert_eq!(log["data"]["requests"][0]["status"], 200);
    assert!(!log.text.contains(ACCOUNT_KEY), "{}", log.text);
}

#[tokio::test]
async fn proxy_request_needs_usable_account_or_credential() {
    let Connected { project, account } = Connected::new().await;
    let bare = json!({ "endpoint": "/echo/x", "method": "GET" });
    let refused = project.post(PROXY_PATH, &bare).await.expect(400);
    assert_eq!(refused["error"]["slug"], "MissingAuthContext");
    let send = async |project: &Client, account: &str| {
        let mut body = bare.clone();
        body["connected_account_id"] = account.into();
        project.post(PROXY_PATH, &body).await
    };
    send(&project, "ca_AAAAAAAAAAAA").await.expect(404);
    send(&project, "nonsense").await.expect(400);
    let stranger = Host::shared().await.new_project().await;
    send(&stranger, &account).await.expect(404);
    let status = format!("/connected_accounts/{account}/status");
    let disable = json!({ "enabled": false });
    project.patch(&status, &disable).await.expect(200);
    send(&project, &account).await.expect(422);

    let tag = unique(8);
    let brought = json!({ "authScheme": "API_KEY", "toolkitSlug": given::keyed().await, "val": { "api_key": harness::marked!("brought-") } });
    let body = json!({ "endpoint": format!("/echo/{tag}"), "method": "GET", "custom_connection_data": brought });
    let answer = project.post(PROXY_PATH, &body).await.expect(200);
    assert_eq!(answer["status"], 200, "{answer:#?}");
    let seen = &Host::application().seen(&tag)[0];
    let expected = harness::marked!("Bearer brought-");
    assert_eq!(seen.header("authorization"), expected);
}

#[tokio::test]
async fn tool_restricted_config_must_list_proxy_requests() {
    let project = Host::shared().await.new_project().await;
    let slug = given::keyed().await;
    let config = json!({
        "toolkit": { "slug": slug },
        "auth_config": {
            "type": "use_custom_auth", "authScheme": "API_KEY", "credentials": {},
            "tool_access_config": { "tools_available_for_execution": [guest::tool(slug)] },
        },
    });
    let config = project.post("/auth_configs", &config).await.expect(201);
    let id = config["auth_config"]["id"].as_str().unwrap();
    let made = given::made_account(&project, id, "default", ACCOUNT_KEY).await;
    let account = Connected {
        account: made["id"].as_str().unwrap().to_owned(),
        project,
    };
    account.get("/echo/x").await.expect(403);
    let listed = json!({ "type": "custom", "tool_access_config": {
        "tools_available_for_execution": ["proxy_execute"],
    } });
    let path = format!("/auth_configs/{id}");
    account.project.patch(&path, &listed).await.expect(200);
    account.get("/echo/x").await.expect(200);
}
