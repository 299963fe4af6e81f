//! Removes secrets from what comes back.
//!
//! An application may echo a credential: debug endpoints, error bodies, redirects. What it sends is searched for every
//! secret that was put into a request of this call, in the spellings an echo takes: as it is; with any of its characters
//! escaped for URLs, JSON or HTML, in any mixture; as hexadecimal; and inside base64, at each of the three alignments.
//! A value that was transformed in any other way is not found. Values shorter than four bytes are not searched for: they
//! are no secrets, and removing them would destroy the answer.

use std::{borrow::Cow, ops::Range};

use aho_corasick::{AhoCorasick, MatchKind};
use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use zeroize::Zeroizing;

use crate::Secret;

/// What stands in place of a secret.
pub(crate) const REMOVED: &str = "[redacted]";
/// Shortest value that counts as a secret, in bytes.
const SHORTEST: usize = 4;
/// Shortest piece of base64 that is searched for; less would match by chance.
const SHORTEST_BASE64: usize = 6;
/// Shortest secret that is searched for as hexadecimal.
const SHORTEST_HEX: usize = 4;

/// Bytes of introducers that stand before one character at most; a text inside a text inside a text has eight. Without a
/// bound, an answer of backslashes alone would be read again from each of them.
const NESTED: usize = 16;

/// Finds the secrets of one call.
#[derive(Default)]
pub(crate) struct Redactor {
    /// Characters of each secret, for the spellings that mix.
    secrets: Vec<Zeroizing<Vec<char>>>,
    /// First bytes of any spelling of a first character.
    begins: Vec<bool>,
    /// The spellings that do not mix.
    fixed: Option<AhoCorasick>,
}

impl Redactor {
    /// Searches for `secrets`.
    pub(crate) fn new<'s>(secrets: impl IntoIterator<Item = &'s Secret>) -> Self {
        let mut values: Vec<&str> = secrets.into_iter().map(Secret::expose).filter(|s| s.len() >= SHORTEST).collect();
        // A secret that contains another one goes first, so that nothing of it is left.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        if values.is_empty() {
            return Self::default();
        }
        let mut begins = vec![false; 256];
        for introducer in *b"%\\&+" {
            begins[usize::from(introducer)] = true;
        }
        for value in &values {
            begins[usize::from(value.as_bytes()[0])] = true;
        }
        let fixed: Vec<Zeroizing<Vec<u8>>> = values.iter().flat_map(|value| fixed_spellings(value)).collect();
        let fixed = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(fixed.iter().map(|pattern| pattern.as_slice()))
            .ok();
        let secrets = values.iter().map(|value| Zeroizing::new(value.chars().collect())).collect();
        Self { secrets, begins, fixed }
    }

    /// Whether `bytes` holds a secret.
    pub(crate) fn finds(&self, bytes: &[u8]) -> bool {
        !self.secrets.is_empty() && !self.places(bytes).is_empty()
    }

    /// `bytes` without secrets; untouched when there are none.
    pub(crate) fn bytes<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        if self.secrets.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let places = self.places(bytes);
        if places.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut clean = Vec::with_capacity(bytes.len());
        let mut from = 0;
        for place in places {
            clean.extend_from_slice(&bytes[from..place.start]);
            clean.extend_from_slice(REMOVED.as_bytes());
            from = place.end;
        }
        clean.extend_from_slice(&bytes[from..]);
        Cow::Owned(clean)
    }

    /// `text` without secrets.
    pub(crate) fn text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.bytes(text.as_bytes())).into_owned()
    }

    /// Where secrets are, in order, not overlapping.
    fn places(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut places: Vec<Range<usize>> = match &self.fixed {
            Some(fixed) => fixed.find_iter(bytes).map(|found| found.range()).collect(),
            None => Vec::new(),
        };
        for start in (0..bytes.len()).filter(|&at| self.begins[usize::from(bytes[at])]) {
            let longest = self.secrets.iter().filter_map(|secret| spelled(bytes, start, secret)).max();
            places.extend(longest.map(|end| start..end));
        }
        places.sort_by_key(|place| place.start);
        let mut merged: Vec<Range<usize>> = Vec::with_capacity(places.len());
        for place in places {
            match merged.last_mut() {
                Some(last) if place.start < last.end => last.end = last.end.max(place.end),
                _ => merged.push(place),
            }
        }
        merged
    }
}

