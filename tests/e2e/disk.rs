//! A full disk: no acknowledged write is lost, the refusal names the cause, and free space is
//! enough to continue.

use std::{process::Command, time::Duration};

use harness::{
    Client, Guest, Host, LimitedDisk,
    client::Body,
    host::{Setup, size},
    wait_for,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::given;

/// Time within which writes succeed again after space is free.
const RESUMED_WITHIN: Duration = Duration::from_secs(5);
/// Size of an account's note in bytes: large, so that few accounts fill the disk.
const NOTE_BYTES: usize = 48 << 10;

/// Returns the body of an auth config for [`furnished`].
fn small() -> Value {
    json!({
        "toolkit": { "slug": "filling" },
        "auth_config": { "type": "use_custom_auth", "authScheme": "API_KEY", "credentials": {} },
    })
}

/// Starts a server with a toolkit that takes keys, and creates an auth config for it.
async fn furnished(setup: Setup) -> (Host, String) {
    let host = setup.start().await;
    let manifest = given::manifest_with_note("filling");
    host.publish(Guest::echo().component(), &manifest).await;
    let project = host.as_project();
    let config = project.auth_config("filling", "API_KEY", json!({})).await;
    (host, config)
}

async fn connect(client: &Client, config: &str) -> Result<harness::Answer, reqwest::Error> {
    let body = given::account_with_note(config, "user", &"k".repeat(40), NOTE_BYTES);
    client
        .try_send(Method::POST, "/connected_accounts", Body::Json(body), &[])
        .await
}

async fn assert_there(client: &Client, accounts: &[String]) {
    for account in accounts {
        let read = client.account(account).await;
        assert_eq!(read["status"], "ACTIVE", "{read:#?}");
    }
}

#[tokio::test]
async fn full_disk_refuses_writes_until_space_returns() {
    let setup = Setup::embedded();
    let Some(disk) = LimitedDisk::below(&setup, 96) else {
        eprintln!("no small disk can be made here; a write that fails is tested beside");
        return;
    };
    let (host, config) = furnished(disk.hold(setup)).await;
    let client = host.as_project();
    disk.fill_leaving(16 << 20);
    let mut accounts = Vec::new();
    let refused = loop {
        let answer = connect(&client, &config).await.unwrap();
        if answer.status != 201 {
            break answer;
        }
        accounts.push(answer["id"].as_str().unwrap().to_owned());
        assert!(
            accounts.len() < 2_000,
            "the disk does not fill up: {} bytes are free",
            disk.free()
        );
    };
    refused.expect_error(507, "Server_StorageFull");
    // A small record would still fit.
    disk.fill_leaving(6 << 20);
    client.post("/auth_configs", &small()).await.expect(507);
    assert_eq!(client.try_get_root("/health/ready").await, Some(503));
    assert_there(&client, &accounts).await;
    disk.clear();
    wait_for(RESUMED_WITHIN, "the free space is used", async || {
        connect(&client, &config).await.unwrap().status == 201
    })
    .await;
    assert_eq!(client.try_get_root("/health/ready").await, Some(200));
    let key = host.project_key.clone();
    let host = host.kill().start().await;
    assert_there(&host.with_key(&key), &accounts).await;
    let (setup, status) = host.terminate().await;
    assert!(status.success(), "{status}");
    setup.command(&["verify"]).succeeded();
}

/// A file size limit cuts a write off in its middle, and the system ends the process at that point.
#[tokio::test]
async fn truncated_write_loses_no_acknowledged_record() {
    let (mut host, config) = furnished(Setup::embedded()).await;
    let key = host.project_key.clone();
    let mut accounts = Vec::new();
    for round in 0..size(3, 30) {
        let client = host.with_key(&key);
        let length = std::fs::metadata(host.data().join("store/sled/db"))
            .unwrap()
            .len();
        // The limit is at an arbitrary position within a record.
        let limit = format!("--fsize={}", length + (1 << 20) + 777 * round);
        let limited = Command::new("prlimit")
            .args(["--pid", &host.pid().to_string(), &limit])
            .status()
            .unwrap();
        assert!(limited.success());
        let before = accounts.len();
        while let Ok(answer) = connect(&client, &config).await {
            match answer.status {
                201 => accounts.push(answer["id"].as_str().unwrap().to_owned()),
                _ => answer.assert_envelope(),
            }
            assert!(
                accounts.len() < before + 2_000,
                "the file grows past its limit"
            );
        }
        assert!(accounts.len() > before, "nothing was acknowledged before");
        host = host.kill().start().await;
        assert_there(&host.with_key(&key), &accounts).await;
    }
    let (setup, _) = host.terminate().await;
    setup.command(&["verify"]).succeeded();
}

/// Library that fails one of the syncs that precede an acknowledgement, once a file at the given
/// path exists.
const BROKEN_SYNC: &str = r#"
    #define _GNU_SOURCE
    #include <errno.h>
    #include <stdlib.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    int fdatasync(int file) {
        if (unlink(getenv("BROKEN_SYNC")) == 0) { errno = EIO; return -1; }
        return syscall(SYS_fdatasync, file);
    }
"#;

#[tokio::test]
async fn failed_sync_stops_acknowledgements_until_restart() {
    let folder = tempfile::tempdir().unwrap();
    let [source, library, trigger] =
        ["sync.c", "sync.so", "trigger"].map(|name| folder.path().join(name));
    std::fs::write(&source, BROKEN_SYNC).unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status();
    let compiled = compiled.expect("what links Rust programs is here");
    assert!(compiled.success());
    let setup = Setup::embedded()
        .with_variable("LD_PRELOAD", library.display().to_string())
        .with_variable("BROKEN_SYNC", trigger.display().to_string());
    let (host, config) = furnished(setup).await;
    let (client, key) = (host.as_project(), host.project_key.clone());
    let made = connect(&client, &config).await.unwrap().expect(201);
    let account = made["id"].as_str().unwrap().to_owned();
    std::fs::write(&trigger, "").unwrap();
    let refused = connect(&client, &config).await.unwrap();
    refused.expect(503);
    assert!(!trigger.exists(), "it has failed once");
    // The server is stopping: further requests are refused or not accepted.
    if let Ok(answer) = connect(&client, &config).await {
        answer.expect(503);
    }
    let (setup, status) = host.end().await;
    assert_eq!(status.code(), Some(74));
    let host = setup.start().await;
    assert_there(&host.with_key(&key), &[account]).await;
}
