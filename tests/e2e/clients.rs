//! OAuth clients created by the server: registered once with the provider, or published as a
//! metadata document.

use std::collections::BTreeSet;

use futures::future::join_all;
use harness::{Answer, BucketService, Host, Postgres, fake_app::ReceivedRequest, host::Setup};
use serde_json::{Value, json};

use crate::{
    callbacks::parameter,
    faults::refreshed,
    given::{self, Oauth, open, status},
};

/// Returns the requests posted to a path of the provider.
fn posted(oauth: &Oauth, place: &str) -> Vec<ReceivedRequest> {
    let seen = Host::application().seen(&oauth.tag);
    seen.into_iter()
        .filter(|seen| seen.method == "POST" && seen.path.ends_with(place))
        .collect()
}

fn client_of(made: &Answer) -> String {
    parameter(made["redirect_url"].as_str().unwrap(), "client_id")
}

/// Asserts that all connection attempts have the only client that was registered. Returns its id.
fn only_client(oauth: &Oauth, made: &[Answer]) -> String {
    let clients: BTreeSet<_> = made.iter().map(client_of).collect();
    assert_eq!((clients.len(), registrations(oauth)), (1, 1));
    clients.into_iter().next().unwrap()
}

fn registrations(oauth: &Oauth) -> usize {
    oauth.issuer.granted("registration")
}

#[tokio::test]
async fn concurrent_connections_register_one_client() {
    let (host, project) = Host::shared_with_project().await;
    given::configure(&project, json!({ "display_name": "Acme" })).await;
    let oauth = Oauth::registered(host, &project, json!({})).await;
    let detail = project.get(&format!("/toolkits/{}", oauth.slug)).await;
    let detail = detail.expect(200);
    let fields = &detail["auth_config_details"][0]["fields"];
    assert_eq!(fields["auth_config_creation"]["required"], json!([]));
    let made = join_all((0..8).map(|_| oauth.begin(&project, "https://app.example/done"))).await;
    let client = only_client(&oauth, &made);
    let sent: Value = serde_json::from_slice(&posted(&oauth, "/register")[0].body).unwrap();
    let back = format!("{}/api/v3/toolkits/auth/callback", host.url);
    assert_eq!(sent["client_name"], "Acme");
    assert_eq!(sent["redirect_uris"], json!([back]));
    let id = oauth.connect(&project).await;
    oauth.execute(&project).await.data();
    oauth.issuer.expire();
    oauth.execute(&project).await.data();
    assert_eq!((refreshed(&oauth), registrations(&oauth)), (1, 1));
    let path = format!("/connected_accounts/{id}/refresh");
    let again = project.post(&path, &json!({})).await.expect(200);
    assert_eq!(client, client_of(&again));
}

#[tokio::test(flavor = "multi_thread")]
async fn several_servers_on_one_database_register_one_client() {
    let bucket = BucketService::start();
    let setup = Setup::embedded()
        .on(Postgres::shared().database(None))
        .in_bucket(&bucket);
    let setup = setup.with_application(&harness::fake_app::FAKE_APP_HOSTS, Host::application());
    let one = setup.start().await;
    let two = one.setup().another().start().await;
    let project = one.as_project();
    // Both servers use one redirect address, so that a callback may arrive at either.
    let credentials = json!({ "oauth_redirect_uri": "https://tools.example.com/back" });
    let oauth = Oauth::registered(&one, &project, credentials).await;
    let other = two.with_key(project.key());
    other.wait_for(&format!("/toolkits/{}", oauth.slug)).await;
    let begun = (0..8).map(|number| {
        oauth.begin(
            if number % 2 == 0 { &project } else { &other },
            "https://app.example/",
        )
    });
    only_client(&oauth, &join_all(begun).await);
}

#[tokio::test]
async fn forgotten_client_is_registered_again() {
    let (host, project) = Host::shared_with_project().await;
    let oauth = Oauth::registered(host, &project, json!({})).await;
    let id = oauth.connect(&project).await;
    oauth.issuer.forget_clients();
    oauth.issuer.expire();
    oauth.execute(&project).await;
    assert_eq!(
        status(&project, &id).await,
        "EXPIRED",
        "nobody can mend a client that the server made"
    );
    oauth.connect(&project).await;
    oauth.execute(&project).await.data();
    assert_eq!(registrations(&oauth), 2);
    // The provider reports the unknown client before the user is redirected to it.
    oauth.issuer.forget_clients();
    oauth.connect(&project).await;
    assert_eq!(registrations(&oauth), 3);
}

#[tokio::test]
async fn expiring_client_is_replaced_for_new_accounts() {
    let (host, project) = Host::shared_with_project().await;
    let oauth = Oauth::registered(host, &project, json!({})).await;
    let issuer = &oauth.issuer;
    issuer.set(|settings| settings.client_secret = Some(1));
    let id = oauth.connect(&project).await;
    issuer.set(|settings| settings.client_secret = Some(0));
    let first = oauth.begin(&project, "https://app.example/done").await;
    let second = oauth.begin(&project, "https://app.example/done").await;
    assert_eq!(client_of(&first), client_of(&second));
    assert_eq!(registrations(&oauth), 2);
    oauth.issuer.expire();
    oauth.execute(&project).await.data();
    assert_eq!(status(&project, &id).await, "ACTIVE");
    assert_eq!(refreshed(&oauth), 1);
    let read = project.account(&id).await;
    let secret = read["state"]["val"]["client_secret"].as_str().unwrap();
    assert!(secret.ends_with("..."), "{read:?}");
}

