//! The page on which a user connects an account, and the callback to which providers redirect
//! users.
//!
//! The page is rendered by the server, works without a script, loads nothing, and cannot be framed.
//! All text from outside is escaped. The link token in its address works once. No other secret is
//! in an address, on the page or in the browser, except the random id of the browser in its cookie.
//! A form is accepted only from the page that was sent to the same browser.
//!
//! Providers also fetch the client metadata here if the client id is its URL.

use std::sync::Arc;

use app::{
    Error,
    connections::{self, Brand, Form, FormField, LinkPage, Submitted, Values},
    ids::{self, AuthConfigId},
};
use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use url::Url;

use crate::{
    Server,
    http::{
        auth, body, error::ApiError, error::ApiResult, limiter::SecretKind, path::Path,
        scaffold::RawQuery, scaffold::ok,
    },
};

/// Maximum bytes of a form.
const FORM: usize = 64 << 10;
/// Name of the hidden form field. No field of a toolkit can have this name.
const TOKEN: &str = "form-token";
/// Seconds that a browser keeps its cookie: as long as a user may take at a provider.
const KEPT: u32 = 3_600;
const REFERRER_POLICY: HeaderName = HeaderName::from_static("referrer-policy");

/// Shows the form of a link.
pub(crate) async fn show(
    State(server): State<Arc<Server>>,
    Path(token): Path<String>,
    headers: HeaderMap,
) -> Response {
    let (page, browser) = match (opened(&server, &token).await, browser(&server, &headers)) {
        (Ok(page), Some(browser)) => (page, browser),
        (Ok(page), None) => (page, ids::random_text(43)),
        (Err(failure), _) => return failed(failure),
    };
    let mut response = rendered(&server, &page, StatusCode::OK, |form| {
        form_page(&server, form, &token, &browser)
    });
    let secure = if is_secure(&server) { "; Secure" } else { "" };
    let cookie = format!(
        "{}={browser}; Path=/; Max-Age={KEPT}; HttpOnly; SameSite=Lax{secure}",
        cookie_name(&server)
    );
    if let (LinkPage::Form(_), Ok(cookie)) = (&page, HeaderValue::from_str(&cookie)) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// Accepts the submitted form.
pub(crate) async fn submit(
    State(server): State<Arc<Server>>,
    Path(token): Path<String>,
    request: Request,
) -> Response {
    match taken(&server, &token, request).await {
        Ok(response) => response,
        Err(failure) => failed(failure),
    }
}

async fn taken(server: &Server, token: &str, request: Request) -> ApiResult<Response> {
    // A request without a valid link is answered without reading its body.
    if let page @ (LinkPage::Expired(_) | LinkPage::Used(_)) = opened(server, token).await? {
        return Ok(rendered(server, &page, StatusCode::GONE, |_| String::new()));
    }
    let browser = browser(server, request.headers());
    let body = body::read(server, request, FORM).await?;
    let mut given = Values::new();
    let mut shown = String::new();
    for (name, value) in url::form_urlencoded::parse(&body).into_owned() {
        if name == TOKEN {
            shown = value;
        } else if !value.contains('\0') {
            given.insert(name, value.trim().to_owned().into());
        }
    }
    // The expected value is a keyed hash over the secret id of the browser.
    let browser = browser.filter(|browser| server.app.form_token(token, browser) == shown);
    let browser = browser.ok_or(Error::FlowUnknown)?;
    match connections::submit(&server.app, token, given, &browser).await? {
        Submitted::Redirect(url) => Ok(away(StatusCode::SEE_OTHER, &url)),
        Submitted::ShowPage(page) => Ok(rendered(
            server,
            &page,
            StatusCode::UNPROCESSABLE_ENTITY,
            |form| form_page(server, form, token, &browser),
        )),
    }
}

/// Handles the redirect of a user's browser back from a provider.
#[utoipa::path(
    get,
    path = "/toolkits/auth/callback",
    operation_id = "callback",
    params(
        ("state" = Option<String>, Query, description = "Names the connection that the browser was sent away with"),
        ("code" = Option<String>, Query, description = "What the application gives the tokens for"),
        ("iss" = Option<String>, Query, description = "The application's own name, where it tells it"),
        ("error" = Option<String>, Query, description = "Why the application gives none"),
        ("error_description" = Option<String>, Query, description = "The same, for people"),
        ("oauth_token" = Option<String>, Query, description = "The request of older applications"),
        ("oauth_verifier" = Option<String>, Query, description = "The code of older applications"),
    ),
    responses((status = 302, description = "The browser goes on, to the project's own address if it gave one")),
    security(()),
)]
pub(crate) async fn callback(
    State(server): State<Arc<Server>>,
    headers: HeaderMap,
    query: RawQuery,
) -> Response {
    let (browser, pairs, own) = (
        browser(&server, &headers),
        query.pairs().to_vec(),
        server.clone(),
    );
    let taken = async move { connections::callback(&own.app, &pairs, browser.as_deref()).await };
    let done = auth::judged(&server, SecretKind::Callback, to_the_end(taken));
    let reads = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok());
    match done.await {
        Ok(landed) => away(StatusCode::FOUND, &landed.0),
        Err(failure) if reads.is_some_and(|accept| accept.contains("text/html")) => failed(failure),
        Err(failure) => failure.into_response(),
    }
}

