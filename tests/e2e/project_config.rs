//! Settings of a project: each one is stored and takes effect.

use harness::{Host, guest, host::Setup};
use serde_json::{Value, json};

use crate::given;

const CONFIG_PATH: &str = "/org/project/config";
const LOGS_PATH: &str = "/logs/tool_execution";

#[tokio::test]
async fn a_new_project_has_the_documented_settings() {
    let config = Host::shared()
        .await
        .new_project()
        .await
        .get(CONFIG_PATH)
        .await
        .expect(200);
    let expected = json!({
        "is_2FA_enabled": true,
        "mask_secret_keys_in_connected_account": true,
        "log_visibility_setting": "show_all",
        "require_mcp_api_key": false,
        "is_service_link_enabled_for_managed_auth": true,
        "signed_url_file_expiry_in_seconds": 3600,
    });
    assert_eq!(config.json, expected);
}

#[tokio::test]
async fn config_patch_keeps_unnamed_fields() {
    let host = Setup::new().start().await;
    let given = json!({
        "logo_url": "https://example.com/logo.svg",
        "display_name": "Acme",
        "require_mcp_api_key": true,
        "is_service_link_enabled_for_managed_auth": false,
        "signed_url_file_expiry_in_seconds": 90,
        "oauth_callback_verifier_url": "https://example.com/verify",
    });
    let before = host.as_project().get(CONFIG_PATH).await.expect(200);
    let changed = host
        .as_project()
        .patch(CONFIG_PATH, &given)
        .await
        .expect(200);
    let mut expected = before.json.clone();
    for (name, value) in given.as_object().unwrap() {
        expected[name] = value.clone();
    }
    assert_eq!(changed.json, expected);
    let again = host.kill().start().await;
    assert_eq!(
        again.as_project().get(CONFIG_PATH).await.expect(200).json,
        expected
    );
    let cleared = again
        .as_project()
        .patch(
            CONFIG_PATH,
            &json!({ "logo_url": "", "display_name": null }),
        )
        .await
        .expect(200);
    assert_eq!(
        (&cleared["logo_url"], &cleared["display_name"]),
        (&Value::Null, &"Acme".into())
    );
    assert_eq!(
        again
            .as_project()
            .patch(CONFIG_PATH, &json!({}))
            .await
            .expect(200)
            .json,
        cleared.json
    );
}

#[tokio::test]
async fn invalid_config_value_changes_nothing() {
    let project = Host::shared().await.new_project().await;
    let before = project.get(CONFIG_PATH).await.expect(200);
    for bad in [
        json!({ "logo_url": "javascript:alert(1)" }),
        json!({ "display_name": "x".repeat(101) }),
        json!({ "display_name": "a\u{202e}b" }),
        json!({ "display_name": "a\nb" }),
        json!({ "signed_url_file_expiry_in_seconds": 1 }),
        json!({ "signed_url_file_expiry_in_seconds": -7 }),
        json!({ "signed_url_file_expiry_in_seconds": 10_000_000 }),
        json!({ "oauth_callback_verifier_url": "ftp://example.com" }),
        json!({ "log_visibility_setting": "some" }),
        json!({ "is_2FA_enabled": "yes" }),
        json!({ "is_service_link_enabled_for_managed_auth": "no" }),
    ] {
        project.patch(CONFIG_PATH, &bad).await.expect(400);
    }
    assert_eq!(project.get(CONFIG_PATH).await.expect(200).json, before.json);
}

#[tokio::test]
async fn new_project_takes_its_config() {
    let host = Host::shared().await;
    let settings = json!({ "display_name": "Acme", "signed_url_file_expiry_in_seconds": 120 });
    let (_, project) = given::project(host, settings).await;
    let found = project.get(CONFIG_PATH).await.expect(200);
    assert_eq!(
        (
            &found["display_name"],
            &found["signed_url_file_expiry_in_seconds"]
        ),
        (&"Acme".into(), &120.into())
    );
    let body = json!({ "name": harness::unique(8), "config": { "logo_url": "nowhere" } });
    host.as_org()
        .post("/org/owner/project/new", &body)
        .await
        .expect(400);
}

