//! The page at the root of the server, for people who open its address in a browser. It shows only
//! facts that need no key.

use std::sync::Arc;

use app::{accounts::Brand, core::ids};
use askama::Template;
use axum::{extract::State, http::StatusCode, response::Response};
use http::{
    Server,
    auth::{ORGANIZATION_KEY_HEADER, PROJECT_KEY_HEADER, USER_KEY_HEADER},
};

use crate::link::render::{NONCE_CHARS, html, policy};

/// The page.
#[derive(Template)]
#[template(path = "home/page.html")]
struct HomePage<'a> {
    nonce: &'a str,
    brand: Option<&'a Brand>,
    version: &'a str,
    problem: Option<String>,
    /// Progress of a start that is publishing toolkits.
    progress: Option<String>,
    toolkits: usize,
    /// Path before those of this server.
    base: &'a str,
    project_header: &'static str,
    organization_header: &'static str,
    user_header: &'static str,
}

/// Answers with the page.
pub async fn page(State(server): State<Arc<Server>>) -> Response {
    let nonce = ids::random_text(NONCE_CHARS);
    let catalog = server.app.catalog.snapshot();
    let progress = catalog.publication_progress();
    let page = HomePage {
        nonce: &nonce,
        brand: None,
        version: env!("CARGO_PKG_VERSION"),
        problem: server.app.store_problem(),
        progress: progress.map(|(published, total)| {
            format!("The server is still publishing toolkits: {published} of {total}.")
        }),
        base: server.config.public_path(),
        toolkits: catalog.toolkits().count(),
        project_header: PROJECT_KEY_HEADER,
        organization_header: ORGANIZATION_KEY_HEADER,
        user_header: USER_KEY_HEADER,
    };
    html(StatusCode::OK, &page, &policy(&nonce, "'none'"))
}
