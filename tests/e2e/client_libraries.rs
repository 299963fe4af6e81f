//! Applications that use the API with client libraries.

use std::{fs, time::Duration};

use harness::{
    Guest, Host,
    assistants::{Assistant, Library},
    guest,
    host::Setup,
    unique,
};
use serde_json::{Value, json};

use crate::{documents, files, given};

/// Time in which all frameworks load and convert every tool: most of a minute of one processor, which
/// other tests use as well.
const CONVERSION_TIMEOUT: Duration = Duration::from_secs(600);

/// Folder of the newest client library for Python.
const NEWEST_CLIENT: &str = "composio-0.30.0";
/// Folder of a client library that takes files from servers on loopback, which newer ones refuse.
const OLDER_CLIENT: &str = "composio-0.10.10";

#[tokio::test]
async fn newest_client_libraries_understand_the_api() {
    let host = Setup::new().with("operator_word", "composio");
    let host = host.start().await;
    let (slug, mut manifest) = given::manifest_with_key();
    manifest["triggers"] = json!([given::trigger(&slug, "POSTED")]);
    manifest["tools"][0]["no_auth"] = json!(true);
    manifest["tools"][0]["description"] = json!(format!("Weighs parcels of {slug}."));
    host.publish(Guest::echo().component(), &manifest).await;
    for library in Library::ALL {
        let project = host.new_project().await;
        let config = project.auth_config(&slug, "API_KEY", json!({})).await;
        let scheme = match library {
            Library::Python => "auth_scheme",
            Library::JavaScript => "authScheme",
        };
        let options = json!({
            "url": host.url, "key": project.key(), "tool": guest::tool(&slug), "arguments": { "a": 1 },
            "use_case": format!("weigh a parcel of {slug}"), "toolkit": slug, "asked_toolkit": slug,
            "trigger": given::trigger(&slug, "POSTED")["slug"], "config": {},
            "auth_config": config,
            "state": { scheme: "API_KEY", "val": { "api_key": harness::secret() } },
        });
        let application = Assistant::start_script(library, NEWEST_CLIENT, "client", &options);
        let report = application.report().await;
        assert_eq!(report["account"], "ACTIVE", "{library:?}: {report}");
        assert_eq!(report["triggers"], 1, "{library:?}: {report}");
        assert_eq!(
            report["found"][0],
            guest::tool(&slug),
            "{library:?}: {report}"
        );
        assert_eq!(report["ran"]["a"], 1, "{library:?}: {report}");
        assert_eq!(report["approved"], "completed", "{library:?}: {report}");
        assert_eq!(report["denied"], "failed", "{library:?}: {report}");
        let link = report["link"].as_str().unwrap();
        assert!(link.starts_with(&host.url), "{library:?}: {report}");
    }
}

#[tokio::test]
async fn frameworks_take_every_tool() {
    let (shipped, other) = (documents::host().await, Host::shared().await);
    let (slug, mut manifest) = given::manifest();
    manifest["tools"][0]["input"] = odd_arguments();
    other.publish(Guest::echo().component(), &manifest).await;
    let shipped_slugs = documents::built_slugs();
    let mut expected = 1;
    for slug in &shipped_slugs {
        let path = format!("/tools?toolkit_slug={slug}&limit=1");
        let tools = shipped.as_project().get(&path).await.expect(200);
        expected += tools["total_items"].as_u64().unwrap();
    }
    let servers = json!([
        { "url": shipped.url, "key": shipped.as_project().key(), "toolkits": shipped_slugs },
        { "url": other.url, "key": other.as_project().key(), "toolkits": [slug] },
    ]);
    let script = "converters";
    let converters = Assistant::start_script(Library::Python, NEWEST_CLIENT, script, &servers);
    let report = converters.report_within(CONVERSION_TIMEOUT).await;
    for (framework, taken) in report.as_object().unwrap() {
        assert_eq!(taken["refused"], json!({}), "{framework}");
        assert_eq!(taken["given"], expected, "{framework}");
    }
}

/// Returns the schema of arguments with the keywords that converters differ in.
fn odd_arguments() -> Value {
    let file = json!({ "type": "object", "file_uploadable": true, "properties": { "s3key": { "type": "string" } } });
    let properties = json!({
        "file": file,
        "files": { "type": "array", "items": file, "uniqueItems": true },
        "optional_file": { "anyOf": [file, { "type": "null" }] },
        "number": { "enum": [1, 2, null] },
        "code": { "type": ["string", "null"], "pattern": "^a", "examples": ["a"] },
        "above": { "type": "integer", "exclusiveMinimum": 0 },
        "choice": { "oneOf": [{ "const": "a", "title": "A" }, { "const": "b" }] },
        "any": {},
    });
    json!({ "type": "object", "properties": properties })
}

#[tokio::test]
async fn older_client_libraries_exchange_files() {
    let host = Host::shared().await;
    let tool = guest::tool(&files::copier(host).await);
    for library in Library::ALL {
        let project = host.new_project().await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("note.txt");
        let content = unique(100);
        fs::write(&file, &content).unwrap();
        let options = json!({
            "url": host.url, "key": project.key(), "tool": tool, "file": file, "folder": folder.path(),
        });
        let application = Assistant::start_script(library, OLDER_CLIENT, "files", &options);
        let report = application.report().await;
        assert_eq!(report["content"], content, "{library:?}: {report}");
    }
}
