//! Words that mean the same: actions, things, abbreviations, and the commonest words of other
//! languages.
//!
//! The words are in `lexicon.txt`. An index holds for each word the *concepts* that it belongs to,
//! so that a query for "new ticket" finds a tool that creates an issue.

use std::collections::{HashMap, HashSet};

use crate::words::{Language, Stemmers, fold, words};

const LEXICON_TEXT: &str = include_str!("lexicon.txt");
/// Maximum number of words in a phrase.
pub(crate) const MAX_PHRASE_WORDS: usize = 3;

/// A set of actions, one bit for each.
pub(crate) type Actions = u64;

/// A concept: an action or a thing that several words name.
pub(crate) type Concept = u16;

/// The words, by their stems.
#[derive(Default)]
pub(crate) struct Lexicon {
    stemmers: Stemmers,
    concepts: HashMap<String, Vec<Concept>>,
    actions: HashMap<String, Actions>,
    leading: HashMap<String, Actions>,
    phrases: HashMap<String, Vec<String>>,
    ignored: HashSet<String>,
    exceptions: HashMap<String, String>,
    foreign: HashMap<(Language, String), Vec<String>>,
    /// The actions that change nothing.
    pub(crate) reading: Actions,
    /// The action that reads one thing.
    pub(crate) getting: Actions,
    /// The actions that read several things.
    pub(crate) listing: Actions,
    /// The names of the concepts. Those that are actions come first, and their numbers are the
    /// bits of [`Actions`].
    names: Vec<String>,
}

impl Lexicon {
    pub(crate) fn new() -> Self {
        let mut lexicon = Self::default();
        let mut section = "";
        for line in LEXICON_TEXT.lines() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if let Some(name) = line.strip_prefix('[') {
                section = name.trim_end_matches(']');
            } else if !line.is_empty() {
                lexicon.read(section, line);
            }
        }
        lexicon.reading = lexicon.actions_named(&["get", "list", "search"]);
        lexicon.getting = lexicon.actions_named(&["get"]);
        lexicon.listing = lexicon.actions_named(&["list", "search"]);
        lexicon
    }

    fn read(&mut self, section: &str, line: &str) {
        let (name, values) = line.split_once(':').unwrap_or(("", line));
        match section {
            "actions" => {
                let concept = self.concept(name);
                for stem in self.stems(values) {
                    *self.actions.entry(stem.clone()).or_default() |= 1 << concept;
                    self.add(stem, concept);
                }
            }
            "leading" => {
                let concept = self.concept(name);
                for stem in self.stems(values) {
                    *self.leading.entry(stem).or_default() |= 1 << concept;
                }
            }
            "things" => {
                let concept = self.concept(&format!("thing {name}"));
                self.stems(values)
                    .into_iter()
                    .for_each(|stem| self.add(stem, concept));
            }
            "phrases" => {
                let meaning = words(values).into_iter().map(|word| word.folded);
                self.phrases.insert(fold(name), meaning.collect());
            }
            "ignored" => {
                let found = words(values).into_iter().map(|word| word.folded);
                self.ignored.extend(found);
            }
            "stems" => {
                self.exceptions
                    .insert(name.to_owned(), values.trim().to_owned());
            }
            language => self.read_foreign(language, name, values),
        }
    }

    fn stems(&self, text: &str) -> Vec<String> {
        let found = words(text).into_iter();
        found.map(|word| self.stem(&word.folded)).collect()
    }

    fn read_foreign(&mut self, language: &str, name: &str, values: &str) {
        let language = match language {
            "german" => Language::German,
            "spanish" => Language::Spanish,
            _ => Language::French,
        };
        let meaning: Vec<_> = words(values).into_iter().map(|word| word.folded).collect();
        for word in words(name) {
            let stem = self.stemmers.foreign(language, &word.folded);
            self.foreign.insert((language, stem), meaning.clone());
        }
    }

    fn concept(&mut self, name: &str) -> Concept {
        let existing = self.names.iter().position(|known| known == name);
        let position = existing.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        Concept::try_from(position).expect("the lexicon is a small file of this crate")
    }

    fn add(&mut self, stem: String, concept: Concept) {
        let all = self.concepts.entry(stem).or_default();
        if !all.contains(&concept) {
            all.push(concept);
        }
    }

    /// Returns the concepts that a stem belongs to.
    pub(crate) fn concepts(&self, stem: &str) -> &[Concept] {
        self.concepts.get(stem).map_or(&[], Vec::as_slice)
    }

    /// Returns the actions that a stem names.
    pub(crate) fn actions(&self, stem: &str) -> Actions {
        self.actions.get(stem).copied().unwrap_or_default()
    }

    /// Returns the actions that a stem names at the beginning of a query.
    pub(crate) fn leading_actions(&self, stem: &str) -> Actions {
        self.leading.get(stem).copied().unwrap_or_default()
    }

    /// Returns the actions of these names.
    fn actions_named(&self, names: &[&str]) -> Actions {
        let bits = self.names.iter().enumerate();
        bits.filter(|(_, name)| names.contains(&name.as_str()))
            .fold(0, |all, (bit, _)| all | 1 << bit)
    }

    /// Returns the meaning of a phrase of folded words.
    pub(crate) fn phrase(&self, phrase: &str) -> Option<&[String]> {
        self.phrases.get(phrase).map(Vec::as_slice)
    }

    /// Returns true for a word without weight.
    pub(crate) fn is_ignored(&self, folded: &str) -> bool {
        self.ignored.contains(folded)
    }

    /// Returns the English words for a folded word of another language. A word without weight has
    /// none.
    pub(crate) fn english(&self, language: Language, folded: &str) -> Option<&[String]> {
        let stem = self.stemmers.foreign(language, folded);
        self.foreign.get(&(language, stem)).map(Vec::as_slice)
    }

    /// Returns the stem of an English word.
    pub(crate) fn stem(&self, folded: &str) -> String {
        match self.exceptions.get(folded) {
            Some(exception) => exception.clone(),
            None => self.stemmers.stem(folded),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_other_languages_are_translated() {
        let lexicon = Lexicon::new();
        assert_eq!(
            lexicon.english(Language::German, &fold("Termine")),
            Some(&["event".to_owned()][..])
        );
        assert_eq!(
            lexicon.english(Language::French, &fold("créer")),
            Some(&["create".to_owned()][..])
        );
        assert_eq!(lexicon.english(Language::Spanish, "nonsense"), None);
    }

    #[test]
    fn words_for_one_action_share_its_concept() {
        let lexicon = Lexicon::new();
        assert_ne!(lexicon.actions("add") & lexicon.actions("creat"), 0);
        assert_eq!(lexicon.actions("add") & lexicon.actions("remov"), 0);
    }

    #[test]
    fn actions_fit_into_their_set() {
        let lexicon = Lexicon::new();
        let things = lexicon
            .names
            .iter()
            .position(|name| name.starts_with("thing "));
        assert!(things.unwrap() < Actions::BITS as usize);
    }
}
