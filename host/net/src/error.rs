//! Errors of outgoing requests, with a message for the person who has to act.

use std::{error::Error as StdError, fmt, io, time::Duration};

use reqwest::Method;
use url::Url;

use crate::{Limits, body, connect, guard, lookup};

/// Error of a request without a response. The text names method and origin, never path, query or
/// headers, because those may hold secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// Machine-readable kind.
    pub kind: ErrorKind,
    /// Attempted action, host and advice.
    pub message: String,
}

/// Kind of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The guard refused the address; nothing was sent.
    Denied,
    /// The request is invalid; nothing was sent.
    InvalidRequest,
    /// The host name cannot be resolved.
    Dns,
    /// The connection failed.
    Connect,
    /// The TLS connection is not trusted.
    Tls,
    /// A timeout was reached; the request may have had its effect.
    Timeout,
    /// The response is larger than its limit.
    TooLarge,
    /// No memory is left for the response.
    NoMemory,
    /// The server does not speak valid HTTP or closed the connection early.
    Protocol,
}

/// Request that error messages name by its method and origin.
pub(crate) struct ErrorContext<'r> {
    method: &'r Method,
    url: &'r Url,
}

impl fmt::Display for ErrorContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { method, url } = self;
        let host = url.host_str().unwrap_or("?");
        write!(f, "{method} {}://{host}", url.scheme())?;
        match url.port() {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

impl<'r> ErrorContext<'r> {
    pub(crate) fn new(method: &'r Method, url: &'r Url) -> Self {
        Self { method, url }
    }

    fn error(&self, kind: ErrorKind, what: impl fmt::Display) -> Error {
        Error {
            kind,
            message: format!("{self}: {what}"),
        }
    }

    pub(crate) fn denied(&self, refused: &guard::Refused) -> Error {
        let kind = match refused {
            guard::Refused::Literal(_) | guard::Refused::Resolved(_) => ErrorKind::Denied,
            _ => ErrorKind::InvalidRequest,
        };
        self.error(kind, refused)
    }

    pub(crate) fn denied_proxy(&self, refused: &guard::Refused) -> Error {
        self.error(
            ErrorKind::Denied,
            format_args!("the proxy cannot be used: {refused}"),
        )
    }

    pub(crate) fn timeout(&self, of: &str, limit: Duration) -> Error {
        self.error(
            ErrorKind::Timeout,
            format_args!("{of} exceeded its timeout of {limit:?}; try again later"),
        )
    }

    pub(crate) fn too_large(&self, what: &str, limit: u64) -> Error {
        self.error(
            ErrorKind::TooLarge,
            format_args!(
                "the {what} of the response is larger than {limit} bytes; request less data"
            ),
        )
    }

    pub(crate) fn unreadable(&self, failure: &body::ReadError, limits: Limits) -> Error {
        match failure {
            body::ReadError::TooLarge => self.too_large("body", limits.response_bytes),
            body::ReadError::NoMemory => self.error(
                ErrorKind::NoMemory,
                "this server has no memory left for the response; try again later",
            ),
            body::ReadError::ExpandsTooMuch => self.error(
                ErrorKind::TooLarge,
                "the response body expands more than a hundredfold; request less data",
            ),
            body::ReadError::Encoding(cause) => self.error(
                ErrorKind::Protocol,
                format_args!("the response body cannot be decompressed: {cause}"),
            ),
            body::ReadError::Broken(cause) => self.ended_early(cause),
        }
    }

    pub(crate) fn ended_early(&self, cause: &reqwest::Error) -> Error {
        self.error(
            ErrorKind::Protocol,
            format_args!(
                "the response ended early: {}; try again later",
                innermost(cause)
            ),
        )
    }

    /// Derives the error from the HTTP client's chain of causes.
    pub(crate) fn failed(&self, failure: &reqwest::Error, connect_limit: Duration) -> Error {
        let mut kind = match () {
            () if failure.is_timeout() => ErrorKind::Timeout,
            () if failure.is_connect() => ErrorKind::Connect,
            () if failure.is_builder() => ErrorKind::InvalidRequest,
            () => ErrorKind::Protocol,
        };
        for cause in causes(failure) {
            if let Some(refused) = cause.downcast_ref::<guard::Refused>() {
                return self.denied(refused);
            }
            if let Some(unresolved) = cause.downcast_ref::<lookup::Unresolved>() {
                return self.error(ErrorKind::Dns, unresolved);
            }
            if cause.is::<connect::ConnectTimeout>() {
                return self.timeout("the connection", connect_limit);
            }
            if is_broken_handshake(cause) && failure.is_connect() {
                kind = ErrorKind::Tls;
            }
        }
        self.error(kind, innermost(failure))
    }
}

/// Returns the last cause of a chain, which is the informative one.
pub(crate) fn innermost(error: &(dyn StdError + 'static)) -> String {
    causes(error)
        .last()
        .map(ToString::to_string)
        .unwrap_or_default()
}

fn is_broken_handshake(cause: &(dyn StdError + 'static)) -> bool {
    let failure = cause.downcast_ref::<io::Error>().map(io::Error::kind);
    matches!(
        failure,
        Some(io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
    )
}

fn causes<'e>(
    error: &'e (dyn StdError + 'static),
) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error| inner(*error))
}

/// Returns the next cause. An I/O error holds its cause inside and not as its source.
fn inner<'e>(error: &'e (dyn StdError + 'static)) -> Option<&'e (dyn StdError + 'static)> {
    if let Some(io) = error.downcast_ref::<io::Error>()
        && let Some(held) = io.get_ref()
    {
        return Some(held as &(dyn StdError + 'static));
    }
    error.source()
}
