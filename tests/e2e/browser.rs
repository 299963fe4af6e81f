//! The link page in a real browser, operated with the keyboard alone.

use harness::{Browser, Guest, Host, guest};
use serde_json::json;

use crate::given;

#[tokio::test(flavor = "multi_thread")]
async fn link_page_works_with_keyboard_alone() {
    let host = Host::shared().await;
    let project = host.new_project().await;
    project
        .patch("/org/project/config", &json!({ "display_name": "Acme" }))
        .await
        .expect(200);
    let mut manifest = guest::manifest_with_key(&given::slug(), given::bearer());
    manifest["auth"][0]["fields"] = json!([
        { "name": "api_key", "title": "API key", "description": "Settings, then Keys.", "secret": true },
        { "name": "site", "title": "Site", "description": "The first part of your address.", "pattern": "[a-z]+", "suffix": ".example.com" },
        { "name": "region", "title": "Region", "one_of": ["eu", "us"], "default": "eu" },
    ]);
    host.publish(Guest::fetch().component(), &manifest).await;
    let config = json!({ "type": "use_custom_auth", "authScheme": "API_KEY", "credentials": {} });
    let config = json!({ "toolkit": { "slug": manifest["slug"] }, "auth_config": config });
    let config =
        project.post("/auth_configs", &config).await.expect(201)["auth_config"]["id"].clone();
    let done = format!("{}/echo/done", Host::application().origin);
    let link = json!({ "auth_config_id": config, "user_id": "amy", "callback_url": done });
    let link = project
        .post("/connected_accounts/link", &link)
        .await
        .expect(201);
    let id = link["connected_account_id"].as_str().unwrap();

    let key = format!("k-01{}", harness::secret());
    let mut browser = Browser::open(link["redirect_url"].as_str().unwrap());
    browser.picture("link-empty");
    assert_eq!(
        (browser.says("focused"), browser.says("label")),
        ("api_key", "API key"),
        "{}",
        browser.page
    );
    assert_eq!(browser.says("description"), "Settings, then Keys.");
    browser.write(&key);
    browser.press("Tab");
    assert_eq!(
        (browser.says("focused"), browser.says("outline")),
        ("site", "solid"),
        "{}",
        browser.page
    );
    browser.write("NO SITE");
    browser.send("Enter");
    browser.picture("link-wrong");
    assert!(
        browser.says("alert").contains("Enter all secrets again"),
        "{}",
        browser.page
    );
    assert_eq!(browser.says("focused"), "api_key", "{}", browser.page);
    browser.write(&key);
    browser.press("Tab");
    assert_eq!(browser.says("focused"), "site");
    assert!(
        browser.says("description").len() > "The first part of your address.".len(),
        "{}",
        browser.page
    );
    browser.press("Control+A");
    browser.write("main");
    browser.press("Tab");
    assert_eq!(browser.says("focused"), "region");
    browser.press("ArrowDown");
    browser.press("Tab");
    assert_eq!(
        (browser.says("focused"), browser.says("outline")),
        ("button", "solid"),
        "{}",
        browser.page
    );
    browser.picture("link-right");
    // The browser itself reports a refused form.
    let problems = browser.page["problems"].as_array().unwrap().clone();
    assert!(
        problems
            .iter()
            .all(|problem| problem.as_str().unwrap().contains("status of 422")),
        "{problems:?}"
    );
    assert_eq!(browser.page["wide"], false);
    browser.send("Enter");
    assert_eq!(
        browser.says("url"),
        format!("{done}?status=success&connected_account_id={id}")
    );
    let read = project
        .get(&format!("/connected_accounts/{id}"))
        .await
        .expect(200);
    let val = json!({ "api_key": "k-01...", "site": "main", "region": "us", "status": "ACTIVE" });
    assert_eq!(read["state"]["val"], val);
}
