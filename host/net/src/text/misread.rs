//! Strings as which programs show text after they have confused its charset.

use encoding_rs::WINDOWS_1252;
use unicode_normalization::UnicodeNormalization;

/// Minimum number of characters by which a distorted secret is recognized.
const MIN_KEPT_CHARS: usize = 4;

/// Returns the other strings as which programs show a secret without a loss: with composed or decomposed
/// accents, and its UTF-8 read as Latin-1, in both forms of that charset. Empty for ASCII, in which they are
/// equal.
#[must_use]
pub fn misreadings(text: &str) -> Vec<String> {
    if text.is_ascii() {
        return Vec::new();
    }
    let mut readings: Vec<String> = vec![text.nfc().collect(), text.nfd().collect()];
    readings.retain(|reading| reading != text);
    readings.extend([read_as_latin1(text), read_as_windows(text)]);
    readings
}

/// Returns the strings as which programs show a secret after they have misread it twice or lost some of its
/// characters: its UTF-8 read as Latin-1 and that once more, `?` for each character that Latin-1 or ASCII
/// lacks, and its Latin-1 read as UTF-8. Those with too few of its characters are left out. Empty for ASCII.
#[must_use]
pub fn distortions(text: &str) -> Vec<String> {
    if text.is_ascii() {
        return Vec::new();
    }
    let in_latin1 = with_question_marks(text, |c| u8::try_from(c).is_ok());
    let in_windows =
        with_question_marks(text, |c| !WINDOWS_1252.encode(c.encode_utf8(&mut [0; 4])).2);
    let mut distorted = vec![
        read_as_latin1(&read_as_latin1(text)),
        read_as_windows(&read_as_windows(text)),
        with_question_marks(text, |c| c.is_ascii()),
    ];
    for encoded in [in_latin1, in_windows] {
        let bytes = WINDOWS_1252.encode(&encoded).0.into_owned();
        distorted.push(String::from_utf8_lossy(&bytes).into_owned());
        distorted.push(bytes.iter().copied().map(char::from).collect());
        distorted.push(encoded);
    }
    distorted.retain(|form| form != text && is_recognizable(form));
    distorted.sort_unstable();
    distorted.dedup();
    distorted
}

fn read_as_latin1(text: &str) -> String {
    text.bytes().map(char::from).collect()
}

fn read_as_windows(text: &str) -> String {
    let decoded = WINDOWS_1252.decode_without_bom_handling(text.as_bytes());
    decoded.0.into_owned()
}

/// Returns the string with `?` for each character that a charset lacks.
fn with_question_marks(text: &str, has: impl Fn(char) -> bool) -> String {
    let shown = text.chars().map(|c| if has(c) { c } else { '?' });
    shown.collect()
}

/// Returns true if enough characters of a distorted secret are left.
fn is_recognizable(form: &str) -> bool {
    let kept = form
        .chars()
        .filter(|c| !matches!(*c, '?' | char::REPLACEMENT_CHARACTER));
    kept.count() >= MIN_KEPT_CHARS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confused_charsets_have_known_readings() {
        let readings = misreadings("ä.€");
        let expected = ["a\u{308}.€", "Ã¤.\u{e2}\u{82}\u{ac}", "Ã¤.â‚¬"];
        assert_eq!(readings, expected);
        assert_eq!(misreadings("a\u{308}")[0], "ä");
        let distorted = distortions("käse €ж");
        for form in [
            "kÃ\u{83}Â¤se Ã¢\u{c2}\u{82}Â¬Ã\u{90}Â¶",
            "kÃƒÂ¤se Ã¢â€šÂ¬Ã\u{90}Â¶",
            "k?se ??",
            "k\u{fffd}se ??",
            "käse ??",
            "k\u{fffd}se \u{fffd}?",
            "käse €?",
        ] {
            assert!(
                distorted.iter().any(|one| one == form),
                "{form}: {distorted:?}"
            );
        }
        let unreadable = distortions("пароль");
        assert!(!unreadable.contains(&"??????".to_owned()), "{unreadable:?}");
        assert!(misreadings("plain").is_empty() && distortions("plain").is_empty());
    }
}
