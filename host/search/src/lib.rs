//! Search for tools by what they do, without a model.
//!
//! An agent describes a task in its own words, and the index ranks the tools that may do it. The
//! ranking is BM25 over weighted fields ([`Field`]), on words reduced to their stems. It knows
//! which words name the same action or thing (`lexicon.txt`), prefers tools that perform the action
//! that the query asks for and tools of a toolkit that the query names, and corrects words that no
//! tool contains.
//!
//! The permitted tools are chosen before anything is counted: tools outside have no influence on
//! the result. The order is a function of the documents and the query. Time and memory are linear
//! in the number of tools, and are bounded by limits on texts ([`MAX_QUERY_WORDS`],
//! [`MAX_TERMS_PER_TOOL`]).
//!
//! The crate rests on no other crate of the workspace, reads nothing and keeps no texts.

mod document;
mod index;
mod lexicon;
mod query;
mod rank;
mod words;

pub use document::{Document, Field, MAX_TERMS_PER_TOOL};
pub use index::Index;
pub use query::MAX_QUERY_WORDS;
pub use rank::{Hit, Match};
