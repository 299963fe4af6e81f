//! The scripted host.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use manifest::cases::{self, Exchange, ExpectedRequest, GivenFile, GivenResponse};
use serde_json::Value;

use crate::context::{self, Context};
use crate::host::{Body, Content, Failure, Info, Request, Response};
use crate::log::Level;

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Severity of the line.
    pub level: Level,
    /// Text of the line.
    pub message: String,
}

/// Script and state of the platform while [`Host::run`] runs.
#[derive(Default)]
#[must_use = "a host does something in `run`"]
pub struct Host {
    script: VecDeque<Exchange>,
    any_order: bool,
    state: BTreeMap<String, Vec<u8>>,
    blobs: BTreeMap<String, Blob>,
    log: Vec<Line>,
    start: Option<u64>,
    slept: u64,
    random: u8,
    fields: Vec<(String, String)>,
    user_id: String,
}

struct Blob {
    name: String,
    media_type: String,
    bytes: Vec<u8>,
    created: bool,
}

thread_local! {
    static CURRENT_HOST: RefCell<Host> = RefCell::new(Host::default());
}

impl Host {
    /// Expects a request next, regardless of its headers and body, and returns this response.
    pub fn exchange(self, method: &str, url: &str, status: u16, body: Value) -> Self {
        self.expect(Exchange {
            request: ExpectedRequest {
                method: method.to_owned(),
                url: url.to_owned(),
                ..ExpectedRequest::default()
            },
            response: GivenResponse {
                status,
                body: Some(body),
                ..GivenResponse::default()
            },
        })
    }

    /// Expects a request next and returns its scripted response.
    pub fn expect(mut self, exchange: Exchange) -> Self {
        self.script.push_back(exchange);
        self
    }

    /// Accepts the expected requests in any order, as `toolkit check` does.
    pub(super) fn any_order(mut self) -> Self {
        self.any_order = true;
        self
    }

    /// Sets the time, in milliseconds since 1970.
    pub fn now(mut self, ms: u64) -> Self {
        self.start = Some(ms);
        self
    }

    /// Sets a non-secret field of the account.
    pub fn field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the user on whose behalf the call runs.
    pub fn user(mut self, id: &str) -> Self {
        id.clone_into(&mut self.user_id);
        self
    }

    /// Provides a file.
    pub fn file(mut self, id: &str, name: &str, media_type: &str, bytes: &[u8]) -> Self {
        let blob = Blob {
            name: name.to_owned(),
            media_type: media_type.to_owned(),
            bytes: bytes.to_vec(),
            created: false,
        };
        self.blobs.insert(id.to_owned(), blob);
        self
    }

    /// Runs the code with this host and returns the host, so that a test can check its log, files
    /// and state.
    ///
    /// # Panics
    /// A request differs from the script, or a scripted request was not sent.
    pub fn run<T>(self, code: impl FnOnce() -> T) -> (T, Self) {
        context::set(Context {
            run_id: "log_test".to_owned(),
            user_id: self.user_id.clone(),
            fields: self.fields.clone(),
            deadline_ms: 30_000,
        });
        CURRENT_HOST.set(self);
        let result = code();
        let host = CURRENT_HOST.take();
        if let Some(missing) = host.script.front() {
            let ExpectedRequest { method, url, .. } = &missing.request;
            panic!(
                "the toolkit did not send the expected request {method} {url} ({} left)",
                host.script.len()
            );
        }
        (result, host)
    }

    /// Returns the log lines written so far.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.log
    }

    /// Returns the bytes of a file.
    #[must_use]
    pub fn bytes_of(&self, id: &str) -> Option<&[u8]> {
        self.blobs.get(id).map(|blob| blob.bytes.as_slice())
    }

    fn answer(&mut self, request: &Request) -> Result<Response, Failure> {
        let position = self
            .script
            .iter()
            .position(|exchange| self.difference(&exchange.request, request).is_none())
            .filter(|_| self.any_order)
            .unwrap_or(0);
        let Some(Exchange {
            request: expected,
            response,
        }) = self.script.remove(position)
        else {
            panic!(
                "the toolkit sent a request that was not expected:\n{}",
                self.describe(request)
            );
        };
        if let Some(difference) = self.difference(&expected, request) {
            panic!("a request differs from what was expected (- expected, + sent):\n{difference}");
        }
        if let Some(kind) = response.error {
            return Err(Failure {
                message: format!("scripted: {kind}"),
                kind,
            });
        }
        let (headers, mut body) = response.parts();
        let blob = request.into_blob.then(|| {
            let media_type = headers
                .iter()
                .find(|(name, _)| name == "content-type")
                .map_or("application/octet-stream", |(_, value)| value.as_str());
            let bytes = std::mem::take(&mut body);
            self.create(last_segment(&request.url), media_type, bytes)
        });
        Ok(Response {
            status: response.status,
            headers,
            body,
            blob,
        })
    }

    fn create(&mut self, name: &str, media_type: &str, bytes: Vec<u8>) -> String {
        let id = format!(
            "file_{}",
            self.blobs.values().filter(|blob| blob.created).count() + 1
        );
        let blob = Blob {
            name: name.to_owned(),
            media_type: media_type.to_owned(),
            bytes,
            created: true,
        };
        self.blobs.insert(id.clone(), blob);
        id
    }
}

