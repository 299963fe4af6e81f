//! The page of a link, on which a user connects an account.

use harness::{Client, Guest, Host, Issuer, client::RawResponse, guest, wait_until};
use reqwest::Method;
use serde_json::{Value, json};

use crate::given::{self, Oauth, status};

/// A browser with its only cookie.
pub(crate) struct Browser<'a> {
    client: &'a Client,
    cookie: String,
}

impl<'a> Browser<'a> {
    pub(crate) fn new(client: &'a Client) -> Self {
        Self {
            client,
            cookie: String::new(),
        }
    }

    pub(crate) async fn open(&mut self, url: &str) -> RawResponse {
        let cookie = [("cookie", &*self.cookie)];
        let page = self.client.exchange(Method::GET, url, &cookie, Vec::new());
        let page = page.await;
        if let Some((cookie, _)) = page.header("set-cookie").split_once(';') {
            self.cookie = cookie.to_owned();
        }
        page
    }

    pub(crate) async fn send(&self, url: &str, fields: &[(&str, &str)]) -> RawResponse {
        let form = reqwest::Url::parse_with_params("http://form.example", fields).unwrap();
        let headers = [
            ("cookie", &*self.cookie),
            ("content-type", "application/x-www-form-urlencoded"),
        ];
        let body = form.query().unwrap_or_default().into();
        self.client
            .exchange(Method::POST, url, &headers, body)
            .await
    }

    /// Sends the form of a page with nothing but its token.
    async fn confirm(&self, url: &str, token: &str) -> RawResponse {
        self.send(url, &[("form-token", token)]).await
    }
}

/// Returns the form token, which protects the page against cross-site request forgery.
pub(crate) fn form_token(page: &RawResponse) -> String {
    let text = page.text();
    let value = text
        .split_once("name=\"form-token\" value=\"")
        .expect("the form has its token")
        .1;
    value.split_once('"').unwrap().0.to_owned()
}

pub(crate) async fn link(project: &Client, config: &str, more: Value) -> (String, String) {
    let body = json!({ "auth_config_id": config, "user_id": "default", "callback_url": "https://app.example/done?a=1" });
    let body = given::merged(body, &more);
    let made = project.post("/connected_accounts/link", &body).await;
    let made = made.expect(201);
    let url = made["redirect_url"].as_str().unwrap().to_owned();
    assert!(
        url.ends_with(&format!("/link/{}", made["link_token"].as_str().unwrap())),
        "{made:?}"
    );
    (
        made["connected_account_id"].as_str().unwrap().to_owned(),
        url,
    )
}

/// Returns the address at which the user of a pending account continues, as lists and the account
/// itself show it.
async fn shown_url(project: &Client, id: &str) -> Value {
    let read = project.account(id).await;
    let listed = format!("/connected_accounts?connected_account_ids={id}");
    let listed = project.get(&listed).await.expect(200);
    let url = read["state"]["val"]["redirectUrl"].clone();
    assert_eq!(listed["items"][0]["state"]["val"]["redirectUrl"], url);
    url
}

