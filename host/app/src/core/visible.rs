//! Text from outside, made safe to show.
//!
//! Problem: invisible characters, and those that change the direction of text, make a person or an
//! assistant read something other than what was written.
//!
//! Guarantee: the result of [`visible`] has no such character.

use std::{borrow::Cow, fmt::Write};

/// Returns true if a text has no control characters, line breaks, invisible characters or characters
/// that change the direction of text, so that it is displayed as it is stored.
#[must_use]
pub fn is_plain_line(text: &str) -> bool {
    !text
        .chars()
        .any(|c| c.is_control() || manifest::is_hidden(c))
}

/// Escapes invisible characters as JSON does. JSON keeps its meaning, because it has such characters
/// only inside of strings.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte == b'\n' || byte == b' ' || byte.is_ascii_graphic();
    let is_shown = |c: char| c == '\n' || !manifest::is_hidden(c);
    if text.bytes().all(is_plain) || text.chars().all(is_shown) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_shown(c) {
            shown.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a `String` cannot fail.
            let _ = write!(shown, "\\u{unit:04x}");
        }
    }
    Cow::Owned(shown)
}
