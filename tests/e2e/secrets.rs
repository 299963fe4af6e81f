//! No secret is stored or sent in plain text: the tests search everything that the server writes
//! and responds, at its highest log level, for every token, code, key, verifier and link. Secrets
//! made by tests and keys issued to clients are searched for by every client and host of the suite
//! ([`harness::hunt`]). This file covers the secrets that the server creates internally, and the
//! places that no other test has.

use std::io::Read;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use harness::{
    BucketService, Client, Guest, Host, Hunt, Issuer, Postgres, Tunnel,
    client::RawResponse,
    guest,
    host::{self, Setup},
    issuer::Fault,
    secret, unique, wait_until,
};
use reqwest::Method;
use serde_json::json;

use crate::{
    callbacks::parameter,
    files,
    given::{self, Oauth, open, text},
    link::{self, Browser},
};

const SHARED_SECRET: &str = harness::marked!("shared-");

/// Responses to clients, except the two that must contain a secret: the address of a link, and the
/// redirect to a provider.
#[derive(Default)]
struct Heard(std::sync::Mutex<Vec<String>>);

impl Heard {
    fn note(&self, what: &str, text: &str) {
        self.0.lock().unwrap().push(format!("{what}: {text}"));
    }

    fn page(&self, what: &str, page: &RawResponse) {
        // A browser receives its own cookie and the form token once.
        let text = page.text();
        self.note(what, &format!("{} {text}", page.header("location")));
    }
}

/// Takes an account through its life cycle: connected, used, refreshed, refused once, read and
/// revoked; another one is deleted.
async fn live(project: &Client, oauth: &Oauth, heard: &Heard, secrets: &mut Vec<String>) {
    for last in ["revoke", "delete"] {
        let made = oauth.begin(project, "https://app.example/done").await;
        let path = format!("/connected_accounts/{}", text(&made["id"]));
        let url = text(&made["redirect_url"]);
        secrets.push(parameter(url, "state"));
        let back = oauth.issuer.visit(url).await;
        heard.page("callback", &open(project, &back).await);
        heard.page("callback", &open(project, &back).await);
        heard.note("call", &oauth.execute(project).await.text);
        oauth.issuer.expire();
        heard.note("call", &oauth.execute(project).await.text);
        for list in [&*path, "/connected_accounts", "/auth_configs"] {
            heard.note(list, &project.get(list).await.text);
        }
        let logs = project.post("/logs/tool_execution", &json!({})).await;
        heard.note("log", &logs.text);
        let ended = match last {
            "revoke" => project.post(&format!("{path}/revoke"), &json!({})).await,
            _ => {
                project
                    .delete(&format!("{path}?revoke_on_delete=true"))
                    .await
            }
        };
        heard.note(last, &ended.text);
    }
    // A failed refresh at a provider that reflects the request.
    oauth.connect(project).await;
    oauth.issuer.expire();
    oauth.issuer.fault(Fault::Echoes, 2);
    heard.note("call", &oauth.execute(project).await.text);
    heard.note("accounts", &project.get("/connected_accounts").await.text);
    oauth.issuer.clear_faults();
    // Failed connection attempts.
    for fault in [
        Fault::Status(200),
        Fault::Lost,
        Fault::Refused("invalid_grant"),
        Fault::Says("{\"access_token\":\"a"),
        Fault::Echoes,
    ] {
        let made = oauth.begin(project, "https://app.example/done").await;
        let url = text(&made["redirect_url"]);
        secrets.push(parameter(url, "state"));
        oauth.issuer.fault(fault, 1);
        let back = oauth.issuer.visit(url).await;
        heard.page("callback", &open(project, &back).await);
        let path = format!("/connected_accounts/{}", text(&made["id"]));
        heard.note("account", &project.get(&path).await.text);
    }
    for seen in Host::application().seen(&oauth.tag) {
        let body = String::from_utf8_lossy(&seen.body);
        let form = format!("https://form.example/?{body}");
        if seen.path.ends_with("/token") && body.contains("code_verifier=") {
            secrets.push(parameter(&form, "code_verifier"));
        }
    }
    secrets.extend(oauth.issuer.secrets());
}

