//! Output for a response: short output as a whole, long output as its beginning and a file.

use bytes::Bytes;
use sandbox::FileChange;

use crate::OUTPUTS_FOLDER;

/// Maximum size of each output in a response, in bytes. Longer output becomes a file of the session.
pub const MAX_EXCERPT_BYTES: usize = 32 << 10;

/// Output, cut if it is long.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// Text, or its beginning.
    pub text: String,
    /// Number of lines of the whole text.
    pub lines: usize,
    /// Path of the file with the whole text, relative to [`crate::FILES_FOLDER`], if the text is
    /// cut.
    pub file: Option<String>,
}

impl Excerpt {
    /// Makes an excerpt of `output`, and a file in `changes` if it is cut. `name` is the name of
    /// the file without its folder.
    pub(crate) fn new(output: Bytes, name: &str, changes: &mut Vec<FileChange>) -> Self {
        let lines = output.split(|byte| *byte == b'\n').count()
            - usize::from(output.is_empty() || output.ends_with(b"\n"));
        if output.len() <= MAX_EXCERPT_BYTES {
            return Self {
                text: String::from_utf8_lossy(&output).into_owned(),
                lines,
                file: None,
            };
        }
        let text = cut_text(&output[..MAX_EXCERPT_BYTES]);
        let path = format!("{OUTPUTS_FOLDER}/{name}");
        changes.retain(|change| change.path != path);
        changes.push(FileChange {
            path: path.clone(),
            content: Some(output),
        });
        Self {
            text,
            lines,
            file: Some(path),
        }
    }
}

/// Returns the start of a longer text. A character cut in two is left out.
fn cut_text(start: &[u8]) -> String {
    let valid = start.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    if start.len() - valid.len() < char::MAX.len_utf8() {
        valid.to_owned()
    } else {
        String::from_utf8_lossy(start).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_output_is_cut_and_becomes_file() {
        let mut changes = Vec::new();
        let short = Excerpt::new(Bytes::from("a\nb\n"), "short.txt", &mut changes);
        assert_eq!((short.lines, short.file), (2, None));
        assert!(changes.is_empty());
        let output = "ä\n".repeat(MAX_EXCERPT_BYTES);
        let long = Excerpt::new(Bytes::from(output.clone()), "long.txt", &mut changes);
        assert_eq!(long.lines, MAX_EXCERPT_BYTES);
        assert!(long.text.len() <= MAX_EXCERPT_BYTES && output.starts_with(&long.text));
        assert_eq!(long.file.as_deref(), Some("outputs/long.txt"));
        assert_eq!(changes[0].content.as_deref(), Some(output.as_bytes()));
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let long = Excerpt::new(
            Bytes::from(vec![0xff; MAX_EXCERPT_BYTES + 1]),
            "binary.txt",
            &mut Vec::new(),
        );
        assert!(
            long.text
                .chars()
                .all(|char| char == char::REPLACEMENT_CHARACTER)
        );
    }
}
