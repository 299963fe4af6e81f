//! Request of a guest and the response that the guest saw.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Content;
use crate::{Digest, contract::v1::http, files::Files, redact::Redactor};

/// Request and its result: a response or an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interaction {
    /// Request as the guest wrote it, before the host added a credential.
    pub request: Request,
    /// Response as the guest saw it, after the host removed the credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Response>,
    /// Error, if the response is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RequestError>,
}

/// Request of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// HTTP method.
    pub method: String,
    /// Complete URL with its query.
    pub url: String,
    /// Headers in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// Body, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Body>,
    /// Credential that the host adds.
    pub credential: CredentialSlot,
    /// Timeout in milliseconds; 0 for the timeout of the host.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub timeout_ms: u32,
    /// True if the response body goes into a file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub into_file: bool,
}

/// Name of the credential that the host adds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CredentialSlot {
    /// Credential of the connected account.
    Account,
    /// No credential: the request is anonymous.
    None,
    /// Another name that the guest wrote.
    Other(String),
}

/// Body of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Body {
    /// Bytes from the guest's memory.
    Content(Content),
    /// File of the call.
    File {
        /// Id of the file.
        id: String,
        /// SHA-256 of the content; `None` if the file did not exist.
        sha256: Option<Digest>,
    },
    /// Parts of a multipart body, framed by the host.
    Multipart(Vec<Part>),
}

/// Part of a multipart body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Name of the form field.
    pub name: String,
    /// Name of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// Media type of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Bytes or a file; never nested parts.
    pub body: Body,
}

/// Response to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// Headers in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// Decompressed body.
    pub body: Content,
    /// Name and media type of the file that received the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<(String, String)>,
}

/// Error of a request without a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestError {
    /// Kind as the contract defines it, for example `denied` or `timeout`.
    pub kind: String,
    /// Human-readable message.
    pub message: String,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Request {
    /// Converts a request of a guest that has these files.
    pub(crate) fn new(request: &http::Request, files: &Files) -> Self {
        let body = match &request.body {
            http::Body::Empty => None,
            http::Body::Content(content) => Some(Body::new(content, files)),
            http::Body::Multipart(parts) => Some(Body::Multipart(
                parts.iter().map(|part| Part::new(part, files)).collect(),
            )),
        };
        Self {
            method: request.method.clone(),
            url: request.url.clone(),
            headers: request.headers.clone(),
            body,
            credential: match request.credential.as_str() {
                "" => CredentialSlot::Account,
                "none" => CredentialSlot::None,
                other => CredentialSlot::Other(other.to_owned()),
            },
            timeout_ms: request.timeout_ms,
            into_file: request.into_blob,
        }
    }

    /// Returns the size of the content, in bytes.
    pub(super) fn size(&self) -> usize {
        let body = self.body.as_ref().map_or(0, Body::size);
        self.url.len() + header_bytes(&self.headers) + body
    }

    /// Returns the request as human-readable lines.
    #[must_use]
    pub fn lines(&self) -> String {
        let mut lines = vec![format!("{} {}", self.method, self.url)];
        lines.extend(
            self.headers
                .iter()
                .map(|(name, value)| format!("{name}: {value}")),
        );
        lines.extend(match &self.credential {
            CredentialSlot::Account => None,
            CredentialSlot::None => Some("(without a credential)".to_owned()),
            CredentialSlot::Other(name) => Some(format!("(with the credential `{name}`)")),
        });
        lines.extend((self.timeout_ms > 0).then(|| format!("(at most {} ms)", self.timeout_ms)));
        lines.extend(self.into_file.then(|| "(response into a file)".to_owned()));
        lines.extend(self.body.as_ref().map(Body::lines));
        lines.join("\n") + "\n"
    }
}

impl Body {
    fn new(content: &http::Content, files: &Files) -> Self {
        match content {
            http::Content::Bytes(bytes) => Self::Content(Content::from_bytes(bytes)),
            http::Content::Blob(id) => Self::File {
                id: id.clone(),
                sha256: files.digest(id),
            },
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Content(content) => content.len(),
            Self::File { id, .. } => id.len(),
            Self::Multipart(parts) => parts
                .iter()
                .map(|part| part.name.len() + part.body.size())
                .sum(),
        }
    }

