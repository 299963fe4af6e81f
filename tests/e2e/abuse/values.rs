//! Arguments, schemas, logos and components whose cost exceeds their size.

use futures::future::join_all;
use harness::{Answer, Guest, Host, guest, host::Setup};
use serde_json::{Map, Value, json};

use crate::given;

/// Returns a manifest whose tool accepts what a schema describes.
fn taking(slug: &str, input: &Value) -> Value {
    let mut manifest = guest::manifest(slug);
    manifest["tools"][0]["input"] = input.clone();
    manifest
}

/// Publishes a manifest and returns the response.
async fn publish(host: &Host, manifest: &Value) -> Answer {
    let component = guest::with_manifest(Guest::echo().component(), manifest);
    host.as_org()
        .put(&guest::address(manifest), component)
        .await
}

/// Publishes a tool with one schema that returns its arguments, and returns the slug.
async fn published(host: &Host, place: &str, schema: Value) -> String {
    let (slug, mut manifest) = given::manifest();
    manifest["tools"][0][place] = schema;
    publish(host, &manifest).await.expect(201);
    guest::tool(&slug)
}

/// Asserts that a manifest is refused with a line that contains the words.
#[track_caller]
fn assert_refused(answer: &Answer, words: &str) {
    assert_eq!(
        (answer.status, answer["error"]["slug"].as_str()),
        (400, Some("Toolkit_ComponentInvalid")),
        "{answer:#?}"
    );
    assert!(
        answer.problems().iter().any(|line| line.contains(words)),
        "`{words}` is missing: {answer:#?}"
    );
}

/// Returns a schema of nested objects in which each level is validated twice.
fn doubling() -> Value {
    let twice = json!([{ "$ref": "#" }, { "$ref": "#" }]);
    json!({ "type": "object", "properties": { "in": { "allOf": twice } } })
}

fn nested(levels: usize, core: Value) -> Value {
    (0..levels).fold(core, |value, _| json!({ "in": value }))
}

#[tokio::test]
async fn recursive_schema_is_refused_at_publish() {
    let host = Host::shared().await;
    let node = json!({ "anyOf": [{ "type": "string" }, { "not": { "$ref": "#/$defs/Node" } }] });
    for (schema, place) in [
        (
            json!({ "type": "object", "allOf": [{ "$ref": "#" }] }),
            "input: allOf.0.$ref refers to itself",
        ),
        (
            json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/Node" } }, "$defs": { "Node": node } }),
            "input: properties.a.$ref.anyOf.1.not.$ref refers to itself",
        ),
        (
            json!({ "type": "object", "if": { "$ref": "#/default" }, "default": { "then": { "$ref": "#" } } }),
            "refers to itself",
        ),
    ] {
        assert_refused(
            &publish(host, &taking(&given::slug(), &schema)).await,
            place,
        );
    }
    let tree = json!({ "type": "object", "properties": { "in": { "$ref": "#" } } });
    publish(host, &taking(&given::slug(), &tree))
        .await
        .expect(201);
}

#[tokio::test]
async fn references_that_double_are_refused_at_publish() {
    let host = Host::shared().await;
    let definitions: Map<_, _> = (0..14)
        .map(|level| {
            let next = json!({ "$ref": format!("#/$defs/{}", level + 1) });
            (level.to_string(), json!({ "allOf": [next, next] }))
        })
        .chain([("14".to_owned(), json!({}))])
        .collect();
    let schema = json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/0" } }, "$defs": definitions });
    assert_refused(
        &publish(host, &taking(&given::slug(), &schema)).await,
        "schemas apply to one value",
    );
}

