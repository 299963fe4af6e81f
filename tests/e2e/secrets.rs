//! No secret of an account's life lies anywhere in the open: every token, code, key, verifier and link of it is looked for in all that
//! the server writes and answers, at its most talkative.

use harness::{Client, Guest, Host, Issuer, client::Exchanged, guest, host, issuer::Fault, unique, wait_until};
use reqwest::Method;
use serde_json::json;

use crate::{
    credentials::{files_below, spellings},
    given::{self, Oauth},
};

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
    // Some that come to nothing.
    for fault in [Fault::Html, Fault::Lost, Fault::Refused("invalid_grant"), Fault::Malformed] {
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
    let config = json!({ "type": "use_custom_auth", "authScheme": "API_KEY", "credentials": {}, "shared_credentials": { "team_secret": "shared-9f8e7d6c5b4a" } });
    let config = project.post("/auth_configs", &json!({ "toolkit": { "slug": slug }, "auth_config": config })).await;
    let config = config.expect(201)["auth_config"]["id"].clone();
    let link = project
        .post("/connected_accounts/link", &json!({ "auth_config_id": config, "user_id": "amy" }))
        .await
        .expect(201);
    let (url, key) = (link["redirect_url"].as_str().unwrap(), format!("key+/={}%", unique(16)));
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
    secrets.extend([key, link["link_token"].as_str().unwrap().to_owned(), "shared-9f8e7d6c5b4a".to_owned()]);
    secrets.extend([harness::issuer::CLIENT_SECRET.to_owned(), cookie.split_once('=').unwrap().1.to_owned()]);

    secrets.sort();
    secrets.dedup();
    assert!(secrets.len() > 40 && secrets.iter().all(|secret| secret.len() >= 10), "{secrets:?}");
    let spelled: Vec<_> = secrets.iter().flat_map(|secret| spellings(secret)).collect();
    let absent = |place: &str, text: &str| {
        for spelling in &spelled {
            let line = text.lines().find(|line| line.contains(spelling));
            assert!(line.is_none(), "{place} holds a secret as {spelling}: {line:?}");
        }
    };
    for answer in heard.0.lock().unwrap().iter() {
        absent(&format!("an answer, {answer},"), answer);
    }
    wait_until("the log is written", || async { host.output().len() > 10_000 }).await;
    let database = host::on_postgres().then(|| host.setup().database().rows());
    absent("the server's log", &host.output());
    let (setup, status) = host.terminate().await;
    assert!(status.success());
    for row in database.unwrap_or_default() {
        absent("the database", &row);
    }
    for path in files_below(&setup.data()) {
        absent(&path.display().to_string(), &String::from_utf8_lossy(&std::fs::read(&path).unwrap()));
    }
}
