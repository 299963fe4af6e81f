//! Connections, request bodies, addresses and name lookups.

use futures::{StreamExt, stream::FuturesUnordered};
use harness::{
    CONDITION_TIMEOUT, Client, Guest, Host, Names, guest, host::Setup, names::Record, unique,
    wait_until,
};
use reqwest::Method;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    task::JoinSet,
};

use crate::{
    budget::{assert_refused, from, sent_from, sleeper, sleeping, to_the_end},
    files::{ask, copier, uploaded, url},
    given,
    link::link,
};

const SESSION_INFO_PATH: &str = "/auth/session/info";

/// Opens a connection and sends a request with `sent` of its `length` body bytes.
async fn partial(
    host: &Host,
    last: u8,
    target: &str,
    headers: &str,
    sent: usize,
    length: usize,
) -> TcpStream {
    let start = r#"{"toolkit":{"slug":"nothing"},"a":""#;
    let request = format!(
        "{target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n{headers}\r\n{start}{}",
        "x".repeat(sent - start.len())
    );
    sent_from(host, last, &request).await
}

async fn unfinished(host: &Host, last: u8, path: &str, headers: &str) -> TcpStream {
    let target = format!("POST /api/v3{path}");
    partial(host, last, &target, headers, 50, 1_000).await
}

/// Reads a response to its end and asserts its status and a part of it.
async fn assert_answer(socket: TcpStream, status: u16, part: &str) {
    let answer = to_the_end(socket).await;
    let start = format!("HTTP/1.1 {status}");
    assert!(
        answer.starts_with(&start) && answer.contains(part),
        "{answer}"
    );
}

fn with_key(project: &Client) -> String {
    format!("x-api-key: {}\r\n", project.key())
}

#[tokio::test]
async fn slow_bodies_hold_no_place() {
    const BODIES_PER_ADDRESS: usize = 128;
    const BODIES_PER_PROJECT: usize = 64;
    let host = patient().with("limits.in_flight", "64").start().await;
    let (slow, other) = (host.new_project().await, host.new_project().await);
    let (strangers, callers) = (FuturesUnordered::new(), FuturesUnordered::new());
    for number in 0..BODIES_PER_ADDRESS + 4 {
        let body = unfinished(&host, 2, "/api_key_revocation", "").await;
        strangers.push(Box::pin(to_the_end(body)));
        if number < BODIES_PER_PROJECT + 4 {
            let mut headers = with_key(&slow);
            if number % 2 == 1 {
                headers += &format!("idempotency-key: {number}\r\n");
            }
            let body = unfinished(&host, 3, "/auth_configs", &headers).await;
            callers.push(Box::pin(to_the_end(body)));
        }
    }
    for (mut bodies, slug) in [
        (strangers, "Server_AddressBusy"),
        (callers, "Server_ProjectBusy"),
    ] {
        // Four more bodies than allowed: the excess ones wait.
        for _ in 0..4 {
            let refused = bodies.next().await.unwrap();
            assert!(
                refused.starts_with("HTTP/1.1 429") && refused.contains(slug),
                "{refused}"
            );
            assert!(refused.contains("retry-after: 1"), "{refused}");
        }
        other.get(SESSION_INFO_PATH).await.expect(200);
        slow.get(SESSION_INFO_PATH).await.expect(200);
        // A body that arrives with its head does not count as arriving.
        let (target, headers) = ("POST /api/v3/auth_configs", with_key(&slow));
        let whole = partial(&host, 3, target, &headers, 50, 50).await;
        assert_answer(whole, 400, "").await;
        drop(bodies);
    }
    let again = async || {
        let body = partial(&host, 2, "POST /api/v3/api_key_revocation", "", 50, 50).await;
        to_the_end(body).await.starts_with("HTTP/1.1 400")
    };
    wait_until("bodies of the address are taken again", again).await;
}

#[tokio::test]
async fn health_needs_no_place() {
    let host = Setup::new().with("limits.in_flight", "1").start().await;
    let (sleeps, project) = (sleeper(&host, 250_000).await, host.as_project());
    let other = host.new_project().await;
    let held = sleeping(&project, &sleeps);
    let asked = async {
        wait_until("every place is taken", async || {
            other.get(SESSION_INFO_PATH).await.status == 503
        })
        .await;
        let refused = other.get(SESSION_INFO_PATH).await;
        assert_refused("of all", &refused, 503, "Server_Busy");
        for path in ["/health/live", "/health/ready"] {
            assert_eq!(other.try_get_root(path).await, Some(200), "{path}");
        }
    };
    tokio::select! {
        ended = held => panic!("it sleeps: {ended:#?}"),
        () = asked => {}
    }
}

