//! The manuals: their commands work, and their tables match the programs.

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::{Json, Router, extract::Path as InPath, http::StatusCode, routing::get};
use harness::{
    Host, Inbox, Registry, author,
    host::{Setup, beside},
    inbox::ORIGIN,
    manual::{Shell, Step, rows, steps},
    wait_until,
};
use serde_json::{Value, json};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Toolkits of the repository. A new toolkit that uses their target folder and lock file builds
/// with the already compiled dependencies.
const TOOLKITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../toolkits");

fn page(name: &str) -> PathBuf {
    Path::new(ROOT).join(name)
}

/// Lets the toolkit in a folder build with the already compiled dependencies.
fn prepare(folder: &Path) {
    fs::copy(
        Path::new(TOOLKITS).join("Cargo.lock"),
        folder.join("Cargo.lock"),
    )
    .unwrap();
}

/// Starts a fake provider on loopback and returns its origin.
#[expect(
    clippy::disallowed_methods,
    reason = "it serves for as long as the test runs"
)]
async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    origin
}

async fn weather() -> String {
    let now = json!({ "current": { "time": "2026-03-01T07:00", "temperature_2m": 4.2, "wind_speed_10m": 11.0 } });
    serve(Router::new().route("/v1/forecast", get(async move || Json(now)))).await
}

/// Starts the provider of the author's manual, which has one item.
async fn items() -> String {
    let item = async |InPath(id): InPath<u64>| match id {
        7 => (StatusCode::OK, Json(json!({ "name": "seven" }))),
        _ => (
            StatusCode::NOT_FOUND,
            Json(json!({ "message": "no such item" })),
        ),
    };
    serve(Router::new().route("/v1/items/{id}", get(item))).await
}

/// Starts a Hacker News on which a story is posted before each request for the newest ones.
async fn news() -> String {
    let posted = Arc::new(AtomicU64::new(0));
    let newest = move || {
        let newest = posted.fetch_add(1, Ordering::Relaxed);
        async move { Json((0..=newest).collect::<Vec<_>>()) }
    };
    let story = async |InPath(file): InPath<String>| {
        let id: u64 = file.trim_end_matches(".json").parse().unwrap();
        Json(json!({ "id": id, "type": "story", "title": "A story" }))
    };
    let router = Router::new().route("/v0/newstories.json", get(newest));
    serve(router.route("/v0/item/{file}", get(story))).await
}

/// Returns the environment of a reader's shell, with both commands in the path.
#[expect(
    clippy::disallowed_methods,
    reason = "the reader's path is this one, with our programs before it"
)]
fn variables(folder: &Path, rewrite: &str) -> Vec<(&'static str, String)> {
    let programs = env::current_exe()
        .unwrap()
        .ancestors()
        .nth(2)
        .unwrap()
        .display()
        .to_string();
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
    let answer: Value =
        serde_json::from_str(answer).unwrap_or_else(|cause| panic!("{cause}: {answer}"));
    assert_eq!(answer["successful"], true, "{answer}");
    answer["data"].clone()
}