    fn lines(&self) -> String {
        match self {
            Self::Content(content) => match serde_json::from_slice::<Value>(&content.bytes()) {
                Ok(json) => format!("{json:#}"),
                Err(_) => String::from_utf8_lossy(&content.bytes()).into_owned(),
            },
            Self::File { id, sha256 } => {
                format!(
                    "(file {id}, {})",
                    sha256.map_or_else(
                        || "which does not exist".to_owned(),
                        |digest| digest.to_string()
                    )
                )
            }
            Self::Multipart(parts) => parts.iter().map(Part::lines).collect::<Vec<_>>().join("\n"),
        }
    }

    fn redact(&mut self, redactor: &Redactor) {
        match self {
            Self::Content(content) => content.redact(redactor),
            Self::File { .. } => {}
            Self::Multipart(parts) => parts.iter_mut().for_each(|part| part.body.redact(redactor)),
        }
    }
}

impl Part {
    fn new(part: &http::Part, files: &Files) -> Self {
        Self {
            name: part.name.clone(),
            filename: part.filename.clone(),
            media_type: part.media_type.clone(),
            body: Body::new(&part.content, files),
        }
    }

    fn lines(&self) -> String {
        format!(
            "part {}{}{}\n{}",
            self.name,
            after_comma(self.filename.as_deref()),
            after_comma(self.media_type.as_deref()),
            self.body.lines()
        )
    }
}

fn after_comma(value: Option<&str>) -> String {
    value.map(|value| format!(", {value}")).unwrap_or_default()
}

impl Interaction {
    /// Creates a record of a request and the host's response. `files` are those of the call.
    pub(super) fn new(
        request: Request,
        answer: &Result<http::Response, http::Error>,
        files: &Files,
    ) -> Self {
        match answer {
            Ok(response) => Self {
                request,
                response: Some(Response::new(response, files)),
                error: None,
            },
            Err(http::Error { kind, message }) => Self {
                request,
                response: None,
                error: Some(RequestError {
                    kind: kind.clone(),
                    message: message.clone(),
                }),
            },
        }
    }

    /// Returns the recorded result for the guest.
    pub(super) fn into_response(self, files: &Files) -> Result<http::Response, http::Error> {
        match (self.response, self.error) {
            (Some(response), _) => response.into_response(files),
            (None, Some(RequestError { kind, message })) => Err(http::Error { kind, message }),
            (None, None) => Err(http::Error {
                kind: "protocol".to_owned(),
                message: "the cassette has no response to this request".to_owned(),
            }),
        }
    }

    /// Returns the size of the content, in bytes.
    pub(super) fn size(&self) -> usize {
        self.request.size()
            + self.response.as_ref().map_or(0, |response| {
                header_bytes(&response.headers) + response.body.len()
            })
    }

    pub(super) fn redact(&mut self, redactor: &Redactor) {
        self.request.url = redactor.redact_text(&self.request.url);
        redact_headers(&mut self.request.headers, redactor);
        self.request
            .body
            .iter_mut()
            .for_each(|body| body.redact(redactor));
        if let Some(response) = &mut self.response {
            redact_headers(&mut response.headers, redactor);
            response.body.redact(redactor);
        }
    }
}

impl Response {
    fn new(response: &http::Response, files: &Files) -> Self {
        let created = response.blob.as_deref();
        let (body, file) = match created.and_then(|id| files.created_file(id)) {
            Some(file) => (file.bytes.into(), Some((file.name, file.media_type))),
            None => (Content::from_bytes(&response.body), None),
        };
        Self {
            status: response.status,
            headers: response.headers.clone(),
            body,
            file,
        }
    }

    fn into_response(self, files: &Files) -> Result<http::Response, http::Error> {
        let Self {
            status,
            headers,
            body,
            file,
        } = self;
        let Some((name, media_type)) = file else {
            return Ok(http::Response {
                status,
                headers,
                body: body.bytes().into(),
                blob: None,
            });
        };
        let id = files
            .create(&name, &media_type)
            .and_then(|id| files.append(&id, &body.bytes()).map(|_| id))
            .map_err(|full| http::Error {
                kind: "limit".to_owned(),
                message: full.message,
            })?;
        Ok(http::Response {
            status,
            headers,
            body: Vec::new(),
            blob: Some(id),
        })
    }
}

pub(super) fn redact_headers(headers: &mut [(String, String)], redactor: &Redactor) {
    headers
        .iter_mut()
        .for_each(|(_, value)| *value = redactor.redact_text(value));
}

fn header_bytes(headers: &[(String, String)]) -> usize {
    headers
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum()
}
