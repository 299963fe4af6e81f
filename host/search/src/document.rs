//! Documents: the texts of one tool, as weighted terms.
//!
//! A word in the slug says more about a tool than a word in the description of a parameter. Each
//! field has a weight and a usual length; a field longer than usual counts less per word.

use std::collections::HashMap;

use crate::{
    lexicon::{Actions, Lexicon},
    words::words,
};

/// Maximum number of different terms indexed for one tool. Terms of later fields are left out.
pub const MAX_TERMS_PER_TOOL: usize = 192;
/// Maximum number of words that are read of one field.
const MAX_WORDS_PER_FIELD: usize = 400;
/// Factor of the weight of each word to that of the word before it. It decides between tools that
/// have the same words in another order, such as those that convert in both directions.
const LATER_WORD: f32 = 0.99;
/// Words of a slug that are methods of HTTP and say little about the action of the tool.
const HTTP_METHODS: [&str; 4] = ["get", "post", "put", "patch"];

/// The searchable texts of a tool.
#[derive(Debug, Clone, Default)]
pub struct Document<'a> {
    /// The slug, which starts with the slug of the toolkit.
    pub slug: &'a str,
    /// The name for people.
    pub name: &'a str,
    /// The description.
    pub description: &'a str,
    /// The slug of the toolkit.
    pub toolkit: &'a str,
    /// The name of the toolkit.
    pub toolkit_name: &'a str,
    /// The names of the parameters.
    pub parameters: Vec<&'a str>,
    /// The tags of the tool and the categories of its toolkit.
    pub tags: Vec<&'a str>,
    /// Other words and phrases that the author of the tool gives for what it does.
    pub synonyms: Vec<&'a str>,
}

/// A part of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// The slug, without the slug of the toolkit.
    Slug,
    /// The name.
    Name,
    /// The first sentence of the description.
    Summary,
    /// The description after its first sentence.
    Description,
    /// The tags of the tool and the categories of its toolkit.
    Tags,
    /// The names of the parameters.
    Parameters,
    /// The words that the author of the tool gives for what it does.
    Synonyms,
}

impl Field {
    /// All fields, in the order in which their terms are indexed.
    pub const ALL: [Self; 7] = [
        Self::Slug,
        Self::Name,
        Self::Summary,
        Self::Synonyms,
        Self::Tags,
        Self::Parameters,
        Self::Description,
    ];

    /// Returns the name of the field in explanations.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Slug => "slug",
            Self::Name => "name",
            Self::Summary | Self::Description => "description",
            Self::Tags => "tags",
            Self::Parameters => "parameters",
            Self::Synonyms => "synonyms",
        }
    }

    /// Returns the bit of the field in a set of fields.
    pub(crate) fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Returns the weight of one word, the usual number of words, and how far the length of the
    /// field counts, between 0 and 1.
    fn weighting(self) -> (f32, f32, f32) {
        match self {
            Self::Slug => (2.0, 3.0, 0.6),
            Self::Name => (2.0, 3.0, 0.6),
            Self::Summary => (2.0, 9.0, 0.5),
            Self::Description => (0.4, 30.0, 0.6),
            Self::Tags => (0.5, 3.0, 0.5),
            Self::Parameters => (0.3, 8.0, 0.6),
            Self::Synonyms => (1.5, 6.0, 0.6),
        }
    }
}

/// The stems of words, which many documents share.
#[derive(Default)]
pub(crate) struct KnownStems(HashMap<String, Option<String>>);

impl KnownStems {
    /// Returns the stem of a folded word, or `None` for a word without weight.
    fn stem(&mut self, folded: String, lexicon: &Lexicon) -> Option<String> {
        let stem = self.0.entry(folded).or_insert_with_key(|folded| {
            let has_weight = folded.len() > 1 && !lexicon.is_ignored(folded);
            has_weight.then(|| lexicon.stem(folded))
        });
        stem.clone()
    }
}

/// The terms of a document.
pub(crate) struct Terms {
    /// The weight and the fields of each term, in the order of its first occurrence.
    pub(crate) weights: Vec<(String, f32, u8)>,
    /// The actions that the tool performs.
    pub(crate) actions: Actions,
    /// The number of words for things in the slug, and in the name.
    pub(crate) things: [u8; 2],
}

impl Document<'_> {
    /// Returns the weighted terms of the document.
    pub(crate) fn terms(&self, lexicon: &Lexicon, known: &mut KnownStems) -> Terms {
        let mut collected = Collected::default();
        let mut actions = 0;
        let mut things = [0; 2];
        for field in Field::ALL {
            let stems = self.stems(field, lexicon, known);
            if matches!(field, Field::Slug | Field::Name | Field::Summary) {
                actions |= action(&stems, field, lexicon);
            }
            if field == Field::Synonyms {
                let phrases = self
                    .synonyms
                    .iter()
                    .map(|phrase| stems_of(phrase, lexicon, known));
                actions |= phrases.fold(0, |all, stems| all | action(&stems, field, lexicon));
            }
            if let Some(position) = [Field::Slug, Field::Name]
                .iter()
                .position(|one| *one == field)
            {
                let own = stems.iter().filter(|stem| is_thing(stem, lexicon));
                things[position] = u8::try_from(own.count()).unwrap_or(u8::MAX);
            }
            collected.add(field, &stems, lexicon);
        }
        Terms {
            weights: collected.order,
            actions,
            things,
        }
    }

    fn stems(&self, field: Field, lexicon: &Lexicon, known: &mut KnownStems) -> Vec<String> {
        let (summary, rest) = split_summary(self.description);
        let mut stems = |text: &str| stems_of(text, lexicon, known);
        match field {
            Field::Slug => stems(self.own_slug()),
            Field::Name => stems(self.name),
            Field::Summary => stems(&without_markup(summary)),
            Field::Description => stems(&without_markup(rest)),
            Field::Tags => stems(&self.tags.join(" ")),
            Field::Synonyms => stems(&self.synonyms.join(" ")),
            Field::Parameters => stems(&self.parameters.join(" ")),
        }
    }

    /// Returns the slug without the slug of the toolkit before it.
    pub(crate) fn own_slug(&self) -> &str {
        let prefix = self.toolkit.len();
        match self.slug.get(..prefix) {
            Some(start) if start.eq_ignore_ascii_case(self.toolkit) => &self.slug[prefix..],
            _ => self.slug,
        }
    }
}

