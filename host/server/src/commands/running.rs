//! Client for the API of a running server, used by the operator's commands.

mod target;

use std::time::Duration;

use anyhow::{Context, anyhow};
use bytes::Bytes;
use manifest::did_you_mean;
use net::{Body, ErrorKind, HeaderMap, Limits, Method, Request, StatusCode, StreamedResponse};
use serde_json::Value;
use url::form_urlencoded::byte_serialize;
use zeroize::Zeroizing;

pub(super) use self::target::{ProjectArgs, ServerArgs};
use crate::open::Stop;

/// Timeout of a request. It is long because the server compiles components before it responds.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(180);
/// Maximum size of a response, in bytes.
const MAX_RESPONSE_BYTES: u64 = 64 << 20;
/// Maximum size of the response that refuses a stream, in bytes.
const MAX_REFUSAL_BYTES: usize = 64 << 10;
/// Number of items in one request.
const PAGE_ITEMS: usize = 500;

/// A running server, and a key to it.
pub(super) struct Running {
    client: net::Client,
    url: String,
    header: &'static str,
    key: Zeroizing<String>,
}

/// A stream that the server did not open.
pub(super) struct Unopened {
    pub(super) stop: Stop,
    /// True if a later attempt may succeed.
    pub(super) transient: bool,
}

