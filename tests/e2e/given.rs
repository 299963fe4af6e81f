//! What tests find already done.

use harness::{Guest, Host, guest, unique};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// A toolkit slug that nobody else uses.
pub(crate) fn slug() -> String {
    format!("t{}", unique(6))
}

/// A published toolkit whose tool answers its arguments; its tool.
pub(crate) async fn echo(host: &Host) -> String {
    let slug = slug();
    host.publish(Guest::echo().component(), &guest::manifest(&slug)).await;
    guest::tool(&slug)
}

/// The echo tool that tests of the shared server have in common.
pub(crate) async fn shared_echo() -> &'static str {
    static TOOL: OnceCell<String> = OnceCell::const_new();
    TOOL.get_or_init(|| async { echo(Host::shared().await).await }).await
}

/// A toolkit of the shared server that wants an API key; its slug. Its tool fetches what it is told to.
pub(crate) async fn keyed() -> &'static str {
    static SLUG: OnceCell<String> = OnceCell::const_new();
    SLUG.get_or_init(|| async {
        let manifest = guest::manifest_with_key(&slug(), bearer());
        Host::shared().await.publish(Guest::fetch().component(), &manifest).await;
        manifest["slug"].as_str().unwrap().to_owned()
    })
    .await
}

/// A key goes where most applications want it.
pub(crate) fn bearer() -> Value {
    json!({ "in": "header", "name": "authorization", "value": "Bearer {api_key}" })
}

/// An auth config for [`keyed`]; its id.
pub(crate) async fn auth_config(client: &harness::Client) -> String {
    let body = json!({
        "toolkit": { "slug": keyed().await },
        "auth_config": { "type": "use_custom_auth", "authScheme": "API_KEY", "name": "mine", "credentials": {} },
    });
    let made = client.post("/auth_configs", &body).await.expect(201);
    made["auth_config"]["id"].as_str().unwrap().to_owned()
}

/// The request that connects an account with a key to an auth config.
pub(crate) fn account(config: &str, user: &str, key: &str) -> Value {
    json!({
        "auth_config": { "id": config },
        "connection": { "user_id": user, "state": { "authScheme": "API_KEY", "val": { "api_key": key } } },
    })
}
