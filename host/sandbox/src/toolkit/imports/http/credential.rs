//! Puts a credential into a request and lists the values to redact from responses.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use manifest::Placement;
use net::{
    HeaderMap, Url,
    header::{AUTHORIZATION, HeaderName, HeaderValue},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::form_urlencoded;

use super::error;
use crate::{Credential, Secret, Signing, contract::v1::http::Error};

/// Characters that are not escaped in a path segment.
const PATH_SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b':')
    .remove(b'@')
    .remove(b'=');
/// Minimum length of a placed value that counts as a secret on its own, in bytes.
const MIN_SECRET_BYTES: usize = 8;

/// Returns the names of the headers that a credential fills, in any case.
pub(super) fn header_names(credential: &Credential) -> Vec<&str> {
    let placed = credential
        .placements
        .iter()
        .filter_map(|placement| match placement {
            Placement::Header { name, .. } => Some(name.as_str()),
            Placement::Basic { .. } => Some("authorization"),
            Placement::Query { .. } | Placement::Path { .. } => None,
        });
    placed
        .chain(credential.sign.iter().flat_map(Signing::header_names))
        .collect()
}

/// Returns true if one of the names is that of a header.
pub(super) fn contains_name(names: &[&str], header: &str) -> bool {
    names.iter().any(|name| name.eq_ignore_ascii_case(header))
}

/// Returns the names of the query parameters that a credential fills.
pub(super) fn query_names(credential: &Credential) -> Vec<&str> {
    let named = credential
        .placements
        .iter()
        .filter_map(|placement| match placement {
            Placement::Query { name, .. } => Some(name.as_str()),
            Placement::Header { .. } | Placement::Basic { .. } | Placement::Path { .. } => None,
        });
    named
        .chain(credential.sign.iter().flat_map(Signing::query_names))
        .collect()
}

/// Refuses a URL in which the guest fills a query parameter of the credential.
pub(super) fn check_query(credential: &Credential, url: &Url) -> Result<(), Error> {
    for name in query_names(credential) {
        if url
            .query_pairs()
            .any(|(given, _)| given.eq_ignore_ascii_case(name))
        {
            let why = "is set by the host; remove it";
            return Err(error(
                "invalid_request",
                format!("the query parameter `{name}` {why}"),
            ));
        }
    }
    Ok(())
}

/// Puts a credential into the URL and the headers of a request.
pub(super) fn apply(
    credential: &Credential,
    url: &mut Url,
    headers: &mut HeaderMap,
) -> Result<(), Error> {
    for placement in &credential.placements {
        match placement {
            Placement::Header { name, value } => {
                let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable(name))?;
                headers.insert(parsed, sensitive_value(value)?);
            }
            Placement::Basic { username, password } => {
                let pair = zeroize::Zeroizing::new(format!("{username}:{password}"));
                let value =
                    zeroize::Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())));
                headers.insert(AUTHORIZATION, sensitive_value(&value)?);
            }
            Placement::Query { name, value } => {
                url.query_pairs_mut().append_pair(name, value);
            }
            Placement::Path { marker, value } => put_into_path(url, marker, value)?,
        }
    }
    Ok(())
}

fn put_into_path(url: &mut Url, marker: &str, value: &str) -> Result<(), Error> {
    // A value that consists of dots would change the path.
    if marker.is_empty() || value.is_empty() || value.chars().all(|c| c == '.') {
        return Err(unusable(marker));
    }
    let encoded = utf8_percent_encode(value, PATH_SEGMENT).to_string();
    let path = url.path().replace(marker, &encoded);
    url.set_path(&path);
    Ok(())
}

fn likely_secret(value: &str) -> Option<Secret> {
    (value.len() >= MIN_SECRET_BYTES).then(|| Secret::from(value))
}

/// Returns every value that this credential puts into a request.
pub(super) fn secrets(credential: &Credential) -> Vec<Secret> {
    let mut secrets = credential.secrets.clone();
    for placement in &credential.placements {
        match placement {
            // In `Bearer x` the last word is the secret and the first is a scheme name.
            Placement::Header { value, .. } => {
                secrets.extend(value.trim().rsplit(' ').next().and_then(likely_secret))
            }
            // The encoded value also counts, because a provider may return it in base64.
            Placement::Query { value, .. } => {
                let sent: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
                secrets.extend(likely_secret(value).into_iter().chain(likely_secret(&sent)));
            }
            Placement::Path { value, .. } => {
                let sent = utf8_percent_encode(value, PATH_SEGMENT).to_string();
                secrets.extend(likely_secret(value).into_iter().chain(likely_secret(&sent)));
            }
            Placement::Basic { username, password } => {
                secrets.extend(likely_secret(password));
                let pair = format!("{username}:{password}");
                secrets.push(STANDARD.encode(&pair).into());
                secrets.push(pair.into());
            }
        }
    }
    secrets
}