/// Base64 at three alignments in both alphabets, and hexadecimal in both cases.
fn fixed_spellings(secret: &str) -> Vec<Zeroizing<Vec<u8>>> {
    let mut spellings = Vec::new();
    for shift in 0..3 {
        let mut shifted = Zeroizing::new(vec![0; shift]);
        shifted.extend_from_slice(secret.as_bytes());
        let encoded = Zeroizing::new(STANDARD_NO_PAD.encode(&*shifted));
        // Digits that also depend on the neighbours are left out: some bits of them are not the secret's.
        let first = [0, 2, 3][shift];
        let last = if shifted.len() % 3 == 0 { encoded.len() } else { encoded.len() - 1 };
        if last.saturating_sub(first) >= SHORTEST_BASE64 {
            let piece = &encoded[first..last];
            spellings.push(Zeroizing::new(piece.as_bytes().to_vec()));
            spellings.push(Zeroizing::new(piece.replace('+', "-").replace('/', "_").into_bytes()));
            // The standard alphabet inside a URL or a JSON text.
            spellings.push(Zeroizing::new(piece.replace('+', "%2B").replace('/', "%2F").into_bytes()));
            spellings.push(Zeroizing::new(piece.replace('/', "\\/").into_bytes()));
        }
    }
    if secret.len() >= SHORTEST_HEX {
        let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        spellings.push(Zeroizing::new(hex.to_uppercase().into_bytes()));
        spellings.push(Zeroizing::new(hex.into_bytes()));
    }
    spellings
}

/// Answers how many bytes a spelling of the character takes, when they begin with it.
type Form = fn(&[u8], char) -> Option<usize>;

/// The spellings of one character.
const FORMS: [Form; 7] = [plain, percent, percent_twice, backslash, doubled, doubled_twice, entity];

/// Where the secret ends that begins at `start`, each of its characters in any spelling. A place can be read in more than
/// one way (`%25` is one character or three), so all ways are followed at once.
fn spelled(bytes: &[u8], start: usize, secret: &[char]) -> Option<usize> {
    let (first, others) = secret.split_first()?;
    // Most places end here, so nothing is allocated before.
    let begun = FORMS.map(|form| form(&bytes[start..], *first));
    if begun.iter().all(Option::is_none) {
        return None;
    }
    let mut places: Vec<usize> = begun.into_iter().flatten().map(|length| start + length).collect();
    let mut next = Vec::new();
    for &wanted in others {
        for &at in &places {
            let lengths = FORMS.map(|form| form(&bytes[at..], wanted));
            next.extend(lengths.into_iter().flatten().map(|length| at + length));
        }
        next.sort_unstable();
        next.dedup();
        std::mem::swap(&mut places, &mut next);
        next.clear();
        if places.is_empty() {
            return None;
        }
    }
    places.into_iter().max()
}

/// Length of `wanted` as it is; a space also as `+`.
fn plain(rest: &[u8], wanted: char) -> Option<usize> {
    let mut buffer = [0; 4];
    let bytes = wanted.encode_utf8(&mut buffer).as_bytes();
    if rest.starts_with(bytes) {
        return Some(bytes.len());
    }
    (wanted == ' ' && rest.first() == Some(&b'+')).then_some(1)
}

