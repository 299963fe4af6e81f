//! Tests of every row of `docs/limits.md`: a request at the limit passes, and a request just over
//! it gets the response that the row describes.
//!
//! The server prints the table from the numbers that it enforces. A limit without a test fails a test,
//! and so does a new setting that has no row and is not known to limit nothing.

use std::{collections::BTreeSet, fs, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use harness::{
    Answer, Client, Guest, Host, client::Body, guest, guest::imports, host::Setup, unique,
    wait_until,
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    task::JoinSet,
};

use crate::{files::uploaded, given};

/// Reads the committed page.
fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/limits.md")).unwrap()
}

/// Settings that limit nothing that a client does.
const NO_LIMITS: [&str; 44] = [
    "data",
    "store",
    "blobs",
    "key_file",
    "listen",
    "public_url",
    "toolkits",
    "operator_word",
    "log",
    "log_format",
    "s3.endpoint",
    "s3.region",
    "s3.access_key_id",
    "s3.secret_access_key",
    "s3.session_token",
    "s3.presigned",
    "net.allow",
    "net.rewrite",
    "net.trusted_proxies",
    "sandbox.allocator",
    "logs.wait",
    "logs.keep_days",
    "logs.cassettes",
    "metrics.listen",
    "telemetry.otlp_endpoint",
    "telemetry.otlp_headers",
    "telemetry.sample_ratio",
    "telemetry.propagate",
    "files.keep_days",
    "connections.idle_refresh_s",
    "webhooks.secret_overlap_s",
    "sink.url",
    "mcp.allowed_hosts",
    "sessions.keep_days",
    "sessions.unknown_members",
    "keys.reveal",
    "publish.trusted_keys",
    "llm.base_url",
    "llm.model",
    "llm.key",
    "llm.headers",
    "oauth_apps.SLUG.client_id",
    "oauth_apps.SLUG.client_secret",
    "oauth_apps.SLUG.scopes",
];

#[test]
fn documented_limits_name_existing_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = page();
    let (limits, _) = page.split_once("\n## Records of one project").unwrap();
    let rows = limits.lines().filter(|line| line.starts_with("| "));
    let mut names = BTreeSet::new();
    for row in rows.filter(|row| !row.ends_with("| Test |")) {
        let (name, _) = row.split_once(" | ").unwrap();
        assert!(names.insert(name), "{name} stands twice");
        let last = row
            .strip_suffix("` |")
            .and_then(|row| row.rsplit_once("| `"));
        let (_, test) = last.unwrap_or_else(|| panic!("{row}: no test"));
        let (file, test) = test.split_once(' ').unwrap();
        let text = fs::read_to_string(root.join(file)).unwrap();
        let is_test = text.contains(&format!("fn {test}()"));
        assert!(is_test, "{name}: there is no test `{test}` in {file}");
    }
    assert!(names.len() > 200, "{} limits", names.len());
}

#[tokio::test]
async fn limits_page_matches_the_server() {
    let setup = Setup::embedded();
    let (page, printed) = (page(), setup.command(&["limits"]).succeeded());
    assert_eq!(
        printed, page,
        "the limits have changed: `toolhost limits > docs/limits.md`, and drive what is new here"
    );
    let table = setup.command(&["config", "--table"]).succeeded();
    let settings: Vec<_> = table
        .lines()
        .filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0))
        .collect();
    assert!(settings.len() >= 60, "{settings:?}");
    for key in settings {
        let has_row = page.contains(&format!("`{key}`"));
        assert_eq!(has_row, !NO_LIMITS.contains(&key), "`{key}`");
    }
}

/// A request of a given size.
struct Ask {
    method: Method,
    path: String,
    body: Body,
    key: Option<String>,
}

