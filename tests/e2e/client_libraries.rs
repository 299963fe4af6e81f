//! Applications that use the API with the newest client libraries.

use harness::{
    Guest,
    assistants::{Assistant, Library},
    guest,
    host::Setup,
};
use serde_json::json;

use crate::given;

#[tokio::test]
async fn newest_client_libraries_understand_the_api() {
    let host = Setup::new().with("operator_word", "composio");
    let host = host.start().await;
    let slug = given::slug();
    let mut manifest = guest::manifest_with_key(&slug, given::bearer());
    manifest["triggers"] = json!([given::trigger(&slug, "POSTED")]);
    manifest["tools"][0]["no_auth"] = json!(true);
    manifest["tools"][0]["description"] = json!(format!("Weighs parcels of {slug}."));
    host.publish(Guest::echo().component(), &manifest).await;
    for library in Library::ALL {
        let project = host.new_project().await;
        let scheme =
            json!({ "type": "use_custom_auth", "authScheme": "API_KEY", "credentials": {} });
        let config = json!({ "toolkit": { "slug": slug }, "auth_config": scheme });
        let config = project.post("/auth_configs", &config).await.expect(201);
        let scheme = match library {
            Library::Python => "auth_scheme",
            Library::JavaScript => "authScheme",
        };
        let options = json!({
            "url": host.url, "key": project.key(), "tool": guest::tool(&slug), "arguments": { "a": 1 },
            "use_case": format!("weigh a parcel of {slug}"), "toolkit": slug, "asked_toolkit": slug,
            "trigger": given::trigger(&slug, "POSTED")["slug"], "config": {},
            "auth_config": config["auth_config"]["id"],
            "state": { scheme: "API_KEY", "val": { "api_key": harness::secret() } },
        });
        let report = Assistant::start_application(library, &options)
            .report()
            .await;
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
