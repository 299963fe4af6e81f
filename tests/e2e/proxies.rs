//! Proxies of auth configs: all requests for an account leave through them, and the network policy
//! applies to them too.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use harness::{Answer, Client, Guest, Host, Tunnel, guest, host::Setup, unique};
use serde_json::{Value, json};

use crate::given;

const PROXY_CREDENTIALS: &str = harness::marked!("tunnel-user:");
const ACCOUNT_KEY: &str = harness::marked!("k-");

fn basic() -> String {
    format!("Basic {}", BASE64.encode(PROXY_CREDENTIALS))
}

/// Returns settings of a server that reaches the provider only through the proxy.
fn behind(tunnel: &Tunnel) -> Setup {
    Setup::new()
        .with_variable("SSL_CERT_FILE", tunnel.authority())
        .with("net.allow", "127.0.0.0/8")
}

async fn set(project: &Client, config: &str, proxy: Value) -> Answer {
    let body = json!({ "type": "custom", "proxy_config": proxy });
    project
        .patch(&format!("/auth_configs/{config}"), &body)
        .await
}

/// Asserts that a proxy was asked for the provider alone.
fn assert_asked_for_provider(tunnel: &Tunnel) {
    let asked = tunnel.asked();
    assert!(!asked.is_empty());
    for head in asked {
        assert!(head.starts_with("CONNECT api.example.com:443 "), "{head}");
    }
}

/// Connects an account of a toolkit that requires a key, with this proxy in its auth config.
/// Returns toolkit, config and account.
async fn connected(host: &Host, proxy: Value) -> (String, String, String) {
    let (project, slug) = (host.as_project(), given::slug());
    given::publish_with_key(host, &Guest::fetch(), &slug).await;
    let config = given::key_config(&project, &slug, &json!({ "proxy_config": proxy })).await;
    let account = given::made_account(&project, &config, "default", ACCOUNT_KEY).await;
    let account = account["id"].as_str().unwrap().to_owned();
    (slug, config, account)
}

async fn fetch(host: &Host, slug: &str, url: &str) -> Answer {
    host.as_project()
        .execute(&guest::tool(slug), json!({ "url": url }))
        .await
}

#[tokio::test]
async fn requests_leave_through_the_account_proxy() {
    let tunnel = Tunnel::start(Host::application(), &["api.example.com"], Some(&basic()));
    let host = behind(&tunnel).start().await;
    let proxy = json!({ "proxy_url": tunnel.address, "proxy_auth_key": PROXY_CREDENTIALS });
    let (slug, config, account) = connected(&host, proxy).await;
    let tag = unique(8);
    let (project, path) = (host.as_project(), format!("/echo/{tag}"));
    let url = format!("https://api.example.com{path}");
    let data = fetch(&host, &slug, &url).await.data();
    assert_eq!(data["path"], path);
    let body = json!({ "connected_account_id": account, "endpoint": path, "method": "GET" });
    let passed = project.post("/tools/execute/proxy", &body).await;
    assert_eq!(passed.expect(200)["status"], 200);
    let seen = Host::application().seen(&tag);
    assert_eq!(seen.len(), 2);
    for seen in seen {
        let bearer = harness::marked!("Bearer k-");
        assert_eq!(seen.header("authorization"), bearer);
        assert_eq!(seen.header("proxy-authorization"), "");
    }
    assert_asked_for_provider(&tunnel);
    let asked = tunnel.asked();
    for head in &asked {
        assert!(
            !head.contains(ACCOUNT_KEY) && !head.contains(&tag),
            "what is sent is in the tunnel: {head}"
        );
    }

    set(&project, &config, Value::Null).await.expect(200);
    let straight = fetch(&host, &slug, &url).await;
    assert!(
        ["dns", "connect", "timeout", "denied"].contains(&straight.failure()),
        "{}",
        straight.text
    );
    assert_eq!(
        tunnel.asked().len(),
        asked.len(),
        "a proxy that was taken away is asked no more"
    );
}

#[tokio::test]
async fn tokens_are_got_and_renewed_through_the_proxy() {
    let tunnel = Tunnel::start(Host::application(), &["api.example.com"], None);
    let host = behind(&tunnel).start().await;
    let project = host.as_project();
    let oauth = given::Oauth::new(&host, &project).await;
    let proxy = json!({ "proxy_url": tunnel.address });
    set(&project, &oauth.config, proxy).await.expect(200);
    oauth.connect(&project).await;
    oauth.execute(&project).await.data();
    oauth.issuer.expire();
    oauth.execute(&project).await.data();
    for grant in ["authorization_code", "refresh_token"] {
        assert_eq!(oauth.issuer.granted(grant), 1, "{grant}");
    }
    assert_asked_for_provider(&tunnel);
}

