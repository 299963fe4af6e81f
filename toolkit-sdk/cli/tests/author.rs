//! Tests of an author's first steps, with the real command and this machine's toolchain.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on ends where it stands"
)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::{Value, json};

/// Toolkits of the repository. Their target folder and lock file are used here, too, so that the
/// standard library and the SDK's dependencies are compiled only once.
const TOOLKITS_FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../toolkits");

struct Author {
    folder: tempfile::TempDir,
    cache: PathBuf,
}

impl Author {
    /// Uses a cache shared by all runs, so that the SDK is compiled only once.
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder for temporary files"),
            cache: Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"),
        }
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join(relative)
    }

    fn toolkit(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolkit"));
        command.args(arguments).current_dir(self.folder.path());
        command.env("XDG_CACHE_HOME", &self.cache);
        command.env(
            "CARGO_TARGET_DIR",
            Path::new(TOOLKITS_FOLDER).join("target"),
        );
        command.env_remove("TOOLHOST_ORG_API_KEY");
        command.output().expect("the command under test")
    }

    /// Runs a command that must succeed, and parses its standard output as JSON.
    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.toolkit(arguments);
        assert!(
            output.status.success(),
            "toolkit {arguments:?}\n{}",
            text(&output)
        );
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|cause| panic!("{cause}\n{}", text(&output)))
    }

    /// Runs a command that must fail, and returns its whole output.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.toolkit(arguments);
        assert!(
            !output.status.success(),
            "toolkit {arguments:?} succeeded\n{}",
            text(&output)
        );
        text(&output)
    }
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn new_toolkit_builds_passes_and_runs() {
    let author = Author::new();
    let made = author.toolkit(&["new", "hello-there"]);
    assert!(made.status.success(), "{}", text(&made));
    fs::copy(
        Path::new(TOOLKITS_FOLDER).join("Cargo.lock"),
        author.path("hello-there/Cargo.lock"),
    )
    .unwrap();

    let built = author.json(&["build", "hello-there", "--version", "20261121_07", "--json"]);
    assert_eq!(built[0]["slug"], "hello_there");
    assert_eq!(built[0]["version"], "20261121_07");
    assert_eq!(built[0]["tools"], json!(["HELLO_THERE_GREET"]));
    let component = author.path("hello-there/dist/hello_there.wasm");
    let digest =
        fs::read_to_string(author.path("hello-there/dist/hello_there.wasm.sha256")).unwrap();
    assert!(
        digest.starts_with(built[0]["sha256"].as_str().unwrap()),
        "{digest}"
    );
    nothing_of_the_machine_is_in(&component);
    let component = component.to_str().unwrap();

    let inspected = author.json(&["inspect", component, "--json"]);
    assert_eq!(inspected["manifest"]["version"], "20261121_07");
    assert_eq!(inspected["problems"], json!([]));
    let imports = inspected["imports"].as_array().unwrap();
    assert!(
        imports
            .iter()
            .all(|import| import.as_str().unwrap().starts_with("toolhost:toolkit/")),
        "{imports:?}"
    );

    let checked = author.json(&["check", "hello-there", "--json"]);
    assert_eq!(checked[0]["problems"], json!([]));
    assert_eq!(
        checked[0]["cases"].as_array().unwrap().len(),
        2,
        "{checked}"
    );

    let ran = author.json(&["run", component, "greet", "--arg", "name=Grace", "--json"]);
    assert_eq!(ran["data"], json!({ "text": "Hello, Grace!" }));
    assert!(
        ran["usage"]["peak_memory_bytes"].as_u64().unwrap() > 0,
        "{ran}"
    );

    let case = "hello-there/cases/greet/success.json";
    let ran = author.json(&["run", component, "greet", "--case", case, "--json"]);
    assert_eq!(ran["data"], json!({ "text": "Hello, Ada!" }));

    let failed = author.refused(&["run", component, "GREET", r#"{ "name": "" }"#]);
    assert!(
        failed.contains("invalid_input: `name` is empty"),
        "{failed}"
    );
    let refused = author.refused(&["run", component, "greet", r#"{ "nam": "Ada" }"#]);
    assert!(
        refused.contains("\"name\" is a required property"),
        "{refused}"
    );

    failing_cases_are_shown_and_blessed(&author, component);
}

/// Checks that a component contains no paths of the author's machine and no text that belongs only
/// in the manifest.
fn nothing_of_the_machine_is_in(component: &Path) {
    let bytes = fs::read(component).unwrap();
    let count = |text: &str| {
        bytes
            .windows(text.len())
            .filter(|window| *window == text.as_bytes())
            .count()
    };
    let home = std::env::home_dir().expect("a home folder");
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folder = component.parent().unwrap().parent().unwrap();
    for place in [&home, workspace, folder] {
        let place = format!("{}/", place.display());
        assert_eq!(count(&place), 0, "the component names {place}");
    }
    assert_eq!(
        count("Greets a person by name."),
        1,
        "the description stands in the manifest alone"
    );
}

fn failing_cases_are_shown_and_blessed(author: &Author, component: &str) {
    let check = ["check", component, "--cases", "hello-there/cases"];
    let success = author.path("hello-there/cases/greet/success.json");
    let failure = author.path("hello-there/cases/greet/failure.json");
    let expected = r#"{ "data": { "text": "Hello, Bob!" }, "arguments": { "name": "Ada" } }"#;
    fs::write(&success, expected).unwrap();
    let kept = fs::read(&failure).unwrap();
    fs::remove_file(&failure).unwrap();
    let wrong = author.refused(&check);
    assert!(wrong.contains(r#"-     "text": "Hello, Bob!""#), "{wrong}");
    assert!(wrong.contains(r#"+     "text": "Hello, Ada!""#), "{wrong}");
    assert!(
        wrong.contains("no case expects a failure"),
        "every problem at once: {wrong}"
    );
    assert_eq!(
        fs::read_to_string(&success).unwrap(),
        expected,
        "nothing is written unasked"
    );

    fs::write(&failure, kept).unwrap();
    let blessed = author.toolkit(&[&check[..], &["--bless"]].concat());
    assert!(blessed.status.success(), "{}", text(&blessed));
    assert!(
        text(&blessed).contains(r#"+     "text": "Hello, Ada!""#),
        "{}",
        text(&blessed)
    );
    let now: Value = serde_json::from_slice(&fs::read(&success).unwrap()).unwrap();
    assert_eq!(
        now.to_string(),
        r#"{"data":{"text":"Hello, Ada!"},"arguments":{"name":"Ada"}}"#
    );
    author.json(&[&check[..], &["--json"]].concat());
}

#[test]
fn what_is_no_component_is_named() {
    let author = Author::new();
    fs::write(author.path("page.wasm"), "<html>").unwrap();
    let refused = author.refused(&["inspect", "page.wasm"]);
    assert!(refused.contains("not a WebAssembly component"), "{refused}");
    let refused = author.refused(&["build", "."]);
    assert!(refused.contains("toolkit new"), "{refused}");
}

#[test]
fn setup_lets_cargo_find_the_sdk() {
    let author = Author::new();
    let made = author.toolkit(&["new", "cloned"]);
    assert!(made.status.success(), "{}", text(&made));
    // A clone does not have the file, which names a path of this machine.
    let config = author.path("cloned/.cargo/config.toml");
    fs::remove_file(&config).unwrap();
    let done = author.toolkit(&["setup", "cloned"]);
    assert!(
        text(&done).contains("cargo finds the SDK from cloned"),
        "{}",
        text(&done)
    );
    let config = fs::read_to_string(config).unwrap();
    assert!(
        config.contains("[patch.crates-io]\ntoolkit-sdk"),
        "{config}"
    );
}

#[test]
fn a_toolkit_is_never_made_over_something_else() {
    let author = Author::new();
    fs::create_dir(author.path("taken")).unwrap();
    let refused = author.refused(&["new", "taken"]);
    assert!(refused.contains("already exists"), "{refused}");
    assert_eq!(fs::read_dir(author.path("taken")).unwrap().count(), 0);
}