/// Runs work that consumes a one-time value to completion, even if the client disconnects: an
/// authorization code that was used without effect is lost.
pub(crate) async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = app::Result<T>> + Send + 'static,
) -> app::Result<T> {
    #[expect(
        clippy::disallowed_methods,
        reason = "it is awaited for as long as anybody waits, and bounded by its requests"
    )]
    let done = tokio::spawn(work).await;
    done.unwrap_or_else(|_| Err(Error::Internal("a callback has panicked".into())))
}

/// Answers with the metadata of the client whose id is this address.
pub(crate) async fn client(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> ApiResult<Response> {
    ok(&connections::client_metadata(&server.app, &AuthConfigId::parse(&id)?).await?)
}

/// Shows the result to users of projects that have no callback URL of their own.
pub(crate) async fn done(query: RawQuery) -> Response {
    match query.text("status") {
        Ok(Some("success")) => told(
            StatusCode::OK,
            "Connected",
            "The account is connected. You can close this window.",
            None,
        ),
        _ => told(
            StatusCode::OK,
            "Not connected",
            "The account was not connected. Close this window and begin again where you came from.",
            None,
        ),
    }
}

async fn opened(server: &Server, token: &str) -> ApiResult<LinkPage> {
    auth::judged(
        server,
        SecretKind::Link,
        connections::open_link(&server.app, token),
    )
    .await
}

fn is_secure(server: &Server) -> bool {
    server
        .config
        .public_url
        .as_ref()
        .is_some_and(|url| url.scheme() == "https")
}

/// With the `__Host-` prefix, browsers accept the cookie only from this exact host. The prefix
/// requires https.
fn cookie_name(server: &Server) -> &'static str {
    if is_secure(server) {
        "__Host-toolhost"
    } else {
        "toolhost"
    }
}

