//! Redacts secrets from responses.
//!
//! Problem: a provider may echo a credential in debug endpoints, error bodies or redirects.
//!
//! Guarantee: a response is searched for every secret that was put into a request of this call, in
//! the encodings that an echo uses. These are: unchanged; with any of its characters escaped for
//! URLs, JSON or HTML, in any mixture; as hexadecimal; and inside base64, at each of the three
//! alignments, there also as JSON and URLs escape it. Blanks at the ends of a secret may be missing,
//! because providers trim the values of headers, and an escaped NUL may follow each character, as in
//! UTF-16 that was read byte by byte. A secret outside of ASCII is also found with composed or
//! decomposed accents, after UTF-8 and Latin-1 were confused once or twice, with `?` for
//! the characters that Latin-1 or ASCII lacks, and in Latin-1 inside base64.
//!
//! A value that was transformed in any other way is not found. Values shorter than four bytes are
//! not searched for: they are no secrets, and removing them would destroy the response.
//!
//! Crafted texts and secrets can make almost every position of the text a partial match. The number
//! of search steps is therefore limited by the size of the text. Beyond this limit, the text is
//! withheld completely.
//!
//! Written by hand, except for the fixed spellings (`aho-corasick`): no crate finds a string whose
//! characters are each escaped in a different way.

mod replace;
mod search;
mod spelling;

use std::{
    borrow::Cow,
    ops::Range,
    sync::{Arc, atomic::AtomicU64},
};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use net::text::{distortions, misreadings};
use tokio::{sync::Semaphore, task::yield_now};
use zeroize::Zeroizing;

use crate::Secret;
use search::{Case, Search};
use spelling::{escaped_forms, fixed_spellings, to_latin1};

pub(crate) use replace::{REDACTED_NUMBER, replace_ranges};
pub use search::STEPS_PER_BYTE;
pub(crate) use search::StepsExhausted;

/// Replacement for text that takes too many steps to search.
pub(crate) const WITHHELD_TEXT: &str = "[withheld: it takes too long to search for secrets]";
/// Minimum length of a secret, in bytes.
const MIN_SECRET_BYTES: usize = 4;
/// Additional steps for all texts that one [`Redactor`] searches together.
const SPARE_STEPS: u64 = 1 << 20;
/// Positions and steps of one turn of a long search, which take about a millisecond.
const TURN_STEPS: u64 = 64 << 10;

/// Searcher for the secrets of one call.
#[derive(Default)]
pub(crate) struct Redactor {
    /// Characters of each secret, for the encodings that can be mixed. Ordered by the first
    /// character, ignoring ASCII case.
    secrets: Vec<Zeroizing<Vec<char>>>,
    /// Possible first bytes of any encoding of a first character.
    first_bytes: Vec<bool>,
    /// Matcher for the encodings that cannot be mixed.
    fixed: Option<AhoCorasick>,
    /// Remaining spare steps.
    spare: AtomicU64,
    /// Redactor for further secrets, applied to the same texts.
    others: Option<Arc<Redactor>>,
}

