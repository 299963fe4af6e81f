//! The page on which a user connects an account, and the callback to which providers redirect
//! users.
//!
//! The page is rendered by the server, works without a script, loads logos alone, and cannot be framed.
//! All text from outside is escaped. The link token in its address works once. No other secret is
//! in an address, on the page or in the browser, except the random id of the browser in its cookie.
//! A form is accepted only from the page that was sent to the same browser.

pub(super) mod browser_cookie;
pub(crate) mod callback;
pub mod client_metadata;
pub(super) mod messages;
pub mod page;
pub(super) mod render;
mod scopes;

use axum::{
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use http::{ApiError, errors};

const REFERRER_POLICY: HeaderName = HeaderName::from_static("referrer-policy");
const NO_REFERRER: HeaderValue = HeaderValue::from_static("no-referrer");

/// Redirects the browser without telling the target the address of this page.
pub(super) fn redirect(status: StatusCode, url: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(url) else {
        let cause = "a redirect URL is not a valid header value".to_owned();
        return ApiError::App(errors::internal(cause)).into_response();
    };
    let headers = [(header::LOCATION, location), (REFERRER_POLICY, NO_REFERRER)];
    (status, headers).into_response()
}
