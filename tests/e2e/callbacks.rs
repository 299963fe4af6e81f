//! Manipulated authorization requests and callbacks: the response to each, the resulting status of
//! the account, and the number of codes sent to a provider. Faulty responses of a provider are in
//! `hostile_answers`, browsers in `link`.

use futures::future::join_all;
use harness::{
    BucketService, Client, Host, Issuer, Postgres, fake_app, host::Setup, unique, wait_until,
};
use reqwest::Url;
use serde_json::json;

use crate::{
    given::{self, Oauth, open, status},
    link::{Browser, form_token, link},
};
use Lands::{Connected, Nowhere, With};
use Meanwhile::{AccountDeleted, BegunAgain, ConfigDeleted, Nothing, ProjectDeleted};

/// Address of an attacker.
const ATTACKER_URL: &str = "https://evil.example/";
/// Error of a code that the provider does not exchange.
const EXCHANGE_FAILED: &str = "token_exchange_failed";

/// Event that happens while the user is at the provider.
#[derive(Debug, Clone, Copy)]
enum Meanwhile {
    Nothing,
    /// The auth config is deleted.
    ConfigDeleted,
    /// The account is deleted.
    AccountDeleted,
    /// The project is deleted.
    ProjectDeleted,
    /// A newer connection attempt is started.
    BegunAgain,
}

/// Page on which the browser ends.
#[derive(Debug, Clone, Copy)]
enum Lands {
    /// An error page of the server.
    Nowhere,
    /// The project's address, with this error.
    With(&'static str),
    /// The project's address, after a successful connection.
    Connected,
}

/// A manipulated connection attempt.
struct Bent {
    case: &'static str,
    /// Returns the address that the browser opens, derived from the one to which it was redirected.
    opens: fn(&str, &Oauth) -> String,
    meanwhile: Meanwhile,
    /// Query of the callback.
    query: &'static str,
    lands: Lands,
}

fn bent(case: &'static str, query: &'static str, lands: Lands) -> Bent {
    Bent {
        case,
        opens: |url, _| url.to_owned(),
        meanwhile: Nothing,
        query,
        lands,
    }
}

impl Bent {
    fn opening(self, opens: fn(&str, &Oauth) -> String) -> Self {
        Self { opens, ..self }
    }

    fn meanwhile(self, meanwhile: Meanwhile) -> Self {
        Self { meanwhile, ..self }
    }

    /// Returns the final status of the account; empty if the account does not exist.
    fn becomes(&self) -> &'static str {
        match (self.lands, self.meanwhile) {
            (Connected, _) => "ACTIVE",
            (With(_), _) => "FAILED",
            (Nowhere, AccountDeleted | ProjectDeleted) => "",
            (Nowhere, _) => "INITIATED",
        }
    }

    /// Returns the number of codes sent to any token endpoint: a refused exchange sends one too.
    fn sent(&self) -> usize {
        usize::from(matches!(self.lands, Connected | With(EXCHANGE_FAILED)))
    }
}

/// Returns the number of requests to the token endpoints of these providers.
fn sent(all: &[&Oauth]) -> usize {
    let sent = all
        .iter()
        .map(|oauth| Host::application().asked(&oauth.tag, "/token"));
    sent.sum()
}

