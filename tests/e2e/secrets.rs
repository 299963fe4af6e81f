//! No secret lies anywhere in the open: every token, code, key, verifier and link is looked for in all that the server writes and
//! answers, at its most talkative. What tests make and what the server gives them as keys is looked for by every client and host of the
//! whole suite ([`harness::hunt`]); here are the secrets that the server makes without saying, and the places that no other test has.

use std::io::Read;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use harness::{
    BucketService, Client, Guest, Host, Hunt, Issuer, Postgres, Tunnel,
    client::Exchanged,
    guest,
    host::{self, Setup},
    issuer::Fault,
    secret, unique, wait_until,
};
use reqwest::Method;
use serde_json::json;

use crate::{
    files,
    given::{self, Oauth},
};

const SHARED: &str = harness::marked!("shared-");

/// What clients are answered, but for the two answers that have to hold a secret: the address of a link, and the way to an application.
#[derive(Default)]
struct Heard(std::sync::Mutex<Vec<String>>);

impl Heard {
    fn note(&self, what: &str, text: &str) {
        self.0.lock().unwrap().push(format!("{what}: {text}"));
    }

    fn page(&self, what: &str, page: &Exchanged) {
        // A browser is shown its own name, and what the form carries, once.
        let text = String::from_utf8_lossy(&page.bytes).into_owned();
        self.note(what, &format!("{} {text}", page.header("location")));
    }
}

async fn open(project: &Client, url: &str) -> Exchanged {
    project.exchange(Method::GET, url, &[], Vec::new()).await
}

/// The parameter of an address.
fn parameter(url: &str, name: &str) -> String {
    let url = reqwest::Url::parse(url).unwrap();
    url.query_pairs().find(|(own, _)| own == name).map(|(_, value)| value.into_owned()).unwrap_or_default()
}

