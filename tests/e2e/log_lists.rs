//! Lists of the execution log: filters, pages during further runs, and the deprecated names that
//! older clients use.

use harness::{Client, Dice, Host, guest};
use serde_json::{Value, json};

use crate::given;

const LOGS_PATH: &str = "/logs/tool_execution";
const USER_IDS: [&str; 3] = ["amy", "bob", "Amy-2"];

/// A run in the model of the test.
#[derive(Debug, Clone)]
struct Run {
    id: String,
    tool: String,
    user: &'static str,
    status: &'static str,
    request: String,
}

/// Runs tools, and returns them oldest first.
async fn several(project: &Client, dice: &mut Dice, count: usize) -> Vec<Run> {
    let mut runs = Vec::new();
    for _ in 0..count {
        runs.push(run(project, dice).await);
    }
    runs
}

/// Runs one of two tools for one of three users. The second tool fails.
async fn run(project: &Client, dice: &mut Dice) -> Run {
    let user = USER_IDS[dice.below(3) as usize];
    let fails = dice.below(3) == 0;
    let tool = if fails {
        guest::tool(given::keyed().await)
    } else {
        given::shared_echo().await.to_owned()
    };
    let request = format!("req-{}", harness::unique(4));
    let body = json!({ "arguments": { "url": "https://elsewhere.example.org/" }, "user_id": user, "version": "latest" });
    let path = format!("/tools/execute/{tool}");
    let body = harness::client::Body::Json(body);
    let headers = [("x-request-id", &*request)];
    let answer = project.send(reqwest::Method::POST, &path, body, &headers);
    let answer = answer.await.expect(200);
    let status = if fails { "failed" } else { "success" };
    assert_eq!(answer["successful"], !fails, "{answer:#?}");
    Run {
        id: answer["log_id"].as_str().unwrap().to_owned(),
        tool,
        user,
        status,
        request,
    }
}

async fn project() -> Client {
    let project = Host::shared().await.new_project().await;
    for user in USER_IDS {
        project.connect_with_key(given::keyed().await, user).await;
    }
    project
}

impl Run {
    fn field(&self, name: &str) -> &str {
        match name {
            "tool_slug" => &self.tool,
            "user_id" => self.user,
            "status" => self.status,
            "request_id" => &self.request,
            _ => &self.id,
        }
    }

    fn fits(&self, field: &str, operator: &str, value: &str) -> bool {
        let own = self.field(field);
        match operator {
            "==" => own == value,
            "!=" => own != value,
            "contains" => own.contains(value),
            _ => !own.contains(value),
        }
    }
}

/// Returns a random condition with a value taken from one of the runs.
fn condition(dice: &mut Dice, runs: &[Run]) -> (&'static str, &'static str, String) {
    let field = ["tool_slug", "user_id", "status", "request_id", "log_id"][dice.below(5) as usize];
    let operator = ["==", "!=", "contains", "not_contains"][dice.below(4) as usize];
    let value = runs[dice.below(runs.len() as u64) as usize]
        .field(field)
        .to_owned();
    let part = operator.ends_with("contains") && dice.below(2) == 0;
    let value = if part {
        value[1..value.len() - 1].to_owned()
    } else {
        value
    };
    (field, operator, value)
}

