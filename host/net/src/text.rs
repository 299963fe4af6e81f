//! Text of bodies, decoded to UTF-8 as browsers decode it (WHATWG Encoding).
//!
//! Problem: providers and clients send bodies that are no plain UTF-8: in a declared charset, with a
//! byte order mark, or with texts that were cut in the middle of a character. One such character must
//! not cost the whole body.
//!
//! Guarantee: a byte order mark takes precedence over the declared charset, and without either the
//! text is UTF-8. JSON in valid UTF-8 is read as such whatever charset is declared with it, because
//! every browser does. What cannot be decoded becomes U+FFFD, and so does half of a surrogate pair
//! that JSON escapes alone, which RFC 8259 permits and no string in UTF-8 can have.

mod misread;

use std::{borrow::Cow, str};

use bytes::Bytes;
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use memchr::{memchr, memmem};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};

use crate::Response;

pub use misread::{distortions, misreadings};

/// Number of bytes of a body that decide whether it is text (WHATWG MIME Sniffing, section 5).
const SNIFFED_BYTES: usize = 1445;
/// Length of an escape of a UTF-16 code unit in JSON, in bytes.
const ESCAPE_BYTES: usize = r"\u0000".len();
/// Digits of U+FFFD in such an escape.
const REPLACEMENT_DIGITS: &str = "fffd";

impl Response {
    /// Returns the body as text.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        decode(media_type(&self.headers), &self.body)
    }
}

/// Returns the media type of a message with its parameters; empty without one.
#[must_use]
pub fn media_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

/// Returns the charset that a media type declares: its name in the Encoding standard, or the label as
/// it is if the standard does not know it.
#[must_use]
pub fn charset(media_type: &str) -> Option<&str> {
    let label = charset_label(media_type)?;
    Some(encoding(label).map_or(label, |known| known.name()))
}

/// Decodes the bytes of text with this media type.
#[must_use]
pub fn decode<'b>(media_type: &str, body: &'b [u8]) -> Cow<'b, str> {
    let json = is_json(essence(media_type));
    let declared = charset_label(media_type).and_then(encoding);
    let utf8 = str::from_utf8(body).ok().filter(|_| {
        declared.is_none_or(|other| other == UTF_8 || json && other.is_ascii_compatible())
    });
    let text = match utf8 {
        Some(text) => Cow::Borrowed(text.strip_prefix('\u{feff}').unwrap_or(text)),
        None => declared.unwrap_or(UTF_8).decode(body).0,
    };
    if json || text.trim_ascii_start().starts_with(['{', '[']) {
        without_lone_surrogates(text)
    } else {
        text
    }
}

/// Decodes a body if it is text by its media type and by its bytes. Otherwise it is returned
/// unchanged: a body of another type, one that is not UTF-8 and lacks a type, and one that servers
/// declare to be plain text without looking at it. Also returns the media type of the decoded body if
/// it differs.
#[must_use]
pub fn decode_body(media_type: &str, body: Bytes) -> (Bytes, Option<String>) {
    if !is_text(media_type, &body) {
        return (body, None);
    }
    let decoded = to_bytes(&body, decode(media_type, &body));
    (decoded, with_utf8(media_type))
}

/// Returns true if the JSON of a request to this server is as [`decode_request`] would return it, unless it
/// is not UTF-8.
#[must_use]
pub fn is_plain_request(media_type: &str, body: &[u8]) -> bool {
    charset(media_type).is_none_or(|charset| charset == UTF_8.name())
        && Encoding::for_bom(body).is_none()
        && (memchr(b'\\', body).is_none() || memmem::find(body, br"\u").is_none())
}

/// Decodes the JSON of a request to this server. Bytes that are not UTF-8 stay as they are if they should be,
/// so that the parser says where they are.
#[must_use]
pub fn decode_request(media_type: &str, body: Bytes) -> Bytes {
    let has_mark = Encoding::for_bom(&body).is_some();
    let should_be_utf8 = charset(media_type).is_none_or(|charset| charset == UTF_8.name());
    if should_be_utf8 && !has_mark && str::from_utf8(&body).is_err() {
        return body;
    }
    to_bytes(&body, decode(media_type, &body))
}

/// Decodes the value of a header: UTF-8, or Latin-1 (RFC 9110, section 5.5).
#[must_use]
pub fn decode_header(value: &HeaderValue) -> Cow<'_, str> {
    let bytes = value.as_bytes();
    str::from_utf8(bytes).map_or_else(|_| WINDOWS_1252.decode(bytes).0, Cow::Borrowed)
}

