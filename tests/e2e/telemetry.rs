//! Traces and metrics at a collector of OpenTelemetry: a trace leads from the caller through the
//! request and the execution to the provider, and discloses nothing.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, Ordering},
};

use harness::{
    Answer, Client, Host, Inbox, Metrics,
    client::Body,
    collector::{self, Span},
    guest,
    host::Setup,
    hunt,
    inbox::Reply,
    secret, unique, wait_until,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::given;

/// Returns settings of a server with metrics and this collector.
fn traced(collector: &Inbox) -> Setup {
    given::with_application()
        .with("metrics.listen", "127.0.0.1:0")
        .with("telemetry.otlp_endpoint", &collector.origin)
}

/// The caller's trace and span, at random.
struct Caller {
    trace: String,
    span: String,
}

impl Caller {
    fn new() -> Self {
        Self {
            trace: unique(16),
            span: unique(8),
        }
    }

    fn traceparent(&self, flags: &str) -> String {
        format!("00-{}-{}-{flags}", self.trace, self.span)
    }

    async fn execute(&self, project: &Client, tool: &str, arguments: Value, flags: &str) -> Answer {
        let body = json!({ "arguments": arguments, "user_id": "default", "version": "latest" });
        let path = format!("/tools/execute/{tool}");
        let traceparent = self.traceparent(flags);
        let headers = [("traceparent", traceparent.as_str())];
        let sent = project.send(Method::POST, &path, Body::Json(body), &headers);
        sent.await.expect(200)
    }
}

/// Starts a server and calls a tool in a trace of the caller.
async fn called(setup: Setup) -> (Host, Caller) {
    let host = setup.start().await;
    let tool = given::echo(&host).await;
    let caller = Caller::new();
    let project = host.as_project();
    caller.execute(&project, &tool, json!({}), "01").await;
    (host, caller)
}

/// Starts a collector that answers the first export in this way, and takes the others.
fn answering_first(reply: Reply) -> Inbox {
    let is_first = AtomicBool::new(true);
    Inbox::with(move |_| match is_first.swap(false, Ordering::Relaxed) {
        true => reply.clone(),
        false => Reply::Status(200),
    })
}

/// Returns the number of spans that the server counted with this result.
async fn span_count(host: &Host, result: &str) -> Option<f64> {
    let metrics = Metrics::scrape(host).await;
    metrics.value("toolhost_spans_total", &[("result", result)])
}

fn kinds(spans: &[Span]) -> Vec<&str> {
    spans.iter().map(|span| span.kind.as_str()).collect()
}

#[tokio::test]
async fn call_exports_spans_of_callers_trace() {
    let collector = Inbox::start();
    let key = secret();
    let host = traced(&collector)
        .with("telemetry.otlp_headers", format!("x-key={key}"))
        .with("log", "info")
        .start()
        .await;
    let (slug, _) = given::fetcher(&host).await;
    let (project, tool) = (host.as_project(), guest::tool(&slug));
    let caller = Caller::new();
    let word = unique(12);
    let url = format!("https://api.example.com/echo/{word}?q={word}");
    let call = json!({ "url": url });
    let answer = caller.execute(&project, &tool, call, "01").await;
    let spans = collector::spans(&collector, &caller.trace, 3).await;
    let expected = ["SPAN_KIND_SERVER", "SPAN_KIND_INTERNAL", "SPAN_KIND_CLIENT"];
    assert_eq!(kinds(&spans), expected, "{spans:#?}");
    let [request, execution, sent] = &spans[..] else {
        panic!("{spans:#?}")
    };
    assert_eq!(request.parent, caller.span);
    assert_eq!(execution.parent, request.id);
    assert_eq!(sent.parent, execution.id);
    for (span, name, attribute, value) in [
        (
            request,
            "POST /api/v3/tools/execute/{tool_slug}",
            "toolhost.request_id",
            json!(answer.header("x-request-id")),
        ),
        (
            request,
            &*request.name,
            "http.response.status_code",
            json!(200),
        ),
        (
            execution,
            &*format!("execute_tool {tool}"),
            "toolhost.log_id",
            answer["log_id"].clone(),
        ),
        (
            execution,
            &*execution.name,
            "toolhost.version",
            json!("20260101_00"),
        ),
        (
            execution,
            &*execution.name,
            "toolhost.outcome",
            json!("success"),
        ),
        (sent, "GET", "server.address", json!("api.example.com")),
        (sent, "GET", "http.response.status_code", json!(200)),
    ] {
        assert_eq!(span.name, name);
        assert_eq!(span.attributes[attribute], value, "{span:#?}");
        assert_eq!((&*span.service, span.failed), ("toolhost", false));
        assert!(
            request.start <= span.start && span.start <= span.end,
            "{spans:#?}"
        );
        assert!(span.end <= request.end, "{spans:#?}");
    }
    let log = project.log(&answer["log_id"]).await;
    assert_eq!(log["metadata"]["trace_id"], caller.trace);
    let output = host.output();
    assert!(output.contains(&caller.trace), "it is in the server's log");
    assert_eq!(Host::application().seen(&word)[0].header("traceparent"), "");
    for export in collector.received() {
        assert_eq!(export.header("x-key"), key);
        assert_eq!(export.header("content-type"), "application/x-protobuf");
        hunt::assert_none("an export", &export.body);
        let text = String::from_utf8_lossy(&export.body);
        assert!(!text.contains(&word), "an export has an argument: {text}");
    }
}

#[tokio::test]
async fn providers_get_traceparent_by_setting() {
    let collector = Inbox::start();
    let setup = traced(&collector).with("telemetry.propagate", "true");
    let host = setup.start().await;
    let (slug, _) = given::fetcher(&host).await;
    let (project, tool) = (host.as_project(), guest::tool(&slug));
    let values = json!({ "api_key": secret() });
    let account = project.connect(&slug, "API_KEY", "other", values).await;
    for flags in ["01", "00"] {
        let caller = Caller::new();
        let tag = unique(8);
        let url = format!("https://api.example.com/echo/{tag}");
        let call = json!({ "url": url });
        caller.execute(&project, &tool, call, flags).await;
        let body = json!({
            "connected_account_id": account, "method": "GET", "endpoint": url,
            "parameters": [{ "name": "traceparent", "value": "of the caller", "type": "header" }],
        });
        let traceparent = caller.traceparent(flags);
        let headers = [("traceparent", traceparent.as_str())];
        let path = "/tools/execute/proxy";
        let proxied = project.send(Method::POST, path, Body::Json(body), &headers);
        proxied.await.expect(200);
        let seen = Host::application().seen(&tag);
        let sent = seen.iter().map(|seen| seen.header("traceparent"));
        let sent: BTreeSet<_> = sent.map(str::to_owned).collect();
        // Each request has a span of its own.
        assert_eq!(sent.len(), 2, "{sent:?}");
        if flags == "00" {
            let begin = format!("00-{}-", caller.trace);
            for sent in sent {
                assert!(sent.starts_with(&begin), "{sent}");
                assert!(sent.ends_with("-00"), "{sent}");
            }
            continue;
        }
        let mut spans = collector::spans(&collector, &caller.trace, 6).await;
        spans.retain(|span| span.kind == "SPAN_KIND_CLIENT");
        let traced = spans
            .iter()
            .map(|span| format!("00-{}-{}-01", span.trace, span.id));
        assert_eq!(traced.collect::<BTreeSet<_>>(), sent);
    }
    let exported = collector.received();
    assert!(exported.iter().all(|export| export.path == "/v1/traces"));
}

#[tokio::test]
async fn refused_spans_are_lost_and_counted() {
    let collector = Inbox::with(|_| Reply::Status(400));
    let (host, _) = called(traced(&collector)).await;
    wait_until("lost spans are counted", || async {
        span_count(&host, "dropped").await >= Some(2.0)
    })
    .await;
    assert_eq!(span_count(&host, "exported").await, Some(0.0));
}

#[tokio::test]
async fn spans_that_a_collector_rejects_are_logged() {
    // ExportTraceServiceResponse: partial_success (1) with rejected_spans (1) and error_message (2).
    let reason = "attributes are too large";
    let mut said = vec![0x08, 1, 0x12, reason.len() as u8];
    said.extend(reason.as_bytes());
    let response = [&[0x0a, said.len() as u8][..], &said].concat();
    let collector = answering_first(Reply::Body(response));
    let (host, _) = called(traced(&collector)).await;
    wait_until("the rejected span is counted", || async {
        span_count(&host, "dropped").await == Some(1.0)
    })
    .await;
    assert!(host.output().contains(reason), "{}", host.output());
}

#[tokio::test]
async fn silent_collector_delays_no_call() {
    let collector = Inbox::with(|_| Reply::Hanging);
    let host = traced(&collector).start().await;
    let tool = given::echo(&host).await;
    let project = host.as_project();
    wait_until("the collector has a request open", || async {
        !collector.received().is_empty()
    })
    .await;
    project.execute(&tool, json!({})).await.data();
    let (_, status) = host.terminate().await;
    assert_eq!(status.code(), Some(0), "it stops without the collector");
}

#[tokio::test]
async fn export_is_repeated_after_transient_failure() {
    let collector = answering_first(Reply::Status(503));
    let (_host, caller) = called(traced(&collector)).await;
    let spans = collector::spans(&collector, &caller.trace, 2).await;
    assert_eq!(kinds(&spans), ["SPAN_KIND_SERVER", "SPAN_KIND_INTERNAL"]);
    let received = collector.received();
    assert_eq!(received[0].body, received[1].body);
}

#[tokio::test]
async fn last_spans_are_exported_at_stop() {
    let collector = Inbox::start();
    let (host, caller) = called(traced(&collector)).await;
    host.terminate().await;
    collector::spans(&collector, &caller.trace, 2).await;
}

#[tokio::test]
async fn exported_metrics_are_those_of_prometheus() {
    let collector = Inbox::start();
    let (host, _) = called(traced(&collector)).await;
    let exported = collector::metrics(&collector).await;
    let scraped = Metrics::scrape(&host).await;
    let of_scrape = scraped.families.iter();
    let of_scrape = of_scrape.map(|own| (&*own.name, &*own.kind, &*own.help));
    let of_export = exported
        .iter()
        .map(|own| (&*own.name, &*own.kind, &*own.help));
    let of_export: BTreeSet<_> = of_export.collect();
    assert_eq!(of_export, of_scrape.collect());
    let points = |name: &str| {
        let mut metrics = exported.iter().filter(|own| own.name == name);
        let metric = metrics.next().unwrap();
        let points = metric.points.iter();
        points.map(|(labels, value)| (labels.clone(), *value))
    };
    let (labels, value) = points("toolhost_build_info").next().unwrap();
    assert!(labels.contains_key("version") && value == 1.0, "{labels:?}");
    let (labels, value) = points("toolhost_store_commit_duration_seconds")
        .next()
        .unwrap();
    assert!(labels.is_empty() && value >= 1.0, "{value}");
}

#[tokio::test]
async fn only_a_share_of_own_traces_is_recorded() {
    let collector = Inbox::start();
    let setup = traced(&collector).with("telemetry.sample_ratio", "0");
    let host = setup.start().await;
    let tool = given::echo(&host).await;
    let project = host.as_project();
    let own = project.execute(&tool, json!({})).await;
    let own = project.log(&own["log_id"]).await;
    let own = own["metadata"]["trace_id"].as_str().unwrap();
    let caller = Caller::new();
    caller.execute(&project, &tool, json!({}), "01").await;
    collector::spans(&collector, &caller.trace, 2).await;
    assert!(collector::spans(&collector, own, 0).await.is_empty());
    let invalid = [("traceparent", "00-0-0-01")];
    let body = Body::Json(json!({ "arguments": {}, "user_id": "default" }));
    let path = format!("/tools/execute/{tool}");
    let answer = project.send(Method::POST, &path, body, &invalid).await;
    answer.expect(200);
}
