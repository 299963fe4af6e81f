//! A client of the API with shortcuts for tests.

use std::ops::Index;

use reqwest::{Method, RequestBuilder, header::HeaderMap};
use serde_json::{Value, json};

use crate::{event_reader::EventReader, hunt, wait_until};

/// Client of one server with one key. Cheap to clone. It asserts that no response contains a secret
/// of the tests or the client's own key.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    url: String,
    prefix: &'static str,
    key: Option<(&'static str, String)>,
    shows_secrets: bool,
}

/// Response of the server.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    /// Response body as text.
    pub text: String,
    /// Response body as JSON; null if it is not JSON.
    pub json: Value,
}

/// Response of an address outside the API.
#[derive(Debug, Clone)]
pub struct RawResponse {
    pub status: u16,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
}

/// Body of a request.
#[derive(Debug, Clone)]
pub enum Body {
    None,
    Json(Value),
    /// Media type and bytes, sent unchanged.
    Raw(&'static str, Vec<u8>),
}

/// Returns a client for servers on this machine, which follows no redirects. They speak plain HTTP, so
/// the certificate authorities of the machine are not loaded, which takes longer than most requests.
#[expect(
    clippy::disallowed_methods,
    reason = "the tests are the client, not the server"
)]
pub(crate) fn http() -> reqwest::Client {
    let builder = reqwest::Client::builder().no_proxy().tls_certs_only([]);
    let builder = builder.redirect(reqwest::redirect::Policy::none());
    let client = builder.read_timeout(crate::BUILD_TIMEOUT).build();
    client.expect("a client without options can be built")
}

impl Client {
    /// Creates a client of the server at an address, with the header of a key and its value.
    pub fn new(url: &str, key: Option<(&'static str, &str)>) -> Self {
        let key = key.map(|(name, key)| (name, key.to_owned()));
        Self {
            http: http(),
            url: url.to_owned(),
            prefix: "/api/v3",
            key,
            shows_secrets: false,
        }
    }

    /// Returns the same client for responses that may contain secrets. The argument states the
    /// reason.
    pub fn may_show_secrets(mut self, _why: &str) -> Self {
        self.shows_secrets = true;
        self
    }

    fn assert_no_secret(&self, what: &str, headers: &HeaderMap, body: &[u8]) {
        if self.shows_secrets {
            return;
        }
        for text in headers.values().map(|value| value.as_bytes()).chain([body]) {
            hunt::assert_none(&format!("the answer to {what}"), text);
        }
        let body = String::from_utf8_lossy(body);
        assert!(
            self.key().len() < 16 || !body.contains(self.key()),
            "the answer to {what} holds the client's key: {body}"
        );
    }

    /// Returns the same client under the newer prefix.
    pub fn with_newer_prefix(mut self) -> Self {
        self.prefix = "/api/v3.1";
        self
    }

    /// Returns the address of the server, without a path.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the key of the client; empty without one.
    pub fn key(&self) -> &str {
        self.key.as_ref().map_or("", |(_, key)| key)
    }

    /// Builds a request with the client's key to a path below the prefix.
    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("{}{}{path}", self.url, self.prefix);
        let request = self.http.request(method, url);
        match &self.key {
            Some((name, key)) => request.header(*name, key),
            None => request,
        }
    }