#[tokio::test]
async fn link_token_is_judged_before_its_body() {
    let host = patient().start().await;
    let page = partial(&host, 1, "POST /link/nothing", "", 50, 1_000).await;
    assert_answer(page, 400, "This link does not work").await;
}

#[tokio::test]
async fn trickling_body_is_cut() {
    let host = Setup::new().with("limits.deadline_s", "300").start().await;
    let project = host.as_project();
    let cut = to_the_end(unfinished(&host, 1, "/auth_configs", &with_key(&project)).await).await;
    assert!(
        cut.starts_with("HTTP/1.1 408") && cut.contains("HTTP_RequestTimeout"),
        "{cut}"
    );
    assert!(cut.contains("less than 1 KiB/s"), "{cut}");
}

#[tokio::test]
async fn arriving_bodies_share_their_memory() {
    let host = patient().with("sandbox.memory_mib", "4").start().await;
    let projects = [
        host.new_project().await,
        host.new_project().await,
        host.new_project().await,
    ];
    let send = async |project: &Client, sent: usize, length: usize| {
        let (target, headers) = ("POST /api/v3/auth_configs", with_key(project));
        partial(&host, 1, target, &headers, sent << 10, length << 10).await
    };
    let refused = async |project: &Client, length: usize, expected: &str| {
        let answer = to_the_end(send(project, length, length).await).await;
        assert!(["400", "429", "503"].contains(&&answer[9..12]), "{answer}");
        answer.contains(expected)
    };
    // A probe that arrives first makes the server refuse the body, which is then sent again.
    let arrived = async |project: &Client, sent: usize, probe: (&Client, usize, &str)| {
        let arriving = async {
            loop {
                let body = send(project, sent, 1_000).await;
                while body.try_read(&mut [0]).is_err() {
                    if refused(probe.0, probe.1, probe.2).await {
                        return body;
                    }
                }
            }
        };
        tokio::time::timeout(CONDITION_TIMEOUT, arriving)
            .await
            .expect("a probe is refused")
    };
    let [one, two, three] = &projects;
    // One project has at most half, and a quarter stays free for what is at most a 32nd.
    let first = arrived(one, 450, (one, 100, "Server_ProjectBusy")).await;
    let second = arrived(two, 250, (three, 100, "Server_Busy")).await;
    assert!(refused(three, 30, "HTTP/1.1 400").await, "its base is free");
    drop((first, second));
    wait_until("all is free", async || {
        !refused(&projects[2], 400, "Server_Busy").await
    })
    .await;
}

#[tokio::test]
async fn body_of_tiny_chunks_takes_little_memory() {
    let host = Setup::new().start().await;
    let project = host.as_project();
    let head = format!(
        "POST /api/v3/auth_configs HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\n{}\r\n",
        with_key(&project)
    );
    let send = async |chunks: usize| {
        project
            .raw(&[head.as_bytes(), &b"1\r\n \r\n".repeat(chunks), b"0\r\n\r\n"].concat())
            .await
    };
    assert!(send(1_000).await.starts_with("HTTP/1.1 400"));
    let before = host.footprint().peak_kib;
    assert!(send(512 << 10).await.starts_with("HTTP/1.1 400"));
    let peak = host.footprint().peak_kib;
    assert!(
        peak < before + (10 << 10),
        "{before} KiB before, {peak} KiB at most"
    );
}

/// Sends a request with an idempotency key whose body remains incomplete.
async fn with_idempotency_key(host: &Host, project: &Client) -> TcpStream {
    let headers = format!("{}idempotency-key: {}\r\n", with_key(project), unique(8));
    unfinished(host, 1, "/auth_configs", &headers).await
}

/// Returns settings under which bodies may arrive slowly.
fn patient() -> Setup {
    Setup::new()
        .with("limits.min_rate_kib", "0")
        .with("limits.deadline_s", "300")
}

#[tokio::test]
async fn refused_rate_comes_before_the_body() {
    let host = patient().with("limits.rate_per_key", "3").start().await;
    let project = host.new_project().await;
    for _ in 0..3 {
        project.get(SESSION_INFO_PATH).await.expect(200);
    }
    let refused = with_idempotency_key(&host, &project).await;
    assert_answer(refused, 429, "HTTP_TooManyRequests").await;
}

