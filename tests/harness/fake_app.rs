//! A fake provider on loopback with configurable misbehavior.
//!
//! The path selects the behavior: `/{behavior}/{tag}/…`. The tag belongs to one test, so that many
//! tests share one provider and each sees its own requests.

use std::{
    collections::{BTreeMap, HashMap},
    convert::Infallible,
    future,
    io::{self, Read},
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use base64::Engine;
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::{
    Issuer, Provider,
    client::{RawResponse, http},
    loopback, wait_until,
};

/// Host names under which the shared server reaches the provider.
pub const FAKE_APP_HOSTS: [&str; 3] = ["api.example.com", "other.example.com", "files.example.net"];

/// A running fake provider. It ends with the process.
#[derive(Debug, Clone)]
pub struct FakeApp {
    /// `http://127.0.0.1:port`
    pub origin: String,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    seen: Mutex<Vec<ReceivedRequest>>,
    /// Paths of requests whose connection was closed before they were answered.
    abandoned: Mutex<Vec<String>>,
    issuers: Mutex<BTreeMap<String, Issuer>>,
    providers: Mutex<BTreeMap<String, Provider>>,
}

/// A received request.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    pub method: String,
    pub path: String,
    pub query: String,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl FakeApp {
    /// Starts a provider on a free port.
    pub fn start() -> Self {
        let shared = Arc::new(Shared::default());
        Self {
            origin: loopback::serve(router(Arc::clone(&shared))),
            shared,
        }
    }

    /// Returns the authorization server of a tag, created on first use.
    pub fn issuer(&self, tag: &str) -> Issuer {
        let mut issuers = self.shared.issuers.lock();
        issuers
            .entry(tag.to_owned())
            .or_insert_with(|| Issuer::new(&self.origin, tag))
            .clone()
    }

    /// Returns the OAuth 1.0 provider of a tag, created on first use.
    pub fn provider(&self, tag: &str) -> Provider {
        let mut providers = self.shared.providers.lock();
        providers
            .entry(tag.to_owned())
            .or_insert_with(|| Provider::new(&self.origin, tag))
            .clone()
    }

    /// Returns the address of a language model that gives these responses in order and then repeats
    /// the last one. Its requests are recorded under the tag.
    pub fn model(&self, tag: &str, answers: &[&str]) -> String {
        let answers = hex::encode(json!(answers).to_string());
        format!("{}/llm/{tag}/{answers}", self.origin)
    }

    /// Returns the path below which a response has these headers and this body.
    pub fn said(tag: &str, headers: &Value, body: &[u8]) -> String {
        let headers = hex::encode(headers.to_string());
        format!("/said/{tag}/{headers}/{}", hex::encode(body))
    }

    /// Returns the number of requests with this tag whose connection was closed before the
    /// response.
    fn abandoned(&self, tag: &str) -> usize {
        let all = self.shared.abandoned.lock();
        all.iter().filter(|path| has_tag(path, tag)).count()
    }

    /// Waits for this number of requests with a tag whose connection is closed before the response.
    pub async fn wait_for_abandoned(&self, tag: &str, count: usize) {
        wait_until("connections are closed", async || {
            self.abandoned(tag) == count
        })
        .await;
    }

    /// Waits for this number of requests with a tag.
    pub async fn wait_for_requests(&self, tag: &str, count: usize) {
        wait_until("the provider is asked", async || {
            self.seen(tag).len() >= count
        })
        .await;
    }

    /// Returns the requests with this tag, oldest first.
    pub fn seen(&self, tag: &str) -> Vec<ReceivedRequest> {
        let all = self.shared.seen.lock();
        let tagged = all.iter().filter(|seen| has_tag(&seen.path, tag));
        tagged.cloned().collect()
    }

    /// Returns the number of requests with this tag to paths with this end.
    pub fn asked(&self, tag: &str, end: &str) -> usize {
        let seen = self.seen(tag);
        seen.iter().filter(|seen| seen.path.ends_with(end)).count()
    }
}

fn has_tag(path: &str, tag: &str) -> bool {
    path.split('/').any(|part| part == tag)
}

impl ReceivedRequest {
    /// Returns the value of a header; empty if it is absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    fn as_json(&self) -> Value {
        let body = String::from_utf8_lossy(&self.body);
        json!({ "method": self.method, "path": self.path, "query": self.query, "headers": self.headers, "body": body })
    }

    /// Returns everything received, in the encodings in which a provider may reflect it.
    fn reflections(&self) -> Value {
        let pairs = self.query.split('&');
        let values = self.headers.values().map(String::as_str);
        // The part after `Bearer ` or `name=` is also reflected alone.
        let words = values.clone().filter_map(|value| value.split_once(' '));
        let parameters = pairs.clone().filter_map(|pair| pair.split_once('='));
        let bare = words.chain(parameters).map(|(_, value)| value);
        let whole = values.chain(pairs).chain([self.path.as_str()]);
        let found: Vec<&str> = whole.chain(bare).collect();
        let base64 = |engine: &base64::engine::GeneralPurpose| -> Vec<_> {
            // A provider may put any prefix before the value, so all three base64 alignments are
            // included.
            (0..3)
                .flat_map(|pad| {
                    found
                        .iter()
                        .map(move |value| engine.encode(format!("{}{value}", &"xy"[..pad.min(2)])))
                })
                .collect()
        };
        json!({
            "raw": found,
            "base64": base64(&base64::engine::general_purpose::STANDARD),
            "base64_url": base64(&base64::engine::general_purpose::URL_SAFE_NO_PAD),
            "percent": found.iter().map(|value| percent(value)).collect::<Vec<_>>(),
            "escaped": found.iter().map(|value| json!(value).to_string()).collect::<Vec<_>>(),
        })
    }
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .fallback(answer)
        .layer(DefaultBodyLimit::disable())
        .with_state(shared)
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let headers = headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.to_string(), value)
    });
    let seen = ReceivedRequest {
        method: method.to_string(),
        path: uri.path().to_owned(),
        query: uri.query().unwrap_or_default().to_owned(),
        headers: headers.collect(),
        body: body.to_vec(),
    };
    let before = shared.note(&seen);
    let parts: Vec<_> = seen.path.split('/').skip(1).collect();
    let part = |index: usize| parts.get(index).copied().unwrap_or_default();
    let issuer = |tag: &str| shared.issuers.lock().get(tag).cloned();
    let hex = |index: usize| hex::decode(part(index)).unwrap_or_default();
    let status = |text: &str| StatusCode::from_bytes(text.as_bytes()).ok();
    let number = part(2).parse::<usize>().unwrap_or(0);
    let filler = |length| "x".repeat(length);
    match part(0) {
        "oauth" => match issuer(part(1)) {
            Some(issuer) => issuer.answer(&seen).await,
            None => StatusCode::NOT_FOUND.into_response(),
        },
        ".well-known" => match (issuer(part(3)), part(1), part(4)) {
            (Some(issuer), "oauth-authorization-server", "") => issuer.metadata(false),
            (Some(issuer), "oauth-protected-resource", "api") => issuer.metadata(true),
            _ => StatusCode::NOT_FOUND.into_response(),
        },
        "oauth1" => match shared.providers.lock().get(part(1)) {
            Some(provider) => provider.answer(&seen),
            None => StatusCode::NOT_FOUND.into_response(),
        },
        // The path holds the headers as JSON and the body, both in hexadecimal.
        "said" => {
            let said: HashMap<String, String> = serde_json::from_slice(&hex(2)).unwrap_or_default();
            let headers: HeaderMap = HeaderMap::try_from(&said).expect("the test names headers");
            (headers, Body::from(hex(3))).into_response()
        }
        "leak" => {
            let credential = seen.header("authorization").to_owned();
            let mut leaked = seen.reflections();
            leaked["filler"] = filler(number).into();
            let encoded = ("x-encoded", percent(&credential));
            let headers = [("x-credential", credential), encoded];
            (headers, leaked.to_string()).into_response()
        }
        "status" => {
            let status = status(part(2)).unwrap_or(StatusCode::OK);
            (status, r#"{"message":"as asked"}"#).into_response()
        }
        "slow" => {
            tokio::time::sleep(Duration::from_millis(number as u64)).await;
            seen.as_json().to_string().into_response()
        }
        "hangonce" if before > 0 => seen.as_json().to_string().into_response(),
        "hang" | "hangonce" => {
            let _noted = Hanging {
                shared: &shared,
                path: &seen.path,
            };
            future::pending().await
        }
        "encoded" => ([(header::CONTENT_ENCODING, "br")], "not searched").into_response(),
        "typed" => {
            let media_type = seen.header("authorization").replace(' ', "/");
            ([(header::CONTENT_TYPE, media_type)], "typed").into_response()
        }
        kind if kind.starts_with("redirect") => {
            let to = seen.query.trim_start_matches("to=").to_owned();
            let status = status(kind.trim_start_matches("redirect"));
            let status = status.unwrap_or(StatusCode::FOUND);
            (status, [(header::LOCATION, to)], "{}").into_response()
        }
        "big" => {
            let filled = json!({ "filler": filler(number) });
            filled.to_string().into_response()
        }
        "bytes" => {
            let bytes: Vec<u8> = (0..number).map(|number| (number % 256) as u8).collect();
            ([(header::CONTENT_TYPE, "application/x-bytes")], bytes).into_response()
        }
        "bomb" => {
            let bomb = Body::from(gzip_of_spaces(64 << 20));
            ([(header::CONTENT_ENCODING, "gzip")], bomb).into_response()
        }
        kind if before == 0 && kind.starts_with("once") => {
            let status = status(kind.trim_start_matches("once"));
            (status.unwrap_or(StatusCode::OK), "{}").into_response()
        }
        "limited" => {
            let wait = [(header::RETRY_AFTER, "7")];
            (StatusCode::TOO_MANY_REQUESTS, wait, "{}").into_response()
        }
        "llm" => {
            let answers: Vec<String> = serde_json::from_slice(&hex(2)).unwrap_or_default();
            let content = answers.get(before).or(answers.last());
            let choice = json!({ "message": { "role": "assistant", "content": content }, "finish_reason": "stop" });
            let usage = json!({ "prompt_tokens": 11, "completion_tokens": 7 });
            let answer = json!({ "choices": [choice], "usage": usage });
            answer.to_string().into_response()
        }
        "mcp" => mcp_response(Arc::clone(&shared), &seen, before),
        "list" => {
            let page = seen.query.strip_prefix("page=");
            let page = page.and_then(|page| page.parse().ok()).unwrap_or(1_u64);
            let next = (page < 3).then_some(page + 1);
            let list = json!({ "items": [page * 10, page * 10 + 1], "next": next });
            list.to_string().into_response()
        }
        _ => seen.as_json().to_string().into_response(),
    }
}

