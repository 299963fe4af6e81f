//! Recorded calls: replayed byte for byte, offline and on a later day, or exported from a server
//! that kept the cassette with its log.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use harness::{Answer, Author, Client, Host, host::Setup, unique};
use serde_json::{Value, json};

use crate::given;

/// Guest that uses every import of the contract.
const ABI_GUEST_PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/components/abi-v1.wasm");
const ACCOUNT_SECRET: &str = harness::marked!("sk-");
const YEAR_MS: u64 = 365 * 24 * 3600 * 1000;

/// Records a call of the guest. `what` is a tool and its arguments, or options.
fn record(author: &Author, what: &[&str]) -> (PathBuf, Value) {
    let file = author.path(&format!("{}.json", unique(4)));
    let rewrite = format!("https://api.example.com={}", Host::application().origin);
    let options = ["--json", "--user", "amy", "--rewrite", &rewrite, "-o"];
    let mut command = author.command(&[&["record", ABI_GUEST_PATH], &options[..]].concat());
    let output = command
        .arg(&file)
        .args(what)
        .env("TOOLKIT_API_KEY", ACCOUNT_SECRET)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let ran = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|cause| panic!("{what:?}: {cause}: {said}"));
    (file, ran)
}

/// Replays a cassette. Returns true if the result is as recorded, with the whole output of the
/// command.
fn replay(author: &Author, component: &str, file: &Path) -> (bool, Value) {
    let output = author.toolkit(&["replay", component, file.to_str().unwrap(), "--json"]);
    let printed = serde_json::from_str(&output.stdout);
    (
        output.code == Some(0),
        printed.unwrap_or_else(|cause| panic!("{cause}: {output:?}")),
    )
}