/// Length of `wanted` as `%2F`, once or twice encoded, each of its UTF-8 bytes so or as it is.
fn percent(rest: &[u8], wanted: char) -> Option<usize> {
    let mut buffer = [0; 4];
    let mut at = 0;
    for &byte in wanted.encode_utf8(&mut buffer).as_bytes() {
        let mut digits = at + 1;
        if rest.get(at) == Some(&byte) && byte != b'%' {
            at += 1;
            continue;
        }
        if rest.get(at) != Some(&b'%') {
            return None;
        }
        while rest.get(digits..digits + 2) == Some(b"25") && byte != b'%' && digits < at + NESTED {
            digits += 2;
        }
        (hex(rest.get(digits..digits + 2)?)? == u32::from(byte)).then_some(())?;
        at = digits + 2;
    }
    Some(at)
}

/// Length of a percent sign that was encoded twice.
fn percent_twice(rest: &[u8], wanted: char) -> Option<usize> {
    (wanted == '%' && rest.starts_with(b"%2525")).then_some(5)
}

/// Length of `wanted` as an escape of JSON or of a programming language, behind one or more backslashes.
fn backslash(rest: &[u8], wanted: char) -> Option<usize> {
    let slashes = rest.iter().take(NESTED).take_while(|byte| **byte == b'\\').count();
    let after = rest.get(slashes..).filter(|_| slashes > 0)?;
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
    (found == wanted).then_some(slashes + length)
}

/// Length of a backslash that stands for itself, doubled.
fn doubled(rest: &[u8], wanted: char) -> Option<usize> {
    (wanted == '\\' && rest.starts_with(br"\\")).then_some(2)
}

/// The same in a text inside a text.
fn doubled_twice(rest: &[u8], wanted: char) -> Option<usize> {
    (wanted == '\\' && rest.starts_with(br"\\\\")).then_some(4)
}

/// `u00e9`, or a pair of surrogates with as many backslashes between.
fn utf16(after: &[u8], slashes: usize) -> Option<(char, usize)> {
    let first = hex(after.get(1..5)?)?;
    if !(0xd800..0xdc00).contains(&first) {
        return Some((char::from_u32(first)?, 5));
    }
    let low = after.get(5..)?;
    let between = low.iter().take(NESTED).take_while(|byte| **byte == b'\\').count();
    let second = hex(low.get(between + 1..between + 5)?)?;
    let pair = between == slashes && low.get(between) == Some(&b'u') && (0xdc00..0xe000).contains(&second);
    let code = 0x1_0000 + ((first - 0xd800) << 10) + second.checked_sub(0xdc00)?;
    Some((char::from_u32(code).filter(|_| pair)?, 5 + between + 5))
}

