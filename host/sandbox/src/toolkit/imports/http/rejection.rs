//! Signs in a response that the provider rejects the token of its request.

use manifest::Rejection;
use net::{HeaderMap, Response, StatusCode};
use serde_json::Value;

/// Maximum size of a body to search for a rejection, in bytes. Errors are short.
const MAX_SEARCHED_BYTES: usize = 64 << 10;

/// Returns true if the provider rejects the token of a request because it is expired, revoked or
/// unknown: status 401, a challenge that says so, or a response that the toolkit names. Some
/// providers send such a challenge with another status than RFC 6750 (section 3.1) asks for.
pub(super) fn is_rejection(response: &Response, named: &[Rejection]) -> bool {
    let is_standard = match response.status {
        StatusCode::UNAUTHORIZED => true,
        StatusCode::BAD_REQUEST | StatusCode::FORBIDDEN => names_invalid_token(&response.headers),
        _ => false,
    };
    is_standard || is_named(response.status, &response.body, named)
}

fn is_named(status: StatusCode, body: &[u8], named: &[Rejection]) -> bool {
    let mut possible = named
        .iter()
        .filter(|rejection| rejection.status == status.as_u16());
    if body.len() > MAX_SEARCHED_BYTES {
        return false;
    }
    possible.any(|rejection| {
        // The body is parsed only if the text occurs in it.
        let text = std::str::from_utf8(body).unwrap_or_default();
        rejection.one_of.iter().any(|named| text.contains(named)) && {
            let answer = serde_json::from_str::<Value>(text).unwrap_or_default();
            let found = manifest::at(&answer, &rejection.path).and_then(Value::as_str);
            found.is_some_and(|found| rejection.one_of.iter().any(|named| named == found))
        }
    })
}

/// Returns true if a challenge of the `Bearer` scheme has the error `invalid_token`.
fn names_invalid_token(headers: &HeaderMap) -> bool {
    net::challenges(headers).any(|challenge| {
        challenge.scheme.eq_ignore_ascii_case("bearer")
            && challenge.params.iter().any(|(name, value)| {
                name.eq_ignore_ascii_case("error") && value.to_unescaped() == "invalid_token"
            })
    })
}

#[cfg(test)]
mod tests {
    use net::header::{HeaderValue, WWW_AUTHENTICATE};

    use super::*;

    #[test]
    fn challenge_with_invalid_token_is_a_rejection() {
        for (value, rejects) in [
            (r#"Bearer error="invalid_token""#, true),
            ("bearer error=invalid_token", true),
            (
                r#"Bearer realm="a, b", error="invalid_token", error_description="It \"ended\"""#,
                true,
            ),
            (r#"Basic realm="x", Bearer error="invalid_token""#, true),
            (r#"Bearer error="insufficient_scope", scope="repo""#, false),
            (r#"Bearer error_description="error=invalid_token""#, false),
            (r#"Basic error="invalid_token""#, false),
            ("Bearer", false),
            ("", false),
        ] {
            let headers = [(WWW_AUTHENTICATE, HeaderValue::from_str(value).unwrap())];
            assert_eq!(
                names_invalid_token(&headers.into_iter().collect()),
                rejects,
                "{value}"
            );
        }
    }

    #[test]
    fn named_response_is_a_rejection() {
        let named = [Rejection {
            status: 200,
            path: "error.code".to_owned(),
            one_of: vec!["token_expired".to_owned()],
        }];
        for (status, body, rejects) in [
            (200, r#"{"error":{"code":"token_expired"}}"#, true),
            (200, r#"{"error":{"code":"no_permission"}}"#, false),
            (
                200,
                r#"{"error":{"code":"x"},"text":"token_expired"}"#,
                false,
            ),
            (400, r#"{"error":{"code":"token_expired"}}"#, false),
            (200, "token_expired", false),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let is_rejection = is_named(status, body.as_bytes(), &named);
            assert_eq!(is_rejection, rejects, "{status} {body}");
        }
    }
}
