//! Capacity that projects share: while eight projects hold all that they may, one more is served.

mod due_work;
mod transfers;

use std::time::Duration;

use harness::{Client, Host, host::Setup, wait_until};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::timeout,
};

use crate::{
    bash_tool,
    budget::{sleeper, sleeping},
    event_stream::STREAM_PATH,
    given,
    tool_router_sessions::{create, execute_meta},
    workbench::with_interpreter,
};

const HOSTILE_COUNT: usize = 8;
/// Time within which a newcomer is served. What the others hold lasts longer.
const PLACE_DEADLINE: Duration = Duration::from_secs(4);
const SESSION_INFO_PATH: &str = "/auth/session/info";

async fn hostile_projects(host: &Host) -> Vec<Client> {
    let mut projects = Vec::new();
    for _ in 0..HOSTILE_COUNT {
        projects.push(host.new_project().await);
    }
    projects
}

/// Opens the event stream of a project, and returns its connection if it is accepted.
async fn event_stream(host: &Host, project: &Client) -> Option<TcpStream> {
    let address = host.url.trim_start_matches("http://");
    let key = project.key();
    let request =
        format!("GET /api/v3{STREAM_PATH} HTTP/1.1\r\nhost: {address}\r\nx-api-key: {key}\r\n\r\n");
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut status = [0; "HTTP/1.1 200".len()];
    socket.read_exact(&mut status).await.unwrap();
    (status == *b"HTTP/1.1 200").then_some(socket)
}

#[tokio::test]
async fn newcomer_calls_while_others_hold_all() {
    let host = Setup::new()
        .with("limits.connections", "16000")
        .with("limits.in_flight", "64")
        .with("sandbox.live", "64")
        .start()
        .await;
    let (sleeps, echo) = (sleeper(&host, 250_000).await, given::echo(&host).await);
    let hostile = hostile_projects(&host).await;
    let newcomer = host.new_project().await;
    let mut streams = Vec::new();
    for project in &hostile {
        while let Some(stream) = event_stream(&host, project).await {
            streams.push(stream);
        }
    }
    // Eight projects cannot have the reserve.
    assert!((64..=124).contains(&streams.len()), "{}", streams.len());
    let mut held = JoinSet::new();
    for (position, project) in hostile.iter().enumerate() {
        for _ in 0..if position == 0 { 48 } else { 2 } {
            let (project, sleeps) = (project.clone(), sleeps.clone());
            held.spawn(async move { sleeping(&project, &sleeps).await });
        }
        wait_until("the project holds all that it may", async || {
            matches!(project.get(SESSION_INFO_PATH).await.status, 429 | 503)
        })
        .await;
    }
    newcomer.get(SESSION_INFO_PATH).await.expect(200);
    newcomer.execute(&echo, json!({ "said": 1 })).await.data();
    assert!(event_stream(&host, &newcomer).await.is_some());
}

/// Runs a shell command in a new session, and returns the status of the answer.
async fn shell(project: &Client, command: &str) -> u16 {
    let session = create(project, json!({ "user_id": "amy" })).await;
    bash_tool::shell(project, &session, command).await.status
}

#[tokio::test]
async fn newcomer_runs_shell_while_others_hold_all() {
    const COMMANDS_PER_PROJECT: usize = 2;
    // One project has two commands, and the others one each.
    const REFUSED_COUNT: usize = HOSTILE_COUNT * COMMANDS_PER_PROJECT - (HOSTILE_COUNT + 1);
    const SHELL_DEADLINE: Duration = Duration::from_secs(9);
    let host = Setup::new().start().await;
    let newcomer = host.new_project().await;
    let mut held = JoinSet::new();
    for project in hostile_projects(&host).await {
        for _ in 0..COMMANDS_PER_PROJECT {
            let project = project.clone();
            held.spawn(async move { shell(&project, "sleep 120").await });
        }
    }
    for _ in 0..REFUSED_COUNT {
        assert_eq!(held.join_next().await.unwrap().unwrap(), 503);
    }
    let status = timeout(SHELL_DEADLINE, shell(&newcomer, "echo quick")).await;
    assert_eq!(status, Ok(200));
}

#[tokio::test]
async fn scripts_leave_memory_to_other_projects() {
    const SCRIPT_COUNT: usize = 4;
    let code = "import time\nkept = []\ntry:\n  while True: kept.append(bytes(1 << 20))\nexcept MemoryError: pass\ntime.sleep(170)";
    let host = with_interpreter().await.start().await;
    let echo = given::echo(&host).await;
    let (greedy, modest) = (host.new_project().await, host.new_project().await);
    let mut held = JoinSet::new();
    for _ in 0..SCRIPT_COUNT {
        let session = create(&greedy, json!({ "user_id": "amy" })).await;
        let greedy = greedy.clone();
        held.spawn(async move {
            let arguments = json!({ "code_to_execute": code });
            let slug = "SERVICE_REMOTE_WORKBENCH";
            execute_meta(&greedy, &session, slug, arguments)
                .await
                .status
        });
    }
    wait_until("the scripts hold all that their project may", async || {
        let answer = greedy.execute(&echo, json!({})).await;
        let error = &answer["error"];
        answer.status == 429
            && error["slug"] == "Server_ProjectBusy"
            && error["message"] == "the project has reached its limit of memory"
    })
    .await;
    modest.execute(&echo, json!({ "said": 1 })).await.data();
}
