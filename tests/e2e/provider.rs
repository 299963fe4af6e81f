//! The whole life cycle of accounts at a certified third-party identity provider.

use harness::{Client, Guest, Host, IdentityProvider, guest, host::Setup, provider::ISSUER_URL};
use serde_json::json;

use crate::given::{self, open};

/// Starts a server that reaches the provider. Returns it with a project that shows tokens unmasked,
/// a toolkit of the provider and an auth config.
async fn connecting(provider: &IdentityProvider) -> (Host, Client, String, String) {
    let host = Setup::new().with_provider(provider).start().await;
    let settings = json!({ "mask_secret_keys_in_connected_account": false });
    let (_, project) = given::project(&host, settings).await;
    let bearer = "Bearer {access_token}";
    let mut manifest = guest::manifest(&given::slug());
    manifest["egress"] = json!([{ "host": "login.example.com" }]);
    manifest["auth"] = json!([{
        "mode": "DCR_OAUTH", "name": "OAuth",
        "request": [{ "in": "header", "name": "authorization", "value": bearer }],
        "oauth2": {
            "issuer": ISSUER_URL, "scopes": ["openid", "offline_access"], "authorize_params": { "prompt": "consent" },
            "identity": {
                "request": { "url": format!("{ISSUER_URL}/me"), "method": "GET", "headers": { "authorization": bearer } },
                "path": "sub",
            },
        },
    }]);
    host.publish(Guest::fetch().component(), &manifest).await;
    let slug = manifest["slug"].as_str().unwrap().to_owned();
    let config = project.auth_config(&slug, "DCR_OAUTH", json!({})).await;
    (host, project, slug, config)
}

async fn begin(project: &Client, config: &str) -> (String, String) {
    let connection = json!({ "user_id": "default", "callback_url": "https://app.example/done" });
    let body = json!({ "auth_config": { "id": config }, "connection": connection });
    let made = project.post("/connected_accounts", &body).await.expect(201);
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("id"), text("redirect_url"))
}

/// Connects an account of a user and returns its id.
async fn connect(
    provider: &IdentityProvider,
    project: &Client,
    config: &str,
    person: &str,
) -> String {
    let (id, url) = begin(project, config).await;
    let landed = open(project, &provider.sign_in_and_consent(&url, person).await).await;
    assert!(
        landed.header("location").contains("?status=success"),
        "{landed:?}"
    );
    id
}

/// Returns one of the values of an account.
async fn value(project: &Client, id: &str, name: &str) -> String {
    project.account(id).await["state"]["val"][name]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test]
async fn account_completes_life_cycle_at_real_provider() {
    let provider = IdentityProvider::start().await;
    let (_host, project, slug, config) = connecting(&provider).await;
    let id = connect(&provider, &project, &config, "amy").await;
    let connected = project.account(&id).await;
    assert_eq!(connected["status"], "ACTIVE");
    assert_eq!(connected["state"]["val"]["displayName"], "amy");
    let call = async || {
        let arguments = json!({ "url": format!("{ISSUER_URL}/me") });
        let called = project.execute(&guest::tool(&slug), arguments).await;
        called.data()["sub"].clone()
    };
    assert_eq!(call().await, "amy");

    let client = value(&project, &id, "client_id").await;
    let access = value(&project, &id, "access_token").await;
    let refresh = value(&project, &id, "refresh_token").await;
    provider.end(&access).await;
    assert_eq!(call().await, "amy", "the call goes on with a new token");
    let second = value(&project, &id, "access_token").await;
    let rotated = value(&project, &id, "refresh_token").await;
    assert!(second != access && rotated != refresh && !rotated.is_empty());
    assert_eq!(provider.owner(&second).await.as_deref(), Some("amy"));
    let path = format!("/connected_accounts/{id}/revoke");
    let revoked = project.post(&path, &json!({})).await.expect(200);
    assert_eq!(revoked["connected_account"]["status"], "REVOKED");
    assert_eq!(provider.owner(&second).await, None, "the provider was told");
    let values = &project.account(&id).await["state"]["val"];
    assert_eq!(*values, json!({ "status": "REVOKED" }));

    let other = connect(&provider, &project, &config, "amy").await;
    let same = value(&project, &other, "client_id").await;
    assert_eq!(same, client, "a client is registered once");
    let access = value(&project, &other, "access_token").await;
    assert_eq!(call().await, "amy");
    let path = format!("/connected_accounts/{other}?revoke_on_delete=true");
    project.delete(&path).await.expect(200);
    assert_eq!(provider.owner(&access).await, None, "the provider was told");
    assert_eq!(given::status(&project, &other).await, "");
}

#[tokio::test]
async fn altered_provider_callback_is_rejected() {
    let provider = IdentityProvider::start().await;
    let (_host, project, _, config) = connecting(&provider).await;
    let issuer = "&iss=https%3A%2F%2Flogin.example.com";
    let other = format!("{issuer}.evil.example");
    for (part, altered, error) in [
        (issuer, &*other, "issuer_mismatch"),
        (issuer, "", "issuer_mismatch"),
        ("code=", "code=x", "token_exchange_failed"),
    ] {
        let (id, url) = begin(&project, &config).await;
        let back = provider.sign_in_and_consent(&url, "amy").await;
        assert!(back.contains(part), "{back}");
        let landed = open(&project, &back.replace(part, altered)).await;
        let to = landed.header("location");
        assert!(
            to.contains("status=failed") && to.ends_with(&format!("&error={error}")),
            "{altered}: {landed:?}"
        );
        assert_eq!(project.account(&id).await["status"], "FAILED");
    }
}