#[tokio::test]
async fn client_registration_uses_the_proxy() {
    let tunnel = Tunnel::start(Host::application(), &["api.example.com"], None);
    let host = behind(&tunnel).start().await;
    let project = host.as_project();
    let oauth = given::Oauth::registered(&host, &project, json!({})).await;
    let connection = json!({ "auth_config": { "id": oauth.config }, "connection": {} });
    let unreached = project.post("/connected_accounts", &connection).await;
    assert!(
        unreached.status >= 400,
        "there is no other way: {unreached:?}"
    );
    assert_eq!(oauth.issuer.granted("registration"), 0);
    assert_eq!(tunnel.asked().len(), 0);
    let proxy = json!({ "proxy_url": tunnel.address });
    set(&project, &oauth.config, proxy).await.expect(200);
    oauth.connect(&project).await;
    oauth.execute(&project).await.data();
    assert_eq!(oauth.issuer.granted("registration"), 1);
    assert_asked_for_provider(&tunnel);
}

#[tokio::test]
async fn private_proxy_needs_operator_permission() {
    let tunnel = Tunnel::start(Host::application(), &["api.example.com"], None);
    let host = Setup::new()
        .with_variable("SSL_CERT_FILE", tunnel.authority())
        .start()
        .await;
    let port = tunnel.address.rsplit(':').next().unwrap();
    for name in ["127.0.0.1", "localhost", "[::1]", "2130706433"] {
        let proxy = json!({ "proxy_url": format!("http://{name}:{port}") });
        let (slug, _, account) = connected(&host, proxy).await;
        let answer = fetch(&host, &slug, "https://api.example.com/echo/x").await;
        assert_eq!(answer.failure(), "denied", "{name}: {}", answer.text);
        let body =
            json!({ "connected_account_id": account, "endpoint": "/echo/x", "method": "GET" });
        let refused = host.as_project().post("/tools/execute/proxy", &body).await;
        refused.expect(403);
    }
    assert_eq!(tunnel.asked(), Vec::<String>::new());

    let host = behind(&tunnel).start().await;
    let (slug, ..) = connected(&host, json!({ "proxy_url": tunnel.address })).await;
    for url in [
        "https://other.example.com/echo/x",
        "https://127.0.0.1/echo/x",
        "http://api.example.com/echo/x",
    ] {
        let answer = fetch(&host, &slug, url).await;
        assert!(
            ["denied", "invalid_request"].contains(&answer.failure()),
            "{url}: {}",
            answer.text
        );
    }
    assert_eq!(
        tunnel.asked(),
        Vec::<String>::new(),
        "who may be asked for is decided here"
    );
}

#[tokio::test]
async fn refused_proxy_key_stays_secret() {
    let tunnel = Tunnel::start(
        Host::application(),
        &["api.example.com"],
        Some("Bearer another"),
    );
    let host = behind(&tunnel).with("log", "trace").start().await;
    let proxy = json!({ "proxy_url": tunnel.address, "proxy_auth_key": PROXY_CREDENTIALS });
    let (slug, config, _) = connected(&host, proxy).await;
    let answer = fetch(&host, &slug, "https://api.example.com/echo/x").await;
    assert_eq!(answer.failure(), "connect", "{}", answer.text);
    assert!(tunnel.asked()[0].contains(&basic()), "it was shown");
    let project = host.as_project();
    let path = format!("/auth_configs/{config}");
    let view = project.get(&path).await.expect(200);
    let shown = json!({ "proxy_url": tunnel.address, "proxy_auth_key": "tunn..." });
    assert_eq!(view["proxy_config"], shown);
    let log = project.log(&answer["log_id"]).await.text;
    for text in [&answer.text, &view.text, &log, &host.output()] {
        assert!(
            !text.contains(harness::SECRET_MARK)
                && !text.contains(&BASE64.encode(PROXY_CREDENTIALS)),
            "{text}"
        );
    }

    for bad in [
        "proxy.example",
        "socks5://proxy.example",
        "http://user:pass@proxy.example",
        "http://proxy.example/x",
    ] {
        let refused = set(&project, &config, json!({ "proxy_url": bad })).await;
        let refused = refused.expect(400);
        assert!(
            refused.problems()[0].starts_with("proxy_config.proxy_url:"),
            "{bad}: {refused:#?}"
        );
    }
    let unchanged = project.get(&path).await.expect(200);
    assert_eq!(unchanged["proxy_config"], shown);
}
