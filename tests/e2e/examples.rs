//! The examples of the API description, sent as they stand. The ids in them are replaced by those of
//! objects that are made for each operation.

use std::collections::BTreeSet;

use harness::{Client, Guest, Host, Issuer, client::Body, guest, unique};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::{
    description::{self, API_DESCRIPTION, CLIENT_OPERATIONS, Clients, Operation, Takes},
    given, mounts,
};

/// User of the examples.
const USER_ID: &str = "amy";
const TOOLKIT_SLUG: &str = "github";

/// Kinds of objects that examples name, by their id there.
const EXAMPLE_IDS: [(&str, Kind); 14] = [
    ("proj_Xk7Qd2Lm9TzR", Kind::Project),
    ("ac_Xk7Qd2Lm9TzR", Kind::AuthConfig),
    ("ca_Xk7Qd2Lm9TzR", Kind::Account),
    ("7c9e6679-7425-40de-944b-e07fc1f90ae7", Kind::OlderAccount),
    ("session_Xk7Qd2Lm9TzR", Kind::PendingConnection),
    ("ti_Xk7Qd2Lm9TzR", Kind::TriggerInstance),
    ("log_Xk7Qd2Lm9TzR", Kind::Execution),
    ("log_Tr5Yw8Nb3VcE", Kind::Event),
    ("ws_Xk7Qd2Lm9TzR", Kind::Subscription),
    ("wd_Xk7Qd2Lm9TzR", Kind::Delivery),
    ("we_Xk7Qd2Lm9TzR", Kind::Endpoint),
    ("trs_Xk7Qd2Lm9TzR", Kind::Session),
    ("3f2b8c1e-5d4a-4e6f-9b7c-8a1d2e3f4a5b", Kind::McpServer),
    ("key_Xk7Qd2Lm9TzR", Kind::Key),
];
const EXAMPLE_MEMBER: &str = "om_Xk7Qd2Lm9TzR";

#[derive(Debug, Clone, Copy)]
enum Kind {
    Project,
    Key,
    AuthConfig,
    Account,
    OlderAccount,
    PendingConnection,
    TriggerInstance,
    Execution,
    Event,
    Subscription,
    Delivery,
    Endpoint,
    Session,
    McpServer,
}

/// A project with objects that are made when an example names them.
struct Objects<'a> {
    host: &'a Host,
    issuer: &'a Issuer,
    project: Client,
    config: OnceCell<String>,
    account: OnceCell<String>,
    subscription: OnceCell<String>,
    delivery: OnceCell<String>,
}

impl<'a> Objects<'a> {
    async fn new(host: &'a Host, issuer: &'a Issuer) -> Self {
        Self {
            host,
            issuer,
            project: host.new_project().await,
            config: OnceCell::new(),
            account: OnceCell::new(),
            subscription: OnceCell::new(),
            delivery: OnceCell::new(),
        }
    }

    /// Makes an object and returns the text at the pointer of the response.
    async fn post(&self, path: &str, body: Value, pointer: &str) -> String {
        let made = self.project.post(path, &body).await;
        assert!(made.status < 300, "{path}: {made:#?}");
        text(made.json.pointer(pointer))
    }

    async fn config(&self) -> String {
        let settings =
            json!({ "type": "use_custom_auth", "authScheme": "BEARER_TOKEN", "credentials": {} });
        let body = json!({ "toolkit": { "slug": TOOLKIT_SLUG }, "auth_config": settings });
        self.config
            .get_or_init(|| self.post("/auth_configs", body, "/auth_config/id"))
            .await
            .clone()
    }

    async fn account(&self) -> String {
        let values = json!({ "token": harness::secret() });
        let state = json!({ "authScheme": "BEARER_TOKEN", "val": values });
        let body = json!({
            "auth_config": { "id": self.config().await },
            "connection": { "user_id": USER_ID, "state": state },
        });
        self.account
            .get_or_init(|| self.post("/connected_accounts", body, "/id"))
            .await
            .clone()
    }

    async fn subscription(&self) -> String {
        let events = ["service.trigger.message"];
        let body = json!({ "webhook_url": "https://hooks.example.com/", "enabled_events": events });
        self.subscription
            .get_or_init(|| self.post("/webhook_subscriptions", body, "/id"))
            .await
            .clone()
    }

    async fn delivery(&self) -> String {
        let path = format!("/webhook_subscriptions/{}/test", self.subscription().await);
        self.delivery
            .get_or_init(|| self.post(&path, json!({}), "/id"))
            .await
            .clone()
    }

