//! Responses: the error envelope, and lists with cursors.
//!
//! Every error ends as a [`Failure`]: an error of the app with its row of the error table, or one
//! of the few errors that only HTTP has. A failure is logged in this module and nowhere else.

use std::{
    cell::{Cell, OnceCell},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use app::{Error, Mark, Scalar, Time, Window};
use axum::{
    http::{HeaderValue, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{admission::Allowance, places::Places};

/// Result of a handler.
pub(crate) type Reply<T> = Result<T, Failure>;

tokio::task_local! {
    /// The request being answered. Set once around the whole request, so that an error envelope can
    /// contain its request id.
    pub(crate) static EXCHANGE: Exchange;
}

/// Facts about the request being answered.
pub(crate) struct Exchange {
    /// The client's own request id, or one made by the server.
    pub request_id: String,
    /// Address of the client.
    pub peer: IpAddr,
    /// Remaining rate limit of the caller, once it is known.
    pub allowance: Cell<Option<Allowance>>,
    /// Project or organization that the request was counted for, once its key is authenticated.
    pub owner: OnceCell<Arc<str>>,
    /// Concurrency permits that the request holds.
    pub places: Places,
}

impl Exchange {
    /// Creates the context of a request of which only the client's address is known.
    pub(crate) fn new(request_id: String, peer: IpAddr) -> Self {
        Self {
            request_id,
            peer,
            allowance: Cell::default(),
            owner: OnceCell::new(),
            places: Places::default(),
        }
    }

    /// Hands the request and its permits over to another task.
    pub(crate) fn hand_over(&self) -> Self {
        Self {
            request_id: self.request_id.clone(),
            peer: self.peer,
            allowance: self.allowance.clone(),
            owner: self.owner.clone(),
            places: self.places.take(),
        }
    }
}

/// Returns the id of the request being answered.
pub(crate) fn request_id() -> String {
    EXCHANGE
        .try_with(|exchange| exchange.request_id.clone())
        .unwrap_or_default()
}

/// Reason why a request failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of the app.
    App(Error),
    /// An error that only HTTP has.
    Wire(Wire),
}

/// Errors that only HTTP has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// No such path.
    UnknownRoute,
    /// The path exists, but not with this method.
    WrongMethod,
    /// The body is larger than this many bytes.
    TooLarge(usize),
    /// The `content-type` of the body is not JSON.
    WrongType,
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
    Elsewhere {
        /// Purpose of the operation.
        what: &'static str,
        /// Alternative to the operation.
        instead: &'static str,
    },
    /// The handler panicked.
    Panic,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::App(error)
    }
}

impl From<Wire> for Failure {
    fn from(wire: Wire) -> Self {
        Self::Wire(wire)
    }
}

