//! Connecting an account: the authorization request, interruptions, and verification of credentials
//! before they are stored.

use harness::{Client, Guest, Host, Issuer, guest, wait_until};
use serde_json::{Value, json};

use crate::{
    given::{self, Oauth, open, status},
    link::{Browser, form_token, link},
};

/// Starts a connection attempt and returns `scope` and `user_scope` of its authorization request.
async fn requested_scopes(oauth: &Oauth, project: &Client) -> [String; 2] {
    let made = oauth.begin(project, "https://app.example/done").await;
    let url = reqwest::Url::parse(made["redirect_url"].as_str().unwrap()).unwrap();
    ["scope", "user_scope"].map(|name| {
        let found = url.query_pairs().find(|(own, _)| own == name);
        found
            .map(|(_, value)| value.into_owned())
            .unwrap_or_default()
    })
}

/// Returns the scopes on the page of a new link, sorted.
async fn shown_scopes(project: &Client, config: &str) -> Vec<String> {
    let (_, url) = link(project, config, json!({})).await;
    let page = Browser::new(project).open(&url).await;
    let page = page.text();
    let mut shown: Vec<_> = page
        .split("<span class=\"hint\">")
        .skip(1)
        .map(|rest| rest.split_once('<').unwrap().0.to_owned())
        .collect();
    shown.sort();
    shown
}

#[tokio::test]
async fn tool_scopes_come_on_top_of_the_scheme() {
    let (host, project) = Host::shared_with_project().await;
    let (guest, credentials) = (Guest::fetch(), Issuer::credentials());
    let oauth = Oauth::of_guest(host, &project, credentials, &guest, |slug, issuer| {
        let mut scheme = issuer.scheme();
        scheme["oauth2"]["scopes"] = json!(["me"]);
        let mut manifest = guest::manifest_with_scheme(slug, scheme);
        manifest["tools"][0]["scopes"] = json!(["read"]);
        let mut second = manifest["tools"][0].clone();
        second["slug"] = json!(format!("{}_SECOND", slug.to_uppercase()));
        second["scopes"] = json!(["read", "write"]);
        manifest["tools"].as_array_mut().unwrap().push(second);
        let mut trigger = given::trigger(slug, "POSTED");
        trigger["scopes"] = json!(["watch"]);
        manifest["triggers"] = json!([trigger]);
        manifest
    })
    .await;
    let tool = guest::tool(&oauth.slug);
    let for_connection = |tools: Value| json!({ "tool_access_config": { "tools_for_connected_account_creation": tools } });
    for (change, scope) in [
        (json!({}), "me read write watch"),
        (for_connection(json!([tool])), "me read"),
        (for_connection(json!([])), "me read write watch"),
        (json!({ "restrict_to_following_tools": [tool] }), "me read"),
        (json!({ "credentials": { "scopes": "own" } }), "me own"),
    ] {
        let body = given::merged(json!({ "type": "custom" }), &change);
        let path = format!("/auth_configs/{}", oauth.config);
        project.patch(&path, &body).await.expect(200);
        let requested = requested_scopes(&oauth, &project).await;
        assert_eq!(requested, [scope, ""], "{change}");
        let shown = shown_scopes(&project, &oauth.config).await;
        let mut expected: Vec<_> = scope.split(' ').collect();
        expected.sort_unstable();
        assert_eq!(shown, expected, "{change}");
    }
}

#[tokio::test]
async fn user_scopes_are_in_the_authorization_request() {
    let (host, project) = Host::shared_with_project().await;
    let mut credentials = Issuer::credentials();
    (credentials["scopes"], credentials["user_scopes"]) =
        ("bot".into(), "search:read, chat".into());
    let oauth = Oauth::of(host, &project, credentials, Issuer::scheme).await;
    let asked = || requested_scopes(&oauth, &project);
    assert_eq!(asked().await, ["bot", "search:read chat"]);
    let cleared = json!({ "type": "custom", "user_scopes": null });
    let path = format!("/auth_configs/{}", oauth.config);
    project.patch(&path, &cleared).await.expect(200);
    assert_eq!(asked().await, ["bot", ""]);
}

#[tokio::test]
async fn code_parameter_name_follows_the_scheme() {
    let (host, project) = Host::shared_with_project().await;
    let oauth = Oauth::of(host, &project, Issuer::credentials(), |issuer| {
        let mut scheme = issuer.scheme();
        scheme["oauth2"]["callback"] = json!({ "code_param": "auth_code" });
        scheme
    })
    .await;
    for (name, outcome, becomes) in [
        ("auth_code", "?status=success", "ACTIVE"),
        ("code", "&error=invalid_response", "FAILED"),
    ] {
        let made = oauth.begin(&project, "https://app.example/done").await;
        let back = oauth.visit(&made).await;
        let landed = open(&project, &back.replacen("?code=", &format!("?{name}="), 1)).await;
        let location = landed.header("location");
        assert!(location.contains(outcome), "{name}: {landed:?}");
        let id = made["id"].as_str().unwrap();
        assert_eq!(status(&project, id).await, becomes, "{name}");
    }
    assert_eq!(oauth.issuer.granted("authorization_code"), 1);
}

