//! Replacement of the secrets that were found.
//!
//! JSON stays JSON: outside of its strings, a secret is a number or a part of one, and the whole number
//! becomes a string.

use std::{borrow::Cow, cell::LazyCell, ops::Range};

use serde::de::IgnoredAny;

/// Replacement for a secret.
pub(super) const REDACTED_TEXT: &str = "[redacted]";
/// Replacement for a number in JSON that contains a secret. It is the longest replacement.
pub(crate) const REDACTED_NUMBER: &str = "\"[redacted]\"";

/// Returns `bytes` without the given ranges, which are in order and do not overlap.
pub(crate) fn replace_ranges<'b>(bytes: &'b [u8], ranges: &[Range<usize>]) -> Cow<'b, [u8]> {
    if ranges.is_empty() {
        return Cow::Borrowed(bytes);
    }
    let is_document = LazyCell::new(|| is_json(bytes));
    let mut strings = Strings::new(bytes);
    let mut clean = Vec::with_capacity(bytes.len());
    let mut from = 0;
    // A number that was replaced as a whole may have contained further ranges.
    for range in ranges {
        if range.end <= from {
            continue;
        }
        let secret = range.start.max(from)..range.end;
        let is_number = bytes[secret.clone()].iter().all(is_number_byte)
            && *is_document
            && !strings.contain(secret.start);
        let (replaced, text) = match is_number {
            true => (number_around(bytes, from, &secret), REDACTED_NUMBER),
            false => (secret, REDACTED_TEXT),
        };
        clean.extend_from_slice(&bytes[from..replaced.start]);
        clean.extend_from_slice(text.as_bytes());
        from = replaced.end;
    }
    clean.extend_from_slice(&bytes[from..]);
    Cow::Owned(clean)
}

/// Returns true for a JSON object or array. A bare value may also be plain text.
fn is_json(bytes: &[u8]) -> bool {
    let text = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    matches!(text.trim_ascii_start().first(), Some(b'{' | b'['))
        && serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

/// Returns the range of the number that contains a secret, from `first` on.
fn number_around(bytes: &[u8], first: usize, secret: &Range<usize>) -> Range<usize> {
    let before = bytes[first..secret.start].iter().rev();
    let after = bytes[secret.end..].iter();
    let start = secret.start - before.take_while(|byte| is_number_byte(byte)).count();
    let end = secret.end + after.take_while(|byte| is_number_byte(byte)).count();
    start..end
}

fn is_number_byte(byte: &u8) -> bool {
    byte.is_ascii_digit() || b"+-.eE".contains(byte)
}

/// The strings of a JSON text, which is read up to a position.
struct Strings<'b> {
    json: &'b [u8],
    at: usize,
    is_inside: bool,
}

impl<'b> Strings<'b> {
    fn new(json: &'b [u8]) -> Self {
        Self {
            json,
            at: 0,
            is_inside: false,
        }
    }

    /// Returns true if a position is inside a string. Each position is at or after the one before.
    fn contain(&mut self, position: usize) -> bool {
        while self.at < position {
            match self.json[self.at] {
                b'\\' if self.is_inside => self.at += 1,
                b'"' => self.is_inside = !self.is_inside,
                _ => {}
            }
            self.at += 1;
        }
        self.is_inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_json_become_strings() {
        let secret = "471147";
        for (text, clean) in [
            ("{\"e\":471147}", "{\"e\":\"[redacted]\"}"),
            (
                "[1, -471147.0, 5471147471147]",
                "[1, \"[redacted]\", \"[redacted]\"]",
            ),
            ("[\"\\\"a, 471147 ,b\"]", "[\"\\\"a, [redacted] ,b\"]"),
            (
                "\u{feff}{\"a\":[471147]}",
                "\u{feff}{\"a\":[\"[redacted]\"]}",
            ),
            ("{\"e\":471147", "{\"e\":[redacted]"),
            ("471147", "[redacted]"),
        ] {
            let found = text.match_indices(secret);
            let ranges: Vec<_> = found.map(|(at, _)| at..at + secret.len()).collect();
            let replaced = replace_ranges(text.as_bytes(), &ranges);
            assert_eq!(String::from_utf8_lossy(&replaced), clean, "{text}");
        }
    }

    #[test]
    fn ranges_across_numbers_are_removed() {
        let replaced = replace_ranges(b"[12345,67890]", &[3..8, 9..10]);
        assert_eq!(&*replaced, b"[12[redacted]\"[redacted]\"]");
    }
}
