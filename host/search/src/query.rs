//! The meaning of a query: its words, what each may stand for, and the action it asks for.

use std::collections::HashMap;

use crate::{
    document::concept_term,
    index::{Scope, Term, letters},
    lexicon::{Actions, MAX_PHRASE_WORDS},
    words::{Language, Word, words},
};

/// Maximum number of words of a query that are considered. Later ones are ignored.
pub const MAX_QUERY_WORDS: usize = 40;
/// Weight of a word for the same action or thing, where the word itself has 1.
const CONCEPT_WEIGHT: f32 = 0.6;
/// Weight of a word that differs by one edit.
const CORRECTED_WEIGHT: f32 = 0.8;
/// Number of letters from which a word may be misspelled.
const MIN_CORRECTED_LETTERS: usize = 4;
/// Number of letters from which a word may have two edits.
const MIN_TWO_EDITS_LETTERS: usize = 8;
/// Maximum number of corrections of one word.
const MAX_CORRECTIONS: usize = 4;

/// Maximum number of letters of a word of a query. Further ones are ignored.
const MIN_WORD_LETTERS: usize = 2;
/// Share of the name of a toolkit from which a query names the toolkit.
const NAMED_SHARE: f32 = 0.6;
/// Words after which a query describes the thing that it asks for.
const OBJECT_PREPOSITIONS: [&str; 14] = [
    "in", "of", "to", "from", "for", "with", "on", "by", "at", "about", "into", "through", "as",
    "without",
];

/// A query that has been understood.
#[derive(Default)]
pub(crate) struct Query {
    pub(crate) units: Vec<Unit>,
    /// The actions that the query asks for; 0 without any.
    pub(crate) actions: Actions,
    /// True if the query asks for several things, false for one.
    pub(crate) is_plural: bool,
    /// Degree to which the query names each toolkit, between 0 and 1.
    pub(crate) toolkits: HashMap<u32, f32>,
}

/// A word of a query.
pub(crate) struct Unit {
    /// The word as the query has it.
    pub(crate) word: String,
    /// The terms that it may stand for, with their weights.
    pub(crate) alternatives: Vec<(Term, f32)>,
    /// True if the word names an action.
    pub(crate) is_action: bool,
    /// The toolkits that the query names, and whose name the word is a part of.
    pub(crate) toolkits: Vec<u32>,
    /// True if the word follows a preposition, where it describes the thing asked for.
    pub(crate) is_context: bool,
}

/// A word of a query and the corresponding English word.
struct Meant {
    source: String,
    folded: String,
}

impl Query {
    pub(crate) fn new(scope: &Scope<'_>, text: &str) -> Self {
        let found: Vec<_> = words(text).into_iter().take(MAX_QUERY_WORDS).collect();
        let mut query = Self::default();
        let mut stems = Vec::new();
        let mut is_context = false;
        let mut leading = 0;
        for word in meanings(scope, text, &found) {
            let stem = scope.index.lexicon.stem(&word.folded);
            // A request has verbs in their basic form: `replies` and `checks` are nouns.
            let is_plural = is_plural(&word.folded);
            let may_act = |actions| if is_plural { 0 } else { actions };
            let actions = may_act(scope.index.lexicon.actions(&stem));
            if query.actions == 0 {
                query.actions = actions;
            }
            if stems.is_empty() {
                leading = may_act(scope.index.lexicon.leading_actions(&stem));
            }
            let has_thing = query.units.iter().any(|unit| !unit.is_action);
            is_context |= has_thing && OBJECT_PREPOSITIONS.contains(&&*word.folded);
            let is_known = scope.index.lexicon.is_ignored(&word.folded) || stems.contains(&stem);
            if is_known || word.folded.chars().count() < MIN_WORD_LETTERS {
                continue;
            }
            query.is_plural |= !is_context && is_plural;
            query.units.push(Unit {
                alternatives: alternatives(scope, &stem),
                word: word.source,
                is_action: actions != 0,
                toolkits: Vec::new(),
                is_context,
            });
            stems.push(stem);
        }
        if query.actions == 0 {
            query.actions = leading;
        }
        // `open issues` asks for a list, although `open` may ask for one thing.
        let lexicon = &scope.index.lexicon;
        if query.is_plural && query.actions & lexicon.getting != 0 {
            query.actions |= lexicon.listing;
        }
        query.name_toolkits(scope, &stems);
        query
    }

    /// Finds the toolkits that the query names.
    fn name_toolkits(&mut self, scope: &Scope<'_>, stems: &[String]) {
        for (position, toolkit) in scope.index.toolkits.iter().enumerate() {
            let share = toolkit.share_named(stems);
            if share == 0.0 {
                continue;
            }
            let position = u32::try_from(position).unwrap_or(u32::MAX);
            self.toolkits.insert(position, share);
            if share < NAMED_SHARE {
                continue;
            }
            for (unit, stem) in self.units.iter_mut().zip(stems) {
                if toolkit.name.contains(stem) || toolkit.slug.starts_with(stem) {
                    unit.toolkits.push(position);
                }
            }
        }
    }
}

