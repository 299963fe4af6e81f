//! What an application answered.

use serde::de::DeserializeOwned;

use super::{failure, page};
use crate::{File, Result, ToolError, host};

/// An answer.
#[derive(Debug, Clone)]
pub struct Response {
    inner: host::Response,
}

impl Response {
    pub(super) fn new(inner: host::Response) -> Self {
        Self { inner }
    }

    /// The HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.inner.status
    }

    /// Whether the status is 200 to 299.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status())
    }

    /// The first header of this name, in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.inner.headers.iter();
        headers.find(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// All headers; names in lower case.
    #[must_use]
    pub fn headers(&self) -> &[(String, String)] {
        &self.inner.headers
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// `upstream_error` when it is something else.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.inner.body).map_err(|error| {
            let message = format!("the application answered something other than the expected JSON: {error}");
            ToolError::upstream(message).upstream_status(self.status())
        })
    }

    /// The body as text; bytes that are not UTF-8 become replacement characters.
    #[must_use]
    pub fn text(self) -> String {
        String::from_utf8(self.inner.body)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    /// The body as it is.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.inner.body
    }

    /// The body as it is, taken.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.inner.body
    }

    /// The file that [`Request::into_file`](super::Request::into_file) asked for.
    ///
    /// # Errors
    /// `internal` when none was asked for.
    pub fn file(&self) -> Result<File> {
        match &self.inner.blob {
            Some(id) => File::existing(id.clone()),
            None => Err(ToolError::internal("the answer is in memory; ask for a file with `into_file()`")),
        }
    }

    /// The address of the next page in the `Link` header (RFC 8288).
    #[must_use]
    pub fn next_link(&self) -> Option<String> {
        self.inner.headers.iter().filter(|(name, _)| name == "link").find_map(|(_, value)| page::next_link(value))
    }

    /// The error that [`Request::send`](super::Request::send) makes of this answer by the usual rules: the kind from the
    /// status, the message from the usual places in the body, the waiting time from the usual headers.
    pub fn error(&self) -> ToolError {
        failure::of_response(self)
    }

    pub(super) fn checked(self, errors: Option<fn(&Self) -> Option<ToolError>>) -> Result<Self> {
        if let Some(error) = errors.and_then(|errors| errors(&self)) {
            return Err(error);
        }
        if self.is_success() { Ok(self) } else { Err(self.error()) }
    }
}
