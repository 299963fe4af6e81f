//! Operations for a vendor's console, billing and command line: the server does what the page about
//! them says.

use std::{collections::BTreeSet, path::Path};

use harness::{Host, client::Body, manual::rows};
use reqwest::Method;

use crate::description::CLIENT_OPERATIONS;

/// Returns method, path and documented state of each operation on the page.
fn told() -> Vec<(String, String, String)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/api.md");
    rows(&page)
        .into_iter()
        .map(|row| {
            let (method, path) = row[0].trim_matches('`').split_once(' ').unwrap();
            (method.to_owned(), path.to_owned(), row[1].clone())
        })
        .collect()
}

#[test]
fn documented_operations_match_the_routes() {
    let told = told();
    assert!(told.len() > 30, "{told:?}");
    for (method, path, state) in told {
        let served = CLIENT_OPERATIONS
            .iter()
            .any(|operation| operation.method == method && operation.path == path);
        let missing = state.starts_with("501") || state == "not yet";
        assert_eq!(served, !missing, "{method} {path}: {state}");
    }
}

#[tokio::test]
async fn unsupported_operations_answer_501_with_a_hint() {
    let client = Host::shared().await.anonymous();
    for (method, path, state) in told() {
        let path = path
            .replace("{slug}", "x")
            .replace("{session_config_id}", "x")
            .replace("{id}", "x");
        let send = |client: harness::Client| {
            let (method, path) = (Method::from_bytes(method.as_bytes()).unwrap(), path.clone());
            async move { client.send(method, &path, Body::None, &[]).await }
        };
        for answer in [
            send(client.clone()).await,
            send(client.clone().with_newer_prefix()).await,
        ] {
            assert_eq!(
                answer.status == 501,
                state.starts_with("501"),
                "{method} {path}: {answer:#?}"
            );
            assert!(
                answer.status != 404 || state == "not yet",
                "{method} {path}: {answer:#?}"
            );
            answer.assert_envelope();
        }
    }
}

#[test]
fn every_501_operation_is_documented() {
    let source = include_str!("../../host/api/src/compat/not_offered.rs");
    let entries = source.split("NotOffered { method: MethodFilter::").skip(1);
    let served: BTreeSet<_> = entries
        .map(|entry| {
            let (method, rest) = entry.split_once(", path: \"").unwrap();
            format!("{method} {}", rest.split_once('"').unwrap().0)
        })
        .collect();
    let told = told()
        .into_iter()
        .filter(|(.., state)| state.starts_with("501"));
    let told: BTreeSet<_> = told
        .map(|(method, path, _)| format!("{method} {path}"))
        .collect();
    assert!(
        served.len() > 10,
        "the table was not understood: {served:?}"
    );
    assert_eq!(
        told, served,
        "told on the page, then answered by the server"
    );
}