    /// Sends a request with additional headers to a path below the prefix.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        body: Body,
        headers: &[(&str, &str)],
    ) -> Answer {
        self.try_send(method, path, body, headers)
            .await
            .expect("the server answers")
    }

    /// Like [`Client::send`], for a server that may end before it responds.
    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        body: Body,
        headers: &[(&str, &str)],
    ) -> Result<Answer, reqwest::Error> {
        let what = format!("{method} {path}");
        let request = with_headers(self.request(method, path), headers);
        let request = match body {
            Body::None => request,
            Body::Json(value) => request.json(&value),
            Body::Raw(media_type, bytes) => request.header("content-type", media_type).body(bytes),
        };
        let response = request.send().await?;
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let text = response.text().await?;
        self.assert_no_secret(&what, &headers, text.as_bytes());
        let json = serde_json::from_str(&text).unwrap_or(Value::Null);
        Ok(Answer {
            status,
            headers,
            text,
            json,
        })
    }

    /// Opens a stream of server-sent events.
    pub async fn open_stream(&self, path: &str, last_event_id: Option<&str>) -> EventReader {
        let mut request = self.request(Method::GET, path);
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        EventReader::new(request.send().await.expect("the server answers"))
    }

    /// Sends a request to any address, with these headers alone, and opens the stream that answers it.
    pub async fn exchange_stream(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> EventReader {
        let request = with_headers(self.http.request(method, url).body(body), headers);
        EventReader::new(request.send().await.expect("the address answers"))
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, Body::None, &[]).await
    }

    /// Waits until a path can be read, for example what another server has stored.
    pub async fn wait_for(&self, path: &str) {
        wait_until(path, async || self.get(path).await.status == 200).await;
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, Body::Json(body.clone()), &[])
            .await
    }

    pub async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::PATCH, path, Body::Json(body.clone()), &[])
            .await
    }

    pub async fn put_json(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::PUT, path, Body::Json(body.clone()), &[])
            .await
    }

    pub async fn put(&self, path: &str, component: Vec<u8>) -> Answer {
        self.send(
            Method::PUT,
            path,
            Body::Raw("application/wasm", component),
            &[],
        )
        .await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, Body::None, &[]).await
    }

    /// Returns the id of the project whose key the client has.
    pub async fn project_id(&self) -> String {
        let session = self.get("/auth/session/info").await.expect(200);
        let id = session["project"]["nano_id"].as_str();
        id.expect("a project has an id").to_owned()
    }

    /// Executes a tool at its newest version and returns the response.
    pub async fn execute(&self, tool: &str, arguments: Value) -> Answer {
        let body = json!({ "arguments": arguments, "user_id": "default", "version": "latest" });
        self.post(&format!("/tools/execute/{tool}"), &body).await
    }

    /// Connects an account and returns its id. `values` are the fields of the auth scheme.
    pub async fn connect(&self, toolkit: &str, scheme: &str, user: &str, values: Value) -> String {
        let config = self.auth_config(toolkit, scheme, json!({})).await;
        let account = json!({
            "auth_config": { "id": config },
            "connection": { "user_id": user, "state": { "authScheme": scheme, "val": values } },
        });
        let account = self.post("/connected_accounts", &account).await.expect(201);
        assert_eq!(account["status"], "ACTIVE", "{account:?}");
        account["id"]
            .as_str()
            .expect("an account has an id")
            .to_owned()
    }

    /// Creates an auth config of the project's own and returns its id.
    pub async fn auth_config(&self, toolkit: &str, scheme: &str, credentials: Value) -> String {
        let config = json!({
            "toolkit": { "slug": toolkit },
            "auth_config": { "type": "use_custom_auth", "authScheme": scheme, "credentials": credentials },
        });
        let made = self.post("/auth_configs", &config).await.expect(201);
        let id = made["auth_config"]["id"].as_str();
        id.expect("an auth config has an id").to_owned()
    }

    /// Returns the record of an execution by the value of `log_id` in its response.
    pub async fn log(&self, id: &Value) -> Answer {
        let path = format!("/logs/tool_execution/{}", id.as_str().unwrap_or_default());
        self.get(&path).await.expect(200)
    }

    /// Returns a connected account.
    pub async fn account(&self, id: &str) -> Answer {
        let path = format!("/connected_accounts/{id}");
        self.get(&path).await.expect(200)
    }

    /// Connects an account with a new secret key and returns its id.
    pub async fn connect_with_key(&self, toolkit: &str, user: &str) -> String {
        let values = json!({ "api_key": hunt::secret() });
        self.connect(toolkit, "API_KEY", user, values).await
    }

    /// Sends bytes to an address outside the API, for example to a link, with only these headers.
    pub async fn exchange(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> RawResponse {
        let what = format!("{method} {url}");
        let request = with_headers(self.http.request(method, url).body(body), headers);
        let response = RawResponse::receive(request).await;
        self.assert_no_secret(&what, &response.headers, &response.bytes);
        response
    }

    /// Returns the status of a path outside the prefixes, or `None` if the server does not respond.
    pub async fn try_get_root(&self, path: &str) -> Option<u16> {
        let answer = self
            .http
            .get(format!("{}{path}", self.url))
            .send()
            .await
            .ok()?;
        Some(answer.status().as_u16())
    }

    /// Writes bytes to the server's socket and reads until the server closes the connection.
    pub async fn raw(&self, request: &[u8]) -> String {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let address = self.url.trim_start_matches("http://");
        let mut socket = tokio::net::TcpStream::connect(address)
            .await
            .expect("the server listens");
        // The server may refuse the request before it has read all of it. Its response can still be
        // read.
        socket.write_all(request).await.ok();
        let mut answer = Vec::new();
        let read = socket.read_to_end(&mut answer);
        tokio::time::timeout(crate::CONDITION_TIMEOUT, read)
            .await
            .expect("the server closes the connection")
            .ok();
        self.assert_no_secret("what was written to the socket", &HeaderMap::new(), &answer);
        String::from_utf8_lossy(&answer).into_owned()
    }
}

