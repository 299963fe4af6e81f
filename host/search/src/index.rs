//! The index: for each term, the tools that contain it and how strongly.

use std::collections::{BTreeMap, HashMap};

use crate::{
    document::{Document, KnownStems, Terms},
    lexicon::{Actions, Lexicon},
    words::words,
};

/// Saturation of BM25: how much a second occurrence of a term adds.
const BM25_SATURATION: f32 = 1.2;
/// The greatest strength of a term in a tool, which is stored as the greatest integer.
const MAX_STRENGTH: f32 = BM25_SATURATION + 1.0;

/// Identifier of a term: its position in the tables of the index.
pub(crate) type Term = u32;

/// A set of letters, one bit for each, in which letters may share a bit.
pub(crate) type Letters = u32;

/// A searchable snapshot of tools. Tools are named by their positions in the documents that the
/// index was built from.
pub struct Index {
    pub(crate) lexicon: Lexicon,
    terms: HashMap<Box<str>, Term>,
    /// The terms that are words, with their letters, by first letter and length, for the correction
    /// of typos.
    vocabulary: HashMap<(char, usize), Vec<(Term, Letters)>>,
    spellings: Vec<Box<str>>,
    /// The postings of the term `t` are those from `starts[t]` to `starts[t + 1]`.
    starts: Vec<u32>,
    tools: Vec<u32>,
    strengths: Vec<u16>,
    fields: Vec<u8>,
    /// The actions of each tool.
    pub(crate) actions: Vec<Actions>,
    /// The number of words for things in the slug and in the name of each tool.
    pub(crate) things: Vec<[u8; 2]>,
    /// The toolkit of each tool.
    pub(crate) toolkit_of: Vec<u32>,
    pub(crate) toolkits: Vec<Toolkit>,
    /// The position of each tool in the order of slugs, which decides between equal scores.
    pub(crate) order: Vec<u32>,
}

/// The names by which a query may refer to a toolkit.
pub(crate) struct Toolkit {
    /// The slug, folded.
    pub(crate) slug: String,
    /// The stems of the name.
    pub(crate) name: Vec<String>,
}

/// One tool that contains a term.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Posting {
    pub(crate) tool: usize,
    pub(crate) strength: f32,
    pub(crate) fields: u8,
}

impl Index {
    /// Builds an index of tools.
    #[must_use]
    pub fn build<'a>(documents: impl IntoIterator<Item = Document<'a>>) -> Self {
        let mut building = Building {
            lexicon: Lexicon::new(),
            ..Building::default()
        };
        documents
            .into_iter()
            .for_each(|document| building.add(&document));
        building.finish()
    }

    /// Returns the number of tools.
    #[must_use]
    pub fn len(&self) -> usize {
        self.actions.len()
    }

    /// Returns true if the index is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Returns the memory that the index takes, in bytes, without the overhead of the allocator.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let spellings = self.spellings.iter().map(|spelling| spelling.len());
        let of_term =
            size_of::<Box<str>>() * 2 + size_of::<Term>() * 2 + size_of::<(Term, Letters)>();
        let of_posting = size_of::<u32>() + size_of::<u16>() + size_of::<u8>();
        let of_tool = size_of::<Actions>() + size_of::<[u8; 2]>() + size_of::<u32>() * 2;
        spellings.sum::<usize>() * 2
            + self.spellings.len() * of_term
            + self.tools.len() * of_posting
            + self.len() * of_tool
    }

    /// Returns the spelling of a term.
    pub(crate) fn spelling(&self, term: Term) -> &str {
        &self.spellings[term as usize]
    }

    /// Returns the words of a length that start with a letter.
    pub(crate) fn words_like(&self, first: char, length: usize) -> &[(Term, Letters)] {
        self.vocabulary
            .get(&(first, length))
            .map_or(&[], Vec::as_slice)
    }

    /// Iterates over the tools that contain a term.
    fn postings(&self, term: Term) -> impl Iterator<Item = Posting> + '_ {
        self.range(term).map(|position| self.posting(position))
    }

    /// Finds the posting of a term for one tool.
    pub(crate) fn posting_of(&self, term: Term, tool: usize) -> Option<Posting> {
        let range = self.range(term);
        let start = range.start;
        let found = self.tools[range].binary_search(&u32::try_from(tool).ok()?);
        Some(self.posting(start + found.ok()?))
    }

    fn range(&self, term: Term) -> std::ops::Range<usize> {
        let term = term as usize;
        self.starts[term] as usize..self.starts[term + 1] as usize
    }

    fn posting(&self, position: usize) -> Posting {
        Posting {
            tool: self.tools[position] as usize,
            strength: f32::from(self.strengths[position]) * MAX_STRENGTH / f32::from(u16::MAX),
            fields: self.fields[position],
        }
    }
}

/// The tools that a search may find. Nothing else of the index has an influence on it.
pub(crate) struct Scope<'a> {
    pub(crate) index: &'a Index,
    pub(crate) permitted: &'a [bool],
}

