//! The link page in a real browser, operated with the keyboard alone.

use harness::{Browser, Guest, Host, guest};
use serde_json::json;

use crate::{given, link::link};

#[tokio::test(flavor = "multi_thread")]
async fn link_page_works_with_keyboard_alone() {
    let (host, project) = Host::shared_with_project().await;
    given::configure(&project, json!({ "display_name": "Acme" })).await;
    let mut manifest = guest::manifest_with_key(&given::slug(), given::bearer());
    manifest["auth"][0]["fields"] = json!([
        { "name": "api_key", "title": "API key", "description": "Settings, then Keys.", "secret": true },
        { "name": "site", "title": "Site", "description": "The first part of your address.", "pattern": "[a-z]+", "suffix": ".example.com" },
        { "name": "region", "title": "Region", "one_of": ["eu", "us"], "default": "eu" },
    ]);
    host.publish(Guest::fetch().component(), &manifest).await;
    let slug = manifest["slug"].as_str().unwrap();
    let config = project.auth_config(slug, "API_KEY", json!({})).await;
    let done = format!("{}/echo/done", Host::application().origin);
    let (id, url) = link(&project, &config, json!({ "callback_url": done })).await;

    let key = format!("k-01{}", harness::secret());
    let mut browser = Browser::open(&url);
    browser.order("picture", "link-empty");
    assert_eq!(
        (browser.says("focused"), browser.says("label")),
        ("api_key", "API key"),
        "{}",
        browser.page
    );
    assert_eq!(browser.says("description"), "Settings, then Keys.");
    browser.order("type", &key);
    browser.order("press", "Tab");
    assert_eq!(
        (browser.says("focused"), browser.says("outline")),
        ("site", "solid"),
        "{}",
        browser.page
    );
    browser.order("type", "NO SITE");
    browser.order("send", "Enter");
    browser.order("picture", "link-wrong");
    assert!(
        browser.says("alert").contains("Enter all secrets again"),
        "{}",
        browser.page
    );
    assert_eq!(browser.says("focused"), "api_key", "{}", browser.page);
    browser.order("type", &key);
    browser.order("press", "Tab");
    assert_eq!(browser.says("focused"), "site");
    assert!(
        browser.says("description").len() > "The first part of your address.".len(),
        "{}",
        browser.page
    );
    browser.order("press", "Control+A");
    browser.order("type", "main");
    browser.order("press", "Tab");
    assert_eq!(browser.says("focused"), "region");
    browser.order("press", "ArrowDown");
    browser.order("press", "Tab");
    assert_eq!(
        (browser.says("focused"), browser.says("outline")),
        ("button", "solid"),
        "{}",
        browser.page
    );
    browser.order("picture", "link-right");
    // The browser itself reports a refused form.
    let problems = browser.page["problems"].as_array().unwrap().clone();
    assert!(
        problems
            .iter()
            .all(|problem| problem.as_str().unwrap().contains("status of 422")),
        "{problems:?}"
    );
    assert_eq!(browser.page["wide"], false);
    browser.order("send", "Enter");
    assert_eq!(
        browser.says("url"),
        format!("{done}?status=success&connected_account_id={id}")
    );
    let read = project.account(&id).await;
    let val = json!({ "api_key": "k-01...", "site": "main", "region": "us", "status": "ACTIVE" });
    assert_eq!(read["state"]["val"], val);
}

const LOGO_SVG: &str = r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><circle cx="4" cy="4" r="4"/></svg>"#;

/// Looks at a page on a phone and on a desktop, in both color schemes. It never needs a scroll to
/// the side.
fn look_everywhere(browser: &mut Browser, name: &str) {
    let mut backgrounds = Vec::new();
    for width in [320, 1280] {
        browser.order("width", &width.to_string());
        for colors in ["light", "dark"] {
            browser.order("colors", colors);
            browser.order("picture", &format!("{name}-{width}-{colors}"));
            assert_eq!(browser.page["wide"], false, "{name}: {width}");
            backgrounds.push(browser.says("background").to_owned());
        }
    }
    assert_ne!(backgrounds[2], backgrounds[3], "{name}");
}

