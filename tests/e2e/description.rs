//! Parser of the committed API description. The tests of every route are driven by it, so that a
//! new route is covered automatically. Facts about an operation that the description does not hold
//! are listed here.

use std::sync::LazyLock;

use harness::{Answer, Client, Host, client::Body};
use reqwest::Method;
use serde_json::{Map, Value, json};

/// Text of the committed description.
pub(crate) const DESCRIPTION_TEXT: &str = include_str!("../../docs/openapi.json");

/// Description as JSON.
pub(crate) static API_DESCRIPTION: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(DESCRIPTION_TEXT).unwrap());

/// Every operation that clients call, ordered by path. Those that providers call answer without
/// envelopes; `webhook_ingress` tests them.
pub(crate) static CLIENT_OPERATIONS: LazyLock<Vec<Operation>> = LazyLock::new(|| {
    let mut operations = described();
    operations.retain(|operation| !operation.is_called_by_provider());
    operations
});

/// Returns every operation, ordered by path.
pub(crate) fn described() -> Vec<Operation> {
    let paths = API_DESCRIPTION["paths"].as_object().unwrap();
    let of_path = |(path, item): (&String, &Value)| {
        let methods = item.as_object().unwrap().clone().into_iter();
        let path = path.clone();
        methods.map(move |(method, described)| Operation {
            method: method.to_uppercase(),
            path: path.clone(),
            described,
        })
    };
    paths.iter().flat_map(of_path).collect()
}

/// Size of the largest JSON body that an operation takes, in bytes.
pub(crate) const MAX_JSON_BYTES: usize = 6 << 20;

/// Id of an MCP server that does not exist.
const NO_MCP_SERVER: &str = "00000000-0000-4000-8000-000000000000";

/// Values of path parameters: preceding path, parameter name, and an id that does not exist. The
/// part before the `_` is the kind of id.
const UNKNOWN_IDS: [(&str, &str, &str); 27] = [
    ("/org/owner/project/", "nano_id", "proj_AAAAAAAAAAAA"),
    ("/org/owner/project/", "key_id", "key_AAAAAAAAAAAA"),
    ("/org/members/", "member_id", "om_AAAAAAAAAAAA"),
    ("/org/oauth_apps/", "slug", "no_such_toolkit"),
    ("/org/usage/", "entity_type", "no_such_thing"),
    ("/project/usage/", "entity_type", "no_such_thing"),
    ("/toolkits/", "slug", "no_such_toolkit"),
    ("/toolkits/", "version", "20260101_00"),
    ("/tools/", "tool_slug", "NO_SUCH_TOOL"),
    ("/triggers_types/", "slug", "NO_SUCH_TRIGGER"),
    ("/trigger_instances/", "slug", "NO_SUCH_TRIGGER"),
    ("/trigger_instances/", "triggerId", "ti_AAAAAAAAAAAA"),
    ("/logs/", "id", "log_AAAAAAAAAAAA"),
    ("/internal/action_execution/", "id", "log_AAAAAAAAAAAA"),
    ("/internal/trigger/", "id", "log_AAAAAAAAAAAA"),
    ("/auth_configs/", "nanoid", "ac_AAAAAAAAAAAA"),
    ("/auth_configs/", "status", "DISABLED"),
    ("/connected_accounts/", "nanoid", "ca_AAAAAAAAAAAA"),
    ("/mcp/", "id", NO_MCP_SERVER),
    ("/mcp/servers/", "serverId", NO_MCP_SERVER),
    ("/mcp/servers/", "instanceId", "nobody"),
    ("/mcp/app/", "appKey", "no_such_toolkit"),
    ("/webhook_endpoints/", "nano_id", "we_AAAAAAAAAAAA"),
    ("/webhook_subscriptions/", "id", "ws_AAAAAAAAAAAA"),
    ("/webhook_subscriptions/", "delivery_id", "wd_AAAAAAAAAAAA"),
    ("/tool_router/", "session_id", "trs_AAAAAAAAAAAA"),
    ("/tool_router/", "mount_id", "files"),
];

