//! Tests of the guarantees of the network client against a server on this machine.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on fails, and its tasks end with it"
)]

use std::{
    io::Write,
    sync::{Arc, Mutex},
    time::Duration,
};

use flate2::{Compression, write::GzEncoder};
use host_net::{
    Body, Client, ErrorKind, HeaderMap, Limits, Method, Proxy, Request, Rewrite, Settings, Url,
    header,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// Server that records its requests and sends the responses of `answer`; an empty response is never
/// sent.
struct Application {
    port: u16,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Application {
    async fn start(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let notes = seen.clone();
        let answer = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let notes = notes.clone();
                let answer = answer.clone();
                tokio::spawn(async move {
                    let mut request = Vec::new();
                    let mut piece = [0; 4096];
                    while let Ok(length @ 1..) = stream.read(&mut piece).await {
                        request.extend_from_slice(&piece[..length]);
                        if request.ends_with(b"\r\n\r\n") {
                            let text = String::from_utf8_lossy(&request).into_owned();
                            request.clear();
                            notes.lock().unwrap().push(text.clone());
                            let _ = stream.write_all(&answer(&text)).await;
                        }
                    }
                });
            }
        });
        Self { port, seen }
    }

    fn url(&self, path: &str) -> Url {
        Url::parse(&format!("http://127.0.0.1:{}{path}", self.port)).unwrap()
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn client(allow: &[&str]) -> Client {
    let allow = allow.iter().map(|net| net.parse().unwrap()).collect();
    Client::new(Settings {
        allow,
        user_agent: "tests".to_owned(),
        ..Settings::default()
    })
    .unwrap()
}

fn get(url: Url) -> Request {
    Request {
        method: Method::GET,
        url,
        headers: HeaderMap::new(),
        body: Body::Empty,
        limits: Limits::default(),
    }
}

fn plain(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body).unwrap();
    plain(
        "200 OK",
        "content-encoding: gzip\r\n",
        &encoder.finish().unwrap(),
    )
}

#[tokio::test]
async fn loopback_is_refused_by_address_and_name() {
    let application = Application::start(|_| plain("200 OK", "", b"inside")).await;
    let guarded = client(&[]);
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "0x7f.1",
        "2130706433",
        "[::ffff:127.0.0.1]",
    ] {
        let url = Url::parse(&format!(
            "http://{host}:{}/secret?token=canary",
            application.port
        ))
        .unwrap();
        let refused = guarded.send(get(url)).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Denied, "{host}: {refused}");
        assert!(!refused.message.contains("canary"), "{refused}");
    }
    assert!(application.seen().is_empty());
    let answer = client(&["127.0.0.0/8"])
        .send(get(application.url("/")))
        .await
        .unwrap();
    assert_eq!(answer.body, "inside");
    assert!(application.seen()[0].contains("user-agent: tests"));
}

#[tokio::test]
async fn empty_body_states_its_length() {
    let application = Application::start(|_| plain("200 OK", "", b"")).await;
    let client = client(&["127.0.0.0/8"]);
    for (method, expected) in [
        (Method::POST, true),
        (Method::PUT, true),
        (Method::PATCH, true),
        (Method::GET, false),
        (Method::DELETE, false),
    ] {
        for body in [Body::Empty, Body::Bytes(Vec::new().into())] {
            let request = Request {
                method: method.clone(),
                body,
                ..get(application.url("/"))
            };
            client.send(request).await.unwrap();
            let seen = application.seen().pop().unwrap();
            let states = seen.contains("content-length: 0\r\n");
            assert_eq!(states, expected, "{seen}");
        }
    }
}

#[tokio::test]
async fn only_rewritten_origins_reach_their_targets() {
    let application = Application::start(|_| plain("200 OK", "", b"mirror")).await;
    let rewrite = Rewrite {
        from: "https://api.example.com".parse().unwrap(),
        to: format!("http://localhost:{}", application.port)
            .parse()
            .unwrap(),
    };
    let client = Client::new(Settings {
        rewrite: vec![rewrite],
        ..Settings::default()
    })
    .unwrap();
    let answer = client
        .send(get(Url::parse("https://api.example.com/a?b=c").unwrap()))
        .await
        .unwrap();
    assert_eq!(
        (&answer.body[..], answer.url.as_str()),
        (&b"mirror"[..], "https://api.example.com/a?b=c")
    );
    assert!(application.seen()[0].starts_with("GET /a?b=c HTTP/1.1"));
    let direct = Url::parse(&format!("http://localhost:{}/", application.port)).unwrap();
    assert_eq!(
        client.send(get(direct)).await.unwrap_err().kind,
        ErrorKind::Denied
    );
}

