//! Responses of a provider or of an impostor: the result of each case, the resulting status of the
//! account, and the number of requests to the provider.

use harness::{Client, Host, fake_app::percent, issuer::Fault};
use serde_json::json;

use crate::given::{Oauth, open, status};

/// Returns the number of requests to a path of the provider.
fn asked(oauth: &Oauth, place: &str) -> usize {
    Host::application().asked(&oauth.tag, place)
}

/// Starts a connection attempt and returns the account and the callback address.
async fn begun(oauth: &Oauth, project: &Client) -> (String, String) {
    let made = oauth.begin(project, "https://app.example/done").await;
    let back = oauth.visit(&made).await;
    (made["id"].as_str().unwrap().to_owned(), back)
}

/// Returns the value of a parameter of an address, as it is there.
fn parameter<'a>(url: &'a str, name: &str) -> &'a str {
    let (_, value) = url.split_once(&format!("{name}=")).unwrap();
    value.split('&').next().unwrap()
}

#[tokio::test]
async fn invalid_callback_consumes_at_most_its_state() {
    let host = Host::shared().await;
    let (project, oauth) = Oauth::in_new_project().await;
    let other = Oauth::new(host, &project).await;
    let callback = format!("{}/api/v3/toolkits/auth/callback", host.url);
    let hostile = percent("\"><script>alert(1)</script>");
    // Query of the callback, error reported to the project, and number of codes sent to the
    // provider.
    let cases = [
        ("state=STATE", "invalid_response", 0),
        ("code=a&code=b&state=STATE", "invalid_response", 0),
        ("code=&state=STATE", "invalid_response", 0),
        ("code=made-up&state=STATE", "token_exchange_failed", 1),
        ("code=OTHER&state=STATE", "token_exchange_failed", 1),
        (
            "CODE&state=STATE&iss=https%3A%2F%2Fapi.example.com&iss=https%3A%2F%2Fapi.example.com",
            "issuer_mismatch",
            0,
        ),
        ("CODE&state=STATE&iss=", "issuer_mismatch", 0),
        (
            "CODE&state=STATE&iss=https%3A%2F%2Fevil.example",
            "issuer_mismatch",
            0,
        ),
        ("CODE&state=STATE&error=server_error", "server_error", 0),
        (
            "state=STATE&error=HOSTILE&error_description=HOSTILE",
            "%22%3E%3Cscript%3E",
            0,
        ),
    ];
    for (case, error, exchanges) in cases {
        let (id, back) = begun(&oauth, &project).await;
        let (_, foreign) = begun(&other, &project).await;
        let query = case
            .replace("CODE", &format!("code={}", parameter(&back, "code")))
            .replace("OTHER", parameter(&foreign, "code"))
            .replace("STATE", parameter(&back, "state"))
            .replace("HOSTILE", &hostile);
        let before = asked(&oauth, "/token");
        let landed = open(&project, &format!("{callback}?{query}")).await;
        let to = landed.header("location");
        assert_eq!(landed.status, 302, "{case}: {landed:?}");
        assert!(
            to.starts_with("https://app.example/done?status=failed")
                && to.contains(&format!("&error={error}")),
            "{case}: {to}"
        );
        assert_eq!(status(&project, &id).await, "FAILED", "{case}");
        assert_eq!(asked(&oauth, "/token") - before, exchanges, "{case}");
        let again = open(&project, &back).await;
        assert_eq!(again.status, 400, "{case}: the state was spent");
        let read = project.account(&id).await;
        assert!(!read.text.contains("code-"), "{case}: {read:?}");
    }
}

#[tokio::test]
async fn invalid_token_response_fails_without_retry() {
    let (project, oauth) = Oauth::in_new_project().await;
    for fault in [
        Fault::Status(200),
        Fault::Says("{\"access_token\":\"a"),
        Fault::Says("{\"error\":\"invalid_grant\"}"),
        Fault::Lost,
        Fault::Status(500),
        Fault::Refused("invalid_grant"),
        Fault::Says("{}"),
        Fault::Says("[]"),
        Fault::Says("null"),
        Fault::Says("{\"access_token\":\"\"}"),
        Fault::Says("{\"access_token\":\"a\\r\\nx-evil: 1\"}"),
        Fault::Says("{\"access_token\":\"a\",\"token_type\":\"DPoP\"}"),
        Fault::Says("{\"access_token\":\"a\",\"error\":\"invalid_grant\"}"),
        Fault::Long(10 << 20),
        Fault::Onward,
    ] {
        oauth.issuer.fault(fault, 1);
        let before = asked(&oauth, "/token");
        let (id, landed) = oauth.attempt(&project).await;
        let to = landed.header("location");
        assert!(
            to.ends_with("&error=token_exchange_failed"),
            "{fault:?}: {landed:?}"
        );
        assert_eq!(status(&project, &id).await, "FAILED", "{fault:?}");
        assert_eq!(asked(&oauth, "/token") - before, 1, "{fault:?}");
    }
    assert_eq!(asked(&oauth, "/onward"), 0, "a code was sent on");
}

#[tokio::test]
async fn invalid_token_lifetime_is_ignored() {
    let (project, oauth) = Oauth::in_new_project().await;
    for lifetime in ["-1", "0", "\"soon\"", "1e300", "null", "{}"] {
        let body = format!(
            "{{\"access_token\":\"at-given\",\"token_type\":\"Bearer\",\"expires_in\":{lifetime}}}"
        );
        oauth.issuer.fault(Fault::Says(body.leak()), 1);
        let (id, _) = oauth.attempt(&project).await;
        let read = project.account(&id).await;
        assert_eq!(
            (&read["status"], read["state"]["val"].get("expires_in")),
            (&"ACTIVE".into(), None),
            "{lifetime}"
        );
    }
}

#[tokio::test]
async fn refresh_without_new_refresh_token_keeps_old() {
    let (project, oauth) = Oauth::in_new_project().await;
    oauth.issuer.set(|settings| settings.rotate = false);
    oauth.connect(&project).await;
    oauth.issuer.expire();
    oauth.execute(&project).await.data();
    assert_eq!(oauth.issuer.granted("refresh_token"), 1);
    let read = project.get("/connected_accounts").await.expect(200);
    assert!(
        read["items"][0]["state"]["val"]["refresh_token"].is_string(),
        "{read:?}"
    );
}

#[tokio::test]
async fn hostile_error_text_is_not_shown() {
    let host = Host::shared().await;
    let (project, oauth) = Oauth::in_new_project().await;
    let body = json!({ "auth_config": { "id": oauth.config }, "connection": {} });
    let made = project.post("/connected_accounts", &body).await.expect(201);
    let back = oauth.visit(&made).await;
    let url = format!(
        "{}/api/v3/toolkits/auth/callback?error={}&state={}",
        host.url,
        percent("<script>alert(1)</script>"),
        parameter(&back, "state")
    );
    let landed = open(&project, &url).await;
    assert_eq!(
        landed.header("location"),
        format!("{}/link/done?status=failed", host.url)
    );
    let page = open(&project, landed.header("location")).await;
    assert!(!page.text().contains("script"), "{page:?}");
}