#[tokio::test]
async fn link_page_connects_an_account() {
    let host = Host::shared().await;
    let (project, oauth) = Oauth::in_new_project().await;
    given::configure(&project, json!({ "display_name": "Acme <b>&" })).await;
    let (id, url) = link(&project, &oauth.config, json!({})).await;
    assert_eq!(status(&project, &id).await, "INITIATED");
    assert_eq!(shown_url(&project, &id).await, json!(url));
    let (anonymous, mut browser) = (host.anonymous(), Browser::new(&project));
    let page = browser.open(&url).await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    let text = page.text();
    assert!(
        text.contains("Acme &#60;b&#62;&#38;") && !text.contains("<script"),
        "{text}"
    );
    let policy = page.header("content-security-policy");
    for part in [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    for (name, value) in [
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
        ("x-frame-options", "DENY"),
    ] {
        assert_eq!(page.header(name), value);
    }
    let cookie = page.header("set-cookie");
    assert!(
        cookie.contains("HttpOnly")
            && cookie.contains("SameSite=Lax")
            && cookie.contains("Path=/;"),
        "{cookie}"
    );
    let away = browser.confirm(&url, &form_token(&page)).await;
    assert_eq!(away.status, 303, "{}", away.text());
    let back = oauth.issuer.visit(away.header("location")).await;
    for other in ["", "toolhost=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
        let elsewhere = anonymous
            .exchange(Method::GET, &back, &[("cookie", other)], Vec::new())
            .await;
        assert_eq!(elsewhere.status, 400, "another browser came back");
    }
    assert_eq!(oauth.issuer.granted("authorization_code"), 0);
    let landed = browser.open(&back).await;
    let expected = format!("https://app.example/done?a=1&status=success&connected_account_id={id}");
    assert_eq!(landed.status, 302);
    assert_eq!(landed.header("location"), &*expected);
    assert_eq!(status(&project, &id).await, "ACTIVE");
    let reused = browser.open(&url).await;
    assert_eq!(reused.status, 410);
    // The second is the link back to the application.
    for part in ["was used", "https://app.example/done?a=1"] {
        assert!(reused.text().contains(part), "{part}: {}", reused.text());
    }
    let again = browser.confirm(&url, &form_token(&page)).await;
    assert_eq!(again.status, 410);
    oauth.execute(&project).await.data();
}

#[tokio::test]
async fn link_page_reports_errors_without_secrets() {
    let (host, project) = Host::shared_with_project().await;
    let (slug, mut manifest) = given::manifest_with_key();
    let field = |name: &str, secret: bool, pattern: Value| json!({ "name": name, "title": name, "description": "Where <it> is", "secret": secret, "pattern": pattern });
    manifest["auth"][0]["fields"] = json!([
        field("api_key", true, "k-01[a-z0-9]+".into()),
        field("region", false, Value::Null),
        field("site", false, "[a-z]+".into())
    ]);
    host.publish(Guest::fetch().component(), &manifest).await;
    let config = project.auth_config(&slug, "API_KEY", json!({})).await;
    let region = json!({ "connection_data": { "region": "eu\"west" } });
    let (id, url) = link(&project, &config, region).await;
    assert_eq!(status(&project, &id).await, "INITIALIZING");
    let mut browser = Browser::new(&project);
    let page = browser.open(&url).await;
    let shown = page.text();
    assert!(
        shown.contains("value=\"eu&#34;west\"") && shown.contains("Where &#60;it&#62; is"),
        "{shown}"
    );
    assert!(
        shown.contains("name=\"api_key\"") && shown.contains("type=\"password\""),
        "{shown}"
    );
    let token = form_token(&page);
    let key = format!("k-01{}", harness::secret());
    let values = [("form-token", &*token), ("api_key", &*key)];
    let wrong = [&values[..], &[("site", "NO <site>")]].concat();
    let wrong = browser.send(&url, &wrong).await;
    let shown = wrong.text();
    assert_eq!(wrong.status, 422);
    assert!(
        shown.contains("value=\"NO &#60;site&#62;\"") && shown.contains("aria-invalid=\"true\""),
        "{shown}"
    );
    assert!(!shown.contains(&key), "{shown}");
    assert_eq!(status(&project, &id).await, "INITIALIZING");
    let right = [&values[..], &[("site", "main"), ("stranger", "x")]].concat();
    let done = browser.send(&url, &right).await;
    let expected = format!("https://app.example/done?a=1&status=success&connected_account_id={id}");
    assert_eq!((done.status, done.header("location")), (303, &*expected));
    let read = project.account(&id).await;
    let val =
        json!({ "api_key": "k-01...", "region": "eu\"west", "site": "main", "status": "ACTIVE" });
    assert_eq!(read["status"], "ACTIVE");
    assert_eq!(read["state"]["val"], val);
    let tag = harness::unique(8);
    let arguments = json!({ "url": format!("https://api.example.com/echo/{tag}") });
    project.execute(&guest::tool(&slug), arguments).await.data();
    let seen = &Host::application().seen(&tag)[0];
    assert_eq!(seen.header("authorization"), format!("Bearer {key}"));
}

#[tokio::test]
async fn form_token_is_bound_to_the_browser() {
    let (project, oauth) = Oauth::in_new_project().await;
    let (id, url) = link(&project, &oauth.config, json!({})).await;
    let (other_id, other_url) = link(&project, &oauth.config, json!({})).await;
    let (mut browser, mut other) = (Browser::new(&project), Browser::new(&project));
    let token = form_token(&browser.open(&url).await);
    let others = form_token(&other.open(&url).await);
    let of_other_link = form_token(&browser.open(&other_url).await);
    for token in ["", "x", &others, &of_other_link] {
        assert_eq!(browser.confirm(&url, token).await.status, 400, "{token}");
    }
    for elsewhere in [&Browser::new(&project), &other] {
        assert_eq!(elsewhere.confirm(&url, &token).await.status, 400);
    }
    for id in [&id, &other_id] {
        assert_eq!(status(&project, id).await, "INITIATED");
    }
    assert_eq!(browser.confirm(&url, &token).await.status, 303);
}

#[tokio::test]
async fn first_callback_of_two_tabs_connects() {
    let (project, oauth) = Oauth::in_new_project().await;
    let (id, url) = link(&project, &oauth.config, json!({})).await;
    let mut browser = Browser::new(&project);
    let token = form_token(&browser.open(&url).await);
    let mut backs = Vec::new();
    for _ in 0..2 {
        let away = browser.confirm(&url, &token).await;
        backs.push(oauth.issuer.visit(away.header("location")).await);
    }
    assert_eq!(browser.open(&backs[1]).await.status, 302);
    assert_eq!(browser.open(&backs[0]).await.status, 400);
    assert_eq!(
        (
            status(&project, &id).await,
            oauth.issuer.granted("authorization_code")
        ),
        ("ACTIVE".into(), 1)
    );
}

/// Opens a link in a browser, and returns the address of the callback that the provider answers with.
async fn visited(browser: &mut Browser<'_>, oauth: &Oauth, url: &str) -> String {
    let token = form_token(&browser.open(url).await);
    let away = browser.confirm(url, &token).await;
    assert_eq!(away.status, 303, "{}", away.text());
    oauth.issuer.visit(away.header("location")).await
}

#[tokio::test]
async fn repeated_callback_has_the_first_result() {
    let (project, oauth) = Oauth::in_new_project().await;
    let (id, url) = link(&project, &oauth.config, json!({})).await;
    let mut browser = Browser::new(&project);
    let back = visited(&mut browser, &oauth, &url).await;
    for (method, name, value) in [
        (Method::GET, "sec-purpose", "prefetch;prerender"),
        (Method::GET, "purpose", "prefetch"),
        (Method::GET, "x-moz", "prefetch"),
        (Method::HEAD, "accept", "*/*"),
    ] {
        let headers = [(name, value), ("cookie", &*browser.cookie)];
        let early = project.exchange(method, &back, &headers, Vec::new());
        assert_eq!(early.await.status, 503);
    }
    assert_eq!(oauth.issuer.granted("authorization_code"), 0);
    oauth.issuer.hold(true);
    let cookie = [("cookie", &*browser.cookie)];
    let open = || project.exchange(Method::GET, &back, &cookie, Vec::new());
    let (first, second, ()) = tokio::join!(open(), open(), async {
        oauth.issuer.wait_for("authorization_code", 1).await;
        oauth.issuer.hold(false);
    });
    let expected = format!("https://app.example/done?a=1&status=success&connected_account_id={id}");
    for landed in [first, second, open().await] {
        assert_eq!(landed.status, 302);
        assert_eq!(landed.header("location"), &*expected);
    }
    let elsewhere = Browser::new(&project).open(&back).await;
    assert_eq!(elsewhere.status, 400, "another browser sees a result");
    assert_eq!(status(&project, &id).await, "ACTIVE");
    assert_eq!(oauth.issuer.granted("authorization_code"), 1);
}

#[tokio::test]
async fn declined_user_connects_with_the_same_link() {
    let (project, oauth) = Oauth::in_new_project().await;
    let (id, url) = link(&project, &oauth.config, json!({})).await;
    let mut browser = Browser::new(&project);
    oauth.issuer.set(|settings| settings.agrees = false);
    let back = visited(&mut browser, &oauth, &url).await;
    let landed = browser.open(&back).await;
    let expected = format!(
        "https://app.example/done?a=1&status=failed&connected_account_id={id}&error=access_denied"
    );
    assert_eq!(landed.header("location"), expected);
    assert_eq!(browser.open(&back).await.header("location"), expected);
    let read = project.account(&id).await;
    assert_eq!(read["status"], "INITIATED");
    assert_eq!(read["status_reason"], "access_denied");
    oauth.issuer.set(|settings| settings.agrees = true);
    let back = visited(&mut browser, &oauth, &url).await;
    assert_eq!(browser.open(&back).await.status, 302);
    let read = project.account(&id).await;
    assert_eq!(read["status"], "ACTIVE");
    assert_eq!(read["status_reason"], Value::Null);
    oauth.execute(&project).await.data();
}

#[tokio::test]
async fn expired_and_unknown_links_are_reported() {
    let setup = given::with_application().with("connections.pending_s", "1");
    let host = setup.start().await;
    let project = host.as_project();
    let oauth = Oauth::new(&host, &project).await;
    let (id, url) = link(&project, &oauth.config, json!({})).await;
    wait_until("the account expires", || async {
        status(&project, &id).await == "EXPIRED"
    })
    .await;
    let mut browser = Browser::new(&project);
    let unknown = format!("{}/link/lt_{}", host.url, "A".repeat(43));
    let callback = format!("{}/api/v3/toolkits/auth/callback?code=c&state=s", host.url);
    for (url, status, shown) in [
        (url, 410, "expired"),
        (unknown, 400, "does not work"),
        (callback, 400, ""),
    ] {
        let page = browser.open(&url).await;
        assert_eq!(page.status, status, "{url}");
        assert!(page.text().contains(shown), "{url}: {}", page.text());
    }
}

#[tokio::test]
async fn project_can_disable_links_for_managed_auth() {
    let host = given::with_application().start().await;
    let (org, project) = (host.as_org(), host.as_project());
    let (slug, _, _) = given::oauth_toolkit(&host).await;
    org.put_json(&format!("/org/oauth_apps/{slug}"), &given::oauth_app())
        .await
        .expect(200);
    let managed = json!({ "toolkit": { "slug": slug } });
    let managed = project.post("/auth_configs", &managed).await.expect(201);
    let custom = project
        .auth_config(&slug, "OAUTH2", Issuer::credentials())
        .await;
    let off = json!({ "is_service_link_enabled_for_managed_auth": false });
    given::configure(&project, off).await;
    let link = async |config: &Value| {
        let body = json!({ "auth_config_id": config, "user_id": "amy" });
        project.post("/connected_accounts/link", &body).await
    };
    let refused = link(&managed["auth_config"]["id"]).await.expect(400);
    assert_eq!(refused["error"]["code"], 600);
    link(&json!(custom)).await.expect(201);
}
