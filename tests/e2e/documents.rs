//! The built toolkits of this repository, tested over HTTP.

use std::{fs, path::Path};

use harness::{Client, Host, host::Setup, unique};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::OnceCell;

pub(crate) const BUILT_TOOLKITS_FOLDER: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../toolkits/dist");

/// Returns a folder with only these of the built toolkits, so that a server starts sooner.
pub(crate) fn folder_with(names: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        let file = format!("{name}.wasm");
        let copied = fs::copy(
            Path::new(BUILT_TOOLKITS_FOLDER).join(&file),
            folder.path().join(&file),
        );
        copied.unwrap_or_else(|cause| panic!("{file}: {cause}: `cargo toolkit build --all` first"));
    }
    folder
}

/// Returns the slugs of the built toolkits.
pub(crate) fn built_slugs() -> Vec<String> {
    let files = fs::read_dir(BUILT_TOOLKITS_FOLDER).unwrap();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    files
        .filter_map(|file| file.strip_suffix(".wasm").map(str::to_owned))
        .collect()
}

/// Returns a server that published the built toolkits at its start.
pub(crate) async fn host() -> &'static Host {
    static TOOLKITS_HOST: OnceCell<&Host> = OnceCell::const_new();
    TOOLKITS_HOST
        .get_or_init(|| async {
            let built = std::fs::read_dir(BUILT_TOOLKITS_FOLDER).map_or(0, Iterator::count);
            assert!(
                built > 0,
                "nothing is built in {BUILT_TOOLKITS_FOLDER}: `cargo toolkit build --all` first"
            );
            let setup = Setup::new()
                .with("toolkits", BUILT_TOOLKITS_FOLDER)
                .with_application(&["api.resend.com"], Host::application());
            setup.start().await.until_exit()
        })
        .await
}

async fn project() -> Client {
    host().await.new_project().await
}

#[tokio::test]
async fn toolkit_folder_is_published_idempotently_at_start() {
    let slugs = ["hackernews", "resend"];
    let folder = folder_with(&slugs);
    let host = Setup::new()
        .with("toolkits", folder.path().to_str().unwrap())
        .start()
        .await;
    // The URLs of logos start with the address of the server, and its port changes with a restart.
    let list = async |host: &Host| {
        let listed = host.as_project().get("/toolkits").await.expect(200);
        listed.text.replace(&host.url, "")
    };
    let before = list(&host).await;
    let (setup, status) = host.terminate().await;
    assert!(status.success());
    let again = setup.start().await;
    assert_eq!(list(&again).await, before);
    for slug in slugs {
        let read = again.as_project().get(&format!("/toolkits/{slug}")).await;
        read.expect(200);
    }
}

#[tokio::test]
async fn every_tool_has_valid_slug_schema_and_examples() {
    let project = project().await;
    for slug in ["documents", "github", "gmail", "googlecalendar"] {
        let path = format!("/toolkits/{slug}");
        project.get(&path).await.expect(200);
    }
    let tools = project.get("/tools?limit=1000").await.expect(200);
    let tools = tools["items"].as_array().unwrap();
    assert!(tools.len() >= 20, "{} tools", tools.len());
    for tool in tools {
        let slug = tool["slug"].as_str().unwrap();
        assert!(
            slug.len() <= 64
                && slug
                    .bytes()
                    .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_'),
            "{slug}"
        );
        assert_eq!(tool["input_parameters"]["type"], "object", "{slug}");
        assert!(tool["description"].as_str().unwrap().len() >= 20, "{slug}");
    }
}

#[tokio::test]
async fn documents_works_on_a_real_file() {
    let project = project().await;
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../ARCHITECTURE.md");
    let markdown = fs::read_to_string(page).unwrap();
    let run = async |tool: &str, arguments: Value| {
        let tool = format!("DOCUMENTS_{tool}");
        project.execute(&tool, arguments).await.data()
    };
    let html = run("MARKDOWN_TO_HTML", json!({ "markdown": markdown })).await;
    let text = html["html"].as_str().unwrap();
    assert!(text.contains("<h1>Architecture</h1>"), "{html}");
    let back = run("HTML_TO_MARKDOWN", json!({ "html": text })).await;
    let text = back["markdown"].as_str().unwrap();
    assert!(text.contains("# Architecture"), "{back}");
    let hashed = json!({ "text": markdown, "algorithm": "sha256" });
    let digest = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(&markdown));
    assert_eq!(run("HASH", hashed).await["digest"], digest);
    let rows = json!({ "text": "name,age\nAda,36\n" });
    let rows = run("CSV_TO_JSON", rows).await;
    assert_eq!(rows["row_count"], 1);
    assert_eq!(rows["rows"][0]["name"], "Ada");
}

#[tokio::test]
async fn a_toolkit_that_needs_an_account_says_so() {
    let project = project().await;
    let answer = project.execute("RESEND_LIST_DOMAINS", json!({})).await;
    assert_eq!(answer.expect(404)["error"]["code"], 1810);
}

#[tokio::test]
async fn per_call_credential_is_sent_and_redacted() {
    let (project, tag) = (project().await, unique(8));
    let secrets = [harness::secret(), harness::secret(), harness::secret()];
    let custom = json!({
        "parameters": [
            { "name": "X-Key", "in": "header", "value": secrets[0] },
            { "name": "key", "in": "query", "value": secrets[1] },
        ],
        "body": { "token": secrets[2], "level": 2, "scheduled_at": "never" },
    });
    let arguments = json!({ "id": tag, "scheduled_at": "2026-11-21T10:00:00Z" });
    let body = json!({ "arguments": arguments, "custom_auth_params": custom });
    let path = "/tools/execute/RESEND_RESCHEDULE_EMAIL";
    let answer = project.post(path, &body).await.expect(200);
    let seen = &Host::application().seen(&tag)[0];
    let sent: Value = serde_json::from_slice(&seen.body).unwrap();
    assert_eq!(seen.header("x-key"), secrets[0]);
    assert_eq!(seen.query, format!("key={}", secrets[1]));
    assert_eq!(sent, custom["body"]);
    let log = project.log(&answer["log_id"]).await;
    for secret in &secrets {
        for text in [&answer.text, &log.text] {
            assert!(!text.contains(secret), "{secret} is told: {text}");
        }
    }
}
