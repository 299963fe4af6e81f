//! The answer to requests for unknown paths: a page for browsers, the envelope of the API for all
//! other clients and below the API.

use std::sync::Arc;

use app::{accounts::Brand, core::ids};
use askama::Template;
use axum::{
    extract::State,
    http::{HeaderMap, Uri},
    response::{IntoResponse, Response},
};
use http::{ApiError, HttpError, Server, similar_route::similar_route};

use crate::link::render::{NONCE_CHARS, accepts_html, html, policy};

/// Path of the API, below which every error has the envelope.
const API_PATH: &str = "/api";

/// The page.
#[derive(Template)]
#[template(path = "missing/page.html")]
struct MissingPage<'a> {
    nonce: &'a str,
    brand: Option<&'a Brand>,
    /// Path before those of this server.
    base: &'a str,
}

/// Answers requests for unknown paths.
pub async fn answer(State(server): State<Arc<Server>>, uri: Uri, headers: HeaderMap) -> Response {
    let similar = similar_route(&server, uri.path());
    let envelope = ApiError::from(HttpError::UnknownRoute(similar)).into_response();
    if is_api(uri.path()) || !accepts_html(&headers) {
        return envelope;
    }
    let nonce = ids::random_text(NONCE_CHARS);
    let page = MissingPage {
        nonce: &nonce,
        brand: None,
        base: server.config.public_path(),
    };
    html(envelope.status(), &page, &policy(&nonce, "'none'"))
}

fn is_api(path: &str) -> bool {
    let rest = path.strip_prefix(API_PATH);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