/// Kind of key that an operation requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Project,
    Organization,
    User,
    /// No key is required.
    Nobody,
}

/// A client for each kind of key.
pub(crate) struct Clients {
    pub project: Client,
    pub organization: Client,
    pub user: Client,
    pub nobody: Client,
}

impl Clients {
    /// Creates the clients, with the key of this project.
    pub(crate) async fn of(host: &Host, project: Client) -> Self {
        let user = host.new_member("admin").await;
        Self {
            project,
            organization: host.as_org(),
            user,
            nobody: host.anonymous(),
        }
    }

    /// Returns the client with the kind of key that an operation requires.
    pub(crate) fn right(&self, operation: &Operation) -> &Client {
        match operation.key() {
            Key::Project => &self.project,
            Key::Organization => &self.organization,
            Key::User => &self.user,
            Key::Nobody => &self.nobody,
        }
    }
}

/// Kind of body that an operation takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Nothing,
    Json,
    Component,
}

/// One method of one path.
#[derive(Debug)]
pub(crate) struct Operation {
    pub method: String,
    pub path: String,
    /// Object of the operation in the description.
    pub described: Value,
}

impl Operation {
    /// Returns the operation id.
    pub(crate) fn id(&self) -> &str {
        self.described["operationId"].as_str().unwrap_or_default()
    }

    pub(crate) fn key(&self) -> Key {
        match self.described["security"][0]
            .as_object()
            .map(|kind| kind.keys().next().map(String::as_str))
        {
            None => Key::Project,
            Some(Some("organization")) => Key::Organization,
            Some(Some("user")) => Key::User,
            Some(None) => Key::Nobody,
            Some(Some(other)) => panic!("a key of {other} for {}", self.path),
        }
    }

    pub(crate) fn takes(&self) -> Takes {
        let content = &self.described["requestBody"]["content"];
        match (
            content["application/json"].is_object(),
            content["application/wasm"].is_object(),
        ) {
            (true, _) => Takes::Json,
            (_, true) => Takes::Component,
            _ => Takes::Nothing,
        }
    }

    pub(crate) fn method(&self) -> Method {
        Method::from_bytes(self.method.as_bytes()).unwrap()
    }

    /// Sends a request to the path with parameter values that do not exist.
    pub(crate) async fn send(&self, client: &Client, body: Body) -> Answer {
        let path = self.addressed();
        client.send(self.method(), &path, body, &[]).await
    }

    /// Returns the described statuses.
    pub(crate) fn statuses(&self) -> impl Iterator<Item = u16> {
        self.described["responses"]
            .as_object()
            .unwrap()
            .keys()
            .map(|status| status.parse().unwrap())
    }

    /// Returns true if a successful response does not end.
    pub(crate) fn is_stream(&self) -> bool {
        self.described["responses"]["200"]["content"]["text/event-stream"].is_object()
    }

    /// Returns true if providers call it, which get plain texts.
    fn is_called_by_provider(&self) -> bool {
        self.described["responses"]["200"]["content"]["text/plain"].is_object()
    }

    /// Returns the resolved and closed schema of a status's body: only named members are allowed.
    pub(crate) fn answer_schema(&self, status: u16) -> Value {
        let mut response = &self.described["responses"][status.to_string()];
        if let Some(place) = response["$ref"].as_str() {
            response = API_DESCRIPTION
                .pointer(place.trim_start_matches('#'))
                .unwrap();
        }
        resolved(&response["content"]["application/json"]["schema"])
    }

