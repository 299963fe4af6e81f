//! Trigger types of published toolkits.

use harness::{Guest, Host};
use serde_json::{Value, json};

use crate::given;

/// Publishes two versions of a toolkit with a polling and a webhook trigger. The newer version asks
/// for a word. Returns the slug of the toolkit.
async fn two_versions(host: &Host) -> String {
    let (slug, mut manifest) = given::manifest();
    manifest["triggers"] = json!([given::trigger(&slug, "POSTED"), given::arrived(&slug)]);
    host.publish(Guest::echo().component(), &manifest).await;
    manifest["version"] = json!("20260202_00");
    manifest["triggers"][0]["config"] = with_word();
    host.publish(Guest::echo().component(), &manifest).await;
    slug
}

fn with_word() -> Value {
    json!({ "type": "object", "properties": { "word": { "type": "string" } } })
}

#[tokio::test]
async fn toolkits_trigger_types_are_listed_with_schemas() {
    let (host, project) = Host::shared_with_project().await;
    let slug = two_versions(host).await;
    let upper = slug.to_uppercase();
    let path = format!("/triggers_types?toolkit_slugs={slug}");
    let listed = project.get(&path).await.expect(200);
    assert_eq!(listed["total_items"], 2, "{listed:#?}");
    let [polling, webhook] = [0, 1].map(|index| listed["items"][index].clone());
    assert_eq!(polling["slug"], format!("{upper}_POSTED"));
    assert_eq!(polling["type"], "poll");
    assert_eq!(polling["toolkit"]["slug"], slug);
    assert_eq!(polling["version"], "20260202_00");
    assert_eq!(polling["config"], with_word());
    assert_eq!(polling["payload"], json!({ "type": "object" }));
    assert_eq!(polling["requires_webhook_endpoint_setup"], false);
    assert_eq!(webhook["type"], "webhook");
    assert_eq!(polling["types"], json!(["poll"]));
    assert_eq!(webhook["types"], json!(["webhook"]));
    assert_eq!(webhook["requires_webhook_endpoint_setup"], true);
    let slugs = project.get("/triggers_types/list/enum").await.expect(200);
    let slugs = slugs.json.as_array().unwrap();
    for trigger in [polling, webhook] {
        assert!(slugs.contains(&trigger["slug"]), "{slugs:?}");
    }
}

#[tokio::test]
async fn trigger_type_is_read_in_selected_version() {
    let (host, project) = Host::shared_with_project().await;
    let slug = two_versions(host).await;
    let path = format!("/triggers_types/{slug}_posted");
    for (query, version) in [
        (String::new(), "20260202_00"),
        ("?toolkit_versions=20260101_00".to_owned(), "20260101_00"),
        (
            format!("?toolkit_versions%5B{slug}%5D=20260101_00"),
            "20260101_00",
        ),
        (
            "?toolkit_versions[other]=20260101_00".to_owned(),
            "20260202_00",
        ),
    ] {
        for client in [project.clone(), project.clone().with_newer_prefix()] {
            let read = client.get(&format!("{path}{query}")).await.expect(200);
            assert_eq!(read["version"], version, "{query}");
        }
    }
    for unknown in [
        format!("{path}?toolkit_versions=20250101_00"),
        format!("{path}_else"),
    ] {
        let refused = project.get(&unknown).await;
        refused.expect_error(404, "TriggerType_NotFound");
    }
}