fn stems_of(text: &str, lexicon: &Lexicon, known: &mut KnownStems) -> Vec<String> {
    let found = words(text).into_iter().take(MAX_WORDS_PER_FIELD);
    found
        .filter_map(|word| known.stem(word.folded, lexicon))
        .collect()
}

/// Returns the actions that the first word of a field names.
fn action(stems: &[String], field: Field, lexicon: &Lexicon) -> Actions {
    let Some((first, rest)) = stems.split_first() else {
        return 0;
    };
    match &**first {
        // The slug and the name of an imported tool may start with an HTTP method.
        method if field != Field::Summary && HTTP_METHODS.contains(&method) => 0,
        "return" | "retriev" if rest.first().is_some_and(|next| next == "list") => lexicon.listing,
        "return" | "retriev" => lexicon.getting,
        first => lexicon.actions(first),
    }
}

/// Returns true for a word that does not name an action.
fn is_thing(stem: &str, lexicon: &Lexicon) -> bool {
    lexicon.actions(stem) == 0
}

#[derive(Default)]
struct Collected {
    order: Vec<(String, f32, u8)>,
    positions: HashMap<String, usize>,
}

impl Collected {
    fn add(&mut self, field: Field, stems: &[String], lexicon: &Lexicon) {
        let (weight, usual, length_share) = field.weighting();
        #[expect(clippy::cast_precision_loss, reason = "a field has few words")]
        let relative = stems.len() as f32 / usual;
        let mut per_word = weight / (1.0 - length_share + length_share * relative);
        for stem in stems {
            per_word *= LATER_WORD;
            self.put(stem.clone(), per_word, field);
            for concept in lexicon.concepts(stem) {
                self.put(concept_term(*concept), per_word, field);
            }
        }
    }

    fn put(&mut self, term: String, weight: f32, field: Field) {
        if let Some(position) = self.positions.get(&term) {
            let (_, sum, fields) = &mut self.order[*position];
            *sum += weight;
            *fields |= field.bit();
        } else if self.order.len() < MAX_TERMS_PER_TOOL {
            self.positions.insert(term.clone(), self.order.len());
            self.order.push((term, weight, field.bit()));
        }
    }
}

/// Returns the term for a concept. No word contains its first character.
pub(crate) fn concept_term(concept: u16) -> String {
    format!("#{concept}")
}

/// Splits a description after its first sentence.
fn split_summary(description: &str) -> (&str, &str) {
    let text = description.trim_start();
    let end = [". ", ".\n", "\n\n", "</p>"]
        .iter()
        .filter_map(|stop| text.find(stop))
        .min();
    text.split_at(end.unwrap_or(text.len()))
}

/// Removes HTML tags, the targets of links, and the names of other tools, which stand in backticks.
fn without_markup(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(position) = rest.find(['<', '`', '(']) {
        plain.push_str(&rest[..position]);
        let marked = &rest[position..];
        let (end, is_markup): (&str, fn(&str) -> bool) = match marked.as_bytes()[0] {
            b'<' => (">", |inside| {
                inside.starts_with(|first: char| first == '/' || first.is_ascii_alphabetic())
            }),
            b'(' => (")", |inside| inside.starts_with("http")),
            _ => ("`", |inside| inside.contains('_')),
        };
        let inside = marked[1..].find(end).map(|length| &marked[1..=length]);
        plain.push(' ');
        rest = match inside {
            Some(inside) if is_markup(inside) => &marked[inside.len() + 2..],
            _ => &marked[1..],
        };
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_tools_are_not_indexed() {
        assert_eq!(
            without_markup("<p>Reads one; `search_mails` finds `x` ([docs](https://a.b/c))."),
            " Reads one;   finds  x   [docs] )."
        );
        assert_eq!(
            without_markup("a < b and `unclosed (text"),
            "a   b and  unclosed  text"
        );
    }

    #[test]
    fn toolkit_is_not_part_of_own_slug() {
        let tool = |slug, toolkit| Document {
            slug,
            toolkit,
            ..Document::default()
        };
        assert_eq!(tool("SLACK_SEND", "slack").own_slug(), "_SEND");
        assert_eq!(tool("OTHER", "slack").own_slug(), "OTHER");
    }

    #[test]
    fn terms_of_a_long_document_are_bounded() {
        let description: String = (0..9_000).map(|number| format!("word{number} ")).collect();
        let document = Document {
            slug: "A_B",
            description: &description,
            ..Document::default()
        };
        let terms = document.terms(&Lexicon::new(), &mut KnownStems::default());
        assert_eq!(terms.weights.len(), MAX_TERMS_PER_TOOL);
    }
}
