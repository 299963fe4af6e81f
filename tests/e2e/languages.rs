//! Toolkits created by a command that was copied elsewhere: those in other languages are published,
//! called, and limited like any other guest.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use harness::{Author, Client, Finished, Host, author, beside, unique};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Tools in addition to those of the template.
const JS_TOOLS: &str = r#"
    fetch: tool({ description: "Fetches.", readOnly: true, input: z.object({ tag: z.string() }), output: z.looseObject({}),
      run: ({ tag }) => http.get("https://api.example.com/echo/{tag}").path("tag", tag).query("a b", ["ä", null, 2]).send().json() }),
    refused: tool({ description: "Reaches where it may not.", run: () => http.get("https://other.example.com/").send().json() }),
    chance: tool({ description: "Asks for chance and time.",
      run: () => ({ numbers: [Math.random(), crypto.randomUUID()], now: Date.now(), zone: new Date().getTimezoneOffset() }) }),
    boom: tool({ description: "Breaks.", run: () => { throw new RangeError("one\ntwo"); } }),
    spin: tool({ description: "Never ends.", run() { for (;;); } }),
    hog: tool({ description: "Takes all memory.", run() { const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1)); } }),
"#;
const PYTHON_TOOLS: &str = r#"

@toolkit.tool(read_only=True)
def fetch(tag: str) -> dict[str, Any]:
    """Fetches."""
    return http.get("https://api.example.com/echo/{tag}").path("tag", tag).query("a b", ["ä", None, 2]).send().json()


@toolkit.tool()
def refused() -> dict[str, Any]:
    """Reaches where it may not."""
    return http.get("https://other.example.com/").send().json()


@toolkit.tool()
def chance() -> dict[str, Any]:
    """Asks for chance and time."""
    now = int(time.time() * 1000)
    return {"numbers": [random.random(), str(uuid.uuid4())], "now": now, "zone": time.timezone}


@toolkit.tool()
def boom() -> dict[str, Any]:
    """Breaks."""
    raise RuntimeError("one\ntwo")


@toolkit.tool()
def spin() -> dict[str, Any]:
    """Never ends."""
    while True:
        pass


@toolkit.tool()
def hog() -> dict[str, Any]:
    """Takes all memory."""
    everything = []
    while True:
        everything.append(bytearray(1 << 20))
"#;

/// Builds a toolkit from the template with additional tools. Returns the component.
fn build(elsewhere: &Elsewhere, language: &str, name: &str) -> PathBuf {
    let new = ["new", name, "--lang", language];
    elsewhere.run(".", &new).succeeded();
    let folder = elsewhere.folder.path().join(name);
    if language == "js" {
        let file = folder.join("tools.js");
        let text = fs::read_to_string(&file).unwrap();
        let text = text
            .replace("{ client,", "{ client, http,")
            .replace("  tools: {\n", &format!("  tools: {{{JS_TOOLS}"));
        let text = text.replace("egress:", "limits: { cpuMs: 500 },\n  egress:");
        fs::write(file, text).unwrap();
    } else {
        let file = folder.join("tools.py");
        let text = fs::read_to_string(&file).unwrap();
        let text = text.replace(
            "import Annotated\n",
            "import Annotated, Any\nimport random, time, uuid\n",
        );
        let text = text
            .replace("import Client,", "import Client, http,")
            .replace("egress=", "limits={\"cpu_ms\": 500},\n    egress=");
        fs::write(file, text + PYTHON_TOOLS).unwrap();
    }
    let built = elsewhere.run(name, &["build", "--json"]).succeeded();
    let built: Value = serde_json::from_str(&built).unwrap();
    folder.join(built[0]["file"].as_str().unwrap())
}

/// Returns the source location of the broken tool's error as its trace names it, in the spelling of
/// JSON.
fn place_of_error(folder: &Path, language: &str) -> String {
    let (file, before_line) = if language == "js" {
        ("tools.js", ":")
    } else {
        ("tools.py", "\\\", line ")
    };
    let text = fs::read_to_string(folder.join(file)).unwrap();
    let line = text.lines().position(|line| line.contains(r"one\ntwo"));
    format!("{file}{before_line}{}", line.unwrap() + 1)
}

/// Publishes a toolkit. Returns its project, the prefix of its slugs, and the source location of
/// the broken tool's error.
async fn published(language: &str) -> (Client, String, String) {
    let name = format!("{language}-t{}", unique(4));
    let elsewhere = Elsewhere::new();
    let file = build(&elsewhere, language, &name);
    let place = place_of_error(&elsewhere.folder.path().join(&name), language);
    let host = Host::shared().await;
    let publish = ["publish", file.to_str().unwrap(), "--url", &host.url];
    let arguments = [&publish[..], &["--org-key", &host.org_key]].concat();
    let said = elsewhere.run(".", &arguments).succeeded();
    assert!(said.contains("published"), "{said}");
    let slug = name.replace('-', "_").to_uppercase();
    (host.as_project(), slug, place)
}

