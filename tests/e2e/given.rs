//! Shared fixtures of the tests.

use harness::{
    Answer, Client, Guest, Host, Issuer, Postgres,
    client::RawResponse,
    fake_app, guest,
    host::Setup,
    inbox::INBOX_ORIGIN,
    issuer::{CLIENT_ID, CLIENT_SECRET},
    unique, wait_until,
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// Returns a unique toolkit slug.
pub(crate) fn slug() -> String {
    format!("t{}", unique(6))
}

/// Returns a unique slug and the manifest of its toolkit.
pub(crate) fn manifest() -> (String, Value) {
    let slug = slug();
    let manifest = guest::manifest(&slug);
    (slug, manifest)
}

/// Returns the same for a toolkit whose accounts have a key.
pub(crate) fn manifest_with_key() -> (String, Value) {
    let slug = slug();
    let manifest = guest::manifest_with_key(&slug, bearer());
    (slug, manifest)
}

/// Returns a member of a response that must be a string.
#[track_caller]
pub(crate) fn text(value: &Value) -> &str {
    let text = value.as_str();
    text.unwrap_or_else(|| panic!("{value} is not a string"))
}

/// Returns a copy of a member of a response that must be a string.
#[track_caller]
pub(crate) fn string(value: &Value) -> String {
    text(value).to_owned()
}

/// Returns the number of requests that the fake provider received with a tag.
pub(crate) fn seen(tag: &str) -> usize {
    Host::application().seen(tag).len()
}

/// Asserts that a member of a response contains text. Members other than strings are searched as
/// JSON.
#[track_caller]
pub(crate) fn assert_contains(value: &Value, part: &str) {
    let json = value.to_string();
    let whole = value.as_str().unwrap_or(&json);
    assert!(whole.contains(part), "no `{part}` in: {whole}");
}

/// Returns an object with more members.
pub(crate) fn merged(mut object: Value, more: &Value) -> Value {
    let members = object.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    object
}

/// Creates a project with these settings. Returns its id, and a client with its key.
pub(crate) async fn project(host: &Host, settings: Value) -> (String, Client) {
    let body = json!({ "name": unique(8), "should_create_api_key": true, "config": settings });
    let made = host.as_org().post("/org/owner/project/new", &body).await;
    let made = made.expect(200);
    let project = host.with_key(made["api_key"].as_str().unwrap());
    (made["id"].as_str().unwrap().to_owned(), project)
}

/// Publishes a toolkit whose tool returns its arguments, and returns the tool.
pub(crate) async fn echo(host: &Host) -> String {
    let (slug, manifest) = manifest();
    host.publish(Guest::echo().component(), &manifest).await;
    guest::tool(&slug)
}

/// Returns the echo tool that tests of the shared server have in common.
pub(crate) async fn shared_echo() -> &'static str {
    static ECHO_TOOL: OnceCell<String> = OnceCell::const_new();
    ECHO_TOOL
        .get_or_init(|| async { echo(Host::shared().await).await })
        .await
}

/// Returns the slug of a toolkit on the shared server that requires an API key. Its tool fetches
/// the given address.
pub(crate) async fn keyed() -> &'static str {
    static KEYED_SLUG: OnceCell<String> = OnceCell::const_new();
    KEYED_SLUG
        .get_or_init(|| async {
            let (slug, mut manifest) = manifest_with_key();
            manifest["triggers"] = json!([arrived(&slug)]);
            Host::shared()
                .await
                .publish(Guest::fetch().component(), &manifest)
                .await;
            slug
        })
        .await
}

/// Publishes a toolkit whose tool fetches an address with a key, and connects an account of the default
/// user. Returns the slug and the account.
pub(crate) async fn fetcher(host: &Host) -> (String, String) {
    let slug = slug();
    publish_with_key(host, &Guest::fetch(), &slug).await;
    let account = host.as_project().connect_with_key(&slug, "default").await;
    (slug, account)
}

/// Returns the trigger type of [`keyed`], whose events arrive by webhook.
pub(crate) async fn keyed_trigger() -> String {
    format!("{}_ARRIVED", keyed().await.to_uppercase())
}

/// Returns the placement of a key as a bearer token.
pub(crate) fn bearer() -> Value {
    json!({ "in": "header", "name": "authorization", "value": "Bearer {api_key}" })
}

