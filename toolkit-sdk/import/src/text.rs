//! Adapts the texts of descriptions to a manifest.

use manifest::cleaned;
use serde_json::Value;

/// Returns one line of at most `longest` bytes, without surplus white space.
pub(crate) fn line(text: &str, longest: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    cut(&cleaned(&words.join(" ")), longest)
}

/// Returns any number of lines, at most `longest` bytes.
pub(crate) fn block(text: &str, longest: usize) -> String {
    let text = cleaned(&text.replace("\r\n", "\n"));
    cut(text.trim(), longest)
}

/// Returns the strings of a list, or nothing if the value is not a list.
pub(crate) fn listed(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// Returns at most `longest` bytes, cut between words if possible.
pub(crate) fn cut(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let mut end = longest.saturating_sub('…'.len_utf8());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let start = &text[..end];
    let kept = start
        .rfind(char::is_whitespace)
        .filter(|space| *space > end / 2)
        .map_or(start, |space| &start[..space]);
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_words() {
        assert_eq!(line("  List\n all  the\titems ", 100), "List all the items");
        assert_eq!(cut("one two three", 10), "one two…");
        assert_eq!(cut("äääääääää", 8), "ää…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(block("a\r\n\r\n b \u{200b}", 100), "a\n\n b");
    }
}
