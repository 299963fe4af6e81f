//! Toolkits generated from API descriptions, from the author's command to a call with a credential.

use std::{fs, path::Path};

use harness::{FakeApp, Finished, Host, toolkit, unique};
use serde_json::{Value, json};

use crate::given;

/// Runs the author's command with an empty cache and without a search path: an import needs no
/// compiler.
fn run(folder: &Path, arguments: &[&str]) -> Finished {
    let cache = folder.join("cache").display().to_string();
    toolkit(folder, &[("XDG_CACHE_HOME", &cache)], arguments)
}

fn as_author(folder: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&run(folder, arguments).succeeded()).unwrap()
}

/// Imports a description and publishes the result.
async fn imported(host: &Host, slug: &str, description: &str, more: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("api.yaml"), description).unwrap();
    let arguments = ["import", "openapi", "api.yaml", "--slug", slug, "--json"];
    let made = as_author(folder.path(), &[&arguments[..], more].concat());
    published(host, folder.path(), &made).await;
    made
}

const API_DESCRIPTION: &str = r##"
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
    let (host, project) = Host::shared_with_project().await;
    let slug = given::slug();
    let made = imported(host, &slug, API_DESCRIPTION, &[]).await;
    let tool = |name: &str| format!("{}_{name}", slug.to_uppercase());
    assert_eq!(
        made["operations"],
        json!({ "getItem": tool("GET_ITEM"), "setItem": tool("SET_ITEM") })
    );
    assert_eq!(
        made["unsupported"][0]["what"],
        "the cookie parameter `session`"
    );
    let key = json!({ "api_key": harness::marked!("sk-acme-") });
    project.connect(&slug, "API_KEY", "default", key).await;

    let tag = unique(8);
    let arguments =
        json!({ "tag": tag, "id": 7, "fields": ["a", "b"], "filter": { "kind": "x y" } });
    let read = project.execute(&tool("GET_ITEM"), arguments).await;
    let seen = &Host::application().seen(&tag)[0];
    assert_eq!(seen.method.as_str(), "GET");
    assert_eq!(seen.path.as_str(), format!("/items/none/{tag}/7").as_str());
    assert_eq!(
        seen.query,
        "fields%5B%5D=a&fields%5B%5D=b&filter%5Bkind%5D=x%20y"
    );
    assert_eq!(seen.header("x-acme-key"), harness::marked!("sk-acme-"));
    // The guest and the caller never see it.
    assert!(!read.text.contains(harness::marked!("sk-acme-")));
    read.data();

    let set = json!({ "tag": tag, "id": 7, "name": "seven", "parent": { "name": "six" } });
    project.execute(&tool("SET_ITEM"), set).await.data();
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
    assert_eq!(given::seen(&tag), 2, "what does not fit is not sent");
}

const FILES_DESCRIPTION: &str = r#"
openapi: 3.1.0
info: { title: Files, description: Files. }
servers: [{ url: "https://api.example.com" }]
paths:
  /said/{tag}/{headers}/{body}:
    parameters:
      - { name: tag, in: path, required: true, schema: { type: string } }
      - { name: headers, in: path, required: true, schema: { type: string } }
      - { name: body, in: path, required: true, schema: { type: string } }
    get:
      operationId: getDeclared
      responses: { 200: { description: ok, content: { application/pdf: { schema: { type: string, format: binary } } } } }
    post:
      operationId: getUndeclared
      responses: { 200: { description: ok, content: { application/json: { schema: {} } } } }
"#;

#[tokio::test]
async fn imported_file_keeps_its_name() {
    let (host, project) = Host::shared_with_project().await;
    let slug = given::slug();
    imported(host, &slug, FILES_DESCRIPTION, &["--auth", "none"]).await;
    for (disposition, name) in [
        ("attachment; filename=\"Q3 report.pdf\"", "Q3 report.pdf"),
        (
            "attachment; filename*=UTF-8''Angebot%20%E2%82%AC.pdf",
            "Angebot €.pdf",
        ),
        (
            "attachment; filename=\"../../etc/passwd.pdf\"",
            "passwd.pdf",
        ),
    ] {
        let headers =
            json!({ "content-type": "application/pdf", "content-disposition": disposition });
        let path = FakeApp::said(&unique(8), &headers, b"%PDF-1.4 \xff");
        let parts: Vec<_> = path.split('/').collect();
        let arguments = json!({ "tag": parts[2], "headers": parts[3], "body": parts[4] });
        for tool in ["GET_DECLARED", "GET_UNDECLARED"] {
            let tool = format!("{}_{tool}", slug.to_uppercase());
            let data = project.execute(&tool, arguments.clone()).await.data();
            assert_eq!(data["file"]["name"], name, "{tool} with {disposition}");
        }
    }
}

#[tokio::test]
async fn an_overlay_chooses_renames_and_fixes() {
    let (host, project) = Host::shared_with_project().await;
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
    let overlay = ["--overlay", overlay.to_str().unwrap()];
    let made = imported(host, &slug, API_DESCRIPTION, &overlay).await;
    let tool = format!("{}_FIND", slug.to_uppercase());
    assert_eq!(made["operations"], json!({ "getItem": tool }));
    let listed = project.get(&format!("/tools/{tool}")).await.expect(200);
    assert_eq!(listed["description"], "Finds an item.");
    let arguments = listed["input_parameters"]["properties"].as_object();
    let arguments: Vec<_> = arguments.unwrap().keys().collect();
    assert_eq!(arguments, ["tag", "fields"]);
    let tag = unique(8);
    project.execute(&tool, json!({ "tag": tag })).await.data();
    let seen = &Host::application().seen(&tag)[0];
    assert_eq!(seen.path, format!("/items/none/{tag}/9"));
}