/// Returns decoded text as bytes, which share the memory of the body if they are a part of it.
fn to_bytes(body: &Bytes, text: Cow<'_, str>) -> Bytes {
    match text {
        Cow::Borrowed(text) => body.slice_ref(text.as_bytes()),
        Cow::Owned(text) => text.into(),
    }
}

/// Returns the media type without its parameters.
#[must_use]
pub fn essence(media_type: &str) -> &str {
    let end = memchr(b';', media_type.as_bytes());
    media_type[..end.unwrap_or(media_type.len())].trim()
}

fn charset_label(media_type: &str) -> Option<&str> {
    let parameters = memchr(b';', media_type.as_bytes())? + 1;
    media_type[parameters..].split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| value.trim().trim_matches(['"', '\'']))
    })
}

fn encoding(label: &str) -> Option<&'static Encoding> {
    Encoding::for_label_no_replacement(label.as_bytes())
}

/// Returns the media type with UTF-8 instead of another charset.
fn with_utf8(media_type: &str) -> Option<String> {
    let label = charset_label(media_type)?;
    let other = encoding(label).is_some_and(|encoding| encoding != UTF_8);
    other.then(|| media_type.replacen(label, "utf-8", 1))
}

fn has_ending(essence: &str, ending: &str) -> bool {
    let start = essence.len().checked_sub(ending.len());
    start
        .and_then(|start| essence.get(start..))
        .is_some_and(|end| end.eq_ignore_ascii_case(ending))
}

/// Returns true for JSON, a sequence of JSON texts, and the stream of events that usually are JSON.
fn is_json(essence: &str) -> bool {
    has_ending(essence, "json") || essence.eq_ignore_ascii_case("text/event-stream")
}

fn is_text(media_type: &str, body: &[u8]) -> bool {
    let essence = essence(media_type);
    if essence.is_empty() {
        return str::from_utf8(body).is_ok();
    }
    if is_json(essence) {
        return true;
    }
    let is_text_type = essence
        .get(..5)
        .is_some_and(|family| family.eq_ignore_ascii_case("text/"))
        || ["xml", "javascript", "yaml", "x-www-form-urlencoded"]
            .iter()
            .any(|ending| has_ending(essence, ending));
    if !is_text_type {
        return false;
    }
    if Encoding::for_bom(body).is_some() {
        return true;
    }
    let declared = charset_label(media_type).and_then(encoding);
    declared.is_some_and(|declared| !declared.is_ascii_compatible())
        || !is_mislabeled(essence, body)
}

/// Returns true if a body declared as plain text contains bytes that never occur in text. Some
/// servers declare every file as plain text (WHATWG MIME Sniffing, section 7.2).
fn is_mislabeled(essence: &str, body: &[u8]) -> bool {
    let start = &body[..body.len().min(SNIFFED_BYTES)];
    essence.eq_ignore_ascii_case("text/plain")
        && start
            .iter()
            .any(|byte| matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f))
}

