//! The life cycle of tokens: refreshed once for any number of callers, kept during an outage of the
//! provider, expired when the provider revokes them.

use futures::future::join_all;
use harness::{
    Answer, Client, Host, Issuer,
    client::Body,
    guest,
    issuer::{CLIENT_ID, Fault},
    unique, wait_until,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::given::{self, Oauth};

/// Number of concurrent calls, below the concurrency limit of a project: the server may still hold the
/// places of calls that it has answered.
const CONCURRENT_CALLS: usize = 48;

/// Returns the status of an account, and the reason for it.
pub(crate) async fn status(project: &Client, id: &str) -> (String, String) {
    let read = project.account(id).await;
    let text = |name: &str| read[name].as_str().unwrap_or_default().to_owned();
    (text("status"), text("status_reason"))
}

/// Connects an account whose access token has expired and whose next one is long-lived.
async fn ended(host: &Host, project: &Client) -> (Oauth, String) {
    let oauth = Oauth::new(host, project).await;
    oauth.issuer.set(|settings| settings.lifetime = 1);
    let id = oauth.connect(project).await;
    oauth.issuer.expire();
    oauth.issuer.set(|settings| settings.lifetime = 3_600);
    (oauth, id)
}

/// Returns a scheme of the issuer whose tokens are requested without a user.
fn direct_scheme(issuer: &Issuer) -> Value {
    let mut scheme = issuer.scheme();
    scheme["mode"] = "S2S_OAUTH2".into();
    scheme["verify"] = json!({ "method": "GET", "url": format!("{}/api/me", issuer.url()) });
    let flow = &mut scheme["oauth2"];
    flow.as_object_mut().unwrap().remove("authorize_url");
    flow["revoke"] = json!({ "url": format!("{}/revoke", issuer.url()) });
    scheme
}

/// Connects an account of a scheme without a user, as [`ended`] does.
async fn ended_direct(
    host: &Host,
    project: &Client,
    scheme: impl FnOnce(&Issuer) -> Value,
) -> (Oauth, String) {
    let oauth = Oauth::of(host, project, Issuer::credentials(), scheme).await;
    oauth.issuer.set(|settings| settings.lifetime = 1);
    let body = json!({ "auth_config": { "id": oauth.config }, "connection": {} });
    let made = project.post("/connected_accounts", &body).await.expect(201);
    oauth.issuer.expire();
    oauth.issuer.set(|settings| settings.lifetime = 3_600);
    let id = made["id"].as_str().unwrap().to_owned();
    (oauth, id)
}

async fn many(oauth: &Oauth, projects: &[Client]) -> Vec<Answer> {
    join_all((0..CONCURRENT_CALLS).map(|number| oauth.execute(&projects[number % projects.len()])))
        .await
}

#[tokio::test]
async fn concurrent_calls_refresh_an_expired_token_once() {
    let (host, project) = Host::shared_with_project().await;
    let (oauth, id) = ended(host, &project).await;
    for round in 1..=3 {
        for answer in many(&oauth, std::slice::from_ref(&project)).await {
            answer.data();
        }
        assert_eq!(oauth.refreshes(), 1, "in round {round}");
        assert_eq!(oauth.issuer.granted("refresh_token"), 1, "in round {round}");
    }
    let used = oauth.tokens_used();
    assert_eq!(used.len(), 3 * CONCURRENT_CALLS);
    let were_valid = used.iter().all(|token| oauth.issuer.knows(token));
    assert!(were_valid, "a token that had ended was sent");
    assert_eq!(status(&project, &id).await.0, "ACTIVE");
}

#[tokio::test]
async fn rejected_token_is_refreshed_and_request_retried() {
    let (project, oauth) = Oauth::in_new_project().await;
    oauth.connect(&project).await;
    oauth.issuer.expire();
    for answer in many(&oauth, std::slice::from_ref(&project)).await {
        answer.data();
    }
    assert_eq!(oauth.refreshes(), 1);
    let elsewhere = json!({ "url": format!("https://api.example.com/status/{}/401", oauth.tag) });
    let tool = guest::tool(&oauth.slug);
    for _ in 0..3 {
        project.execute(&tool, elsewhere.clone()).await.expect(200);
    }
    // An address that refuses every token causes no further refresh.
    assert_eq!(oauth.refreshes(), 1);
}

#[tokio::test]
async fn lifetime_is_kept_if_a_refresh_states_none() {
    let (project, oauth) = Oauth::in_new_project().await;
    oauth.issuer.set(|settings| settings.lifetime = 1);
    oauth.connect(&project).await;
    oauth.issuer.fault(Fault::NoExpiry, 2);
    // Each token counts as expired immediately, so each call needs another one.
    for number in 1..=3 {
        oauth.execute(&project).await.data();
        assert_eq!(oauth.refreshes(), number);
    }
    let read = project.get("/connected_accounts").await.expect(200);
    assert_eq!(read["items"][0]["state"]["val"]["expires_in"], 1);
}

#[tokio::test]
async fn token_without_lifetime_is_refreshed_while_idle() {
    let setup = given::with_application().with("connections.idle_refresh_s", "1");
    let host = setup.start().await;
    let project = host.as_project();
    let oauth = Oauth::new(&host, &project).await;
    oauth.issuer.fault(Fault::NoExpiry, 100);
    oauth.connect(&project).await;
    wait_until("the idle account is refreshed twice", || async {
        oauth.refreshes() >= 2
    })
    .await;
}

#[tokio::test]
async fn refused_refresh_is_shown_and_logged() {
    let host = given::with_application().start().await;
    let project = host.as_project();
    let (oauth, id) = ended(&host, &project).await;
    oauth.issuer.fault(Fault::Refused("invalid_client"), 1);
    oauth.execute(&project).await.expect(503);
    let (shown, reason) = status(&project, &id).await;
    assert_eq!(shown, "ACTIVE");
    assert!(reason.contains("invalid_client"), "{reason}");
    let log = host.output();
    let mut lines = log.lines().filter(|line| line.contains(&id));
    let is_warned = lines.any(|line| line.contains("WARN") && line.contains("invalid_client"));
    assert!(is_warned, "{log}");
}

#[tokio::test]
async fn invalid_token_challenge_refreshes_with_any_status() {
    let (host, project) = Host::shared_with_project().await;
    for status in [400, 403] {
        let oauth = Oauth::new(host, &project).await;
        oauth.issuer.set(|settings| settings.rejects_with = status);
        oauth.connect(&project).await;
        oauth.issuer.expire();
        oauth.execute(&project).await.data();
        assert_eq!(oauth.refreshes(), 1, "{status}");
    }
}

#[tokio::test]
async fn rejection_that_a_toolkit_names_refreshes() {
    let (host, project) = Host::shared_with_project().await;
    let oauth = Oauth::of(host, &project, Issuer::credentials(), |issuer| {
        let mut scheme = issuer.scheme();
        scheme["oauth2"]["rejected_if"] =
            json!([{ "status": 200, "path": "error", "one_of": ["token_expired"] }]);
        scheme
    })
    .await;
    oauth.issuer.set(|settings| settings.rejects_with = 200);
    oauth.connect(&project).await;
    oauth.issuer.expire();
    oauth.execute(&project).await.data();
    assert_eq!((oauth.refreshes(), oauth.tokens_used().len()), (1, 2));
}

#[tokio::test]
async fn revoked_grant_expires_the_account() {
    let (host, project) = Host::shared_with_project().await;
    let (oauth, id) = ended(host, &project).await;
    oauth.issuer.revoke_all();
    for answer in many(&oauth, std::slice::from_ref(&project)).await {
        // Later callers find no active account.
        assert!([404, 422].contains(&answer.status), "{answer:?}");
    }
    let (status, reason) = status(&project, &id).await;
    assert_eq!(status, "EXPIRED");
    assert!(reason.contains("invalid_grant"), "{reason}");
    oauth.execute(&project).await.expect(404);
    assert_eq!(oauth.refreshes(), 1);
}

#[tokio::test]
async fn provider_outage_backs_off_without_expiring_accounts() {
    let (host, project) = Host::shared_with_project().await;
    let unknown = "refresh_outcome_unknown";
    for (fault, shown) in [
        (Fault::Status(503), "503"),
        (Fault::Status(429), "429"),
        (Fault::Status(404), "404"),
        (Fault::Lost, unknown),
        (Fault::Status(200), unknown),
        (Fault::Says("{\"access_token\":\"a"), unknown),
        (Fault::Refused("invalid_client"), "invalid_client"),
    ] {
        let (oauth, id) = ended(host, &project).await;
        oauth.issuer.fault(fault, 100);
        for _ in 0..3 {
            let call = json!({ "arguments": { "url": oauth.me() }, "user_id": "default", "version": "latest", "connected_account_id": id });
            let path = format!("/tools/execute/{}", guest::tool(&oauth.slug));
            let away = project.post(&path, &call).await;
            let away = away.expect_error(503, "ConnectedAccount_RefreshUnavailable");
            given::assert_contains(&away["error"]["message"], shown);
            let seconds: u64 = away.header("retry-after").parse().unwrap();
            assert!((10..=36).contains(&seconds), "{seconds}");
        }
        assert_eq!(oauth.refreshes(), 1, "{fault:?}");
        let (status, reason) = status(&project, &id).await;
        assert_eq!(status, "ACTIVE", "{fault:?}");
        assert!(reason.contains(shown), "{fault:?}: {reason}");
        assert_eq!(oauth.tokens_used(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn short_lived_token_is_not_refreshed_early() {
    let host = given::with_application().start().await;
    let project = host.as_project();
    let oauth = Oauth::new(&host, &project).await;
    // The token expires in forty seconds and is refreshed within the last ten: no refresh happens
    // yet.
    oauth.issuer.set(|settings| settings.lifetime = 40);
    oauth.connect(&project).await;
    oauth.execute(&project).await.data();
    assert_eq!(oauth.refreshes(), 0);
}

#[tokio::test]
async fn interrupted_refresh_is_tried_once_more() {
    let setup = given::with_application().with("limits.deadline_s", "3");
    let host = setup.start().await;
    let project = host.as_project();
    let (oauth, id) = ended(&host, &project).await;
    oauth.issuer.hold(true);
    let path = format!("/tools/execute/{}", guest::tool(&oauth.slug));
    let body =
        json!({ "arguments": { "url": oauth.me() }, "user_id": "default", "version": "latest" });
    let call = project.try_send(Method::POST, &path, Body::Json(body), &[]);
    let (answer, setup) = tokio::join!(call, async {
        oauth.issuer.wait_for("refresh_token", 1).await;
        host.kill()
    });
    answer.unwrap_err();
    oauth.issuer.hold(false);
    let host = setup.start().await;
    let project = host.as_project();
    wait_until("the account has ended", || async {
        oauth.execute(&project).await;
        status(&project, &id).await.0 == "EXPIRED"
    })
    .await;
    assert_eq!(status(&project, &id).await.1, "refresh_outcome_unknown");
    assert_eq!(oauth.refreshes(), 2);
    assert_eq!(oauth.issuer.granted("refresh_token"), 1);
}

#[tokio::test]
async fn account_revoked_during_refresh_leaves_no_token() {
    let (host, project) = Host::shared_with_project().await;
    let (oauth, id) = ended_direct(host, &project, direct_scheme).await;
    oauth.issuer.hold(true);
    let (answer, ()) = tokio::join!(oauth.execute(&project), async {
        oauth.issuer.wait_for("client_credentials", 2).await;
        let path = format!("/connected_accounts/{id}/revoke");
        project.post(&path, &json!({})).await.expect(200);
        assert_eq!(oauth.issuer.good(), 1, "the new token is not known yet");
        oauth.issuer.hold(false);
    });
    assert_eq!(answer.status, 422, "{answer:?}");
    wait_until("the provider has revoked the new token", || async {
        oauth.issuer.good() == 0
    })
    .await;
    assert_eq!(status(&project, &id).await.0, "REVOKED");
}

#[tokio::test]
async fn token_refreshed_during_revocation_is_revoked() {
    let (host, project) = Host::shared_with_project().await;
    // Revocations go to the token endpoint of another issuer, because it can hold a request.
    let tag = unique(8);
    let revocations = Host::application().issuer(&tag);
    revocations.fault(Fault::Says("{}"), 2);
    revocations.catch_next();
    let (oauth, id) = ended_direct(host, &project, |issuer| {
        let mut scheme = direct_scheme(issuer);
        scheme["oauth2"]["revoke"]["url"] = format!("{}/token", revocations.url()).into();
        scheme
    })
    .await;
    let path = format!("/connected_accounts/{id}/revoke");
    let body = json!({});
    let (revoked, ()) = tokio::join!(project.post(&path, &body), async {
        wait_until("the provider is asked to revoke the old token", || async {
            revocations.caught() == 1
        })
        .await;
        oauth.execute(&project).await.data();
        revocations.release_caught();
    });
    revoked.expect(200);
    let token = oauth.tokens_used().remove(0);
    let asked = Host::application().seen(&tag);
    let mut bodies = asked
        .iter()
        .map(|asked| String::from_utf8_lossy(&asked.body));
    assert!(bodies.any(|body| body.contains(&token)), "{asked:?}");
}

#[tokio::test]
async fn validation_refreshes_an_expired_token() {
    let (host, project) = Host::shared_with_project().await;
    let (oauth, id) = ended_direct(host, &project, direct_scheme).await;
    let checked = validated(&project, &id).await;
    assert_eq!(checked["status"], "ACTIVE");
    assert_eq!(oauth.issuer.granted("client_credentials"), 2);
}

async fn validated(project: &Client, id: &str) -> Answer {
    let path = format!("/connected_accounts/{id}/refresh");
    let validate = json!({ "validate_credentials": true });
    project.post(&path, &validate).await.expect(200)
}

#[tokio::test]
async fn validation_reports_an_account_that_expires() {
    let (host, project) = Host::shared_with_project().await;
    let (oauth, id) = ended_direct(host, &project, direct_scheme).await;
    oauth.issuer.fault(Fault::Refused("invalid_grant"), 1);
    assert_eq!(validated(&project, &id).await["status"], "EXPIRED");
}

#[tokio::test]
async fn expired_token_without_refresh_expires_account() {
    let (project, oauth) = Oauth::in_new_project().await;
    let issuer = &oauth.issuer;
    issuer.set(|settings| (settings.lifetime, settings.refresh) = (1, false));
    let id = oauth.connect(&project).await;
    oauth.execute(&project).await.expect(422);
    let (status, reason) = status(&project, &id).await;
    assert_eq!([&*status, &*reason], ["EXPIRED", "token_expired"]);
}

#[tokio::test]
async fn client_credentials_tokens_are_requested_directly() {
    let (host, project) = Host::shared_with_project().await;
    let oauth = Oauth::of(host, &project, Issuer::credentials(), |issuer| {
        let mut scheme = direct_scheme(issuer);
        scheme.as_object_mut().unwrap().remove("verify");
        scheme
    })
    .await;
    let wrong = json!({ "client_id": CLIENT_ID, "client_secret": harness::marked!("wrong-") });
    let wrong = project.auth_config(&oauth.slug, "S2S_OAUTH2", wrong).await;
    let account = |config: &str| json!({ "auth_config": { "id": config }, "connection": {} });
    let refused = project.post("/connected_accounts", &account(&wrong)).await;
    refused.expect_error(400, "ConnectedAccount_CredentialRejected");
    let listed = project.get("/connected_accounts").await.expect(200);
    assert_eq!(listed["total_items"], 0);
    let right = account(&oauth.config);
    let made = project.post("/connected_accounts", &right).await;
    let made = made.expect(201);
    assert_eq!(made["status"], "ACTIVE");
    assert_eq!(made["redirect_url"], Value::Null);
    oauth.execute(&project).await.data();
    oauth.issuer.expire();
    oauth.execute(&project).await.data();
    assert_eq!(oauth.issuer.granted("client_credentials"), 2);
    assert_eq!(oauth.refreshes(), 0);
}
