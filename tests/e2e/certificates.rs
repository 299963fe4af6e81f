//! Providers that recognize accounts by client certificate: each connection presents the
//! certificate of its account and no other.

use harness::{
    Answer, Client, Guest, Host, MutualTlsProvider, Tunnel, guarded::Certificate, guest,
    host::Setup,
};
use serde_json::{Value, json};

use crate::{given, schemes};

/// Starts a provider that requires client certificates, and a server whose `api.example.com` is
/// that provider.
async fn start() -> (Host, MutualTlsProvider) {
    let application = MutualTlsProvider::start();
    let rewrite = format!("https://api.example.com={}", application.origin);
    let host = Setup::new()
        .with("net.rewrite", rewrite)
        .with_variable("SSL_CERT_FILE", application.authority());
    (host.start().await, application)
}

fn fields() -> Value {
    json!([
        { "name": "certificate", "title": "Certificate" },
        { "name": "private_key", "title": "Key", "secret": true },
    ])
}

fn scheme() -> Value {
    let shown = json!({ "certificate": "certificate", "key": "private_key" });
    json!({ "mode": "API_KEY", "name": "Certificate", "fields": fields(), "client_certificate": shown })
}

fn values(own: &Certificate) -> Value {
    json!({ "certificate": own.certificate, "private_key": own.key })
}

async fn whoami(project: &Client, slug: &str, user: &str) -> Answer {
    let arguments = json!({ "url": "https://api.example.com/me" });
    let body = json!({ "arguments": arguments, "user_id": user, "version": "latest" });
    let path = format!("/tools/execute/{}", guest::tool(slug));
    project.post(&path, &body).await
}

#[tokio::test]
async fn concurrent_calls_present_their_own_certificate() {
    let (host, application) = start().await;
    let project = host.as_project();
    let slug = given::slug();
    given::publish_with_scheme(&host, &slug, scheme()).await;
    let [amy, bob] = ["amy", "bob"].map(|user| application.certificate(user));
    project.connect(&slug, "API_KEY", "amy", values(&amy)).await;
    // A single-line form field replaces line breaks with spaces.
    let flat = |text: &str| text.replace('\n', " ");
    let pasted = json!({ "certificate": flat(&bob.certificate), "private_key": flat(&bob.key) });
    let id = project.connect(&slug, "API_KEY", "bob", pasted).await;
    let calls = (0..8).map(|number| {
        let (user, own) = if number % 2 == 0 {
            ("amy", &amy)
        } else {
            ("bob", &bob)
        };
        let (project, slug) = (&project, &slug);
        async move {
            let shown = whoami(project, slug, user).await.data();
            assert_eq!(shown["certificate"], own.fingerprint, "{user}");
        }
    });
    futures::future::join_all(calls).await;
    let body = json!({ "connected_account_id": id, "endpoint": "/proxied", "method": "GET" });
    let passed = project.post("/tools/execute/proxy", &body).await;
    let passed = passed.expect(200);
    assert_eq!(passed["data"]["certificate"], bob.fingerprint);
    assert_eq!(passed["data"]["path"], "/proxied");
    let shown = project.account(&id).await;
    assert!(!shown.text.contains("PRIVATE KEY"), "{shown:?}");
}

#[tokio::test]
async fn missing_or_unreadable_certificate_is_refused() {
    let (host, application) = start().await;
    let project = host.as_project();
    let slug = given::slug();
    given::publish_with_key(&host, &Guest::fetch(), &slug).await;
    project.connect_with_key(&slug, "default").await;
    let refused = whoami(&project, &slug, "default").await.expect(200);
    assert!(
        ["tls", "connect", "protocol"].contains(&refused.failure()),
        "{refused:?}"
    );
    let slug = given::slug();
    given::publish_with_scheme(&host, &slug, scheme()).await;
    let [own, other] = ["own", "other"].map(|name| application.certificate(name));
    let config = project.auth_config(&slug, "API_KEY", json!({})).await;
    let half = &own.key[..own.key.len() / 2];
    let state = |key: &str| json!({ "authScheme": "API_KEY", "val": { "certificate": own.certificate, "private_key": key } });
    let connection = |key: &str| json!({ "auth_config": { "id": config }, "connection": { "state": state(key) } });
    let made = connection(&own.key);
    let made = project.post("/connected_accounts", &made).await.expect(201);
    let path = format!("/connected_accounts/{}", made["id"].as_str().unwrap());
    for (key, why) in [
        (half, "PEM"),
        (&other.certificate, "PEM"),
        (&other.key, "do not match"),
    ] {
        let made = project.post("/connected_accounts", &connection(key)).await;
        let patch = json!({ "connection": { "state": state(key) } });
        let patched = project.patch(&path, &patch).await;
        for refused in [made, patched] {
            let refused = refused.expect(400);
            let said = refused.problems().concat();
            assert!(
                said.starts_with("certificate: ") && said.contains(why),
                "{refused:?}"
            );
            assert!(!refused.text.contains("BEGIN"), "{refused:?}");
        }
    }
    let accounts = project.get("/connected_accounts").await.expect(200);
    assert_eq!(accounts["total_items"], 2);
    // It has its own key still.
    let shown = whoami(&project, &slug, "default").await.data();
    assert_eq!(shown["certificate"], own.fingerprint);
}