/// Comparison of requests with the script.
impl Host {
    /// Returns the difference between the expected and the sent request, if there is one. Only the
    /// expected headers are compared, and the body only if one is expected.
    fn difference(&self, expected: &ExpectedRequest, sent: &Request) -> Option<String> {
        if expected.method != sent.method || with_path(&expected.url) != with_path(&sent.url) {
            return Some(cases::lines(
                &format!("{} {}\n", expected.method, expected.url),
                &format!("{} {}\n", sent.method, sent.url),
            ));
        }
        for (name, value) in &expected.headers {
            let found = sent
                .headers
                .iter()
                .find(|(header, _)| header.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.as_str());
            if found != Some(value) {
                let sent = found.map_or_else(
                    || format!("no {name}\n"),
                    |found| format!("{name}: {found}\n"),
                );
                return Some(cases::lines(&format!("{name}: {value}\n"), &sent));
            }
        }
        let body = expected.body.as_ref()?;
        cases::difference(
            body,
            &cases::merged(body, &self.body_value(&sent.body), &self.given()),
        )
    }

    /// Returns the files that were given to the call.
    fn given(&self) -> Vec<GivenFile> {
        let given = self.blobs.iter().filter(|(_, blob)| !blob.created);
        given
            .map(|(id, blob)| GivenFile {
                id: id.clone(),
                name: blob.name.clone(),
                mimetype: blob.media_type.clone(),
                text: String::from_utf8_lossy(&blob.bytes).into_owned(),
            })
            .collect()
    }

    /// Returns the body in the form of case files: JSON, a string, or an object of parts.
    fn body_value(&self, body: &Body) -> Value {
        match body {
            Body::Empty => Value::Null,
            Body::Content(content) => self.content_value(content),
            Body::Multipart(parts) => Value::Object(
                parts
                    .iter()
                    .map(|part| {
                        let content = self.content_value(&part.content);
                        let value = match part.filename.as_ref() {
                            None => content,
                            Some(filename) => {
                                serde_json::json!({ "filename": filename, "content": content })
                            }
                        };
                        (part.name.clone(), value)
                    })
                    .collect(),
            ),
        }
    }

    fn content_value(&self, content: &Content) -> Value {
        match content {
            Content::Bytes(bytes) => cases::body_value(bytes),
            Content::Blob(id) => self.blobs.get(id).map_or_else(
                || serde_json::json!({ "blob": id }),
                |blob| cases::body_value(&blob.bytes),
            ),
        }
    }

    fn describe(&self, request: &Request) -> String {
        let mut text = format!("    {} {}\n", request.method, request.url);
        for (name, value) in &request.headers {
            text.push_str(&format!("    {name}: {value}\n"));
        }
        if request.body != Body::Empty {
            text.push_str(&format!("    {}\n", self.body_value(&request.body)));
        }
        text
    }
}

/// Splits a URL without its query and fragment into its origin and the path behind the first `/`.
fn origin_and_path(url: &str) -> (&str, Option<&str>) {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let host = url.find("://").map_or(0, |scheme| scheme + "://".len());
    match url[host..].find('/') {
        Some(slash) => (&url[..host + slash], Some(&url[host + slash + 1..])),
        None => (url, None),
    }
}

/// Returns a URL, with the path `/` if the path is missing. Both forms mean the same.
fn with_path(url: &str) -> String {
    match origin_and_path(url) {
        (_, Some(_)) => url.to_owned(),
        (origin, None) => format!("{origin}/{}", &url[origin.len()..]),
    }
}

/// Returns the last segment of a URL's path, which names a file made of its response.
fn last_segment(url: &str) -> &str {
    let path = origin_and_path(url).1.unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default()
}

/// The platform's functions, served by the host of this thread.
pub(crate) mod calls {
    use super::{CURRENT_HOST, Failure, Info, Level, Line, Request, Response, cases};

    const MAX_STATE_BYTES: usize = 64 * 1024;
    const MAX_STATE_KEYS: usize = 128;

    pub(crate) fn send(request: Request) -> Result<Response, Failure> {
        CURRENT_HOST.with_borrow_mut(|host| host.answer(&request))
    }

    pub(crate) fn send_all(requests: Vec<Request>) -> Vec<Result<Response, Failure>> {
        requests.into_iter().map(send).collect()
    }

    pub(crate) fn log(level: Level, message: &str) {
        CURRENT_HOST.with_borrow_mut(|host| {
            host.log.push(Line {
                level,
                message: message.to_owned(),
            })
        });
    }

    pub(crate) fn now() -> u64 {
        CURRENT_HOST.with_borrow(|host| host.start.unwrap_or(cases::DEFAULT_TIME_MS) + host.slept)
    }