/// A limit of requests: a request of any size, and the expected responses at the limit and just
/// over it.
struct Case {
    row: &'static str,
    most: usize,
    passes: u16,
    refused: (u16, &'static str),
    ask: Box<dyn Fn(usize) -> Ask>,
}

fn get(path: String) -> Ask {
    Ask {
        method: Method::GET,
        path,
        body: Body::None,
        key: None,
    }
}

fn post(path: &str, body: String) -> Ask {
    Ask {
        method: Method::POST,
        path: path.to_owned(),
        body: Body::Raw("application/json", body.into_bytes()),
        key: None,
    }
}

/// Returns JSON text of `bytes` bytes, with `…` replaced by filler.
fn filled(text: &str, bytes: usize) -> String {
    text.replace('…', &"x".repeat(bytes + '…'.len_utf8() - text.len()))
}

#[rustfmt::skip]
fn cases(slug: &str, tool: &str, config: String) -> Vec<Case> {
    let case = |row, most, passes, status, slug, ask: Box<dyn Fn(usize) -> Ask>| Case { row, most, passes, refused: (status, slug), ask };
    let (run, file) = (format!("/tools/execute/{tool}"), format!(r#""toolkit_slug":"{slug}","tool_slug":"{tool}""#));
    let nothing = r#""toolkit":{"slug":"nothing"}"#;
    vec![
        case("Request line", 8 << 10, 200, 414, "HTTP_UriTooLong",
            Box::new(|n| get(format!("/toolkits?x={}", "x".repeat(n - "GET /api/v3/toolkits?x= HTTP/1.1".len()))))),
        case("JSON body of an execution", 4 << 20, 200, 413, "HTTP_PayloadTooLarge",
            Box::new(move |n| post(&run, filled(r#"{"version":"latest","arguments":{"a":"…"}}"#, n)))),
        case("JSON body of a proxy request", 6 << 20, 400, 413, "HTTP_PayloadTooLarge",
            Box::new(|n| post("/tools/execute/proxy", filled(r#"{"endpoint":"/x","method":"GET","a":"…"}"#, n)))),
        case("Any other JSON body", 1 << 20, 404, 413, "HTTP_PayloadTooLarge",
            Box::new(move |n| post("/auth_configs", filled(&format!(r#"{{{nothing},"a":"…"}}"#), n)))),
        case("Nesting depth of a JSON body", 64, 404, 400, "Request_Invalid",
            Box::new(move |n| post("/auth_configs", format!(r#"{{{nothing},"a":{}{}}}"#, "[".repeat(n - 1), "]".repeat(n - 1))))),
        case("Characters in a query parameter", 256, 200, 400, "Request_Invalid",
            Box::new(|n| get(format!("/toolkits?search={}", "x".repeat(n))))),
        case("Entries of a list in the query", 1_000, 200, 400, "Request_Invalid",
            Box::new(|n| get(format!("/connected_accounts?user_ids={}", "x,".repeat(n))))),
        case("Entries of a page", 1_000, 200, 400, "Request_CursorInvalid",
            Box::new(|n| get(format!("/toolkits?cursor={}", BASE64.encode(format!("1-{n}")))))),
        case("Characters in an `Idempotency-Key`", 255, 404, 400, "Request_Invalid",
            Box::new(move |n| Ask { key: Some("k".repeat(n)), ..post("/auth_configs", format!("{{{nothing}}}")) })),
        case("Characters in a file name", 255, 200, 400, "Request_Invalid",
            Box::new(move |n| post("/files/upload/request", format!(
                r#"{{{file},"filename":"{}","mimetype":"text/plain","md5":"{}"}}"#, "n".repeat(n), "0".repeat(32))))),
        case("Users in a list of a shared account", 1_000, 201, 400, "Request_Invalid",
            Box::new(move |n| post("/connected_accounts/link", format!(
                r#"{{"auth_config_id":"{config}","user_id":"amy","experimental":{{"account_type":"SHARED",
                "acl_config_for_shared":{{"allowed_user_ids":["x"{}]}}}}}}"#, r#","x""#.repeat(n - 1))))),
    ]
}

/// Returns the start of a response that may be long.
pub(crate) fn start(answer: &Answer) -> &str {
    &answer.text[..answer.text.len().min(500)]
}

async fn send(client: &Client, ask: Ask) -> Answer {
    let headers: Vec<_> = ask
        .key
        .iter()
        .map(|key| ("idempotency-key", key.as_str()))
        .collect();
    client.send(ask.method, &ask.path, ask.body, &headers).await
}

#[track_caller]
pub(crate) fn assert_refused(row: &str, answer: &Answer, status: u16, slug: &str) {
    assert_eq!(
        (answer.status, &answer["error"]["slug"]),
        (status, &slug.into()),
        "{row}: {answer:#?}"
    );
    answer.assert_envelope();
    let retried = matches!(status, 429 | 503);
    assert_eq!(
        retried,
        !answer.header("retry-after").is_empty(),
        "{row}: {answer:#?}"
    );
}

#[tokio::test]
async fn request_limits_are_enforced() {
    let project = Host::shared().await.new_project().await;
    let tool = given::shared_echo().await;
    let slug = tool.trim_end_matches("_RUN").to_lowercase();
    for Case {
        row,
        most,
        passes,
        refused: (status, slug),
        ask,
    } in cases(&slug, tool, given::auth_config(&project).await)
    {
        let at = send(&project, ask(most)).await;
        assert_eq!(at.status, passes, "{row}: {}", start(&at));
        assert_refused(row, &send(&project, ask(most + 1)).await, status, slug);
    }
}

/// Builds a request with `headers` headers of `bytes` bytes in total. The server counts names,
/// values and four bytes per header.
fn head(key: &str, headers: usize, bytes: usize) -> Vec<u8> {
    let own = [
        ("host", "localhost"),
        ("connection", "close"),
        ("x-api-key", key),
    ];
    let mut lines: Vec<_> = own
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    lines.extend((lines.len()..headers - 1).map(|number| format!("x-{number:03}: x\r\n")));
    let used: usize = lines.iter().map(String::len).sum();
    lines.push(format!(
        "x-fill: {}\r\n",
        "x".repeat(bytes - used - "x-fill: \r\n".len())
    ));
    format!("GET /api/v3/toolkits HTTP/1.1\r\n{}\r\n", lines.concat()).into_bytes()
}

#[tokio::test]
async fn request_head_limits_are_enforced() {
    let project = Host::shared().await.new_project().await;
    for (headers, bytes, passes) in [
        (5, 16 << 10, true),
        (5, (16 << 10) + 1, false),
        (100, 4 << 10, true),
        (101, 4 << 10, false),
    ] {
        let answer = project.raw(&head(project.key(), headers, bytes)).await;
        let expected = if passes {
            "HTTP/1.1 200"
        } else {
            "HTTP/1.1 431"
        };
        assert!(
            answer.starts_with(expected),
            "{headers} headers, {bytes} bytes: {}",
            &answer[..answer.len().min(300)]
        );
        // A head with more headers is not read.
        let is_read_and_refused = !passes && headers <= 100;
        assert_eq!(answer.contains("HTTP_HeadersTooLarge"), is_read_and_refused);
    }
}

#[tokio::test]
async fn replayed_response_size_is_limited() {
    let project = Host::shared().await.new_project().await;
    let path = format!("/tools/execute/{}", given::shared_echo().await);
    let ask = async |key: &str, filler: usize| {
        let body =
            Body::Json(json!({ "version": "latest", "arguments": { "a": "x".repeat(filler) } }));
        project
            .send(Method::POST, &path, body, &[("idempotency-key", key)])
            .await
    };
    let (first, second, third) = (unique(8), unique(8), unique(8));
    let rest = ask(&first, 0).await.expect(200).text.len();
    let most = (1 << 20) - rest;
    let answer = ask(&second, most).await.expect(200);
    assert_eq!(answer.text.len(), 1 << 20);
    let again = ask(&second, most).await.expect(200);
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.text, answer.text);
    ask(&third, most + 1).await.expect(200);
    let gone = ask(&third, most + 1).await;
    assert_refused("Answers kept", &gone, 409, "Idempotency_AnswerGone");
}

/// Connects to the server from the address `127.0.0.{last}`.
pub(crate) async fn from(host: &Host, last: u8) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, last], 0).into()).unwrap();
    socket
        .connect(host.url.trim_start_matches("http://").parse().unwrap())
        .await
        .unwrap()
}

/// Connects to the server from the address `127.0.0.{last}` and sends this text.
pub(crate) async fn sent_from(host: &Host, last: u8, text: &str) -> TcpStream {
    let mut socket = from(host, last).await;
    socket.write_all(text.as_bytes()).await.unwrap();
    socket
}

/// Opens a connection and sends a request whose body remains incomplete.
pub(crate) async fn unfinished(host: &Host, key: &str, path: &str) -> TcpStream {
    let request = format!(
        "POST /api/v3{path} HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\ncontent-type: application/json\r\n\
         content-length: 1000\r\n\r\n{{"
    );
    sent_from(host, 1, &request).await
}

/// Reads until the server closes the connection.
pub(crate) async fn to_the_end(mut socket: TcpStream) -> String {
    let mut answer = Vec::new();
    let read = socket.read_to_end(&mut answer);
    // Closing a connection with unread bytes resets it. The response has arrived nevertheless.
    tokio::time::timeout(harness::CONDITION_TIMEOUT, read)
        .await
        .expect("the server closes the connection")
        .ok();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn request_timeouts_are_enforced() {
    let host = Setup::new()
        .with("limits.deadline_s", "2")
        .with("limits.idle_s", "2")
        .start()
        .await;
    let project = host.as_project();
    project.wait_for("/auth/session/info").await;
    let body = unfinished(&host, project.key(), "/tools/execute/NOTHING").await;
    let head = "GET /api/v3/toolkits HTTP/1.1\r\nhost: x\r\nx-filler: ";
    let sockets = [
        body,
        sent_from(&host, 1, head).await,
        from(&host, 1).await,
        sent_from(&host, 1, LIVE_REQUEST).await,
    ];
    let ends = futures::future::join_all(sockets.map(to_the_end)).await;
    let [body, head, silent, used] = <[String; 4]>::try_from(ends).unwrap();
    assert!(used.starts_with("HTTP/1.1 200"), "{used}");
    assert!(
        body.starts_with("HTTP/1.1 408") && body.contains("HTTP_RequestTimeout"),
        "{body}"
    );
    for none in [head, silent] {
        assert!(
            none.is_empty() || none.starts_with("HTTP/1.1 408"),
            "{none}"
        );
    }
}

const LIVE_REQUEST: &str = "GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n";

/// Returns true if a connection is served. The connection stays open.
async fn is_served(socket: &mut TcpStream) -> bool {
    let mut answer = Vec::new();
    if socket.write_all(LIVE_REQUEST.as_bytes()).await.is_err() {
        return false;
    }
    // The body of the response is an object.
    while !answer.ends_with(b"}") {
        let Ok(byte) = socket.read_u8().await else {
            return false;
        };
        answer.push(byte);
    }
    answer.starts_with(b"HTTP/1.1 200")
}

#[tokio::test]
async fn connection_limits_are_enforced() {
    let host = Setup::new().with("limits.connections", "32").start().await;
    let (mut first, mut second) = (from(&host, 2).await, from(&host, 2).await);
    assert!(is_served(&mut first).await && is_served(&mut second).await);
    assert!(
        !is_served(&mut from(&host, 2).await).await,
        "a third one is closed"
    );
    let mut of_others = Vec::new();
    for address in 3..18 {
        of_others.extend([from(&host, address).await, from(&host, address).await]);
    }
    for socket in &mut of_others {
        assert!(is_served(socket).await, "other addresses have their own");
    }
    let mut waiting = from(&host, 18).await;
    let served = is_served(&mut waiting);
    tokio::pin!(served);
    // Without the limit, it would be served no later than these.
    for _ in 0..20 {
        assert!(futures::poll!(served.as_mut()).is_pending());
        assert!(is_served(&mut first).await);
    }
    drop(of_others.pop());
    assert!(served.await, "one that ends makes place for one that waits");
}

async fn is_busy(client: &Client) -> bool {
    client.get("/auth/session/info").await.status == 429
}

async fn is_full(client: &Client) -> bool {
    client.get("/auth/session/info").await.status == 503
}

#[tokio::test]
async fn concurrent_request_limits_are_enforced() {
    let host = Setup::new().with("limits.in_flight", "5").start().await;
    let [one, other] = [host.new_project().await, host.new_project().await];
    let third = host.as_project();
    let sleeps = sleeper(&host, 250_000).await;
    let mut held = JoinSet::new();
    let mut hold = |project: &Client| {
        let (project, sleeps) = (project.clone(), sleeps.clone());
        held.spawn(async move { sleeping(&project, &sleeps).await });
    };
    hold(&one);
    one.get("/auth/session/info").await.expect(200);
    for _ in 0..2 {
        hold(&one);
    }
    wait_until("the project has three requests under way", || is_busy(&one)).await;
    let refused = one.get("/auth/session/info").await;
    assert_refused("of a project", &refused, 429, "Server_ProjectBusy");
    hold(&other);
    wait_until("the other one has one", || is_full(&other)).await;
    third.get("/auth/session/info").await.expect(200);
    hold(&third);
    wait_until("five are under way", || is_full(&third)).await;
    let refused = third.get("/auth/session/info").await;
    assert_refused("of all", &refused, 503, "Server_Busy");
    drop(held);
    one.wait_for("/auth/session/info").await;
}

/// Publishes a tool that sleeps for `millis` milliseconds.
pub(crate) async fn sleeper(host: &Host, millis: u32) -> String {
    let execute = format!("(call $sleep (i32.const {millis})) {ANSWER_ARGUMENTS}");
    let guest = Guest {
        imports: imports::SLEEP,
        execute: &execute,
        ..Guest::default()
    };
    let mut manifest = guest::manifest(&given::slug());
    manifest["limits"] = json!({ "wall_ms": 300_000 });
    host.publish(guest.component(), &manifest).await;
    guest::tool(manifest["slug"].as_str().unwrap())
}

/// Runs a sleeping tool. A refused run is repeated.
pub(crate) async fn sleeping(project: &Client, tool: &str) -> Answer {
    loop {
        let answer = project.execute(tool, json!({})).await;
        if !matches!(answer.status, 429 | 503) {
            return answer;
        }
    }
}

#[tokio::test]
async fn concurrent_run_limits_are_enforced() {
    let host = Setup::new().with("sandbox.live", "2").start().await;
    let echo = given::echo(&host).await;
    let sleeps = sleeper(&host, 250_000).await;
    let projects = [
        host.new_project().await,
        host.new_project().await,
        host.new_project().await,
    ];
    let run = |project: &Client| {
        let (project, echo) = (project.clone(), echo.clone());
        async move { project.execute(&echo, json!({})).await }
    };
    let one = sleeping(&projects[0], &sleeps);
    let other = sleeping(&projects[1], &sleeps);
    let asked = async {
        wait_until("one project runs its one", async || {
            run(&projects[0]).await.status == 429
        })
        .await;
        let refused = run(&projects[0]).await;
        assert_refused("of a project", &refused, 429, "Server_ProjectBusy");
    };
    tokio::pin!(one);
    tokio::select! {
        ended = &mut one => panic!("it sleeps: {ended:#?}"),
        () = asked => {}
    }
    // One of two runs is active, so another project may run one.
    tokio::select! {
        ended = &mut one => panic!("it sleeps: {ended:#?}"),
        ran = run(&projects[2]) => drop(ran.data()),
    }
    let asked = async {
        wait_until("both places are taken", async || {
            run(&projects[2]).await.status == 503
        })
        .await;
        assert_refused("of all", &run(&projects[2]).await, 503, "Server_Busy");
    };
    tokio::select! {
        ended = &mut one => panic!("it sleeps: {ended:#?}"),
        ended = other => panic!("it sleeps: {ended:#?}"),
        () = asked => {}
    }
}

/// WebAssembly text shared by the guests of these tests.
const READ_COUNT: &str = "(local.set $i (call $number (local.get $args) (local.get $args_len)))";
const ANSWER_ARGUMENTS: &str = "(call $ok (local.get $args) (local.get $args_len))";
const COUNT_DOWN: &str =
    "(local.set $i (i32.sub (local.get $i) (i32.const 1))) (br_if $again (local.get $i))";

/// A tool that consumes a resource to the extent given by the number in its arguments.
struct Greedy {
    tool: String,
}

impl Greedy {
    /// Publishes the tool. `execute` finds the number in `$i`; `items` adds definitions that it
    /// needs.
    async fn new(imports: &str, items: &str, execute: &str) -> Self {
        let items = format!("{}{items}", guest::PARSE_NUMBER);
        let execute = format!("{READ_COUNT} {execute}");
        Self::of(&Guest {
            imports,
            items: &items,
            execute: &execute,
            ..Guest::default()
        })
        .await
    }

    async fn of(guest: &Guest<'_>) -> Self {
        let mut manifest = guest::manifest(&given::slug());
        manifest["egress"] = json!([{ "host": "api.example.com" }]);
        manifest["limits"] = json!({ "cpu_ms": 30_000 });
        Host::shared()
            .await
            .publish(guest.component(), &manifest)
            .await;
        Self {
            tool: guest::tool(manifest["slug"].as_str().unwrap()),
        }
    }

    async fn run(&self, project: &Client, number: usize) -> Answer {
        project.execute(&self.tool, json!({ "n": number })).await
    }
}

/// Returns a data segment with this text, in which only quotes need escaping.
fn data(at: u32, text: &str) -> String {
    format!(r#"(data (i32.const {at}) "{}")"#, text.replace('"', "\\22"))
}

/// Publishes a tool that sends requests to this address. The number is the count of requests, or
/// the size of the body if `with_body` is set.
async fn sender(address: &str, with_body: bool) -> Greedy {
    let items = [data(2048, "POST"), data(2064, address)].concat();
    let (length, refused) = (
        address.len(),
        "(if (i32.load8_u (i32.const 1280)) (then (return (call $fail
            (i32.load (i32.const 1284)) (i32.load (i32.const 1288)) (i32.load (i32.const 1292)) (i32.load (i32.const 1296))))))",
    );
    let send = |content: &str| {
        format!(
            "(call $send (i32.const 2048) (i32.const 4) (i32.const 2064) (i32.const {length}) (i32.const 0) (i32.const 0)
                {content} (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 1280)) {refused}"
        )
    };
    let execute = if with_body {
        let content = "(i32.const 1) (i32.const 0) (local.get $j) (local.get $i)";
        format!(
            "(local.set $j (call $realloc (i32.const 0) (i32.const 0) (i32.const 1) (local.get $i))) {} {ANSWER_ARGUMENTS}",
            send(content)
        )
    } else {
        // Each response overwrites the previous one, so the guest does not keep any.
        let nothing = "(i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)";
        format!(
            "(local.set $j (global.get $top))
            (loop $again (global.set $top (local.get $j)) {} {COUNT_DOWN}) {ANSWER_ARGUMENTS}",
            send(nothing)
        )
    };
    Greedy::new(imports::SEND, &items, &execute).await
}

#[tokio::test]
async fn run_resource_limits_are_enforced() {
    let project = Host::shared().await.new_project().await;
    let grow = "(if (i32.eq (i32.const -1) (memory.grow (i32.sub (local.get $i) (memory.size)))) (then unreachable))";
    let memory = Greedy::new("", "", &format!("{grow} {ANSWER_ARGUMENTS}")).await;
    let calls = format!("(loop $again (drop (call $now)) {COUNT_DOWN}) {ANSWER_ARGUMENTS}");
    let calls = Greedy::new(imports::NOW, "", &calls).await;
    let result = Greedy::of(&Guest::filler()).await;
    let requests = sender("https://api.example.com/echo/budget", false).await;
    let body = sender("https://api.example.com/status/budget/200", true).await;
    let asking_for = async |bytes: usize| {
        // The provider adds 13 bytes to the requested size.
        let address = format!("https://api.example.com/big/budget/{}", bytes - 13);
        sender(&address, false).await
    };
    let answers = asking_for(8 << 20).await;
    let answer = asking_for(10 << 20).await;
    let larger = asking_for((10 << 20) + 1).await;
    let assert_runs = async |row: &str, greedy: &Greedy, number: usize| {
        let ran = greedy.run(&project, number).await.expect(200);
        assert_eq!(ran["successful"], true, "{row}: {}", start(&ran));
    };
    let assert_fails = async |row: &str, greedy: &Greedy, number: usize, kind: &str| {
        let ran = greedy.run(&project, number).await.expect(200);
        assert_eq!(ran.failure(), kind, "{row}: {}", start(&ran));
    };
    for (row, greedy, most, kind) in [
        ("Memory", &memory, 1_024, "tool_memory_limit"),
        (
            "Host function calls",
            &calls,
            10_000,
            "tool_host_call_limit",
        ),
        ("Result", &result, MAX_RESULT_BYTES, "tool_output_too_large"),
        ("Outgoing requests", &requests, 50, "limit"),
        ("Body of an outgoing request", &body, 4 << 20, "too_large"),
        ("Bodies of all responses", &answers, 4, "limit"),
    ] {
        assert_runs(row, greedy, most).await;
        assert_fails(row, greedy, most + 1, kind).await;
    }
    let row = "Body of a response";
    assert_runs(row, &answer, 1).await;
    assert_fails(row, &larger, 1, "too_large").await;
}

/// Size limit of a tool's result, in bytes.
const MAX_RESULT_BYTES: usize = 16 << 20;

#[tokio::test]
async fn log_line_limit_is_enforced() {
    let project = Host::shared().await.new_project().await;
    let write = format!(
        "(loop $again (call $log (i32.const 1) (i32.const 2048) (i32.const 1)) {COUNT_DOWN}) {ANSWER_ARGUMENTS}"
    );
    let writes = Greedy::new(imports::LOG, &data(2048, "x"), &write).await;
    for (lines, kept, last) in [
        (1_000, 1_000, "x"),
        (1_001, 1_001, "dropped"),
        (2_000, 1_001, "dropped"),
    ] {
        let ran = writes.run(&project, lines).await.expect(200);
        let record = project.log(&ran["log_id"]).await;
        let log = record["data"]["log"].as_array().unwrap();
        assert_eq!(log.len(), kept);
        let message = log[kept - 1]["message"].as_str().unwrap();
        assert!(message.contains(last), "{message}");
    }
}

/// Returns a manifest whose input schema has `bytes` bytes of JSON.
fn schema(bytes: usize) -> Value {
    let with = |text: String| json!({ "type": "object", "description": text });
    with("x".repeat(bytes - with(String::new()).to_string().len()))
}

/// Returns a schema with `levels` levels.
fn nested(levels: usize) -> Value {
    (1..levels).fold(
        json!({ "type": "object" }),
        |inner, _| json!({ "type": "object", "properties": { "a": inner } }),
    )
}

#[tokio::test]
async fn manifest_limits_are_enforced() {
    let host = Host::shared().await;
    let component = Guest::echo().component();
    let publish = async |member: &str, value: Value| {
        let mut manifest = guest::manifest(&given::slug());
        manifest["tools"][0][member] = value;
        let bytes = guest::with_manifest(component.clone(), &manifest);
        host.as_org().put(&guest::address(&manifest), bytes).await
    };
    let [described, longer] = [4_096, 4_097].map(|length| json!("x".repeat(length)));
    for (row, member, at, over) in [
        ("Description", "description", described, longer),
        ("Schema", "input", schema(64 << 10), schema((64 << 10) + 1)),
        ("Nesting depth of a schema", "input", nested(16), nested(17)),
    ] {
        let made = publish(member, at).await;
        assert_eq!(made.status, 201, "{row}: {made:#?}");
        let refused = publish(member, over).await;
        assert_refused(row, &refused, 400, "Toolkit_ComponentInvalid");
    }
}

#[tokio::test]
async fn call_file_limits_are_enforced() {
    let host = Setup::new().with("files.size_mib", "1").start().await;
    let project = host.as_project();
    let (slug, mut manifest) = given::manifest();
    let file = json!({ "type": "object", "file_uploadable": true });
    manifest["tools"][0]["input"] =
        json!({ "type": "object", "properties": { "files": { "type": "array", "items": file } } });
    host.publish(Guest::echo().component(), &manifest).await;
    let tool = guest::tool(&slug);
    let run = async |keys: Vec<String>| {
        let files: Vec<_> = keys
            .iter()
            .map(|key| json!({ "name": "n", "mimetype": "text/plain", "s3key": key }))
            .collect();
        project.execute(&tool, json!({ "files": files })).await
    };
    // The number of files is checked before the files are looked up.
    let keys = |count: usize| {
        (0..count)
            .map(|number| format!("file_{number:012}"))
            .collect::<Vec<_>>()
    };
    assert_refused("At the limit", &run(keys(32)).await, 404, "File_NotFound");
    let row = "Number of files of one call";
    let invalid = "ActionExecute_ArgumentsInvalid";
    assert_refused(row, &run(keys(33)).await, 400, invalid);

    let half = uploaded(&project, &slug, &vec![1; 512 << 10]).await;
    let other_half = uploaded(&project, &slug, &vec![2; 512 << 10]).await;
    let more = uploaded(&project, &slug, &vec![3; (512 << 10) + 1]).await;
    run(vec![half.clone(), other_half]).await.data();
    let row = "Size of all files of one call";
    assert_refused(row, &run(vec![half, more]).await, 400, invalid);
}

#[tokio::test]
async fn prompt_limits_are_enforced() {
    let tag = unique(8);
    let host = Setup::new()
        .with(
            "llm.base_url",
            format!("{}/hang/{tag}", Host::application().origin),
        )
        .with("llm.model", "small-one")
        .with("llm.timeout_s", "1")
        .with("sandbox.live", "32")
        .start()
        .await;
    let project = host.as_project().with_newer_prefix();
    let path = format!("/tools/execute/{}", given::echo(&host).await);
    let say = async |project: &Client, characters: usize| {
        let body = json!({ "text": "é".repeat(characters) });
        project.post(&path, &body).await
    };
    let long = say(&project, 16_385).await;
    assert_refused("Characters in a prompt", &long, 400, "Request_Invalid");
    let (row, late) = ("Timeout for making arguments", say(&project, 16_384).await);
    assert_refused(row, &late, 502, "ActionExecute_ModelFailed");
    let asked: Value = serde_json::from_slice(&Host::application().seen(&tag)[0].body).unwrap();
    assert_eq!(asked["max_tokens"], 2_048);
    let mut projects = vec![project];
    for _ in 0..2 {
        projects.push(host.new_project().await.with_newer_prefix());
    }
    let at_once = projects.iter().map(|project| say(project, 3));
    let at_once = futures::future::join_all(at_once).await;
    let statuses: Vec<_> = at_once.iter().map(|answer| answer.status).collect();
    assert_eq!(
        statuses.iter().filter(|status| **status == 502).count(),
        1,
        "{statuses:?}"
    );
    for busy in at_once.iter().filter(|answer| answer.status != 502) {
        assert_refused("Concurrent prompts", busy, 503, "Server_Busy");
    }
}