/// Creates an auth config for [`keyed`] and returns its id.
pub(crate) async fn auth_config(client: &harness::Client) -> String {
    key_config(client, keyed().await, &json!({ "name": "mine" })).await
}

/// Creates an auth config with more members for accounts with a key, and returns its id.
pub(crate) async fn key_config(project: &Client, toolkit: &str, more: &Value) -> String {
    let config = json!({ "type": "use_custom_auth", "authScheme": "API_KEY", "credentials": {} });
    let config = merged(config, more);
    let body = json!({ "toolkit": { "slug": toolkit }, "auth_config": config });
    let made = project.post("/auth_configs", &body).await.expect(201);
    string(&made["auth_config"]["id"])
}

/// Returns the request that connects an account with a key to an auth config.
pub(crate) fn account(config: &str, user: &str, key: &str) -> Value {
    json!({
        "auth_config": { "id": config },
        "connection": { "user_id": user, "state": { "authScheme": "API_KEY", "val": { "api_key": key } } },
    })
}

/// Connects an account by its key.
pub(crate) async fn made_account(project: &Client, config: &str, user: &str, key: &str) -> Answer {
    let body = account(config, user, key);
    project.post("/connected_accounts", &body).await.expect(201)
}

/// Publishes a toolkit with this auth scheme, whose tool fetches a URL.
pub(crate) async fn publish_with_scheme(host: &Host, slug: &str, scheme: Value) {
    let manifest = guest::manifest_with_scheme(slug, scheme);
    host.publish(Guest::fetch().component(), &manifest).await;
}

/// Publishes a guest as a toolkit whose accounts have a key.
pub(crate) async fn publish_with_key(host: &Host, guest: &Guest<'_>, slug: &str) {
    let manifest = guest::manifest_with_key(slug, bearer());
    host.publish(guest.component(), &manifest).await;
}

/// Returns a polling trigger that takes any configuration and reports any data.
pub(crate) fn trigger(toolkit: &str, name: &str) -> Value {
    json!({
        "slug": format!("{}_{name}", toolkit.to_uppercase()), "name": "Event", "description": "Fires.", "kind": "poll",
        "config": { "type": "object" }, "payload": { "type": "object" },
    })
}

/// Returns a trigger of the name `ARRIVED` whose events arrive by webhook.
pub(crate) fn arrived(toolkit: &str) -> Value {
    let mut webhook = trigger(toolkit, "ARRIVED");
    webhook["kind"] = json!("webhook");
    webhook
}

/// Returns a trigger whose events arrive by webhook, with a `secret`, a `token` and a `word` in its
/// configuration.
pub(crate) fn webhook_trigger(toolkit: &str, name: &str) -> Value {
    let mut webhook = trigger(toolkit, name);
    webhook["kind"] = json!("webhook");
    webhook["config"] = json!({
        "type": "object",
        "properties": {
            "secret": { "type": "string", "writeOnly": true, "description": "At the app." },
            "token": { "type": "string", "writeOnly": true, "title": "Token" },
            "word": { "type": "string" },
        },
        "required": ["secret"],
    });
    webhook
}

/// Manifest whose accounts have a note in addition to their key. A note may be large; secrets may
/// not.
pub(crate) fn manifest_with_note(slug: &str) -> Value {
    let mut manifest = guest::manifest_with_key(slug, bearer());
    let note = json!({ "name": "note", "title": "Note", "secret": false });
    manifest["auth"][0]["fields"]
        .as_array_mut()
        .unwrap()
        .push(note);
    manifest
}

/// Account for [`manifest_with_note`] with a note of the given size in bytes.
pub(crate) fn account_with_note(config: &str, user: &str, key: &str, bytes: usize) -> Value {
    let mut account = account(config, user, key);
    account["connection"]["state"]["val"]["note"] = "x".repeat(bytes).into();
    account
}

/// Returns the slug of the toolkit of a tool.
pub(crate) fn toolkit_of(tool: &str) -> String {
    tool.split('_').next().unwrap().to_lowercase()
}

