//! Responses whose body is read piece by piece, for streams that do not end by themselves.

use std::time::Duration;

use bytes::Bytes;
use reqwest::{Method, Response, StatusCode};
use tokio::time::timeout;
use url::Url;

use crate::{Error, error::ErrorContext};

/// Response of [`Client::open`](crate::Client::open). Dropping it closes the connection.
pub struct StreamedResponse {
    response: Response,
    idle_timeout: Duration,
    /// Method and URL of the request, for errors.
    method: Method,
    url: Url,
}

impl StreamedResponse {
    pub(crate) fn new(
        response: Response,
        idle_timeout: Duration,
        method: Method,
        url: Url,
    ) -> Self {
        Self {
            response,
            idle_timeout,
            method,
            url,
        }
    }

    /// Returns the HTTP status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// Returns the value of a header, if it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// Waits for the next piece of the body. Returns `None` at its end.
    ///
    /// # Errors
    /// Fails if the connection breaks, or if no piece arrives in time.
    pub async fn next_piece(&mut self) -> Result<Option<Bytes>, Error> {
        let context = ErrorContext::new(&self.method, &self.url);
        match timeout(self.idle_timeout, self.response.chunk()).await {
            Ok(piece) => piece.map_err(|cause| context.ended_early(&cause)),
            Err(_) => Err(context.timeout("the next part of the response", self.idle_timeout)),
        }
    }
}