#[tokio::test]
async fn tutorial_works_step_by_step() {
    let folder = tempfile::tempdir().unwrap();
    let rewrite = format!("https://api.open-meteo.com={}", weather().await);
    let mut shell = Shell::open(folder.path(), &variables(folder.path(), &rewrite));
    let expected = json!({ "time": "2026-03-01T07:00", "temperature": 4.2, "wind_speed": 11.0 });
    let mut dev = None;
    let mut said = String::new();
    for step in steps(&page("toolkit-sdk/TUTORIAL.md")) {
        match &step {
            Step::Type(command) if command == "toolkit dev\n" => {
                dev = Some(shell.leave(command, "WEATHER_GREET").await);
            }
            Step::Type(command) if command == "toolhost serve\n" => {
                shell.leave(command, "toolhost-data.env").await;
            }
            Step::Type(command) if command.contains("toolkit new weather\n") => {
                // The first build downloads dependencies for a reader; here they are present.
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
            let line = printed
                .lines()
                .find(|line| line.contains("WEATHER_CURRENT"))
                .unwrap();
            assert_eq!(
                weather_of(&shell.run(line).await),
                expected,
                "the printed line, pasted"
            );
        }
    }
    // The last block calls the tool as `latest` and by its version.
    let answers: Vec<Value> = serde_json::Deserializer::from_str(&said)
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(answers.len(), 2, "{said}");
    for answer in answers {
        assert_eq!(answer["data"], expected, "{answer}");
    }
}

/// Parses several responses of the API printed one after another.
fn answers(said: &str) -> Vec<Value> {
    let read = serde_json::Deserializer::from_str(said).into_iter();
    read.collect::<Result<_, _>>()
        .unwrap_or_else(|cause| panic!("{cause}: {said}"))
}

/// Returns the reasons for which blocks of a page are not run.
fn left(page: &[Step]) -> Vec<&str> {
    page.iter()
        .filter_map(|step| {
            if let Step::Leave(_, reason) = step {
                Some(reason.as_str())
            } else {
                None
            }
        })
        .collect()
}

#[tokio::test]
async fn commands_of_readme_and_operations_work() {
    let folder = tempfile::tempdir().unwrap();
    let built = Path::new(TOOLKITS).join("dist");
    assert!(
        built.join("documents.wasm").is_file(),
        "nothing is built: `cargo toolkit build --all` first"
    );
    let inbox = Inbox::start();
    let rewrite = format!(
        "https://api.resend.com=http://127.0.0.1:1,{ORIGIN}={},https://hacker-news.firebaseio.com={}",
        inbox.origin,
        news().await
    );
    let mut known = variables(folder.path(), &rewrite);
    known.extend([
        (
            "TOOLHOST_PASSPHRASE",
            "a passphrase of the tests".to_owned(),
        ),
        ("TOOLHOST_TRIGGERS__POLL_INTERVAL_S", "1".to_owned()),
        ("WEBHOOK_URL", ORIGIN.to_owned()),
    ]);
    let mut shell = Shell::open(folder.path(), &known);
    shell
        .leave(
            &format!("toolhost serve --toolkits '{}'", built.display()),
            "toolhost-data.env",
        )
        .await;
    let first = steps(&page("README.md"));
    assert_eq!(
        left(&first),
        [
            "it builds everything, the program that reads this included",
            "it needs an assistant",
        ]
    );
    let page = [first, steps(&page("docs/operations.md"))].concat();
    let mut ran = Vec::new();
    for step in &page {
        let Step::Type(commands) = step else { continue };
        let mark = [
            "toolhost-data.env",
            "HACKERNEWS_NEW_STORY",
            "toolhost events tail",
            "/auth_configs",
            "/connected_accounts",
            "/mcp/servers",
            "tools/call",
            "toolkit new",
            "toolhost export",
        ];
        let mark = mark
            .into_iter()
            .find(|mark| commands.contains(mark))
            .unwrap_or_else(|| panic!("new: {commands}"));
        ran.push(mark);
        match mark {
            "toolhost-data.env" => {
                let said = answers(&shell.run(commands).await);
                assert_eq!(said.len(), 3, "{said:?}");
                assert!(
                    said[0]["items"]
                        .as_array()
                        .is_some_and(|tools| !tools.is_empty()),
                    "{said:?}"
                );
                assert!(
                    weather_of(&said[1].to_string())["markdown"]
                        .as_str()
                        .unwrap()
                        .contains("# Hello"),
                    "{said:?}"
                );
                assert!(
                    said[2].to_string().contains("DOCUMENTS_HTML_TO_MARKDOWN"),
                    "{said:?}"
                );
            }
            "HACKERNEWS_NEW_STORY" => {
                let said = answers(&shell.run(commands).await);
                assert_eq!(said.len(), 3, "{said:?}");
                let secret = said[0]["secret"].as_str().unwrap();
                let arrived = async || !inbox.received().is_empty();
                wait_until("a new story arrives", arrived).await;
                let message = inbox.received().remove(0);
                assert!(message.is_signed_with(secret));
                assert_eq!(message.json()["data"]["title"], "A story");
            }
            "toolhost events tail" => {
                shell.leave(commands, "HACKERNEWS_NEW_STORY").await;
            }
            "/auth_configs" => {
                let said = answers(&shell.run(commands).await);
                let id = said[0]["auth_config"]["id"]
                    .as_str()
                    .unwrap_or_else(|| panic!("{said:?}"));
                shell
                    .run(&format!("AUTH_CONFIG_ID={id} RESEND_API_KEY=re_0123456789"))
                    .await;
            }
            "toolhost export" => {
                // The previous toolkit has its own folder.
                shell
                    .run("cd .. && export TOOLHOST_PASSPHRASE='four words that rhyme'")
                    .await;
                let said = shell.run(commands).await;
                assert!(said.contains("./restored now contains"), "{said}");
            }
            "/mcp/servers" => {
                let said = answers(&shell.run(commands).await);
                let line = said[0]["commands"]["claude"].as_str().unwrap();
                assert!(
                    line.starts_with("claude mcp add --transport http"),
                    "{said:?}"
                );
                let url = said[0]["mcp_url"].as_str().unwrap();
                shell.run(&format!("MCP_URL='{url}'")).await;
            }
            "tools/call" => {
                let said = answers(&shell.run(commands).await);
                let result = &said[0]["result"];
                assert_eq!(
                    result["structuredContent"]["markdown"], "**Hello**",
                    "{said:?}"
                );
            }
            "/connected_accounts" => {
                let said = answers(&shell.run(commands).await);
                assert_eq!(
                    said[0]["connectionData"]["val"]["status"], "ACTIVE",
                    "{said:?}"
                );
            }
            _ => {
                let (before, after) = commands.split_once(" && cd greeter\n").unwrap();
                shell.run(before).await;
                prepare(&folder.path().join("greeter"));
                let said = shell.run(&format!("cd greeter\n{after}")).await;
                assert!(
                    said.contains("Hello, Ada!") && said.contains("published"),
                    "{said}"
                );
            }
        }
    }
    assert_eq!(ran.len(), 9, "{ran:?}");
}

/// Starts a server and creates the files that the commands of the author's manual name.
async fn authors_desk(folder: &Path, application: &str) -> (Host, Registry, Shell) {
    let rewrite = format!("https://api.example.com={application}");
    let host = Setup::new()
        .with("logs.cassettes", "failed")
        .with("net.rewrite", &rewrite)
        .start()
        .await;
    let registry = Registry::start().await;
    let mut known = variables(folder, &rewrite);
    known.extend([
        ("TOOLHOST_DATA", host.data().display().to_string()),
        ("TOOLHOST_URL", host.url.clone()),
        ("TOOLHOST_API_KEY", host.project_key.clone()),
        ("TOOLHOST_ORG_API_KEY", host.org_key.clone()),
        ("TOOLKIT_TOKEN", "a-token-of-an-account".to_owned()),
        ("TOOLKIT_SIGN_PASSWORD", "a password".to_owned()),
        ("MCP_URL", "tools.json".to_owned()),
        ("REGISTRY", registry.host.clone()),
    ]);
    let cache = author::cache().display().to_string();
    known
        .iter_mut()
        .filter(|(name, _)| *name == "XDG_CACHE_HOME")
        .for_each(|(_, value)| value.clone_from(&cache));
    let files = [
        (
            "acme.yaml",
            "openapi: 3.1.0\ninfo: { title: Acme }\nservers: [{ url: https://api.example.com/v1 }]\n\
             paths: { /items: { get: { operationId: list, responses: {} } } }\n",
        ),
        (
            "calendar.v3.json",
            r#"{ "kind": "discovery#restDescription", "name": "calendar", "version": "v3", "rootUrl": "https://www.googleapis.com/", "servicePath": "calendar/v3/",
                 "resources": { "colors": { "methods": { "get": { "id": "calendar.colors.get", "path": "colors", "httpMethod": "GET" } } } } }"#,
        ),
        ("schema.graphql", "type Query { version: String }\n"),
        // The list is the output of an MCP server. A callable one would need a host name and a
        // certificate.
        (
            "tools.json",
            r#"{ "server": "https://mcp.acme.example/mcp", "tools": [{ "name": "ping", "inputSchema": { "type": "object" } }] }"#,
        ),
    ];
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
    let mut shell = Shell::open(folder, &known);
    for (name, source) in [("my-toolkit", "my-toolkit"), ("hello", "hello")] {
        shell.run(&format!("toolkit new {name}")).await;
        prepare(&folder.join(source));
    }
    (host, registry, shell)
}

