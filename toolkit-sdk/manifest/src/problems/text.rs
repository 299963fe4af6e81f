//! Checks of texts that users and agents read. Invisible characters cannot be reviewed, so texts
//! must not contain them.

use super::Report;

/// Checks a string of one line: a name or a title.
pub(super) fn line(text: &str, longest: usize, report: &mut Report) {
    if text.contains(['\n', '\t']) {
        report.add("write it on one line, without tabs");
    }
    if text.trim() != text {
        report.add("remove the white space around it");
    }
    block(text, longest, report);
}

/// Checks a string of any number of lines. `longest` is in bytes.
pub(super) fn block(text: &str, longest: usize, report: &mut Report) {
    if text.trim().is_empty() {
        report.add("is empty");
    }
    optional(text, longest, report);
}

/// Checks a string that may be empty.
pub(super) fn optional(text: &str, longest: usize, report: &mut Report) {
    if text.len() > longest {
        report.add(format_args!(
            "{} bytes are too long; at most {longest}",
            text.len()
        ));
    }
    visible(text, report);
}

/// Reports the first character that is invisible or changes how others are displayed.
pub(super) fn visible(text: &str, report: &mut Report) {
    if let Some(hidden) = text.chars().find(|&letter| is_hidden(letter)) {
        report.add(format_args!(
            "remove the invisible character U+{:04X}",
            u32::from(hidden)
        ));
    }
    if text
        .chars()
        .zip(text.chars().skip(1))
        .any(|(base, mark)| composed(base, mark).is_some())
    {
        report.add("write letters with accents as one character each (Unicode NFC)");
    }
}

/// Returns the text in a form that a manifest accepts: invisible characters are removed, letters
/// with accents composed.
#[must_use]
pub fn cleaned(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars().filter(|&letter| !is_hidden(letter)) {
        match out
            .chars()
            .next_back()
            .and_then(|base| composed(base, letter))
        {
            Some(one) => {
                out.pop();
                out.push(one);
            }
            None => out.push(letter),
        }
    }
    out
}

/// Joins the lines of each paragraph, which an author breaks at the width of the source. Blank lines,
/// and the lines of lists, tables, headings, quotes and code, stay.
#[must_use]
pub fn joined_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_code = false;
    let mut is_open = false;
    for (index, line) in text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        let is_continued = is_open && !is_code && !is_fence && !begins_block(line);
        if index > 0 {
            out.push(if is_continued { ' ' } else { '\n' });
        }
        out.push_str(if is_continued {
            line.trim()
        } else {
            line.trim_end()
        });
        is_code ^= is_fence;
        is_open = !(is_code || is_fence || line.trim().is_empty() || line.starts_with(['#', '|']));
    }
    out
}

/// Returns true if a line of Markdown does not continue the paragraph before it.
fn begins_block(line: &str) -> bool {
    let text = line.trim_start();
    let number = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let is_numbered = number.len() < text.len() && number.starts_with([')', '.']);
    let is_item = ["- ", "* ", "+ ", "#", "|", ">"];
    text.is_empty()
        || is_item.iter().any(|start| text.starts_with(start))
        || is_numbered && number[1..].starts_with(' ')
        || line.starts_with("    ")
        || line.starts_with('\t')
}

/// Returns the single character for a vowel and an accent.
fn composed(base: char, mark: char) -> Option<char> {
    const ACCENT_MARKS: [char; 4] = ['\u{300}', '\u{301}', '\u{302}', '\u{308}'];
    const ACCENTED_VOWELS: [(char, &str); 10] = [
        ('A', "ÀÁÂÄ"),
        ('E', "ÈÉÊË"),
        ('I', "ÌÍÎÏ"),
        ('O', "ÒÓÔÖ"),
        ('U', "ÙÚÛÜ"),
        ('a', "àáâä"),
        ('e', "èéêë"),
        ('i', "ìíîï"),
        ('o', "òóôö"),
        ('u', "ùúûü"),
    ];
    let (_, letters) = ACCENTED_VOWELS.iter().find(|(vowel, _)| *vowel == base)?;
    letters
        .chars()
        .nth(ACCENT_MARKS.iter().position(|known| *known == mark)?)
}

/// Returns true for control, zero-width, bidirectional, variation and tag characters, fillers and
/// noncharacters.
#[must_use]
pub fn is_hidden(letter: char) -> bool {
    if letter.is_control() {
        return !matches!(letter, '\n' | '\t');
    }
    // The emoji variation selector U+FE0F is allowed: it only makes a symbol appear in color.
    matches!(u32::from(letter),
        0x00ad | 0x034f | 0x061c | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f
        | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0e | 0xfeff | 0xffa0
        | 0xfff0..=0xfffb | 0xfffe..=0xffff | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff | 0xf_0000..=0x10_ffff)
}

/// Returns true for a reserved word of Python, which cannot name a parameter of a function there.
#[must_use]
pub fn is_python_keyword(name: &str) -> bool {
    const PYTHON_KEYWORDS: [&str; 35] = [
        "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class",
        "continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global",
        "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return",
        "try", "while", "with", "yield",
    ];
    PYTHON_KEYWORDS.contains(&name)
}
