//! Redacts secrets from responses.
//!
//! Problem: a provider may echo a credential in debug endpoints, error bodies or redirects.
//!
//! Guarantee: a response is searched for every secret that was put into a request of this call, in
//! the encodings that an echo uses. These are: unchanged; with any of its characters escaped for
//! URLs, JSON or HTML, in any mixture; as hexadecimal; and inside base64, at each of the three
//! alignments.
//!
//! A value that was transformed in any other way is not found. Values shorter than four bytes are
//! not searched for: they are no secrets, and removing them would destroy the response.
//!
//! Crafted texts and secrets can make almost every position of the text a partial match. The number
//! of search steps is therefore limited by the size of the text. A text that needs more steps is
//! withheld completely.

use std::{
    borrow::Cow,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use tokio::{sync::Semaphore, task::yield_now};
use zeroize::Zeroizing;

use crate::Secret;

/// Replacement for a secret.
pub(crate) const REDACTED_TEXT: &str = "[redacted]";
/// Replacement for a text that takes too many steps to search.
pub(crate) const WITHHELD_TEXT: &str = "[withheld: it takes too long to search for secrets]";
/// Minimum length of a secret, in bytes.
const MIN_SECRET_BYTES: usize = 4;
/// Minimum length of a base64 fragment to search for; a shorter one would match by chance.
const MIN_BASE64_CHARS: usize = 6;
/// Minimum length of a secret that is also searched for as hexadecimal, in bytes.
const MIN_HEX_SECRET_BYTES: usize = 4;

/// Maximum length of the introducers before one character, in bytes. A text nested three times has
/// eight. Without a limit, a response of backslashes alone would be read again from each of them.
const MAX_INTRODUCER_BYTES: usize = 16;

/// Search steps available for each byte of a text. A step compares one position of the text with
/// one character of one secret. An ordinary text takes less than one step for each byte.
pub const STEPS_PER_BYTE: u64 = 32;
/// Additional steps for all texts that one [`Redactor`] searches together.
const SPARE_STEPS: u64 = 1 << 20;
/// Number of spare steps that a search takes at a time.
const SPARE_STEPS_TAKEN_AT_ONCE: u64 = 4 << 10;
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

/// Error of a search that used up its steps.
#[derive(Debug)]
pub(crate) struct StepsExhausted;

impl Redactor {
    /// Creates a redactor for `secrets`.
    pub(crate) fn new<'s>(secrets: impl IntoIterator<Item = &'s Secret>) -> Self {
        let mut values: Vec<&str> = secrets
            .into_iter()
            .map(Secret::expose)
            .filter(|s| s.len() >= MIN_SECRET_BYTES)
            .collect();
        values.sort_unstable();
        values.dedup();
        if values.is_empty() {
            return Self::default();
        }
        let mut first_bytes = vec![false; 256];
        for introducer in *b"%\\&+" {
            first_bytes[usize::from(introducer)] = true;
        }
        for value in &values {
            first_bytes[usize::from(value.as_bytes()[0])] = true;
        }
        let mut fixed: Vec<Zeroizing<Vec<u8>>> = values
            .iter()
            .flat_map(|value| fixed_spellings(value))
            .collect();
        fixed.sort_unstable_by(|one, other| one.as_slice().cmp(other.as_slice()));
        fixed.dedup_by(|one, other| one.as_slice() == other.as_slice());
        // The memory of this kind is proportional to the patterns.
        let fixed = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(fixed.iter().map(|pattern| pattern.as_slice()))
            .ok();
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

    /// Returns `bytes` without secrets; borrowed if there are none.
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
            let mut walk = Walk::new(redactor, bytes, Case::Exact);
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
            Walk::new(redactor, bytes, case).advance(u64::MAX, &mut ranges)?;
        }
        Ok(merge_ranges(ranges))
    }

    /// Iterates over this redactor and its `others`, without those that have no secrets.
    fn all(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self)
            .chain(self.others.as_deref())
            .filter(|redactor| !redactor.secrets.is_empty())
    }

    /// Returns the secrets that begin with a character, ignoring ASCII case.
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

/// Returns `bytes` with the given ranges replaced.
pub(crate) fn replace_ranges<'b>(bytes: &'b [u8], ranges: &[Range<usize>]) -> Cow<'b, [u8]> {
    if ranges.is_empty() {
        return Cow::Borrowed(bytes);
    }
    let mut clean = Vec::with_capacity(bytes.len());
    let mut from = 0;
    for range in ranges {
        clean.extend_from_slice(&bytes[from..range.start]);
        clean.extend_from_slice(REDACTED_TEXT.as_bytes());
        from = range.end;
    }
    clean.extend_from_slice(&bytes[from..]);
    Cow::Owned(clean)
}

