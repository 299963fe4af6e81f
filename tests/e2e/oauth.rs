//! Connecting accounts with OAuth 2: the path of a browser, and attacks on it.

use harness::{Answer, Client, Host, Issuer, guest, wait_until};
use serde_json::{Value, json};

use crate::{
    given::{self, Oauth, open},
    link::Browser,
};

/// Returns the number of codes sent to the token endpoint.
fn exchanges(oauth: &Oauth) -> usize {
    Host::application().asked(&oauth.tag, "/token")
}

#[tokio::test]
async fn authorized_account_uses_the_issued_token() {
    let host = Host::shared().await;
    let (project, oauth) = Oauth::in_new_project().await;
    let made = oauth.begin(&project, "https://app.example/done?a=1").await;
    assert_eq!(made["status"], "INITIATED");
    assert_eq!(made["redirect_url"], made["redirect_uri"]);
    assert_eq!(
        made["connectionData"]["val"]["redirectUrl"],
        made["redirect_url"]
    );
    let id = made["id"].as_str().unwrap();
    let back = oauth.visit(&made).await;
    assert!(
        back.starts_with(&format!("{}/api/v3/toolkits/auth/callback?code=", host.url)),
        "{back}"
    );
    let landed = open(&project, &back).await;
    assert_eq!(landed.status, 302);
    let expected = format!("https://app.example/done?a=1&status=success&connected_account_id={id}");
    assert_eq!(landed.header("location"), expected);
    let connected = project.account(id).await;
    assert_eq!(connected["status"], "ACTIVE");
    assert!(
        connected["state"]["val"]["redirectUrl"].is_null(),
        "{connected:?}"
    );
    assert!(
        connected["state"]["val"]["access_token"]
            .as_str()
            .unwrap()
            .ends_with("..."),
        "{connected:?}"
    );
    oauth.execute(&project).await.data();
    let seen = Host::application().seen(&oauth.tag);
    assert_eq!(exchanges(&oauth), 1);
    let exchange = seen.iter().find(|seen| seen.path.ends_with("/token"));
    let body = String::from_utf8_lossy(&exchange.unwrap().body);
    assert!(body.contains("code_verifier="), "{body}");
    assert!(oauth.issuer.knows(&oauth.tokens_used()[0]));
}

#[tokio::test]
async fn denied_authorization_fails_the_account() {
    let (project, oauth) = Oauth::in_new_project().await;
    oauth.issuer.set(|settings| settings.agrees = false);
    let (id, landed) = oauth.attempt(&project).await;
    let expected = format!(
        "https://app.example/done?status=failed&connected_account_id={id}&error=access_denied"
    );
    assert_eq!(landed.status, 302);
    assert_eq!(landed.header("location"), &*expected);
    let failed = project.account(&id).await;
    assert_eq!(failed["status"], "FAILED");
    assert_eq!(failed["status_reason"], "access_denied");
    assert_eq!(failed["state"]["val"]["error_description"], "Not today");
    assert_eq!(exchanges(&oauth), 0);
    oauth.execute(&project).await.expect(404);
}

#[tokio::test]
async fn state_is_valid_once() {
    let (project, oauth) = Oauth::in_new_project().await;
    let made = oauth.begin(&project, "https://app.example/done").await;
    let id = made["id"].as_str().unwrap();
    let back = oauth.visit(&made).await;
    let (address, query) = back.split_once('?').unwrap();
    let (code, state) = query.split_once('&').unwrap();
    let altered = state.replacen("state=", "state=A", 1);
    for query in [
        code.to_owned(),
        format!("{code}&state="),
        format!("{code}&{altered}"),
        format!("{code}&state={}", "A".repeat(43)),
        format!("{code}&{state}&{state}"),
        format!("{code}&{state}&{altered}"),
        "error=access_denied".to_owned(),
    ] {
        let refused = open(&project, &format!("{address}?{query}")).await;
        assert_eq!(refused.status, 400, "{query}");
        assert_eq!(refused.header("location"), "", "{query}");
        assert_eq!(project.account(id).await["status"], "INITIATED", "{query}");
    }
    assert_eq!(exchanges(&oauth), 0);
    assert_eq!(open(&project, &back).await.status, 302);
    assert_eq!(open(&project, &back).await.status, 400, "it was used");
    let failing = format!("{address}?error=access_denied&{state}");
    assert_eq!(open(&project, &failing).await.status, 400, "it was used");
    assert_eq!(
        (
            exchanges(&oauth),
            project.account(id).await["status"].clone()
        ),
        (1, "ACTIVE".into())
    );
}

