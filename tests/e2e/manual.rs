//! The author's manuals: what they tell their readers to type works, in the order in which they tell it.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use axum::{Json, Router, routing::get};
use harness::manual::{Shell, Step, steps};
use serde_json::{Value, json};

/// Toolkits of the repository: with their target folder, lock file and flags a new toolkit builds with what is compiled already.
const TOOLKITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../toolkits");

fn page(name: &str) -> Vec<Step> {
    steps(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../toolkit-sdk").join(name))
}

/// Lets the toolkit in a folder build with what is compiled already.
fn prepare(folder: &Path) {
    fs::create_dir(folder.join(".cargo")).unwrap();
    for file in ["Cargo.lock", ".cargo/config.toml"] {
        fs::copy(Path::new(TOOLKITS).join(file), folder.join(file)).unwrap();
    }
}

/// A weather service on loopback; its origin.
#[expect(clippy::disallowed_methods, reason = "it serves for as long as the test runs")]
async fn weather() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let now = json!({ "current": { "time": "2026-03-01T07:00", "temperature_2m": 4.2, "wind_speed_10m": 11.0 } });
    let router = Router::new().route("/v1/forecast", get(async move || Json(now)));
    tokio::spawn(async move { axum::serve(listener, router).await });
    origin
}

/// Settings of a reader's shell, who has both commands in the path.
#[expect(clippy::disallowed_methods, reason = "the reader's path is this one, with our programs before it")]
fn variables(folder: &Path, rewrite: &str) -> Vec<(&'static str, String)> {
    let programs = env::current_exe().unwrap().ancestors().nth(2).unwrap().display().to_string();
    let target = PathBuf::from(TOOLKITS).join("target").display().to_string();
    vec![
        ("PATH", format!("{programs}:{}", env::var("PATH").unwrap())),
        ("CARGO_TARGET_DIR", target),
        ("XDG_CACHE_HOME", folder.join("cache").display().to_string()),
        ("TOOLKIT_REWRITE", rewrite.to_owned()),
        ("TOOLHOST_NET__REWRITE", rewrite.to_owned()),
        ("TOOLHOST_LISTEN", "127.0.0.1:0".to_owned()),
    ]
}

fn weather_of(answer: &str) -> Value {
    let answer: Value = serde_json::from_str(answer).unwrap_or_else(|cause| panic!("{cause}: {answer}"));
    assert_eq!(answer["successful"], true, "{answer}");
    answer["data"].clone()
}

#[tokio::test]
async fn the_tutorial_leads_from_nothing_to_a_published_tool() {
    let folder = tempfile::tempdir().unwrap();
    let rewrite = format!("https://api.open-meteo.com={}", weather().await);
    let mut shell = Shell::open(folder.path(), &variables(folder.path(), &rewrite));
    let expected = json!({ "time": "2026-03-01T07:00", "temperature": 4.2, "wind_speed": 11.0 });
    let mut dev = None;
    let mut said = String::new();
    for step in page("TUTORIAL.md") {
        match &step {
            Step::Type(command) if command == "toolkit dev\n" => {
                dev = Some(shell.leave(command, "WEATHER_GREET").await);
            }
            Step::Type(command) if command == "toolhost serve\n" => {
                shell.leave(command, "toolhost-data.env").await;
            }
            Step::Type(command) if command.contains("toolkit new weather\n") => {
                // The first build of a reader fetches what ours has.
                let (before, after) = command.split_once("cd weather\n").unwrap();
                shell.run(before).await;
                prepare(&folder.path().join("weather"));
                said = shell.run(&format!("cd weather\n{after}")).await;
            }
            _ => said = shell.follow(&step).await,
        }
        if matches!(&step, Step::Write(path, _) if path == "src/lib.rs") {
            let terminal = dev.as_ref().unwrap();
            shell.until(terminal, "WEATHER_CURRENT").await;
            let printed = fs::read_to_string(terminal).unwrap();
            let line = printed.lines().find(|line| line.contains("WEATHER_CURRENT")).unwrap();
            assert_eq!(weather_of(&shell.run(line).await), expected, "the printed line, pasted");
        }
    }
    // The last block calls the tool as `latest` and by its version.
    let answers: Vec<Value> = serde_json::Deserializer::from_str(&said).into_iter().map(Result::unwrap).collect();
    assert_eq!(answers.len(), 2, "{said}");
    for answer in answers {
        assert_eq!(answer["data"], expected, "{answer}");
    }
}