#[expect(
    clippy::disallowed_methods,
    reason = "what the guest tells is compared with this machine's time"
)]
async fn works_like_any_other(language: &str) {
    let (project, slug, place) = published(language).await;
    let call = async |tool: &str, arguments: Value| {
        project.execute(&format!("{slug}_{tool}"), arguments).await
    };

    let greeting = call("GREET", json!({ "name": "Grüße 🙂" })).await.data();
    assert_eq!(greeting, json!({ "text": "Hello, Grüße 🙂!" }));
    let unnamed = call("GREET", json!({ "name": " " })).await;
    assert_eq!(unnamed.failure(), "invalid_input");
    call("GREET", json!({ "nam": "Ada" })).await.expect(400);

    let tag = unique(8);
    let fetched = call("FETCH", json!({ "tag": tag })).await.data();
    assert_eq!(fetched["query"], "a%20b=%C3%A4&a%20b=2", "{fetched}");
    assert_eq!(Host::application().seen(&tag).len(), 1);
    assert_eq!(call("REFUSED", json!({})).await.failure(), "denied");

    let one = call("CHANCE", json!({})).await.data();
    let other = call("CHANCE", json!({})).await.data();
    for number in 0..2 {
        let [one, other] = [&one, &other].map(|data| &data["numbers"][number]);
        assert_ne!(one, other);
    }
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_millis() as u64;
    assert!(
        now.abs_diff(other["now"].as_u64().unwrap()) < 60_000,
        "{other}"
    );
    assert_eq!(other["zone"], 0);

    let broken = call("BOOM", json!({})).await;
    assert_eq!(broken.failure(), "internal");
    let message = broken["data"]["message"].as_str().unwrap();
    assert!(message.contains("one"), "{message}");
    let log = project.log(&broken["log_id"]).await;
    let trace = log["data"]["log"].to_string();
    assert!(trace.contains(&place), "{place}: {trace}");
    assert_eq!(call("SPIN", json!({})).await.failure(), "tool_cpu_limit");
    assert_eq!(call("HOG", json!({})).await.failure(), "tool_memory_limit");
    let greeting = call("GREET", json!({ "name": "Ada" })).await.data();
    assert_eq!(greeting, json!({ "text": "Hello, Ada!" }));
}

#[tokio::test]
async fn javascript_toolkit_works() {
    works_like_any_other("js").await;
}

#[tokio::test]
async fn python_toolkit_works() {
    works_like_any_other("python").await;
}

/// The author's command in a folder of its own, far from the repository.
struct Elsewhere {
    folder: TempDir,
}

impl Elsewhere {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Programs that this process starts meanwhile would inherit the file while it is written, and
        // then it could not be run.
        let mut copy = Command::new("cp");
        copy.arg(beside("toolkit")).arg(folder.path());
        Finished::run(copy).succeeded();
        Self { folder }
    }

    /// Runs the command in a folder below its own, which is made.
    fn run(&self, place: &str, arguments: &[&str]) -> Finished {
        let place = self.folder.path().join(place);
        fs::create_dir_all(&place).unwrap();
        let mut command = Command::new(self.folder.path().join("toolkit"));
        command.args(arguments).current_dir(place);
        command.env("XDG_CACHE_HOME", author::cache());
        command.envs(author::QUICK_PROFILE_VARIABLES);
        command.env_remove("CARGO_TARGET_DIR");
        Finished::run(command)
    }

    fn greeting(&self, toolkit: &str) -> String {
        let run = ["run", ".", "greet", "--arg", "name=Ada", "--json"];
        let said = self.run(toolkit, &run).succeeded();
        let call: Value = serde_json::from_str(&said).unwrap();
        call["data"]["text"].as_str().unwrap().to_owned()
    }
}

#[test]
fn toolkits_share_compiled_library_but_no_module() {
    let elsewhere = Elsewhere::new();
    // A dependency has the same name.
    for place in ["here", "there"] {
        elsewhere.run(place, &["new", "serde"]).succeeded();
    }
    let [here, there] = ["here/serde", "there/serde"];
    let source = elsewhere.folder.path().join(there).join("src/lib.rs");
    let text = fs::read_to_string(&source).unwrap();
    fs::write(&source, text.replace("Hello, ", "Goodbye, ")).unwrap();

    let built = |place| {
        let built = elsewhere.run(place, &["build"]);
        assert_eq!(built.code, Some(0), "{built:#?}");
        built.stderr
    };
    built(here);
    let second = built(there);
    assert!(second.contains("Compiling serde v0.1.0"), "{second}");
    assert!(!second.contains("Compiling toolkit-sdk"), "{second}");
    for _ in 0..2 {
        assert_eq!(elsewhere.greeting(here), "Hello, Ada!");
        assert_eq!(elsewhere.greeting(there), "Goodbye, Ada!");
    }
}