#[tokio::test]
async fn too_many_patterns_are_refused_at_publish() {
    let host = Host::shared().await;
    let patterns = |count: usize, pattern: &str| {
        let named: Map<_, _> = (0..count)
            .map(|number| (format!("{pattern}{number}"), json!(true)))
            .collect();
        json!({ "type": "object", "patternProperties": named })
    };
    assert_refused(
        &publish(host, &taking(&given::slug(), &patterns(201, "^x"))).await,
        "201 patterns are too many",
    );
    let large = patterns(40, r"\p{L}{10}");
    assert_refused(
        &publish(host, &taking(&given::slug(), &large)).await,
        "most of it for patterns",
    );
    publish(host, &taking(&given::slug(), &patterns(200, "^x")))
        .await
        .expect(201);
}

#[tokio::test]
async fn wrong_values_take_bounded_memory() {
    let host = Setup::new().start().await;
    let numbers =
        json!({ "type": "object", "properties": { "types": { "items": { "type": "string" } } } });
    let numbers = published(&host, "input", numbers).await;
    let twice = published(&host, "input", doubling()).await;
    let answer = published(&host, "output", doubling()).await;
    let project = host.as_project();
    project.execute(&answer, json!({})).await.data();
    let before = host.footprint().peak_kib;

    let many = json!({ "types": vec![1; 200_000] });
    let refused = project.execute(&numbers, many).await.expect(400);
    assert_eq!(
        refused.problems(),
        ["types[0]: expected a string, got a number"]
    );
    project
        .execute(&twice, nested(18, json!(1)))
        .await
        .expect_error(400, "ActionExecute_ArgumentsInvalid");
    let failed = project.execute(&answer, nested(18, json!(1))).await;
    assert_eq!(failed.failure(), "tool_output_invalid", "{failed:#?}");

    let grown = host.footprint().peak_kib - before;
    assert!(grown < 200 << 10, "the server grew by {grown} KiB");
}

#[tokio::test]
async fn value_with_too_many_steps_is_refused() {
    let (host, project) = Host::shared_with_project().await;
    // Hundreds of schemas validate each item, which is more work than its two bytes justify.
    let many: Vec<_> = (0..450)
        .map(|number| json!({ "not": { "const": number } }))
        .collect();
    let schema =
        json!({ "type": "object", "properties": { "list": { "items": { "allOf": many } } } });
    let slug = given::slug();
    publish(host, &taking(&slug, &schema)).await.expect(201);
    let refused = project
        .execute(&guest::tool(&slug), json!({ "list": vec![1000; 50_000] }))
        .await
        .expect(400);
    assert!(
        refused.problems()[0].contains("too many steps"),
        "{refused:#?}"
    );
    let arguments = json!({ "list": [1000] });
    project.execute(&guest::tool(&slug), arguments).await.data();
}

#[tokio::test]
async fn search_for_files_ends_in_recursive_schema() {
    let host = Setup::new().start().await;
    let often = vec![json!({ "$ref": "#" }); 16];
    let file = json!({ "type": "object", "file_uploadable": true });
    let schema =
        json!({ "type": "object", "properties": { "file": file, "in": { "anyOf": often } } });
    let slug = given::slug();
    publish(&host, &taking(&slug, &schema)).await.expect(201);
    let arguments = nested(30, json!({ "a": 1 }));
    assert_eq!(
        host.as_project()
            .execute(&guest::tool(&slug), arguments.clone())
            .await
            .data(),
        arguments
    );
}

#[tokio::test]
async fn two_publications_cannot_own_one_tool() {
    let host = Host::shared().await;
    for _ in 0..3 {
        let slug = given::slug();
        let manifests = [slug.clone(), format!("{slug}_b")].map(|toolkit| {
            let mut manifest = guest::manifest(&toolkit);
            manifest["tools"][0]["slug"] = json!(format!("{}_B_RUN", slug.to_uppercase()));
            manifest
        });
        let answers = join_all(manifests.iter().map(|manifest| publish(host, manifest))).await;
        let mut statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
        statuses.sort();
        assert_eq!(statuses, [201, 400], "{answers:#?}");
    }
}

