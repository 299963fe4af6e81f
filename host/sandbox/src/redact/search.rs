//! Search for secrets through one text, character by character, within its steps.

use std::{ops::Range, sync::atomic::Ordering::Relaxed};

use super::{Redactor, spelling::readings};

/// Search steps available for each byte of text. A step compares one position of the text with one
/// character of one secret. Ordinary text takes less than one step for each byte.
pub const STEPS_PER_BYTE: u64 = 32;
/// Number of spare steps that a search takes at a time.
const SPARE_STEPS_TAKEN_AT_ONCE: u64 = 4 << 10;

/// Error of a search that used up its steps.
#[derive(Debug)]
pub(crate) struct StepsExhausted;

/// Comparison of letters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Exact,
    /// Upper-case and lower-case ASCII letters are equal.
    Any,
}

impl Case {
    fn same(self, one: char, other: char) -> bool {
        one == other || (self == Self::Any && one.eq_ignore_ascii_case(&other))
    }
}

/// Search for secrets through one text, within its steps.
pub(super) struct Search<'r> {
    redactor: &'r Redactor,
    bytes: &'r [u8],
    case: Case,
    /// Current position of the search.
    at: usize,
    /// Remaining steps.
    steps: u64,
    /// Positions and steps so far.
    done: u64,
    /// Positions at which the current character may start, and those for the next one.
    ranges: Vec<usize>,
    next: Vec<usize>,
}

impl<'r> Search<'r> {
    pub(super) fn new(redactor: &'r Redactor, bytes: &'r [u8], case: Case) -> Self {
        let steps = STEPS_PER_BYTE * bytes.len() as u64;
        Self {
            redactor,
            bytes,
            case,
            at: 0,
            steps,
            done: 0,
            ranges: Vec::new(),
            next: Vec::new(),
        }
    }

    /// Adds the ranges of secrets until `most` positions and steps are done. Returns true at the
    /// end of the text.
    pub(super) fn advance(
        &mut self,
        most: u64,
        ranges: &mut Vec<Range<usize>>,
    ) -> Result<bool, StepsExhausted> {
        if self.at == 0
            && let Some(fixed) = &self.redactor.fixed
        {
            ranges.extend(fixed.find_iter(self.bytes).map(|found| found.range()));
        }
        let until = self.done.saturating_add(most);
        while self.at < self.bytes.len() && self.done < until {
            let left = usize::try_from(until - self.done).unwrap_or(usize::MAX);
            let end = self.at.saturating_add(left).min(self.bytes.len());
            let start = self.next_start(end);
            self.done += (start - self.at) as u64;
            self.at = start;
            if start < end {
                ranges.extend(self.longest(start)?.map(|end| start..end));
                self.at += 1;
                self.done += 1;
            }
        }
        Ok(self.at == self.bytes.len())
    }

    /// Returns the next position before `end` at which a secret may start, or `end`.
    fn next_start(&self, end: usize) -> usize {
        if self.case == Case::Any {
            return self.at;
        }
        let first_bytes = &*self.redactor.first_bytes;
        let mut bytes = self.bytes[self.at..end].iter();
        let skipped = bytes.position(|byte| first_bytes[usize::from(*byte)]);
        skipped.map_or(end, |skipped| self.at + skipped)
    }

    /// Returns the end of the longest secret that starts at `start`, with each character in any
    /// encoding.
    fn longest(&mut self, start: usize) -> Result<Option<usize>, StepsExhausted> {
        let mut longest = None;
        for (first, length) in readings(&self.bytes[start..]) {
            for secret in self.redactor.beginning_with(first) {
                self.step()?;
                if self.case.same(secret[0], first) {
                    longest = longest.max(self.end(start + length, &secret[1..])?);
                }
            }
        }
        Ok(longest)
    }

    /// Returns the end of a secret whose remaining characters start at `start`. A position can be
    /// read in several ways (`%25` is one character or three), so all ways are followed in
    /// parallel. A NUL before a character is skipped.
    fn end(&mut self, start: usize, others: &[char]) -> Result<Option<usize>, StepsExhausted> {
        self.ranges.clear();
        self.ranges.push(start);
        for &wanted in others {
            self.next.clear();
            for index in 0..self.ranges.len() {
                self.step()?;
                let at = match wanted {
                    '\0' => self.ranges[index],
                    _ => after_nul(self.bytes, self.ranges[index]),
                };
                let found = readings(&self.bytes[at..]).filter(|(c, _)| self.case.same(*c, wanted));
                self.next.extend(found.map(|(_, length)| at + length));
            }
            if self.next.is_empty() {
                return Ok(None);
            }
            if self.next.len() > 1 {
                self.next.sort_unstable();
                self.next.dedup();
            }
            std::mem::swap(&mut self.ranges, &mut self.next);
        }
        Ok(self.ranges.last().copied())
    }

    fn step(&mut self) -> Result<(), StepsExhausted> {
        if self.steps == 0 {
            let spare = &self.redactor.spare;
            spare
                .fetch_update(Relaxed, Relaxed, |left| {
                    left.checked_sub(SPARE_STEPS_TAKEN_AT_ONCE)
                })
                .map_err(|_| StepsExhausted)?;
            self.steps = SPARE_STEPS_TAKEN_AT_ONCE;
        }
        self.steps -= 1;
        self.done += 1;
        Ok(())
    }
}

/// Returns the position after an escaped NUL, or the same position without one. Text with bare NULs is in
/// UTF-16 or UTF-32, and searched as such.
fn after_nul(bytes: &[u8], at: usize) -> usize {
    let nul = readings(&bytes[at..]).find(|(c, length)| *c == '\0' && *length > 1);
    at + nul.map_or(0, |(_, length)| length)
}
