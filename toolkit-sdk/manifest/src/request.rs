//! What a toolkit's requests may be: methods, and headers that are not theirs to set.

/// Methods that requests may have. CONNECT and TRACE are about the way, not about the application (RFC 9110, 9.3).
pub const METHODS: [&str; 7] = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"];

/// Headers that carry credentials, frame the message or say where it goes, in lower case.
const RESERVED: [&str; 21] = [
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

/// Whether only the platform may write this header, in whatever case: it writes those that are needed.
#[must_use]
pub fn is_platforms(header: &str) -> bool {
    let proxy = header.get(..6).is_some_and(|begins| begins.eq_ignore_ascii_case("proxy-"));
    proxy || RESERVED.iter().any(|name| name.eq_ignore_ascii_case(header))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_framing_and_destination_are_the_platforms() {
        for name in ["Authorization", "cookie", "HOST", "proxy-anything", "X-Forwarded-For"] {
            assert!(is_platforms(name), "{name}");
        }
        for name in ["accept", "x-acme-key", "", "prox", "größe"] {
            assert!(!is_platforms(name), "{name}");
        }
    }
}