/// Returns the random id that the browser's cookie contains.
fn browser(server: &Server, headers: &HeaderMap) -> Option<String> {
    let all = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|cookies| cookies.to_str().ok());
    let mut pairs = all
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let found = pairs
        .find(|(name, _)| *name == cookie_name(server))
        .map(|(_, value)| value.to_owned());
    found
        .filter(|value| value.len() == 43 && value.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

fn away(status: StatusCode, url: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(url) else {
        return ApiError::App(Error::Internal("an address is no header".into())).into_response();
    };
    let headers = [
        (header::LOCATION, location),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    (status, headers).into_response()
}

/// Shows an error as a page.
fn failed(failure: ApiError) -> Response {
    let refused = failure.into_response();
    let status = refused.status();
    let (title, text) = match status.as_u16() {
        400 | 404 => (
            "This link does not work",
            "It was used, has ended, or was opened in another browser before.",
        ),
        429 => (
            "Too many attempts",
            "Wait a minute, then open the link again.",
        ),
        _ => (
            "Something went wrong",
            "Nothing was changed. Open the link again in a moment.",
        ),
    };
    let mut page = told(status, title, text, None);
    page.headers_mut().extend(
        refused
            .headers()
            .get(header::RETRY_AFTER)
            .map(|after| (header::RETRY_AFTER, after.clone())),
    );
    page
}

fn rendered(
    server: &Server,
    page: &LinkPage,
    status: StatusCode,
    form: impl FnOnce(&Form) -> String,
) -> Response {
    match page {
        LinkPage::Form(shown) => {
            let goes_to = shown.brand.return_url.as_deref().and_then(origin);
            page_of(
                status,
                &shown.brand,
                &form(shown),
                goes_to.as_deref(),
                server.config.public_url.is_none(),
            )
        }
        LinkPage::Expired(brand) => told(
            StatusCode::GONE,
            "This link has expired",
            "Ask for a new one.",
            Some(brand),
        ),
        LinkPage::Used(brand) => told(
            StatusCode::GONE,
            "This link was used",
            "It works once. Ask for a new one to connect again.",
            Some(brand),
        ),
    }
}

/// Renders a page with only a message and the link back.
fn told(status: StatusCode, title: &str, text: &str, brand: Option<&Brand>) -> Response {
    let mut body = format!("<h1>{}</h1><p>{}</p>", escaped(title), escaped(text));
    if let Some((brand, back)) = brand.and_then(|brand| Some((brand, brand.return_url.as_ref()?))) {
        body += &format!(
            "<p><a href=\"{}\">Back to {}</a></p>",
            escaped(back),
            escaped(&brand.project)
        );
    }
    let nobody = Brand {
        project: title.to_owned(),
        toolkit: String::new(),
        return_url: None,
    };
    page_of(status, brand.unwrap_or(&nobody), &body, None, false)
}

fn form_page(server: &Server, form: &Form, token: &str, browser: &str) -> String {
    let Brand {
        project,
        toolkit,
        return_url,
        ..
    } = &form.brand;
    let (project, toolkit) = (escaped(project), escaped(toolkit));
    let mut body = format!(
        "<h1>Connect {toolkit}</h1><p>{project} asks for access to your {toolkit} account.</p>"
    );
    let wrong = form.fields.iter().any(|field| field.problem.is_some());
    let problem = match &form.problem {
        Some(problem) => Some(format!(
            "{toolkit} was not connected: {}.",
            escaped(problem)
        )),
        None => wrong.then(|| "Correct what is marked below.".to_owned()),
    };
    if let Some(problem) = problem {
        body += &format!(
            "<p class=\"problem\" role=\"alert\">{problem} Secrets have to be entered again.</p>"
        );
    }
    body += "<form method=\"post\" autocomplete=\"off\">";
    body += &format!(
        "<input type=\"hidden\" name=\"{TOKEN}\" value=\"{}\">",
        server.app.form_token(token, browser)
    );
    for (number, field) in form.fields.iter().enumerate() {
        body += &input(number, field);
    }
    let next = if form.redirects {
        format!("Continue to {toolkit}")
    } else {
        "Connect".to_owned()
    };
    body += &format!("<button type=\"submit\">{next}</button></form>");
    if let Some(return_url) = return_url {
        body += &format!(
            "<p><a href=\"{}\">Back to {project}</a></p>",
            escaped(return_url)
        );
    }
    body
}

fn input(number: usize, shown: &FormField) -> String {
    let FormField {
        field,
        value,
        problem,
    } = shown;
    let kind = if field.secret { "password" } else { "text" };
    let (required, optional) = if field.optional {
        ("", " <span class=\"hint\">(optional)</span>")
    } else {
        (" required", "")
    };
    let invalid = if problem.is_some() {
        " aria-invalid=\"true\""
    } else {
        ""
    };
    let focus = if number == 0 { " autofocus" } else { "" };
    let mut html = format!(
        "<p><label for=\"f{number}\">{}{optional}</label>",
        escaped(&field.title)
    );
    let common = format!(
        "id=\"f{number}\" name=\"{}\" aria-describedby=\"h{number} p{number}\"{required}{invalid}{focus}",
        escaped(&field.name)
    );
    if field.one_of.is_empty() {
        let around = |text: &str| {
            if text.is_empty() {
                String::new()
            } else {
                format!("<span>{}</span>", escaped(text))
            }
        };
        html += &format!(
            "<span class=\"line\">{}<input {common} type=\"{kind}\" value=\"{}\" maxlength=\"8192\" spellcheck=\"false\" \
             autocapitalize=\"none\" autocomplete=\"off\">{}</span>",
            around(&field.prefix),
            escaped(value),
            around(&field.suffix),
        );
    } else {
        html += &format!("<select {common}>");
        for choice in &field.one_of {
            let selected = if choice == value { " selected" } else { "" };
            html += &format!("<option{selected}>{}</option>", escaped(choice));
        }
        html += "</select>";
    }
    html += &format!(
        "<span class=\"hint\" id=\"h{number}\">{}</span>",
        escaped(&field.description)
    );
    let problem = problem.as_deref().unwrap_or_default();
    html + &format!(
        "<span class=\"problem\" id=\"p{number}\">{}</span></p>",
        escaped(problem)
    )
}

const STYLE: &str = "\
:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}\
body{margin:0;min-height:100vh;display:grid;place-items:center;background:light-dark(#f4f4f5,#18181b);color:light-dark(#18181b,#f4f4f5)}\
main{box-sizing:border-box;width:min(28rem,100%);padding:2rem;background:light-dark(#fff,#27272a);border-radius:.75rem}\
h1{margin:0 0 .5rem;font-size:1.4rem}\
label{display:block;font-weight:600}\
.line{display:flex;gap:.4rem;align-items:center;margin:.35rem 0}\
:is(input,select){box-sizing:border-box;width:100%;padding:.6rem;font:inherit;border:1px solid light-dark(#71717a,#a1a1aa);border-radius:.4rem;\
background:light-dark(#fff,#18181b);color:inherit}\
button{width:100%;padding:.7rem;font:inherit;font-weight:600;border:0;border-radius:.4rem;background:light-dark(#1d4ed8,#93c5fd);\
color:light-dark(#fff,#0b1220);cursor:pointer}\
a{color:light-dark(#1d4ed8,#93c5fd)}\
:is(input,select,button,a):focus-visible{outline:3px solid light-dark(#1d4ed8,#93c5fd);outline-offset:2px}\
.hint{display:block;font-size:.875rem;font-weight:400;color:light-dark(#52525b,#d4d4d8)}\
label .hint{display:inline}\
.problem{display:block;font-size:.875rem;color:light-dark(#b91c1c,#fca5a5)}";

/// Renders a whole page. `goes_to` is one more origin that its form may redirect to; `plain` is
/// true if providers may be reached by http, too.
fn page_of(
    status: StatusCode,
    brand: &Brand,
    body: &str,
    goes_to: Option<&str>,
    plain: bool,
) -> Response {
    let nonce = ids::random_text(22);
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>{}</title>\
         <link rel=\"icon\" href=\"data:,\"><style nonce=\"{nonce}\">{STYLE}</style></head><body><main>{body}</main></body></html>",
        escaped(&brand.project)
    );
    // Browsers apply `form-action` to every redirect that follows a form, and the hosts through
    // which a provider signs its users in are not known.
    let actions = [Some("'self' https:"), plain.then_some("http:"), goes_to]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ");
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; img-src data:; form-action {actions}; base-uri 'none'; \
         frame-ancestors 'none'"
    );
    let mut response = (status, html).into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    headers.extend(
        HeaderValue::from_str(&policy)
            .ok()
            .map(|policy| (header::CONTENT_SECURITY_POLICY, policy)),
    );
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    response
}