#[tokio::test]
async fn disconnected_browser_does_not_abort_code_exchange() {
    let (project, oauth) = Oauth::in_new_project().await;
    let made = oauth.begin(&project, "https://app.example/done").await;
    let back = oauth.visit(&made).await;
    oauth.issuer.hold(true);
    tokio::select! {
        landed = open(&project, &back) => panic!("nobody has answered yet: {landed:?}"),
        () = oauth.issuer.wait_for("authorization_code", 1) => {}
    }
    oauth.issuer.hold(false);
    let id = made["id"].as_str().unwrap();
    wait_until("the account is connected", || async {
        status(&project, id).await == "ACTIVE"
    })
    .await;
    oauth.execute(&project).await.data();
}

#[tokio::test]
async fn deleting_auth_config_can_revoke_tokens() {
    let (host, project) = Host::shared_with_project().await;
    let oauth = Oauth::of(host, &project, Issuer::credentials(), |issuer| {
        issuer.discovered("OAUTH2")
    })
    .await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(oauth.connect(&project).await);
        oauth.execute(&project).await.data();
    }
    let waiting = oauth.begin(&project, "https://app.example/done").await;
    let waiting = waiting["id"].as_str().unwrap();
    let tokens = oauth.tokens_used();
    assert!(
        tokens.len() == 3 && tokens.iter().all(|token| oauth.issuer.knows(token)),
        "{tokens:?}"
    );
    let path = format!("/auth_configs/{}", oauth.config);
    let revoking = format!("{path}?revoke_on_delete=true");
    project.delete(&revoking).await.expect(200);
    assert!(
        tokens.iter().all(|token| !oauth.issuer.knows(token)),
        "the application was not told"
    );
    for id in &ids {
        assert_eq!(status(&project, id).await, "REVOKED");
    }
    assert_eq!(status(&project, waiting).await, "INITIATED");
    project.get(&path).await.expect(404);
}

#[tokio::test]
async fn link_page_stores_only_verified_keys() {
    let (host, project) = Host::shared_with_project().await;
    let oauth = Oauth::new(host, &project).await;
    oauth.connect(&project).await;
    oauth.execute(&project).await.data();
    let good = oauth.tokens_used().remove(0);
    let failing = "https://api.example.com/status/page/503".to_owned();
    for (verify, key, told) in [
        (oauth.me(), "no-such-token", "it did not accept the values"),
        (failing, "good", "it does not answer at the moment"),
        (oauth.me(), "good", ""),
    ] {
        let mut manifest = guest::manifest_with_key(&given::slug(), given::bearer());
        manifest["auth"][0]["verify"] = json!({ "method": "GET", "url": verify });
        host.publish(Guest::fetch().component(), &manifest).await;
        let slug = manifest["slug"].as_str().unwrap();
        let config = project.auth_config(slug, "API_KEY", json!({})).await;
        let (id, url) = link(&project, &config, json!({})).await;
        let mut browser = Browser::new(&project);
        let token = form_token(&browser.open(&url).await);
        let key = if key == "good" { &good } else { key };
        let fields = [("form-token", &*token), ("api_key", key)];
        let sent = browser.send(&url, &fields).await;
        let text = sent.text();
        if told.is_empty() {
            assert_eq!(sent.status, 303, "{sent:?}");
            let location = sent.header("location");
            assert!(location.contains("&status=success"), "{sent:?}");
            assert_eq!(status(&project, &id).await, "ACTIVE");
        } else {
            assert_eq!(sent.status, 422, "{text}");
            assert!(text.contains(told) && !text.contains(key), "{text}");
            assert!(text.contains("https://app.example/done"), "{text}");
            assert_eq!(status(&project, &id).await, "INITIALIZING");
        }
    }
}

#[tokio::test]
async fn oauth_app_from_settings_is_applied_at_start() {
    let slug = given::slug();
    let name = |key: &str| format!("TOOLHOST_OAUTH_APPS__{}__{key}", slug.to_uppercase());
    let setup = given::with_application().with_variable(&name("CLIENT_ID"), "007");
    let host = setup
        .with_variable(&name("CLIENT_SECRET"), harness::issuer::CLIENT_SECRET)
        .start()
        .await;
    let kept = |host: &Host| {
        let org = host.as_org();
        async move { org.get("/org/oauth_apps").await.expect(200)["items"][0]["client_id"].clone() }
    };
    assert_eq!(kept(&host).await, "007", "its toolkit may come later");
    let (setup, _) = host.terminate().await;
    let host = setup
        .with_variable(&name("CLIENT_ID"), harness::issuer::CLIENT_ID)
        .start()
        .await;
    assert_eq!(kept(&host).await, harness::issuer::CLIENT_ID);
    let tag = harness::unique(8);
    let issuer = Host::application().issuer(&tag);
    given::publish_with_scheme(&host, &slug, issuer.scheme()).await;
    let project = host.as_project();
    let managed = json!({ "toolkit": { "slug": slug } });
    let managed = project.post("/auth_configs", &managed).await.expect(201);
    let config = managed["auth_config"]["id"].as_str().unwrap().to_owned();
    let oauth = Oauth {
        tag,
        slug,
        config,
        issuer,
    };
    oauth.connect(&project).await;
    oauth.execute(&project).await.data();
    assert!(!host.output().contains(harness::issuer::CLIENT_SECRET));
}