fn sensitive_value(value: &str) -> Result<HeaderValue, Error> {
    net::credential_header(value).ok_or_else(|| unusable("value"))
}

fn unusable(what: &str) -> Error {
    error(
        "credential",
        format!(
            "the account's credential cannot be put into a request (`{what}`); connect it again"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credential(placement: Placement) -> Credential {
        Credential {
            placements: vec![placement],
            ..Credential::default()
        }
    }

    fn placed(placement: Placement, url: &str) -> (String, HeaderMap) {
        let mut url = Url::parse(url).unwrap();
        let mut headers = HeaderMap::new();
        apply(&credential(placement), &mut url, &mut headers).unwrap();
        (url.into(), headers)
    }

    fn header(name: &str, value: &str) -> Placement {
        let (name, value) = (name.to_owned(), value.to_owned());
        Placement::Header { name, value }
    }

    fn basic(username: &str, password: &str) -> Placement {
        let (username, password) = (username.to_owned(), password.to_owned());
        Placement::Basic { username, password }
    }

    fn query(name: &str, value: &str) -> Placement {
        let (name, value) = (name.to_owned(), value.to_owned());
        Placement::Query { name, value }
    }

    fn path(marker: &str, value: &str) -> Placement {
        let (marker, value) = (marker.to_owned(), value.to_owned());
        Placement::Path { marker, value }
    }

    #[test]
    fn a_credential_goes_where_its_scheme_says() {
        let (_, headers) = placed(header("X-Key", "k 1"), "https://a.example/");
        assert_eq!(headers["x-key"], "k 1");
        assert!(headers["x-key"].is_sensitive());
        let (_, headers) = placed(basic("u", "p"), "https://a.example/");
        assert_eq!(headers["authorization"], "Basic dTpw");
        let (url, _) = placed(query("key", "a&b=c"), "https://a.example/x?y=1");
        assert_eq!(url, "https://a.example/x?y=1&key=a%26b%3Dc");
        let template = "https://a.example/bot~credential~/send?x=~credential~";
        let (url, _) = placed(path("~credential~", "12:ab/../c?d#e"), template);
        let expected = "https://a.example/bot12:ab%2F..%2Fc%3Fd%23e/send?x=~credential~";
        assert_eq!(url, expected);
    }

    #[test]
    fn value_sent_in_url_is_redacted_in_base64() {
        let value = "sk\"+/0123456789%";
        for placement in [query("key", value), path("~c~", value)] {
            let (url, _) = placed(placement.clone(), "https://a.example/~c~");
            let found = secrets(&credential(placement));
            let sent = url.rsplit(['/', '=']).next().unwrap();
            let redactor = crate::redact::Redactor::new(&found);
            assert!(
                redactor.may_contain_secret(STANDARD.encode(format!("x{sent}")).as_bytes()),
                "{url}"
            );
        }
    }

    #[test]
    fn error_for_unsendable_value_hides_the_value() {
        let mut url = Url::parse("https://a.example/~c~").unwrap();
        let mut headers = HeaderMap::new();
        for placement in [
            header("x", "secret\r\nhost: evil"),
            header("x", "secret\u{85}"),
            path("~c~", ".."),
        ] {
            let error = apply(&credential(placement), &mut url, &mut headers).unwrap_err();
            assert_eq!(error.kind, "credential");
            assert!(!error.message.contains("secret"));
        }
    }

    #[test]
    fn placed_values_count_as_secrets() {
        let header = credential(header("a", "Bearer abcdefghij"));
        assert!(secrets(&header).contains(&Secret::from("abcdefghij")));
        let basic = credential(basic("user", "password"));
        assert!(secrets(&basic).contains(&Secret::from("dXNlcjpwYXNzd29yZA==")));
    }

    #[test]
    fn guest_cannot_fill_the_credentials_parameter() {
        let query = credential(query("api_key", "k"));
        for (url, fine) in [
            ("https://a.example/?API_KEY=x", false),
            ("https://a.example/?api%5Fkey=x", false),
            ("https://a.example/?q=x", true),
        ] {
            assert_eq!(
                check_query(&query, &Url::parse(url).unwrap()).is_ok(),
                fine,
                "{url}"
            );
        }
    }
}
