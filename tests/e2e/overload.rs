//! Overload: accepted requests complete, the others are refused immediately with an error, and no
//! request hangs.

use std::collections::BTreeMap;

use futures::{StreamExt, future::join_all, stream};
use harness::{Answer, Client, client::Body, host::Setup, wait_until};
use reqwest::Method;
use serde_json::json;
use tokio::sync::Notify;

use crate::{
    budget::{assert_refused, sent_from, sleeper, sleeping, to_the_end, unfinished},
    given,
};

/// Counts the responses by status. Every error response must carry a retry time.
fn counted(answers: &[Answer]) -> BTreeMap<u16, usize> {
    let mut counts = BTreeMap::new();
    for answer in answers {
        let status = match answer.status {
            200..300 => 200,
            status => status,
        };
        *counts.entry(status).or_default() += 1;
        if status != 200 {
            answer.assert_envelope();
            assert!(!answer.header("retry-after").is_empty(), "{answer:#?}");
        }
    }
    counts
}

#[tokio::test]
async fn flood_of_requests_cuts_no_connection() {
    let host = Setup::new()
        .with("limits.in_flight", "16")
        .with("sandbox.live", "4")
        .start()
        .await;
    let sleeps = sleeper(&host, 20).await;
    let slug = sleeps.trim_end_matches("_RUN").to_lowercase();
    let projects = join_all((0..4).map(|_| host.new_project())).await;
    let run = json!({ "arguments": {}, "user_id": "default", "version": "latest" });
    let config = json!({ "type": "use_custom_auth", "authScheme": "NO_AUTH" });
    let write = json!({ "toolkit": { "slug": slug }, "auth_config": config });
    let execute = format!("/tools/execute/{sleeps}");
    let asks = [
        (Method::GET, "/toolkits?limit=5".to_owned(), Body::None),
        (Method::POST, "/auth_configs".to_owned(), Body::Json(write)),
        (Method::POST, execute, Body::Json(run)),
    ];
    // Eight times the concurrency limit.
    let sent = stream::iter(0..900).map(|number: usize| {
        let kind = number % asks.len();
        let project = &projects[number / asks.len() % projects.len()];
        let (method, path, body) = asks[kind].clone();
        async move {
            let answer = project.try_send(method, &path, body, &[]).await;
            (kind, answer.expect("the connection is not cut"))
        }
    });
    let mut answers = [Vec::new(), Vec::new(), Vec::new()];
    for (kind, answer) in sent.buffer_unordered(128).collect::<Vec<_>>().await {
        answers[kind].push(answer);
    }
    let counts = answers.each_ref().map(|answers| counted(answers));
    for counts in &counts {
        assert!(
            counts.keys().all(|status| [200, 429, 503].contains(status)),
            "{counts:?}"
        );
        assert!(counts.get(&200) > Some(&0), "some are done: {counts:?}");
    }
    assert!(counts[2].len() > 1, "some runs are refused: {counts:?}");
    let mut listed = 0;
    for project in &projects {
        let page = project.get("/auth_configs?limit=1000").await.expect(200);
        listed += page["items"].as_array().unwrap().len();
        project.execute(&sleeps, json!({})).await.data();
    }
    assert_eq!(
        listed, counts[1][&200],
        "what was refused was not done, what was answered was"
    );
}

/// Repeats the same small request and returns the statuses of the failed ones.
async fn failed_statuses(project: &Client, rounds: usize) -> Vec<u16> {
    let mut wrong = Vec::new();
    for _ in 0..rounds {
        let answer = project.get("/auth/session/info").await;
        wrong.extend((answer.status != 200).then_some(answer.status));
    }
    wrong
}

#[tokio::test]
async fn slow_requests_time_out_without_blocking_others() {
    let host = Setup::new()
        .with("limits.connections", "16000")
        .with("limits.deadline_s", "5")
        .with("limits.idle_s", "3")
        .start()
        .await;
    let (slow, other) = (host.new_project().await, host.new_project().await);
    let head = "POST /api/v3/auth_configs HTTP/1.1\r\nhost: x\r\nx-filler: ";
    let mut heads = Vec::new();
    let mut bodies = Vec::new();
    for _ in 0..120 {
        heads.push(to_the_end(sent_from(&host, 1, head).await));
        bodies.push(to_the_end(
            unfinished(&host, slow.key(), "/auth_configs").await,
        ));
    }
    let (heads, bodies, wrong) = tokio::join!(
        join_all(heads),
        join_all(bodies),
        failed_statuses(&other, 200)
    );
    assert!(wrong.is_empty(), "other projects: {wrong:?}");
    assert!(
        heads
            .iter()
            .all(|head| head.is_empty() || head.starts_with("HTTP/1.1 408")),
        "{heads:?}"
    );
    let with = |status: &str| {
        bodies
            .iter()
            .filter(|body| body.starts_with(&format!("HTTP/1.1 {status}")))
            .count()
    };
    let (late, refused) = (with("408"), with("429"));
    assert_eq!(late + refused, bodies.len(), "{bodies:?}");
    assert!(
        late >= 64 && refused > 0,
        "{late} bodies were waited for, {refused} were not"
    );
    slow.get("/auth/session/info").await.expect(200);
}

#[tokio::test]
async fn excess_runs_wait_or_are_refused() {
    let host = Setup::new().with("sandbox.live", "8").start().await;
    let (sleeps, echo) = (sleeper(&host, 250_000).await, given::echo(&host).await);
    let (full, other) = (host.new_project().await, host.new_project().await);
    let mut waiting = Vec::new();
    {
        // Half of the slots are left to projects without one.
        let full_was_refused = Notify::new();
        let slot_of_other = async {
            full_was_refused.notified().await;
            sleeping(&other, &sleeps).await
        };
        let slots_of_full = join_all((0..4).map(|_| sleeping(&full, &sleeps)));
        let held = futures::future::join(slots_of_full, slot_of_other);
        tokio::pin!(held);
        let refused = async {
            for (project, status, slug) in [
                (&full, 429, "Server_ProjectBusy"),
                (&other, 503, "Server_Busy"),
            ] {
                // An arbitrary one of several calls waits. The others are refused immediately.
                let mut calls: stream::FuturesUnordered<_> = (0..4)
                    .map(|_| Box::pin(project.execute(&echo, json!({}))))
                    .collect();
                let mut said = 0;
                while said < 3 {
                    let answer = calls.next().await.expect("there are four");
                    if answer.status == 200 {
                        // The slots were not taken yet.
                        calls.push(Box::pin(project.execute(&echo, json!({}))));
                        continue;
                    }
                    assert_refused("every place is taken", &answer, status, slug);
                    said += 1;
                }
                waiting.extend(calls);
                full_was_refused.notify_one();
            }
        };
        tokio::select! {
            ended = &mut held => panic!("all sleep: {ended:#?}"),
            () = refused => {}
        }
    }
    // The runs that held the slots have ended, so the waiting ones continue.
    for answer in join_all(waiting).await {
        answer.data();
    }
    wait_until("every place is free", async || {
        other.execute(&echo, json!({})).await.status == 200
    })
    .await;
}