/// Tool that sends two requests concurrently, one with a file, and makes a file of a response.
const RUST_LABEL_TOOL: &str = r#"
#[derive(Deserialize, JsonSchema)]
struct Label {
    note: File,
}

#[derive(Serialize, JsonSchema)]
struct Labeled {
    file: File,
    site: String,
}

/// Sends a note, and reads its label.
#[tool]
fn label(input: Label) -> Result<Labeled> {
    let form = Multipart::new().file("note", &input.note);
    let note = http::post("https://api.example.com").multipart(form);
    let label = http::get("https://api.example.com/labels/label?size=2").into_file();
    let mut answers = http::send_all([note, label]).into_iter();
    let mut next = || answers.next().unwrap_or_else(|| Err(ToolError::internal("no answer")));
    next()?;
    Ok(Labeled { file: next()?.file()?, site: context::require("site")? })
}
"#;

/// Returns cases of the tool and what each of them must be: true if it passes.
fn label_cases() -> Vec<(&'static str, bool, Value)> {
    let case = |note: Value, error: Option<&str>| {
        json!({
            "arguments": { "note": { "s3key": "n", "name": "note.txt", "mimetype": "text/plain" } },
            "files": [{ "id": "n", "name": "note.txt", "mimetype": "text/plain", "text": "two" }],
            "exchanges": [
                {
                    "request": { "method": "GET", "url": "https://api.example.com/labels/label?size=2" },
                    "response": { "body": "PNG" },
                },
                {
                    "request": {
                        "method": "POST", "url": "https://api.example.com",
                        "body": { "note": { "filename": "note.txt", "content": note } },
                    },
                    "response": error.map_or(json!({}), |kind| json!({ "error": kind })),
                },
            ],
        })
    };
    let labeled = |note: Value, name: &str| {
        let file = json!({ "name": name, "mimetype": "text/plain", "s3url": "file_1" });
        let mut case = case(note, None);
        case["data"] = json!({ "file": file, "site": "case-site" });
        case
    };
    let broken = |error: Value| {
        let mut case = case(json!("two"), Some("connect"));
        case["error"] = error;
        case
    };
    let unavailable = json!({ "kind": "upstream_unavailable", "message": "no such text" });
    let not_found = json!({ "kind": "not_found" });
    let by_name = json!({ "blob": "n" });
    vec![
        ("text", true, labeled(json!("two"), "label")),
        ("named", true, labeled(by_name, "label")),
        ("broken", true, broken(unavailable)),
        ("other_name", false, labeled(json!("two"), "download")),
        ("other_text", false, labeled(json!("three"), "label")),
        ("other_end", false, broken(not_found)),
    ]
}

#[test]
fn cargo_test_agrees_with_check() {
    let author = Author::new();
    author.new_toolkit("agreed");
    let declared = "tools: [greet, label],\n    egress: [\"api.example.com\"],\n    \
                    auth: [api_key(header: \"x-key\", fields: [secret(api_key), text(site)])],";
    author.edit("agreed/src/lib.rs", "tools: [greet],", declared);
    let with_tool = format!("{RUST_LABEL_TOOL}\ncases!();");
    author.edit("agreed/src/lib.rs", "cases!();", &with_tool);
    let cases = label_cases();
    fs::create_dir_all(author.path("agreed/cases/label")).unwrap();
    for (name, _, case) in &cases {
        let file = author.path(&format!("agreed/cases/label/{name}.json"));
        fs::write(file, case.to_string()).unwrap();
    }

    let checked = author.toolkit(&["check", "agreed", "--json"]);
    let checked: Value = serde_json::from_str(&checked.stdout).unwrap();
    let reports = checked[0]["cases"].as_array().unwrap();
    let report = |name: &str| {
        let name = format!("label/{name}");
        let mut reports = reports.iter();
        reports.find(|report| report["case"] == *name).unwrap()
    };
    let mut native = Command::new("cargo");
    native.arg("test").current_dir(author.path("agreed"));
    native.env("CARGO_TARGET_DIR", author::target());
    let native = Finished::run(native);
    let said = format!("{}{}", native.stdout, native.stderr);
    assert!(said.contains("of the cases of `agreed` fail"), "{said}");
    for (name, passes, _) in cases {
        assert_eq!(report(name)["passed"], passes, "{}", report(name));
        let failed = said.contains(&format!("label/{name}.json:"));
        assert_eq!(failed, !passes, "{name}: {said}");
    }
}
