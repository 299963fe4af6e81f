//! The pages of other languages: the toolkit that each of them shows builds and passes its cases,
//! and so does the toolkit of the template, with which each page starts.

use std::{fs, path::Path};

use harness::manual::{Shell, Step, steps};
use serde_json::{Value, json};

use super::{left, page, variables};

/// Returns the cases that complete those of the pages, by path.
fn further_cases() -> Vec<(&'static str, Value)> {
    let item = json!({ "id": 2, "name": "two" });
    let list = |response: Value| {
        let request = json!({ "method": "GET", "url": "https://api.example.com/v1/items" });
        json!([{ "request": request, "response": response }])
    };
    let attach = |text: &str, more: Value| {
        let file = json!({ "name": "a.txt", "mimetype": "text/plain" });
        let with = |name: &str, value: &str| {
            let mut file = file.clone();
            file[name] = value.into();
            file
        };
        let mut stored = with("id", "f1");
        stored["text"] = text.into();
        let mut case = json!({
            "arguments": { "id": 7, "file": with("s3key", "f1") }, "files": [stored],
        });
        for (key, value) in more.as_object().unwrap() {
            case[key] = value.clone();
        }
        case
    };
    let webhook = |token: &str, outcome: Value| {
        let mut case = json!({
            "arguments": { "token": "right" },
            "request": { "headers": { "x-token": token }, "body": { "delivery": "d-1", "item": item } },
        });
        case.as_object_mut()
            .unwrap()
            .extend(outcome.as_object().unwrap().clone());
        case
    };
    let sent = json!([{
        "request": { "method": "POST", "url": "https://api.example.com/v1/items/7/files", "body": "hello" },
        "response": { "status": 204 },
    }]);
    let missing = json!([{
        "request": { "method": "GET", "url": "https://api.example.com/v1/items/8" },
        "response": { "status": 404, "body": { "message": "no such item" } },
    }]);
    let problem = json!({ "headers": { "content-type": "application/json" }, "body": { "problem": "overload" } });
    let file = json!({ "name": "items.txt", "mimetype": "text/plain", "s3url": "file_1" });
    let event = json!({ "events": [{ "id": "d-1", "payload": item }], "status": 200, "body": "" });
    vec![
        (
            "get_item/missing",
            json!({ "arguments": { "id": 8 }, "exchanges": missing, "error": { "kind": "not_found", "message": "no such item" } }),
        ),
        (
            "attach_file/sent",
            attach(
                "hello",
                json!({ "exchanges": sent, "data": { "bytes": 5 } }),
            ),
        ),
        (
            "attach_file/empty",
            attach(
                "",
                json!({ "error": { "kind": "invalid_input", "message": "is empty" } }),
            ),
        ),
        (
            "export_items/one",
            json!({ "arguments": {}, "exchanges": list(json!({ "body": { "items": [item] } })), "data": { "file": file } }),
        ),
        (
            "export_items/problem",
            json!({ "arguments": {}, "exchanges": list(problem), "error": { "kind": "upstream_error", "message": "Example responded: overload" } }),
        ),
        (
            "new_item/first",
            json!({ "arguments": {}, "exchanges": list(json!({ "body": { "items": [item] } })),
                    "data": { "events": [], "cursor": 2, "more": false } }),
        ),
        (
            "new_item/timeout",
            json!({ "arguments": {}, "exchanges": list(json!({ "error": "timeout" })), "error": { "kind": "upstream_unavailable" } }),
        ),
        (
            "item_changed/right",
            webhook("right", json!({ "data": event })),
        ),
        (
            "item_changed/wrong",
            webhook("wrong", json!({ "error": { "kind": "unauthorized" } })),
        ),
    ]
}

/// A language of toolkits.
struct Language {
    page: &'static str,
    /// Source file of the template.
    source: &'static str,
    /// Part of the source, and the mistake that replaces it.
    mistake: [&'static str; 2],
    /// Part of the error that names the mistake.
    complaint: &'static str,
}

impl Language {
    /// Checks the toolkit that the quickstart has created and built, and breaks its source. The shell
    /// is in the toolkit's folder.
    async fn template_works(&self, shell: &mut Shell, folder: &Path) {
        let component = "dist/example.wasm";
        let inspect = format!("toolkit inspect {component} --json >dist/inspected.json");
        shell.run(&inspect).await;
        let inspected = fs::read(folder.join("dist/inspected.json")).unwrap();
        let inspected: Value = serde_json::from_slice(&inspected).unwrap();
        assert_eq!(inspected["problems"], json!([]));
        let tool = &inspected["manifest"]["tools"][0];
        assert_eq!(tool["name"], "Greet");
        assert_eq!(tool["hints"]["read_only"], true);
        let argument = &tool["input"]["properties"]["name"];
        assert_eq!(argument["description"], "Name of the person to greet.");
        let logo = inspected["manifest"]["logo"].as_str().unwrap();
        assert!(logo.starts_with("<svg"), "{logo}");

        let call = format!("! toolkit run {component} greet --arg name=");
        let failed = shell.run(&call).await;
        assert!(
            failed.contains("invalid_input: `name` is empty"),
            "{failed}"
        );

        let source = folder.join(self.source);
        let text = fs::read_to_string(&source).unwrap();
        let [right, wrong] = self.mistake;
        assert!(text.contains(right), "{text}");
        fs::write(&source, text.replace(right, wrong)).unwrap();
        let refused = shell.run("! toolkit build").await;
        assert!(refused.contains(self.complaint), "{refused}");
        fs::write(&source, text).unwrap();
    }
}

async fn page_works(language: Language) {
    let name = language.page;
    let folder = tempfile::tempdir().unwrap();
    let known = variables("https://api.example.com=http://127.0.0.1:1");
    let mut shell = Shell::open(folder.path(), &known);
    let steps = steps(&page(name));
    assert_eq!(left(&steps), [""; 0]);
    let [Step::Type(quickstart), files @ .., Step::Type(check)] = steps.as_slice() else {
        panic!("the page begins with a quickstart and ends with a check: {steps:?}");
    };
    let said = shell.run(quickstart).await;
    assert!(
        said.contains("4 of 4 cases") && said.contains("Hello, Ada!"),
        "{said}"
    );
    let toolkit = folder.path().join("example");
    language.template_works(&mut shell, &toolkit).await;
    shell.run("rm -r cases").await;
    for file in files {
        assert!(
            matches!(file, Step::Write(..)),
            "this block is new: {file:?}"
        );
        shell.follow(file).await;
    }
    for (case, content) in further_cases() {
        write(
            &folder.path().join(format!("example/cases/{case}.json")),
            &content,
        );
    }
    let said = shell.run(check).await;
    assert!(said.contains("11 of 11 cases"), "{said}");
}

fn write(file: &Path, content: &Value) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, content.to_string()).unwrap();
}

#[tokio::test]
async fn javascript_page_works() {
    page_works(Language {
        page: "docs/javascript.md",
        source: "tools.js",
        mistake: ["readOnly: true", "readonly: true"],
        complaint: "`readonly` is unknown to a tool",
    })
    .await;
}

#[tokio::test]
async fn python_page_works() {
    page_works(Language {
        page: "docs/python.md",
        source: "tools.py",
        mistake: [") -> Greeting:", "):"],
        complaint: "`greet` says what it answers",
    })
    .await;
}
