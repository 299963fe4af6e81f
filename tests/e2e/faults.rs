//! An interrupted, overtaken or late refresh: an account keeps the token that its provider knows,
//! and no other token is used.

use harness::{
    Answer, BucketService, Client, Database, Host, Issuer, Postgres, client::Body, fake_app, guest,
    host::Setup, issuer::Fault, wait_until,
};
use reqwest::Method;
use serde_json::json;

use crate::{
    given::{self, Oauth},
    refresh::status,
};

/// Deadline of operations. The lease during which another server does not refresh the token is
/// three times as long.
const DEADLINE_SECONDS: &str = "3";
/// Trigger that delays the commit of a refreshed token until no caller waits for it.
const STALL_TRIGGER: &str = "
    create function stalled() returns trigger language plpgsql as $$ begin
        if json_typeof(new.body->'lease') = 'null' then perform pg_sleep(3600); end if;
        return new;
    end $$;
    create trigger stalled before update on credentials for each row execute function stalled();
";

/// Connects an account whose access token has expired and whose next one is long-lived.
async fn ended(host: &Host, project: &Client) -> (Oauth, String) {
    let oauth = Oauth::of(host, project, Issuer::credentials(), |issuer| {
        issuer.discovered("OAUTH2")
    })
    .await;
    oauth.issuer.set(|settings| settings.lifetime = 1);
    let id = oauth.connect(project).await;
    oauth.issuer.expire();
    oauth.issuer.set(|settings| settings.lifetime = 3_600);
    (oauth, id)
}

/// Executes the tool on a server that may end before it responds.
async fn execute(oauth: &Oauth, project: &Client) -> Result<Answer, reqwest::Error> {
    let path = format!("/tools/execute/{}", guest::tool(&oauth.slug));
    let body =
        json!({ "arguments": { "url": oauth.me() }, "user_id": "default", "version": "latest" });
    project
        .try_send(Method::POST, &path, Body::Json(body), &[])
        .await
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    wait_until(what, async || condition()).await;
}

/// Executes the tool until it succeeds.
async fn goes_on(oauth: &Oauth, project: &Client) {
    wait_until("the account runs again", || async {
        oauth.execute(project).await.status == 200
    })
    .await;
}

pub(crate) fn refreshed(oauth: &Oauth) -> usize {
    oauth.issuer.granted("refresh_token")
}

/// Asserts that the account is active after this number of refreshes.
async fn assert_active(oauth: &Oauth, project: &Client, id: &str, refreshes: usize) {
    let found = (status(project, id).await.0, refreshed(oauth));
    assert_eq!(found, ("ACTIVE".into(), refreshes));
}

fn on_database(database: Database, bucket: &BucketService) -> Setup {
    let setup = Setup::embedded()
        .on(database)
        .in_bucket(bucket)
        .with("limits.deadline_s", DEADLINE_SECONDS);
    setup.with_application(&fake_app::FAKE_APP_HOSTS, Host::application())
}

#[tokio::test]
async fn kill_before_refresh_keeps_the_account_usable() {
    let host = given::with_application()
        .with("limits.deadline_s", DEADLINE_SECONDS)
        .start()
        .await;
    let project = host.as_project();
    let (oauth, id) = ended(&host, &project).await;
    oauth.issuer.catch_next();
    let (answer, setup) = tokio::join!(execute(&oauth, &project), async {
        until("the refresh has been sent", || oauth.issuer.caught() == 1).await;
        host.kill()
    });
    answer.unwrap_err();
    let host = setup.start().await;
    let project = host.as_project();
    goes_on(&oauth, &project).await;
    assert_active(&oauth, &project, &id, 1).await;
}

