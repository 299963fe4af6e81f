//! Settings of a project: each one is stored and takes effect.

use harness::{Host, guest, host::Setup};
use serde_json::{Value, json};

use crate::given;

const CONFIG_PATH: &str = "/org/project/config";

#[tokio::test]
async fn a_new_project_has_the_documented_settings() {
    let project = Host::shared().await.new_project().await;
    let config = project.get(CONFIG_PATH).await.expect(200);
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
    let mut expected = host.as_project().get(CONFIG_PATH).await.expect(200).json;
    for (name, value) in given.as_object().unwrap() {
        expected[name] = value.clone();
    }
    let changed = given::configure(&host.as_project(), given).await;
    assert_eq!(changed.json, expected);
    let again = host.kill().start().await;
    let project = again.as_project();
    let kept = project.get(CONFIG_PATH).await.expect(200);
    assert_eq!(kept.json, expected);
    let partly = json!({ "logo_url": "", "display_name": null });
    let cleared = given::configure(&project, partly).await;
    assert_eq!(cleared["logo_url"], Value::Null);
    assert_eq!(cleared["display_name"], "Acme");
    let unchanged = given::configure(&project, json!({})).await;
    assert_eq!(unchanged.json, cleared.json);
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
    assert_eq!(found["display_name"], "Acme");
    assert_eq!(found["signed_url_file_expiry_in_seconds"], 120);
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
    let values = json!({ "api_key": key });
    let toolkit = given::keyed().await;
    let account = project.connect(toolkit, "API_KEY", "ada", values).await;
    let project = project.may_show_secrets("masking is off for a while");
    for is_masked in [true, false, true] {
        let masking = json!({ "mask_secret_keys_in_connected_account": is_masked });
        given::configure(&project, masking).await;
        let shown = project.account(&account).await.text;
        assert_eq!(shown.contains(&key), !is_masked, "{shown}");
    }
}

#[tokio::test]
async fn disabled_data_storage_applies_immediately() {
    let project = Host::shared().await.new_project().await;
    let tool = given::shared_echo().await;
    let said = async |word: &str| {
        let ran = project.execute(tool, json!({ "word": word })).await;
        let log = project.log(&ran["log_id"]).await;
        log.text.contains(word)
    };
    assert!(said("spoken").await);
    let setting = json!({ "log_visibility_setting": "dont_store_data" });
    given::configure(&project, setting).await;
    assert!(!said("whispered").await);
}

#[tokio::test]
async fn pinned_account_needs_user_by_default() {
    let project = Host::shared().await.new_project().await;
    let account = project.connect_with_key(given::keyed().await, "ada").await;
    let path = format!("/tools/execute/{}", guest::tool(given::keyed().await));
    let url = "https://api.example.com/echo/pinned";
    let call = json!({ "arguments": { "url": url }, "version": "latest", "connected_account_id": account });
    let refused = project.post(&path, &call).await.expect(400);
    assert_eq!(refused["error"]["code"], 1811);
    given::configure(&project, json!({ "is_2FA_enabled": false })).await;
    project.post(&path, &call).await.data();
}

#[tokio::test]
async fn project_configs_are_independent() {
    let host = Host::shared().await;
    let (one, other) = (host.new_project().await, host.new_project().await);
    let settings = json!({ "display_name": "One", "require_mcp_api_key": true });
    given::configure(&one, settings).await;
    let other = other.get(CONFIG_PATH).await.expect(200);
    assert_eq!(other["display_name"], Value::Null);
    assert_eq!(other["require_mcp_api_key"], false);
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
        let made = project.post("/files/upload/request", &asked).await;
        let made = made.expect(200);
        let link = reqwest::Url::parse(made["new_presigned_url"].as_str().unwrap()).unwrap();
        let mut parameters = link.query_pairs();
        let (_, end) = parameters.find(|(name, _)| name == "expires").unwrap();
        end.parse::<i64>().unwrap()
    };
    let hour = ends().await;
    let week = json!({ "signed_url_file_expiry_in_seconds": 604_800 });
    given::configure(&project, week).await;
    assert!(
        ends().await - hour >= (604_800 - 3_600) * 1_000,
        "a week is longer than an hour"
    );
}
