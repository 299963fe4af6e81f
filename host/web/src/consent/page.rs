//! Rendering of the page on which a member consents.

use std::borrow::Cow;

use app::{
    Error,
    accounts::Brand,
    agents::mcp_oauth::{EndpointNames, NamedToolkits, Resource},
    core::{ids, visible::visible_line},
};
use askama::Template;
use axum::{http::StatusCode, response::Response};
use http::{ApiError, errors};
use url::{Host, Url};

use super::request::AuthorizationRequest;
use crate::link::{
    messages,
    render::{NONCE_CHARS, html, policy},
};

/// Name of the hidden form field with the form token.
pub(super) const FORM_TOKEN_FIELD: &str = "form-token";
/// Maximum number of toolkits that the page names.
const MAX_SHOWN_TOOLKITS: usize = 20;
/// Name of an endpoint that does not exist, on the page.
const UNKNOWN_NAME: &str = "unknown";

/// Page on which a member consents.
#[derive(Template)]
#[template(path = "consent/page.html")]
struct ConsentPage<'a> {
    nonce: &'a str,
    brand: Option<&'a Brand>,
    client: &'a str,
    destination: String,
    /// Kind of the endpoint.
    endpoint: &'a str,
    /// Name of the endpoint, if it is known and has one.
    name: Option<Cow<'a, str>>,
    project: Option<Cow<'a, str>>,
    toolkits: String,
    user: Option<Cow<'a, str>>,
    accounts: usize,
    problem: Option<&'static str>,
    form_token_field: &'a str,
    form_token: &'a str,
}

/// Form of the page.
pub(super) struct Form<'a> {
    pub(super) token: &'a str,
    /// Reason why a key was refused.
    pub(super) refused: Option<&'a Error>,
}

/// Renders the page for an endpoint with these names, or without any if it does not exist.
pub(super) fn show(
    request: &AuthorizationRequest,
    names: Option<&EndpointNames>,
    form: Form<'_>,
    status: StatusCode,
) -> Response {
    let nonce = ids::random_text(NONCE_CHARS);
    let (endpoint, user, accounts) = match &request.consent.resource {
        Resource::Session(_) => ("Session", None, 0),
        Resource::Server { selection, .. } => (
            "MCP server",
            selection.user_id.as_deref(),
            selection.accounts.len(),
        ),
    };
    let user = names.and_then(|names| names.user.as_deref()).or(user);
    let page = ConsentPage {
        nonce: &nonce,
        brand: None,
        client: request.client.name.as_deref().unwrap_or("An application"),
        destination: destination(&request.redirect_uri),
        endpoint,
        name: names.map_or(Some(UNKNOWN_NAME.into()), |names| {
            names.server.as_deref().map(visible_line)
        }),
        project: names.map(|names| visible_line(&names.project)),
        toolkits: names.map(toolkits).unwrap_or_default(),
        user: user.map(visible_line),
        accounts,
        problem: form.refused.and_then(problem_of_key),
        form_token_field: FORM_TOKEN_FIELD,
        form_token: form.token,
    };
    // Browsers apply `form-action` to every redirect that follows the form.
    let targets = format!("'self' https: {}", form_target(&request.redirect_uri));
    html(status, &page, &policy(&nonce, &targets))
}

/// Describes the toolkits of an endpoint.
fn toolkits(names: &EndpointNames) -> String {
    let (before, listed) = match &names.toolkits {
        NamedToolkits::Only(listed) => ("", listed),
        NamedToolkits::AllBut(listed) if listed.is_empty() => return "All".to_owned(),
        NamedToolkits::AllBut(listed) => ("All but ", listed),
    };
    let shown: Vec<_> = listed.iter().take(MAX_SHOWN_TOOLKITS).collect();
    let shown: Vec<_> = shown.into_iter().map(|name| visible_line(name)).collect();
    let more = listed.len() - shown.len();
    let more = if more == 0 {
        String::new()
    } else {
        format!(" and {more} more")
    };
    format!("{before}{}{more}", shown.join(", "))
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

/// Returns what a member reads about a refused key; `None` if an error does not concern the key.
#[rustfmt::skip]
pub(super) fn problem_of_key(cause: &Error) -> Option<&'static str> {
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
    let origin = uri.origin();
    let source = origin.ascii_serialization();
    // A policy cannot name an address of IPv6, and `;` and `,` in a name would end the directive.
    let is_named = !matches!(uri.host(), Some(Host::Ipv6(_))) && !source.contains([';', ',']);
    if origin.is_tuple() && is_named {
        source
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
            name: Some(HOSTILE_TEXT.into()),
            project: Some(HOSTILE_TEXT.into()),
            toolkits: HOSTILE_TEXT.into(),
            user: Some(HOSTILE_TEXT.into()),
            accounts: 0,
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
        assert_eq!(html.matches("&#60;script&#62;").count(), 8, "{html}");
    }

    #[test]
    fn long_lists_of_toolkits_are_cut() {
        let listed = |count: usize| (0..count).map(|number| format!("T{number}")).collect();
        let described = |named| {
            toolkits(&EndpointNames {
                server: None,
                user: None,
                project: "one".into(),
                toolkits: named,
            })
        };
        assert_eq!(described(NamedToolkits::Only(listed(2))), "T0, T1");
        assert_eq!(described(NamedToolkits::AllBut(listed(1))), "All but T0");
        assert_eq!(described(NamedToolkits::AllBut(Vec::new())), "All");
        let many = described(NamedToolkits::Only(listed(MAX_SHOWN_TOOLKITS + 2)));
        assert!(many.ends_with("T19 and 2 more"), "{many}");
    }

    #[test]
    fn policies_permit_the_redirect() {
        for (uri, expected) in [
            ("https://app.example/cb", "https://app.example"),
            ("http://127.0.0.1:4000/cb", "http://127.0.0.1:4000"),
            ("http://[::1]:4000/cb", "http:"),
            ("https://a;sandbox/cb", "https:"),
            ("cursor://callback", "cursor:"),
            ("com.example.app:/cb", "com.example.app:"),
        ] {
            assert_eq!(form_target(&Url::parse(uri).unwrap()), expected);
        }
    }
}
