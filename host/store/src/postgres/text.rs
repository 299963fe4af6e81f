//! Escaping of texts for PostgreSQL.
//!
//! PostgreSQL holds every string except one with a zero character (U+0000). Therefore U+0000 is
//! stored as U+0001 U+0002, and U+0001 as U+0001 U+0003. No other stored sequence starts with
//! U+0001, and the order of stored strings is the order of the original ones. In JSON, the same is
//! done to the `\u` escapes, which is how JSON holds these characters. Therefore a string taken out
//! of a stored body is escaped like any other.

use std::borrow::Cow;

/// U+0000, which PostgreSQL does not hold.
const NUL_CHAR: char = '\0';
/// U+0001, the first character of every escape.
const SOH_CHAR: char = '\u{1}';
const ESCAPED_NUL: &str = "\u{1}\u{2}";
const ESCAPED_SOH: &str = "\u{1}\u{3}";
/// Second characters of the escapes. A search for a part that starts with one could match inside an
/// escape by mistake.
pub(super) const SECOND_CHARS: [char; 2] = ['\u{2}', '\u{3}'];

const NUL_JSON: &[u8] = b"\\u0000";
const SOH_JSON: &[u8] = b"\\u0001";
const ESCAPED_NUL_JSON: &[u8] = b"\\u0001\\u0002";
const ESCAPED_SOH_JSON: &[u8] = b"\\u0001\\u0003";

/// Escapes a string.
pub(super) fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains([NUL_CHAR, SOH_CHAR]) {
        return text.into();
    }
    text.replace(SOH_CHAR, ESCAPED_SOH)
        .replace(NUL_CHAR, ESCAPED_NUL)
        .into()
}

/// Reverses [`escape`].
pub(super) fn unescape(text: String) -> String {
    if !text.contains(SOH_CHAR) {
        return text;
    }
    text.replace(ESCAPED_NUL, "\0")
        .replace(ESCAPED_SOH, "\u{1}")
}

/// Escapes JSON.
pub(super) fn escape_json(json: &str) -> Cow<'_, str> {
    replace_escapes(
        json,
        &[(NUL_JSON, ESCAPED_NUL_JSON), (SOH_JSON, ESCAPED_SOH_JSON)],
    )
}

/// Reverses [`escape_json`].
pub(super) fn unescape_json(json: String) -> String {
    match replace_escapes(
        &json,
        &[(ESCAPED_NUL_JSON, NUL_JSON), (ESCAPED_SOH_JSON, SOH_JSON)],
    ) {
        Cow::Borrowed(_) => json,
        Cow::Owned(meant) => meant,
    }
}

/// Replaces escape sequences, skipping backslashes that are escaped themselves.
fn replace_escapes<'a>(json: &'a str, changes: &[(&[u8], &[u8])]) -> Cow<'a, str> {
    if !json.contains("\\u000") {
        return json.into();
    }
    let mut rest = json.as_bytes();
    let mut changed = Vec::with_capacity(json.len());
    while let Some(place) = rest.iter().position(|byte| *byte == b'\\') {
        changed.extend_from_slice(&rest[..place]);
        rest = &rest[place..];
        let length = match changes.iter().find(|(from, _)| rest.starts_with(from)) {
            Some((from, to)) => {
                changed.extend_from_slice(to);
                from.len()
            }
            None => {
                let length = rest.len().min(2);
                changed.extend_from_slice(&rest[..length]);
                length
            }
        };
        rest = &rest[length..];
    }
    changed.extend_from_slice(rest);
    String::from_utf8(changed).map_or_else(|_| json.into(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn escaped_text_keeps_value_and_order(a in "[\u{0}-\u{4}a]{0,5}", b in "[\u{0}-\u{4}a]{0,5}") {
            prop_assert!(!escape(&a).contains('\0'));
            prop_assert_eq!(unescape(escape(&a).into_owned()), a.clone());
            prop_assert_eq!(escape(&a).cmp(&escape(&b)), a.cmp(&b));
        }

        #[test]
        fn escaped_json_reads_back_byte_for_byte(
            text in "[\u{0}-\u{4}\\\\u01a\u{e9}\"]{0,12}", more in "(\\\\\\\\|u0000|\\\\u0001|\\\\u0000|\\\\u0002|\\\\n){0,5}",
        ) {
            let json = serde_json::to_string(&text).unwrap();
            let escaped = escape_json(&json).into_owned();
            prop_assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), escape(&text).into_owned());
            prop_assert_eq!(unescape_json(escaped), json);
            let json = format!("\"{more}\"");
            prop_assert_eq!(unescape_json(escape_json(&json).into_owned()), json);
        }
    }
}