#[tokio::test]
async fn kill_during_refresh_response_keeps_reusable_tokens() {
    let host = given::with_application()
        .with("limits.deadline_s", DEADLINE_SECONDS)
        .start()
        .await;
    let project = host.as_project();
    let (oauth, id) = ended(&host, &project).await;
    oauth.issuer.set(|settings| settings.rotate = false);
    oauth.issuer.hold(true);
    let (answer, setup) = tokio::join!(execute(&oauth, &project), async {
        until("the token is renewed", || refreshed(&oauth) == 1).await;
        host.kill()
    });
    answer.unwrap_err();
    oauth.issuer.hold(false);
    let host = setup.start().await;
    let project = host.as_project();
    goes_on(&oauth, &project).await;
    assert_active(&oauth, &project, &id, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_before_commit_tries_old_token_once() {
    let bucket = BucketService::start();
    let host = on_database(Postgres::shared().database(None), &bucket)
        .start()
        .await;
    let project = host.as_project();
    let (oauth, id) = ended(&host, &project).await;
    let setup = host.setup().clone();
    let database = setup.database();
    database.say(STALL_TRIGGER);
    let stalled = "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'";
    let (answer, setup) = tokio::join!(execute(&oauth, &project), async {
        until("the commit is stalled", || database.say(stalled) == ["1"]).await;
        host.kill()
    });
    answer.unwrap_err();
    let others = "datname = current_database() and pid <> pg_backend_pid()";
    database.say(&format!(
        "select pg_terminate_backend(pid) from pg_stat_activity where {others}"
    ));
    let gone = format!("select count(*) from pg_stat_activity where {others}");
    until("nothing of it is left", || database.say(&gone) == ["0"]).await;
    database.say("drop trigger stalled on credentials");
    let host = setup.start().await;
    let project = host.as_project();
    wait_until("the account has ended", || async {
        oauth.execute(&project).await;
        status(&project, &id).await.0 == "EXPIRED"
    })
    .await;
    assert_eq!(status(&project, &id).await.1, "refresh_outcome_unknown");
    assert_eq!(refreshed(&oauth), 1);
}

#[tokio::test]
async fn kill_after_commit_keeps_the_new_token() {
    let host = given::with_application().start().await;
    let project = host.as_project();
    let (oauth, id) = ended(&host, &project).await;
    oauth.execute(&project).await.data();
    let host = host.kill().start().await;
    let project = host.as_project();
    oauth.execute(&project).await.data();
    assert_active(&oauth, &project, &id, 1).await;
}

/// Checks a call whose refresh took longer than a call waits for it: it succeeded, or sent nothing.
fn ran_or_sent_nothing(answer: Answer) {
    if answer.status != 200 {
        assert_eq!(
            answer["error"]["slug"],
            "ConnectedAccount_RefreshInProgress"
        );
    }
}

/// Starts two servers on one database. Returns them with two clients of a project that shows tokens
/// unmasked, and an account whose token has expired.
async fn two(bucket: &BucketService) -> ([Host; 2], [Client; 2], Oauth, String) {
    let one = on_database(Postgres::shared().database(None), bucket)
        .start()
        .await;
    let other = one.setup().another().start().await;
    let settings = json!({ "mask_secret_keys_in_connected_account": false });
    let (_, project) = given::project(&one, settings).await;
    let key = project.key();
    let projects = [&one, &other].map(|host| host.with_key(key).may_show_secrets("masking is off"));
    let (oauth, id) = ended(&one, &projects[0]).await;
    let path = format!("/toolkits/{}", oauth.slug);
    projects[1].wait_for(&path).await;
    ([one, other], projects, oauth, id)
}

async fn token(project: &Client, id: &str) -> String {
    let read = project.account(id).await;
    read["state"]["val"]["access_token"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn stale_lease_holder_cannot_overwrite_newer_token() {
    let bucket = BucketService::start();
    let ([one, _other], [first, second], oauth, id) = two(&bucket).await;
    // The provider accepts used refresh tokens again. With a provider that does not, the account
    // cannot be saved.
    oauth.issuer.set(|settings| settings.rotate = false);
    oauth.issuer.hold(true);
    let (late, newer) = tokio::join!(execute(&oauth, &first), async {
        until("a refresh is under way", || refreshed(&oauth) == 1).await;
        one.suspend().await;
        oauth.issuer.hold(false);
        goes_on(&oauth, &second).await;
        let newer = token(&second, &id).await;
        one.signal("CONT");
        newer
    });
    ran_or_sent_nothing(late.unwrap());
    goes_on(&oauth, &first).await;
    assert_eq!(token(&first, &id).await, newer);
    assert_eq!(refreshed(&oauth), 2);
    assert_eq!(token(&second, &id).await, newer);
    let used = oauth.tokens_used();
    assert!(
        used.iter().all(|token| *token == newer),
        "another token was used: {used:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn late_refusal_does_not_expire_refreshed_account() {
    let bucket = BucketService::start();
    let ([one, _other], [first, second], oauth, id) = two(&bucket).await;
    oauth.issuer.catch_next();
    let (late, ()) = tokio::join!(execute(&oauth, &first), async {
        until("a refresh is under way", || oauth.issuer.caught() == 1).await;
        one.suspend().await;
        goes_on(&oauth, &second).await;
        oauth.issuer.fault(Fault::Refused("invalid_grant"), 1);
        oauth.issuer.release_caught();
        one.signal("CONT");
    });
    ran_or_sent_nothing(late.unwrap());
    goes_on(&oauth, &first).await;
    assert_active(&oauth, &first, &id, 1).await;
}

#[tokio::test]
async fn token_refreshed_for_deleted_account_is_revoked() {
    let (host, project) = Host::shared_with_project().await;
    let (oauth, id) = ended(host, &project).await;
    let path = format!("/connected_accounts/{id}");
    oauth.issuer.hold(true);
    let (answer, ()) = tokio::join!(oauth.execute(&project), async {
        until("a refresh is under way", || refreshed(&oauth) == 1).await;
        assert_eq!(oauth.issuer.good(), 1);
        project.delete(&path).await.expect(200);
        oauth.issuer.hold(false);
    });
    assert_eq!(answer.status, 404, "{answer:?}");
    until("the token is revoked", || oauth.issuer.good() == 0).await;
    project.get(&path).await.expect(404);
}