impl Wire {
    #[rustfmt::skip]
    fn row(self) -> (u16, u32, &'static str, String, &'static str) {
        let text = str::to_owned;
        match self {
            Self::UnknownRoute => (404, 10404, "HTTP_NotFound", text("there is nothing at this path"), "check the path; every path begins with /api/v3 or /api/v3.1"),
            Self::WrongMethod => (405, 10405, "HTTP_MethodNotAllowed", text("the path does not take this method"), "use a method that the `allow` header lists"),
            Self::TooLarge(limit) => (413, 10413, "HTTP_PayloadTooLarge", format!("the body is larger than {} KiB", limit / 1024), "send less"),
            Self::WrongType => (415, 10415, "HTTP_UnsupportedMediaType", text("the body is not JSON by its content type"), "send `content-type: application/json`"),
            Self::Encoded => (415, 10416, "HTTP_UnsupportedEncoding", text("compressed bodies are not accepted"), "send the body without a content encoding"),
            Self::SlowBody(within) => (408, 10408, "HTTP_RequestTimeout", format!("the body did not arrive within {} s", within.as_secs()), "try again over a faster connection"),
            Self::TricklingBody(rate) => (408, 10408, "HTTP_RequestTimeout", format!("the body arrives at less than {rate} KiB/s"), "try again over a faster connection"),
            Self::BrokenBody => (400, 10409, "HTTP_BodyIncomplete", text("the body ended early"), "send it again"),
            Self::LongLine => (414, 10414, "HTTP_UriTooLong", text("the request line is longer than 8 KiB"), "send fewer or shorter parameters"),
            Self::LongHeaders => (431, 10432, "HTTP_HeadersTooLarge", text("the headers are longer than 16 KiB"), "send fewer or shorter headers"),
            Self::BadHost => (400, 10436, "HTTP_HostInvalid", text("the request has no `Host` header, several, or one that names no host"), "send exactly one `Host` header"),
            Self::ForwardedInvalid => (400, 10437, "HTTP_ForwardedInvalid", text("`Forwarded` cannot be read, or names another address than `X-Forwarded-For`"), "have the proxy write one of the two headers and remove the other"),
            Self::Elsewhere { what, instead } => (501, 10502, "HTTP_NotImplemented", format!("a self-hosted server has no use for {what}"), instead),
            Self::Panic => (500, 10500, "Server_InternalError", text("internal error"), "send the `request_id` to the operator; the server's log has the reason"),
        }
    }
}

/// The envelope of every error.
#[derive(Serialize, ToSchema)]
pub(crate) struct Refusal<'a> {
    /// The same message again, at the top level where some clients look for it; only with status
    /// 429.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    message: Option<&'a str>,
    error: RefusalDetail<'a>,
}

#[derive(Serialize, ToSchema)]
struct RefusalDetail<'a> {
    /// Message for people.
    message: &'a str,
    /// Error code of this platform; not the HTTP status.
    code: u32,
    /// Identifier for programs; never changes.
    slug: &'a str,
    /// The HTTP status.
    status: u16,
    /// The `x-request-id` of the request, or one made by the server.
    request_id: String,
    /// Suggestion how to solve the problem.
    suggested_fix: &'a str,
    /// One line for each problem, if there can be several.
    errors: &'a [String],
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (status, code, slug, message, fix) = match &self {
            Self::App(error) => {
                let info = error.info();
                // Details of an internal error are logged. The response hides them: they could
                // disclose more than they help.
                let message = if matches!(error, Error::Internal(_)) {
                    "internal error".to_owned()
                } else {
                    error.to_string()
                };
                (info.status, info.code, info.slug, message, info.hint)
            }
            Self::Wire(wire) => wire.row(),
        };
        let (errors, after) = match &self {
            Self::App(error) => (error.problems(), error.retry_after()),
            Self::Wire(_) => (&[][..], None),
        };
        let request_id = request_id();
        if status >= 500 && status != 501 {
            tracing::error!(request_id, failure = ?self, "a request failed");
        } else {
            tracing::debug!(request_id, status, slug, message, "a request was refused");
        }
        let message = message.as_str();
        let detail = RefusalDetail {
            message,
            code,
            slug,
            status,
            request_id,
            suggested_fix: fix,
            errors,
        };
        let envelope = Refusal {
            message: (status == 429).then_some(message),
            error: detail,
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = json(status, &envelope);
        if let Some(after) = after {
            response.headers_mut().insert(
                header::RETRY_AFTER,
                HeaderValue::from(after.as_secs().max(1)),
            );
        }
        response
    }
}

/// Builds a response with a JSON body.
pub(crate) fn json<T: Serialize + ?Sized>(status: StatusCode, body: &T) -> Response {
    match serde_json::to_vec(body) {
        Ok(bytes) => (
            status,
            [(
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            )],
            bytes,
        )
            .into_response(),
        Err(cause) => Failure::App(Error::Internal(format!("cannot write the answer: {cause}")))
            .into_response(),
    }
}

/// Builds a response with status 200 and a JSON body.
pub(crate) fn ok<T: Serialize + ?Sized>(body: &T) -> Reply<Response> {
    Ok(json(StatusCode::OK, body))
}

