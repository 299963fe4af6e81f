//! Toolkits in JavaScript and Python: created from the template, published, called, and limited
//! like any other guest.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use harness::{Client, Host, author, host, unique};
use serde_json::{Value, json};

/// Tools in addition to those of the template.
const JS: &str = r#"
    fetch: tool({ description: "Fetches.", readOnly: true, input: z.object({ tag: z.string() }), output: z.looseObject({}),
      run: ({ tag }) => http.get("https://api.example.com/echo/{tag}").path("tag", tag).query("a b", ["ä", null, 2]).send().json() }),
    refused: tool({ description: "Reaches where it may not.", run: () => http.get("https://other.example.com/").send().json() }),
    chance: tool({ description: "Asks for chance and time.",
      run: () => ({ numbers: [Math.random(), crypto.randomUUID()], now: Date.now(), zone: new Date().getTimezoneOffset() }) }),
    boom: tool({ description: "Breaks.", run: () => { throw new RangeError("one\ntwo"); } }),
    spin: tool({ description: "Never ends.", run() { for (;;); } }),
    hog: tool({ description: "Takes all memory.", run() { const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1)); } }),
"#;
const PYTHON: &str = r#"

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

/// Runs the author's command that was built next to the server.
fn toolkit(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(host::author());
    command.args(arguments).current_dir(folder);
    command.env("XDG_CACHE_HOME", author::cache());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "toolkit {arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Builds a toolkit from the template with additional tools.
fn build(language: &str, slug: &str) -> PathBuf {
    let author = tempfile::tempdir().unwrap();
    toolkit(author.path(), &["new", slug, "--lang", language]);
    let folder = author.keep().join(slug);
    if language == "js" {
        let file = folder.join("tools.js");
        let text = fs::read_to_string(&file).unwrap();
        let text = text
            .replace("{ client,", "{ client, http,")
            .replace("  tools: {\n", &format!("  tools: {{{JS}"));
        fs::write(
            file,
            text.replace("egress:", "limits: { cpuMs: 500 },\n  egress:"),
        )
        .unwrap();
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
        fs::write(file, text + PYTHON).unwrap();
    }
    let built: Value = serde_json::from_str(&toolkit(&folder, &["build", "--json"])).unwrap();
    folder.join(built[0]["file"].as_str().unwrap())
}

async fn published(language: &str) -> (Client, String) {
    let slug = format!("{language}{}", unique(4));
    let file = build(language, &slug);
    let host = Host::shared().await;
    let arguments = [
        "publish",
        file.to_str().unwrap(),
        "--url",
        &host.url,
        "--org-key",
        &host.org_key,
    ];
    assert!(toolkit(Path::new("."), &arguments).contains("published"));
    fs::remove_dir_all(file.ancestors().nth(3).unwrap()).unwrap();
    (host.as_project(), slug.to_uppercase())
}

#[expect(
    clippy::disallowed_methods,
    reason = "what the guest tells is compared with this machine's time"
)]
async fn works_like_any_other(language: &str) {
    let (project, slug) = published(language).await;
    let call = async |tool: &str, arguments: Value| {
        project.execute(&format!("{slug}_{tool}"), arguments).await
    };

    let greeting = call("GREET", json!({ "name": "Grüße 🙂" })).await.data();
    assert_eq!(greeting, json!({ "text": "Hello, Grüße 🙂!" }));
    assert_eq!(
        call("GREET", json!({ "name": " " })).await.failure(),
        "invalid_input"
    );
    call("GREET", json!({ "nam": "Ada" })).await.expect(400);

    let tag = unique(8);
    let fetched = call("FETCH", json!({ "tag": tag })).await.data();
    assert_eq!(fetched["query"], "a%20b=%C3%A4&a%20b=2", "{fetched}");
    assert_eq!(Host::application().seen(&tag).len(), 1);
    assert_eq!(call("REFUSED", json!({})).await.failure(), "denied");

    let (one, other) = (
        call("CHANCE", json!({})).await.data(),
        call("CHANCE", json!({})).await.data(),
    );
    for index in 0..2 {
        assert_ne!(
            one["numbers"][index], other["numbers"][index],
            "{one} {other}"
        );
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
    assert!(
        broken["data"]["message"].as_str().unwrap().contains("one"),
        "{broken:?}"
    );
    assert_eq!(call("SPIN", json!({})).await.failure(), "tool_cpu_limit");
    assert_eq!(call("HOG", json!({})).await.failure(), "tool_memory_limit");
    assert_eq!(
        call("GREET", json!({ "name": "Ada" })).await.data(),
        json!({ "text": "Hello, Ada!" })
    );
}

#[tokio::test]
async fn javascript_toolkit_works() {
    works_like_any_other("js").await;
}

#[tokio::test]
async fn python_toolkit_works() {
    works_like_any_other("python").await;
}
