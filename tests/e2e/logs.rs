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
    let ran = project
        .execute(tool, json!({ "word": "heard" }))
        .await
        .expect(200);
    let detail = project
        .get(&format!("{LOGS_PATH}/{}", ran["log_id"].as_str().unwrap()))
        .await
        .expect(200);
    assert_eq!(
        (&detail["id"], &detail["status"]),
        (&ran["log_id"], &"success".into())
    );
    assert!(
        detail.text.contains("heard"),
        "arguments and result are kept: {}",
        detail.text
    );
    assert!(detail.text.contains(tool), "{}", detail.text);
    let list = project.post(LOGS_PATH, &json!({})).await.expect(200);
    assert_eq!(list["logs"][0]["id"], ran["log_id"]);
}

#[tokio::test]
async fn failures_and_what_the_guest_wrote_are_kept() {
    let project = Host::shared().await.new_project().await;
    let slug = given::keyed().await;
    project.connect_with_key(slug, "default").await;
    let tool = guest::tool(slug);
    let failed = project
        .execute(&tool, json!({ "url": "https://elsewhere.example.org/" }))
        .await
        .expect(200);
    let detail = project
        .get(&format!(
            "{LOGS_PATH}/{}",
            failed["log_id"].as_str().unwrap()
        ))
        .await
        .expect(200);
    assert_eq!(
        (&detail["status"], &detail["level"]),
        (&"failed".into(), &"error".into())
    );
    let url = "https://api.example.com/echo/kept";
    let worked = project
        .execute(&tool, json!({ "url": url }))
        .await
        .expect(200);
    let detail = project
        .get(&format!(
            "{LOGS_PATH}/{}",
            worked["log_id"].as_str().unwrap()
        ))
        .await
        .expect(200);
    assert!(
        detail.text.contains("content-type"),
        "the guest's lines are kept: {}",
        detail.text
    );
    assert!(
        detail.text.contains(url),
        "the outgoing request is kept: {}",
        detail.text
    );
}

#[tokio::test]
async fn log_list_filters_and_pages() {
    let project = Host::shared().await.new_project().await;
    let tool = given::shared_echo().await;
    for _ in 0..3 {
        project.execute(tool, json!({})).await.expect(200);
    }
    let count = |body: Value| {
        let project = project.clone();
        async move {
            project.post(LOGS_PATH, &body).await.expect(200)["logs"]
                .as_array()
                .unwrap()
                .len()
        }
    };
    let filter = |field: &str, operator: &str, value: &str| json!({ "filters": [{ "field": field, "operator": operator, "value": value }] });
    assert_eq!(count(filter("tool_slug", "==", tool)).await, 3);
    assert_eq!(count(filter("tool_slug", "!=", tool)).await, 0);
    assert_eq!(count(filter("status", "==", "failed")).await, 0);
    assert_eq!(count(filter("user_id", "contains", "defa")).await, 3);
    assert_eq!(
        count(json!({ "time_range": { "from": 0, "to": 1000 } })).await,
        0
    );
    let first = project
        .post(LOGS_PATH, &json!({ "limit": 2 }))
        .await
        .expect(200);
    assert_eq!(first["logs"].as_array().unwrap().len(), 2);
    let second = project
        .post(LOGS_PATH, &json!({ "cursor": first["next_cursor"] }))
        .await
        .expect(200);
    assert_eq!(
        (
            second["logs"].as_array().unwrap().len(),
            &second["next_cursor"]
        ),
        (1, &Value::Null)
    );
    project
        .post(LOGS_PATH, &filter("shoe_size", "==", "44"))
        .await
        .expect(400);
    project
        .post(LOGS_PATH, &filter("status", "~", "x"))
        .await
        .expect(400);
}

#[tokio::test]
async fn project_can_disable_payload_storage() {
    let host = Host::shared().await;
    let settings = json!({ "log_visibility_setting": "dont_store_data" });
    let (_, project) = given::project(host, settings).await;
    let ran = project
        .execute(given::shared_echo().await, json!({ "word": "unheard" }))
        .await
        .expect(200);
    let detail = project
        .get(&format!("{LOGS_PATH}/{}", ran["log_id"].as_str().unwrap()))
        .await
        .expect(200);
    assert!(!detail.text.contains("unheard"), "{}", detail.text);
}
