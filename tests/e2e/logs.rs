//! The execution log.

use futures::future::join_all;
use harness::{Host, guest, host::Setup};
use serde_json::{Value, json};

use crate::{damage::files_below, given};

const LOGS_PATH: &str = "/logs/tool_execution";

#[tokio::test]
async fn large_records_take_less_space_than_their_content() {
    const ROUND_COUNT: usize = 4;
    const CALLS_PER_ROUND: usize = 32;
    let host = Setup::embedded().with("logs.wait", "false").start().await;
    let (project, tool) = (host.as_project(), given::echo(&host).await);
    let records = (0..400)
        .map(|id| json!({ "id": id, "name": format!("record {id}"), "done": true }))
        .collect::<Vec<_>>();
    let arguments = json!({ "records": records });
    let run = async || {
        let ran = project.execute(&tool, arguments.clone()).await.expect(200);
        // The list has the record once it is written.
        let listed = project.post(LOGS_PATH, &json!({})).await.expect(200);
        assert!(listed.text.contains(ran["log_id"].as_str().unwrap()));
    };
    let stored_bytes = || -> u64 {
        let files = files_below(&host.data()).into_iter();
        // The server may remove temporary files in the meantime.
        let found = files.filter_map(|file| file.metadata().ok());
        found.map(|file| file.len()).sum()
    };
    run().await;
    let before = stored_bytes();
    for _ in 0..ROUND_COUNT {
        let runs = (0..CALLS_PER_ROUND).map(|_| project.execute(&tool, arguments.clone()));
        for ran in join_all(runs).await {
            ran.expect(200);
        }
    }
    run().await;
    let grown = stored_bytes() - before;
    // Each record has the arguments and the result, which is the same.
    let logged = (2 * ROUND_COUNT * CALLS_PER_ROUND * arguments.to_string().len()) as u64;
    assert!(10 * grown < 6 * logged, "{grown} bytes for {logged}");
}

#[tokio::test]
async fn every_execution_can_be_looked_up() {
    let project = Host::shared().await.new_project().await;
    let tool = given::shared_echo().await;
    let arguments = json!({ "word": "heard" });
    let ran = project.execute(tool, arguments).await.expect(200);
    let detail = project.log(&ran["log_id"]).await;
    assert_eq!(detail["id"], ran["log_id"]);
    assert_eq!(detail["status"], "success");
    for kept in ["heard", tool] {
        assert!(detail.text.contains(kept), "{kept}: {}", detail.text);
    }
    let list = project.post(LOGS_PATH, &json!({})).await.expect(200);
    assert_eq!(list["logs"][0]["id"], ran["log_id"]);
}

#[tokio::test]
async fn failures_and_what_the_guest_wrote_are_kept() {
    let project = Host::shared().await.new_project().await;
    let slug = given::keyed().await;
    project.connect_with_key(slug, "default").await;
    let tool = guest::tool(slug);
    let arguments = json!({ "url": "https://elsewhere.example.org/" });
    let failed = project.execute(&tool, arguments).await.expect(200);
    let detail = project.log(&failed["log_id"]).await;
    assert_eq!(detail["status"], "failed");
    assert_eq!(detail["level"], "error");
    let url = "https://api.example.com/echo/kept";
    let worked = project.execute(&tool, json!({ "url": url })).await;
    let detail = project.log(&worked["log_id"]).await;
    // A line of the guest, and its outgoing request.
    for kept in ["content-type", url] {
        assert!(detail.text.contains(kept), "{kept}: {}", detail.text);
    }
}

#[tokio::test]
async fn log_list_refuses_unknown_filters() {
    let project = Host::shared().await.new_project().await;
    let tool = given::shared_echo().await;
    project.execute(tool, json!({})).await.expect(200);
    let list = async |body: Value| project.post(LOGS_PATH, &body).await;
    let past = json!({ "time_range": { "from": 0, "to": 1000 } });
    assert_eq!(list(past).await.expect(200)["logs"], json!([]));
    let filter = json!({ "field": "status", "operator": "~", "value": "x" });
    list(json!({ "filters": [filter] })).await.expect(400);
}