/// Returns the origin of a URL, as a content security policy writes it.
fn origin(url: &str) -> Option<String> {
    let origin = Url::parse(url).ok()?.origin();
    origin.is_tuple().then(|| origin.ascii_serialization())
}

/// Escapes a text for use between tags and in quoted attributes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_text_is_escaped_in_forms() {
        let hostile = "\"><script>alert('x')</script>&amp;";
        let field = app::catalog::Field {
            name: hostile.into(),
            title: hostile.into(),
            description: hostile.into(),
            ..app::catalog::Field::default()
        };
        let shown = FormField {
            field,
            value: hostile.into(),
            problem: Some(hostile.into()),
        };
        let html = input(0, &shown);
        assert!(
            !html.contains("<script") && !html.contains("\"><s"),
            "{html}"
        );
        assert_eq!(
            html.matches("&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;amp;")
                .count(),
            5
        );
    }

    #[test]
    fn secret_field_is_a_password_input() {
        let field = |secret| app::catalog::Field {
            name: "key".into(),
            title: "Key".into(),
            secret,
            ..app::catalog::Field::default()
        };
        let html = |secret| {
            input(
                1,
                &FormField {
                    field: field(secret),
                    value: String::new(),
                    problem: None,
                },
            )
        };
        assert!(html(true).contains("type=\"password\"") && html(false).contains("type=\"text\""));
        assert!(html(true).contains("for=\"f1\"") && html(true).contains("id=\"f1\""));
    }
}
