//! Many tokens that expire at the same time on several servers, and providers that are slow or
//! unavailable for long: each account costs one request, and no account is lost.

use std::time::Duration;

use futures::{StreamExt, future::join_all, stream};
use harness::{
    Answer, BucketService, Client, Host, Issuer, guest, host::size, issuer::Fault, wait_for,
    wait_until,
};
use serde_json::json;

use crate::given::{self, Oauth};

/// Number of accounts with expired tokens.
const ACCOUNT_COUNT: usize = 200;
/// Number of concurrent calls to one server: the concurrency limit of a project.
const CONCURRENT_CALLS: usize = 64;
/// Backoff times after failed refreshes, in seconds.
const BACKOFF_SECONDS: [u64; 8] = [30, 60, 120, 240, 480, 960, 1_920, 3_600];

/// Starts three servers on one database and returns them with a client of the same project on each.
async fn three(bucket: &BucketService) -> ([Host; 3], [Client; 3]) {
    let one = given::on_its_own_database().in_bucket(bucket).start().await;
    let (two, three) = tokio::join!(one.setup().another().start(), one.setup().another().start());
    let projects = [&one, &two, &three].map(|host| host.with_key(&one.project_key));
    ([one, two, three], projects)
}

/// Publishes a toolkit visible to all servers, whose access tokens expire immediately.
async fn toolkit(host: &Host, projects: &[Client]) -> Oauth {
    let oauth = Oauth::of(host, &projects[0], Issuer::credentials(), Issuer::scheme).await;
    oauth.issuer.set(|settings| settings.lifetime = 1);
    for project in projects {
        let path = format!("/toolkits/{}", oauth.slug);
        project.wait_for(&path).await;
    }
    oauth
}

/// Connects an account of a user and returns its id.
pub(crate) async fn connect(oauth: &Oauth, project: &Client, user: &str) -> String {
    let connection = json!({ "user_id": user, "callback_url": "https://app.example/done" });
    let body = json!({ "auth_config": { "id": oauth.config }, "connection": connection });
    let made = project.post("/connected_accounts", &body).await.expect(201);
    given::assert_lands(project, &oauth.visit(&made).await).await;
    given::string(&made["id"])
}

async fn execute(oauth: &Oauth, project: &Client, user: &str) -> Answer {
    let body = json!({ "arguments": { "url": oauth.me() }, "user_id": user, "version": "latest" });
    let path = format!("/tools/execute/{}", guest::tool(&oauth.slug));
    project.post(&path, &body).await
}

/// Invalidates the existing access tokens and makes the next ones long-lived.
fn end(oauth: &Oauth) {
    oauth.issuer.expire();
    oauth.issuer.set(|settings| settings.lifetime = 3_600);
}

