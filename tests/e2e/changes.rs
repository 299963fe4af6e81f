//! Changes allowed in a new version, and the changelog.

use harness::{Answer, Guest, Host, guest, toolkit};
use serde_json::{Value, json};

use crate::given;

/// Returns a version of a toolkit with one argument that callers rely on.
fn version(slug: &str, version: &str) -> Value {
    let mut manifest = guest::manifest(slug);
    manifest["version"] = json!(version);
    manifest["tools"][0]["input"] =
        json!({ "type": "object", "properties": { "said": { "type": "string" } } });
    manifest
}

/// Returns the same with a new argument and without the one that callers rely on.
fn breaking(slug: &str, day_and_number: &str) -> Value {
    let mut manifest = version(slug, day_and_number);
    manifest["tools"][0]["input"] = json!({
        "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"],
    });
    manifest
}

fn bytes(manifest: &Value) -> Vec<u8> {
    guest::with_manifest(Guest::echo().component(), manifest)
}

/// Publishes a version, which must be answered with a status.
async fn put(host: &Host, manifest: &Value, query: &str, status: u16) -> Answer {
    let path = format!("{}{query}", guest::address(manifest));
    let answer = host.as_org().put(&path, bytes(manifest)).await;
    answer.expect(status)
}

#[tokio::test]
async fn breaking_same_day_correction_needs_confirmation() {
    let host = Host::shared().await;
    let slug = given::slug();
    put(host, &version(&slug, "20260101_00"), "", 201).await;
    let mut more = version(&slug, "20260101_01");
    more["tools"][0]["input"]["properties"]["loud"] = json!({ "type": "boolean" });
    put(host, &more, "", 201).await;

    let next = breaking(&slug, "20260101_02");
    let refused = put(host, &next, "", 422).await;
    refused.assert_envelope();
    assert_eq!(refused["error"]["slug"], "Toolkit_BreakingChange");
    let place = format!("tools.{}.input", guest::tool(&slug));
    for line in ["said: is gone", "loud: is gone", "text: is newly required"] {
        let line = format!("{place}.{line} (breaks callers)");
        assert!(
            refused.problems().contains(&line),
            "{line} is not in {:?}",
            refused.problems()
        );
    }
    put(host, &next, "?breaking=false", 422).await;
    put(host, &next, "?breaking=perhaps", 400).await;
    let project = host.new_project().await;
    let detail = project.get(&format!("/toolkits/{slug}")).await.expect(200);
    assert_eq!(detail["meta"]["version"], "20260101_01", "unchanged");

    put(host, &next, "?breaking=true", 201).await;
    put(host, &next, "", 200).await;
}

#[tokio::test]
async fn new_day_may_contain_breaking_changes() {
    let host = Host::shared().await;
    let slug = given::slug();
    put(host, &version(&slug, "20260101_00"), "", 201).await;
    put(host, &breaking(&slug, "20260102_00"), "", 201).await;
    put(host, &version(&slug, "20260102_01"), "", 422).await;
    let path = format!("/toolkits/{slug}/versions/20260102_00");
    host.as_org().delete(&path).await.expect(200);
    put(host, &version(&slug, "20260102_01"), "", 201).await;
}

#[tokio::test]
async fn changelog_lists_changes_between_versions() {
    let (host, project) = Host::shared_with_project().await;
    let slug = given::slug();
    for day in 1..=11 {
        put(
            host,
            &version(&slug, &format!("202601{day:02}_00")),
            "",
            201,
        )
        .await;
    }
    let of = |answer: Answer| {
        let items = answer["items"].as_array().unwrap();
        items
            .iter()
            .find(|item| item["slug"] == *slug)
            .expect("every toolkit is listed")
            .clone()
    };
    let before = of(project.get("/toolkits/changelog").await.expect(200));
    assert_eq!(before["name"], *slug);
    assert_eq!(before["display_name"], *slug);
    let versions = before["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 10, "the newest ten");
    assert_eq!(
        versions[0],
        json!({ "version": "20260111_00", "changelog": "only the code changed" })
    );

    put(host, &breaking(&slug, "20260112_00"), "", 201).await;
    let after = of(project.get("/toolkits/changelog").await.expect(200));
    assert_eq!(after["versions"][0]["version"], "20260112_00");
    let text = after["versions"][0]["changelog"].as_str().unwrap();
    let line = format!(
        "- tools.{}.input.said: is gone (breaks callers)",
        guest::tool(&slug)
    );
    assert!(text.lines().any(|own| own == line), "{text}");
    assert_eq!(after["versions"][1], before["versions"][0]);
}

#[tokio::test]
async fn author_command_shows_changes_and_publishes_on_confirmation() {
    let host = Host::shared().await;
    let slug = given::slug();
    put(host, &version(&slug, "20260101_00"), "", 201).await;
    let folder = tempfile::tempdir().unwrap();
    let component = bytes(&breaking(&slug, "20260101_01"));
    std::fs::write(folder.path().join("new.wasm"), component).unwrap();
    let variables = [
        ("TOOLHOST_URL", &*host.url),
        ("TOOLHOST_ORG_API_KEY", &*host.org_key),
    ];
    let run = |arguments: &[&str]| toolkit(folder.path(), &variables, arguments);

    let shown = run(&["diff", &format!("{slug}@latest"), "new.wasm"]);
    assert_eq!(shown.code, Some(1), "{shown:#?}");
    let line = "input.said: is gone (breaks callers)";
    assert!(shown.stdout.contains(line), "{shown:#?}");
    let shown = run(&["diff", &format!("{slug}@20260101_00"), "new.wasm", "--json"]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(shown["breaking"], true);
    assert_eq!(shown["old"]["version"], "20260101_00");
    assert_eq!(shown["changes"][0]["breaks"], json!(["callers"]));
    let same = run(&["diff", "new.wasm", "new.wasm"]).succeeded();
    assert!(same.contains("no difference"), "{same}");
    let unknown = run(&["diff", "no_such_toolkit@latest", "new.wasm"]).failed();
    assert!(unknown.contains("not found"), "{unknown}");

    let refused = run(&["publish", "new.wasm"]).failed();
    assert!(
        refused.contains("is gone (breaks callers)") && refused.contains("--breaking"),
        "{refused}"
    );
    run(&["publish", "new.wasm", "--breaking"]).succeeded();
}