/// Publishes what the author's command has made of a description.
async fn published(host: &Host, folder: &Path, made: &Value) {
    let component = fs::read(folder.join(made["file"].as_str().unwrap())).unwrap();
    let slug = made["slug"].as_str().unwrap();
    let version = made["version"].as_str().unwrap();
    let address = format!("/toolkits/{slug}/versions/{version}");
    host.as_org().put(&address, component).await.expect(201);
}

#[tokio::test]
async fn null_for_optional_argument_is_absent() {
    let (host, project) = Host::shared_with_project().await;
    let slug = given::slug();
    imported(host, &slug, API_DESCRIPTION, &["--auth", "none"]).await;
    let tool = |name: &str| format!("{}_{name}", slug.to_uppercase());
    let tag = unique(8);
    let arguments = json!({ "tag": tag, "id": 7, "fields": null, "filter": null });
    project.execute(&tool("GET_ITEM"), arguments).await.data();
    let arguments =
        json!({ "tag": tag, "id": 7, "name": "x", "parent": { "name": "y", "parent": null } });
    project.execute(&tool("SET_ITEM"), arguments).await.data();
    let seen = Host::application().seen(&tag);
    let body: Value = serde_json::from_slice(&seen[1].body).unwrap();
    assert_eq!((seen[0].query.as_str(), seen.len()), ("", 2));
    assert_eq!(body, json!({ "name": "x", "parent": { "name": "y" } }));
    let required = json!({ "tag": tag, "id": null });
    let refused = project.execute(&tool("GET_ITEM"), required).await;
    refused.expect(400);
}

#[tokio::test]
async fn stream_of_mcp_server_ends_with_response() {
    let (host, project) = Host::shared_with_project().await;
    let (slug, tag) = (given::slug(), unique(8));
    let folder = tempfile::tempdir().unwrap();
    let schema = json!({ "type": "object", "additionalProperties": true });
    let listing = json!({
        "server": format!("https://api.example.com/mcp/{tag}/server"),
        "tools": [{ "name": "go", "inputSchema": schema }],
    });
    fs::write(folder.path().join("tools.json"), listing.to_string()).unwrap();
    let arguments = ["import", "mcp", "tools.json", "--slug", &slug];
    let arguments = [&arguments[..], &["--auth", "none", "--json"]].concat();
    let made = as_author(folder.path(), &arguments);
    published(host, folder.path(), &made).await;
    let result =
        json!({ "content": [{ "type": "text", "text": "one" }], "structuredContent": { "a": 1 } });
    let tool = format!("{}_GO", slug.to_uppercase());
    let ran = project.execute(&tool, json!({ "result": result })).await;
    assert_eq!(ran.expect(200)["data"], json!({ "a": 1, "text": "one" }));
}

#[test]
fn repeated_cursor_ends_the_list_of_tools() {
    let folder = tempfile::tempdir().unwrap();
    let server = format!("{}/mcp/{}/list", Host::application().origin, unique(8));
    let arguments = [
        "import", "mcp", &server, "--slug", "acme", "--auth", "none", "--json",
    ];
    let address = ["--server", "https://api.example.com/mcp"];
    let made = as_author(folder.path(), &[&arguments[..], &address].concat());
    assert_eq!(made["operations"], json!({ "go": "ACME_GO" }));
}

#[test]
fn imports_are_built_with_other_toolkits() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("api.yaml"), API_DESCRIPTION).unwrap();
    for slug in ["one", "two"] {
        let arguments = ["import", "openapi", "api.yaml", "--slug", slug, "--json"];
        as_author(folder.path(), &arguments);
    }
    for command in ["build", "check"] {
        let done = as_author(folder.path(), &[command, "--all", "--json"]);
        let slugs: Vec<_> = done
            .as_array()
            .unwrap()
            .iter()
            .map(|one| &one["slug"])
            .collect();
        assert_eq!(slugs, ["one", "two"]);
    }
    for component in ["dist/one.wasm", "dist/two.wasm"] {
        assert!(folder.path().join(component).is_file());
    }
}

#[tokio::test]
async fn recorded_call_becomes_a_passing_case() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("api.yaml"), API_DESCRIPTION).unwrap();
    let run = |arguments: &[&str]| run(folder.path(), arguments);
    run(&["import", "openapi", "api.yaml", "--slug", "acme"]).succeeded();
    let secret = harness::marked!("sk-acme-");
    let account = json!({ "api_key": secret }).to_string();
    fs::write(folder.path().join("account.json"), account).unwrap();
    let tag = unique(8);
    let arguments = json!({ "tag": tag, "id": 7, "fields": ["name"] }).to_string();
    let rewrite = format!("https://api.example.com={}", Host::application().origin);
    let record = |case: &str| {
        let call = ["record", "acme", "get_item", &arguments, "--case", case];
        let place = ["--rewrite", &rewrite, "--credentials", "account.json"];
        run(&[&call[..], &place].concat())
    };
    record("seven").succeeded();
    let file = folder.path().join("acme/cases/get_item/seven.json");
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains(secret), "{text}");
    let case: Value = serde_json::from_str(&text).unwrap();
    let sent = &case["exchanges"][0]["request"];
    assert_eq!(
        sent["url"],
        format!("https://api.example.com/items/none/{tag}/7?fields%5B%5D=name")
    );
    assert!(record("seven").failed().contains("seven.json exists"));
    assert!(record("../seven").failed().contains("cannot name a case"));

    let checked = as_author(folder.path(), &["check", "acme", "--json"]);
    assert_eq!(
        checked[0]["cases"],
        json!([{ "case": "get_item/seven", "passed": true, "problems": [] }])
    );
}
