//! Words for the errors of the JSON parser.
//!
//! The parser names its own steps ("EOF while parsing"). A [`Problem`] says what is wrong with the text, and
//! where, and repeats nothing of it.

use std::str::Utf8Error;

use serde_json::Error;

use super::problem::Problem;

/// Beginnings of the parser's messages, each with what is wrong with the text.
const SYNTAX_REASONS: [(&str, &str); 17] = [
    ("EOF while parsing a string", "a string is not closed"),
    ("EOF while parsing", "the text ends too early"),
    ("expected `:`", "expected `:` after the name of a member"),
    ("expected `,` or `]`", "expected `,` or `]`"),
    ("expected `,` or `}`", "expected `,` or `}`"),
    ("expected ident", "expected `true`, `false` or `null`"),
    ("expected value", "expected a value"),
    ("invalid escape", "a string has an unknown escape"),
    ("invalid number", "a number is not written as in JSON"),
    (
        "invalid unicode code point",
        "a string has bytes that are not UTF-8, or an escape of no character",
    ),
    (
        "control character",
        "a string has a control character that is not escaped",
    ),
    (
        "key must be a string",
        "expected the name of a member in double quotes",
    ),
    (
        "lone leading surrogate",
        "a string has an escape of half a character",
    ),
    (
        "unexpected end of hex escape",
        "a string has an escape of half a character",
    ),
    ("trailing comma", "no value follows the last comma"),
    ("trailing characters", "more text follows the value"),
    ("recursion limit exceeded", "the nesting is too deep"),
];
/// Reason for messages that are not in the table.
const OTHER_REASON: &str = "the text is malformed";

impl Problem {
    /// Returns the problem of text that the parser refuses because it is not JSON.
    #[must_use]
    pub fn of_syntax(cause: &Error) -> Self {
        let message = cause.to_string();
        let known = SYNTAX_REASONS
            .iter()
            .find(|(start, _)| message.starts_with(start));
        let reason = known.map_or(OTHER_REASON, |(_, reason)| reason);
        Self::not_json(cause.line(), cause.column(), reason)
    }

    /// Returns the problem of bytes that are not UTF-8.
    pub(super) fn of_charset(bytes: &[u8], cause: Utf8Error) -> Self {
        let valid = &bytes[..cause.valid_up_to()];
        let lines = valid.split(|byte| *byte == b'\n');
        let last = valid.rsplit(|byte| *byte == b'\n').next();
        let column = last.map_or(0, <[u8]>::len) + 1;
        Self::not_json(lines.count(), column, "the bytes are not UTF-8")
    }

    fn not_json(line: usize, column: usize, reason: &str) -> Self {
        Self::new(format!(
            "is not JSON: line {line}, column {column}: {reason}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use crate::core::json::parse;

    #[test]
    fn broken_json_is_explained_in_plain_words() {
        for (bytes, expected) in [
            (
                &br#"{"a": "secret"#[..],
                "column 13: a string is not closed",
            ),
            (br#"{"a": [1,"#, "column 9: the text ends too early"),
            (b"", "column 0: the text ends too early"),
            (
                br#"{"a" 1}"#,
                "column 6: expected `:` after the name of a member",
            ),
            (b"[1 2]", "column 4: expected `,` or `]`"),
            (br#"{"a":1 "b"}"#, "column 8: expected `,` or `}`"),
            (b"[nul]", "column 5: expected `true`, `false` or `null`"),
            (b"hello", "column 1: expected a value"),
            (br#"["\x"]"#, "column 4: a string has an unknown escape"),
            (b"[01]", "column 3: a number is not written as in JSON"),
            (
                b"[\"a\tb\"]",
                "a string has a control character that is not escaped",
            ),
            (
                b"{a: 1}",
                "column 2: expected the name of a member in double quotes",
            ),
            (
                br#"["\ud800"]"#,
                "a string has an escape of half a character",
            ),
            (b"[1,]", "column 4: no value follows the last comma"),
            (b"{} x", "column 4: more text follows the value"),
            (
                b"[1,\n \"\xff\"]",
                "is not JSON: line 2, column 3: the bytes are not UTF-8",
            ),
        ] {
            let line = parse(bytes).unwrap_err().line("body");
            assert!(line.starts_with("body: is not JSON: line "), "{line}");
            assert!(line.ends_with(expected), "{line}");
        }
    }
}
