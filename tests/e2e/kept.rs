//! What an earlier build has stored, later builds read: every archive in `tests/kept` opens, and everything in it answers.
//!
//! Each was written by a build whose stored records differed from those before. To add one, name it:
//! `TEST_KEEP=NAME cargo test -p e2e kept`. An archive that is there is never written anew.

use std::{fs, path::Path};

use harness::{FakeApp, Guest, client::Body, guest, host::Setup, unique};
use reqwest::Method;
use serde_json::{Value, json};

use crate::given;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kept");
const PASSPHRASE: &str = "nothing secret is in here";
const LOGS: &str = "/logs/tool_execution";

fn run(setup: &Setup, what: &str, archive: &Path) -> String {
    let passphrase = setup.data().with_extension("passphrase");
    fs::write(&passphrase, PASSPHRASE).unwrap();
    let (archive, passphrase) = (archive.to_str().unwrap(), passphrase.to_str().unwrap());
    setup.command(&[what, archive, "--passphrase-file", passphrase]).succeeded()
}

fn with(application: &FakeApp) -> Setup {
    // What is kept for good is older than the execution log may become.
    let setup = Setup::new().with("logs.cassettes", "all").with("logs.keep_days", "0");
    setup.with_application(&["api.example.com"], application)
}

/// Makes a record of every kind and exports them; what to ask for is written beside the archive.
async fn keep(name: &str, application: &FakeApp) {
    let host = with(application).start().await;
    let manifest = guest::manifest_with_key(&given::slug(), given::bearer());
    host.publish(Guest::fetch().component(), &manifest).await;
    let mut older = manifest.clone();
    older["version"] = "20200101_00".into();
    host.publish(Guest::fetch().component(), &older).await;
    let slug = manifest["slug"].as_str().unwrap();
    host.as_org().delete(&format!("/toolkits/{slug}/versions/20200101_00")).await.expect(200);
    let project = host.new_project().await;
    let secret = format!("sk-{}", harness::secret());
    let account = project.connect(slug, "API_KEY", "ada", json!({ "api_key": secret })).await;
    let gone = project.connect(slug, "API_KEY", "bob", json!({ "api_key": secret })).await;
    project.delete(&format!("/connected_accounts/{gone}")).await.expect(200);
    let asked = json!({ "user_id": "ada", "arguments": { "url": "https://api.example.com/echo/kept" } });
    let ran = project.post(&format!("/tools/execute/{}", guest::tool(slug)), &asked).await.expect(200);
    let told = json!({
        "org_key": host.org_key, "project_key": project.key(), "toolkit": slug, "secret": secret,
        "account": account, "removed_account": gone, "log": ran["log_id"],
    });
    let (setup, _) = host.terminate().await;
    fs::create_dir_all(FOLDER).unwrap();
    run(&setup, "export", &Path::new(FOLDER).join(name).with_extension("age"));
    fs::write(Path::new(FOLDER).join(name).with_extension("json"), format!("{told:#}\n")).unwrap();
}

async fn assert_answers(archive: &Path, application: &FakeApp) {
    let told: Value = serde_json::from_slice(&fs::read(archive.with_extension("json")).unwrap()).unwrap();
    let told = |name: &str| told[name].as_str().unwrap_or_else(|| panic!("{archive:?}: {name}")).to_owned();
    let setup = with(application);
    run(&setup, "import", archive);
    let host = setup.start().await;
    let org_key = told("org_key");
    let keyed = [("x-org-api-key", org_key.as_str())];
    host.anonymous().send(Method::GET, "/org/toolkits", Body::None, &keyed).await.expect(200);
    let project = host.with_key(&told("project_key"));
    let (toolkit, log) = (told("toolkit"), told("log"));
    let configs = project.get("/auth_configs").await.expect(200);
    assert_eq!(configs["items"][0]["toolkit"]["slug"], *toolkit, "{configs:#?}");
    project.get(&format!("/connected_accounts/{}", told("account"))).await.expect(200);
    project.get(&format!("/connected_accounts/{}", told("removed_account"))).await.expect(404);
    let detail = project.get(&format!("{LOGS}/{log}")).await.expect(200);
    assert!(detail.text.contains("api.example.com/echo/kept"), "{}", detail.text);
    for version in ["latest", "20200101_00"] {
        let tag = unique(8);
        let url = format!("https://api.example.com/echo/{tag}");
        let asked = json!({ "user_id": "ada", "version": version, "arguments": { "url": url } });
        let ran = project.post(&format!("/tools/execute/{}", guest::tool(&toolkit)), &asked).await.expect(200);
        assert_eq!(ran["successful"], true, "{ran:#?}");
        assert_eq!(application.seen(&tag)[0].header("authorization"), format!("Bearer {}", told("secret")));
    }
    project.get(&format!("{LOGS}/{log}/cassette")).await.expect(200);
    let (setup, _) = host.terminate().await;
    setup.command(&["verify"]).succeeded();
}

/// What to call the installation that this run is to export and keep: `TEST_KEEP`.
fn name_to_keep() -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "a setting of the tests")]
    let name = std::env::var("TEST_KEEP");
    name.ok().filter(|name| !name.is_empty())
}

#[tokio::test]
async fn every_installation_that_an_earlier_build_has_exported_still_answers() {
    let application = FakeApp::start();
    if let Some(name) = name_to_keep() {
        keep(&name, &application).await;
    }
    let entries = fs::read_dir(FOLDER).unwrap().map(|entry| entry.unwrap().path());
    let archives: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == "age")).collect();
    assert!(!archives.is_empty());
    for archive in archives {
        assert_answers(&archive, &application).await;
    }
}