/// Builds a response with status 201 and a JSON body.
pub(crate) fn created<T: Serialize + ?Sized>(body: &T) -> Reply<Response> {
    Ok(json(StatusCode::CREATED, body))
}

/// Answers requests to unknown paths.
pub(crate) async fn unknown_route(_: Uri) -> Failure {
    Wire::UnknownRoute.into()
}

/// Answers requests whose method the path does not accept.
pub(crate) async fn wrong_method(_: Method) -> Failure {
    Wire::WrongMethod.into()
}

/// Position in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    /// Number of the page, from 1.
    pub number: u64,
    /// Items on the page, 1 to 1000.
    pub limit: u64,
    /// Additional state of the list for its next page, so that pages fit together even if items are
    /// added in the meantime.
    pub mark: Option<String>,
}

impl Page {
    /// Returns the number of items on all earlier pages.
    pub(crate) fn offset(&self) -> u64 {
        (self.number - 1).saturating_mul(self.limit)
    }

    /// Returns the items of a list that are on the page, and the total number.
    pub(crate) fn cut<T>(&self, items: Vec<T>) -> (Vec<T>, u64) {
        let total = items.len() as u64;
        let offset = usize::try_from(self.offset()).unwrap_or(usize::MAX);
        (
            items
                .into_iter()
                .skip(offset)
                .take(usize::try_from(self.limit).unwrap_or(usize::MAX))
                .collect(),
            total,
        )
    }

    /// Returns the time recorded by the first page. Items created later are on no later page.
    pub(crate) fn moment(&self) -> Reply<Option<Time>> {
        let moment = self
            .mark
            .as_deref()
            .and_then(|mark| mark.split('-').next())
            .filter(|moment| !moment.is_empty());
        moment
            .map(|moment| moment.parse().map(Time))
            .transpose()
            .map_err(|_| Error::CursorInvalid.into())
    }

    /// Returns the section of a list of records that is on the page. A cursor continues after the
    /// last record of the page before; a cursor of an earlier version counts pages. `by_value` is
    /// true if a field other than the time of creation orders the list.
    pub(crate) fn window(&self, by_value: bool) -> Reply<Window> {
        let parts = self
            .mark
            .as_deref()
            .and_then(|mark| mark.split_once('-'))
            .map(|(_, after)| after);
        let after = parts.map(|parts| after(parts).filter(|mark| mark.value.is_some() == by_value));
        let after = after
            .map(|after| after.ok_or(Error::CursorInvalid))
            .transpose()?;
        let offset = if after.is_some() { 0 } else { self.offset() };
        Ok(Window {
            after,
            offset,
            limit: self.limit,
        })
    }

    /// Records the time of the newest item, unless an earlier page did.
    pub(crate) fn marked(self, newest: Option<Time>) -> Self {
        Self {
            mark: self.mark.or_else(|| Some(newest?.0.to_string())),
            ..self
        }
    }

    /// Returns the cursor of the next page, if there is one.
    pub(crate) fn next_cursor(&self, total: u64) -> Option<String> {
        (self.number.saturating_mul(self.limit) < total).then(|| self.next())
    }

    /// Returns the cursor of the next page.
    pub(crate) fn next(&self) -> String {
        crate::extract::cursor(&Page {
            number: self.number + 1,
            ..self.clone()
        })
    }
}

/// Reads the last key of a page: the value that orders the list, if one does, the time of creation,
/// and the id.
fn after(parts: &str) -> Option<Mark> {
    let mut parts = parts.splitn(3, '-');
    let value = match parts.next()? {
        "" => None,
        number => Some(Scalar::Int(number.parse().ok()?)),
    };
    let created_at = Time(parts.next()?.parse().ok()?);
    Some(Mark {
        value,
        created_at,
        id: parts.next()?.to_owned(),
    })
}