/// Comparison of letters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
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
struct Walk<'r> {
    redactor: &'r Redactor,
    bytes: &'r [u8],
    case: Case,
    /// Current position of the search.
    at: usize,
    /// Remaining steps.
    steps: u64,
    /// Positions and steps so far.
    done: u64,
    /// Positions at which the current character may begin, and those for the next one.
    ranges: Vec<usize>,
    next: Vec<usize>,
}

impl<'r> Walk<'r> {
    fn new(redactor: &'r Redactor, bytes: &'r [u8], case: Case) -> Self {
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
    fn advance(
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
            let start = self.at;
            if self.case == Case::Any || self.redactor.first_bytes[usize::from(self.bytes[start])] {
                ranges.extend(self.longest(start)?.map(|end| start..end));
            }
            self.at += 1;
            self.done += 1;
        }
        Ok(self.at == self.bytes.len())
    }

    /// Returns the end of the longest secret that begins at `start`, with each character in any
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

    /// Returns the end of a secret whose remaining characters begin at `start`. A position can be
    /// read in several ways (`%25` is one character or three), so all ways are followed in
    /// parallel.
    fn end(&mut self, start: usize, others: &[char]) -> Result<Option<usize>, StepsExhausted> {
        self.ranges.clear();
        self.ranges.push(start);
        for &wanted in others {
            self.next.clear();
            for at in 0..self.ranges.len() {
                self.step()?;
                let at = self.ranges[at];
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

/// Returns the base64 forms at three alignments in both alphabets, and the hexadecimal forms in
/// both cases.
fn fixed_spellings(secret: &str) -> Vec<Zeroizing<Vec<u8>>> {
    let mut spellings = Vec::new();
    for shift in 0..3 {
        let mut shifted = Zeroizing::new(vec![0; shift]);
        shifted.extend_from_slice(secret.as_bytes());
        let encoded = Zeroizing::new(STANDARD_NO_PAD.encode(&*shifted));
        // Digits that also depend on the neighbors are left out, because some of their bits do not
        // belong to the secret.
        let first = [0, 2, 3][shift];
        let last = if shifted.len() % 3 == 0 {
            encoded.len()
        } else {
            encoded.len() - 1
        };
        if last.saturating_sub(first) >= MIN_BASE64_CHARS {
            let piece = &encoded[first..last];
            spellings.push(Zeroizing::new(piece.as_bytes().to_vec()));
            spellings.push(Zeroizing::new(
                piece.replace('+', "-").replace('/', "_").into_bytes(),
            ));
            // These are the standard alphabet inside a URL and inside a JSON text.
            spellings.push(Zeroizing::new(
                piece.replace('+', "%2B").replace('/', "%2F").into_bytes(),
            ));
            spellings.push(Zeroizing::new(piece.replace('/', "\\/").into_bytes()));
        }
    }
    if secret.len() >= MIN_HEX_SECRET_BYTES {
        let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        spellings.push(Zeroizing::new(hex.to_uppercase().into_bytes()));
        spellings.push(Zeroizing::new(hex.into_bytes()));
    }
    spellings
}

/// Returns the ways to read one character at the beginning of `rest`, each with its length in
/// bytes.
fn readings(rest: &[u8]) -> impl Iterator<Item = (char, usize)> {
    let mut found = [None; 4];
    match rest.first() {
        None => {}
        Some(b'%') => {
            found = [
                Some(('%', 1)),
                percent(rest),
                percent_sign(rest, b"%25"),
                percent_sign(rest, b"%2525"),
            ]
        }
        Some(b'\\') => {
            found = [
                Some(('\\', 1)),
                backslash(rest),
                doubled(rest, br"\\"),
                doubled(rest, br"\\\\"),
            ];
        }
        Some(b'&') => found[..2].copy_from_slice(&[Some(('&', 1)), entity(rest)]),
        Some(b'+') => found[..2].copy_from_slice(&[Some(('+', 1)), Some((' ', 1))]),
        Some(first) if first.is_ascii() => found[0] = Some((char::from(*first), 1)),
        // The character is plain or has some of its bytes encoded.
        Some(_) => found[0] = percent(rest),
    }
    found.into_iter().flatten()
}

/// Reads a character whose UTF-8 bytes are each plain or encoded as `%2F`, once or repeatedly. A
/// percent sign is not included.
fn percent(rest: &[u8]) -> Option<(char, usize)> {
    let mut bytes = [0; 4];
    let (first, mut at) = percent_byte(rest, 0)?;
    bytes[0] = first;
    let length = match first {
        0..0x80 => 1,
        0xc2..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf5 => 4,
        _ => return None,
    };
    for byte in &mut bytes[1..length] {
        (*byte, at) = percent_byte(rest, at)?;
    }
    Some((
        std::str::from_utf8(&bytes[..length]).ok()?.chars().next()?,
        at,
    ))
}

/// Reads the byte at a position, plain or encoded, and returns the position of the next one.
fn percent_byte(rest: &[u8], at: usize) -> Option<(u8, usize)> {
    let first = *rest.get(at)?;
    if first != b'%' {
        return Some((first, at + 1));
    }
    let mut digits = at + 1;
    while rest.get(digits..digits + 2) == Some(b"25") && digits < at + MAX_INTRODUCER_BYTES {
        digits += 2;
    }
    let byte = u8::try_from(hex(rest.get(digits..digits + 2)?)?).ok()?;
    (byte != b'%').then_some((byte, digits + 2))
}

/// Reads a percent sign that was encoded once or twice.
fn percent_sign(rest: &[u8], spelling: &[u8]) -> Option<(char, usize)> {
    rest.starts_with(spelling).then_some(('%', spelling.len()))
}

/// Reads an escape of JSON or of a programming language after one or more backslashes.
fn backslash(rest: &[u8]) -> Option<(char, usize)> {
    let slashes = rest
        .iter()
        .take(MAX_INTRODUCER_BYTES)
        .take_while(|byte| **byte == b'\\')
        .count();
    let after = rest.get(slashes..)?;
    let (found, length) = match *after.first()? {
        b'n' => ('\n', 1),
        b't' => ('\t', 1),
        b'r' => ('\r', 1),
        b'b' => ('\u{8}', 1),
        b'f' => ('\u{c}', 1),
        b'x' => (after.get(1..3).and_then(hex).and_then(char::from_u32)?, 3),
        b'u' => utf16(after, slashes)?,
        other => (char::from(other), 1),
    };
    Some((found, slashes + length))
}

/// Reads a literal backslash, doubled once or, in nested text, twice.
fn doubled(rest: &[u8], spelling: &[u8]) -> Option<(char, usize)> {
    rest.starts_with(spelling).then_some(('\\', spelling.len()))
}

/// Reads `u00e9`, or a surrogate pair with the same number of backslashes in between.
fn utf16(after: &[u8], slashes: usize) -> Option<(char, usize)> {
    let first = hex(after.get(1..5)?)?;
    if !(0xd800..0xdc00).contains(&first) {
        return Some((char::from_u32(first)?, 5));
    }
    let low = after.get(5..)?;
    let between = low
        .iter()
        .take(MAX_INTRODUCER_BYTES)
        .take_while(|byte| **byte == b'\\')
        .count();
    let second = hex(low.get(between + 1..between + 5)?)?;
    let pair =
        between == slashes && low.get(between) == Some(&b'u') && (0xdc00..0xe000).contains(&second);
    let code = 0x1_0000 + ((first - 0xd800) << 10) + second.checked_sub(0xdc00)?;
    Some((char::from_u32(code).filter(|_| pair)?, 5 + between + 5))
}

/// Reads a character as `&amp;`, `&#38;` or `&#x26;`.
fn entity(rest: &[u8]) -> Option<(char, usize)> {
    const NAMED: [(&[u8], char); 6] = [
        (b"amp", '&'),
        (b"lt", '<'),
        (b"gt", '>'),
        (b"quot", '"'),
        (b"apos", '\''),
        (b"nbsp", '\u{a0}'),
    ];
    let after = rest.strip_prefix(b"&")?;
    let length = after.iter().take(12).position(|byte| *byte == b';')?;
    let name = &after[..length];
    let found = match name {
        [b'#', b'x' | b'X', digits @ ..] => hex(digits).and_then(char::from_u32),
        [b'#', digits @ ..] => std::str::from_utf8(digits)
            .ok()?
            .parse()
            .ok()
            .and_then(char::from_u32),
        _ => NAMED
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, found)| *found),
    };
    Some((found?, length + 2))
}

fn hex(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use proptest::prelude::*;

    fn redactor(secret: &str) -> Redactor {
        Redactor::new([&Secret::from(secret)])
    }

    #[test]
    fn every_spelling_of_a_secret_is_removed() {
        let secret = "sk-Canary/+4711=é \"x\\y<z>";
        let redactor = redactor(secret);
        let json = serde_json::to_string(secret).unwrap();
        let url: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
        let percent =
            percent_encoding::utf8_percent_encode(secret, percent_encoding::NON_ALPHANUMERIC)
                .to_string();
        let html = "sk-Canary/+4711=&#233; &quot;x\\y&lt;z&gt;";
        let unicode: String = secret
            .encode_utf16()
            .map(|unit| format!("\\u{unit:04x}"))
            .collect();
        let nested = serde_json::to_string(&json).unwrap();
        for spelling in [
            secret,
            &json[1..json.len() - 1],
            &url,
            &percent,
            html,
            &unicode,
            &nested[3..nested.len() - 3],
        ] {
            let text = format!("before {spelling} after");
            assert_eq!(
                redactor.redact_text(&text),
                format!("before {REDACTED_TEXT} after"),
                "{spelling}"
            );
        }
    }

    #[test]
    fn text_without_a_secret_is_not_touched() {
        let redactor = redactor("hunter2-hunter2");
        for text in [
            "",
            "hunter2-hunter",
            "%",
            "\\",
            "&",
            "&#",
            "&#x;",
            "\\u12",
            "%e",
            "a+b%20c\\n&amp;",
            "\\ud800\\u",
        ] {
            assert!(
                matches!(redactor.redact_bytes(text.as_bytes()), Cow::Borrowed(_)),
                "{text}"
            );
        }
        assert!(matches!(
            Redactor::default().redact_bytes(b"anything"),
            Cow::Borrowed(_)
        ));
    }

    #[test]
    fn doubled_backslashes_of_a_secret_are_found() {
        let redactor = redactor(r"ab\\%c");
        for slashes in [r"\\", r"\\\\", r"\\\\\\\\", r"\\\", r"\\\\\\"] {
            let text = format!("x ab{slashes}%25c y");
            assert_eq!(
                redactor.redact_text(&text),
                format!("x {REDACTED_TEXT} y"),
                "{text}"
            );
        }
    }

    #[test]
    fn longest_of_nested_secrets_is_removed() {
        let redactor = Redactor::new([&Secret::from("token"), &Secret::from("Bearer token-tail")]);
        assert_eq!(
            redactor.redact_text("x Bearer token-tail y token z"),
            format!("x {REDACTED_TEXT} y {REDACTED_TEXT} z")
        );
    }

    #[test]
    fn text_that_costs_too_many_steps_is_withheld() {
        let redactor = redactor(&format!("{}b", "a".repeat(4 << 10)));
        let text = "a".repeat(200 << 10);
        assert_eq!(redactor.redact_text(&text), WITHHELD_TEXT);
        assert!(redactor.may_contain_secret(text.as_bytes()));
        let spared = Redactor::new([&Secret::from("aaaaaaab")]);
        assert!(
            !spared.may_contain_secret(text.as_bytes()),
            "a short secret takes fewer steps than the text brings along"
        );
    }

    #[test]
    fn many_secrets_are_searched_within_the_steps() {
        let secrets: Vec<_> = (0..64)
            .map(|number| Secret::from(format!("sk-{number:02}-{}", "x7".repeat(60))))
            .collect();
        let redactor = Redactor::new(&secrets);
        let text =
            r#"{"sk-": "sk-0", "text": "x7x7 \\\"ssk-63\\\" %25sk &amp;sk+sk"}"#.repeat(4 << 10);
        let echo = format!("{text} {} {text}", secrets[63].expose());
        assert_eq!(
            redactor.redact_text(&echo),
            format!("{text} {REDACTED_TEXT} {text}")
        );
    }

    #[test]
    fn names_of_headers_are_searched_in_any_case() {
        let redactor = redactor("Sk-Live-4711");
        for (name, found) in [
            ("x-sk-live-4711", true),
            ("SK-LIVE-4711", true),
            ("x-sk%2dlive-4711", true),
            ("sk-live", false),
        ] {
            assert_eq!(redactor.name_may_contain_secret(name), found, "{name}");
        }
    }

    #[tokio::test]
    async fn long_search_takes_turns_and_ends_when_dropped() {
        let redactor = redactor("canary-4711");
        let cpu_permits = Semaphore::new(1);
        let text = format!("{}canary-4711", "x".repeat(3 * TURN_STEPS as usize));
        let mut search = Box::pin(redactor.find_in_turns(text.as_bytes(), &cpu_permits));
        assert!(
            (&mut search).now_or_never().is_none(),
            "others come to their turn before it ends"
        );
        assert_eq!(cpu_permits.available_permits(), 1);
        let turn = cpu_permits.acquire().await.unwrap();
        assert!(
            (&mut search).now_or_never().is_none(),
            "it waits for its turn"
        );
        drop(turn);
        assert_eq!(search.await.unwrap(), vec![text.len() - 11..text.len()]);
    }

    #[test]
    fn secrets_of_request_and_call_are_found() {
        let call = Arc::new(redactor("token-4711"));
        let both = redactor("signature token-4711 end").with_others(call);
        assert_eq!(
            both.redact_text("a signature token-4711 end b token-4711 c"),
            format!("a {REDACTED_TEXT} b {REDACTED_TEXT} c")
        );
    }

    /// Encodes one character in one of its forms.
    fn spell(c: char, how: u8) -> String {
        let mut units = [0; 2];
        let mut bytes = [0; 4];
        match how % 7 {
            0 => c
                .encode_utf8(&mut bytes)
                .bytes()
                .map(|b| format!("%{b:02X}"))
                .collect(),
            1 => c
                .encode_utf8(&mut bytes)
                .bytes()
                .map(|b| format!("%25{b:02x}"))
                .collect(),
            2 => c
                .encode_utf16(&mut units)
                .iter()
                .map(|u| format!("\\u{u:04X}"))
                .collect(),
            3 => format!("&#{};", u32::from(c)),
            4 => format!("&#x{:x};", u32::from(c)),
            5 if c.is_ascii_punctuation() => format!("\\{c}"),
            _ => c.to_string(),
        }
    }

    #[test]
    fn introducers_alone_are_read_in_one_pass() {
        let redactor = redactor("\\%&+ canary");
        for introducer in ["\\", "%", "%25", "25", "&", "&#", "+", "\\u005c"] {
            let text = introducer.repeat(200_000);
            assert!(
                !redactor.may_contain_secret(text.as_bytes()),
                "{introducer}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_mixture_of_spellings_survives(
            secret in "[ -~é€😀]{4,40}", hows in prop::collection::vec(any::<u8>(), 40),
            before in "[a-z ]{0,5}", after in "[a-z ]{0,5}",
        ) {
            let spelled: String = secret.chars().zip(hows).map(|(c, how)| spell(c, how)).collect();
            let clean = redactor(&secret).redact_text(&format!("{before}{spelled}{after}"));
            prop_assert!(!clean.contains(&spelled), "{} left in {}", spelled, clean);
            prop_assert!(clean.contains(REDACTED_TEXT));
        }

        #[test]
        fn no_alignment_of_base64_or_hexadecimal_survives(
            secret in "[!-~]{8,40}", before in prop::collection::vec(any::<u8>(), 0..9),
            after in prop::collection::vec(any::<u8>(), 0..9),
        ) {
            use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
            let whole = [before.as_slice(), secret.as_bytes(), after.as_slice()].concat();
            let redactor = redactor(&secret);
            for encoded in [STANDARD.encode(&whole), STANDARD_NO_PAD.encode(&whole), URL_SAFE.encode(&whole), URL_SAFE_NO_PAD.encode(&whole)] {
                prop_assert!(redactor.redact_text(&encoded).contains(REDACTED_TEXT), "{} was not found", encoded);
            }
            let hex: String = whole.iter().map(|byte| format!("{byte:02x}")).collect();
            prop_assert!(redactor.redact_text(&hex).contains(REDACTED_TEXT));
            prop_assert!(redactor.redact_text(&hex.to_uppercase()).contains(REDACTED_TEXT));
        }

        #[test]
        fn any_bytes_are_searched_without_a_panic(secret in ".{0,20}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let redactor = redactor(&secret);
            let clean = redactor.redact_bytes(&bytes).into_owned();
            if secret.len() >= MIN_SECRET_BYTES {
                prop_assert!(!clean.windows(secret.len()).any(|window| window == secret.as_bytes()));
            }
        }
    }
}