#[tokio::test]
async fn disabled_masking_applies_immediately() {
    let project = Host::shared().await.new_project().await;
    let key = harness::secret();
    let account = project
        .connect(
            given::keyed().await,
            "API_KEY",
            "ada",
            json!({ "api_key": key }),
        )
        .await;
    let path = format!("/connected_accounts/{account}");
    assert!(!project.get(&path).await.expect(200).text.contains(&key));
    project
        .patch(
            CONFIG_PATH,
            &json!({ "mask_secret_keys_in_connected_account": false }),
        )
        .await
        .expect(200);
    let open = project.clone().may_show_secrets("masking is off");
    assert!(open.get(&path).await.expect(200).text.contains(&key));
    project
        .patch(
            CONFIG_PATH,
            &json!({ "mask_secret_keys_in_connected_account": true }),
        )
        .await
        .expect(200);
    assert!(!project.get(&path).await.expect(200).text.contains(&key));
}

#[tokio::test]
async fn disabled_data_storage_applies_immediately() {
    let project = Host::shared().await.new_project().await;
    let tool = given::shared_echo().await;
    let said = async |word: &str| {
        let ran = project
            .execute(tool, json!({ "word": word }))
            .await
            .expect(200);
        let detail = project
            .get(&format!("{LOGS_PATH}/{}", ran["log_id"].as_str().unwrap()))
            .await
            .expect(200);
        detail.text.contains(word)
    };
    assert!(said("spoken").await);
    project
        .patch(
            CONFIG_PATH,
            &json!({ "log_visibility_setting": "dont_store_data" }),
        )
        .await
        .expect(200);
    assert!(!said("whispered").await);
}

#[tokio::test]
async fn pinned_account_needs_user_by_default() {
    let project = Host::shared().await.new_project().await;
    let account = project.connect_with_key(given::keyed().await, "ada").await;
    let path = format!("/tools/execute/{}", guest::tool(given::keyed().await));
    let url = "https://api.example.com/echo/pinned";
    let call = json!({ "arguments": { "url": url }, "version": "latest", "connected_account_id": account });
    assert_eq!(
        project.post(&path, &call).await.expect(400)["error"]["code"],
        1811
    );
    project
        .patch(CONFIG_PATH, &json!({ "is_2FA_enabled": false }))
        .await
        .expect(200);
    project.post(&path, &call).await.data();
}

#[tokio::test]
async fn project_configs_are_independent() {
    let host = Host::shared().await;
    let (one, other) = (host.new_project().await, host.new_project().await);
    one.patch(
        CONFIG_PATH,
        &json!({ "display_name": "One", "require_mcp_api_key": true }),
    )
    .await
    .expect(200);
    let other = other.get(CONFIG_PATH).await.expect(200);
    assert_eq!(
        (&other["display_name"], &other["require_mcp_api_key"]),
        (&Value::Null, &false.into())
    );
}

#[tokio::test]
async fn file_link_ttl_follows_project_config() {
    let project = Host::shared().await.new_project().await;
    let slug = given::keyed().await;
    let asked = json!({
        "toolkit_slug": slug, "tool_slug": guest::tool(slug), "filename": "a.txt", "mimetype": "text/plain",
        "md5": "900150983cd24fb0d6963f7d28e17f72",
    });
    let ends = async || {
        let link = project
            .post("/files/upload/request", &asked)
            .await
            .expect(200);
        let link = reqwest::Url::parse(link["new_presigned_url"].as_str().unwrap()).unwrap();
        let end = link
            .query_pairs()
            .find(|(name, _)| name == "expires")
            .unwrap()
            .1
            .parse::<i64>();
        end.unwrap()
    };
    let hour = ends().await;
    project
        .patch(
            CONFIG_PATH,
            &json!({ "signed_url_file_expiry_in_seconds": 604_800 }),
        )
        .await
        .expect(200);
    assert!(
        ends().await - hour >= (604_800 - 3_600) * 1_000,
        "a week is longer than an hour"
    );
}