#[tokio::test]
async fn callback_url_must_be_an_http_url() {
    let (project, oauth) = Oauth::in_new_project().await;
    for url in [
        "javascript:alert(1)",
        "//evil.example",
        "/here",
        "https://a:b@evil.example",
        "data:text/html,x",
        "x",
    ] {
        let connection = json!({ "user_id": "default", "callback_url": url });
        let body = json!({ "auth_config": { "id": oauth.config }, "connection": connection });
        project.post("/connected_accounts", &body).await.expect(400);
        let body = json!({ "auth_config_id": oauth.config, "user_id": "amy", "callback_url": url });
        let refused = project.post("/connected_accounts/link", &body).await;
        refused.expect(400);
    }
    let listed = project.get("/connected_accounts").await.expect(200);
    assert_eq!(listed["total_items"], 0);
}

#[tokio::test]
async fn missing_return_url_ends_on_server_page() {
    let host = Host::shared().await;
    let (project, oauth) = Oauth::in_new_project().await;
    let body = json!({ "auth_config": { "id": oauth.config }, "connection": {} });
    let made = project.post("/connected_accounts", &body).await.expect(201);
    let back = oauth.visit(&made).await;
    let landed = open(&project, &back).await;
    assert_eq!(
        landed.header("location"),
        format!("{}/link/done?status=success", host.url)
    );
    let page = open(&project, landed.header("location")).await;
    assert!(
        page.status == 200 && page.text().contains("connected"),
        "{page:?}"
    );
}

#[tokio::test]
async fn late_callback_connects_an_expired_account() {
    let setup = given::with_application().with("connections.pending_s", "4");
    let host = setup.start().await;
    let project = host.as_project();
    let oauth = Oauth::new(&host, &project).await;
    let made = oauth.begin(&project, "https://app.example/done").await;
    let id = made["id"].as_str().unwrap();
    let back = oauth.visit(&made).await;
    wait_until("the account expires", || async {
        project.account(id).await["status"] == "EXPIRED"
    })
    .await;
    let expired = project.account(id).await;
    assert_eq!(expired["status_reason"], "INITIATION_TIMEOUT");
    assert!(expired["state"]["val"]["expired_at"].is_string());
    assert_eq!(open(&project, &back).await.status, 302);
    assert_eq!(project.account(id).await["status"], "ACTIVE");
}

#[tokio::test]
async fn reconnecting_does_not_interrupt_an_active_account() {
    let (project, oauth) = Oauth::in_new_project().await;
    let id = oauth.connect(&project).await;
    let path = format!("/connected_accounts/{id}/refresh");
    let again = json!({ "redirect_url": "https://app.example/again" });
    for (agrees, error) in [(false, "&error=access_denied"), (true, "")] {
        oauth.issuer.set(|settings| settings.agrees = agrees);
        let asked = project.post(&path, &again).await.expect(200);
        assert_eq!(asked["id"], id.as_str());
        assert_eq!(asked["status"], "ACTIVE");
        let back = oauth.visit(&asked).await;
        oauth.execute(&project).await.data();
        let landed = open(&project, &back).await;
        let status = if agrees { "success" } else { "failed" };
        let expected =
            format!("https://app.example/again?status={status}&connected_account_id={id}{error}");
        assert_eq!(landed.header("location"), expected);
        assert_eq!(project.account(&id).await["status"], "ACTIVE");
        oauth.execute(&project).await.data();
    }
    let tokens: std::collections::BTreeSet<_> = oauth.tokens_used().into_iter().collect();
    assert_eq!(
        tokens.len(),
        2,
        "the new token replaced the old one at the end: {tokens:?}"
    );
}