    /// Starts a connection whose user the application is to verify, and returns its `session_uri`.
    async fn pending_connection(&self) -> String {
        let verifier = json!({ "oauth_callback_verifier_url": "https://app.example/verify" });
        given::configure(&self.project, verifier).await;
        let config = self
            .project
            .auth_config(TOOLKIT_SLUG, "OAUTH2", Issuer::credentials())
            .await;
        let body = json!({ "auth_config": { "id": config }, "connection": { "user_id": USER_ID } });
        let url = self
            .post("/connected_accounts", body, "/redirect_url")
            .await;
        let back = self.issuer.visit(&url).await;
        let landed = given::open(&self.project, &back).await;
        let (_, session) = landed
            .header("location")
            .split_once("session_uri=")
            .unwrap();
        session.to_owned()
    }

    /// Makes an object for an operation and returns its id.
    async fn make(&self, kind: Kind, operation: &Operation) -> String {
        match kind {
            Kind::Project => self.project.project_id().await,
            Kind::Key => {
                let path = format!(
                    "/org/owner/project/{}/api_keys",
                    self.project.project_id().await
                );
                let body = json!({ "name": "another" });
                let made = self.host.as_org().post(&path, &body).await;
                text(made.expect(201).json.pointer("/id"))
            }
            Kind::AuthConfig => self.config().await,
            Kind::Account => self.account().await,
            Kind::OlderAccount => {
                let path = format!("/connected_accounts/{}", self.account().await);
                let read = self.project.get(&path).await.expect(200);
                text(read.json.pointer("/deprecated/uuid"))
            }
            Kind::PendingConnection => self.pending_connection().await,
            Kind::TriggerInstance => {
                let body = json!({ "connected_account_id": self.account().await });
                let path = "/trigger_instances/GITHUB_NEW_ISSUE/upsert";
                self.post(path, body, "/trigger_id").await
            }
            Kind::Execution => {
                let body = json!({ "user_id": USER_ID, "arguments": {} });
                let path = "/tools/execute/GITHUB_CREATE_ISSUE";
                self.post(path, body, "/log_id").await
            }
            Kind::Event => {
                self.delivery().await;
                let path = "/internal/trigger/logs";
                self.post(path, json!({}), "/data/0/id").await
            }
            Kind::Subscription => self.subscription().await,
            Kind::Delivery => self.delivery().await,
            Kind::Endpoint => {
                let body = json!({ "toolkit_slug": TOOLKIT_SLUG, "client_id": "app" });
                let id = self.post("/webhook_endpoints", body, "/id").await;
                let values = json!({ "data": { "secret": harness::secret() } });
                let path = format!("/webhook_endpoints/{id}");
                self.project.patch(&path, &values).await.expect(200);
                id
            }
            Kind::Session => {
                let body = json!({ "user_id": USER_ID });
                let path = "/tool_router/session";
                let id = self.post(path, body, "/session_id").await;
                mounts::upload(&self.project, &id, "notes.txt", b"Buy milk.").await;
                id
            }
            Kind::McpServer => {
                let body = json!({ "name": "Issues", "auth_config_ids": [self.config().await] });
                let id = self.post("/mcp/servers", body, "/id").await;
                if operation.id() == "mcp_remove_instance" {
                    let path = format!("/mcp/servers/{id}/instances");
                    self.post(&path, json!({ "user_id": USER_ID }), "/id").await;
                }
                id
            }
        }
    }

    /// Replaces the ids in an example by those of new objects.
    async fn fill(&self, operation: &Operation, example: String) -> String {
        let mut filled = example;
        for (id, kind) in EXAMPLE_IDS {
            if filled.contains(id) {
                filled = filled.replace(id, &self.make(kind, operation).await);
            }
        }
        if filled.contains(EXAMPLE_MEMBER) {
            let body = json!({ "email": format!("{}@example.com", unique(8)), "role": "viewer" });
            let made = self.host.as_org().post("/org/members", &body).await;
            filled = filled.replace(EXAMPLE_MEMBER, &text(made.expect(201).json.pointer("/id")));
        }
        filled
    }
}

fn text(value: Option<&Value>) -> String {
    let text = value.and_then(Value::as_str);
    text.expect("the response has the text").to_owned()
}