async fn statuses(project: &Client) -> Vec<String> {
    let read = project.get("/connected_accounts?limit=1000").await;
    let read = read.expect(200);
    let items = read["items"].as_array().unwrap().iter();
    let statuses = items.map(|item| given::string(&item["status"]));
    statuses.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_expired_token_is_refreshed_once() {
    let bucket = BucketService::start();
    let (hosts, projects) = three(&bucket).await;
    let oauth = toolkit(&hosts[0], &projects).await;
    let users: Vec<_> = (0..ACCOUNT_COUNT)
        .map(|number| format!("user-{number}"))
        .collect();
    let connecting = users.iter().map(|user| connect(&oauth, &projects[0], user));
    stream::iter(connecting)
        .buffer_unordered(16)
        .collect::<Vec<_>>()
        .await;
    end(&oauth);
    // The provider is strict: reuse of a refresh token ends the account.
    oauth
        .issuer
        .fault(Fault::Slow(Duration::from_millis(300)), ACCOUNT_COUNT);
    let workers = size(1, 20);
    let calls = projects.iter().map(|project| {
        let calls = (0..workers).flat_map(|_| &users);
        stream::iter(calls.map(|user| execute(&oauth, project, user)))
            .buffer_unordered(CONCURRENT_CALLS / 2)
            .collect::<Vec<_>>()
    });
    let answers = join_all(calls).await.concat();
    assert_eq!(answers.len(), 3 * workers * ACCOUNT_COUNT);
    for answer in answers {
        answer.data();
    }
    assert_eq!(oauth.refreshes(), ACCOUNT_COUNT);
    assert_eq!(oauth.issuer.granted("refresh_token"), ACCOUNT_COUNT);
    let statuses = statuses(&projects[1]).await;
    assert_eq!(statuses, ["ACTIVE"; ACCOUNT_COUNT]);
    let mut used = oauth.tokens_used().into_iter();
    let were_valid = used.all(|token| oauth.issuer.knows(&token));
    assert!(were_valid, "a token that had ended was sent");
}

#[tokio::test]
async fn slow_refresh_returns_retry_after() {
    let setup = given::with_application().with("limits.deadline_s", "3");
    let host = setup.start().await;
    let projects = [host.as_project()];
    let oauth = toolkit(&host, &projects).await;
    connect(&oauth, &projects[0], "default").await;
    end(&oauth);
    oauth.issuer.hold(true);
    for answer in join_all((0..8).map(|_| execute(&oauth, &projects[0], "default"))).await {
        let answer = answer.expect_error(503, "ConnectedAccount_RefreshInProgress");
        let seconds: u64 = answer.header("retry-after").parse().unwrap();
        assert!(seconds > 0, "{answer:?}");
    }
    oauth.issuer.hold(false);
    execute(&oauth, &projects[0], "default").await.data();
    assert_eq!(oauth.refreshes(), 1);
    assert_eq!(oauth.issuer.granted("refresh_token"), 1);
    assert_eq!(statuses(&projects[0]).await, ["ACTIVE"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_outage_is_retried_with_backoff() {
    let bucket = BucketService::start();
    let host = given::on_its_own_database()
        .in_bucket(&bucket)
        .start()
        .await;
    let projects = [host.as_project()];
    let oauth = toolkit(&host, &projects).await;
    let id = connect(&oauth, &projects[0], "default").await;
    end(&oauth);
    oauth.issuer.fault(Fault::Status(503), 100);
    // The test ends a backoff by changing the record instead of waiting for hours.
    let over = format!(
        "update credentials set body = jsonb_set(body::jsonb, '{{retry_at}}', '1')::json where id = '{id}' returning id"
    );
    for (step, pause) in BACKOFF_SECONDS.into_iter().enumerate() {
        for _ in 0..2 {
            let calls = (0..4).map(|_| execute(&oauth, &projects[0], "default"));
            for answer in join_all(calls).await {
                let answer = answer.expect_error(503, "ConnectedAccount_RefreshUnavailable");
                let wait: u64 = answer.header("retry-after").parse().unwrap();
                assert!(
                    (pause * 4 / 5 - 10..=pause * 6 / 5).contains(&wait),
                    "{wait} s instead of {pause} s"
                );
            }
        }
        assert_eq!(oauth.refreshes(), step + 1, "in the pause of {pause} s");
        assert_eq!(statuses(&projects[0]).await, ["ACTIVE"]);
        assert_eq!(host.setup().database().say(&over), [id.as_str()]);
    }
    oauth.issuer.clear_faults();
    execute(&oauth, &projects[0], "default").await.data();
    assert_eq!(oauth.refreshes(), BACKOFF_SECONDS.len() + 1);
    assert_eq!(oauth.issuer.granted("refresh_token"), 1);
    assert_eq!(statuses(&projects[0]).await, ["ACTIVE"]);
    assert_eq!(oauth.tokens_used().len(), 1);
}

#[tokio::test]
async fn slow_idle_refresh_does_not_block_jobs() {
    let host = given::with_application()
        .with("connections.idle_refresh_s", "1")
        .with("connections.pending_s", "1")
        .with("limits.deadline_s", "90")
        .start()
        .await;
    let projects = [host.as_project()];
    let oauth = toolkit(&host, &projects).await;
    connect(&oauth, &projects[0], "idle").await;
    oauth.issuer.hold(true);
    wait_until("the idle account is being refreshed", || async {
        oauth.refreshes() > 0
    })
    .await;
    let begun = oauth.begin(&projects[0], "https://app.example/done").await;
    let path = format!("/connected_accounts/{}", begun["id"].as_str().unwrap());
    // The time is shorter than the timeout of a request to the provider.
    wait_for(
        Duration::from_secs(25),
        "the account that nobody came back to expires",
        || async { projects[0].get(&path).await.expect(200)["status"] == "EXPIRED" },
    )
    .await;
    assert_eq!(oauth.refreshes(), 1, "the refresh goes on");
    oauth.issuer.hold(false);
}

#[tokio::test]
async fn resumed_account_is_refreshed_while_idle() {
    let setup = given::with_application().with("connections.idle_refresh_s", "1");
    let host = setup.start().await;
    let projects = [host.as_project()];
    let paused = toolkit(&host, &projects).await;
    let other = toolkit(&host, &projects).await;
    let account = connect(&paused, &projects[0], "amy").await;
    let status = format!("/connected_accounts/{account}/status");
    let enable = async |enabled: bool| {
        let body = json!({ "enabled": enabled });
        projects[0].patch(&status, &body).await.expect(200);
    };
    enable(false).await;
    connect(&other, &projects[0], "amy").await;
    // By then, the paused account was due as well.
    wait_until("another account was refreshed again and again", || async {
        other.refreshes() > 2
    })
    .await;
    let before = paused.refreshes();
    enable(true).await;
    wait_until("the resumed account is refreshed", || async {
        paused.refreshes() > before
    })
    .await;
}