/// Length of `wanted` as `&amp;`, `&#38;` or `&#x26;`.
fn entity(rest: &[u8], wanted: char) -> Option<usize> {
    const NAMED: [(&[u8], char); 6] =
        [(b"amp", '&'), (b"lt", '<'), (b"gt", '>'), (b"quot", '"'), (b"apos", '\''), (b"nbsp", '\u{a0}')];
    let after = rest.strip_prefix(b"&")?;
    let length = after.iter().take(12).position(|byte| *byte == b';')?;
    let name = &after[..length];
    let found = match name {
        [b'#', b'x' | b'X', digits @ ..] => hex(digits).and_then(char::from_u32),
        [b'#', digits @ ..] => std::str::from_utf8(digits).ok()?.parse().ok().and_then(char::from_u32),
        _ => NAMED.iter().find(|(known, _)| *known == name).map(|(_, found)| *found),
    };
    (found? == wanted).then_some(length + 2)
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
        let percent = percent_encoding::utf8_percent_encode(secret, percent_encoding::NON_ALPHANUMERIC).to_string();
        let html = "sk-Canary/+4711=&#233; &quot;x\\y&lt;z&gt;";
        let unicode: String = secret.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        let nested = serde_json::to_string(&json).unwrap();
        for spelling in [secret, &json[1..json.len() - 1], &url, &percent, html, &unicode, &nested[3..nested.len() - 3]]
        {
            let text = format!("before {spelling} after");
            assert_eq!(redactor.text(&text), format!("before {REMOVED} after"), "{spelling}");
        }
    }

    #[test]
    fn text_without_a_secret_is_not_touched() {
        let redactor = redactor("hunter2-hunter2");
        for text in ["", "hunter2-hunter", "%", "\\", "&", "&#", "&#x;", "\\u12", "%e", "a+b%20c\\n&amp;", "\\ud800\\u"]
        {
            assert!(matches!(redactor.bytes(text.as_bytes()), Cow::Borrowed(_)), "{text}");
        }
        assert!(matches!(Redactor::default().bytes(b"anything"), Cow::Borrowed(_)));
    }

    #[test]
    fn backslashes_of_a_secret_are_found_however_often_each_is_doubled() {
        let redactor = redactor(r"ab\\%c");
        for slashes in [r"\\", r"\\\\", r"\\\\\\\\", r"\\\", r"\\\\\\"] {
            let text = format!("x ab{slashes}%25c y");
            assert_eq!(redactor.text(&text), format!("x {REMOVED} y"), "{text}");
        }
    }

    #[test]
    fn a_secret_inside_another_leaves_nothing_of_the_longer() {
        let redactor = Redactor::new([&Secret::from("token"), &Secret::from("Bearer token-tail")]);
        assert_eq!(redactor.text("x Bearer token-tail y token z"), format!("x {REMOVED} y {REMOVED} z"));
    }

    /// One character in one of its spellings.
    fn spell(c: char, how: u8) -> String {
        let mut units = [0; 2];
        let mut bytes = [0; 4];
        match how % 7 {
            0 => c.encode_utf8(&mut bytes).bytes().map(|b| format!("%{b:02X}")).collect(),
            1 => c.encode_utf8(&mut bytes).bytes().map(|b| format!("%25{b:02x}")).collect(),
            2 => c.encode_utf16(&mut units).iter().map(|u| format!("\\u{u:04X}")).collect(),
            3 => format!("&#{};", u32::from(c)),
            4 => format!("&#x{:x};", u32::from(c)),
            5 if c.is_ascii_punctuation() => format!("\\{c}"),
            _ => c.to_string(),
        }
    }

    #[test]
    fn an_answer_of_introducers_alone_is_read_in_one_pass() {
        let redactor = redactor("\\%&+ canary");
        for introducer in ["\\", "%", "%25", "25", "&", "&#", "+", "\\u005c"] {
            let text = introducer.repeat(200_000);
            assert!(!redactor.finds(text.as_bytes()), "{introducer}");
        }
    }

    proptest! {
        #[test]
        fn no_mixture_of_spellings_survives(
            secret in "[ -~é€😀]{4,40}", hows in prop::collection::vec(any::<u8>(), 40),
            before in "[a-z ]{0,5}", after in "[a-z ]{0,5}",
        ) {
            let spelled: String = secret.chars().zip(hows).map(|(c, how)| spell(c, how)).collect();
            let clean = redactor(&secret).text(&format!("{before}{spelled}{after}"));
            prop_assert!(!clean.contains(&spelled), "{} left in {}", spelled, clean);
            prop_assert!(clean.contains(REMOVED));
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
                prop_assert!(redactor.text(&encoded).contains(REMOVED), "{} was not found", encoded);
            }
            let hex: String = whole.iter().map(|byte| format!("{byte:02x}")).collect();
            prop_assert!(redactor.text(&hex).contains(REMOVED));
            prop_assert!(redactor.text(&hex.to_uppercase()).contains(REMOVED));
        }

        #[test]
        fn any_bytes_are_searched_without_a_panic(secret in ".{0,20}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let redactor = redactor(&secret);
            let clean = redactor.bytes(&bytes).into_owned();
            if secret.len() >= SHORTEST {
                prop_assert!(!clean.windows(secret.len()).any(|window| window == secret.as_bytes()));
            }
        }
    }
}