/// Creates an MCP server of a toolkit that needs no account, and returns its address without a user.
pub(crate) async fn mcp_server_of(project: &Client, toolkit: &str) -> String {
    mcp_server(
        project,
        &json!({ "name": "All tools", "no_auth_apps": [toolkit] }),
    )
    .await
}

/// Creates a session and returns its MCP address.
pub(crate) async fn mcp_session(project: &Client, config: &Value) -> String {
    let made = project
        .post("/tool_router/session", config)
        .await
        .expect(201);
    made["mcp"]["url"].as_str().unwrap().to_owned()
}

/// Creates an MCP server and returns its address without a user.
pub(crate) async fn mcp_server(project: &Client, body: &Value) -> String {
    let made = project.post("/mcp/servers", body).await.expect(201);
    let url = made["mcp_url"].as_str().unwrap();
    url.split_once('?').unwrap().0.to_owned()
}

/// Changes settings of a project.
pub(crate) async fn configure(project: &Client, settings: Value) -> Answer {
    let changed = project.patch("/org/project/config", &settings).await;
    changed.expect(200)
}

/// Creates a webhook subscription at the root of an inbox and returns its path.
pub(crate) async fn subscribe(project: &Client) -> String {
    let body =
        json!({ "webhook_url": INBOX_ORIGIN, "enabled_events": ["service.trigger.message"] });
    let made = project.post("/webhook_subscriptions", &body).await;
    let made = made.expect(201);
    format!("/webhook_subscriptions/{}", made["id"].as_str().unwrap())
}

/// Polls an instance after its first poll, which the server makes by itself.
pub(crate) async fn poll(project: &Client, instance: &str) -> Answer {
    let read = format!("/trigger_instances/active?trigger_ids={instance}");
    wait_until("the first poll was made", async || {
        let read = project.get(&read).await.expect(200);
        read["items"][0]["last_poll_at"].is_string()
    })
    .await;
    let poll = format!("/trigger_instances/manage/{instance}/poll");
    project.post(&poll, &json!({})).await.expect(200)
}

/// Opens an address as a browser does, without following redirects.
pub(crate) async fn open(client: &Client, url: &str) -> RawResponse {
    client.exchange(Method::GET, url, &[], Vec::new()).await
}

/// Opens a callback of a provider and asserts that it connects the account.
pub(crate) async fn assert_lands(client: &Client, back: &str) {
    let landed = open(client, back).await;
    let location = landed.header("location");
    assert!(location.contains("status=success"), "{landed:?}");
}

/// Returns the status of an account; empty if it does not exist.
pub(crate) async fn status(project: &Client, id: &str) -> String {
    let read = project.get(&format!("/connected_accounts/{id}")).await;
    if read.status == 200 {
        read["status"].as_str().unwrap().to_owned()
    } else {
        String::new()
    }
}

/// Returns settings of a separate server that reaches the fake provider of the shared one.
pub(crate) fn with_application() -> Setup {
    Setup::new().with_application(&fake_app::FAKE_APP_HOSTS, Host::application())
}

/// Returns settings of servers with a PostgreSQL database of their own that reach the fake provider.
pub(crate) fn on_its_own_database() -> Setup {
    Setup::embedded()
        .on(Postgres::shared().database(None))
        .with_application(&fake_app::FAKE_APP_HOSTS, Host::application())
}

/// A toolkit whose accounts are connected at an authorization server, and its auth config in a
/// project.
pub(crate) struct Oauth {
    /// Tag of the authorization server at the fake provider.
    pub tag: String,
    pub slug: String,
    pub config: String,
    pub issuer: Issuer,
}

/// Publishes a toolkit whose accounts are connected at a separate authorization server. Returns the
/// slug, the server's tag and the server.
pub(crate) async fn oauth_toolkit(host: &Host) -> (String, String, Issuer) {
    let (slug, tag) = (slug(), unique(8));
    let issuer = Host::application().issuer(&tag);
    publish_with_scheme(host, &slug, issuer.scheme()).await;
    (slug, tag, issuer)
}