/// Builds a list of records with the given name for its items. Its cursor continues after the last
/// record.
pub(crate) fn record_list(
    name: &str,
    items: Vec<Value>,
    page: Page,
    total: u64,
    next: Option<Mark>,
) -> Value {
    let last = page.number + u64::from(next.is_some());
    let next = next.map(
        |Mark {
             value,
             created_at,
             id,
         }| {
            let moment = page
                .mark
                .as_deref()
                .and_then(|mark| mark.split('-').next())
                .unwrap_or_default();
            let value = match value {
                Some(Scalar::Int(number)) => number.to_string(),
                Some(Scalar::Text(_)) | None => String::new(),
            };
            Page {
                mark: Some(format!("{moment}-{value}-{}-{id}", created_at.0)),
                ..page.clone()
            }
            .next()
        },
    );
    json!({
        name: items,
        "next_cursor": next,
        "total_pages": total.div_ceil(page.limit).max(last),
        "current_page": page.number,
        "total_items": total,
    })
}

/// Builds a list with a cursor and the given name for its items.
pub(crate) fn cursor_list(name: &str, items: Vec<Value>, page: Page, total: u64) -> Value {
    json!({
        name: items,
        "next_cursor": page.next_cursor(total),
        "total_pages": total.div_ceil(page.limit).max(1),
        "current_page": page.number,
        "total_items": total,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(number: u64, limit: u64) -> Page {
        Page {
            number,
            limit,
            mark: None,
        }
    }

    #[test]
    fn empty_list_has_one_page_without_cursor() {
        let list = cursor_list("items", vec![], page(1, 20), 0);
        assert_eq!(
            (list["total_pages"].as_u64(), list["current_page"].as_u64()),
            (Some(1), Some(1))
        );
        assert!(list["next_cursor"].is_null());
    }

    #[test]
    fn pages_cut_a_list_without_gap_or_overlap() {
        let (first, total) = page(1, 3).cut((0..7).collect());
        let (last, _) = page(3, 3).cut((0..7).collect());
        assert_eq!((first, total, last), (vec![0, 1, 2], 7, vec![6]));
        assert!(page(2, 3).next_cursor(7).is_some());
        assert!(page(3, 3).next_cursor(7).is_none());
        assert!(page(u64::MAX, 1000).cut(vec![1]).0.is_empty());
    }

    #[test]
    fn record_cursor_continues_after_last_key() {
        let next = |mark: Option<&str>, value: Option<i64>| {
            let last = Mark {
                value: value.map(Scalar::Int),
                created_at: Time(7),
                id: "ca_x".to_owned(),
            };
            let page = Page {
                mark: mark.map(str::to_owned),
                ..page(2, 3)
            };
            let list = record_list("items", vec![], page, 1, Some(last.clone()));
            assert_eq!(
                (&list["total_pages"], &list["current_page"]),
                (&json!(3), &json!(2)),
                "a page follows"
            );
            let read = crate::extract::page(None, list["next_cursor"].as_str())
                .ok()
                .unwrap();
            assert_eq!((read.number, read.limit), (3, 3));
            assert_eq!(
                read.window(value.is_some()).ok().unwrap(),
                Window {
                    after: Some(last),
                    offset: 0,
                    limit: 3
                }
            );
            assert!(
                read.window(value.is_none()).is_err(),
                "it is a cursor of another order"
            );
            read.moment().ok().unwrap()
        };
        assert_eq!(next(Some("1700"), None), Some(Time(1700)));
        assert_eq!(next(None, Some(9)), None);
        for earlier in [None, Some("1700")] {
            let read = Page {
                mark: earlier.map(str::to_owned),
                ..page(2, 3)
            };
            assert_eq!(
                read.window(true).ok().unwrap(),
                Window {
                    after: None,
                    offset: 3,
                    limit: 3
                }
            );
        }
        let foreign = Page {
            mark: Some("1700-x".to_owned()),
            ..page(2, 3)
        };
        assert!(foreign.window(false).is_err() && foreign.window(true).is_err());
    }
}