/// Responds as a Model Context Protocol server. The result of a call is its argument `result`. All
/// results but the first of a session come in a stream that starts with a `ping`, continues when
/// the reply has come, and stays open. The list of tools repeats its cursor.
fn mcp_response(shared: Arc<Shared>, seen: &ReceivedRequest, before: usize) -> Response {
    let message: Value = serde_json::from_slice(&seen.body).unwrap_or_default();
    let response =
        |result: Value| json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
    let result = match message["method"].as_str() {
        Some("initialize") => {
            let greeting =
                json!({ "protocolVersion": "2025-06-18", "serverInfo": { "name": "fake" } });
            return response(greeting).to_string().into_response();
        }
        Some("tools/list") => {
            let schema = json!({ "type": "object", "additionalProperties": true });
            let tool = json!({ "name": "go", "inputSchema": schema });
            json!({ "tools": [tool], "nextCursor": "again" })
        }
        Some("tools/call") => message["params"]["arguments"]["result"].clone(),
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    let id = format!("ping-{before}");
    let ping = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
    let reply = json!({ "jsonrpc": "2.0", "id": id, "result": {} });
    let (path, response) = (seen.path.clone(), response(result));
    let event = |message: &Value| Ok::<_, Infallible>(format!("data: {message}\n\n"));
    let ping = stream::once(future::ready(event(&ping)));
    let response = event(&response);
    let answered = stream::once(async move {
        while !shared.has_received(&path, &reply) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        response
    });
    let events = ping.chain(answered).chain(stream::pending());
    let media_type = [(header::CONTENT_TYPE, "Text/Event-Stream")];
    (media_type, Body::from_stream(events)).into_response()
}

impl Shared {
    /// Records a request. Returns the number of earlier requests to its path.
    fn note(&self, seen: &ReceivedRequest) -> usize {
        let mut all = self.seen.lock();
        let earlier = all.iter().filter(|earlier| earlier.path == seen.path);
        let before = earlier.count();
        all.push(seen.clone());
        before
    }

    fn has_received(&self, path: &str, body: &Value) -> bool {
        let seen = self.seen.lock();
        seen.iter().any(|seen| {
            seen.path == path
                && serde_json::from_slice::<Value>(&seen.body).ok().as_ref() == Some(body)
        })
    }
}

/// A request that never receives a response.
struct Hanging<'a> {
    shared: &'a Shared,
    path: &'a str,
}

impl Drop for Hanging<'_> {
    fn drop(&mut self) {
        self.shared.abandoned.lock().push(self.path.to_owned());
    }
}

/// Parses a query or a form.
pub(crate) fn pairs<C: FromIterator<(String, String)>>(form: &[u8]) -> C {
    form_urlencoded::parse(form).into_owned().collect()
}

/// Opens an address below `own` at a fake provider as a browser does. Returns the redirect target.
pub(crate) async fn visit(origin: &str, own: &str, url: &str) -> String {
    assert!(url.starts_with(own), "{url} is not below {own}");
    let path = &url["https://".len() + FAKE_APP_HOSTS[0].len()..];
    let page = RawResponse::receive(http().get(format!("{origin}{path}"))).await;
    assert!(page.status == 302, "{url} answered {}", page.text());
    page.header("location").to_owned()
}

/// Percent-encodes every byte except letters and digits.
pub fn percent(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// Returns a number of spaces as a gzip file, which is far smaller.
pub fn gzip_of_spaces(length: usize) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let mut spaces = io::repeat(b' ').take(length as u64);
    let copied = io::copy(&mut spaces, &mut encoder);
    copied.expect("writing to memory does not fail");
    encoder.finish().expect("writing to memory does not fail")
}