/// Returns the OAuth app of the operator for a toolkit.
pub(crate) fn oauth_app() -> Value {
    json!({ "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET })
}

impl Oauth {
    pub(crate) async fn new(host: &Host, project: &Client) -> Self {
        Self::of(host, project, Issuer::credentials(), Issuer::scheme).await
    }

    /// Returns the same in a new project of the shared server.
    pub(crate) async fn in_new_project() -> (Client, Self) {
        let (host, project) = Host::shared_with_project().await;
        let oauth = Self::new(host, &project).await;
        (project, oauth)
    }

    /// Starts a connection attempt of the default user, and opens the callback with which the provider
    /// answers. Returns the account and the response.
    pub(crate) async fn attempt(&self, project: &Client) -> (String, RawResponse) {
        let made = self.begin(project, "https://app.example/done").await;
        let landed = open(project, &self.visit(&made).await).await;
        (made["id"].as_str().unwrap().to_owned(), landed)
    }

    /// Publishes a toolkit with the scheme that `scheme` makes of its issuer, and creates an auth
    /// config with these credentials.
    pub(crate) async fn of(
        host: &Host,
        project: &Client,
        credentials: Value,
        scheme: impl FnOnce(&Issuer) -> Value,
    ) -> Self {
        let guest = Guest::fetch();
        Self::of_guest(host, project, credentials, &guest, |slug, issuer| {
            guest::manifest_with_scheme(slug, scheme(issuer))
        })
        .await
    }

    /// Publishes a guest with the manifest that `manifest` makes of a slug and its issuer, and creates
    /// an auth config with these credentials.
    pub(crate) async fn of_guest(
        host: &Host,
        project: &Client,
        credentials: Value,
        guest: &Guest<'_>,
        manifest: impl FnOnce(&str, &Issuer) -> Value,
    ) -> Self {
        let (slug, tag) = (slug(), unique(8));
        let issuer = Host::application().issuer(&tag);
        let manifest = manifest(&slug, &issuer);
        host.publish(guest.component(), &manifest).await;
        let mode = text(&manifest["auth"][0]["mode"]);
        let config = project.auth_config(&slug, mode, credentials).await;
        Self {
            tag,
            slug,
            config,
            issuer,
        }
    }

    /// Publishes the same with a toolkit whose provider registers the clients.
    pub(crate) async fn registered(host: &Host, project: &Client, credentials: Value) -> Self {
        Self::of(host, project, credentials, |issuer| {
            issuer.discovered("DCR_OAUTH")
        })
        .await
    }

    /// Starts a connection attempt of the default user.
    pub(crate) async fn begin(&self, project: &Client, callback_url: &str) -> Answer {
        let connection = json!({ "user_id": "default", "callback_url": callback_url });
        let body = json!({ "auth_config": { "id": self.config }, "connection": connection });
        project.post("/connected_accounts", &body).await.expect(201)
    }

    /// Agrees to a connection attempt at the provider and returns the address of the callback.
    pub(crate) async fn visit(&self, made: &Answer) -> String {
        let url = made["redirect_url"].as_str().unwrap();
        self.issuer.visit(url).await
    }

    /// Connects an account of the default user and returns its id.
    pub(crate) async fn connect(&self, project: &Client) -> String {
        let (id, landed) = self.attempt(project).await;
        assert!(
            landed.header("location").contains("status=success"),
            "{landed:?}"
        );
        id
    }

    /// Returns an address that requires a valid access token.
    pub(crate) fn me(&self) -> String {
        format!("{}/api/me", self.issuer.url())
    }

    /// Executes the toolkit's tool for the default user.
    pub(crate) async fn execute(&self, project: &Client) -> Answer {
        project
            .execute(&guest::tool(&self.slug), json!({ "url": self.me() }))
            .await
    }

    /// Returns the number of refresh requests that the provider received.
    pub(crate) fn refreshes(&self) -> usize {
        let seen = Host::application().seen(&self.tag);
        let bodies = seen.iter().map(|seen| String::from_utf8_lossy(&seen.body));
        bodies
            .filter(|body| body.contains("grant_type=refresh_token"))
            .count()
    }

    /// Returns the tokens that the provider received, oldest first.
    pub(crate) fn tokens_used(&self) -> Vec<String> {
        let seen = Host::application().seen(&self.tag);
        let calls = seen.iter().filter(|seen| seen.path.ends_with("/api/me"));
        calls
            .map(|seen| {
                seen.header("authorization")
                    .trim_start_matches("Bearer ")
                    .to_owned()
            })
            .collect()
    }
}
