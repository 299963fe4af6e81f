//! Percent-encoding. Only unreserved characters stay as they are, so that a value can never end a
//! segment, a pair or the path.

use std::fmt::{Display, Write};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

const ENCODED_CHARACTERS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Appends `value`, encoded.
pub(crate) fn push(out: &mut String, value: &str) {
    out.extend(utf8_percent_encode(value, ENCODED_CHARACTERS));
}

/// Appends `name=value`, preceded by `&` unless it is the first pair.
pub(super) fn push_pair(out: &mut String, name: &str, value: impl Display) {
    if !out.is_empty() {
        out.push('&');
    }
    push(out, name);
    out.push('=');
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write!(text, "{value}");
    push(out, &text);
}

/// Decodes a name or value of a query.
pub(crate) fn decoded(text: &str) -> String {
    percent_decode_str(&text.replace('+', " "))
        .decode_utf8_lossy()
        .into_owned()
}

/// Returns true if a URL parser would treat this segment as a step in the path rather than as a
/// name. Encoding does not prevent this.
pub(crate) fn is_dot_segment(segment: &str) -> bool {
    matches!(segment, "" | "." | "..")
}