#[tokio::test(flavor = "multi_thread")]
async fn account_secrets_never_leave_the_server() {
    let host = given::with_application().with("log", "trace").start().await;
    let project = host.new_project().await;
    let (heard, mut secrets) = (Heard::default(), Vec::new());
    let oauth = Oauth::of(&host, &project, Issuer::credentials(), |issuer| {
        issuer.discovered("OAUTH2")
    })
    .await;
    live(&project, &oauth, &heard, &mut secrets).await;
    let registered = Oauth::registered(&host, &project, json!({})).await;
    let issuer = &registered.issuer;
    issuer.set(|settings| settings.client_secret = Some(0));
    live(&project, &registered, &heard, &mut secrets).await;

    // A key filled in on the link page.
    let slug = given::slug();
    given::publish_with_key(&host, &Guest::fetch(), &slug).await;
    let shared = json!({ "shared_credentials": { "team_secret": SHARED_SECRET } });
    let config = given::key_config(&project, &slug, &shared).await;
    let link = json!({ "auth_config_id": config, "user_id": "amy" });
    let link = project.post("/connected_accounts/link", &link).await;
    let link = link.expect(201);
    let url = text(&link["redirect_url"]);
    let key = format!("key+/={}%", harness::secret());
    let mut browser = Browser::new(&project);
    let page = browser.open(url).await;
    let token = link::form_token(&page);
    let (_, cookie) = page.header("set-cookie").split_once('=').unwrap();
    let cookie = cookie.split(';').next().unwrap();
    let fields = [("form-token", &*token), ("api_key", &key)];
    heard.page("page", &browser.send(url, &fields).await);
    for path in ["/connected_accounts", &format!("/auth_configs/{config}")] {
        heard.note(path, &project.get(path).await.text);
    }
    secrets.extend([
        key,
        given::string(&link["link_token"]),
        SHARED_SECRET.to_owned(),
        harness::issuer::CLIENT_SECRET.to_owned(),
        cookie.to_owned(),
    ]);

    secrets.sort();
    secrets.dedup();
    let are_long = secrets.iter().all(|secret| secret.len() >= 10);
    assert!(secrets.len() > 40 && are_long, "{secrets:?}");
    let secrets: Vec<_> = secrets.into_iter().map(String::into_bytes).collect();
    let hunt = Hunt::for_mark_and(&secrets);
    let absent = |found: Result<(), String>| found.unwrap_or_else(|found| panic!("{found}"));
    for answer in heard.0.lock().unwrap().iter() {
        absent(hunt.within("an answer", answer.as_bytes()));
    }
    wait_until("the log is written", async || host.output().len() > 10_000).await;
    absent(hunt.within("the server's log", host.output().as_bytes()));
    if host::on_postgres() {
        let rows = host.setup().database().rows().unwrap();
        absent(hunt.within("the database", &rows));
    }
    let (setup, status) = host.terminate().await;
    assert!(status.success(), "{status:?}");
    absent(hunt.within_folder(&setup.data(), &[]));
}

/// Starts a server at its highest log level, with an account that has a key and one that has
/// tokens.
async fn furnished(setup: Setup) -> (Host, String) {
    let hosts = harness::fake_app::FAKE_APP_HOSTS;
    let setup = setup.with_application(&hosts, Host::application());
    let host = setup.with("log", "trace").start().await;
    let project = host.as_project();
    let (slug, id) = given::fetcher(&host).await;
    let leak = json!({ "url": "https://api.example.com/leak/x" });
    project.execute(&guest::tool(&slug), leak).await.data();
    let oauth = Oauth::new(&host, &project).await;
    oauth.connect(&project).await;
    oauth.execute(&project).await.data();
    (host, id)
}

/// Returns the keys that the first start of a server wrote.
fn keys(host: &Host) -> [Vec<u8>; 2] {
    [&host.org_key, &host.project_key].map(|key| key.clone().into_bytes())
}

