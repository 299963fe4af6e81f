//! Handlers of the link page: the form, its submission, and the result page.

use std::sync::Arc;

use app::accounts::{self, LinkPage, Submitted, Values};
use axum::{
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    response::Response,
};
use http::{ApiResult, Path, Query, Server, auth, body, errors, limiter::SecretKind};

use serde::Deserialize;

use super::{
    browser_cookie, messages, redirect,
    render::{self, FORM_TOKEN_FIELD},
};

/// Maximum size of a submitted form.
const MAX_FORM_BYTES: usize = 64 << 10;

/// Shows the form of a link.
pub async fn show(
    State(server): State<Arc<Server>>,
    Path(token): Path<String>,
    headers: HeaderMap,
) -> Response {
    let page = match open_link(&server, &token).await {
        Ok(page) => page,
        Err(failure) => return messages::link_error(failure),
    };
    let browser = browser_cookie::read(&server, &headers).unwrap_or_else(browser_cookie::random_id);
    let form_token = server.app.form_token(&token, &browser);
    let mut response = link_page(&server, &page, StatusCode::OK, &form_token);
    if let (LinkPage::Form(_), Some(cookie)) = (&page, browser_cookie::set(&server, &browser)) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// Renders the page of a link. A page without a form has a status of its own.
fn link_page(server: &Server, page: &LinkPage, status: StatusCode, form_token: &str) -> Response {
    match page {
        LinkPage::Form(form) => render::form_page(server, form, status, form_token),
        LinkPage::Expired(brand) => messages::expired(brand),
        LinkPage::Used(brand) => messages::used(brand),
        LinkPage::NoOauthApp(brand) => messages::no_oauth_app(brand),
    }
}

/// Accepts the submitted form.
pub async fn submit(
    State(server): State<Arc<Server>>,
    Path(token): Path<String>,
    request: Request,
) -> Response {
    accept_form(&server, &token, request)
        .await
        .unwrap_or_else(messages::link_error)
}

async fn accept_form(server: &Server, token: &str, request: Request) -> ApiResult<Response> {
    // A request without a valid link is answered without reading its body.
    match open_link(server, token).await? {
        LinkPage::Form(_) => {}
        page => return Ok(link_page(server, &page, StatusCode::GONE, "")),
    }
    let browser = browser_cookie::read(server, request.headers());
    let body = body::read(server, request, MAX_FORM_BYTES).await?;
    let mut values = Values::new();
    let mut form_token = String::new();
    for (name, value) in url::form_urlencoded::parse(&body).into_owned() {
        if name == FORM_TOKEN_FIELD {
            form_token = value;
        } else if !value.contains('\0') {
            values.insert(name, value.trim().to_owned().into());
        }
    }
    // The expected value is a keyed hash over the secret id of the browser.
    let browser = browser
        .filter(|browser| server.app.form_token(token, browser) == form_token)
        .ok_or_else(errors::attempt_unknown)?;
    let submitted = accounts::submit(&server.app, token, values, &browser).await?;
    Ok(match submitted {
        Submitted::Redirect(url) => redirect(StatusCode::SEE_OTHER, &url),
        Submitted::ShowPage(page) => {
            link_page(server, &page, StatusCode::UNPROCESSABLE_ENTITY, &form_token)
        }
    })
}

/// Parameters of the result page.
#[derive(Deserialize)]
pub struct DoneQuery {
    status: Option<String>,
}

/// Shows the result to users of projects that have no callback URL of their own.
pub async fn done(Query(query): Query<DoneQuery>) -> Response {
    messages::result(query.status.as_deref() == Some("success"))
}

async fn open_link(server: &Server, token: &str) -> ApiResult<LinkPage> {
    auth::verify_secret(
        server,
        SecretKind::Link,
        accounts::open_link(&server.app, token),
    )
    .await
}
