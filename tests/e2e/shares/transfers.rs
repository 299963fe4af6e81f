//! Files that are sent or received by links: places, and the memory of those that arrive.

use std::cell::RefCell;

use futures::{StreamExt as _, stream::FuturesUnordered};
use harness::{Client, Host, host::Setup, unique, wait_until};
use serde_json::json;
use tokio::{net::TcpStream, time::timeout};

use super::{HOSTILE_COUNT, PLACE_DEADLINE, hostile_projects};
use crate::{
    budget::{sent_from, to_the_end},
    files::{ask, copier, uploaded, url},
};

/// Asks for the upload of a file, and sends its beginning in one part.
async fn upload(
    host: &Host,
    project: &Client,
    slug: &str,
    sent: usize,
    length: usize,
) -> TcpStream {
    let content = unique(4).repeat(length / 8);
    let asked = ask(project, slug, content.as_bytes(), json!({})).await;
    let asked = asked.expect(200);
    let authority = host.url.trim_start_matches("http://");
    let path = url(&asked).split_once(authority).unwrap().1;
    let request = format!(
        "PUT {path} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n{}",
        &content[..sent]
    );
    sent_from(host, 1, &request).await
}

#[tokio::test]
async fn newcomer_uploads_while_others_hold_all() {
    // One project may have eight places, and the others one each.
    const MOST_UPLOADS: usize = 8;
    const HELD_COUNT: usize = MOST_UPLOADS + HOSTILE_COUNT - 1;
    let host = Setup::new()
        .with("limits.min_rate_kib", "0")
        .with("files.transfer_s", "10")
        .start()
        .await;
    let slug = copier(&host).await;
    let newcomer = host.new_project().await;
    let uploads = FuturesUnordered::new();
    for (position, project) in hostile_projects(&host).await.iter().enumerate() {
        for _ in 0..if position == 0 { MOST_UPLOADS + 1 } else { 2 } {
            uploads.push(to_the_end(upload(&host, project, &slug, 8, 800).await));
        }
    }
    // They wait for half of the time of a transfer.
    let refused = uploads.len() - HELD_COUNT;
    for answer in uploads.take(refused).collect::<Vec<_>>().await {
        assert!(
            [429, 503]
                .into_iter()
                .any(|status| answer.starts_with(&format!("HTTP/1.1 {status}"))),
            "{answer}"
        );
    }
    let placed = timeout(PLACE_DEADLINE, uploaded(&newcomer, &slug, b"a note")).await;
    placed.expect("the newcomer has a place at once");
}

#[tokio::test]
async fn arriving_files_count_toward_shared_memory() {
    const MEMORY_BYTES: usize = 1 << 20;
    let host = Setup::new()
        .with("limits.min_rate_kib", "0")
        .with("sandbox.memory_mib", "1")
        .start()
        .await;
    let slug = copier(&host).await;
    let project = host.as_project();
    let small = async || {
        // It arrives with its head.
        let answer = to_the_end(upload(&host, &project, &slug, 2_000, 2_000).await);
        let answer = answer.await;
        let (_, status) = answer.split_once(' ').unwrap();
        assert!(["200", "429"].contains(&&status[..3]), "{answer}");
        status[..3].to_owned()
    };
    assert_eq!(small().await, "200");
    // A large one is refused if a small one arrives with its last bytes; another follows then.
    let large = RefCell::new(Vec::new());
    wait_until("the memory is full", async || {
        let sent = upload(&host, &project, &slug, MEMORY_BYTES - 1_000, MEMORY_BYTES).await;
        large.borrow_mut().push(sent);
        small().await == "429"
    })
    .await;
    drop(large);
    wait_until("the memory is free", async || small().await == "200").await;
}