    /// Returns the parameters in this location.
    pub(crate) fn parameters(&self, place: &str) -> Vec<&Value> {
        let all = self.described["parameters"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        all.iter()
            .filter(|parameter| parameter["in"] == place)
            .collect()
    }

    /// Returns the names of the path parameters, each with a value that does not exist.
    pub(crate) fn unknown(&self) -> Vec<(&str, &'static str)> {
        let names = self
            .path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let value = |name| {
            let known = UNKNOWN_IDS
                .iter()
                .find(|(start, own, _)| self.path.starts_with(start) && *own == name);
            let Some((.., value)) = known else {
                panic!(
                    "say in `UNKNOWN_IDS` of tests/e2e/description.rs what `{{{name}}}` of {} stands for",
                    self.path
                )
            };
            (name, *value)
        };
        names.map(value).collect()
    }

    /// Returns the path with parameter values that do not exist.
    pub(crate) fn addressed(&self) -> String {
        self.filled(&self.unknown())
    }

    /// Returns the path with these parameter values.
    pub(crate) fn filled(&self, values: &[(&str, &str)]) -> String {
        values
            .iter()
            .fold(self.path.clone(), |path, (name, value)| {
                path.replace(&format!("{{{name}}}"), value)
            })
    }

    /// Builds a body from its schema: only the required members, or all named members.
    pub(crate) fn body(&self, all: bool) -> Body {
        match self.takes() {
            Takes::Nothing => Body::None,
            Takes::Component => Body::Raw("application/wasm", vec![0; 64]),
            Takes::Json => Body::Json(sample(&self.request_schema(), all)),
        }
    }

    /// Returns the resolved schema of the JSON body.
    pub(crate) fn request_schema(&self) -> Value {
        resolved(&self.described["requestBody"]["content"]["application/json"]["schema"])
    }
}

/// Resolves all references of a schema, merges the parts of an object, and closes every object.
fn resolved(schema: &Value) -> Value {
    if let Some(place) = schema["$ref"].as_str() {
        return resolved(
            API_DESCRIPTION
                .pointer(place.trim_start_matches('#'))
                .unwrap(),
        );
    }
    if let Some(parts) = schema["allOf"].as_array() {
        let mut whole = json!({ "type": "object", "properties": {}, "required": [], "additionalProperties": false });
        for part in parts.iter().map(resolved) {
            whole["properties"]
                .as_object_mut()
                .unwrap()
                .extend(part["properties"].as_object().unwrap().clone());
            let required = part["required"].as_array().cloned().unwrap_or_default();
            whole["required"].as_array_mut().unwrap().extend(required);
        }
        return whole;
    }
    match schema {
        Value::Object(members) => {
            let mut closed: Map<_, _> = members
                .iter()
                .map(|(name, value)| (name.clone(), resolved(value)))
                .collect();
            if members.get("type").is_some_and(|kind| kind.is_string())
                && members.contains_key("properties")
            {
                closed.entry("additionalProperties").or_insert(json!(false));
            }
            Value::Object(closed)
        }
        Value::Array(items) => items.iter().map(resolved).collect(),
        other => other.clone(),
    }
}

/// Returns a value that matches a schema.
fn sample(schema: &Value, all: bool) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    for several in ["oneOf", "anyOf"] {
        if let Some(variants) = schema[several].as_array() {
            let other = variants
                .iter()
                .find(|variant| variant["type"] != "null")
                .unwrap();
            return sample(other, all);
        }
    }
    let kind = schema["type"].as_array().map_or(&schema["type"], |kinds| {
        kinds.iter().find(|k| *k != "null").unwrap()
    });
    match kind.as_str() {
        Some("object") => {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let members = schema["properties"]
                .as_object()
                .cloned()
                .unwrap_or_default()
                .into_iter();
            let is_refused = |schema: &Value| schema["x-unimplemented"] == "refuse";
            let wanted = members.filter(|(name, schema)| {
                required.contains(&json!(name)) || all && !is_refused(schema)
            });
            wanted
                .map(|(name, schema)| (name, sample(&schema, all)))
                .collect::<Map<_, _>>()
                .into()
        }
        Some("array") => json!([sample(&schema["items"], all)]),
        Some("string") => json!("word"),
        Some("integer" | "number") => schema["minimum"].as_i64().unwrap_or(1).max(1).into(),
        Some("boolean") => json!(true),
        _ => json!({}),
    }
}