/// Returns a parameter of an address; empty if it is absent.
pub(crate) fn parameter(url: &str, name: &str) -> String {
    let url = Url::parse(url).unwrap();
    url.query_pairs()
        .find(|(own, _)| own == name)
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

/// Returns the address with its parameters replaced or removed by `change`.
fn with(url: &str, change: impl Fn(&str, String) -> Option<String>) -> String {
    let old = Url::parse(url).unwrap();
    let pairs = old
        .query_pairs()
        .filter_map(|(name, value)| Some((change(&name, value.into_owned())?, name.into_owned())));
    let mut new = old.clone();
    new.query_pairs_mut()
        .clear()
        .extend_pairs(pairs.map(|(value, name)| (name, value)));
    new.into()
}

/// Returns the address with another value of a parameter.
fn with_parameter(url: &str, changed: &str, to: &str) -> String {
    with(url, |name, value| {
        Some(if name == changed {
            to.to_owned()
        } else {
            value
        })
    })
}

/// Returns an authorization server that names itself in callbacks and requires no challenge.
async fn naming_itself(host: &Host, project: &Client) -> Oauth {
    let oauth = Oauth::of(host, project, Issuer::credentials(), |issuer| {
        issuer.discovered("OAUTH2")
    })
    .await;
    oauth
        .issuer
        .set(|settings| (settings.names_issuer, settings.pkce) = (true, false));
    oauth
}

impl Meanwhile {
    async fn happens(self, host: &Host, project: &Client, oauth: &Oauth, account: &str) {
        let account = format!("/connected_accounts/{account}");
        let config = format!("/auth_configs/{}", oauth.config);
        let changed = match self {
            Nothing => return,
            ProjectDeleted => return host.delete_project(&project.project_id().await).await,
            ConfigDeleted => project.delete(&config).await,
            AccountDeleted => project.delete(&account).await,
            BegunAgain => {
                let again = format!("{account}/refresh");
                project.post(&again, &json!({})).await
            }
        };
        changed.expect(200);
    }
}

#[tokio::test]
async fn manipulated_authorization_never_leaks_the_code() {
    let host = Host::shared().await;
    let as_it_came = "code=CODE&state=STATE&iss=ISS";
    let other_end = "code=CODE&state=STATE&iss=ISS&callback_url=https://evil.example&redirect_uri=https://evil.example";
    let mismatch = With("issuer_mismatch");
    let refused = With(EXCHANGE_FAILED);
    let cases = [
        bent("nothing is bent", as_it_came, Connected),
        bent("another place to end is asked for", other_end, Connected),
        bent("a spent code", "code=SPENT&state=STATE&iss=ISS", refused),
        bent("a spent state", "code=CODE&state=OLD&iss=ISS", Nowhere),
        bent(
            "a link's token as state",
            "code=CODE&state=LINK&iss=ISS",
            Nowhere,
        ),
        bent(
            "no issuer of one that names itself",
            "code=CODE&state=STATE",
            mismatch,
        ),
        bent(
            "the issuer with a slash",
            "code=CODE&state=STATE&iss=ISS/",
            mismatch,
        ),
        // The auth config leads to an attacker's provider, which redirects the browser to an honest
        // one.
        bent("a mix-up", "code=CODE&state=STATE&iss=CAME", mismatch).opening(|url, other| {
            let (_, query) = url.split_once('?').unwrap();
            format!("{}/authorize?{query}", other.issuer.url())
        }),
        bent("the challenge taken out", as_it_came, refused).opening(|url, _| {
            with(url, |name, value| {
                (!name.starts_with("code_challenge")).then_some(value)
            })
        }),
        bent("the challenge of another", as_it_came, refused)
            .opening(|url, _| with_parameter(url, "code_challenge", &"A".repeat(43))),
        bent("a code for another address", as_it_came, refused)
            .opening(|url, _| with_parameter(url, "redirect_uri", ATTACKER_URL)),
        bent("the config is gone", as_it_came, With("auth_config_gone")).meanwhile(ConfigDeleted),
        bent("the account is gone", as_it_came, Nowhere).meanwhile(AccountDeleted),
        bent("the project is gone", as_it_came, Nowhere).meanwhile(ProjectDeleted),
        bent("a newer way was begun", as_it_came, Nowhere).meanwhile(BegunAgain),
    ];
    for bent in cases {
        let case = bent.case;
        let project = host.new_project().await;
        let [own, other] = [
            naming_itself(host, &project).await,
            naming_itself(host, &project).await,
        ];
        // A completed connection attempt, and a link that was not opened.
        let done = own.begin(&project, "https://app.example/").await;
        let done = own.visit(&done).await;
        assert_eq!(open(&project, &done).await.status, 302, "{case}");
        let (_, page) = link(&project, &own.config, json!({})).await;

        let made = own.begin(&project, "https://app.example/done").await;
        let id = made["id"].as_str().unwrap();
        let away = made["redirect_url"].as_str().unwrap();
        let opened = (bent.opens)(away, &other);
        let visited = if opened.starts_with(&other.issuer.url()) {
            &other
        } else {
            &own
        };
        let back = visited.issuer.visit(&opened).await;
        bent.meanwhile.happens(host, &project, &own, id).await;
        let before = sent(&[&own, &other]);
        let filled = [
            ("CODE", parameter(&back, "code")),
            ("SPENT", parameter(&done, "code")),
            ("STATE", parameter(away, "state")),
            ("OLD", parameter(&done, "state")),
            ("LINK", page.rsplit('/').next().unwrap().to_owned()),
            ("ISS", own.issuer.url()),
            ("CAME", parameter(&back, "iss")),
        ];
        let query = filled
            .iter()
            .fold(bent.query.to_owned(), |query, (name, value)| {
                query.replace(name, value)
            });
        let callback = format!("{}/api/v3/toolkits/auth/callback?{query}", host.url);
        let landed = open(&project, &callback).await;
        let of_account = |status: &str| {
            format!("https://app.example/done?status={status}&connected_account_id={id}")
        };
        let expected_at = match bent.lands {
            Nowhere => String::new(),
            With(error) => format!("{}&error={error}", of_account("failed")),
            Connected => of_account("success"),
        };
        let expected_status = if expected_at.is_empty() { 400 } else { 302 };
        assert_eq!(
            (landed.status, landed.header("location")),
            (expected_status, &*expected_at),
            "{case}"
        );
        let came = (status(&project, id).await, sent(&[&own, &other]) - before);
        let expected = (bent.becomes().to_owned(), bent.sent());
        assert_eq!(came, expected, "{case}");
    }
}

#[tokio::test]
async fn expired_state_is_rejected() {
    let setup = given::with_application().with("connections.pending_s", "1");
    let host = setup.start().await;
    let project = host.as_project();
    let oauth = Oauth::new(&host, &project).await;
    let made = oauth.begin(&project, "https://app.example/done").await;
    let back = oauth.visit(&made).await;
    // The user may take six times as long as the account waits: each later attempt waits as long.
    for _ in 0..6 {
        let later = oauth.begin(&project, "https://app.example/done").await;
        let later = later["id"].as_str().unwrap();
        wait_until("a later one is over", || async {
            status(&project, later).await == "EXPIRED"
        })
        .await;
    }
    let landed = open(&project, &back).await;
    assert_eq!((landed.status, landed.header("location")), (400, ""));
    assert_eq!(
        status(&project, made["id"].as_str().unwrap()).await,
        "EXPIRED"
    );
    assert_eq!(sent(&[&oauth]), 0);
}

#[tokio::test]
async fn link_of_a_deleted_project_is_rejected() {
    let (host, project) = Host::shared_with_project().await;
    let oauth = Oauth::new(host, &project).await;
    let (_, url) = link(&project, &oauth.config, json!({})).await;
    let mut browser = Browser::new(&project);
    let token = form_token(&browser.open(&url).await);
    let id = project.project_id().await;
    host.delete_project(&id).await;
    assert_eq!(browser.open(&url).await.status, 400);
    let away = browser.send(&url, &[("form-token", &token)]).await;
    assert_eq!((away.status, away.header("location")), (400, ""));
    assert_eq!(given::seen(&oauth.tag), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_callbacks_on_three_servers_exchange_once() {
    let bucket = BucketService::start();
    let setup = Setup::embedded()
        .on(Postgres::shared().database(None))
        .in_bucket(&bucket);
    let one = setup
        .with_application(&fake_app::FAKE_APP_HOSTS, Host::application())
        .start()
        .await;
    let (two, three) = tokio::join!(one.setup().another().start(), one.setup().another().start());
    let project = one.as_project();
    let oauth = Oauth::new(&one, &project).await;
    let hosts = [&one, &two, &three];
    for host in hosts {
        let path = format!("/toolkits/{}", oauth.slug);
        host.with_key(project.key()).wait_for(&path).await;
    }
    let made = oauth
        .begin(&project, &format!("https://app.example/{}", unique(4)))
        .await;
    let back = oauth.visit(&made).await;
    let place = back.strip_prefix(&one.url).unwrap();
    let all = (0..9).map(|number| {
        let host = hosts[number % 3];
        let url = format!("{}{place}", hosts[number % 3].url);
        async move { open(&host.anonymous(), &url).await.status }
    });
    let mut statuses = join_all(all).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [302, 400, 400, 400, 400, 400, 400, 400, 400]);
    assert_eq!(sent(&[&oauth]), 1);
    assert_eq!(
        status(&project, made["id"].as_str().unwrap()).await,
        "ACTIVE"
    );
}
