//! Toolkits generated from API descriptions, from the author's command to a call with a credential.

use std::{env, fs, path::Path};

use harness::{Host, author, toolkit, unique};
use serde_json::{Value, json};

use crate::given;

/// Runs the author's command with the author's cache, in which the guest is compiled once.
#[expect(
    clippy::disallowed_methods,
    reason = "the folders of the person who runs the tests"
)]
fn as_author(folder: &Path, arguments: &[&str]) -> Value {
    let [cache, target] =
        [author::cache(), author::target()].map(|path| path.display().to_string());
    let known = ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME"];
    let known: Vec<_> = known
        .iter()
        .filter_map(|name| Some((*name, env::var(name).ok()?)))
        .collect();
    let mut variables: Vec<_> = known
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    variables.extend([("XDG_CACHE_HOME", &*cache), ("CARGO_TARGET_DIR", &*target)]);
    serde_json::from_str(&toolkit(folder, &variables, arguments).succeeded()).unwrap()
}

/// Imports a description and publishes the result.
async fn imported(host: &Host, slug: &str, description: &str, more: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("api.yaml"), description).unwrap();
    let arguments = ["import", "openapi", "api.yaml", "--slug", slug, "--json"];
    let made = as_author(folder.path(), &[&arguments[..], more].concat());
    let component = fs::read(folder.path().join(made["file"].as_str().unwrap())).unwrap();
    let address = format!(
        "/toolkits/{slug}/versions/{}",
        made["version"].as_str().unwrap()
    );
    host.as_org().put(&address, component).await.expect(201);
    made
}

const DESCRIPTION: &str = r##"
openapi: 3.1.0
info: { title: Acme, description: Items. }
servers: [{ url: "https://api.example.com/items/{tag}", variables: { tag: { default: none } } }]
components:
  securitySchemes: { key: { type: apiKey, in: header, name: X-Acme-Key } }
  schemas:
    Item:
      type: object
      properties: { name: { type: string, maxLength: 20 }, parent: { $ref: "#/components/schemas/Item" }, id: { type: integer, readOnly: true } }
      required: [name, id]
security: [{ key: [] }]
paths:
  /{tag}/{id}:
    parameters:
      - { name: tag, in: path, required: true, schema: { type: string } }
      - { name: id, in: path, required: true, schema: { type: integer } }
    get:
      operationId: getItem
      summary: Read an item
      parameters:
        - { name: "fields[]", in: query, schema: { type: array, items: { type: string } } }
        - { name: filter, in: query, style: deepObject, explode: true, schema: { type: object } }
        - { name: session, in: cookie, schema: { type: string } }
      responses: { 200: { description: ok, content: { application/json: { schema: { $ref: "#/components/schemas/Item" } } } } }
    put:
      operationId: setItem
      requestBody: { required: true, content: { application/json: { schema: { $ref: "#/components/schemas/Item" } } } }
      responses: { 204: { description: done } }
"##;