#[tokio::test]
async fn busy_project_is_refused_before_the_body() {
    let host = patient().with("limits.in_flight", "2").start().await;
    let (sleeps, project) = (sleeper(&host, 250_000).await, host.new_project().await);
    let asked = async {
        wait_until("the project's place is taken", async || {
            project.get(SESSION_INFO_PATH).await.status == 429
        })
        .await;
        let refused = with_idempotency_key(&host, &project).await;
        assert_answer(refused, 429, "Server_ProjectBusy").await;
    };
    tokio::select! {
        ended = sleeping(&project, &sleeps) => panic!("it sleeps: {ended:#?}"),
        () = asked => {}
    }
}

/// Requests an upload of these bytes and returns the link for it.
async fn upload(project: &Client, slug: &str, bytes: &[u8]) -> String {
    url(&ask(project, slug, bytes, json!({})).await.expect(200)).to_owned()
}

fn target(host: &Host, method: &str, link: &str) -> String {
    format!("{method} {}", link.strip_prefix(&host.url).unwrap())
}

#[tokio::test]
async fn one_project_leaves_transfers_to_others() {
    let host = Setup::new()
        .with("sandbox.live", "64")
        .with("files.transfer_s", "8")
        .with("limits.min_rate_kib", "0")
        .start()
        .await;
    let slug = copier(&host).await;
    let [one, other, third] = [
        host.new_project().await,
        host.new_project().await,
        host.new_project().await,
    ];
    let held = upload(&one, &slug, &[1; 900]).await;
    let next = upload(&one, &slug, &[2; 900]).await;
    let others = upload(&other, &slug, &[3; 900]).await;
    let more = upload(&other, &slug, &[4; 900]).await;
    let thirds = upload(&third, &slug, &[5; 900]).await;
    let begin =
        async |link: &str| partial(&host, 1, &target(&host, "PUT", link), "", 50, 900).await;
    // The second upload of a project waits for the first; other projects do not wait.
    let uploads = FuturesUnordered::new();
    for link in [&held, &next] {
        uploads.push(Box::pin(to_the_end(begin(link).await)));
    }
    for _ in 0..2 {
        let put = other
            .exchange(Method::PUT, &others, &[], vec![3; 900])
            .await;
        assert_eq!(put.status, 200, "{put:?}");
    }
    // Both slots are taken, so a third project waits.
    uploads.push(Box::pin(to_the_end(begin(&more).await)));
    uploads.push(Box::pin(to_the_end(begin(&thirds).await)));
    let ends: Vec<String> = uploads.collect().await;
    let counts = ["Server_ProjectBusy", "Server_Busy", "HTTP_RequestTimeout"]
        .map(|text| ends.iter().filter(|end| end.contains(text)).count());
    assert_eq!(counts, [1, 1, 2], "{ends:#?}");
}

#[tokio::test]
async fn unread_answer_ends_its_connection() {
    let host = Setup::new().with("sandbox.live", "32").start().await;
    let (slug, project) = (copier(&host).await, host.new_project().await);
    let bytes = vec![7; 16 << 20];
    uploaded(&project, &slug, &bytes).await;
    let again = ask(&project, &slug, &bytes, json!({})).await.expect(200);
    let link = again["existing_url"].as_str().unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let mut unread = socket
        .connect(host.url.trim_start_matches("http://").parse().unwrap())
        .await
        .unwrap();
    let request = format!("{} HTTP/1.1\r\nhost: x\r\n\r\n", target(&host, "GET", link));
    unread.write_all(request.as_bytes()).await.unwrap();
    unread.read_exact(&mut [0; 12]).await.unwrap();
    // The unread response holds the only slot until its connection ends.
    let got = given::open(&project, link).await;
    assert_eq!((got.status, got.bytes.len()), (200, bytes.len()));
    let mut rest = Vec::new();
    unread.read_to_end(&mut rest).await.ok();
    assert!(
        rest.len() < bytes.len(),
        "{} bytes came all the same",
        rest.len()
    );
}

