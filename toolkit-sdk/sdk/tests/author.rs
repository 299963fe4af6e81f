//! A toolkit as an author writes it, run natively.

use std::time::Duration;

use toolkit_sdk::prelude::*;
use toolkit_sdk::testing;

const API: Client =
    Client::new("https://api.example.com/v1").headers(&[("accept", "application/json")]);

#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// Who to greet.
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct Greeting {
    text: String,
}

/// Greets someone by name.
///
/// In English.
#[tool(
    read_only,
    important,
    tags("talk"),
    synonyms("say hello", "welcome"),
    example = r#"{"name": "Ada"}"#
)]
fn greet(input: Greet) -> Result<Greeting> {
    log::info!("greeting {}", input.name);
    Ok(Greeting {
        text: format!("Hello, {}!", input.name),
    })
}

/// Tells the time.
#[tool(read_only, no_auth, name = "What time it is")]
fn time() -> Result<Value> {
    Ok(json!({ "now": clock::now() }))
}

mod items {
    use toolkit_sdk::prelude::*;

    use super::API;

    #[derive(Deserialize, JsonSchema)]
    pub(crate) struct GetItem {
        /// Its number.
        id: String,
        /// Only these parts of it.
        #[serde(default)]
        fields: Vec<String>,
        /// In another language.
        language: Option<String>,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(crate) struct Item {
        pub(crate) name: String,
    }

    /// Reads one item.
    #[tool(
        read_only,
        scopes("items:read"),
        egress("GET api.example.com/v1/items/")
    )]
    pub(crate) fn get_item(input: GetItem) -> Result<Item> {
        API.get("/items/{id}")
            .path("id", &input.id)
            .query_each("field", &input.fields)
            .query_opt("lang", input.language)
            .send()?
            .json()
    }

    #[derive(Deserialize, JsonSchema)]
    pub(crate) struct Watch {
        /// Where to look.
        list: String,
    }

    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    pub(crate) struct Seen {
        newest: u64,
    }

    /// Fires when an item is added.
    #[trigger(poll, name = "New item")]
    pub(crate) fn new_item(config: Watch, cursor: Option<Seen>) -> Result<Polled<Item, Seen>> {
        let Some(seen) = cursor else {
            return Ok(Polled::new(Seen { newest: 7 }));
        };
        let next = seen.newest + 1;
        Ok(Polled::new(Seen { newest: next })
            .event(next, Item { name: config.list })
            .more(false))
    }

    /// Fires when an item is pushed.
    #[trigger(webhook)]
    pub(crate) fn item_pushed(_config: Watch, request: Inbound) -> Result<Received<Item>> {
        if request.header("X-Token") != Some("right") {
            return Err(ToolError::unauthorized("the token is wrong"));
        }
        Ok(Received::event("1", request.json()?).answer("thanks"))
    }
}

toolkit! {
    slug: "demo",
    name: "Demo",
    description: "Shows what a toolkit can be.",
    categories: ["examples"],
    auth: [
        api_key(header: "x-api-key", value: "Key {api_key}", help: "Settings, API keys", verify: "https://api.example.com/v1/me"),
        basic(),
    ],
    egress: ["api.example.com", "POST *.example.org/hooks/"],
    limits: { memory_mib: 96, wall_ms: 45_000 },
    tools: [greet, time, items::get_item],
    triggers: [items::new_item, items::item_pushed],
}

#[test]
fn every_case_holds() {
    testing::run_cases(
        &TOOLKIT,
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases").as_ref(),
    );
}

#[test]
fn the_manifest_says_what_the_author_wrote() {
    let manifest = testing::manifest(&TOOLKIT);
    let slugs: Vec<&str> = manifest
        .tools
        .iter()
        .map(|tool| tool.slug.as_str())
        .collect();
    assert_eq!(slugs, ["DEMO_GREET", "DEMO_TIME", "DEMO_GET_ITEM"]);
    let greet = &manifest.tools[0];
    assert_eq!(
        (greet.name.as_str(), greet.description.as_str()),
        ("Greet", "Greets someone by name.\n\nIn English.")
    );
    assert_eq!(greet.tags, ["important", "talk"]);
    assert_eq!(greet.synonyms, ["say hello", "welcome"]);
    assert_eq!(greet.examples, [json!({ "name": "Ada" })]);
    assert!(greet.hints.read_only && !greet.hints.destructive);
    assert_eq!(
        greet.input,
        json!({ "type": "object", "properties": { "name": { "type": "string", "description": "Who to greet." } }, "required": ["name"] })
    );
    assert_eq!(manifest.tools[1].name, "What time it is");
    assert_eq!(
        manifest.tools[1].input,
        json!({ "type": "object", "properties": {} })
    );
    let egress = manifest.tools[2].egress.as_ref().unwrap();
    assert_eq!(
        (
            egress[0].methods.as_slice(),
            egress[0].path_prefix.as_deref()
        ),
        (&["GET".to_owned()][..], Some("/v1/items/"))
    );
    assert_eq!(manifest.triggers[0].slug, "DEMO_NEW_ITEM");
    assert_eq!(manifest.limits.wall_ms, Some(45_000));
    testing::check_manifest(&TOOLKIT);
}

#[test]
fn unstamped_version_is_not_exported() {
    let json: Value = serde_json::from_slice(&toolkit_sdk::rt::manifest_json(&testing::manifest(
        &TOOLKIT,
    )))
    .unwrap();
    assert_eq!(json["slug"], "demo");
    assert!(json.get("version").is_none());
}

#[test]
fn a_tool_sends_what_the_builder_says() {
    let url = "https://api.example.com/v1/items/a%2Fb?field=x%20y&field=z";
    let host = testing::host().exchange("GET", url, 200, json!({ "name": "seven" }));
    let arguments = json!({ "id": "a/b", "fields": ["x y", "z"] });
    let (data, _) = host.run(|| testing::call(&TOOLKIT, "get_item", &arguments));
    assert_eq!(data.unwrap(), json!({ "name": "seven" }));
}

#[test]
fn a_path_cannot_be_left() {
    for id in ["..", ".", ""] {
        let (data, _) =
            testing::host().run(|| testing::call(&TOOLKIT, "get_item", &json!({ "id": id })));
        assert_eq!(data.unwrap_err().kind(), "invalid_input", "{id:?}");
    }
}

#[test]
fn provider_error_becomes_tool_error() {
    let url = "https://api.example.com/v1/items/7";
    let host = testing::host().expect(
        serde_json::from_value(json!({
            "request": { "method": "GET", "url": url, "headers": { "accept": "application/json" } },
            "response": { "status": 429, "headers": { "Retry-After": "30" }, "body": { "error": { "message": "slow down" } } },
        }))
        .unwrap(),
    );
    let (data, _) = host.run(|| testing::call(&TOOLKIT, "DEMO_GET_ITEM", &json!({ "id": "7" })));
    let error = data.unwrap_err();
    assert_eq!(
        (error.kind(), error.status(), error.wait()),
        ("rate_limited", Some(429), Some(Duration::from_secs(30)))
    );
    assert_eq!(error.text(), "the provider responded 429: slow down");
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let (data, _) = testing::host().run(|| testing::call(&TOOLKIT, "greet", &json!({ "name": 1 })));
    assert_eq!(data.unwrap_err().kind(), "invalid_input");
    let (data, host) =
        testing::host().run(|| testing::call(&TOOLKIT, "greet", &json!({ "name": "Ada" })));
    assert_eq!(data.unwrap(), json!({ "text": "Hello, Ada!" }));
    assert_eq!(host.lines()[0].message, "greeting Ada");
}
