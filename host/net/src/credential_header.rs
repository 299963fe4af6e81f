//! Values of headers that contain a credential.

use reqwest::header::HeaderValue;

/// Returns the value of a header that contains a credential, hidden in `Debug` output, or `None` for a string
/// with control characters. A header could contain a tab, and in UTF-8 the control characters outside of ASCII,
/// but no credential has them on purpose.
#[must_use]
pub fn credential_header(value: &str) -> Option<HeaderValue> {
    if value.chars().any(char::is_control) {
        return None;
    }
    let mut header = HeaderValue::from_str(value).ok()?;
    header.set_sensitive(true);
    Some(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_in_no_credential() {
        for value in ["k\n", "k\t", "k\u{7f}", "k\u{85}"] {
            assert_eq!(credential_header(value), None, "{value:?}");
        }
        let header = credential_header("kä 1").unwrap();
        assert!(header.is_sensitive() && header.as_bytes() == "kä 1".as_bytes());
    }
}