/// Returns the manifest of the toolkit that examples name.
fn manifest(issuer: &Issuer) -> Value {
    let mut manifest = guest::manifest(TOOLKIT_SLUG);
    manifest["version"] = json!("20261121_00");
    manifest["tools"][0]["slug"] = json!("GITHUB_CREATE_ISSUE");
    manifest["egress"] = json!([{ "host": "api.github.com" }, { "host": "api.example.com" }]);
    let token = json!({ "name": "token", "title": "Token", "secret": true });
    let header = json!({ "in": "header", "name": "authorization", "value": "Bearer {token}" });
    let bearer =
        json!({ "mode": "BEARER_TOKEN", "name": "Token", "fields": [token], "request": [header] });
    manifest["auth"] = json!([issuer.scheme(), bearer]);
    let webhook = given::webhook_trigger(TOOLKIT_SLUG, "ISSUE_CHANGED");
    manifest["triggers"] = json!([given::trigger(TOOLKIT_SLUG, "NEW_ISSUE"), webhook]);
    manifest
}

/// Returns the address of an operation with the examples of its parameters.
fn address(operation: &Operation) -> String {
    let example = |parameter: &&Value| {
        let name = parameter["name"].as_str().unwrap();
        let example = parameter["example"].as_str();
        (name.to_owned(), example.unwrap_or_default().to_owned())
    };
    let in_path: Vec<_> = operation.parameters("path").iter().map(example).collect();
    let values: Vec<_> = in_path
        .iter()
        .map(|(name, text)| (&**name, &**text))
        .collect();
    let query = operation.parameters("query");
    let query = query.iter().filter(|one| one["required"] == true);
    let query: Vec<_> = query
        .map(example)
        .map(|(name, text)| format!("{name}={text}"))
        .collect();
    format!("{}?{}", operation.filled(&values), query.join("&"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_works_when_sent() {
    let application = Host::application();
    let host = given::with_application()
        .with_application(&["api.github.com"], application)
        .with("llm.base_url", application.model(&unique(6), &["{}"]))
        .with("llm.model", "m")
        .with("logs.cassettes", "all")
        .start()
        .await;
    let issuer = application.issuer(&unique(8));
    let manifest = manifest(&issuer);
    host.publish(Guest::receive(1).component(), &manifest).await;
    let component = guest::with_manifest(Guest::receive(1).component(), &manifest);
    let oauth_app = format!("/org/oauth_apps/{TOOLKIT_SLUG}");
    // A browser calls it with what a provider has given it. The last one ends the toolkit.
    let (callback, last) = ("toolkits_callback", "toolkits_deprecate");
    let mut operations = description::described();
    operations.retain(|operation| operation.id() != callback);
    operations.sort_by_key(|operation| operation.id() == last);
    for operation in &operations {
        let objects = Objects::new(&host, &issuer).await;
        objects.account().await;
        let clients = Clients::of(&host, objects.project.clone()).await;
        let client = clients.right(operation).clone().with_newer_prefix();
        if operation.id() == "org_remove_oauth_app" {
            let org = host.as_org();
            let set = org.put_json(&oauth_app, &given::oauth_app()).await;
            set.expect(200);
        }
        let path = objects.fill(operation, address(operation)).await;
        if operation.is_stream() {
            client.open_stream(&path, None).await;
            continue;
        }
        let body = match operation.takes() {
            Takes::Json => {
                let content = &operation.described["requestBody"]["content"];
                let example = content["application/json"]["example"].to_string();
                let filled = objects.fill(operation, example).await;
                Body::Json(serde_json::from_str(&filled).unwrap())
            }
            Takes::Component => Body::Raw("application/wasm", component.clone()),
            Takes::Nothing if operation.method == "POST" => {
                Body::Raw("application/json", b"{}".to_vec())
            }
            Takes::Nothing => Body::None,
        };
        let send = || client.send(operation.method(), &path, body.clone(), &[]);
        let mut answer = send().await;
        // The server may be polling the instance at the same time.
        while operation.id() == "trigger_instances_poll" && answer.status == 409 {
            answer = send().await;
        }
        assert!(
            (200..300).contains(&answer.status) && answer.header("x-toolhost-warning").is_empty(),
            "{} with {path} answers {answer:#?}",
            operation.id()
        );
    }
}

#[test]
fn every_member_and_parameter_is_described() {
    let mut missing = BTreeSet::new();
    for operation in description::described() {
        for place in ["path", "query", "header"] {
            for parameter in operation.parameters(place) {
                if parameter["description"].as_str().is_none_or(str::is_empty) {
                    missing.insert(format!("{}: {}", operation.path, parameter["name"]));
                }
            }
        }
    }
    for (name, schema) in API_DESCRIPTION["components"]["schemas"]
        .as_object()
        .unwrap()
    {
        find_undescribed(name, schema, &mut missing);
    }
    let help = "write a doc comment, or a line in host/api/src/description/members.json";
    assert!(missing.is_empty(), "{missing:#?}: {help}");
}

fn find_undescribed(name: &str, schema: &Value, missing: &mut BTreeSet<String>) {
    for (member, described) in schema["properties"].as_object().into_iter().flatten() {
        if described["description"].as_str().is_none_or(str::is_empty) {
            missing.insert(format!("{name}.{member}"));
        }
        find_undescribed(name, described, missing);
    }
    let parts = ["allOf", "oneOf", "anyOf"].map(|keyword| schema[keyword].as_array());
    let nested = [schema.get("items"), schema.get("additionalProperties")];
    let nested = nested.into_iter().flatten();
    for part in parts.into_iter().flatten().flatten().chain(nested) {
        find_undescribed(name, part, missing);
    }
}

#[test]
fn every_operation_has_an_example() {
    for operation in description::described() {
        let required = operation.parameters("query").into_iter();
        let required = required.filter(|parameter| parameter["required"] == true);
        for parameter in operation.parameters("path").into_iter().chain(required) {
            assert!(
                parameter["example"].is_string(),
                "{}: {} has no example: add it to host/api/src/description/parameters.json",
                operation.path,
                parameter["name"]
            );
        }
        let content = &operation.described["requestBody"]["content"]["application/json"];
        assert!(
            operation.takes() != Takes::Json || content["example"].is_object(),
            "{} has no example: add it to host/api/src/description/examples.json",
            operation.id()
        );
    }
}

#[test]
fn newer_prefix_is_the_first_server() {
    let servers: Vec<_> = API_DESCRIPTION["servers"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    assert_eq!(servers[0]["url"], "/api/v3.1");
    assert_eq!(servers[1]["url"], "/api/v3");
    let about = API_DESCRIPTION["info"]["description"].as_str().unwrap();
    assert!(about.contains("The prefixes differ"), "{about}");
}

#[tokio::test]
async fn every_value_of_a_described_filter_is_accepted() {
    let host = Host::shared().await;
    let clients = Clients::of(host, host.new_project().await).await;
    let mut sent = 0;
    let operations = CLIENT_OPERATIONS.iter().filter(|one| one.method == "GET");
    for operation in operations.filter(|operation| !operation.is_stream()) {
        let query = operation.parameters("query");
        if query.iter().any(|parameter| parameter["required"] == true) {
            continue;
        }
        for parameter in query {
            let schema = &parameter["schema"];
            let values = schema["enum"]
                .as_array()
                .or(schema["items"]["enum"].as_array());
            for value in values.into_iter().flatten().filter_map(Value::as_str) {
                let name = parameter["name"].as_str().unwrap();
                let path = format!("{}?{name}={value}", operation.addressed());
                let answer = clients.right(operation).get(&path).await;
                assert!(matches!(answer.status, 200 | 404), "{path}: {answer:#?}");
                sent += 1;
            }
        }
    }
    assert!(sent > 20, "{sent}");
}

/// Returns the values that a property of a schema can have.
fn values(pointer: &str) -> Vec<&'static str> {
    let member = API_DESCRIPTION.pointer(&format!("/components/schemas/{pointer}"));
    let values = member.unwrap()["enum"].as_array().unwrap().iter();
    values.filter_map(Value::as_str).collect()
}

#[tokio::test]
async fn every_described_operator_and_field_is_accepted() {
    let project = Host::shared().await.new_project().await;
    let send = async |path: &str, body: Value| {
        let answer = project.post(path, &body).await;
        assert_eq!(answer.status, 200, "{path} {body}: {answer:#?}");
    };
    for field in values("RunFilter/properties/field") {
        for operator in values("RunFilter/properties/operator") {
            let filter = json!({ "field": field, "operator": operator, "value": "x" });
            send("/logs/tool_execution", json!({ "filters": [filter] })).await;
        }
    }
    for (schema, path) in [
        ("ActionLogCondition", "/internal/action_execution/logs"),
        ("TriggerLogCondition", "/internal/trigger/logs"),
    ] {
        for field in values(&format!("{schema}/properties/field")) {
            for operation in values(&format!("{schema}/properties/operation")) {
                let one = json!({ "field": field, "operation": operation, "value": "x" });
                send(path, json!({ "search_params": [one] })).await;
            }
        }
    }
    for member in ["managed_by", "sort_by"] {
        for value in values(&format!("ListToolkits/properties/{member}")) {
            send("/toolkits/multi", json!({ member: value })).await;
        }
    }
    for group in values("UsageAsked/properties/group_by") {
        let path = "/project/usage/tool_execution";
        send(path, json!({ "group_by": group })).await;
    }
}