#[tokio::test]
async fn revoked_or_deleted_certificate_is_erased() {
    let (host, application) = start().await;
    let project = host.as_project();
    let slug = given::slug();
    let own = application.certificate("own");
    given::publish_with_scheme(&host, &slug, scheme()).await;
    let id = project
        .connect(&slug, "API_KEY", "default", values(&own))
        .await;
    let call = async || whoami(&project, &slug, "default").await;
    assert_eq!(call().await.data()["certificate"], own.fingerprint);
    project
        .post(&format!("/connected_accounts/{id}/revoke"), &json!({}))
        .await
        .expect(200);
    let read = project.account(&id).await;
    assert_eq!(read["state"]["val"], json!({ "status": "REVOKED" }));
    call().await.expect(404);
    let id = project
        .connect(&slug, "API_KEY", "default", values(&own))
        .await;
    assert_eq!(call().await.data()["certificate"], own.fingerprint);
    let path = format!("/connected_accounts/{id}?revoke_on_delete=true");
    project.delete(&path).await.expect(200);
    let account = format!("/connected_accounts/{id}");
    project.get(&account).await.expect(404);
    call().await.expect(404);
    let cells = [
        "immediately",
        "presented by the connection",
        "not needed",
        "erased",
        "erased",
    ];
    assert_eq!(schemes::table()[schemes::CERTIFICATE_ROW], cells);
}

#[tokio::test]
async fn certificate_is_presented_through_a_proxy() {
    let application = MutualTlsProvider::start();
    let tunnel = Tunnel::to(&application.origin);
    let setup = Setup::new()
        .with_variable("SSL_CERT_FILE", application.authority())
        .with("net.allow", "127.0.0.0/8");
    let host = setup.start().await;
    let (project, slug) = (host.as_project(), given::slug());
    given::publish_with_scheme(&host, &slug, scheme()).await;
    let proxy = json!({ "proxy_config": { "proxy_url": tunnel.address } });
    let config = given::key_config(&project, &slug, &proxy).await;
    let own = ["amy", "bob"].map(|user| (user, application.certificate(user)));
    for (user, own) in &own {
        let state = json!({ "authScheme": "API_KEY", "val": values(own) });
        let body = json!({ "auth_config": { "id": config }, "connection": { "user_id": user, "state": state } });
        project.post("/connected_accounts", &body).await.expect(201);
    }
    for (user, own) in own.iter().chain(&own) {
        let shown = whoami(&project, &slug, user).await.data();
        assert_eq!(shown["certificate"], own.fingerprint, "{user}");
    }
    let asked = tunnel.asked();
    assert_eq!(
        asked.len(),
        2,
        "each account has a tunnel of its own: {asked:?}"
    );
    assert!(
        asked
            .iter()
            .all(|head| head.starts_with("CONNECT api.example.com:443 ")),
        "{asked:?}"
    );
}

#[tokio::test]
async fn the_token_endpoint_sees_the_certificate_too() {
    let (host, application) = start().await;
    let project = host.as_project();
    let slug = given::slug();
    let mut scheme = scheme();
    scheme["mode"] = "S2S_OAUTH2".into();
    scheme["request"] =
        json!([{ "in": "header", "name": "authorization", "value": "Bearer {access_token}" }]);
    scheme["fields"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "name": "seen", "title": "Seen", "hidden": true }));
    scheme["oauth2"] = json!({
        "token_url": "https://api.example.com/token", "response": { "keep": { "seen": { "path": "certificate" } } },
    });
    given::publish_with_scheme(&host, &slug, scheme).await;
    let own = application.certificate("robot");
    let credentials = json!({ "client_id": "robot" });
    let config = project.auth_config(&slug, "S2S_OAUTH2", credentials).await;
    let state = json!({ "authScheme": "S2S_OAUTH2", "val": values(&own) });
    let body = json!({ "auth_config": { "id": config }, "connection": { "state": state } });
    let made = project.post("/connected_accounts", &body).await.expect(201);
    assert_eq!(made["status"], "ACTIVE");
    assert_eq!(made["connectionData"]["val"]["seen"], own.fingerprint);
    let answer = whoami(&project, &slug, "default").await.data();
    assert_eq!(answer["certificate"], own.fingerprint);
}