#[tokio::test]
async fn user_verification_precedes_activation() {
    let (host, project) = Host::shared_with_project().await;
    let verifier = json!({ "oauth_callback_verifier_url": "https://app.example/verify?x=1" });
    given::configure(&project, verifier).await;
    let oauth = Oauth::new(host, &project).await;
    let begin = async |user: &str| {
        let connection = json!({ "user_id": user });
        let body = json!({ "auth_config": { "id": oauth.config }, "connection": connection });
        project.post("/connected_accounts", &body).await
    };
    begin("default").await.expect(400);
    let complete = async |project: &Client, session: &str, user: &str| {
        let body = json!({ "session_uri": session, "user_id": user });
        let path = "/connected_accounts/complete_auth";
        project.post(path, &body).await
    };
    let stranger = host.new_project().await;
    for (user, status, becomes) in [("amy", 200, "ACTIVE"), ("bob", 400, "FAILED")] {
        let made = begin("amy").await.expect(201);
        let id = made["id"].as_str().unwrap();
        let back = oauth.visit(&made).await;
        let landed = open(&project, &back).await;
        let session = landed
            .header("location")
            .strip_prefix("https://app.example/verify?x=1&session_uri=");
        let session = session.unwrap_or_else(|| panic!("{landed:?}"));
        assert!(session.starts_with("session_"));
        assert_eq!(project.account(id).await["status"], "INITIATED");
        let altered = complete(&project, &format!("{session}x"), user).await;
        altered.expect(404);
        complete(&stranger, session, user).await.expect(404);
        let done = complete(&project, session, user).await.expect(status);
        if status == 200 {
            assert_eq!(done["connected_account_id"], id);
            assert_eq!(done["toolkit_slug"], oauth.slug);
        }
        assert_eq!(project.account(id).await["status"], becomes);
        complete(&project, session, user).await.expect(404);
    }
}

#[tokio::test]
async fn operator_oauth_app_serves_projects_and_hides_secret() {
    let host = given::with_application().start().await;
    let (org, project) = (host.as_org(), host.as_project());
    let (slug, tag, issuer) = given::oauth_toolkit(&host).await;
    let managed = json!({ "toolkit": { "slug": slug } });
    let missing = project.post("/auth_configs", &managed).await.expect(400);
    assert_eq!(missing["error"]["code"], 306);
    let schemes = async || {
        let toolkit = project.get(&format!("/toolkits/{slug}")).await;
        toolkit["service_managed_auth_schemes"].clone()
    };
    assert_eq!(schemes().await, json!([]));
    org.put_json(&format!("/org/oauth_apps/{slug}"), &given::oauth_app())
        .await
        .expect(200);
    let printed = host.setup().command(&["oauth-apps", "list"]).succeeded();
    assert!(printed.contains(&slug), "{printed}");
    let listed = org.get("/org/oauth_apps").await.expect(200);
    assert_eq!(listed["items"][0]["client_id"], harness::issuer::CLIENT_ID);
    assert!(!listed.text.contains(harness::issuer::CLIENT_SECRET));
    assert_eq!(schemes().await, json!(["OAUTH2"]));
    let found = project.get(&format!("/toolkits?search={slug}")).await;
    let found = &found.expect(200)["items"][0]["service_managed_auth_schemes"];
    assert_eq!(*found, json!(["OAUTH2"]));
    let made = project.post("/auth_configs", &managed).await.expect(201);
    let made = &made["auth_config"];
    assert_eq!(made["auth_scheme"], "OAUTH2");
    assert_eq!(made["is_service_managed"], true);
    let config = made["id"].as_str().unwrap().to_owned();
    let read = project.get(&format!("/auth_configs/{config}")).await;
    let read = read.expect(200);
    assert_eq!(read["type"], "default");
    assert_eq!(read["credentials"], json!({}));
    let oauth = Oauth {
        tag,
        slug: slug.clone(),
        config,
        issuer,
    };
    oauth.connect(&project).await;
    oauth.execute(&project).await.data();
    let body = json!({ "auth_config_id": oauth.config, "user_id": "ada" });
    let made = project.post("/connected_accounts/link", &body).await;
    let link = made.expect(201)["redirect_url"].clone();
    let remove = ["oauth-apps", "remove", &slug];
    host.setup().command(&remove).succeeded();
    let refused = project.post("/connected_accounts/link", &body).await;
    assert_eq!(refused.expect(400)["error"]["code"], 306);
    let page = Browser::new(&project).open(link.as_str().unwrap()).await;
    let text = page.text();
    assert_eq!(page.status, 503, "{text}");
    assert!(text.contains("has removed its registration"), "{text}");
    assert!(host.output().contains("toolhost oauth-apps set"));
    let gone = org.delete(&format!("/org/oauth_apps/{slug}")).await;
    gone.expect(404);
    let missing = project.post("/auth_configs", &managed).await.expect(400);
    assert_eq!(missing["error"]["code"], 306);
}