/// Replaces escaped halves of surrogate pairs that stand alone.
fn without_lone_surrogates(text: Cow<'_, str>) -> Cow<'_, str> {
    let lone = lone_surrogates(text.as_bytes());
    if lone.is_empty() {
        return text;
    }
    let mut text = text.into_owned();
    for digits in lone {
        text.replace_range(
            digits..digits + REPLACEMENT_DIGITS.len(),
            REPLACEMENT_DIGITS,
        );
    }
    Cow::Owned(text)
}

/// Returns the positions of the digits of unpaired escaped surrogates.
fn lone_surrogates(json: &[u8]) -> Vec<usize> {
    let mut lone = Vec::new();
    let mut read = 0;
    while let Some(found) = json.get(read..).and_then(|rest| memchr(b'\\', rest)) {
        let escape = read + found;
        read = match code_unit(json, escape) {
            Some(0xd800..=0xdbff)
                if matches!(
                    code_unit(json, escape + ESCAPE_BYTES),
                    Some(0xdc00..=0xdfff)
                ) =>
            {
                escape + 2 * ESCAPE_BYTES
            }
            Some(0xd800..=0xdfff) => {
                lone.push(escape + r"\u".len());
                escape + ESCAPE_BYTES
            }
            // An escaped backslash does not start another escape.
            _ => escape + r"\\".len(),
        };
    }
    lone
}

/// Returns the code unit whose escape starts at a position.
fn code_unit(json: &[u8], at: usize) -> Option<u16> {
    let escape = json.get(at..at + ESCAPE_BYTES)?;
    let digits = str::from_utf8(escape.strip_prefix(br"\u")?).ok()?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

#[cfg(test)]
mod tests {
    use encoding_rs::SHIFT_JIS;

    use super::*;

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn text_is_read_in_its_charset() {
        let marked = ["\u{feff}{}".as_bytes(), &utf16("\u{feff}é")];
        for (media_type, body, expected) in [
            (
                "application/json",
                "{\"a\":\"é\"}".as_bytes(),
                "{\"a\":\"é\"}",
            ),
            ("application/json; charset=utf-8", marked[0], "{}"),
            ("text/plain; charset=utf-8", marked[1], "é"),
            (
                "application/json; charset=ISO-8859-1",
                b"\"caf\xe9\"",
                "\"café\"",
            ),
            (
                "application/json; charset=iso-8859-1",
                "\"café\"".as_bytes(),
                "\"café\"",
            ),
            ("text/plain; charset=iso-8859-1", "é".as_bytes(), "Ã©"),
            ("text/html;Charset=\"windows-1252\"", b"\x80", "€"),
            (
                "text/csv; charset=Shift_JIS",
                &SHIFT_JIS.encode("名前").0,
                "名前",
            ),
            ("application/json; charset=utf-16le", &utf16("[1]"), "[1]"),
            ("application/json", b"\"caf\xe9\"", "\"caf\u{fffd}\""),
            ("text/plain; charset=unknown", "é".as_bytes(), "é"),
        ] {
            assert_eq!(decode(media_type, body), expected, "{media_type}");
        }
    }

    #[test]
    fn lone_surrogates_become_replacement_characters() {
        for (body, expected) in [
            (r#"{"a":"x\ud83d"}"#, r#"{"a":"x\ufffd"}"#),
            (r#"["\uDE00\uD83D\uDE00"]"#, r#"["\ufffd\uD83D\uDE00"]"#),
            (r#"["\ud83d\ud83d\ude00"]"#, r#"["\ufffd\ud83d\ude00"]"#),
            (r#"["\\ud83d"]"#, r#"["\\ud83d"]"#),
            (r#"["\\\ud83d"]"#, r#"["\\\ufffd"]"#),
            (r#"["\ud83"#, r#"["\ud83"#),
            (r#"["\ud83d"#, r#"["\ufffd"#),
            (r"[\", r"[\"),
        ] {
            assert_eq!(decode("", body.as_bytes()), expected);
        }
        let stream = decode("text/event-stream", br#"data: {"a":"\ud83d"}"#);
        assert_eq!(stream, r#"data: {"a":"\ufffd"}"#);
        assert_eq!(decode("text/plain", br"a \ud83d"), r"a \ud83d");
    }

    #[test]
    fn bodies_that_are_no_text_stay_unchanged() {
        for (media_type, body) in [
            ("image/png; charset=utf-8", &b"\x89PNG\xff"[..]),
            ("application/pdf", b"\xef\xbb\xbf%PDF"),
            ("text/plain", b"\x00\x01\xff"),
            ("text/plain; charset=utf-8", b"\x00\x01\xff"),
            ("", b"\xff\xfe"),
        ] {
            let kept: (Bytes, Option<String>) = (body.to_vec().into(), None);
            let body = Bytes::from(body.to_vec());
            assert_eq!(decode_body(media_type, body), kept, "{media_type}");
        }
        for media_type in ["text/plain", "text/html; charset=unknown"] {
            let decoded = decode_body(media_type, Bytes::from_static(b"caf\xe9"));
            assert_eq!(decoded, ("caf\u{fffd}".into(), None), "{media_type}");
        }
        let decoded = decode_body("text/csv; charset=latin1; header=present", "\u{e9}".into());
        assert_eq!(
            decoded.1.as_deref(),
            Some("text/csv; charset=utf-8; header=present")
        );
    }

    #[test]
    fn request_that_is_not_utf8_stays_for_the_parser() {
        let same = |body: &'static [u8]| decode_request("application/json", body.into()) == body;
        assert!(same(b"{\"a\":\"\xe9\"}") && same(b"{\"a\":\"\xe9\\n\"}") && same(b"{}"));
        let mended = decode_request("", r#"{"a":"\ud83d"}"#.into());
        assert_eq!(mended, r#"{"a":"\ufffd"}"#);
        let latin = decode_request(
            "application/json; charset=latin1",
            b"\"\xe9\"".to_vec().into(),
        );
        assert_eq!(latin, "\"é\"");
    }
}
