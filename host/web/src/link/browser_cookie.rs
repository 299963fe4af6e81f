//! The cookie that contains the random id of a browser. A form and a callback are accepted only
//! from the browser that opened the page.

use app::core::ids;
use axum::http::{HeaderMap, HeaderValue, header};
use cookie::{Cookie, SameSite, time::Duration};
use http::Server;

/// Time for which a browser keeps the cookie: the time that a user may take at a provider.
const MAX_AGE: Duration = Duration::hours(1);
/// Length of an id in characters.
const ID_CHARS: usize = 43;

/// Returns a new random id.
pub(crate) fn random_id() -> String {
    ids::random_text(ID_CHARS)
}

/// Returns the id from the cookie of a request; `None` if the cookie is missing or malformed.
pub(crate) fn read(server: &Server, headers: &HeaderMap) -> Option<String> {
    id_in(headers, is_https(server))
}

/// Returns the `Set-Cookie` header for an id.
pub(crate) fn set(server: &Server, id: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(&cookie(id, is_https(server)).to_string()).ok()
}

fn id_in(headers: &HeaderMap, is_https: bool) -> Option<String> {
    let cookie = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(Cookie::split_parse)
        .flatten()
        .find(|cookie| cookie.name() == name(is_https))?;
    let id = cookie.value();
    let is_valid = id.len() == ID_CHARS && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_valid.then(|| id.to_owned())
}

fn cookie(id: &str, is_https: bool) -> Cookie<'_> {
    Cookie::build((name(is_https), id))
        .path("/")
        .max_age(MAX_AGE)
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(is_https)
        .build()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_is_found_among_other_cookies() {
        let id = random_id();
        let mut headers = HeaderMap::new();
        for line in ["a=b; broken;=", &format!("c=d;toolhost={id}; e=f")] {
            headers.append(header::COOKIE, HeaderValue::from_str(line).unwrap());
        }
        assert_eq!(id_in(&headers, false), Some(id));
        assert_eq!(id_in(&headers, true), None);
    }

    #[test]
    fn malformed_ids_are_ignored() {
        let id = "A".repeat(ID_CHARS);
        for value in [
            "",
            "x",
            &id[1..],
            &format!("{id}A"),
            &format!("{}-", &id[1..]),
            &format!("\"{id}\""),
        ] {
            let line = format!("toolhost={value}");
            let headers = [(header::COOKIE, HeaderValue::from_str(&line).unwrap())];
            assert_eq!(id_in(&headers.into_iter().collect(), false), None, "{line}");
        }
    }

    #[test]
    fn cookie_is_bound_to_host_over_https() {
        let plain = "toolhost=x; HttpOnly; SameSite=Lax; Path=/; Max-Age=3600";
        let bound = "__Host-toolhost=x; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=3600";
        assert_eq!(cookie("x", false).to_string(), plain);
        assert_eq!(cookie("x", true).to_string(), bound);
    }
}
