//! `toolkit dev`: from an edit to another answer, on the real API.

use std::fs;

use harness::{Author, Client, wait_until};
use serde_json::json;

const SOURCE: &str = "hello-there/src/lib.rs";
const TOOL: &str = "HELLO_THERE_GREET";

fn author() -> Author {
    let author = Author::new();
    author.new_toolkit("hello-there");
    author
}

async fn greeting(project: &Client) -> String {
    let data = project.execute(TOOL, json!({ "name": "Ada" })).await.data();
    data["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_edit_changes_the_answer_and_a_broken_source_does_not() {
    let author = author();
    let dev = author.dev("hello-there");
    let project = dev.project().await;
    let built = dev.event("built", 0).await;
    assert_eq!((&built["slug"], &built["tools"]), (&json!("hello_there"), &json!([TOOL])));
    assert!(built["try"].as_str().unwrap().contains(project.key()), "the line to paste works as it is: {built}");
    assert_eq!(greeting(&project).await, "Hello, Ada!");
    let call = dev.event("call", 0).await["call"].clone();
    assert_eq!((&call["metadata"]["tool_slug"], &call["status"]), (&json!(TOOL), &json!("success")));
    assert!(call["metrics"]["wall_us"].as_u64().unwrap() > 0, "{call}");

    author.edit(SOURCE, "Hello, ", "Goodbye, ");
    let next = dev.event("built", 1).await;
    assert!(next["version"].as_str() > built["version"].as_str(), "{next} after {built}");
    assert_eq!(greeting(&project).await, "Goodbye, Ada!");

    author.edit(SOURCE, "fn greet", "fn fn greet");
    dev.event("failed", 0).await;
    assert!(dev.errors().contains("expected identifier, found keyword `fn`"), "{}", dev.errors());
    assert_eq!(greeting(&project).await, "Goodbye, Ada!");

    author.edit(SOURCE, "fn fn greet", "fn greet");
    let same = dev.event("built", 2).await;
    assert_eq!((&same["new"], &same["version"]), (&json!(false), &next["version"]));
    let failed = project.execute(TOOL, json!({ "name": "" })).await.expect(200);
    assert_eq!(failed.failure(), "invalid_input");
    wait_until("the failed call is shown", || async {
        dev.all("call").iter().any(|event| event["call"]["data"]["response"]["error"] == failed["error"])
    })
    .await;
}

#[tokio::test]
async fn the_last_of_many_quick_edits_is_served_and_nothing_is_built_without_a_change() {
    let author = author();
    let dev = author.dev("hello-there");
    let project = dev.project().await;
    dev.event("built", 0).await;
    for number in 0..20 {
        author.edit(
            SOURCE,
            &if number == 0 { "Hello, ".to_owned() } else { format!("{}: ", number - 1) },
            &format!("{number}: "),
        );
        // Some of them while a build runs, some between two.
        tokio::task::yield_now().await;
        dev.event("building", usize::from(number > 0)).await;
    }
    wait_until("the last edit is served", || async { greeting(&project).await == "19: Ada!" }).await;
    assert_eq!(dev.all("failed"), Vec::<serde_json::Value>::new());

    let before = dev.all("building").len();
    let source = author.path(SOURCE);
    fs::write(&source, fs::read(&source).unwrap()).unwrap();
    for output in ["hello-there/dist", "hello-there/target"] {
        fs::create_dir_all(author.path(output)).unwrap();
        fs::write(author.path(output).join("x.rs"), "written by a build").unwrap();
    }
    author.edit(SOURCE, "19: ", "Good day, ");
    wait_until("the edit is served", || async { greeting(&project).await == "Good day, Ada!" }).await;
    let builds = dev.all("building").split_off(before);
    assert_eq!(builds, [json!({ "event": "building", "changed": ["src/lib.rs"] })]);
}

#[tokio::test]
async fn an_end_by_signal_leaves_no_server_and_no_folder() {
    let author = author();
    for signal in ["INT", "TERM"] {
        let dev = author.dev("hello-there");
        let project = dev.project().await;
        assert_eq!(project.try_get_root("/health/ready").await, Some(200));
        assert!(dev.end(signal).await.success());
        assert_eq!(project.try_get_root("/health/ready").await, None);
        let left: Vec<_> = fs::read_dir(author.path("tmp")).unwrap().map(|entry| entry.unwrap().path()).collect();
        // The compiler that was started may still end; what it makes lies elsewhere.
        let ours: Vec<_> = left.iter().filter(|path| path.join("data").exists()).collect();
        assert!(ours.is_empty(), "{ours:?}");
    }
}