/// One account of a flow: connected, used, renewed, refused once, shown, taken back, and another one deleted.
async fn live(project: &Client, oauth: &Oauth, heard: &Heard, secrets: &mut Vec<String>) {
    for last in ["revoke", "delete"] {
        let made = oauth.begin(project, "https://app.example/done").await;
        let (id, url) = (made["id"].as_str().unwrap(), made["redirect_url"].as_str().unwrap());
        secrets.push(parameter(url, "state"));
        let back = oauth.issuer.visit(url).await;
        heard.page("callback", &open(project, &back).await);
        heard.page("callback", &open(project, &back).await);
        heard.note("call", &oauth.execute(project).await.text);
        oauth.issuer.expire();
        heard.note("call", &oauth.execute(project).await.text);
        heard.note("account", &project.get(&format!("/connected_accounts/{id}")).await.text);
        heard.note("accounts", &project.get("/connected_accounts").await.text);
        heard.note("configs", &project.get("/auth_configs").await.text);
        heard.note("log", &project.post("/logs/tool_execution", &json!({})).await.text);
        let path = format!("/connected_accounts/{id}");
        match last {
            "revoke" => heard.note("revoke", &project.post(&format!("{path}/revoke"), &json!({})).await.text),
            _ => heard.note("delete", &project.delete(&format!("{path}?revoke_on_delete=true")).await.text),
        }
    }
    // One whose token is renewed in vain, by an application that repeats what it was sent.
    oauth.connect(project).await;
    oauth.issuer.expire();
    oauth.issuer.fault(Fault::Echoes, 2);
    heard.note("call", &oauth.execute(project).await.text);
    heard.note("accounts", &project.get("/connected_accounts").await.text);
    oauth.issuer.mend();
    // Some that come to nothing.
    for fault in [Fault::Html, Fault::Lost, Fault::Refused("invalid_grant"), Fault::Malformed, Fault::Echoes] {
        let made = oauth.begin(project, "https://app.example/done").await;
        let url = made["redirect_url"].as_str().unwrap();
        secrets.push(parameter(url, "state"));
        oauth.issuer.fault(fault, 1);
        heard.page("callback", &open(project, &oauth.issuer.visit(url).await).await);
        let path = format!("/connected_accounts/{}", made["id"].as_str().unwrap());
        heard.note("account", &project.get(&path).await.text);
    }
    for seen in Host::application().seen(&oauth.tag).iter().filter(|seen| seen.path.ends_with("/token")) {
        let form = format!("https://form.example/?{}", String::from_utf8_lossy(&seen.body));
        secrets.extend(Some(parameter(&form, "code_verifier")).filter(|verifier| !verifier.is_empty()));
    }
    secrets.extend(oauth.issuer.secrets());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_of_an_account_is_in_what_the_server_writes_or_answers() {
    let host = given::with_application().with("log", "trace").start().await;
    let project = host.new_project().await;
    let (heard, mut secrets) = (Heard::default(), Vec::new());
    let oauth = Oauth::of(&host, &project, Issuer::credentials(), |issuer| issuer.discovered("OAUTH2")).await;
    live(&project, &oauth, &heard, &mut secrets).await;
    let registered = Oauth::of(&host, &project, json!({}), |issuer| issuer.discovered("DCR_OAUTH")).await;
    registered.issuer.set(|settings| settings.client_secret = Some(0));
    live(&project, &registered, &heard, &mut secrets).await;

    // A key that is filled in on the page.
    let slug = given::slug();
    host.publish(Guest::fetch().component(), &guest::manifest_with_key(&slug, given::bearer())).await;
    let config = json!({ "type": "use_custom_auth", "authScheme": "API_KEY", "credentials": {}, "shared_credentials": { "team_secret": SHARED } });
    let config = project.post("/auth_configs", &json!({ "toolkit": { "slug": slug }, "auth_config": config })).await;
    let config = config.expect(201)["auth_config"]["id"].clone();
    let link = project
        .post("/connected_accounts/link", &json!({ "auth_config_id": config, "user_id": "amy" }))
        .await
        .expect(201);
    let (url, key) = (link["redirect_url"].as_str().unwrap(), format!("key+/={}%", harness::secret()));
    let page = open(&project, url).await;
    let cookie = page.header("set-cookie").split(';').next().unwrap_or_default().to_owned();
    let text = String::from_utf8_lossy(&page.bytes).into_owned();
    let token = text.split_once("name=\"form-token\" value=\"").unwrap().1.split_once('"').unwrap().0.to_owned();
    let form =
        reqwest::Url::parse_with_params("http://form.example", [("form-token", &token), ("api_key", &key)]).unwrap();
    let headers = [("cookie", &*cookie), ("content-type", "application/x-www-form-urlencoded")];
    heard.page("page", &project.exchange(Method::POST, url, &headers, form.query().unwrap().into()).await);
    heard.note("accounts", &project.get("/connected_accounts").await.text);
    heard.note("config", &project.get(&format!("/auth_configs/{}", config.as_str().unwrap())).await.text);
    secrets.extend([key, link["link_token"].as_str().unwrap().to_owned(), SHARED.to_owned()]);
    secrets.extend([harness::issuer::CLIENT_SECRET.to_owned(), cookie.split_once('=').unwrap().1.to_owned()]);

    secrets.sort();
    secrets.dedup();
    assert!(secrets.len() > 40 && secrets.iter().all(|secret| secret.len() >= 10), "{secrets:?}");
    let hunt = Hunt::for_mark_and(&secrets.into_iter().map(String::into_bytes).collect::<Vec<_>>());
    let absent = |found: Result<(), String>| found.unwrap_or_else(|found| panic!("{found}"));
    for answer in heard.0.lock().unwrap().iter() {
        absent(hunt.within("an answer", answer.as_bytes()));
    }
    wait_until("the log is written", || async { host.output().len() > 10_000 }).await;
    absent(hunt.within("the server's log", host.output().as_bytes()));
    let rows = host::on_postgres().then(|| host.setup().database().rows().expect("the database answers"));
    absent(hunt.within("the database", &rows.unwrap_or_default()));
    let (setup, status) = host.terminate().await;
    assert!(status.success(), "{status:?}");
    absent(hunt.within_folder(&setup.data(), &[]));
}

/// A server at its most talkative, with an account that has a key and one that has tokens.
async fn furnished(setup: Setup) -> (Host, String) {
    let host =
        setup.with_application(&harness::fake_app::HOSTS, Host::application()).with("log", "trace").start().await;
    let (project, slug) = (host.as_project(), given::slug());
    host.publish(Guest::fetch().component(), &guest::manifest_with_key(&slug, given::bearer())).await;
    let id = project.connect(&slug, "API_KEY", "default", json!({ "api_key": secret() })).await;
    let fetched = project.execute(&guest::tool(&slug), json!({ "url": "https://api.example.com/leak/x" })).await;
    fetched.data();
    let oauth = Oauth::new(&host, &project).await;
    oauth.connect(&project).await;
    oauth.execute(&project).await.data();
    (host, id)
}

/// Its rows are looked over wherever a server ends; here is what lies beneath them.
#[tokio::test(flavor = "multi_thread")]
async fn what_postgresql_writes_for_itself_and_for_safekeeping_holds_no_secret_and_no_password() {
    let server = Postgres::start();
    let (database, password) = (server.database(None), secret());
    database.say(&format!("create role guarded superuser login password '{password}'"));
    let url = database.url().replacen("postgres@", &format!("guarded:{password}@"), 1);
    let (host, id) = furnished(Setup::embedded().on(database).with("store", url)).await;
    let keys = [&host.org_key, &host.project_key].map(|key| key.clone().into_bytes());
    let dump = host.setup().database().dump();
    let (_setup, status) = host.terminate().await;
    assert!(status.success());
    let written = server.folder().join("data/pg_wal");
    // Where it is looked is where records are.
    let records = Hunt::for_mark_and(&[id.into_bytes()]);
    records.within("the dump", &dump).unwrap_err();
    records.within_folder(&written, &[]).unwrap_err();
    let hunt = Hunt::for_mark_and(&keys);
    hunt.within("the dump", &dump).unwrap();
    hunt.within_folder(&server.folder(), &[]).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_shows_nothing_while_it_is_locked_and_seals_when_it_is_opened() {
    let (host, id) = furnished(Setup::new()).await;
    let (folder, identity) = (tempfile::tempdir().unwrap(), age::x25519::Identity::generate());
    let file = folder.path().join("all.age");
    let recipient = identity.to_public().to_string();
    host.setup().command(&["export", file.to_str().unwrap(), "--recipient", &recipient]).succeeded();
    let keys = [&host.org_key, &host.project_key].map(|key| key.clone().into_bytes());
    let (records, hunt) = (Hunt::for_mark_and(&[id.into_bytes()]), Hunt::for_mark_and(&keys));
    records.within_file(&file).unwrap();
    hunt.within_file(&file).unwrap();
    let locked = age::Decryptor::new(std::fs::File::open(&file).unwrap()).unwrap();
    let mut opened = Vec::new();
    let mut content = locked.decrypt(std::iter::once(&identity as &dyn age::Identity)).unwrap();
    content.read_to_end(&mut opened).unwrap();
    records.within("the archive", &opened).unwrap_err();
    hunt.within("the archive", &opened).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_in_the_settings_file_stay_in_it_and_the_process_leaves_no_core() {
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
    let hunt = Hunt::for_mark_and(&[host.org_key.clone().into_bytes(), host.project_key.clone().into_bytes()]);
    for place in ["cmdline", "environ"] {
        hunt.within_file(&process.join(place)).unwrap();
    }
    let limits = std::fs::read_to_string(process.join("limits")).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().filter(|word| *word == "0").count(), 2, "{core}");
    for page in ["/docs", "/api/v3/openapi.json", "/health/ready"] {
        host.as_project().exchange(Method::GET, &format!("{}{page}", host.url), &[], Vec::new()).await;
    }
    host.setup().command(&["doctor"]);
    // The file is where they are to be.
    std::fs::remove_file(file).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_traps_and_a_connection_that_breaks_tell_nothing_of_the_credential() {
    let tunnel = Tunnel::start(Host::application(), &["api.example.com"], None);
    let setup = Setup::new().with("log", "trace").with("net.allow", "127.0.0.0/8").with("logs.cassettes", "all");
    let host = setup.start().await;
    let project = host.as_project();
    let traps = Guest { execute: "(unreachable)", ..Guest::fetch() };
    for (guest, kind) in [(Guest::fetch(), "tls"), (traps, "tool_trap")] {
        let slug = given::slug();
        host.publish(guest.component(), &guest::manifest_with_key(&slug, given::bearer())).await;
        let config = json!({
            "type": "use_custom_auth", "authScheme": "API_KEY", "credentials": {},
            "proxy_config": { "proxy_url": tunnel.address, "proxy_auth_key": secret() },
        });
        let made = project.post("/auth_configs", &json!({ "toolkit": { "slug": slug }, "auth_config": config })).await;
        let config = made.expect(201)["auth_config"]["id"].as_str().unwrap().to_owned();
        let key = format!("sk\"+/={}%", secret());
        project.post("/connected_accounts", &given::account(&config, "default", &key)).await.expect(201);
        let ran = project.execute(&guest::tool(&slug), json!({ "url": "https://api.example.com/echo/x" })).await;
        assert_eq!((ran["successful"].as_bool(), ran.failure()), (Some(false), kind), "{}", ran.text);
        for place in ["", "/cassette"] {
            project.get(&format!("/logs/tool_execution/{}{place}", ran["log_id"].as_str().unwrap())).await;
        }
    }
    let (_setup, status) = host.terminate().await;
    assert!(status.success());
}

/// A link is an answer that has to hold its signature; nothing else has it.
#[tokio::test(flavor = "multi_thread")]
async fn the_signature_of_a_link_to_a_file_is_in_the_link_alone() {
    let bucket = BucketService::start();
    let own = || Setup::new().with("log", "trace");
    for setup in [own(), own().in_bucket(&bucket).with("s3.presigned", "true")] {
        let host = setup.start().await;
        let (project, slug) = (host.as_project(), files::copier(&host).await);
        let asked = files::ask(&project, &slug, b"text", json!({})).await.expect(200);
        let url = files::url(&asked);
        let signature = ["signature", "X-Amz-Signature"].map(|name| parameter(url, name)).concat();
        assert!(signature.len() >= 32, "{url}");
        let headers: Vec<_> = asked["headers"].as_object().into_iter().flatten().collect();
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap())).collect();
        let put = project.exchange(Method::PUT, url, &headers, b"text".to_vec()).await;
        assert_eq!(put.status, 200, "{put:?}");
        project.get("/files/list").await.expect(200);
        let (folder, hunt) = (host.setup().clone(), Hunt::for_mark_and(&[signature.into_bytes()]));
        wait_until("the log is written", || async { host.output().len() > 10_000 }).await;
        hunt.within("the server's log", host.output().as_bytes()).unwrap();
        host.terminate().await;
        hunt.within_folder(&folder.data(), &[]).unwrap();
    }
}

/// The hunt itself, at the end of a server: it is of no use when it finds nothing.
#[tokio::test]
#[should_panic(expected = "holds a secret as base64, made at")]
async fn a_server_that_leaves_a_secret_behind_fails_its_test() {
    let host = Setup::embedded().start().await;
    std::fs::write(host.data().join("left"), BASE64.encode(format!("x{}", secret()))).unwrap();
    host.kill();
}
