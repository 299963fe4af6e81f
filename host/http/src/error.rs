//! Errors of requests, and their statuses.
//!
//! Every error ends as an [`ApiError`]: an error of one of the tables, or one of the few errors that
//! only HTTP has. The class of the former decides the status.

use std::time::Duration;

use app::{Class, Error};

/// Result of a handler.
pub type ApiResult<T> = Result<T, ApiError>;

/// Reason why a request failed.
#[derive(Debug)]
pub enum ApiError {
    /// An error of one of the tables.
    App(Error),
    /// An error that only HTTP has.
    Http(HttpError),
}

/// Errors that only HTTP has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpError {
    /// No such path. Contains a similar one, if there is one.
    UnknownRoute(Option<String>),
    /// The path exists, but not with this method.
    WrongMethod {
        /// Methods that the path has.
        methods: String,
        /// Path with one more segment, if there is one.
        longer: Option<String>,
    },
    /// The body is larger than this many bytes.
    TooLarge(usize),
    /// The `content-type` of the body is not JSON.
    WrongType,
    /// The charset of the body is not accepted.
    WrongCharset,
    /// The body is compressed.
    Encoded,
    /// The body did not arrive within this time.
    SlowBody(Duration),
    /// The body arrives at less than this many KiB per second.
    TricklingBody(u64),
    /// The body ended early.
    BrokenBody,
    /// The request line is longer than 8 KiB.
    LongLine,
    /// The headers are longer than 16 KiB.
    LongHeaders,
    /// The request has no single `Host` header, or one that names no host.
    BadHost,
    /// The forwarding headers of the proxies cannot be read, or name several addresses.
    ForwardedInvalid,
    /// An operation that does not apply to a self-hosted server.
    NotOffered {
        /// Purpose of the operation, as a noun phrase.
        what: &'static str,
        /// Alternative to the operation.
        instead: &'static str,
    },
    /// The handler panicked.
    Panic,
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        Self::App(error)
    }
}

impl From<HttpError> for ApiError {
    fn from(error: HttpError) -> Self {
        Self::Http(error)
    }
}

impl HttpError {
    /// Returns the status, the code, the slug, the message and the hint.
    #[rustfmt::skip]
    pub(super) fn row(&self) -> (u16, u32, &'static str, String, &'static str) {
        let text = str::to_owned;
        match self {
            Self::UnknownRoute(None) => (404, 10404, "HTTP_NotFound", text("there is nothing at this path"), "compare the path with the operations at `/docs` of this server"),
            Self::UnknownRoute(Some(path)) => (404, 10404, "HTTP_NotFound", format!("there is nothing at this path; did you mean `{path}`?"), "compare the path with the operations at `/docs` of this server"),
            Self::WrongMethod { methods, longer: None } => (405, 10405, "HTTP_MethodNotAllowed", format!("the path does not take this method; it takes {methods}"), "use a method that the `allow` header lists"),
            Self::WrongMethod { methods, longer: Some(longer) } => (405, 10405, "HTTP_MethodNotAllowed", format!("the path does not take this method; it takes {methods}; did you mean `{longer}`?"), "use a method that the `allow` header lists, or add the last segment of the path"),
            Self::TooLarge(limit) => (413, 10413, "HTTP_PayloadTooLarge", format!("the body is larger than {} KiB", limit / 1024), "send less"),
            Self::WrongType => (415, 10415, "HTTP_UnsupportedMediaType", text("the body is not JSON by its content type"), "send `content-type: application/json`"),
            Self::WrongCharset => (415, 10417, "HTTP_UnsupportedCharset", text("the charset of the body is not accepted"), "send UTF-8; UTF-16, Latin-1 and Shift_JIS are read, too"),
            Self::Encoded => (415, 10416, "HTTP_UnsupportedEncoding", text("compressed bodies are not accepted"), "send the body without a content encoding"),
            Self::SlowBody(within) => (408, 10408, "HTTP_RequestTimeout", format!("the body did not arrive within {} s", within.as_secs()), "try again over a faster connection"),
            Self::TricklingBody(rate) => (408, 10408, "HTTP_RequestTimeout", format!("the body arrives at less than {rate} KiB/s"), "try again over a faster connection"),
            Self::BrokenBody => (400, 10409, "HTTP_BodyIncomplete", text("the body ended early"), "send it again"),
            Self::LongLine => (414, 10414, "HTTP_UriTooLong", text("the request line is longer than 8 KiB"), "send fewer or shorter parameters"),
            Self::LongHeaders => (431, 10432, "HTTP_HeadersTooLarge", text("the headers are longer than 16 KiB"), "send fewer or shorter headers"),
            Self::BadHost => (400, 10436, "HTTP_HostInvalid", text("the request has no `Host` header, several, or one that names no host"), "send exactly one `Host` header"),
            Self::ForwardedInvalid => (400, 10437, "HTTP_ForwardedInvalid", text("`Forwarded` cannot be read, or names another address than `X-Forwarded-For`"), "have the proxy write one of the two headers and remove the other"),
            Self::NotOffered { what, instead } => (501, 10502, "HTTP_NotImplemented", format!("this server does not support {what}"), *instead),
            Self::Panic => (500, 10500, "Server_InternalError", text("internal error"), "send the `request_id` to the operator; the server's log has the reason"),
        }
    }
}

/// Returns the HTTP status of a class of errors.
pub(super) fn status(class: Class) -> u16 {
    match class {
        Class::Invalid => 400,
        Class::Unauthenticated => 401,
        Class::Forbidden => 403,
        Class::NotFound => 404,
        Class::Conflict => 409,
        Class::Gone => 410,
        Class::TooLarge => 413,
        Class::Unprocessable => 422,
        Class::LimitReached => 429,
        Class::Internal => 500,
        Class::NotSupported => 501,
        Class::UpstreamFailed => 502,
        Class::Unavailable => 503,
        Class::UpstreamTimeout => 504,
        Class::StorageFull => 507,
    }
}

/// Mark of the response to a request whose method the path does not accept. Contains the path with one
/// more segment, if there is one.
#[derive(Clone)]
pub(crate) struct MethodRefused(pub(crate) Option<String>);

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use app::{ErrorInfo, accounts, agents, catalog, core, errors, events, files, projects, runs};

    /// All errors that are declared in tables.
    fn all() -> impl Iterator<Item = &'static ErrorInfo> {
        let tables = [
            core::errors::TABLE,
            projects::errors::TABLE,
            catalog::errors::TABLE,
            files::errors::TABLE,
            accounts::errors::TABLE,
            runs::errors::TABLE,
            events::errors::TABLE,
            agents::errors::TABLE,
            errors::TABLE,
            crate::errors::TABLE,
        ];
        tables.into_iter().flatten().copied()
    }

    #[test]
    fn every_error_has_slug_and_hint() {
        for info in all() {
            // Clients know these two slugs by name.
            let is_named = info.slug.contains('_')
                || ["MissingAuthContext", "OriginMismatch"].contains(&info.slug);
            assert!(
                is_named && !info.hint.is_empty() && !info.hint.ends_with('.'),
                "{info:?}"
            );
        }
    }

    #[test]
    fn a_slug_has_one_code_and_one_class() {
        let mut seen = HashMap::new();
        for info in all() {
            let known = *seen.entry(info.slug).or_insert((info.code, info.class));
            assert_eq!(known, (info.code, info.class), "{}", info.slug);
        }
    }
}
