//! Builds and sends a request.

use std::fmt::Display;
use std::time::Duration;

use serde::Serialize;

use super::{Multipart, Response, encode, failure};
use crate::host::{self, Body, Content};
use crate::{File, Result, ToolError, context};

/// A request to be sent. `send` returns the error if the request was built wrongly.
#[derive(Debug, Clone)]
#[must_use = "a request is sent by `send()`"]
pub struct Request {
    method: &'static str,
    url: String,
    query: String,
    headers: Vec<(String, String)>,
    body: Body,
    anonymous: bool,
    timeout: Duration,
    into_file: bool,
    problem: Option<ToolError>,
    pub(super) errors: Option<fn(&Response) -> Option<ToolError>>,
}

impl Request {
    pub(crate) fn new(method: &'static str, url: impl Into<String>) -> Self {
        Self {
            method,
            url: url.into(),
            query: String::new(),
            headers: Vec::new(),
            body: Body::Empty,
            anonymous: false,
            timeout: Duration::ZERO,
            into_file: false,
            problem: None,
            errors: None,
        }
    }

    /// Fills `{name}` in the URL with one encoded path segment. An empty value, `.` and `..` are
    /// refused, since they would lead to another path.
    pub fn path(mut self, name: &str, value: impl Display) -> Self {
        let value = value.to_string();
        if encode::is_dot_segment(&value) {
            return self.fail(ToolError::invalid_input(format!(
                "`{name}` cannot be `{value}`"
            )));
        }
        let mut encoded = String::new();
        encode::push(&mut encoded, &value);
        self.fill(name, &encoded);
        self
    }

    /// Fills `{name}` in the URL with a path of several segments, each encoded: `docs/read me.md`.
    pub fn path_segments(mut self, name: &str, value: impl Display) -> Self {
        let value = value.to_string();
        let mut encoded = String::new();
        for segment in value.trim_matches('/').split('/') {
            if encode::is_dot_segment(segment) {
                return self.fail(ToolError::invalid_input(format!(
                    "`{name}` cannot be the path `{value}`"
                )));
            }
            if !encoded.is_empty() {
                encoded.push('/');
            }
            encode::push(&mut encoded, segment);
        }
        self.fill(name, &encoded);
        self
    }

    /// Adds a query parameter.
    pub fn query(mut self, name: &str, value: impl Display) -> Self {
        encode::push_pair(&mut self.query, name, value);
        self
    }

    /// Adds a query parameter if there is a value.
    pub fn query_opt(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// Adds a query parameter for each value: `tag=a&tag=b`.
    pub fn query_each(
        mut self,
        name: &str,
        values: impl IntoIterator<Item = impl Display>,
    ) -> Self {
        for value in values {
            self = self.query(name, value);
        }
        self
    }

    /// Adds one query parameter with all values joined: `ids=a,b`. Adds nothing if there are no
    /// values.
    pub fn query_list(
        self,
        name: &str,
        values: impl IntoIterator<Item = impl Display>,
        separator: &str,
    ) -> Self {
        let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
        if values.is_empty() {
            self
        } else {
            self.query(name, values.join(separator))
        }
    }

    /// Sets a query parameter and replaces the present one, if any.
    pub(crate) fn set_query(mut self, name: &str, value: impl Display) -> Self {
        let mut begin = String::new();
        encode::push(&mut begin, name);
        begin.push('=');
        let kept: Vec<&str> = self
            .query
            .split('&')
            .filter(|pair| !pair.is_empty() && !pair.starts_with(&begin))
            .collect();
        self.query = kept.join("&");
        self.query(name, value)
    }

    /// Changes the method and removes the body.
    pub(crate) fn with_method(mut self, method: &'static str) -> Self {
        self.method = method;
        self.body = Body::Empty;
        self
    }

    /// Replaces the URL. The new URL has its own query.
    pub(crate) fn at(mut self, url: String) -> Self {
        self.url = url;
        self.query.clear();
        self
    }

    /// Sets a header. A header with the same name, for example one of the client, is replaced.
    /// `authorization`, `cookie`, `host` and the headers that the auth scheme fills belong to the
    /// platform.
    pub fn header(mut self, name: &str, value: impl Display) -> Self {
        let name = name.to_ascii_lowercase();
        self.headers.retain(|(header, _)| *header != name);
        self.headers.push((name, value.to_string()));
        self
    }

    /// Adds a header if there is a value.
    pub fn header_opt(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.header(name, value),
            None => self,
        }
    }

    /// Sets a JSON body.
    pub fn json(self, body: &(impl Serialize + ?Sized)) -> Self {
        match serde_json::to_vec(body) {
            Ok(bytes) => self.body(bytes, "application/json"),
            Err(error) => self.fail(ToolError::internal(format!(
                "the request's body cannot be serialized: {error}"
            ))),
        }
    }

