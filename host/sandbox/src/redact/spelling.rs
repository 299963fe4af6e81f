//! Encodings in which a response may repeat a secret: those of the whole secret, which are listed,
//! and those of one character, which are read wherever they could occur.

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use zeroize::Zeroizing;

/// Minimum length of a base64 fragment to search for; a shorter one would match by chance.
const MIN_BASE64_CHARS: usize = 6;
/// Minimum length of a secret to also search for as hexadecimal, in bytes.
const MIN_HEX_SECRET_BYTES: usize = 4;

/// Characters that are escaped in URLs (RFC 3986, section 2.3).
const RESERVED_IN_URLS: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// The same without the slash, which stays in paths.
const RESERVED_IN_PATHS: AsciiSet = RESERVED_IN_URLS.remove(b'/');
/// The same as `encodeURIComponent` of JavaScript has them.
const RESERVED_IN_COMPONENTS: AsciiSet = RESERVED_IN_URLS
    .remove(b'!')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*');

/// Maximum length of the introducers before one character, in bytes. Three levels of nesting need
/// eight. Without a limit, a response of backslashes alone would be read again from each of them.
const MAX_INTRODUCER_BYTES: usize = 16;

/// Returns the Latin-1 of a secret that is not ASCII, or `None` if Latin-1 lacks one of its characters.
pub(super) fn to_latin1(secret: &str) -> Option<Zeroizing<Vec<u8>>> {
    if secret.is_ascii() {
        return None;
    }
    let bytes = secret.chars().map(|c| u8::try_from(c).ok());
    bytes.collect::<Option<Vec<u8>>>().map(Zeroizing::new)
}

/// Returns the forms of a secret in JSON and in URLs as programs write them, without the secret itself. They
/// are searched for inside base64, where characters cannot be read one by one.
pub(super) fn escaped_forms(secret: &str) -> Vec<String> {
    let json = serde_json::Value::from(secret).to_string();
    let json = &json[1..json.len() - 1];
    let mut ascii_json = String::new();
    for c in json.chars() {
        if c.is_ascii() {
            ascii_json.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                ascii_json.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    let in_url = utf8_percent_encode(secret, &RESERVED_IN_URLS).to_string();
    let mut forms = vec![
        json.to_owned(),
        ascii_json,
        in_url.replace("%20", "+"),
        in_url,
        utf8_percent_encode(secret, &RESERVED_IN_PATHS).to_string(),
        utf8_percent_encode(secret, &RESERVED_IN_COMPONENTS).to_string(),
    ];
    forms.sort_unstable();
    forms.dedup();
    forms.retain(|form| form != secret);
    forms
}

/// Returns the base64 forms at three alignments in both alphabets, and the hexadecimal forms in
/// both cases.
pub(super) fn fixed_spellings(secret: &[u8]) -> Vec<Zeroizing<Vec<u8>>> {
    let mut spellings = Vec::new();
    for shift in 0..3 {
        let mut shifted = Zeroizing::new(vec![0; shift]);
        shifted.extend_from_slice(secret);
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
            if !piece.contains(['+', '/']) {
                continue;
            }
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
        spellings.push(Zeroizing::new(hex::encode_upper(secret).into_bytes()));
        spellings.push(Zeroizing::new(hex::encode(secret).into_bytes()));
    }
    spellings
}

/// Returns the ways to read one character at the beginning of `rest`, each with its length in
/// bytes.
pub(super) fn readings(rest: &[u8]) -> impl Iterator<Item = (char, usize)> {
    let found = match rest.first() {
        None => [None; 4],
        Some(b'%') => [
            Some(('%', 1)),
            percent(rest),
            percent_sign(rest, b"%25"),
            percent_sign(rest, b"%2525"),
        ],
        Some(b'\\') => [
            Some(('\\', 1)),
            backslash(rest),
            doubled(rest, br"\\"),
            doubled(rest, br"\\\\"),
        ],
        Some(b'&') => [Some(('&', 1)), entity(rest), None, None],
        Some(b'+') => [Some(('+', 1)), Some((' ', 1)), None, None],
        Some(first) if first.is_ascii() => [Some((char::from(*first), 1)), None, None, None],
        // The character is plain or has some of its bytes encoded.
        Some(_) => [percent(rest), None, None, None],
    };
    found.into_iter().flatten()
}

/// Reads a character whose bytes are each plain or encoded as `%2F`, once or repeatedly: in UTF-8, or
/// a byte of Latin-1 that is not part of UTF-8. A percent sign is not included.
fn percent(rest: &[u8]) -> Option<(char, usize)> {
    let (first, after_first) = percent_byte(rest, 0)?;
    percent_utf8(rest, first, after_first).or(Some((char::from(first), after_first)))
}

/// Reads a character in UTF-8 whose first byte was read, up to the position `at`.
fn percent_utf8(rest: &[u8], first: u8, mut at: usize) -> Option<(char, usize)> {
    let mut bytes = [first, 0, 0, 0];
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
    const NAMED_ENTITIES: [(&[u8], char); 6] = [
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
        _ => NAMED_ENTITIES
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
