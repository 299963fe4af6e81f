//! Words of texts, identifiers and queries.
//!
//! A tool is described by identifiers (`SLACK_SEND_MESSAGE`, `issueId`) and by English text, and is
//! asked for in text. Both become the same words: identifiers are split, accents are removed, and
//! words are reduced to their stems.

use std::ops::Range;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// Maximum length of a word in bytes. Longer ones are encoded data, not language.
const MAX_WORD_BYTES: usize = 40;

/// A word of a string, before it is reduced to its stem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// The word in lower case, without accents.
    pub(crate) folded: String,
    /// The bytes of the text that it was made of.
    pub(crate) source: Range<usize>,
}

/// Splits a string into words, also within identifiers.
pub(crate) fn words(text: &str) -> Vec<Word> {
    let mut found = Vec::new();
    let mut start = None;
    let mut previous = ' ';
    for (position, next) in text.char_indices() {
        let joins = next.is_alphanumeric() || is_combining_mark(next);
        if let Some(begun) = start
            && (!joins || is_boundary(previous, next, &text[position..]))
        {
            push(&mut found, text, begun..position);
            start = None;
        }
        if joins && start.is_none() {
            start = Some(position);
        }
        previous = next;
    }
    if let Some(begun) = start {
        push(&mut found, text, begun..text.len());
    }
    found
}

/// Returns true if a word of an identifier ends between two characters: `sendMail`, `HTTPServer`.
fn is_boundary(previous: char, next: char, rest: &str) -> bool {
    if !next.is_uppercase() {
        return false;
    }
    let after = rest.chars().nth(1);
    previous.is_lowercase() || previous.is_uppercase() && after.is_some_and(char::is_lowercase)
}

fn push(found: &mut Vec<Word>, text: &str, source: Range<usize>) {
    if source.len() > MAX_WORD_BYTES {
        return;
    }
    let folded = fold(&text[source.clone()]);
    if !folded.is_empty() {
        found.push(Word { folded, source });
    }
}

/// Returns a string in lower case and without accents.
pub(crate) fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let lower = text.nfd().filter(|part| !is_combining_mark(*part));
    lower.flat_map(char::to_lowercase).collect()
}

/// The stemmers of the languages that queries may be written in.
pub(crate) struct Stemmers {
    english: Stemmer,
    german: Stemmer,
    spanish: Stemmer,
    french: Stemmer,
}

/// A language of queries other than English.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Language {
    German,
    Spanish,
    French,
}

impl Language {
    pub(crate) const ALL: [Self; 3] = [Self::German, Self::Spanish, Self::French];
}

impl Default for Stemmers {
    fn default() -> Self {
        Self {
            english: Stemmer::create(Algorithm::English),
            german: Stemmer::create(Algorithm::German),
            spanish: Stemmer::create(Algorithm::Spanish),
            french: Stemmer::create(Algorithm::French),
        }
    }
}

impl Stemmers {
    /// Returns the stem of an English word.
    pub(crate) fn stem(&self, folded: &str) -> String {
        self.english.stem(folded).into_owned()
    }

    /// Returns the stem of a word of another language.
    pub(crate) fn foreign(&self, language: Language, folded: &str) -> String {
        let stemmer = match language {
            Language::German => &self.german,
            Language::Spanish => &self.spanish,
            Language::French => &self.french,
        };
        stemmer.stem(folded).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> Vec<String> {
        words(text).into_iter().map(|word| word.folded).collect()
    }

    #[test]
    fn identifiers_are_split_into_words() {
        assert_eq!(folded("SLACK_SEND_MESSAGE"), ["slack", "send", "message"]);
        assert_eq!(
            folded("issueId, HTTPServer"),
            ["issue", "id", "http", "server"]
        );
        assert_eq!(folded("post /v1/customers"), ["post", "v1", "customers"]);
    }

    #[test]
    fn accents_and_case_are_removed() {
        assert_eq!(folded("Créer un Événement"), ["creer", "un", "evenement"]);
        assert_eq!(folded("cre\u{301}er"), ["creer"]);
    }

    #[test]
    fn base64_is_not_indexed() {
        assert!(folded(&"x".repeat(MAX_WORD_BYTES + 1)).is_empty());
    }
}
