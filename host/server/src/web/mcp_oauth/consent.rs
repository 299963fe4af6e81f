//! Rendering of the page on which a member consents.

use std::borrow::Cow;

use app::{
    Error,
    accounts::Brand,
    agents::mcp_oauth::Resource,
    core::{ids, visible::visible_line},
};
use askama::Template;
use axum::{http::StatusCode, response::Response};
use url::{Host, Url};

use super::authorize::{AuthorizationRequest, FORM_TOKEN_FIELD};
use crate::{
    http::{ApiError, errors},
    web::link::{
        messages,
        render::{NONCE_CHARS, html, policy},
    },
};

/// Page on which a member consents.
#[derive(Template)]
#[template(path = "mcp_oauth/consent.html")]
struct ConsentPage<'a> {
    nonce: &'a str,
    brand: Option<&'a Brand>,
    client: &'a str,
    destination: String,
    endpoint: &'a str,
    id: Cow<'a, str>,
    user: Option<Cow<'a, str>>,
    accounts: String,
    problem: Option<&'static str>,
    form_token_field: &'a str,
    form_token: &'a str,
}

/// Renders the page, with the reason why a key was refused.
pub(super) fn page(
    request: &AuthorizationRequest,
    form_token: &str,
    refused: Option<&Error>,
    status: StatusCode,
) -> Response {
    let nonce = ids::random_text(NONCE_CHARS);
    let (endpoint, id, user, accounts) = match &request.consent.resource {
        Resource::Session(id) => ("Session", id.as_str(), None, &[][..]),
        Resource::Server { id, selection } => (
            "MCP server",
            id.as_str(),
            selection.user_id.as_deref(),
            &selection.accounts[..],
        ),
    };
    let accounts: Vec<_> = accounts.iter().map(ToString::to_string).collect();
    let page = ConsentPage {
        nonce: &nonce,
        brand: None,
        client: request.client.name.as_deref().unwrap_or("An application"),
        destination: destination(&request.redirect_uri),
        endpoint,
        id: visible_line(id),
        user: user.map(visible_line),
        accounts: accounts.join(", "),
        problem: refused.and_then(problem),
        form_token_field: FORM_TOKEN_FIELD,
        form_token,
    };
    // Browsers apply `form-action` to every redirect that follows the form.
    let targets = format!("'self' https: {}", form_target(&request.redirect_uri));
    html(status, &page, &policy(&nonce, &targets))
}

/// Renders a page for a request that cannot be authorized.
pub(super) fn refusal(cause: ApiError) -> Response {
    let reason = match &cause {
        ApiError::App(error) => format!("{error} ({})", error.info().hint),
        ApiError::Http(_) => String::new(),
    };
    let text = format!("The application that sent you here has to correct its request: {reason}.");
    messages::error(cause, "This request cannot be authorized", &text)
}

/// Returns true if an error concerns the key, so that the page is shown again.
pub(super) fn is_about_key(cause: &Error) -> bool {
    problem(cause).is_some()
}

/// Returns what a member reads about a refused key.
#[rustfmt::skip]
fn problem(cause: &Error) -> Option<&'static str> {
    let problems = [
        (&errors::KEY_INVALID, "The key is not valid."),
        (&errors::MCP_KEY_WITHOUT_ACCESS, "The key gives no access to this endpoint, or the endpoint does not exist."),
        (&errors::KEY_PERMISSION, "The key has no permission to run tools at this endpoint."),
        (&errors::KEY_ADDRESS, "The key may not be used from your address."),
    ];
    problems.into_iter().find_map(|(kind, problem)| cause.is(kind).then_some(problem))
}

/// Describes where the browser goes after the decision.
fn destination(uri: &Url) -> String {
    match (uri.scheme(), uri.host_str()) {
        ("https", Some(host)) => host.to_owned(),
        ("http", Some(host)) => format!("a program on this computer ({host})"),
        (scheme, _) => format!("the program for {scheme}: addresses"),
    }
}

/// Returns the source of a content security policy that permits a redirect to a URI.
fn form_target(uri: &Url) -> String {
    // A policy cannot name an address of IPv6.
    let is_named = !matches!(uri.host(), Some(Host::Ipv6(_)));
    let origin = uri.origin();
    if origin.is_tuple() && is_named {
        origin.ascii_serialization()
    } else {
        format!("{}:", uri.scheme())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE_TEXT: &str = "\"><script>alert('x')</script>{{ 7 * 7 }}";

    #[test]
    fn untrusted_text_is_escaped() {
        let page = ConsentPage {
            nonce: "nonce",
            brand: None,
            client: HOSTILE_TEXT,
            destination: HOSTILE_TEXT.into(),
            endpoint: "MCP server",
            id: HOSTILE_TEXT.into(),
            user: Some(HOSTILE_TEXT.into()),
            accounts: HOSTILE_TEXT.into(),
            problem: None,
            form_token_field: FORM_TOKEN_FIELD,
            form_token: HOSTILE_TEXT,
        };
        let html = page.render().unwrap();
        assert!(
            !html.contains("<script") && !html.contains("alert('"),
            "{html}"
        );
        // The name of the client is also in the title.
        assert_eq!(html.matches("&#60;script&#62;").count(), 7, "{html}");
    }

    #[test]
    fn policies_permit_the_redirect() {
        for (uri, expected) in [
            ("https://app.example/cb", "https://app.example"),
            ("http://127.0.0.1:4000/cb", "http://127.0.0.1:4000"),
            ("http://[::1]:4000/cb", "http:"),
            ("cursor://callback", "cursor:"),
            ("com.example.app:/cb", "com.example.app:"),
        ] {
            assert_eq!(form_target(&Url::parse(uri).unwrap()), expected);
        }
    }
}