#[tokio::test]
async fn imported_tool_sends_the_described_request() {
    let host = Host::shared().await;
    let project = host.new_project().await;
    let slug = given::slug();
    let made = imported(host, &slug, DESCRIPTION, &[]).await;
    let tool = |name: &str| format!("{}_{name}", slug.to_uppercase());
    assert_eq!(
        made["operations"],
        json!({ "getItem": tool("GET_ITEM"), "setItem": tool("SET_ITEM") })
    );
    assert_eq!(
        made["unsupported"][0]["what"],
        "the cookie parameter `session`"
    );
    project
        .connect(
            &slug,
            "API_KEY",
            "default",
            json!({ "api_key": harness::marked!("sk-acme-") }),
        )
        .await;

    let tag = unique(8);
    let arguments =
        json!({ "tag": tag, "id": 7, "fields": ["a", "b"], "filter": { "kind": "x y" } });
    let read = project
        .execute(&tool("GET_ITEM"), arguments)
        .await
        .expect(200);
    assert_eq!(read["successful"], true, "{read:#?}");
    let seen = &Host::application().seen(&tag)[0];
    assert_eq!(
        (seen.method.as_str(), seen.path.as_str()),
        ("GET", format!("/items/none/{tag}/7").as_str())
    );
    assert_eq!(
        seen.query,
        "fields%5B%5D=a&fields%5B%5D=b&filter%5Bkind%5D=x%20y"
    );
    assert_eq!(seen.header("x-acme-key"), harness::marked!("sk-acme-"));
    assert!(
        !read.text.contains(harness::marked!("sk-acme-")),
        "the guest and the caller never see it"
    );

    let set = json!({ "tag": tag, "id": 7, "name": "seven", "parent": { "name": "six" } });
    let set = project.execute(&tool("SET_ITEM"), set).await.expect(200);
    assert_eq!(set["successful"], true, "{set:#?}");
    let seen = &Host::application().seen(&tag)[1];
    let body: Value = serde_json::from_slice(&seen.body).unwrap();
    assert_eq!(
        (seen.method.as_str(), body),
        (
            "PUT",
            json!({ "name": "seven", "parent": { "name": "six" } })
        )
    );

    let long = json!({ "tag": tag, "id": 7, "name": "x".repeat(21) });
    project.execute(&tool("SET_ITEM"), long).await.expect(400);
    assert_eq!(
        Host::application().seen(&tag).len(),
        2,
        "what does not fit is not sent"
    );
}

#[tokio::test]
async fn an_overlay_chooses_renames_and_fixes() {
    let host = Host::shared().await;
    let project = host.new_project().await;
    let slug = given::slug();
    let folder = tempfile::tempdir().unwrap();
    let overlay = folder.path().join("mine.toml");
    let text = r#"
        name = "Mine"
        auth = []
        choose.operations = ["getItem"]
        [operations.getItem]
        slug = "FIND"
        description = "Finds an item."
        hide = ["filter"]
        arguments.id.fixed = 9
    "#;
    fs::write(&overlay, text).unwrap();
    let made = imported(
        host,
        &slug,
        DESCRIPTION,
        &["--overlay", overlay.to_str().unwrap()],
    )
    .await;
    let tool = format!("{}_FIND", slug.to_uppercase());
    assert_eq!(made["operations"], json!({ "getItem": tool }));
    let listed = project.get(&format!("/tools/{tool}")).await.expect(200);
    assert_eq!(listed["description"], "Finds an item.");
    let arguments: Vec<_> = listed["input_parameters"]["properties"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(arguments, ["tag", "fields"]);
    let tag = unique(8);
    let found = project
        .execute(&tool, json!({ "tag": tag }))
        .await
        .expect(200);
    assert_eq!(found["successful"], true, "{found:#?}");
    assert_eq!(
        Host::application().seen(&tag)[0].path,
        format!("/items/none/{tag}/9")
    );
}

#[test]
fn imports_are_built_with_other_toolkits() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("api.yaml"), DESCRIPTION).unwrap();
    for slug in ["one", "two"] {
        as_author(
            folder.path(),
            &["import", "openapi", "api.yaml", "--slug", slug, "--json"],
        );
    }
    let slugs = |list: &Value| -> Vec<Value> {
        list.as_array()
            .unwrap()
            .iter()
            .map(|it| it["slug"].clone())
            .collect()
    };
    let built = as_author(folder.path(), &["build", "--all", "--json"]);
    assert_eq!(slugs(&built), ["one", "two"]);
    assert!(["one", "two"].iter().all(|slug| {
        folder
            .path()
            .join("dist")
            .join(format!("{slug}.wasm"))
            .is_file()
    }));
    let checked = as_author(folder.path(), &["check", "--all", "--json"]);
    assert_eq!(slugs(&checked), ["one", "two"]);
}
