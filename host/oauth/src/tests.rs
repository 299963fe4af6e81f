//! Tests against a provider on loopback that sends prepared responses and records its requests.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;

const NOW_MS: i64 = 1_767_225_600_000;
const TOKEN_RESPONSE: &str =
    r#"{"access_token":"at-1","refresh_token":"rt-2","token_type":"Bearer","expires_in":3600}"#;

/// A provider at `https://app.example`.
pub(super) struct Application {
    pub(super) net: net::Client,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Application {
    /// Sends these responses in order: status line, headers and body as on the wire, without a
    /// length.
    pub(super) async fn answering(answers: &[String]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = format!("http://{}", listener.local_addr().unwrap())
            .parse()
            .unwrap();
        let rewrite = vec![net::Rewrite {
            from: "https://app.example".parse().unwrap(),
            to,
        }];
        let net = net::Client::new(net::Settings {
            rewrite,
            ..net::Settings::default()
        })
        .unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = seen.clone();
        let answers = answers.to_vec();
        #[expect(
            clippy::disallowed_methods,
            reason = "it ends with the runtime, which the test owns"
        )]
        tokio::spawn(async move {
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                while !whole(&request) {
                    assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0);
                }
                kept.lock()
                    .unwrap()
                    .push(String::from_utf8(request).unwrap());
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Self { net, seen }
    }

    /// Recorded requests, unchanged.
    pub(super) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0)
}

pub(super) fn answer(status: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

pub(super) fn ok(body: &str) -> String {
    answer("200 OK", "application/json", body)
}

pub(super) fn scheme(oauth2: Value) -> AuthScheme {
    let mut flow = json!({ "authorize_url": "https://app.example/agree", "token_url": "https://app.example/token" });
    flow.as_object_mut().unwrap().extend(values(oauth2));
    serde_json::from_value(json!({
        "mode": "OAUTH2", "name": "OAuth", "oauth2": flow, "fields": [{ "name": "site", "title": "Site" }],
        "request": [{ "in": "header", "name": "authorization", "value": "Bearer {access_token}" }],
    }))
    .unwrap()
}

pub(super) fn client() -> Client {
    Client {
        id: "id 1".into(),
        secret: Some("s+cret".to_owned().into()),
        ..Client::default()
    }
}

pub(super) fn values(values: Value) -> Values {
    values.as_object().unwrap().clone()
}

/// Returns the flow of an account at the time of the tests.
fn flow<'a>(
    net: &'a net::Client,
    scheme: &'a AuthScheme,
    client: &'a Client,
    values: &'a Values,
) -> Flow<'a> {
    Flow {
        net,
        now_ms: NOW_MS,
        scheme,
        client,
        values,
    }
}

#[track_caller]
fn assert_malformed<T: fmt::Debug>(result: &Result<T>) {
    assert!(
        matches!(result, Err(Refusal::Malformed { .. })),
        "{result:?}"
    );
}

fn code(verifier: Option<&str>) -> ExchangeParams<'_> {
    ExchangeParams {
        code: "c-1",
        redirect_uri: "https://us.example/back",
        verifier,
        callback: &[],
    }
}

/// Sends one refresh and returns its outcome for one response.
async fn refreshed(about: Value, raw: String) -> (Result<Tokens>, Vec<String>) {
    let application = Application::answering(&[raw]).await;
    let scheme = scheme(about);
    let client = client();
    let values = values(json!({ "refresh_token": "rt-1", "access_token": "at-0" }));
    let flow = flow(&application.net, &scheme, &client, &values);
    (flow.refresh().await, application.seen())
}

async fn refused(raw: String) -> Refusal {
    refreshed(json!({}), raw).await.0.unwrap_err()
}