impl Scope<'_> {
    /// Finds a term by its spelling.
    pub(crate) fn term(&self, spelling: &str) -> Option<Term> {
        let term = self.index.terms.get(spelling).copied();
        term.filter(|term| self.contains(*term))
    }

    /// Returns true if a permitted tool contains a term.
    pub(crate) fn contains(&self, term: Term) -> bool {
        self.postings(term).next().is_some()
    }

    /// Iterates over the permitted tools that contain a term.
    pub(crate) fn postings(&self, term: Term) -> impl Iterator<Item = Posting> + '_ {
        let all = self.index.postings(term);
        all.filter(|posting| self.permitted[posting.tool])
    }
}

#[derive(Default)]
struct Building {
    lexicon: Lexicon,
    known: KnownStems,
    terms: HashMap<Box<str>, Term>,
    spellings: Vec<Box<str>>,
    postings: Vec<(Term, u32, u16, u8)>,
    actions: Vec<Actions>,
    things: Vec<[u8; 2]>,
    toolkit_of: Vec<u32>,
    toolkits: Vec<Toolkit>,
    toolkit_positions: BTreeMap<String, u32>,
    slugs: Vec<Box<str>>,
}

impl Building {
    fn add(&mut self, document: &Document<'_>) {
        let tool = small(self.actions.len());
        let Terms {
            weights,
            actions,
            things,
        } = document.terms(&self.lexicon, &mut self.known);
        for (spelling, weight, fields) in weights {
            let exact = weight * MAX_STRENGTH / (weight + BM25_SATURATION);
            let share = exact / MAX_STRENGTH * f32::from(u16::MAX);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the share is between 0 and the greatest integer"
            )]
            let strength = share as u16;
            let term = self.term(spelling);
            self.postings.push((term, tool, strength, fields));
        }
        self.actions.push(actions);
        self.things.push(things);
        let toolkit = self.toolkit(document);
        self.toolkit_of.push(toolkit);
        self.slugs.push(document.slug.into());
    }

    fn term(&mut self, spelling: String) -> Term {
        let spelling: Box<str> = spelling.into();
        if let Some(term) = self.terms.get(&spelling) {
            return *term;
        }
        let term = small(self.spellings.len());
        self.spellings.push(spelling.clone());
        self.terms.insert(spelling, term);
        term
    }

    fn toolkit(&mut self, document: &Document<'_>) -> u32 {
        if let Some(position) = self.toolkit_positions.get(document.toolkit) {
            return *position;
        }
        let position = small(self.toolkits.len());
        let name = words(document.toolkit_name).into_iter();
        self.toolkits.push(Toolkit {
            slug: crate::words::fold(document.toolkit),
            name: name
                .filter(|word| word.folded.len() > 1)
                .map(|word| self.lexicon.stem(&word.folded))
                .collect(),
        });
        self.toolkit_positions
            .insert(document.toolkit.to_owned(), position);
        position
    }

    fn finish(mut self) -> Index {
        self.postings
            .sort_unstable_by_key(|(term, tool, ..)| (*term, *tool));
        let mut starts = vec![0; self.spellings.len() + 1];
        for (term, ..) in &self.postings {
            starts[*term as usize + 1] += 1;
        }
        for term in 1..starts.len() {
            starts[term] += starts[term - 1];
        }
        let mut vocabulary: HashMap<_, Vec<(Term, Letters)>> = HashMap::new();
        for (term, spelling) in self.spellings.iter().enumerate() {
            if let Some(first) = spelling
                .chars()
                .next()
                .filter(|first| first.is_alphabetic())
            {
                let key = (first, spelling.chars().count());
                let word = (small(term), letters(spelling));
                vocabulary.entry(key).or_default().push(word);
            }
        }
        let order = order(&self.slugs);
        Index {
            lexicon: self.lexicon,
            terms: self.terms,
            vocabulary,
            spellings: self.spellings,
            starts,
            tools: self.postings.iter().map(|posting| posting.1).collect(),
            strengths: self.postings.iter().map(|posting| posting.2).collect(),
            fields: self.postings.iter().map(|posting| posting.3).collect(),
            actions: self.actions,
            things: self.things,
            toolkit_of: self.toolkit_of,
            toolkits: self.toolkits,
            order,
        }
    }
}

/// Returns the letters of a word. Two words that are one edit apart differ in two letters at most.
pub(crate) fn letters(word: &str) -> Letters {
    word.chars().fold(0, |all, letter| {
        all | 1 << (u32::from(letter) % Letters::BITS)
    })
}

/// Returns the position of each slug in the order of all.
fn order(slugs: &[Box<str>]) -> Vec<u32> {
    let mut sorted: Vec<usize> = (0..slugs.len()).collect();
    sorted.sort_by_key(|tool| &slugs[*tool]);
    let mut places = vec![0; slugs.len()];
    for (place, tool) in sorted.into_iter().enumerate() {
        places[tool] = small(place);
    }
    places
}

/// Converts a position. More than four billion terms do not fit into memory.
fn small(position: usize) -> u32 {
    u32::try_from(position).expect("positions are those of vectors in memory")
}