#[tokio::test]
async fn toolkits_own_the_names_below_their_slug() {
    let host = Host::shared().await;
    let (slug, with_tool) = (given::slug(), |toolkit: &str, tool: &str| {
        let mut manifest = guest::manifest(toolkit);
        manifest["tools"][0]["slug"] = json!(tool);
        manifest
    });
    let (inner, upper) = (format!("{slug}_b"), slug.to_uppercase());
    publish(host, &guest::manifest(&inner)).await.expect(201);
    // The shorter slug may be published, but without the names that belong to the longer one.
    assert_refused(
        &publish(host, &with_tool(&slug, &format!("{upper}_B_OTHER"))).await,
        &format!("by toolkit {inner}"),
    );
    publish(host, &with_tool(&slug, &format!("{upper}_C_RUN")))
        .await
        .expect(201);
    // A longer slug is refused after a toolkit has published tools under its name.
    let late = publish(host, &guest::manifest(&format!("{slug}_c"))).await;
    assert_refused(&late, &format!("toolkit {slug} has the tool {upper}_C_RUN"));
    publish(host, &guest::manifest(&format!("{slug}_d")))
        .await
        .expect(201);
    // A toolkit keeps the names it has.
    let mut newer = with_tool(&slug, &format!("{upper}_C_RUN"));
    newer["version"] = json!("20260202_00");
    publish(host, &newer).await.expect(201);
}

#[tokio::test]
async fn logos_can_neither_run_nor_load() {
    let host = Host::shared().await;
    let with = |logo: &str| {
        let mut manifest = guest::manifest(&given::slug());
        manifest["logo"] = json!(logo);
        manifest
    };
    let svg = |inside: &str| format!("<svg xmlns=\"http://www.w3.org/2000/svg\">{inside}</svg>");
    for inside in [
        "<set attributeName=\"href\" to=\"javascript:x()\"/>",
        "<image href=\"/elsewhere.png\"/>",
        "<path d=\"M0 0\" style=\"fill:u\\72l(//evil.example)\"/>",
    ] {
        assert_refused(&publish(host, &with(&svg(inside))).await, "remove");
    }
    let manifest = with(&svg(
        "<!-- made by hand --><path d=\"M0 0h8\" fill=\"#fff\"/>",
    ));
    publish(host, &manifest).await.expect(201);
    let project = host.new_project().await;
    let detail = format!("/toolkits/{}", manifest["slug"].as_str().unwrap());
    let shown = project.get(&detail).await.expect(200);
    let url = shown["meta"]["logo"].as_str().unwrap();
    let image = given::open(&host.anonymous(), url).await;
    assert_eq!(
        String::from_utf8_lossy(&image.bytes),
        svg("<path d=\"M0 0h8\" fill=\"#fff\"/>")
    );
    assert_eq!(image.header("x-content-type-options"), "nosniff");
}

#[tokio::test]
async fn versions_are_days_of_the_calendar() {
    let host = Host::shared().await;
    let mut manifest = guest::manifest(&given::slug());
    for (version, status) in [("20260230_00", 400), ("20260228_00", 201)] {
        manifest["version"] = json!(version);
        let answer = publish(host, &manifest).await.expect(status);
        if status == 400 {
            assert_refused(&answer, "version:");
        }
    }
}

#[tokio::test]
async fn guests_cannot_claim_kinds_of_the_platform() {
    let (host, project) = Host::shared_with_project().await;
    for (kind, told) in [
        ("tool_timeout", "internal"),
        ("file_not_kept", "internal"),
        ("rate_limited", "rate_limited"),
    ] {
        let (items, execute) = (
            format!("(data (i32.const 2048) \"{kind}\")"),
            format!(
                "(call $fail (i32.const 2048) (i32.const {0}) (i32.const 2048) (i32.const {0}))",
                kind.len()
            ),
        );
        let guest = Guest {
            items: &items,
            execute: &execute,
            ..Guest::default()
        };
        let slug = given::slug();
        host.publish(guest.component(), &guest::manifest(&slug))
            .await;
        assert_eq!(
            project
                .execute(&guest::tool(&slug), json!({}))
                .await
                .failure(),
            told
        );
    }
}