#[tokio::test]
async fn author_manual_commands_work() {
    let folder = tempfile::tempdir().unwrap();
    let (host, _registry, mut shell) = authors_desk(folder.path(), &items().await).await;
    let page = steps(&page("toolkit-sdk/README.md"));
    assert!(left(&page).is_empty(), "{:?}", left(&page));
    let root = folder.path().display();
    // Preparations of a reader, by the beginning of the command that needs them.
    let mut places = vec![
        ("toolkit dev my-toolkit", "true"),
        ("toolkit import openapi", "true"),
        (
            "toolkit sign --generate",
            "cd hello && toolkit build --version 20260101_00",
        ),
        ("toolkit record .", "cd my-toolkit"),
        ("toolhost logs export", "true"),
        ("toolkit setup --lang js", "true"),
    ];
    for step in &page {
        match step {
            Step::Write(file, text) if file.ends_with(".rs") || file.ends_with(".json") => {
                shell
                    .run(&format!("cd '{root}/my-toolkit'; rm -rf cases/greet"))
                    .await;
                shell.follow(&Step::Write(file.clone(), text.clone())).await;
            }
            Step::Write(file, text) => {
                let language = if file.ends_with(".py") {
                    "python"
                } else {
                    "js"
                };
                shell
                    .run(&format!("cd '{root}'; toolkit new said-{language} --lang {language}; cd said-{language}"))
                    .await;
                shell.follow(&Step::Write(file.clone(), text.clone())).await;
                shell.run("rm -r cases; toolkit build").await;
            }
            Step::Type(commands) => {
                let place = places
                    .iter()
                    .position(|(begins, _)| commands.starts_with(begins));
                let (begins, before) =
                    places.remove(place.unwrap_or_else(|| panic!("this block is new: {commands}")));
                shell.run(&format!("cd '{root}'; {before}")).await;
                if begins.starts_with("toolkit dev") {
                    shell.leave(commands, "EXAMPLE_GET_ITEM").await;
                    continue;
                }
                if begins.starts_with("toolhost logs") {
                    shell.run("toolkit publish my-toolkit").await;
                    let project = host.as_project();
                    project
                        .connect(
                            "example",
                            "BEARER_TOKEN",
                            "default",
                            json!({ "token": "a-token-of-an-account" }),
                        )
                        .await;
                    let failed = project
                        .execute("EXAMPLE_GET_ITEM", json!({ "id": 8 }))
                        .await;
                    shell
                        .run(&format!("LOG_ID={}", failed["log_id"].as_str().unwrap()))
                        .await;
                }
                shell.run(commands).await;
            }
            Step::Leave(..) => {}
        }
    }
    assert_eq!(places, [], "blocks that are gone");
}