impl crate::index::Toolkit {
    /// Returns the share of the toolkit's name that words contain, between 0 and 1.
    fn share_named(&self, stems: &[String]) -> f32 {
        let exact = stems.contains(&self.slug);
        let named = self.name.iter().filter(|part| stems.contains(part)).count();
        #[expect(clippy::cast_precision_loss, reason = "a name has few words")]
        let share = if self.name.is_empty() {
            0.0
        } else {
            named as f32 / self.name.len() as f32
        };
        if exact {
            1.0
        } else if stems.iter().any(|stem| {
            *stem == self.slug || stem.len() >= MIN_CORRECTED_LETTERS && self.slug.starts_with(stem)
        }) {
            share.max(0.9)
        } else {
            share
        }
    }
}

/// Returns true for a noun that ends like a plural.
fn is_plural(folded: &str) -> bool {
    folded.ends_with('s') && !folded.ends_with("ss") && !folded.ends_with("us")
}

/// Replaces phrases, abbreviations and words of other languages.
fn meanings(scope: &Scope<'_>, text: &str, found: &[Word]) -> Vec<Meant> {
    let language = language(scope, found);
    let mut meant = Vec::new();
    let mut position = 0;
    while position < found.len() {
        let (length, meaning) = meaning(scope, &found[position..], language);
        let source = &found[position..position + length];
        let bytes = source[0].source.start..source[length - 1].source.end;
        meant.extend(meaning.into_iter().map(|folded| Meant {
            source: text[bytes.clone()].to_owned(),
            folded,
        }));
        position += length;
    }
    meant
}

/// Returns the language of a query, if it has words of another language than English: the language
/// that knows most of them.
fn language(scope: &Scope<'_>, found: &[Word]) -> Option<Language> {
    let counted = Language::ALL.map(|language| (known_words(scope, found, language), language));
    let (count, language) = counted.into_iter().rev().max_by_key(|(count, _)| *count)?;
    (count > 0).then_some(language)
}

/// Returns the number of words that a language knows, or 0 if all of them may be English.
fn known_words(scope: &Scope<'_>, found: &[Word], language: Language) -> usize {
    let known: Vec<_> = found
        .iter()
        .filter_map(|word| Some((word, scope.index.lexicon.english(language, &word.folded)?)))
        .collect();
    let is_certain = known
        .iter()
        .any(|(word, meaning)| meaning.is_empty() || !is_english(scope, &word.folded));
    if is_certain { known.len() } else { 0 }
}

/// Returns true for a word that the lexicon or a tool knows.
fn is_english(scope: &Scope<'_>, folded: &str) -> bool {
    let stem = scope.index.lexicon.stem(folded);
    scope.term(&stem).is_some() || !scope.index.lexicon.concepts(&stem).is_empty()
}

/// Returns the meaning of the first words, and their number.
fn meaning(scope: &Scope<'_>, rest: &[Word], language: Option<Language>) -> (usize, Vec<String>) {
    for length in (1..=MAX_PHRASE_WORDS.min(rest.len())).rev() {
        let phrase: Vec<_> = rest[..length].iter().map(|word| &*word.folded).collect();
        if let Some(meaning) = scope.index.lexicon.phrase(&phrase.join(" ")) {
            return (length, meaning.to_vec());
        }
    }
    let first = &rest[0].folded;
    let english = language.and_then(|language| scope.index.lexicon.english(language, first));
    (
        1,
        english.map_or_else(|| vec![first.clone()], <[String]>::to_vec),
    )
}

/// Returns the terms that a word may stand for.
fn alternatives(scope: &Scope<'_>, stem: &str) -> Vec<(Term, f32)> {
    let mut found = Vec::new();
    add(scope, stem, 1.0, &mut found);
    if found.is_empty() {
        for (corrected, weight) in corrections(scope, stem) {
            add(scope, &corrected, weight, &mut found);
        }
    }
    found
}

/// Adds a word and its concepts.
fn add(scope: &Scope<'_>, stem: &str, weight: f32, found: &mut Vec<(Term, f32)>) {
    let word = scope.term(stem).map(|term| (term, weight));
    let concepts = scope
        .index
        .lexicon
        .concepts(stem)
        .iter()
        .filter_map(|concept| scope.term(&concept_term(*concept)))
        .map(|term| (term, weight * CONCEPT_WEIGHT));
    found.extend(word.into_iter().chain(concepts));
}

/// Finds the words of the index that a word may be a misspelling of, the nearest first.
fn corrections(scope: &Scope<'_>, stem: &str) -> Vec<(String, f32)> {
    let length = stem.chars().count();
    let Some(first) = stem.chars().next() else {
        return Vec::new();
    };
    if length < MIN_CORRECTED_LETTERS - 1 || !stem.chars().all(char::is_alphabetic) {
        return Vec::new();
    }
    let most = if length < MIN_TWO_EDITS_LETTERS { 1 } else { 2 };
    let letters = letters(stem);
    let mut near = Vec::new();
    for candidate in length - most..=length + most {
        for (term, own) in scope.index.words_like(first, candidate) {
            if (own ^ letters).count_ones() as usize > 2 * most {
                continue;
            }
            let spelling = scope.index.spelling(*term);
            let edits = strsim::osa_distance(stem, spelling);
            if edits <= most && scope.contains(*term) {
                near.push((edits, spelling));
            }
        }
    }
    near.sort_unstable();
    near.truncate(MAX_CORRECTIONS);
    let weighted = near.into_iter().map(|(edits, spelling)| {
        let weight = if edits < 2 {
            CORRECTED_WEIGHT
        } else {
            CORRECTED_WEIGHT / 2.0
        };
        (spelling.to_owned(), weight)
    });
    weighted.collect()
}
