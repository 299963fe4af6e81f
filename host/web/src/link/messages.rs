//! Pages that only state a result or an error.

use std::borrow::Cow;

use app::accounts::Brand;
use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use http::{ApiError, context::request_id};

use super::render::message;

/// Reports that a link has expired.
pub(super) fn expired(brand: &Brand) -> Response {
    let text = format!(
        "A link works for a limited time. Ask {} for a new link.",
        brand.project
    );
    message(
        StatusCode::GONE,
        "This link has expired",
        &text,
        Some(brand),
    )
}

/// Reports that a link has been used or replaced.
pub(super) fn used(brand: &Brand) -> Response {
    let text = format!(
        "A link works once, and a newer link replaces it. To connect again, ask {} for a new link.",
        brand.project
    );
    message(StatusCode::GONE, "This link was used", &text, Some(brand))
}

/// Reports that the server is no longer registered at the provider.
pub(super) fn no_oauth_app(brand: &Brand) -> Response {
    let Brand {
        project, toolkit, ..
    } = brand;
    let title = format!("{toolkit} cannot be connected");
    let text = format!(
        "The operator of this server has removed its registration at {toolkit}. Tell {project} \
         about it. Nothing was sent to {toolkit}, and there is nothing that you can change."
    );
    message(StatusCode::SERVICE_UNAVAILABLE, &title, &text, Some(brand))
}

/// Reports the result of a connection attempt.
pub(super) fn result(is_connected: bool) -> Response {
    let (title, text) = if is_connected {
        (
            "Connected",
            "The account is connected. You can close this window.",
        )
    } else {
        (
            "Not connected",
            "The account was not connected. Open the link that you got again, or close this window \
             and start again in the application that sent you here.",
        )
    };
    message(StatusCode::OK, title, text, None)
}

/// Reports an error of the link page.
pub(super) fn link_error(failure: ApiError) -> Response {
    error(
        failure,
        "This link does not work",
        "The link is incomplete or no longer valid, or the form was opened in another browser. \
         Open the link again in this browser. If it still does not work, ask for a new link.",
    )
}

/// Reports an error of the callback.
pub(super) fn callback_error(failure: ApiError) -> Response {
    error(
        failure,
        "This page cannot connect the account",
        "The connection attempt is already complete, has expired, or was started in another \
         browser. If the account is not connected, start again in the application that sent you \
         here.",
    )
}

/// Reports an error. `title` and `text` are shown if the secret in the address is refused.
pub(crate) fn error(failure: ApiError, title: &str, text: &str) -> Response {
    let response = failure.into_response();
    let status = response.status();
    let (title, text) = match status.as_u16() {
        400 | 404 => (title, Cow::Borrowed(text)),
        429 => (
            "Too many attempts",
            "Too many invalid links or keys came from your network. Wait a minute, then load this \
             page again."
                .into(),
        ),
        401..500 => (
            "The form was not accepted",
            "The form is too large or arrived too slowly. Open the link again and enter the \
             values again."
                .into(),
        ),
        _ => (
            "The server has a problem",
            format!(
                "The request could not be completed. Load this page again in a minute. If the \
                 problem persists, report the request id {} to the operator of this server.",
                &*request_id()
            )
            .into(),
        ),
    };
    let mut page = message(status, title, &text, None);
    if let Some(retry_after) = response.headers().get(header::RETRY_AFTER) {
        page.headers_mut()
            .insert(header::RETRY_AFTER, retry_after.clone());
    }
    page
}