    /// Sets an `application/x-www-form-urlencoded` body.
    pub fn form<N: AsRef<str>, V: Display>(self, pairs: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut form = String::new();
        for (name, value) in pairs {
            encode::push_pair(&mut form, name.as_ref(), value);
        }
        self.body(form.into_bytes(), "application/x-www-form-urlencoded")
    }

    /// Sets a multipart form as the body.
    pub fn multipart(mut self, form: Multipart) -> Self {
        self.body = Body::Multipart(form.parts);
        self
    }

    /// Sets a file as the body, with its media type. The bytes of the file do not pass through the
    /// guest.
    pub fn body_file(mut self, file: &File) -> Self {
        self.body = Body::Content(Content::Blob(file.id().to_owned()));
        self.header("content-type", &file.media_type)
    }

    /// Sets bytes as the body. At most 4 MiB; larger bodies are sent with [`Self::body_file`].
    pub fn body(mut self, bytes: impl Into<Vec<u8>>, media_type: &str) -> Self {
        self.body = Body::Content(Content::Bytes(bytes.into()));
        self.header("content-type", media_type)
    }

    /// Sends the request without a credential.
    pub fn anonymous(mut self) -> Self {
        self.anonymous = true;
        self
    }

    /// Sets the timeout of the whole exchange, by default 30 s. It never exceeds the remaining time
    /// of the call.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = time;
        self
    }

    /// Writes the body of the response into a file, see [`Response::file`]. Required for bodies
    /// larger than 10 MiB.
    pub fn into_file(mut self) -> Self {
        self.into_file = true;
        self
    }

    /// Sends the request and waits for the whole response.
    ///
    /// # Errors
    /// The request was not sent or got no response, or the status is not a success. In the latter
    /// case the error carries the provider's message.
    pub fn send(self) -> Result<Response> {
        let errors = self.errors;
        self.send_any()?.checked(errors)
    }

    /// Sends the request like [`Self::send`], but returns the response whatever its status.
    ///
    /// # Errors
    /// The request was not sent or got no response.
    pub fn send_any(self) -> Result<Response> {
        let response = host::send(self.finish()?).map_err(failure::from_transport)?;
        Ok(Response::new(response))
    }

    fn fill(&mut self, name: &str, encoded: &str) {
        let hole = format!("{{{name}}}");
        if self.url.contains(&hole) {
            self.url = self.url.replace(&hole, encoded);
        } else if self.problem.is_none() {
            self.problem = Some(ToolError::internal(format!(
                "the address `{}` has no `{hole}`",
                self.url
            )));
        }
    }

    fn fail(mut self, problem: ToolError) -> Self {
        self.problem.get_or_insert(problem);
        self
    }

    fn finish(mut self) -> Result<host::Request> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        fill_account_fields(&mut self.url)?;
        if !self.query.is_empty() {
            self.url
                .push(if self.url.contains('?') { '&' } else { '?' });
            self.url.push_str(&self.query);
        }
        Ok(host::Request {
            method: self.method.to_owned(),
            url: self.url,
            headers: self.headers,
            body: self.body,
            credential: if self.anonymous {
                "none".to_owned()
            } else {
                String::new()
            },
            timeout_ms: u32::try_from(self.timeout.as_millis()).unwrap_or(u32::MAX),
            into_blob: self.into_file,
        })
    }
}

/// Fills each remaining `{name}` with a field of the account.
fn fill_account_fields(url: &mut String) -> Result<()> {
    while let Some(start) = url.find('{') {
        let Some(length) = url[start..].find('}') else {
            return Err(ToolError::internal(format!(
                "the address `{url}` has `{{` without `}}`"
            )));
        };
        let name = &url[start + 1..start + length];
        let Some(value) = context::field(name) else {
            let hint = "fill it with `.path(…)`, or declare it as a field of the auth scheme";
            return Err(ToolError::internal(format!(
                "the address `{url}` needs `{name}`; {hint}"
            )));
        };
        let mut encoded = String::new();
        encode::push(&mut encoded, &value);
        url.replace_range(start..=start + length, &encoded);
    }
    Ok(())
}

/// Sends several requests concurrently, at most six at a time, and returns the results in the order
/// of the requests.
#[must_use]
pub fn send_all(requests: impl IntoIterator<Item = Request>) -> Vec<Result<Response>> {
    let mut errors = Vec::new();
    let mut ready = Vec::new();
    let mut answers: Vec<Option<Result<Response>>> = Vec::new();
    for request in requests {
        errors.push(request.errors);
        match request.finish() {
            Ok(request) => {
                ready.push(request);
                answers.push(None);
            }
            Err(problem) => answers.push(Some(Err(problem))),
        }
    }
    let mut sent = host::send_all(ready).into_iter();
    answers
        .into_iter()
        .zip(errors)
        .map(|(answer, errors)| match answer {
            Some(problem) => problem,
            None => match sent.next() {
                Some(Ok(response)) => Response::new(response).checked(errors),
                Some(Err(failure)) => Err(failure::from_transport(failure)),
                None => Err(ToolError::internal(
                    "the platform returned fewer responses than requests",
                )),
            },
        })
        .collect()
}
