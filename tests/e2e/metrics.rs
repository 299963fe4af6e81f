//! Metrics: each is documented, counts what it says, and names no user and no record.

use std::collections::BTreeSet;

use harness::{Host, Metrics, host::Setup};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{given, settings::page};

/// Route of executions by the prefix of the harness's clients.
const EXECUTE_ROUTE: &str = "/api/v3/tools/execute/{tool_slug}";

async fn measured() -> Host {
    let setup = Setup::new().with("metrics.listen", "127.0.0.1:0");
    setup.start().await
}

/// Returns the names and types in the table of the manual.
fn documented() -> BTreeSet<(String, String)> {
    let page = page("docs/operator.md");
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split('|');
        let name = cells.next()?.trim().trim_end_matches('`');
        let kind = cells.next()?.trim();
        let is_metric = ["counter", "gauge", "histogram"].contains(&kind);
        is_metric.then(|| (name.to_owned(), kind.to_owned()))
    });
    rows.collect()
}

#[tokio::test]
async fn documented_and_scraped_metrics_are_the_same() {
    let host = measured().await;
    let scraped = Metrics::scrape(&host).await;
    let names: BTreeSet<_> = scraped
        .families
        .iter()
        .map(|family| (family.name.clone(), family.kind.clone()))
        .collect();
    assert_eq!(names, documented());
    assert_eq!(names.len(), scraped.families.len(), "a name is used twice");
    for family in &scraped.families {
        assert!(!family.help.is_empty(), "{} has no help", family.name);
    }
}

#[tokio::test]
async fn requests_and_executions_are_counted() {
    let host = measured().await;
    let tool = given::echo(&host).await;
    let toolkit = given::toolkit_of(&tool);
    let project = host.as_project();
    for word in ["a", "b"] {
        project.execute(&tool, json!({ "word": word })).await.data();
    }
    project.execute("NO_SUCH_TOOL", json!({})).await.expect(404);
    assert_eq!(project.try_get_root("/no/such/page").await, Some(404));
    let metrics = Metrics::scrape(&host).await;
    let requests = |route, status| {
        let method = if route == EXECUTE_ROUTE {
            "POST"
        } else {
            "GET"
        };
        let labels = [("method", method), ("route", route), ("status", status)];
        metrics.value("toolhost_http_requests_total", &labels)
    };
    assert_eq!(requests(EXECUTE_ROUTE, "2xx"), Some(2.0));
    assert_eq!(requests(EXECUTE_ROUTE, "4xx"), Some(1.0));
    assert_eq!(requests("(none)", "4xx"), Some(1.0));
    let executed = |outcome| {
        let labels = [("toolkit", toolkit.as_str()), ("outcome", outcome)];
        metrics.value("toolhost_executions_total", &labels)
    };
    assert_eq!(executed("success"), Some(2.0));
    assert_eq!(executed("failed"), Some(0.0));
    let all = [("toolkit", toolkit.as_str()), ("le", "+Inf")];
    let durations = "toolhost_execution_duration_seconds_bucket";
    assert_eq!(metrics.value(durations, &all), Some(2.0));
    for (name, labels) in [
        ("toolhost_ready", &[][..]),
        ("toolhost_store_commits_total", &[("result", "committed")]),
        ("toolhost_sandbox_components", &[]),
        ("process_resident_memory_bytes", &[]),
    ] {
        let value = metrics.value(name, labels);
        assert!(value.is_some_and(|value| value >= 1.0), "{name}: {value:?}");
    }
    let deliveries = [("queue", "webhook_deliveries")];
    assert_eq!(metrics.value("toolhost_queue_due", &deliveries), Some(0.0));
    assert_eq!(
        metrics.value("toolhost_queue_age_seconds", &deliveries),
        Some(0.0)
    );
}

#[tokio::test]
async fn labels_name_no_id_and_no_path() {
    let host = measured().await;
    let tool = given::echo(&host).await;
    let project = host.as_project();
    let own = project.project_id().await;
    let ran = project.execute(&tool, json!({})).await;
    let log = ran["log_id"].as_str().unwrap();
    let ids = [&*tool, log, &own, "lk_unknown"];
    project.log(&ran["log_id"]).await;
    project.try_get_root("/link/lk_unknown").await;
    let metrics = Metrics::scrape(&host).await;
    let values = metrics.families.iter().flat_map(|family| &family.samples);
    for value in values.flat_map(|sample| sample.1.values()) {
        let named = ids.iter().find(|id| value.contains(**id));
        assert!(named.is_none(), "{value} names {named:?}");
    }
}

#[tokio::test]
async fn each_listener_serves_its_own_paths() {
    let host = measured().await;
    let metrics = Metrics::url(&host).await;
    assert_eq!(host.as_project().try_get_root("/metrics").await, Some(404));
    let api = metrics.replace("/metrics", "/api/v3/toolkits");
    let client = host.anonymous();
    for url in [api, format!("{metrics}/more")] {
        let answer = client.exchange(Method::GET, &url, &[], Vec::new()).await;
        assert_eq!(answer.status, 404, "{url}");
    }
}

#[test]
fn dashboard_shows_documented_metrics() {
    let text = page("docs/grafana-dashboard.json");
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let documented: BTreeSet<_> = documented().into_iter().map(|(name, _)| name).collect();
    let mut shown = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let query = target["expr"].as_str().unwrap();
            let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let names = words.filter(|word| word.starts_with("toolhost_"));
            shown.extend(names.map(|name| name.trim_end_matches("_bucket").to_owned()));
        }
    }
    assert!(shown.len() > 10, "{shown:?}");
    let unknown: Vec<_> = shown.difference(&documented).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