#[tokio::test]
async fn guesses_do_not_lock_out_a_valid_key() {
    let host = Setup::new().with("limits.failed_auth", "5").start().await;
    let (project, slug) = (host.new_project().await, given::slug());
    given::publish_with_key(&host, &Guest::fetch(), &slug).await;
    let config = project.auth_config(&slug, "API_KEY", json!({})).await;
    let (_, right) = link(&project, &config, json!({})).await;
    let fresh = host.new_project().await;
    let anonymous = host.anonymous();
    let guess = async |kind: &str, number: usize| match kind {
        "key" => {
            let guessed = host.with_key(&format!("ak_{number:032}"));
            guessed.get(SESSION_INFO_PATH).await.status
        }
        "link" => {
            let link = format!("{}/link/{number:043}", host.url);
            given::open(&anonymous, &link).await.status
        }
        _ => {
            let callback = format!("/toolkits/auth/callback?code=c&state={number:043}");
            anonymous.get(&callback).await.status
        }
    };
    for (kind, wrong) in [("key", 401), ("link", 400), ("callback", 400)] {
        let mut answers = Vec::new();
        for number in 0..12 {
            answers.push(guess(kind, number).await);
        }
        let expected: Vec<u16> = (0..12)
            .map(|number| if number < 5 { wrong } else { 429 })
            .collect();
        assert_eq!(answers, expected, "{kind}: each kind is counted for itself");
    }
    fresh.get(SESSION_INFO_PATH).await.expect(200);
    assert_eq!(given::open(&anonymous, &right).await.status, 200);
}

#[tokio::test]
async fn refused_request_keeps_or_ends_its_connection() {
    let host = Host::shared().await;
    let other = host.new_project().await;
    let head = |length: usize| {
        format!("POST /api/v3/nothing HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n")
    };
    let mut kept = sent_from(host, 1, &head(2)).await;
    // The server has read the head before it answers this.
    other.get(SESSION_INFO_PATH).await.expect(200);
    let rest = "{}GET /health/live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    kept.write_all(rest.as_bytes()).await.unwrap();
    let answers = to_the_end(kept).await;
    assert!(answers.starts_with("HTTP/1.1 404"), "{answers}");
    assert!(answers.contains("HTTP/1.1 200"), "{answers}");
    let withheld = head(2).replace("host: x", "host: x\r\nexpect: 100-continue");
    for request in [head(1 << 20), head(2), withheld] {
        let ended = to_the_end(sent_from(host, 1, &request).await).await;
        assert!(ended.starts_with("HTTP/1.1 404"), "{ended}");
        assert!(ended.contains("connection: close"), "{ended}");
    }
}

/// Sends a GET from the address `127.0.0.{last}` and returns the response.
async fn get_from(host: &Host, last: u8, version: &str, headers: &str) -> String {
    let request = format!(
        "GET /api/v3{SESSION_INFO_PATH} HTTP/{version}\r\nconnection: close\r\n{headers}\r\n"
    );
    to_the_end(sent_from(host, last, &request).await).await
}

#[tokio::test]
async fn trusted_proxies_name_the_client() {
    let host = Setup::new()
        .with("net.trusted_proxies", "127.0.0.1,10.0.0.0/8")
        .with("limits.failed_auth", "3")
        .with("limits.connections", "32")
        .start()
        .await;
    let project = host.as_project();
    let id = project.project_id().await;
    let body = json!({ "name": "office", "allowed_ips": ["203.0.113.7"] });
    let keys = format!("/org/owner/project/{id}/api_keys");
    let made = host.as_org().post(&keys, &body).await.expect(201);
    let office = host.with_key(made["key"].as_str().unwrap());
    let ask = async |client: &Client, headers: &[(&str, &str)]| {
        let (method, none) = (Method::GET, harness::client::Body::None);
        client.send(method, SESSION_INFO_PATH, none, headers).await
    };
    for (name, value, status) in [
        ("x-forwarded-for", "203.0.113.7", 200),
        ("x-forwarded-for", "203.0.113.7, 10.1.2.3", 200),
        ("forwarded", "for=203.0.113.7;proto=https", 200),
        (
            "forwarded",
            "for=1.1.1.1, for=\"203.0.113.7:99\", for=10.1.2.3",
            200,
        ),
        ("x-forwarded-for", "203.0.113.7, 198.51.100.1", 403),
        ("forwarded", "for=203.0.113.7, for=unknown", 403),
        ("x-real-ip", "203.0.113.7", 403),
    ] {
        let answer = ask(&office, &[(name, value)]).await;
        assert_eq!(answer.status, status, "{name}: {value}");
    }
    let both = [
        ("forwarded", "for=203.0.113.7"),
        ("x-forwarded-for", "198.51.100.1"),
    ];
    let both = ask(&office, &both).await;
    assert_refused("both headers", &both, 400, "HTTP_ForwardedInvalid");
    let stranger = "host: x\r\nx-forwarded-for: 203.0.113.7\r\n";
    let stranger = format!("{stranger}{}", with_key(&office));
    let refused = get_from(&host, 2, "1.1", &stranger).await;
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");

    // Guesses count per client address, and per network for IPv6.
    let one_address = "198.51.100.1";
    for (first, next, other) in [
        ([one_address; 3], one_address, "198.51.100.9"),
        (
            ["2001:db8:0:1::1", "2001:db8:0:1::2", "2001:db8:0:1::3"],
            "2001:db8:0:1::ffff",
            "2001:db8:0:2::1",
        ),
    ] {
        let first = first.map(|address| (address, 401)).into_iter();
        let guesses = first.chain([(next, 429), (other, 401)]);
        for (number, (address, status)) in guesses.enumerate() {
            let guessed = host.with_key(&format!("ak_{number:032}"));
            let answer = ask(&guessed, &[("x-forwarded-for", address)]).await;
            assert_eq!(answer.status, status, "{address}");
        }
    }
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(from(&host, 1).await);
    }
    let more = get_from(&host, 1, "1.1", "host: x\r\n").await;
    assert!(
        more.starts_with("HTTP/1.1 401"),
        "a proxy has many connections"
    );
}