    pub(crate) fn elapsed() -> u64 {
        CURRENT_HOST.with_borrow(|host| host.slept)
    }

    pub(crate) fn sleep(ms: u32) {
        CURRENT_HOST.with_borrow_mut(|host| host.slept += u64::from(ms));
    }

    pub(crate) fn random(length: u32) -> Vec<u8> {
        CURRENT_HOST.with_borrow_mut(|host| {
            std::iter::repeat_with(|| {
                host.random = host.random.wrapping_add(1);
                host.random
            })
            .take(length as usize)
            .collect()
        })
    }

    pub(crate) fn state_get(key: &str) -> Option<Vec<u8>> {
        CURRENT_HOST.with_borrow(|host| host.state.get(key).cloned())
    }

    pub(crate) fn state_set(key: &str, value: &[u8]) -> bool {
        CURRENT_HOST.with_borrow_mut(|host| {
            let has_capacity = host.state.len() < MAX_STATE_KEYS || host.state.contains_key(key);
            let fits = has_capacity && key.len() <= 256 && value.len() <= MAX_STATE_BYTES;
            if fits {
                host.state.insert(key.to_owned(), value.to_vec());
            }
            fits
        })
    }

    pub(crate) fn state_remove(key: &str) {
        CURRENT_HOST.with_borrow_mut(|host| host.state.remove(key));
    }

    pub(crate) fn blob_stat(id: &str) -> Result<Info, Failure> {
        CURRENT_HOST.with_borrow(|host| {
            let blob = host.blobs.get(id).ok_or_else(|| missing(id))?;
            Ok(Info {
                id: id.to_owned(),
                name: blob.name.clone(),
                media_type: blob.media_type.clone(),
                size: blob.bytes.len() as u64,
            })
        })
    }

    pub(crate) fn blob_read(id: &str, offset: u64, length: u32) -> Result<Vec<u8>, Failure> {
        CURRENT_HOST.with_borrow(|host| {
            let bytes = &host.blobs.get(id).ok_or_else(|| missing(id))?.bytes;
            let start = usize::try_from(offset)
                .unwrap_or(usize::MAX)
                .min(bytes.len());
            let end = start.saturating_add(length as usize).min(bytes.len());
            Ok(bytes[start..end].to_vec())
        })
    }

    pub(crate) fn blob_create(name: &str, media_type: &str) -> Result<String, Failure> {
        CURRENT_HOST.with_borrow_mut(|host| Ok(host.create(name, media_type, Vec::new())))
    }

    pub(crate) fn blob_append(id: &str, bytes: &[u8]) -> Result<u64, Failure> {
        CURRENT_HOST.with_borrow_mut(|host| {
            let blob = host.blobs.get_mut(id).ok_or_else(|| missing(id))?;
            if !blob.created {
                return Err(Failure {
                    kind: "read_only".to_owned(),
                    message: format!("the file `{id}` was not made in this call"),
                });
            }
            blob.bytes.extend_from_slice(bytes);
            Ok(blob.bytes.len() as u64)
        })
    }

    /// Verifies with `secret` itself: a native test sees the configuration as it is written.
    #[cfg(feature = "webhook")]
    pub(crate) fn verify_webhook(
        secret: &str,
        algorithm: crate::webhook::Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Result<bool, Failure> {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        use hmac::{Hmac, KeyInit, Mac};

        use crate::webhook::Algorithm;

        fn is_mac<M: KeyInit + Mac>(key: &[u8], message: &[u8], signature: &[u8]) -> bool {
            M::new_from_slice(key)
                .is_ok_and(|mac| mac.chain_update(message).verify_slice(signature).is_ok())
        }
        if secret.is_empty() {
            return Err(unusable("the secret is empty"));
        }
        let key = secret.as_bytes();
        Ok(match algorithm {
            Algorithm::HmacSha1 => is_mac::<Hmac<sha1::Sha1>>(key, message, signature),
            Algorithm::HmacSha256 => is_mac::<Hmac<sha2::Sha256>>(key, message, signature),
            Algorithm::HmacSha512 => is_mac::<Hmac<sha2::Sha512>>(key, message, signature),
            Algorithm::StandardWebhooks => {
                let base64 = secret.strip_prefix("whsec_").unwrap_or(secret);
                let key = STANDARD
                    .decode(base64)
                    .map_err(|_| unusable("the secret is not base64 after `whsec_`"))?;
                is_mac::<Hmac<sha2::Sha256>>(&key, message, signature)
            }
            Algorithm::Token => key == signature,
        })
    }

    #[cfg(feature = "webhook")]
    fn unusable(problem: &str) -> Failure {
        Failure {
            kind: "unusable".to_owned(),
            message: problem.to_owned(),
        }
    }

    fn missing(id: &str) -> Failure {
        Failure {
            kind: "not_found".to_owned(),
            message: format!("the file `{id}` does not exist"),
        }
    }
}