fn with_headers(mut request: RequestBuilder, headers: &[(&str, &str)]) -> RequestBuilder {
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request
}

impl RawResponse {
    /// Sends a request and reads its response.
    pub(crate) async fn receive(request: RequestBuilder) -> Self {
        let response = request.send().await.expect("the address answers");
        Self {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            bytes: response.bytes().await.expect("the answer arrives").into(),
        }
    }

    /// Returns the value of a header; empty if it is absent.
    pub fn header(&self, name: &str) -> &str {
        value(&self.headers, name)
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

fn value<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}

impl Answer {
    /// Returns the response itself after asserting its status, and that an error is complete.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "the answer was {self:#?}");
        if status >= 400 && self["error"].is_object() {
            self.assert_envelope();
        }
        self
    }

    /// Returns the response itself after asserting that it is an error with a status and a slug.
    #[track_caller]
    pub fn expect_error(self, status: u16, slug: &str) -> Self {
        let answer = self.expect(status);
        assert_eq!(answer["error"]["slug"], slug, "the answer was {answer:#?}");
        answer
    }

    /// Returns the data of a successful execution.
    #[track_caller]
    pub fn data(self) -> Value {
        assert_eq!(self.status, 200, "the answer was {self:#?}");
        assert_eq!(self["successful"], true, "the tool failed: {}", self.text);
        assert_eq!(self["error"], Value::Null);
        self["data"].clone()
    }

    /// Returns the kind of a tool's failure; empty if the tool did not fail.
    pub fn failure(&self) -> &str {
        let kind = self["data"]["kind"].as_str().unwrap_or_default();
        if self.status == 200 && self["successful"] == false {
            kind
        } else {
            ""
        }
    }

    /// Returns the lines in `errors`.
    pub fn problems(&self) -> Vec<String> {
        let lines = self["error"]["errors"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        lines
            .iter()
            .map(|line| line.as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// Returns the value of a header; empty if it is absent.
    pub fn header(&self, name: &str) -> &str {
        value(&self.headers, name)
    }

    /// Asserts that the response is a complete error envelope of the API.
    #[track_caller]
    pub fn assert_envelope(&self) {
        let error = &self["error"];
        assert_eq!(
            error["status"], self.status,
            "the envelope repeats the status: {self:#?}"
        );
        for field in ["message", "slug", "request_id", "suggested_fix"] {
            assert!(
                error[field].as_str().is_some_and(|text| !text.is_empty()),
                "`{field}` is missing: {self:#?}"
            );
        }
        assert!(
            error["code"].is_number() || error["code"].is_string(),
            "`code` is missing: {self:#?}"
        );
        assert!(error["errors"].is_array(), "`errors` is missing: {self:#?}");
    }
}

impl Index<&str> for Answer {
    type Output = Value;

    fn index(&self, field: &str) -> &Value {
        &self.json[field]
    }
}
