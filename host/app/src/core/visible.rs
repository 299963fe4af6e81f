//! Text from outside, made safe to show.
//!
//! Problem: invisible characters, and those that change the direction of text, make a person or an
//! assistant read something other than what was written.
//!
//! Guarantee: the result of [`visible`] contains no such character, and that of [`visible_line`] is
//! a plain line.

use std::{borrow::Cow, fmt::Write};

/// Blank pattern of Braille, which looks like a space.
const BLANK_BRAILLE: char = '\u{2800}';
/// Selector of colored symbols. Texts may have it, but a name with it looks like the one without it.
const EMOJI_SELECTOR: char = '\u{fe0f}';

/// Returns true if a string has no control characters, line breaks, invisible characters or
/// characters that change the direction of text, so that it is displayed as it is stored.
#[must_use]
pub fn is_plain_line(text: &str) -> bool {
    text.chars().all(is_plain)
}

/// Returns true if [`visible`] escapes no character of a string.
#[must_use]
pub fn is_visible(text: &str) -> bool {
    text.chars().all(is_shown)
}

/// Escapes the characters that a plain line does not have as JSON does.
#[must_use]
pub fn visible_line(text: &str) -> Cow<'_, str> {
    if is_plain_line(text) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(escaped(text, is_plain))
    }
}

fn is_plain(c: char) -> bool {
    c != EMOJI_SELECTOR && !c.is_control() && is_shown(c)
}

fn is_shown(c: char) -> bool {
    c == '\n' || (c != BLANK_BRAILLE && !manifest::is_hidden(c))
}

/// Escapes invisible characters as JSON does. JSON keeps its meaning, because it has such characters
/// only inside of strings.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    let mut bytes = text.bytes();
    if bytes.all(|byte| byte == b'\n' || byte == b' ' || byte.is_ascii_graphic())
        || is_visible(text)
    {
        return Cow::Borrowed(text);
    }
    Cow::Owned(escaped(text, is_shown))
}

/// Escapes all characters but those that are shown.
fn escaped(text: &str, is_shown: fn(char) -> bool) -> String {
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
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_invisible_characters() {
        for (text, shown) in [
            ("ad\u{202e}a", "ad\\u202ea"),
            ("a\u{2800}b", "a\\u2800b"),
            ("a\u{fe00}\u{fe0f}", "a\\ufe00\\ufe0f"),
            ("a\nb\t\u{2028}", "a\\u000ab\\u0009\\u2028"),
        ] {
            assert!(!is_plain_line(text));
            assert_eq!(visible_line(text), shown);
        }
        assert_eq!(visible_line("Zoë 中"), "Zoë 中");
        assert!(is_visible("☀\u{fe0f}\n\tok") && !is_visible("a\u{2800}"));
    }
}
