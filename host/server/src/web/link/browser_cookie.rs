//! The cookie that contains the random id of a browser. A form and a callback are accepted only
//! from the browser that opened the page.

use app::ids;
use axum::http::{HeaderMap, HeaderValue, header};
use cookie::{Cookie, SameSite, time::Duration};

use crate::Server;

/// Time for which a browser keeps the cookie: the time that a user may take at a provider.
const MAX_AGE: Duration = Duration::hours(1);
/// Length of an id in characters.
const ID_CHARS: usize = 43;

/// Returns a new random id.
pub(super) fn random_id() -> String {
    ids::random_text(ID_CHARS)
}

/// Returns the id from the cookie of a request; none if the cookie is missing or malformed.
pub(super) fn read(server: &Server, headers: &HeaderMap) -> Option<String> {
    let name = name(is_https(server));
    let id = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(Cookie::split_parse)
        .flatten()
        .find(|cookie| cookie.name() == name)?;
    let id = id.value();
    let is_valid = id.len() == ID_CHARS && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_valid.then(|| id.to_owned())
}

/// Returns the `Set-Cookie` header for an id.
pub(super) fn set(server: &Server, id: &str) -> Option<HeaderValue> {
    let is_https = is_https(server);
    let cookie = Cookie::build((name(is_https), id))
        .path("/")
        .max_age(MAX_AGE)
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(is_https);
    HeaderValue::from_str(&cookie.to_string()).ok()
}

/// Returns the name of the cookie. With the `__Host-` prefix, browsers accept the cookie only from
/// this exact host. The prefix requires https.
fn name(is_https: bool) -> &'static str {
    if is_https {
        "__Host-toolhost"
    } else {
        "toolhost"
    }
}

fn is_https(server: &Server) -> bool {
    let url = server.config.public_url.as_ref();
    url.is_some_and(|url| url.scheme() == "https")
}