#[tokio::test]
async fn exactly_one_host_is_named() {
    let host = Host::shared().await;
    for (version, headers, status) in [
        ("1.1", "", "400"),
        ("1.1", "host: a\r\nhost: b\r\n", "400"),
        ("1.1", "host: a\r\nhost: a\r\n", "400"),
        ("1.1", "host: a, b\r\n", "400"),
        ("1.1", "host: a@b\r\n", "400"),
        ("1.1", "host: a/b\r\n", "400"),
        ("1.0", "host: a\r\nhost: b\r\n", "400"),
        ("1.1", "host: example.com:8080\r\n", "401"),
        ("1.1", "host: [2001:db8::1]:80\r\n", "401"),
        ("1.1", "host:\r\n", "401"),
        ("1.0", "", "401"),
    ] {
        let answer = get_from(host, 1, version, headers).await;
        assert_eq!(
            &answer[9..12],
            status,
            "HTTP/{version}, {headers:?}: {answer}"
        );
        assert_eq!(
            answer.contains("HTTP_HostInvalid"),
            status == "400",
            "{answer}"
        );
    }
}

#[tokio::test]
async fn silent_name_server_holds_up_nobody_else() {
    let Some(names) = Names::start(Host::application(), &["www.example.net", "new.example.net"])
    else {
        eprintln!("nothing was tried: this user may use no low ports, or make no namespace");
        return;
    };
    for name in ["www.example.net", "new.example.net"] {
        names.say(name, Record::To(vec![names.application.into()]));
    }
    let host = names.hold(Setup::new()).start().await;
    let mut manifest = guest::manifest(&given::slug());
    // Each name is a registered domain of its own.
    let silent: Vec<_> = (0..48)
        .map(|number| format!("silent{number}.com"))
        .collect();
    let hosts = silent.iter().map(String::as_str).chain(["*.example.net"]);
    manifest["egress"] = hosts.map(|host| json!({ "host": host })).collect();
    host.publish(Guest::fetch().component(), &manifest).await;
    let tool = guest::tool(manifest["slug"].as_str().unwrap());
    let (lost, neighbor) = (host.new_project().await, host.new_project().await);
    let good = |name: &str| json!({ "url": format!("https://{name}.example.net/echo/way") });
    neighbor.execute(&tool, good("www")).await.data();
    let before = host.footprint().threads;
    let mut calls = JoinSet::new();
    for name in &silent {
        names.say(name, Record::Silent);
        let (lost, tool, url) = (lost.clone(), tool.clone(), format!("https://{name}/x"));
        calls.spawn(async move { lost.execute(&tool, json!({ "url": url })).await });
    }
    let asked = || silent.iter().filter(|name| names.asked(name) > 0).count();
    wait_until("the name server is asked", async || asked() >= 16).await;
    neighbor.execute(&tool, good("new")).await.data();
    let threads = host.footprint().threads;
    assert!(
        threads < before + 32,
        "{before} threads before, {threads} now"
    );
    while let Some(answer) = calls.join_next().await {
        let answer = answer.unwrap();
        assert_eq!(answer.failure(), "dns", "{}", answer.text);
    }
}