#[tokio::test(flavor = "multi_thread")]
async fn link_page_shows_logos_and_scopes_in_words() {
    let (host, project) = Host::shared_with_project().await;
    let mut manifest = guest::manifest(&given::slug());
    manifest["name"] = json!("Mail");
    manifest["logo"] = json!(LOGO_SVG);
    manifest["auth"] = json!([Host::application().issuer(&harness::unique(8)).scheme()]);
    host.publish(Guest::echo().component(), &manifest).await;
    let toolkit = manifest["slug"].as_str().unwrap();
    let logo = format!("{}/logos/{toolkit}", host.url);
    let settings = json!({ "display_name": "Acme Assistant", "logo_url": logo });
    given::configure(&project, settings).await;
    let scopes = "https://mail.example.com/auth/messages.readonly, calendar:write, offline_access";
    let credentials =
        json!({ "client_id": "c", "client_secret": harness::secret(), "scopes": scopes });
    let config = project.auth_config(toolkit, "OAUTH2", credentials).await;
    let (_, url) = link(&project, &config, json!({})).await;
    let page = given::open(&project, &url).await;
    let shown = String::from_utf8_lossy(&page.bytes);
    for words in ["Read messages", "Write calendar", "Stay connected"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let mut browser = Browser::open(&url);
    assert_eq!(browser.page["images"], 2, "{}", browser.page);
    assert_eq!(browser.page["problems"], json!([]));
    look_everywhere(&mut browser, "link-scopes");
    browser.order("open", &format!("{}/link/lt_unknown", host.url));
    look_everywhere(&mut browser, "link-unknown");
}

#[tokio::test(flavor = "multi_thread")]
async fn link_page_states_problems_for_people() {
    let (host, project) = Host::shared_with_project().await;
    let mut manifest = guest::manifest_with_key(&given::slug(), given::bearer());
    manifest["name"] = json!("Mail");
    manifest["auth"][0]["fields"] = json!([
        { "name": "api_key", "title": "API key", "secret": true },
        { "name": "site", "title": "Site", "pattern": "[a-z]+", "optional": true },
    ]);
    let verify = json!({ "method": "GET", "url": "https://api.example.com/status/link/401" });
    manifest["auth"][0]["verify"] = verify;
    host.publish(Guest::fetch().component(), &manifest).await;
    let toolkit = manifest["slug"].as_str().unwrap();
    let config = project.auth_config(toolkit, "API_KEY", json!({})).await;
    let (_, url) = link(&project, &config, json!({})).await;
    let mut browser = Browser::open(&url);
    browser.order("type", &harness::secret());
    browser.order("press", "Tab");
    browser.order("type", "NO SITE");
    browser.order("send", "Enter");
    browser.order("press", "Tab");
    assert_eq!(
        browser.says("description"),
        "The value does not have the expected form."
    );
    look_everywhere(&mut browser, "link-form");
    browser.order("press", "Control+A");
    browser.order("type", "main");
    browser.order("press", "Shift+Tab");
    browser.order("type", &harness::secret());
    browser.order("send", "Enter");
    let alert = browser.says("alert").to_owned();
    assert!(
        alert.contains("Mail was not connected: it did not accept the values")
            && !alert.contains("401"),
        "{alert}"
    );
    look_everywhere(&mut browser, "link-rejected");
}

#[tokio::test(flavor = "multi_thread")]
async fn documentation_page_is_readable_on_a_phone() {
    let host = Host::shared().await;
    let mut browser = Browser::open(&format!("{}/docs", host.url));
    assert_eq!(browser.page["problems"], json!([]));
    look_everywhere(&mut browser, "docs");
    browser.order("open", &format!("{}/", host.url));
    look_everywhere(&mut browser, "home");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_accessible_in_both_schemes() {
    let host = Host::shared().await;
    let mut browser = Browser::open(&host.url);
    for path in ["", "/nothing/here", "/docs"] {
        for colors in ["light", "dark"] {
            browser.order("colors", colors);
            browser.order("open", "about:blank");
            browser.order("open", &format!("{}{path}", host.url));
            assert_eq!(browser.audit(), json!([]), "{path}, {colors}");
        }
    }
}