fn read(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

#[tokio::test]
async fn recorded_calls_replay_without_sending_requests() {
    let author = Author::new();
    let tag = unique(8);
    let url = |path: &str| format!("https://api.example.com/{path}/{tag}");
    let posted = json!({ "url": url("echo"), "method": "POST", "body": { "a": [1, 2.50] } });
    let leaked = json!({ "url": url("leak"), "headers": { "x-own": "yes" } });
    let saved = json!({ "url": url("echo"), "into_file": true, "anonymous": true });
    let several = [&*url("echo"), &*url("limited"), &*url("bomb"), "http://no"];
    let tools = [
        ("fetch", posted),
        ("fetch", leaked),
        ("fetch", saved),
        ("fetch", json!({ "url": "https://elsewhere.example.org/" })),
        ("fetch_all", json!({ "urls": several })),
        ("upload", json!({ "url": url("echo"), "text": "héllo" })),
        ("wait", json!({ "milliseconds": 30 })),
        ("take_random", json!({ "length": 1000 })),
        ("remember", json!({ "message": "once" })),
        ("keep", json!({ "message": "thrice" })),
        ("tell_context", json!({})),
        ("fail", json!({ "kind": "conflict", "message": "no" })),
        ("break_down", json!({ "message": "oh" })),
    ];
    let calls = tools.map(|(tool, arguments)| vec![tool.to_owned(), arguments.to_string()]);
    let triggers = [
        ["new_number", "--cursor", "5"],
        ["number_arrived", "--request", r#"{"body":7}"#],
    ];
    let polls = triggers.map(|[trigger, option, value]| {
        let config = r#"{"up_to":9}"#;
        let call = ["--trigger", trigger, "--config", config, option, value];
        call.map(str::to_owned).to_vec()
    });
    for call in calls.into_iter().chain(polls) {
        let arguments: Vec<_> = call.iter().map(String::as_str).collect();
        let (file, ran) = record(&author, &arguments);
        let text = fs::read_to_string(&file).unwrap();
        assert!(
            !text.contains(ACCOUNT_SECRET),
            "the cassette holds the credential: {text}"
        );
        let sent = given::seen(&tag);
        let (same, again) = replay(&author, ABI_GUEST_PATH, &file);
        assert!(same, "{call:?}: {again:#}");
        for part in ["data", "error", "files"] {
            assert_eq!(again[part], ran[part], "{call:?}");
        }
        assert_eq!(given::seen(&tag), sent, "{call:?} sent something");
    }
}

#[tokio::test]
async fn time_and_randomness_come_from_the_cassette() {
    let author = Author::new();
    let (file, ran) = record(&author, &["wait", r#"{"milliseconds":1}"#]);
    // The recorded times are moved back by a year.
    let mut cassette = read(&file);
    for import in cassette["imports"].as_array_mut().unwrap() {
        if let Some(now) = import["now"].as_u64() {
            import["now"] = (now - YEAR_MS).into();
        }
    }
    let data = cassette["ended"]["answer"]["data"]["json"]
        .as_object_mut()
        .unwrap();
    data["now"] = (ran["data"]["now"].as_u64().unwrap() - YEAR_MS).into();
    fs::write(&file, cassette.to_string()).unwrap();
    let (same, again) = replay(&author, ABI_GUEST_PATH, &file);
    assert!(same, "{again:#}");
}

#[tokio::test]
async fn first_differing_request_is_shown() {
    let author = Author::new();
    let url = format!("https://api.example.com/echo/{}", unique(8));
    let arguments = json!({ "url": url, "method": "POST", "body": { "page": 2, "size": 50 } });
    let (file, _) = record(&author, &["fetch", &arguments.to_string()]);
    let mut cassette = read(&file);
    cassette["call"]["execute"]["arguments"]["json"]["body"]["page"] = 3.into();
    fs::write(&file, cassette.to_string()).unwrap();
    let (same, again) = replay(&author, ABI_GUEST_PATH, &file);
    let how = again["differs"].as_str().unwrap();
    assert!(!same && how.contains("request 1 differs"), "{again:#}");
    for line in [r#"-   "page": 2,"#, r#"+   "page": 3,"#] {
        assert!(how.contains(line), "{line} is not in\n{how}");
    }
    cassette["imports"] = json!([]);
    fs::write(&file, cassette.to_string()).unwrap();
    let (_, again) = replay(&author, ABI_GUEST_PATH, &file);
    assert!(
        again["differs"]
            .as_str()
            .unwrap()
            .contains("one more than were recorded"),
        "{again:#}"
    );
}

#[tokio::test]
async fn differing_result_is_shown() {
    let author = Author::new();
    let (file, _) = record(&author, &["keep", r#"{"message":"thrice"}"#]);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("thrice, twice", "never, twice")).unwrap();
    let (same, again) = replay(&author, ABI_GUEST_PATH, &file);
    let how = again["differs"].as_str().unwrap();
    assert!(
        !same && how.contains("never, twice") && how.contains("thrice, twice"),
        "{again:#}"
    );
}

#[tokio::test]
async fn unplayable_cassette_is_refused_with_a_reason() {
    let author = Author::new();
    let (file, _) = record(&author, &["keep", r#"{"message":"x"}"#]);
    let cassette = read(&file);
    let with = |key: &str, value: Value| {
        let mut other = cassette.clone();
        other[key] = value;
        other.to_string()
    };
    let unknown = json!({ "execute": { "tool": "ABI_NOTHING", "arguments": "" } });
    for (text, why) in [
        ("{}".to_owned(), "not a cassette"),
        ("<html>".to_owned(), "not a cassette"),
        (with("cassette", 2.into()), "version 2"),
        (with("more", 1.into()), "unknown field `more`"),
        (with("call", unknown), "ABI_NOTHING"),
    ] {
        fs::write(&file, text).unwrap();
        let output = author.toolkit(&["replay", ABI_GUEST_PATH, file.to_str().unwrap()]);
        assert_ne!(output.code, Some(0), "{why}");
        assert!(output.stderr.contains(why), "{why}: {output:?}");
    }
}

async fn publish(host: &Host) {
    let component = fs::read(ABI_GUEST_PATH).unwrap();
    let path = "/toolkits/abi/versions/20261121_00";
    host.as_org().put(path, component).await.expect(201);
}

async fn connect(project: &Client) {
    let values = json!({ "api_key": ACCOUNT_SECRET });
    project.connect("abi", "API_KEY", "default", values).await;
}

/// Runs the operator's command that exports a cassette.
fn export(host: &Host, project: &Client, ran: &Answer, file: &Path) -> Result<(), String> {
    let log = ran["log_id"].as_str().unwrap();
    let mut command = Command::new(harness::beside("toolhost"));
    command
        .args([
            "logs",
            "export",
            log,
            "--url",
            &host.url,
            "--api-key",
            project.key(),
            "-o",
        ])
        .arg(file)
        .current_dir(host.data());
    let output = command.env_clear().output().unwrap();
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

#[tokio::test]
async fn exported_failure_replays_on_the_authors_machine() {
    let author = Author::new();
    let host = Setup::new()
        .with("logs.cassettes", "failed")
        .with_application(&["api.example.com"], Host::application());
    let host = host.start().await;
    publish(&host).await;
    let project = host.as_project();
    connect(&project).await;
    let tag = unique(8);
    let url = json!({ "url": format!("https://api.example.com/bomb/{tag}") });
    let failed = project.execute("ABI_FETCH", url).await;
    assert_eq!(failed.failure(), "upstream_error", "{failed:#?}");

    let file = author.path("failed.json");
    export(&host, &project, &failed, &file).unwrap();
    let (same, again) = replay(&author, ABI_GUEST_PATH, &file);
    assert!(same, "{again:#}");
    let error = format!(
        "{}: {}",
        again["error"]["kind"].as_str().unwrap(),
        again["error"]["message"].as_str().unwrap()
    );
    assert_eq!(failed["error"], error);
    assert_eq!(given::seen(&tag), 1);

    let arguments = json!({ "message": "x" });
    let worked = project.execute("ABI_KEEP", arguments).await.expect(200);
    let why = export(&host, &project, &worked, &file).unwrap_err();
    assert!(
        why.contains("has no cassette") && why.contains("logs.cassettes"),
        "{why}"
    );
    let other = host.new_project().await;
    let why = export(&host, &other, &failed, &file).unwrap_err();
    assert!(why.contains("not found"), "of another project: {why}");
}

#[tokio::test]
async fn cassette_is_sealed_bounded_and_respects_log_setting() {
    let host = Setup::new().with("logs.cassettes", "all");
    let host = host
        .with_application(&["api.example.com"], Host::application())
        .start()
        .await;
    publish(&host).await;
    let stores = host.as_project();
    let settings = json!({ "log_visibility_setting": "dont_store_data" });
    let (_, quiet) = given::project(&host, settings).await;
    let cassette = async |project: &Client, path: &str| {
        connect(project).await;
        let arguments = json!({ "url": format!("https://api.example.com/{path}") });
        let ran = project.execute("ABI_FETCH", arguments).await.expect(200);
        let log = ran["log_id"].as_str().unwrap();
        let path = format!("/logs/tool_execution/{log}/cassette");
        project.get(&path).await
    };
    let tag = unique(8);
    let kept = cassette(&stores, &format!("leak/{tag}")).await.expect(200);
    assert!(
        kept.text.contains(&tag)
            && kept.text.contains("redacted")
            && !kept.text.contains(ACCOUNT_SECRET),
        "{}",
        kept.text
    );
    for (project, path) in [(&stores, "big/large/300000"), (&quiet, "echo/quiet")] {
        cassette(project, path).await.expect(404);
    }
    let data = host.data();
    let (_folder, status) = host.terminate().await;
    assert!(status.success());
    harness::Hunt::for_mark_and(&[tag.into_bytes()])
        .within_folder(&data, &[])
        .unwrap();
}
