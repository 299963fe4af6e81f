//! Responses of providers.

use serde::de::DeserializeOwned;

use super::{failure, page};
use crate::{File, Result, ToolError, host, mismatch};

/// An HTTP response.
#[derive(Debug, Clone)]
pub struct Response {
    inner: host::Response,
}

impl Response {
    pub(super) fn new(inner: host::Response) -> Self {
        Self { inner }
    }

    /// Returns the HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.inner.status
    }

    /// Returns true if the status is 200 to 299.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status())
    }

    /// Returns the first header with this name, compared without regard to case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.inner.headers.iter();
        headers
            .find(|(header, _)| header.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Returns the name that the provider gives to the body as a file, from `Content-Disposition`. It is
    /// never a path.
    #[must_use]
    pub fn file_name(&self) -> Option<String> {
        manifest::disposition::file_name(self.header("content-disposition")?)
    }

    /// Returns all headers, with names in lower case.
    #[must_use]
    pub fn headers(&self) -> &[(String, String)] {
        &self.inner.headers
    }

    /// Parses the body as JSON.
    ///
    /// # Errors
    /// `upstream_error` if the body is not the expected JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.inner.body).map_err(|error| {
            let reason = mismatch::reason_with_path(&self.inner.body, &error);
            let message = format!("the provider's response is not the expected JSON: {reason}");
            ToolError::upstream(message).upstream_status(self.status())
        })
    }

    /// Returns the body as text. Bytes that are not UTF-8 become replacement characters.
    #[must_use]
    pub fn text(self) -> String {
        String::from_utf8(self.inner.body)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    /// Returns the bytes of the body.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.inner.body
    }

    /// Converts the response into the bytes of its body.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.inner.body
    }

    /// Returns the file that [`Request::into_file`](super::Request::into_file) asked for.
    ///
    /// # Errors
    /// `internal` if the request did not ask for a file.
    pub fn file(&self) -> Result<File> {
        match &self.inner.blob {
            Some(id) => File::existing(id.clone()),
            None => Err(ToolError::internal(
                "the response is in memory; request a file with `into_file()`",
            )),
        }
    }

    /// Returns the URL of the next page from the `Link` header (RFC 8288).
    #[must_use]
    pub fn next_link(&self) -> Option<String> {
        self.inner
            .headers
            .iter()
            .filter(|(name, _)| name == "link")
            .find_map(|(_, value)| page::next_link(value))
    }

    /// Returns the error that [`Request::send`](super::Request::send) makes of this response by the
    /// default rules: the kind from the status, the message from the common places in the body, and
    /// the time to wait from the common headers.
    pub fn error(&self) -> ToolError {
        failure::from_response(self)
    }

    pub(super) fn checked(self, errors: Option<fn(&Self) -> Option<ToolError>>) -> Result<Self> {
        if let Some(error) = errors.and_then(|errors| errors(&self)) {
            return Err(error);
        }
        if self.is_success() {
            Ok(self)
        } else {
            Err(self.error())
        }
    }
}