impl Redactor {
    /// Creates a redactor for `secrets`.
    pub(crate) fn new<'s>(secrets: impl IntoIterator<Item = &'s Secret>) -> Self {
        let secrets = secrets.into_iter().map(Secret::expose);
        let mut values: Vec<&str> = secrets
            .map(without_outer_blanks)
            .filter(|value| value.len() >= MIN_SECRET_BYTES)
            .collect();
        let misread = forms_of(&values, misreadings);
        let distorted = forms_of(&values, distortions);
        let escaped = forms_of(&values, escaped_forms);
        values.extend(misread.iter().map(|form| form.as_str()));
        values.sort_unstable();
        values.dedup();
        if values.is_empty() {
            return Self::default();
        }
        let fixed = fixed_matcher(&values, &escaped);
        values.extend(distorted.iter().map(|form| form.as_str()));
        let first_bytes = first_bytes_of(&values);
        let mut secrets: Vec<_> = values
            .iter()
            .map(|value| Zeroizing::new(value.chars().collect::<Vec<_>>()))
            .collect();
        secrets.sort_by_key(|secret| secret[0].to_ascii_lowercase());
        Self {
            secrets,
            first_bytes,
            fixed,
            spare: AtomicU64::new(SPARE_STEPS),
            others: None,
        }
    }

    /// Adds the secrets of `others` to the search.
    pub(crate) fn with_others(self, others: Arc<Redactor>) -> Self {
        Self {
            others: Some(others),
            ..self
        }
    }

    /// Returns true if there is a secret to search for.
    pub(crate) fn has_secrets(&self) -> bool {
        let others = self.others.as_deref();
        !self.secrets.is_empty() || others.is_some_and(Self::has_secrets)
    }

    /// Returns the approximate memory use, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let characters: usize = self
            .secrets
            .iter()
            .map(|secret| secret.len() * size_of::<char>())
            .sum();
        (characters + self.fixed.as_ref().map_or(0, AhoCorasick::memory_usage)) as u64
    }

    /// Returns true if `bytes` contains a secret or may contain one.
    pub(crate) fn may_contain_secret(&self, bytes: &[u8]) -> bool {
        !self
            .find_with_case(bytes, Case::Exact)
            .is_ok_and(|ranges| ranges.is_empty())
    }

    /// Returns true if a header name contains a secret or may contain one. Case is ignored, because
    /// header names lose it in transit.
    pub(crate) fn name_may_contain_secret(&self, name: &str) -> bool {
        !self
            .find_with_case(name.as_bytes(), Case::Any)
            .is_ok_and(|ranges| ranges.is_empty())
    }

    /// Returns `bytes` without secrets; borrowed if it contains none.
    pub(crate) fn redact_bytes<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        match self.find_with_case(bytes, Case::Exact) {
            Ok(ranges) => replace_ranges(bytes, &ranges),
            Err(StepsExhausted) => Cow::Borrowed(WITHHELD_TEXT.as_bytes()),
        }
    }

    /// Returns the ranges of secrets, in order and without overlap. Takes turns with the other
    /// users of `cpu_permits`. When dropped, the search ends between two turns.
    pub(crate) async fn find_in_turns(
        &self,
        bytes: &[u8],
        cpu_permits: &Semaphore,
    ) -> Result<Vec<Range<usize>>, StepsExhausted> {
        let mut ranges = Vec::new();
        for redactor in self.all() {
            let mut walk = Search::new(redactor, bytes, Case::Exact);
            let mut done = false;
            while !done {
                let turn = cpu_permits.acquire().await;
                done = walk.advance(TURN_STEPS, &mut ranges)?;
                drop(turn);
                yield_now().await;
            }
        }
        Ok(merge_ranges(ranges))
    }

    /// Returns the ranges of secrets, in order and without overlap.
    pub(crate) fn find(&self, bytes: &[u8]) -> Result<Vec<Range<usize>>, StepsExhausted> {
        self.find_with_case(bytes, Case::Exact)
    }

    /// Returns `text` without secrets.
    pub(crate) fn redact_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.redact_bytes(text.as_bytes())).into_owned()
    }

    fn find_with_case(
        &self,
        bytes: &[u8],
        case: Case,
    ) -> Result<Vec<Range<usize>>, StepsExhausted> {
        let mut ranges = Vec::new();
        for redactor in self.all() {
            Search::new(redactor, bytes, case).advance(u64::MAX, &mut ranges)?;
        }
        Ok(merge_ranges(ranges))
    }

    /// Iterates over this redactor, its `others` and theirs, without those that have no secrets.
    fn all(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |redactor| redactor.others.as_deref())
            .filter(|redactor| !redactor.secrets.is_empty())
    }

    /// Returns the secrets that start with a character, ignoring ASCII case.
    fn beginning_with(&self, first: char) -> &[Zeroizing<Vec<char>>] {
        let first = first.to_ascii_lowercase();
        let from = self
            .secrets
            .partition_point(|secret| secret[0].to_ascii_lowercase() < first);
        let count =
            self.secrets[from..].partition_point(|secret| secret[0].to_ascii_lowercase() == first);
        &self.secrets[from..from + count]
    }
}

/// Returns a secret without the blanks at its ends, unless too little of it would be left to search for.
fn without_outer_blanks(secret: &str) -> &str {
    let trimmed = secret.trim();
    if trimmed.len() < MIN_SECRET_BYTES {
        secret
    } else {
        trimmed
    }
}

/// Returns for each byte whether an encoding of the first character of a secret may start with it.
fn first_bytes_of(secrets: &[&str]) -> Vec<bool> {
    let mut first_bytes = vec![false; 256];
    for introducer in *b"%\\&+" {
        first_bytes[usize::from(introducer)] = true;
    }
    for secret in secrets {
        first_bytes[usize::from(secret.as_bytes()[0])] = true;
        if let Some(Ok(latin1)) = secret.chars().next().map(u8::try_from) {
            first_bytes[usize::from(latin1)] = true;
        }
    }
    first_bytes
}

/// Returns other forms of secrets. None of them is shorter than a secret.
fn forms_of(secrets: &[&str], forms: fn(&str) -> Vec<String>) -> Vec<Zeroizing<String>> {
    let all = secrets.iter().flat_map(|secret| forms(secret));
    all.map(Zeroizing::new)
        .filter(|form| form.len() >= MIN_SECRET_BYTES)
        .collect()
}

/// Returns the matcher for the encodings that cannot be mixed, of secrets and of their escaped forms. Its
/// memory is proportional to the secrets.
fn fixed_matcher(secrets: &[&str], escaped: &[Zeroizing<String>]) -> Option<AhoCorasick> {
    let in_latin1: Vec<_> = secrets.iter().filter_map(|text| to_latin1(text)).collect();
    let in_utf8 = secrets.iter().map(|secret| secret.as_bytes());
    let encoded = in_utf8
        .chain(in_latin1.iter().map(|bytes| bytes.as_slice()))
        .chain(escaped.iter().map(|form| form.as_bytes()));
    let spellings = encoded.flat_map(fixed_spellings);
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .build(spellings)
        .ok()
}

/// Sorts ranges and merges those that overlap.
fn merge_ranges(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

#[cfg(test)]
mod tests;
