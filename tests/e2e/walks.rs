//! The first hour of each user: scripts that run in an empty folder outside the clone, with only
//! the two commands, and print the seconds of each step.

use std::{path::Path, process::Command};

use harness::{author, beside, host::Setup};

use crate::{documents, manual::providers};

const TESTS_FOLDER: &str = env!("CARGO_MANIFEST_DIR");

/// Runs a script with these environment variables. Its output is not captured, so that the seconds
/// are shown by each run.
async fn walk(script: &str, variables: &[(&str, String)]) {
    let folder = tempfile::tempdir().unwrap();
    let file = Path::new(TESTS_FOLDER).join("walk").join(script);
    let mut command = Command::new("bash");
    command
        .arg(&file)
        .current_dir(folder.path())
        .env("PROGRAMS", beside("toolhost").parent().unwrap())
        .env("TOOLHOST_LISTEN", "127.0.0.1:0")
        .env("XDG_CACHE_HOME", author::cache())
        .envs(author::QUICK_PROFILE_VARIABLES)
        .env_remove("CARGO_TARGET_DIR")
        .envs(variables.iter().cloned());
    let ended = tokio::task::spawn_blocking(move || command.status()).await;
    let status = ended.unwrap().unwrap();
    assert!(status.success(), "{}: {status}", file.display());
}

#[tokio::test]
async fn operator_gets_from_install_to_restore() {
    let component = Path::new(documents::BUILT_TOOLKITS_FOLDER).join("documents.wasm");
    let component = component.display().to_string();
    walk("operator.sh", &[("COMPONENT", component)]).await;
}

#[tokio::test]
async fn author_publishes_and_calls_each_kind() {
    let rewrite = format!("https://api.example.com={}", providers::items());
    walk("author.sh", &[("TOOLHOST_NET__REWRITE", rewrite)]).await;
}

#[tokio::test]
async fn developer_gets_from_key_to_log() {
    let rewrite = format!("https://api.resend.com={}", providers::resend());
    let toolkits = documents::folder_with(&["documents", "resend"]);
    let setup = Setup::new()
        .with("toolkits", toolkits.path().to_str().unwrap())
        .with("net.rewrite", &rewrite);
    let host = setup.start().await;
    let tests = Path::new(TESTS_FOLDER);
    let path = |relative: &str| tests.join(relative).display().to_string();
    let variables = [
        ("TOOLHOST_URL", host.url.clone()),
        ("TOOLHOST_API_KEY", host.project_key.clone()),
        ("RESEND_API_KEY", harness::secret()),
        ("BROWSER", path("node/browser.mjs")),
        ("BROWSER_PACKAGES", path("../target/parts/node")),
    ];
    walk("developer.sh", &variables).await;
}