#[tokio::test]
async fn failed_client_registration_creates_no_account() {
    let (host, project) = Host::shared_with_project().await;
    let oauth = Oauth::of(host, &project, json!({}), |issuer| {
        let mut scheme = issuer.scheme();
        scheme["mode"] = "DCR_OAUTH".into();
        scheme["oauth2"]["register"] = json!({ "url": format!("{}/nowhere", issuer.url()) });
        scheme
    })
    .await;
    let connection = json!({ "user_id": "default" });
    let body = json!({ "auth_config": { "id": oauth.config }, "connection": connection });
    for _ in 0..2 {
        let refused = project.post("/connected_accounts", &body).await.expect(400);
        assert!(refused.text.contains("404"), "{refused:?}");
    }
    let accounts = project.get("/connected_accounts").await.expect(200);
    assert_eq!(accounts["total_items"], 0);
}

#[tokio::test]
async fn client_id_url_serves_the_client_metadata() {
    let (host, project) = Host::shared_with_project().await;
    let oauth = Oauth::of(host, &project, json!({}), |issuer| {
        issuer.discovered("CIMD_OAUTH")
    })
    .await;
    let id = oauth.connect(&project).await;
    oauth.execute(&project).await.data();
    oauth.issuer.expire();
    oauth.execute(&project).await.data();
    assert_eq!(status(&project, &id).await, "ACTIVE");
    assert_eq!(refreshed(&oauth), 1);
    let address = client_of(&oauth.begin(&project, "https://app.example/done").await);
    let expected = format!("{}/oauth/clients/{}", host.url, oauth.config);
    assert_eq!(address, expected);
    let anonymous = host.anonymous();
    let document = open(&anonymous, &address).await;
    let document: Value = serde_json::from_slice(&document.bytes).unwrap();
    let back = format!("{}/api/v3/toolkits/auth/callback", host.url);
    for (member, value) in [
        ("client_id", json!(address)),
        ("redirect_uris", json!([back])),
        ("scope", json!("read")),
        ("token_endpoint_auth_method", json!("none")),
    ] {
        assert_eq!(document[member], value, "{member}");
    }
    let keyed = given::auth_config(&project).await;
    let other = address.replace(&oauth.config, &keyed);
    assert_eq!(open(&anonymous, &other).await.status, 404);
    let disabled = format!("/auth_configs/{}/DISABLED", oauth.config);
    project.patch(&disabled, &json!({})).await.expect(200);
    let gone = open(&anonymous, &address).await;
    assert_eq!(gone.status, 404, "a disabled config connects nobody");
}

#[tokio::test]
async fn registered_client_authentication_is_used() {
    let (host, project) = Host::shared_with_project().await;
    for (registered, is_basic) in [("client_secret_basic", true), ("client_secret_post", false)] {
        let oauth = Oauth::registered(host, &project, json!({})).await;
        oauth.issuer.set(|settings| {
            settings.client_secret = Some(0);
            settings.registers = Some(registered);
        });
        oauth.connect(&project).await;
        oauth.issuer.expire();
        oauth.execute(&project).await.data();
        let requests = posted(&oauth, "/token");
        assert_eq!(requests.len(), 2);
        for request in requests {
            let sent = request.header("authorization").starts_with("Basic ");
            assert_eq!(sent, is_basic, "{registered}: {request:?}");
        }
    }
}

#[tokio::test]
async fn resource_metadata_names_the_issuer() {
    let (host, project) = Host::shared_with_project().await;
    let oauth = Oauth::of(host, &project, json!({}), |issuer| {
        let mut scheme = issuer.discovered("DCR_OAUTH");
        scheme["oauth2"] = json!({ "resource": format!("{}/api", issuer.url()) });
        scheme
    })
    .await;
    oauth.issuer.set(|settings| settings.names_issuer = true);
    oauth.connect(&project).await;
    oauth.execute(&project).await.data();
    let exchanges = posted(&oauth, "/token").len();
    let of_another = "&error=access_denied&iss=https%3A%2F%2Fevil.example";
    for (more, error) in [
        ("", "issuer_mismatch"),
        ("&error=access_denied", "issuer_mismatch"),
        (of_another, "issuer_mismatch"),
        ("&error=access_denied&iss=ISS", "access_denied"),
    ] {
        let made = oauth.begin(&project, "https://app.example/done").await;
        let back = oauth.visit(&made).await;
        let (unsigned, issuer) = back.split_once("&iss=").unwrap();
        let answered = format!("{unsigned}{}", more.replace("ISS", issuer));
        let landed = open(&project, &answered).await;
        let ending = format!("&error={error}");
        let location = landed.header("location");
        assert!(location.ends_with(&ending), "{more}: {landed:?}");
        let id = made["id"].as_str().unwrap();
        assert_eq!(status(&project, id).await, "FAILED");
    }
    assert_eq!(posted(&oauth, "/token").len(), exchanges, "a code was sent");
}
