//! Rendering of the pages, with the headers that keep browsers from loading, framing or leaking
//! anything. The templates escape all text from outside.

use app::{
    accounts::{Brand, Form},
    core::ids,
};
use askama::Template;
use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use http::{ApiError, Server, errors};
use url::Url;

use super::{
    NO_REFERRER, REFERRER_POLICY,
    scopes::{self, Scope},
};

/// Length of the random value that allows the style of one response.
pub(crate) const NONCE_CHARS: usize = 22;

/// Name of the hidden form field with the form token. No field of a toolkit can have this name.
pub(super) const FORM_TOKEN_FIELD: &str = "form-token";

/// Page with the form of a link.
#[derive(Template)]
#[template(path = "link/form.html")]
struct FormPage<'a> {
    nonce: &'a str,
    brand: Option<&'a Brand>,
    project: &'a str,
    toolkit: &'a str,
    form: &'a Form,
    scopes: &'a [Scope],
    form_token_field: &'a str,
    form_token: &'a str,
}

impl FormPage<'_> {
    fn has_problem(&self) -> bool {
        self.form.problem.is_some() || self.form.fields.iter().any(|field| field.problem.is_some())
    }

    fn has_secret(&self) -> bool {
        self.form.fields.iter().any(|shown| shown.field.secret)
    }
}

/// Page with a message.
#[derive(Template)]
#[template(path = "link/message.html")]
struct MessagePage<'a> {
    nonce: &'a str,
    brand: Option<&'a Brand>,
    title: &'a str,
    text: &'a str,
}

/// Renders a page with a message, and a link back to the project if it is known.
pub(super) fn message(
    status: StatusCode,
    title: &str,
    text: &str,
    brand: Option<&Brand>,
) -> Response {
    let nonce = ids::random_text(NONCE_CHARS);
    let page = MessagePage {
        nonce: &nonce,
        brand,
        title,
        text,
    };
    let policy = with_logos(policy(&nonce, "'self' https:"), brand);
    html(status, &page, &policy)
}

/// Renders the page with the form of a link.
pub(super) fn form_page(
    server: &Server,
    form: &Form,
    status: StatusCode,
    form_token: &str,
) -> Response {
    let nonce = ids::random_text(NONCE_CHARS);
    let scopes = scopes::in_words(&form.scopes);
    let page = FormPage {
        nonce: &nonce,
        brand: Some(&form.brand),
        project: &form.brand.project,
        toolkit: &form.brand.toolkit,
        form,
        scopes: &scopes,
        form_token_field: FORM_TOKEN_FIELD,
        form_token,
    };
    let targets = form_targets(server, form);
    let policy = with_logos(policy(&nonce, &targets), Some(&form.brand));
    html(status, &page, &policy)
}

/// Returns the addresses to which the form of a link may lead. Browsers apply `form-action` to every
/// redirect that follows a form, and the hosts through which a provider signs its users in are not
/// known. Without a public URL, providers may be reached by http.
fn form_targets(server: &Server, form: &Form) -> String {
    let mut targets = "'self' https:".to_owned();
    if server.config.public_url.is_none() {
        targets += " http:";
    }
    if let Some(origin) = form.brand.return_url.as_deref().and_then(origin) {
        targets += " ";
        targets += &origin;
    }
    targets
}

/// Allows the logos of a page.
fn with_logos(policy: String, brand: Option<&Brand>) -> String {
    let logos = brand.map_or(&[][..], |brand| &brand.logos);
    let origins: Vec<_> = logos.iter().filter_map(|logo| origin(logo)).collect();
    policy.replace(
        "img-src data:",
        &format!("img-src data: {}", origins.join(" ")),
    )
}

/// Returns the content security policy of a page whose form leads to the given targets.
pub(crate) fn policy(nonce: &str, form_targets: &str) -> String {
    format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; img-src data:; form-action {form_targets}; \
         base-uri 'none'; frame-ancestors 'none'"
    )
}

/// Builds the response. A page is never sent without its policy.
pub(crate) fn html(status: StatusCode, page: &impl Template, policy: &str) -> Response {
    let (Ok(html), Ok(policy)) = (page.render(), HeaderValue::from_str(policy)) else {
        let cause = "a page cannot be rendered".to_owned();
        return ApiError::App(errors::internal(cause)).into_response();
    };
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (header::CONTENT_SECURITY_POLICY, policy),
        (REFERRER_POLICY, NO_REFERRER),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    ];
    (status, headers, html).into_response()
}

/// Returns true if a client asks for a page by name, as browsers do.
pub(crate) fn accepts_html(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT);
    accept
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("text/html"))
}

/// Returns the origin of a URL, as a content security policy writes it.
fn origin(url: &str) -> Option<String> {
    let origin = Url::parse(url).ok()?.origin();
    origin.is_tuple().then(|| origin.ascii_serialization())
}

#[cfg(test)]
mod tests;
