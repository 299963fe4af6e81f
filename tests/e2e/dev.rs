//! `toolkit dev`: an edit changes the response of the real API.

use std::fs;

use harness::{Author, BUILD_TIMEOUT, Client, Host, author::Dev, wait_for, wait_until};
use serde_json::json;

/// A toolkit under development. Each test uses its own toolkit name, because the compiled files of
/// a name share one folder.
struct Work {
    author: Author,
    name: &'static str,
    tool: String,
    dev: Dev,
}

impl Work {
    fn begin(name: &'static str) -> Self {
        let author = Author::new();
        author.new_toolkit(name);
        let dev = author.dev(name, &[]);
        Self {
            tool: format!("{}_GREET", name.replace('-', "_").to_uppercase()),
            author,
            name,
            dev,
        }
    }

    fn edit(&self, from: &str, to: &str) {
        self.author
            .edit(&format!("{}/src/lib.rs", self.name), from, to);
    }

    async fn greeting(&self, project: &Client) -> String {
        let arguments = json!({ "name": "Ada" });
        let data = project.execute(&self.tool, arguments).await.data();
        data["text"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn edit_is_served_and_broken_source_ignored() {
    let work = Work::begin("dev-edit");
    let Work { dev, tool, .. } = &work;
    let project = dev.project().await;
    let built = dev.event("built", 0).await;
    assert_eq!(built["slug"], "dev_edit");
    assert_eq!(built["tools"], json!([tool]));
    assert!(
        built["try"].as_str().unwrap().contains(project.key()),
        "the line to paste works as it is: {built}"
    );
    assert_eq!(work.greeting(&project).await, "Hello, Ada!");
    let call = dev.event("call", 0).await["call"].clone();
    assert_eq!(call["metadata"]["tool_slug"], json!(tool));
    assert_eq!(call["status"], "success");
    assert!(call["metrics"]["wall_us"].as_u64().unwrap() > 0, "{call}");

    work.edit("Hello, ", "Goodbye, ");
    let next = dev.event("built", 1).await;
    assert!(
        next["version"].as_str() > built["version"].as_str(),
        "{next} after {built}"
    );
    assert_eq!(work.greeting(&project).await, "Goodbye, Ada!");

    work.edit("fn greet", "fn fn greet");
    dev.event("failed", 0).await;
    let why = "expected identifier, found keyword `fn`";
    wait_for(BUILD_TIMEOUT, "the compiler's error is shown", || async {
        dev.errors().contains(why)
    })
    .await;
    assert_eq!(work.greeting(&project).await, "Goodbye, Ada!");

    work.edit("fn fn greet", "fn greet");
    let same = dev.event("built", 2).await;
    assert_eq!(same["new"], false);
    assert_eq!(same["version"], next["version"]);
    let arguments = json!({ "name": "" });
    let failed = project.execute(tool, arguments).await.expect(200);
    assert_eq!(failed.failure(), "invalid_input");
    wait_until("the failed call is shown", || async {
        dev.all("call")
            .iter()
            .any(|event| event["call"]["data"]["response"]["error"] == failed["error"])
    })
    .await;
}

#[tokio::test]
async fn last_of_many_quick_edits_is_served() {
    let work = Work::begin("dev-quick");
    let Work { dev, author, .. } = &work;
    let project = dev.project().await;
    dev.event("built", 0).await;
    let mut before = "Hello, ".to_owned();
    for number in 0..20 {
        let next = format!("{number}: ");
        work.edit(&before, &next);
        before = next;
        // The first edits come between two builds, the others during a build.
        dev.event("building", usize::from(number > 0)).await;
    }
    wait_for(BUILD_TIMEOUT, "the last edit is served", || async {
        work.greeting(&project).await == "19: Ada!"
    })
    .await;

    let before = dev.all("building").len();
    let source = author.path("dev-quick/src/lib.rs");
    fs::write(&source, fs::read(&source).unwrap()).unwrap();
    for output in ["dev-quick/dist", "dev-quick/target"] {
        fs::create_dir_all(author.path(output)).unwrap();
        fs::write(author.path(output).join("x.rs"), "written by a build").unwrap();
    }
    work.edit("19: ", "Good day, ");
    wait_for(BUILD_TIMEOUT, "the edit is served", || async {
        work.greeting(&project).await == "Good day, Ada!"
    })
    .await;
    wait_for(BUILD_TIMEOUT, "a build of the edit is told", || async {
        dev.all("building").len() > before
    })
    .await;
    let builds = dev.all("building").split_off(before);
    // One build for the edit, and another one if the last quick edit was compiled by a build that
    // had started before it.
    let of_an_edit = json!({ "event": "building", "changed": ["src/lib.rs"] });
    assert!(
        builds.len() <= 2 && builds.iter().all(|build| *build == of_an_edit),
        "{builds:?}"
    );
}

#[tokio::test]
async fn signal_leaves_no_server_and_no_folder() {
    for signal in ["INT", "TERM"] {
        let Work { author, dev, .. } = Work::begin("dev-end");
        let project = dev.project().await;
        assert_eq!(project.try_get_root("/health/ready").await, Some(200));
        assert!(dev.end(signal).await.success());
        assert_eq!(project.try_get_root("/health/ready").await, None);
        let left: Vec<_> = fs::read_dir(author.path("tmp"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        // A running compiler may end later; its files are elsewhere.
        let ours: Vec<_> = left
            .iter()
            .filter(|path| path.join("data").exists())
            .collect();
        assert!(ours.is_empty(), "{ours:?}");
    }
}

#[tokio::test]
async fn dev_publishes_to_a_running_server() {
    let (host, author) = (Host::shared().await, Author::new());
    author.new_toolkit("dev-elsewhere");
    let missing = author.toolkit(&["dev", "dev-elsewhere", "--server", &host.url]);
    assert_ne!(missing.code, Some(0), "{missing:?}");
    assert!(
        missing.stderr.contains("TOOLHOST_ORG_API_KEY"),
        "{missing:?}"
    );

    let flags = [
        "--server",
        &host.url,
        "--org-key",
        &host.org_key,
        "--key",
        &host.project_key,
    ];
    let work = Work {
        dev: author.dev("dev-elsewhere", &flags),
        tool: "DEV_ELSEWHERE_GREET".into(),
        name: "dev-elsewhere",
        author,
    };
    let first = work.dev.event("built", 0).await;
    let project = host.as_project();
    assert_eq!(work.greeting(&project).await, "Hello, Ada!");
    work.edit("Hello, ", "Goodbye, ");
    let second = work.dev.event("built", 1).await;
    assert_eq!(work.greeting(&project).await, "Goodbye, Ada!");
    let body = json!({ "arguments": { "name": "Ada" }, "user_id": "default", "version": first["version"] });
    let before = project
        .post(&format!("/tools/execute/{}", work.tool), &body)
        .await;
    assert_eq!(before.data()["text"], "Hello, Ada!", "{second}");
    wait_until("the calls are shown", || async {
        work.dev.all("call").len() >= 3
    })
    .await;
    assert!(work.dev.end("INT").await.success());
    assert_eq!(project.try_get_root("/health/ready").await, Some(200));
}

#[tokio::test]
async fn an_import_follows_its_overlay() {
    let author = Author::new();
    let description = "openapi: 3.1.0\ninfo: { title: Items }\nservers: [{ url: https://api.example.com }]\n\
                       paths: { /items: { get: { operationId: list, responses: {} } } }\n";
    fs::write(author.path("api.yaml"), description).unwrap();
    let _ = author.json(&["import", "openapi", "api.yaml", "--slug", "dev_import"]);
    let dev = author.dev("dev_import", &[]);
    let project = dev.project().await;
    let overlay = |text: &str| fs::write(author.path("dev_import/overlay.toml"), text).unwrap();
    assert_eq!(
        dev.event("built", 0).await["tools"],
        json!(["DEV_IMPORT_LIST"])
    );
    overlay("[operations.list]\nslug = \"FIND\"\n");
    assert_eq!(
        dev.event("built", 1).await["tools"],
        json!(["DEV_IMPORT_FIND"])
    );
    overlay("operations = 7\n");
    let why = dev.event("failed", 0).await["message"].clone();
    assert!(why.as_str().unwrap().contains("overlay.toml"), "{why}");
    project
        .get("/tools/DEV_IMPORT_FIND?version=latest")
        .await
        .expect(200);
    overlay("[operations.list]\nslug = \"LOOK\"\n");
    assert_eq!(
        dev.event("built", 2).await["tools"],
        json!(["DEV_IMPORT_LOOK"])
    );
    project
        .get("/tools/DEV_IMPORT_LOOK?version=latest")
        .await
        .expect(200);
}

#[tokio::test]
async fn javascript_toolkit_is_rebuilt_on_change() {
    let author = Author::new();
    let new = author.toolkit(&["new", "dev-js", "--lang", "js"]);
    new.succeeded();
    let dev = author.dev("dev-js", &[]);
    dev.event("built", 0).await;
    let work = Work {
        author,
        name: "dev-js",
        tool: "DEV_JS_GREET".into(),
        dev,
    };
    let project = work.dev.project().await;
    assert_eq!(work.greeting(&project).await, "Hello, Ada!");
    work.author.edit("dev-js/tools.js", "Hello, ", "Goodbye, ");
    wait_for(BUILD_TIMEOUT, "the edit is served", || async {
        work.greeting(&project).await == "Goodbye, Ada!"
    })
    .await;
    assert_eq!(
        work.dev.all("building").len(),
        2,
        "the build's own files are no change"
    );
}