#[tokio::test]
async fn an_answer_is_bounded_after_decompression() {
    let client = client(&["127.0.0.0/8"]);
    let text: Vec<u8> = (0..50_000_u32).flat_map(u32::to_le_bytes).collect();
    let whole = text.clone();
    let application = Application::start(move |_| gzip(&whole)).await;
    let answer = client.send(get(application.url("/"))).await.unwrap();
    assert!(answer.body == text && !answer.headers.contains_key(header::CONTENT_ENCODING));
    let small = Limits {
        response_bytes: 100_000,
        ..Limits::default()
    };
    let over = client
        .send(Request {
            limits: small,
            ..get(application.url("/"))
        })
        .await
        .unwrap_err();
    assert_eq!(over.kind, ErrorKind::TooLarge);

    let bomb = Application::start(|_| gzip(&vec![0; 9 << 20])).await;
    assert_eq!(
        client.send(get(bomb.url("/"))).await.unwrap_err().kind,
        ErrorKind::TooLarge
    );

    let large = Application::start(|_| plain("200 OK", "", &vec![b'x'; 200_000])).await;
    let over = client
        .send(Request {
            limits: small,
            ..get(large.url("/"))
        })
        .await
        .unwrap_err();
    assert_eq!(over.kind, ErrorKind::TooLarge);

    let cut = Limits {
        cuts_response: true,
        ..small
    };
    for server in [&application, &bomb, &large] {
        let request = Request {
            limits: cut,
            ..get(server.url("/"))
        };
        let part = client.send(request).await.unwrap();
        assert!(
            (1..=100_000).contains(&part.body.len()),
            "{}",
            part.body.len()
        );
    }

    let broken =
        Application::start(|_| plain("200 OK", "content-encoding: gzip\r\n", b"not gzip at all"))
            .await;
    assert_eq!(
        client.send(get(broken.url("/"))).await.unwrap_err().kind,
        ErrorKind::Protocol
    );

    let headers =
        Application::start(|_| plain("200 OK", &format!("x: {}\r\n", "y".repeat(70_000)), b""))
            .await;
    assert_eq!(
        client.send(get(headers.url("/"))).await.unwrap_err().kind,
        ErrorKind::TooLarge
    );
}