#[tokio::test]
async fn auth_config_patch_keeps_unnamed_fields() {
    let (project, oauth) = Oauth::in_new_project().await;
    let path = format!("/auth_configs/{}", oauth.config);
    let read = || async { project.get(&path).await.expect(200) };
    let shown = read().await["credentials"].clone();
    assert_eq!(shown["client_secret"], "clie...");
    assert_eq!(shown["client_id"], json!(harness::issuer::CLIENT_ID));
    let asked = |made: &Answer| {
        let url = reqwest::Url::parse(made["redirect_url"].as_str().unwrap()).unwrap();
        url.query_pairs()
            .find(|(name, _)| name == "scope")
            .map(|(_, value)| value.into_owned())
            .unwrap_or_default()
    };
    for (changes, scopes) in [
        (
            json!({ "credentials": { "scopes": "read, write" } }),
            "read write",
        ),
        (json!({ "name": "renamed" }), "read write"),
        (json!({ "credentials": { "scopes": ["x:y"] } }), "x:y"),
        (
            json!({ "credentials": { "scopes": [] }, "tool_access_config": {} }),
            "",
        ),
    ] {
        let mut body = changes.clone();
        body["type"] = "custom".into();
        let changed = project.patch(&path, &body).await.expect(200);
        assert_eq!(changed["success"], true);
        let made = oauth.begin(&project, "https://app.example/done").await;
        assert_eq!(asked(&made), scopes, "{changes}");
    }
    assert_eq!(read().await["name"], "renamed");
    assert_eq!(read().await["credentials"]["client_secret"], "clie...");
    for refused in [
        json!({ "type": "default" }),
        json!({ "type": "custom", "credentials": { "client_id": null } }),
        json!({ "type": "custom", "credentials": { "scopes": 7 } }),
        json!({ "type": "other" }),
        json!({}),
    ] {
        project.patch(&path, &refused).await.expect(400);
    }
    oauth.connect(&project).await;
}

#[tokio::test]
async fn imported_tokens_keep_working() {
    let host = Host::shared().await;
    let (project, oauth) = Oauth::in_new_project().await;
    oauth.connect(&project).await;
    oauth.execute(&project).await.data();
    let token = oauth.tokens_used().remove(0);
    let other = host.new_project().await;
    let config = other
        .auth_config(&oauth.slug, "OAUTH2", Issuer::credentials())
        .await;
    let state =
        json!({ "authScheme": "OAUTH2", "val": { "status": "ACTIVE", "access_token": token } });
    let body = json!({ "auth_config": { "id": config }, "connection": { "state": state } });
    let made = other.post("/connected_accounts", &body).await.expect(201);
    assert_eq!(made["status"], "ACTIVE");
    assert_eq!(made["redirect_url"], Value::Null);
    oauth.execute(&other).await.data();
}

#[tokio::test]
async fn revoked_account_loses_its_tokens() {
    let (project, oauth) = Oauth::in_new_project().await;
    let id = oauth.connect(&project).await;
    let revoke = async |id: &str| {
        let path = format!("/connected_accounts/{id}/revoke");
        project.post(&path, &json!({})).await
    };
    let revoked = revoke(&id).await.expect(200);
    assert_eq!(
        revoked["connected_account"],
        json!({ "id": id, "status": "REVOKED" })
    );
    let again = revoke(&id).await.expect(409);
    assert_eq!(again["error"]["slug"], "ConnectedAccount_Revoked");
    let read = project.account(&id).await;
    assert_eq!(read["state"]["val"], json!({ "status": "REVOKED" }));
    let refresh = format!("/connected_accounts/{id}/refresh");
    let body = json!({ "body_redirect_url": "javascript:alert(1)" });
    let refused = project.post(&refresh, &body).await.expect(400);
    assert!(refused.text.contains("redirect_url"), "{refused:#?}");
    let call = json!({ "arguments": { "url": oauth.me() }, "user_id": "default", "version": "latest", "connected_account_id": id });
    let execute = format!("/tools/execute/{}", guest::tool(&oauth.slug));
    project.post(&execute, &call).await.expect(422);
    let fresh = oauth.begin(&project, "https://app.example/done").await;
    let refused = revoke(fresh["id"].as_str().unwrap()).await.expect(400);
    assert_eq!(refused["error"]["code"], 600);
}

