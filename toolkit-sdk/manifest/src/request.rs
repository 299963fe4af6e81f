//! Limits of a toolkit's requests: allowed methods, and headers that a toolkit must not set.

/// Allowed methods. CONNECT and TRACE concern the connection, not the provider (RFC 9110, section
/// 9.3).
pub const HTTP_METHODS: [&str; 7] = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"];

/// Headers that carry credentials, frame the message or route it, in lower case.
const RESERVED_HEADERS: [&str; 21] = [
    "authorization",
    "cookie",
    "cookie2",
    "x-api-key",
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "upgrade",
    "http2-settings",
    "te",
    "trailer",
    "expect",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
];

/// Returns true if only the platform may set this header, in any case. It sets those that are
/// needed.
#[must_use]
pub fn is_platform_header(header: &str) -> bool {
    let proxy = header
        .get(..6)
        .is_some_and(|begins| begins.eq_ignore_ascii_case("proxy-"));
    proxy
        || RESERVED_HEADERS
            .iter()
            .any(|name| name.eq_ignore_ascii_case(header))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_framing_and_destination_are_the_platforms() {
        for name in [
            "Authorization",
            "cookie",
            "HOST",
            "proxy-anything",
            "X-Forwarded-For",
        ] {
            assert!(is_platform_header(name), "{name}");
        }
        for name in ["accept", "x-acme-key", "", "prox", "größe"] {
            assert!(!is_platform_header(name), "{name}");
        }
    }
}