/// Returns the ids of the records of a page.
fn ids(records: &Value) -> Vec<&str> {
    let records = records.as_array().unwrap().iter();
    records.map(|log| log["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn log_lists_match_a_plain_filter() {
    let (project, seed) = (project().await, Dice::seed());
    println!("seed {seed}");
    let mut dice = Dice::new(seed);
    let mut runs = several(&project, &mut dice, 24).await;
    for _ in 0..40 {
        let conditions: Vec<_> = (0..dice.below(3))
            .map(|_| condition(&mut dice, &runs))
            .collect();
        let expected: Vec<_> = runs
            .iter()
            .rev()
            .filter(|run| {
                conditions
                    .iter()
                    .all(|(field, operator, value)| run.fits(field, operator, value))
            })
            .map(|run| run.id.clone())
            .collect();
        let filters: Vec<_> = conditions
            .iter()
            .map(|(field, operator, value)| json!({ "field": field, "operator": operator, "value": value }))
            .collect();
        let mut body = json!({ "filters": filters, "limit": 1 + dice.below(9) });
        let mut told = Vec::new();
        let mut later = Vec::new();
        loop {
            let page = project.post(LOGS_PATH, &body).await.expect(200);
            told.extend(ids(&page["logs"]).into_iter().map(str::to_owned));
            if page["next_cursor"].is_null() {
                break;
            }
            body["cursor"] = page["next_cursor"].clone();
            if dice.below(4) == 0 {
                later.push(run(&project, &mut dice).await);
            }
        }
        assert_eq!(told, expected, "{body}");
        runs.extend(later);
    }
}

#[tokio::test]
async fn legacy_page_cursor_is_accepted() {
    let project = project().await;
    let runs = several(&project, &mut Dice::new(1), 3).await;
    let second = json!({ "cursor": "Mi0y" });
    let second = project.post(LOGS_PATH, &second).await.expect(200);
    assert_eq!(ids(&second["logs"]), [&*runs[0].id]);
}

#[tokio::test]
async fn record_names_component_and_its_requests() {
    let host = Host::shared().await;
    let (project, slug) = (project().await, given::keyed().await);
    let url = "https://api.example.com/echo/recorded";
    let body = json!({ "arguments": { "url": url }, "user_id": "amy", "version": "latest" });
    let execute = format!("/tools/execute/{}", guest::tool(slug));
    let ran = project.post(&execute, &body).await.expect(200);
    let detail = project.log(&ran["log_id"]).await;
    let version = format!("/toolkits/{slug}/versions/20260101_00");
    let version = host.as_org().get(&version).await.expect(200);
    let metadata = &detail["metadata"];
    assert_eq!(metadata["component"], version["digest"]);
    assert_eq!(metadata["version"], version["version"]);
    let request = &detail["data"]["requests"][0];
    assert_eq!(request["method"], "GET");
    assert_eq!(request["url"], url);
    assert_eq!(request["status"], 200);
    for number in ["elapsed_ms", "sent", "received"] {
        assert!(request[number].is_u64(), "{number}: {request}");
    }
    assert!(request["received"].as_u64() > Some(0), "{request}");
    for number in ["cpu_us", "wall_us", "peak_memory_bytes", "host_calls"] {
        assert!(
            detail["metrics"][number].as_u64() > Some(0),
            "{number}: {detail:#?}"
        );
    }
    assert!(
        !detail.text.contains(harness::SECRET_MARK),
        "the credential is not kept"
    );
}

#[tokio::test]
async fn oversized_payloads_are_omitted_from_records() {
    let project = Host::shared().await.new_project().await;
    let tool = given::shared_echo().await;
    let arguments = json!({ "filler": "x".repeat(65 << 10) });
    let ran = project.execute(tool, arguments).await.expect(200);
    let detail = project.log(&ran["log_id"]).await;
    for kept in [
        &detail["data"]["arguments"],
        &detail["data"]["response"]["data"],
    ] {
        assert_eq!(kept["omitted"], true, "{kept}");
        assert!(kept["bytes"].as_u64() > Some(65 << 10), "{kept}");
    }
}

#[tokio::test]
async fn deprecated_log_paths_return_the_same_records() {
    let project = project().await;
    let runs = several(&project, &mut Dice::new(3), 5).await;
    let asked = async |body: Value| {
        let path = "/internal/action_execution/logs";
        project.post(path, &body).await
    };
    let newest_first: Vec<_> = runs.iter().rev().map(|run| &*run.id).collect();
    let first = asked(json!({ "limit": 3 })).await.expect(200);
    assert_eq!(ids(&first["data"]), newest_first[..3]);
    let second = json!({ "limit": 3, "cursor": first["nextCursor"] });
    let second = asked(second).await.expect(200);
    assert_eq!(ids(&second["data"]), newest_first[3..]);
    assert_eq!(second["nextCursor"], Value::Null);
    let lower = runs[0].tool.to_lowercase();
    let search = json!([{ "field": "actionKey", "operation": "==", "value": lower }]);
    let insensitive = json!({ "case_sensitive": false });
    for (mut body, is_found) in [(json!({}), false), (insensitive, true)] {
        body["search_params"] = search.clone();
        let found = asked(body).await.expect(200);
        let found = ids(&found["data"]).contains(&&*runs[0].id);
        assert_eq!(found, is_found);
    }
    asked(json!({ "cursor": -1 })).await.expect(400);
    let fields = project.get("/internal/action_execution/fields").await;
    let fields = fields.expect(200);
    assert_eq!(fields["fields"]["action_execution"][0]["id"], "actionKey");
    let one = format!("/internal/action_execution/log/{}", runs[0].id);
    let one = project.get(&one).await.expect(200);
    assert_eq!(one["actionId"], runs[0].tool);
    assert_eq!(one["connection"]["entity"], runs[0].user);
    assert_eq!(
        one["payloadReceived"],
        json!({ "url": "https://elsewhere.example.org/" })
    );
    for answer in [&first, &fields, &one] {
        let date = answer.header("deprecation").strip_prefix('@').unwrap();
        assert!(date.parse::<u64>().is_ok(), "RFC 9651: {answer:#?}");
        assert!(answer.header("sunset").ends_with(" GMT"), "{answer:#?}");
        let successor = "/logs/tool_execution>; rel=\"successor-version\"";
        assert!(answer.header("link").contains(successor), "{answer:#?}");
    }
    let newer = project.post(LOGS_PATH, &json!({})).await.expect(200);
    assert_eq!(newer.header("deprecation"), "");
}