#[tokio::test]
async fn an_exchange_is_bounded_in_time() {
    let client = client(&["127.0.0.0/8"]);
    let silent = Application::start(|_| Vec::new()).await;
    let limits = Limits {
        first_byte: Duration::from_millis(50),
        ..Limits::default()
    };
    let late = client
        .send(Request {
            limits,
            ..get(silent.url("/"))
        })
        .await
        .unwrap_err();
    assert!(
        late.kind == ErrorKind::Timeout && late.message.contains("first byte"),
        "{late}"
    );
    let dripping =
        Application::start(|_| b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc".to_vec()).await;
    let limits = Limits {
        total: Duration::from_millis(50),
        ..Limits::default()
    };
    let late = client
        .send(Request {
            limits,
            ..get(dripping.url("/"))
        })
        .await
        .unwrap_err();
    assert_eq!(late.kind, ErrorKind::Timeout, "{late}");
}

#[tokio::test]
async fn what_does_not_answer_is_named() {
    let client = client(&["127.0.0.0/8"]);
    let closed = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let url = Url::parse(&format!("http://127.0.0.1:{closed}/x?token=canary")).unwrap();
    let failed = client.send(get(url)).await.unwrap_err();
    assert_eq!(failed.kind, ErrorKind::Connect, "{failed}");
    assert!(
        failed.message.contains(&closed.to_string()) && !failed.message.contains("canary"),
        "{failed}"
    );
    let failed = client
        .send(get(Url::parse("https://no-such-host.invalid/").unwrap()))
        .await
        .unwrap_err();
    assert_eq!(failed.kind, ErrorKind::Dns, "{failed}");
    let nonsense = Application::start(|_| b"nonsense\r\n\r\n".to_vec()).await;
    let failed = client.send(get(nonsense.url("/"))).await.unwrap_err();
    assert_eq!(failed.kind, ErrorKind::Protocol, "{failed}");
    let no_tls = Application::start(|_| Vec::new()).await;
    let url = Url::parse(&format!("https://127.0.0.1:{}/", no_tls.port)).unwrap();
    let limits = Limits {
        connect: Duration::from_millis(100),
        ..Limits::default()
    };
    let failed = client
        .send(Request { limits, ..get(url) })
        .await
        .unwrap_err();
    assert!(
        failed.kind == ErrorKind::Timeout && failed.message.contains("connection"),
        "{failed}"
    );
}

#[tokio::test]
async fn redirects_stay_on_host_and_need_consent() {
    let client = client(&["127.0.0.0/8"]);
    let other = Application::start(|request| plain("200 OK", "", request.as_bytes())).await;
    let elsewhere = other.port;
    let application = Application::start(move |request| {
        let path = request.split(' ').nth(1).unwrap();
        match path {
            "/same" => plain("302 Found", "location: /end\r\n", b"moved"),
            "/loop" => plain("302 Found", "location: /loop\r\n", b"moved"),
            "/host" => plain("302 Found", "location: http://localhost/\r\n", b"moved"),
            "/port" => plain(
                "307 Temporary Redirect",
                &format!("location: http://127.0.0.1:{elsewhere}/\r\n"),
                b"moved",
            ),
            _ => plain("200 OK", "", request.as_bytes()),
        }
    })
    .await;
    let request = |path: &str| {
        let mut request = get(application.url(path));
        request.headers.insert(
            header::AUTHORIZATION,
            header::HeaderValue::from_static("canary"),
        );
        request
    };
    assert_eq!(client.send(request("/same")).await.unwrap().status, 302);

    let credentials = [header::AUTHORIZATION];
    let follow = |path: &str, consent: bool| {
        client.send_following(request(path), 3, &credentials, move |_| consent)
    };
    let answer = follow("/same", true).await.unwrap();
    assert!(answer.status == 200 && String::from_utf8_lossy(&answer.body).contains("canary"));
    assert_eq!(follow("/same", false).await.unwrap().status, 302);
    assert_eq!(follow("/host", true).await.unwrap().status, 302);
    let before = application.seen().len();
    assert_eq!(follow("/loop", true).await.unwrap().status, 302);
    assert_eq!(application.seen().len() - before, 4);
    let answer = follow("/port", true).await.unwrap();
    assert!(answer.status == 200 && !String::from_utf8_lossy(&answer.body).contains("canary"));
}

#[tokio::test]
async fn proxy_and_its_targets_pass_the_guard() {
    let proxy = Application::start(|head| match head.starts_with("CONNECT ") {
        true => plain("407 Proxy Authentication Required", "", b""),
        false => plain("200 OK", "", b"by proxy"),
    })
    .await;
    let through = |host: &str, key: Option<&str>| {
        Some(Arc::new(
            Proxy::new(&format!("http://{host}:{}", proxy.port), key).unwrap(),
        ))
    };
    let url = |text: &str| Url::parse(text).unwrap();
    for host in ["127.0.0.1", "localhost", "[::1]", "0x7f.1"] {
        let client = client(&[]).with_proxy(through(host, Some("Bearer canary")));
        let refused = client
            .send(get(url("http://application.example/")))
            .await
            .unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Denied, "{host}: {refused}");
        assert!(!refused.message.contains("canary"), "{refused}");
    }
    let client = client(&["127.0.0.0/8"]).with_proxy(through("127.0.0.1", Some("Bearer canary")));
    for target in [
        "http://10.0.0.1/",
        "http://user@application.example/",
        "ftp://application.example/",
    ] {
        client.send(get(url(target))).await.unwrap_err();
    }
    assert!(proxy.seen().is_empty());
    let answer = client
        .send(get(url("http://application.example/x")))
        .await
        .unwrap();
    assert_eq!(answer.body, "by proxy");
    let seen = proxy.seen();
    assert!(
        seen[0].starts_with("GET http://application.example/x "),
        "{}",
        seen[0]
    );
    assert!(
        seen[0].contains("proxy-authorization: Bearer canary"),
        "{}",
        seen[0]
    );
    let failed = client
        .send(get(url("https://application.example/x")))
        .await
        .unwrap_err();
    assert_eq!(failed.kind, ErrorKind::Connect, "{failed}");
    assert!(
        proxy.seen()[1].starts_with("CONNECT application.example:443 "),
        "{}",
        proxy.seen()[1]
    );
}

#[tokio::test]
async fn streamed_body_is_read_until_it_stalls() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n";
    let application = Application::start(move |_| head.into()).await;
    let request = get(application.url("/"));
    let idle_timeout = Duration::from_millis(50);
    let opened = client(&["127.0.0.1/32"]).open(request, idle_timeout).await;
    let mut response = opened.unwrap();
    assert_eq!(response.next_piece().await.unwrap().unwrap(), "first");
    let stalled = response.next_piece().await.unwrap_err();
    assert_eq!(stalled.kind, ErrorKind::Timeout);
    assert!(application.seen()[0].contains("accept-encoding: identity"));
}