/// Returns the help text of a command.
fn help(program: &str, command: &[&str]) -> String {
    let output = std::process::Command::new(beside(program))
        .args(command)
        .arg("--help")
        .output()
        .unwrap();
    assert!(output.status.success(), "{program} {command:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn author_manual_matches_the_command_help() {
    let help_of_all = help("toolkit", &[]);
    let listed = help_of_all
        .split("Commands:\n")
        .nth(1)
        .unwrap()
        .lines()
        .map_while(|line| line.split_whitespace().next());
    let mut there: Vec<_> = listed.filter(|name| *name != "help").collect();
    let mut told = Vec::new();
    for row in rows(&page("toolkit-sdk/README.md")) {
        let text = row.join(" ");
        let code: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
        let commands: Vec<_> = code
            .iter()
            .filter_map(|code| code.strip_prefix("toolkit ")?.split(' ').next())
            .collect();
        let [command, ..] = commands.as_slice() else {
            continue;
        };
        if !row[0].starts_with("`toolkit ") {
            continue;
        }
        told.extend(commands.iter().map(|command| (*command).to_owned()));
        let help = help("toolkit", &[command]);
        for flag in code
            .iter()
            .flat_map(|code| code.split([' ', '[', ']']))
            .filter(|word| word.starts_with("--"))
        {
            assert!(help.contains(flag), "`toolkit {command}` has no {flag}");
        }
    }
    there.sort_unstable();
    told.sort_unstable();
    told.dedup();
    assert_eq!(told, there);
}