/// The harness searches the rows wherever a server ends. This test searches the files of PostgreSQL
/// and a dump.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_files_and_dumps_hold_no_secret() {
    let server = Postgres::start();
    let (database, password) = (server.database(None), secret());
    database.say(&format!(
        "create role guarded superuser login password '{password}'"
    ));
    let url = database
        .url()
        .replacen("postgres@", &format!("guarded:{password}@"), 1);
    let (host, id) = furnished(Setup::embedded().on(database).with("store", url)).await;
    let keys = keys(&host);
    let dump = host.setup().database().dump();
    let (_setup, status) = host.terminate().await;
    assert!(status.success());
    let written = server.folder().join("data/pg_wal");
    // These finds show that the dump and the write-ahead log contain the records.
    let records = Hunt::for_mark_and(&[id.into_bytes()]);
    records.within("the dump", &dump).unwrap_err();
    records.within_folder(&written, &[]).unwrap_err();
    let hunt = Hunt::for_mark_and(&keys);
    hunt.within("the dump", &dump).unwrap();
    hunt.within_folder(&server.folder(), &[]).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn archive_and_its_content_are_encrypted() {
    let (host, id) = furnished(Setup::new()).await;
    let folder = tempfile::tempdir().unwrap();
    let identity = age::x25519::Identity::generate();
    let file = folder.path().join("all.age");
    let recipient = identity.to_public().to_string();
    let export = ["export", file.to_str().unwrap(), "--recipient", &recipient];
    host.setup().command(&export).succeeded();
    let records = Hunt::for_mark_and(&[id.into_bytes()]);
    let hunt = Hunt::for_mark_and(&keys(&host));
    records.within_file(&file).unwrap();
    hunt.within_file(&file).unwrap();
    let locked = age::Decryptor::new(std::fs::File::open(&file).unwrap()).unwrap();
    let mut opened = Vec::new();
    let identities = std::iter::once(&identity as &dyn age::Identity);
    let mut content = locked.decrypt(identities).unwrap();
    content.read_to_end(&mut opened).unwrap();
    records.within("the archive", &opened).unwrap_err();
    hunt.within("the archive", &opened).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_secrets_do_not_leak() {
    let setup = Setup::new();
    let file = setup.data().with_file_name("toolhost.toml");
    let settings = format!(
        "[llm]\nbase_url = \"{}\"\nmodel = \"m\"\nkey = \"{}\"\n[oauth_apps.acme]\nclient_id = \"acme\"\nclient_secret = \"{}\"\n",
        Host::application().model(&unique(6), &["{}"]),
        secret(),
        secret(),
    );
    std::fs::write(&file, settings).unwrap();
    let (host, _) = furnished(setup).await;
    let process = std::path::PathBuf::from(format!("/proc/{}", host.pid()));
    let hunt = Hunt::for_mark_and(&keys(&host));
    for place in ["cmdline", "environ"] {
        hunt.within_file(&process.join(place)).unwrap();
    }
    let limits = std::fs::read_to_string(process.join("limits")).unwrap();
    let mut limits = limits.lines();
    let core = limits.find(|line| line.starts_with("Max core file size"));
    let words = core.unwrap().split_whitespace();
    assert_eq!(words.filter(|word| *word == "0").count(), 2, "{core:?}");
    for page in ["/docs", "/api/v3/openapi.json", "/health/ready"] {
        open(&host.as_project(), &format!("{}{page}", host.url)).await;
    }
    host.setup().command(&["doctor"]);
    // The settings file is expected to hold the secrets. It is removed before the harness searches
    // the folder.
    std::fs::remove_file(file).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn traps_and_broken_connections_leak_no_credential() {
    let tunnel = Tunnel::start(Host::application(), &["api.example.com"], None);
    let setup = Setup::new()
        .with("log", "trace")
        .with("net.allow", "127.0.0.0/8")
        .with("logs.cassettes", "all");
    let host = setup.start().await;
    let project = host.as_project();
    let traps = Guest {
        execute: "(unreachable)",
        ..Guest::fetch()
    };
    for (guest, kind) in [(Guest::fetch(), "tls"), (traps, "tool_trap")] {
        let slug = given::slug();
        given::publish_with_key(&host, &guest, &slug).await;
        let proxy = json!({ "proxy_url": tunnel.address, "proxy_auth_key": secret() });
        let proxy = json!({ "proxy_config": proxy });
        let config = given::key_config(&project, &slug, &proxy).await;
        let key = format!("sk\"+/={}%", secret());
        given::made_account(&project, &config, "default", &key).await;
        let call = json!({ "url": "https://api.example.com/echo/x" });
        let ran = project.execute(&guest::tool(&slug), call).await;
        assert_eq!(ran["successful"], false, "{}", ran.text);
        assert_eq!(ran.failure(), kind, "{}", ran.text);
        let log = format!("/logs/tool_execution/{}", text(&ran["log_id"]));
        project.get(&log).await;
        project.get(&format!("{log}/cassette")).await;
    }
    let (_setup, status) = host.terminate().await;
    assert!(status.success());
}

/// A file link must contain its signature. No other output may.
#[tokio::test(flavor = "multi_thread")]
async fn file_link_signature_appears_only_in_link() {
    let bucket = BucketService::start();
    let own = || Setup::new().with("log", "trace");
    for setup in [own(), own().in_bucket(&bucket).with("s3.presigned", "true")] {
        let host = setup.start().await;
        let (project, slug) = (host.as_project(), files::copier(&host).await);
        let asked = files::ask(&project, &slug, b"text", json!({})).await;
        let asked = asked.expect(200);
        let url = files::url(&asked);
        let signature = ["signature", "X-Amz-Signature"].map(|name| parameter(url, name));
        let signature = signature.concat();
        assert!(signature.len() >= 32, "{url}");
        let headers = asked["headers"].as_object().into_iter().flatten();
        let headers: Vec<_> = headers
            .map(|(name, value)| (&**name, text(value)))
            .collect();
        let content = b"text".to_vec();
        let put = project.exchange(Method::PUT, url, &headers, content).await;
        assert_eq!(put.status, 200, "{put:?}");
        project.get("/files/list").await.expect(200);
        let folder = host.setup().clone();
        let hunt = Hunt::for_mark_and(&[signature.into_bytes()]);
        wait_until("the log is written", async || host.output().len() > 10_000).await;
        let log = host.output();
        hunt.within("the server's log", log.as_bytes()).unwrap();
        host.terminate().await;
        hunt.within_folder(&folder.data(), &[]).unwrap();
    }
}

/// Tests the search at the end of a server: it must find a planted secret.
#[tokio::test]
#[should_panic(expected = "holds a secret as base64, made at")]
async fn leftover_secret_fails_the_test() {
    let host = Setup::embedded().start().await;
    let left = BASE64.encode(format!("x{}", secret()));
    std::fs::write(host.data().join("left"), left).unwrap();
    host.kill();
}