impl Running {
    /// Sends JSON and returns the JSON response.
    pub(super) async fn send_json(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Value, Stop> {
        let body = Body::Bytes(body.to_string().into());
        let (_, response) = self.send(method, path, body, None).await?;
        Ok(self.parse(&response)?)
    }

    /// Returns the JSON of a response.
    pub(super) fn parse(&self, response: &[u8]) -> anyhow::Result<Value> {
        serde_json::from_slice(response)
            .with_context(|| format!("the response of the server at {} is not JSON", self.url))
    }

    /// Deletes an object.
    pub(super) async fn delete(&self, path: &str) -> Result<(), Stop> {
        self.send(Method::DELETE, path, Body::Empty, None).await?;
        Ok(())
    }

    /// Returns the items of a list without cursors.
    pub(super) async fn items(&self, path: &str) -> Result<Vec<Value>, Stop> {
        Ok(self.page(path, "items").await?.0)
    }

    /// Returns the items of a page, and the cursor of the next one.
    async fn page(&self, path: &str, items: &str) -> Result<(Vec<Value>, Option<String>), Stop> {
        let (_, response) = self.send(Method::GET, path, Body::Empty, None).await?;
        let mut page = self.parse(&response)?;
        let items = page[items].as_array_mut().map(std::mem::take);
        let next = page["next_cursor"].as_str().map(str::to_owned);
        Ok((items.unwrap_or_default(), next))
    }

    /// Returns every item of a list that has cursors.
    pub(super) async fn all(&self, path: &str, items: &str) -> Result<Vec<Value>, Stop> {
        let mut all = Vec::new();
        let mut cursor = String::new();
        loop {
            let path = format!("{path}?limit={PAGE_ITEMS}{cursor}");
            let (mut page, next) = self.page(&path, items).await?;
            all.append(&mut page);
            let Some(next) = next else { return Ok(all) };
            let next: String = byte_serialize(next.as_bytes()).collect();
            cursor = format!("&cursor={next}");
        }
    }

    /// Returns the projects of the organization, newest first.
    pub(super) async fn projects(&self) -> Result<Vec<Value>, Stop> {
        self.all("org/owner/project/list", "data").await
    }

    /// Returns the id of a project, given its id or name.
    pub(super) async fn project(&self, given: &str) -> Result<String, Stop> {
        let all = self.projects().await?;
        let found = all
            .iter()
            .find(|project| project["id"] == given || project["name"] == given);
        let id = found.and_then(|project| project["id"].as_str());
        let names = all.iter().map(|project| text(project, "name"));
        Ok(id
            .with_context(|| {
                let similar = did_you_mean(given, names);
                format!("project `{given}` does not exist{similar}")
            })?
            .to_owned())
    }

    /// Sends a request below the API's prefix, with one more header. Returns status and body of a
    /// success.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Body,
        more: Option<(&'static str, String)>,
    ) -> Result<(u16, Bytes), Stop> {
        let request = self.request(method, path, body, more)?;
        let sent = self.client.send(request).await;
        let response = sent.map_err(|cause| self.unreachable(&cause))?;
        if response.status.is_success() {
            return Ok((response.status.as_u16(), response.body));
        }
        Err(self.refused(response.status, &response.body))
    }

    /// Opens a stream below the API's prefix, with one more header. It fails if the server sends
    /// nothing for `idle_timeout`.
    pub(super) async fn open(
        &self,
        path: &str,
        more: Option<(&'static str, String)>,
        idle_timeout: Duration,
    ) -> Result<StreamedResponse, Unopened> {
        let request = self
            .request(Method::GET, path, Body::Empty, more)
            .map_err(|cause| Unopened {
                stop: cause.into(),
                transient: false,
            })?;
        let sent = self.client.open(request, idle_timeout).await;
        let mut response = sent.map_err(|cause| Unopened {
            stop: self.unreachable(&cause).into(),
            transient: true,
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let mut body = Vec::new();
        while let Ok(Some(piece)) = response.next_piece().await
            && body.len() < MAX_REFUSAL_BYTES
        {
            body.extend_from_slice(&piece);
        }
        Err(Unopened {
            stop: self.refused(status, &body),
            transient: status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS,
        })
    }

    /// Sends a message to a path outside of the API's prefix, and returns the response of any
    /// status. It fails if the server sends nothing for `idle_timeout`.
    pub(super) async fn post(
        &self,
        path: &str,
        headers: Vec<(&'static str, String)>,
        body: String,
        idle_timeout: Duration,
    ) -> anyhow::Result<StreamedResponse> {
        let url = format!("{}/{path}", self.url);
        let body = Body::Bytes(body.into());
        let mut request = self.request_to(Method::POST, url, body, headers)?;
        request.limits.first_byte = idle_timeout;
        let sent = self.client.open(request, idle_timeout).await;
        sent.map_err(|cause| self.unreachable(&cause))
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Body,
        more: Option<(&'static str, String)>,
    ) -> anyhow::Result<Request> {
        let url = format!("{}/api/v3.1/{path}", self.url);
        self.request_to(method, url, body, more)
    }

    fn request_to(
        &self,
        method: Method,
        url: String,
        body: Body,
        more: impl IntoIterator<Item = (&'static str, String)>,
    ) -> anyhow::Result<Request> {
        let mut headers = HeaderMap::new();
        let value = |text: &str| {
            text.parse().with_context(|| {
                format!("the key or the signature for {url} cannot be sent in a header")
            })
        };
        headers.insert(self.header, value(&self.key)?);
        for (name, text) in more {
            headers.insert(name, value(&text)?);
        }
        let url = url
            .parse()
            .with_context(|| format!("`{url}` is not a URL"))?;
        Ok(Request {
            method,
            url,
            headers,
            body,
            limits: Limits::within(REQUEST_TIMEOUT, MAX_RESPONSE_BYTES),
        })
    }

    fn unreachable(&self, cause: &net::Error) -> anyhow::Error {
        let remedy = match cause.kind {
            ErrorKind::Connect | ErrorKind::Dns => {
                "; `toolhost serve` starts a server, --url names another"
            }
            _ => "",
        };
        anyhow!(
            "the request to the server at {} failed: {}{remedy}",
            self.url,
            cause.message
        )
    }

    /// Returns the refusal in a response of the server.
    fn refused(&self, status: StatusCode, body: &[u8]) -> Stop {
        let status = status.as_u16();
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let error = &body["error"];
        let listed = error["errors"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let message = match text(error, "message") {
            "" => format!("the server at {} responded with status {status}", self.url),
            message => message.to_owned(),
        };
        refusal(&message, listed, text(error, "suggested_fix"))
    }
}

/// Checks an id before it becomes part of a path. `kind` says what it identifies.
pub(super) fn check_id(id: &str, kind: &str) -> Result<(), Stop> {
    let is_plain = id
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if is_plain {
        return Ok(());
    }
    Err(anyhow!("`{id}` is not the id of {kind}").into())
}

/// Returns a string property of an object; empty if it is missing.
pub(super) fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object[name].as_str().unwrap_or_default()
}

/// Formats an API error with all its details, one per line.
pub(super) fn refusal<'a>(
    message: &'a str,
    problems: impl Iterator<Item = &'a str>,
    fix: &'a str,
) -> Stop {
    // The message of an error with one problem ends with it.
    let further = problems.filter(|problem| !message.ends_with(*problem));
    let lines: Vec<&str> = std::iter::once(message)
        .chain(further)
        .chain(specific_fix(fix))
        .collect();
    anyhow!(lines.join("\n  ")).into()
}

/// Returns what a suggested fix says in addition to the advice to correct the problems, if it says more.
pub(super) fn specific_fix(fix: &str) -> Option<&str> {
    let specific = fix.strip_prefix("correct the problems that the error lists");
    let specific = specific.map_or(fix, |rest| rest.trim_start_matches([';', ',', ' ']));
    (!specific.is_empty()).then_some(specific)
}