fn authorized(
    about: Value,
    given: Value,
    verifier: Option<&str>,
    scopes: &[&str],
) -> Result<String> {
    let scheme = scheme(about);
    let client = client();
    let values = values(given);
    let net = net::Client::new(net::Settings::default()).unwrap();
    let flow = flow(&net, &scheme, &client, &values);
    let scopes: Vec<_> = scopes.iter().map(|&scope| scope.to_owned()).collect();
    flow.authorize(AuthorizeParams {
        verifier,
        scopes: &scopes,
        ..AUTHORIZE_PARAMS
    })
    .map(String::from)
}

pub(super) const AUTHORIZE_PARAMS: AuthorizeParams<'static> = AuthorizeParams {
    redirect_uri: "https://us.example/back",
    state: "st",
    verifier: None,
    scopes: &[],
    user_scopes: &[],
};

#[tokio::test]
async fn token_response_may_begin_with_a_mark() {
    let (tokens, _) = refreshed(json!({}), ok(&format!("\u{feff}{TOKEN_RESPONSE}"))).await;
    assert_eq!(tokens.unwrap().values["access_token"], "at-1");
}

/// The example of RFC 7636, appendix B.
#[test]
fn the_challenge_is_the_one_of_the_standard() {
    let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    assert_eq!(
        challenge(verifier),
        "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    );
}

#[test]
fn authorization_url_has_all_parameters() {
    let about = json!({
        "authorize_url": "https://app.example/agree?tenant={site}", "scopes": ["a", "b"], "authorize_params": { "prompt": "consent" },
    });
    let url = authorized(about, json!({ "site": "x&y" }), Some("v"), &["b", "c d"]).unwrap();
    let expected = format!(
        "https://app.example/agree?tenant=x%26y&response_type=code&client_id=id%201&\
         redirect_uri=https%3A%2F%2Fus.example%2Fback&state=st&scope=a%20b%20c%20d&code_challenge={}&\
         code_challenge_method=S256&prompt=consent",
        challenge("v")
    );
    assert_eq!(url, expected);
}

#[test]
fn scopes_are_joined_with_the_separator() {
    let scope = |separator: &str| {
        let url = authorized(
            json!({ "scope_separator": separator }),
            json!({}),
            None,
            &["a:x", "b"],
        )
        .unwrap();
        url.split('&')
            .find_map(|pair| pair.strip_prefix("scope=").map(str::to_owned))
            .unwrap()
    };
    assert_eq!(
        (scope(","), scope("+"), scope(" ")),
        ("a%3Ax%2Cb".into(), "a%3Ax+b".into(), "a%3Ax%20b".into())
    );
    assert!(
        !authorized(json!({}), json!({}), None, &[])
            .unwrap()
            .contains("scope=")
    );
}

#[test]
fn user_scopes_have_their_own_parameter() {
    let net = net::Client::new(net::Settings::default()).unwrap();
    let scheme = scheme(json!({
        "scopes": ["bot"], "scope_separator": ",", "authorize_params": { "user_scope": "usual", "team": "t" },
    }));
    let flow = Flow {
        net: &net,
        now_ms: NOW_MS,
        scheme: &scheme,
        client: &client(),
        values: &Values::new(),
    };
    let asked = |user_scopes: &[String]| {
        String::from(
            flow.authorize(AuthorizeParams {
                user_scopes,
                ..AUTHORIZE_PARAMS
            })
            .unwrap(),
        )
    };
    let scopes = ["search:read".to_owned(), "chat".to_owned()];
    assert!(
        asked(&scopes).contains("&scope=bot&user_scope=search%3Aread%2Cchat&"),
        "{}",
        asked(&scopes)
    );
    assert!(
        !asked(&scopes).contains("usual") && asked(&scopes).ends_with("&team=t"),
        "{}",
        asked(&scopes)
    );
    assert!(
        asked(&[]).ends_with("&team=t&user_scope=usual"),
        "{}",
        asked(&[])
    );
}

#[test]
fn without_proof_key_no_challenge_is_sent() {
    let url = authorized(json!({ "pkce": false }), json!({}), Some("v"), &[]).unwrap();
    assert!(!url.contains("code_challenge"), "{url}");
}

#[test]
fn fields_cannot_change_the_host() {
    let about = || json!({ "authorize_url": "https://{site}.app.example/agree" });
    assert!(
        authorized(about(), json!({ "site": "north" }), None, &[])
            .unwrap()
            .starts_with("https://north.app.example/")
    );
    for site in [
        "evil.example/",
        "evil.example#",
        "evil.example?",
        "a@evil.example:443/",
        "evil.example\\",
        "",
        ".",
    ] {
        let refused = authorized(about(), json!({ "site": site }), None, &[]).unwrap_err();
        assert!(
            matches!(refused, Refusal::Unsent { .. }),
            "{site}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn a_code_becomes_tokens() {
    let application = Application::answering(&[ok(TOKEN_RESPONSE)]).await;
    let scheme = scheme(json!({}));
    let client = client();
    let values = Values::new();
    let flow = flow(&application.net, &scheme, &client, &values);
    let tokens = flow.exchange(code(Some("v-1"))).await.unwrap();
    assert_eq!(
        Value::Object(tokens.values.clone()),
        serde_json::from_str::<Value>(TOKEN_RESPONSE).unwrap()
    );
    assert_eq!(tokens.expires_at_ms, Some(NOW_MS + 3_600_000));
    assert!(
        !format!("{tokens:?}").contains("at-1"),
        "tokens do not print"
    );
    let request = &application.seen()[0];
    assert!(request.starts_with("POST /token HTTP/1.1\r\n"), "{request}");
    assert!(request.ends_with(
        "\r\n\r\ngrant_type=authorization_code&code=c-1&redirect_uri=https%3A%2F%2Fus.example%2Fback&code_verifier=v-1&\
         client_id=id%201&client_secret=s%2Bcret"
    ));
}

#[tokio::test]
async fn a_form_in_place_of_json_is_read() {
    let raw = answer(
        "200 OK",
        "application/x-www-form-urlencoded",
        "access_token=a%2B1&scope=repo%2Cuser&token_type=bearer",
    );
    let tokens = refreshed(json!({}), raw).await.0.unwrap();
    assert_eq!(
        Value::Object(tokens.values),
        json!({ "access_token": "a+1", "scope": "repo,user", "token_type": "bearer" })
    );
}

#[tokio::test]
async fn refusals_outages_and_malformed_responses_differ() {
    let json = |status: &str, body: &str| answer(status, "application/json", body);
    let denied = [
        json(
            "400 Bad Request",
            r#"{"error":"invalid_grant","error_description":"Token rt-1 was\nrevoked."}"#,
        ),
        json("200 OK", r#"{"ok":false,"error":"invalid_refresh_token"}"#),
        json(
            "400 Bad Request",
            r#"{"error":{"type":"OAuthException","message":"Expired."}}"#,
        ),
        json("401 Unauthorized", r#"{"message":"Invalid token"}"#),
        answer(
            "200 OK",
            "text/plain",
            "error=bad_refresh_token&error_description=gone",
        ),
    ];
    for raw in denied {
        let refusal = refused(raw.clone()).await;
        assert!(
            matches!(refusal, Refusal::Denied { .. }) && refusal.ends_account(),
            "{raw}: {refusal:?}"
        );
    }
    for raw in [
        json("500 Internal Server Error", r#"{"error":"invalid_grant"}"#),
        json("429 Too Many Requests", "{}"),
        json("400 Bad Request", r#"{"error":"temporarily_unavailable"}"#),
        json("503 Service Unavailable", "<html>"),
        answer("502 Bad Gateway", "text/html", "<html>"),
    ] {
        let refusal = refused(raw.clone()).await;
        assert!(
            matches!(refusal, Refusal::Unavailable { .. }),
            "{raw}: {refusal:?}"
        );
        assert_eq!(refusal.may_have_issued(), raw.contains("502"), "{raw}");
    }
    for raw in [
        answer("200 OK", "text/html", "<html>access_token=a</html>"),
        answer("403 Forbidden", "text/html", "<html>blocked</html>"),
        json("404 Not Found", r#"{"error":"not_found"}"#),
        answer(
            "302 Found\r\nlocation: https://evil.example/",
            "text/plain",
            "",
        ),
        json("200 OK", "{}"),
        json("200 OK", r#"{"access_token":""}"#),
        json("200 OK", r#"{"access_token":12345}"#),
        json("200 OK", r#"{"access_token":true}"#),
        json("200 OK", r#"{"access_token":["a"]}"#),
        json("200 OK", r#"{"access_token":"a","refresh_token":7}"#),
        json("200 OK", r#"{"access_token":"a\nb"}"#),
        json("200 OK", r#"{"access_token":"a","token_type":"DPoP"}"#),
        json("200 OK", r#"["access_token"]"#),
        json("200 OK", r#"{"access_token":"#),
        json(
            "200 OK",
            &format!(r#"{{"access_token":"{}"}}"#, "a".repeat(1 << 20)),
        ),
    ] {
        let refusal = refused(raw.clone()).await;
        assert!(
            matches!(refusal, Refusal::Malformed { .. }),
            "{}: {refusal:?}",
            &raw[..raw.len().min(200)]
        );
        let is_success = raw.contains("200 OK");
        assert_eq!(refusal.may_have_issued(), is_success, "{refusal:?}");
    }
}

#[tokio::test]
async fn refused_client_does_not_end_the_account() {
    let refusal = refused(answer(
        "401 Unauthorized",
        "application/json",
        r#"{"error":"invalid_client"}"#,
    ))
    .await;
    assert!(
        matches!(refusal, Refusal::Denied { .. }) && !refusal.ends_account(),
        "{refusal:?}"
    );
}

#[tokio::test]
async fn provider_errors_are_shown_without_secrets() {
    let body = r#"{"error":"invalid_grant","error_description":"rt-1 of at-0 with s+cret\nis\u0000 over"}"#;
    let refusal = refused(answer("400 Bad Request", "application/json", body)).await;
    let text = refusal.to_string();
    assert_eq!(
        text,
        "the provider refused: invalid_grant: […] of […] with […] is over"
    );
    assert!(
        !format!("{:?}", client()).contains("cret"),
        "a client does not print its secret"
    );
}

#[tokio::test]
async fn provider_retry_delay_is_respected() {
    for (stated, seconds) in [
        ("17", 17),
        ("Thu, 01 Jan 2026 00:01:00 GMT", 60),
        ("9999999", net::MAX_RETRY_AFTER.as_secs()),
    ] {
        let status = format!("429 Too Many Requests\r\nretry-after: {stated}");
        let refusal = refused(answer(&status, "text/plain", "")).await;
        let Refusal::Unavailable { retry_after, .. } = refusal else {
            panic!("{refusal:?}")
        };
        assert_eq!(retry_after, Some(Duration::from_secs(seconds)));
    }
}

#[tokio::test]
async fn connection_failure_and_missing_token_differ() {
    let scheme = scheme(json!({}));
    let client = client();
    let none = Values::new();
    let nowhere = net::Rewrite {
        from: "https://app.example".parse().unwrap(),
        to: "http://127.0.0.1:1".parse().unwrap(),
    };
    let net = net::Client::new(net::Settings {
        rewrite: vec![nowhere],
        ..net::Settings::default()
    })
    .unwrap();
    let flow = flow(&net, &scheme, &client, &none);
    assert!(matches!(flow.refresh().await, Err(Refusal::Unsent { .. })));
    assert!(matches!(
        flow.exchange(code(None)).await,
        Err(Refusal::Unavailable { .. })
    ));
}

mod discovered;
mod oauth1;
mod quirks;
mod schemes;