#[tokio::test]
async fn project_deletion_can_revoke_tokens() {
    let host = Host::shared().await;
    for (query, works) in [("?revoke_on_delete=true", false), ("", true)] {
        let project = host.new_project().await;
        let oauth = Oauth::of(host, &project, Issuer::credentials(), |issuer| {
            let mut scheme = issuer.scheme();
            scheme["oauth2"]["revoke"] = json!({ "url": format!("{}/revoke", issuer.url()) });
            scheme
        })
        .await;
        oauth.connect(&project).await;
        oauth.begin(&project, "https://app.example/done").await;
        oauth.execute(&project).await.data();
        let token = oauth.tokens_used().pop().unwrap();
        let id = project.project_id().await;
        host.delete_project(&format!("{id}{query}")).await;
        project.get("/auth/session/info").await.expect(401);
        assert_eq!(oauth.issuer.knows(&token), works, "{query}");
    }
}

#[tokio::test]
async fn account_key_and_alias_can_be_updated() {
    let project = Host::shared().await.new_project().await;
    let config = given::auth_config(&project).await;
    let made = given::made_account(&project, &config, "amy", harness::marked!("k-old-")).await;
    let path = format!("/connected_accounts/{}", made["id"].as_str().unwrap());
    let key = |scheme: &str, key: Value| json!({ "connection": { "state": { "authScheme": scheme, "val": { "api_key": key } } } });
    let mut both = key("API_KEY", harness::marked!("k-new-").into());
    both["alias"] = "work".into();
    let changed = project.patch(&path, &both).await.expect(200);
    assert_eq!(changed["success"], true);
    assert_eq!(changed["id"], made["id"]);
    assert_eq!(changed["status"], "ACTIVE");
    let read = project.get(&path).await.expect(200);
    assert_eq!(read["alias"], "work");
    assert_eq!(read["state"]["val"]["api_key"], "k-ne...");
    for refused in [key("BASIC", "x".into()), key("API_KEY", Value::Null)] {
        project.patch(&path, &refused).await.expect(400);
    }
    let second = given::made_account(&project, &config, "amy", &harness::secret()).await;
    let second = format!("/connected_accounts/{}", second["id"].as_str().unwrap());
    let (work, none) = (json!({ "alias": "work" }), json!({ "alias": "" }));
    let taken = project.patch(&second, &work).await.expect(400);
    assert_eq!(taken["error"]["code"], 600);
    project.patch(&path, &none).await.expect(200);
    project.patch(&second, &work).await.expect(200);
    assert_eq!(project.get(&path).await.expect(200)["alias"], Value::Null);
}

#[tokio::test]
async fn unverified_credential_is_refused() {
    let (host, project) = Host::shared_with_project().await;
    let tag = harness::unique(8);
    let (slug, mut manifest) = given::manifest_with_key();
    manifest["auth"][0]["verify"] =
        json!({ "method": "GET", "url": format!("https://api.example.com/oauth/{tag}/api/me") });
    host.publish(harness::Guest::fetch().component(), &manifest)
        .await;
    let issuer = Host::application().issuer(&tag);
    let config = project.auth_config(&slug, "API_KEY", json!({})).await;
    let mut request = given::account(&config, "amy", harness::marked!("no-such-"));
    request["validate_credentials"] = true.into();
    let path = "/connected_accounts";
    let refused = project.post(path, &request).await.expect(400);
    let slug = &refused["error"]["slug"];
    assert_eq!(slug, "ConnectedAccount_CredentialRejected");
    let listed = project.get(path).await.expect(200);
    assert_eq!(listed["total_items"], 0);
    request["validate_credentials"] = false.into();
    let made = project.post(path, &request).await.expect(201);
    let refresh = format!("{path}/{}/refresh", made["id"].as_str().unwrap());
    let unchecked = project.post(&refresh, &json!({})).await.expect(200);
    assert_eq!(unchecked["status"], "ACTIVE");
    let validate = json!({ "validate_credentials": true });
    let checked = project.post(&refresh, &validate).await.expect(200);
    assert_eq!(checked["status"], "FAILED");
    assert_eq!(checked["redirect_url"], Value::Null);
    drop(issuer);
}
