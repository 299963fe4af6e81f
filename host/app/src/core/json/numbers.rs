//! Numbers of JSON that no parsed value can hold.

use std::str;

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde_json::Number;

/// Maximum length of a number without an exponent that always fits into a value, in bytes.
const MAX_SMALL_NUMBER_BYTES: usize = 300;

/// Returns JSON with zeros in place of the numbers that are too large for a value, such as `1E400`, so
/// that the rest of the JSON can be read that is passed on as it is written. The length stays the same.
/// Bytes that are not JSON stay so.
#[must_use]
pub fn without_large_numbers(json: Bytes) -> Bytes {
    let mut changed = None;
    let mut is_quoted = false;
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        match byte {
            b'\\' if is_quoted => at += 1,
            b'"' => is_quoted = !is_quoted,
            b'-' | b'0'..=b'9' if !is_quoted => {
                let end = at + number_length(&json[at..]);
                if is_too_large(&json[at..end]) {
                    let number = &mut changed.get_or_insert_with(|| json.to_vec())[at..end];
                    number.fill(b' ');
                    number[0] = b'0';
                }
                at = end - 1;
            }
            _ => {}
        }
        at += 1;
    }
    changed.map_or(json, Bytes::from)
}

fn number_length(json: &[u8]) -> usize {
    let bytes = json.iter();
    bytes
        .take_while(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte))
        .count()
}

fn is_too_large(number: &[u8]) -> bool {
    if number.len() <= MAX_SMALL_NUMBER_BYTES && !number.iter().any(|byte| b"eE".contains(byte)) {
        return false;
    }
    str::from_utf8(number).is_ok_and(|number| {
        serde_json::from_str::<IgnoredAny>(number).is_ok()
            && serde_json::from_str::<Number>(number).is_err()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_past_the_range_become_zero() {
        for (json, expected) in [
            (
                r#"{"a":1E400,"b":[-2e+999]}"#,
                r#"{"a":0    ,"b":[0      ]}"#,
            ),
            (r#"["1E400","\"1E400", 1E3]"#, r#"["1E400","\"1E400", 1E3]"#),
            ("[1E400.5, 01E400, -, 1E]", "[1E400.5, 01E400, -, 1E]"),
        ] {
            let read = without_large_numbers(json.into());
            assert_eq!(read, expected);
        }
        let long = "9".repeat(400);
        let read = without_large_numbers(long.into());
        assert_eq!(read.trim_ascii(), b"0");
    }
}
