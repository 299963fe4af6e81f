//! Secrets of the tests, and the search for them: neither the data that a server leaves behind nor
//! its responses may contain one.
//!
//! A secret made by a test carries a mark of letters and digits. Percent-encoding and JSON do not
//! change the mark, so the search finds a secret without knowing it. Keys that servers make
//! themselves are searched for literally. The search runs wherever a server ends ([`crate::Host`]),
//! on each response ([`crate::Client`]) and on the output of the operator's commands. It covers
//! every encoding in [`spellings`], in uncompressed files. The manifests of toolkits are the only
//! compressed data that a server writes without encrypting it.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    panic::Location,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use aho_corasick::{AhoCorasick, MatchKind};
use base64::{Engine, engine::general_purpose};
use parking_lot::Mutex;

use crate::{fake_app::percent, unique};

/// Makes a constant secret: these words followed by the mark.
#[macro_export]
macro_rules! marked {
    ($before:literal) => {
        concat!($before, "zqcanaryqz")
    };
}

/// Mark that every secret of a test contains.
pub const SECRET_MARK: &str = marked!("");
/// Number of bytes of a file that are searched at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// Number of bytes reported on each side of a match.
const CONTEXT_BYTES: usize = 200;

/// Source location at which each secret was made.
static CREATED_AT: Mutex<BTreeMap<String, &'static Location<'static>>> =
    Mutex::new(BTreeMap::new());
static MARK_SEARCH: LazyLock<Hunt> = LazyLock::new(|| Hunt::for_mark_and(&[]));

/// Returns a unique secret of letters and digits that starts with the mark.
#[track_caller]
pub fn secret() -> String {
    let secret = format!("{SECRET_MARK}{}", unique(8));
    CREATED_AT.lock().insert(secret.clone(), Location::caller());
    secret
}

/// Returns the encodings of a string with their names. For base64, only the characters that do not
/// depend on the neighboring bytes are included.
pub fn spellings(text: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let hex = hex::encode(text);
    let reversed: Vec<u8> = text.iter().rev().copied().collect();
    let mut found = vec![
        ("it is", text.to_vec()),
        ("backwards", reversed),
        // The pattern covers both byte orders: it omits the first byte of one and the last byte of
        // the other.
        (
            "UTF-16",
            text.iter().flat_map(|&byte| [0, byte]).skip(1).collect(),
        ),
        ("hex", hex.to_uppercase().into_bytes()),
        ("hex", hex.into_bytes()),
    ];
    let numbers: Vec<_> = text.iter().map(u8::to_string).collect();
    for separator in [", ", ","] {
        found.push(("numbers", numbers.join(separator).into_bytes()));
    }
    if let Ok(text) = str::from_utf8(text) {
        let json = serde_json::to_vec(text).expect("text is JSON");
        found.push(("JSON", json[1..json.len() - 1].into()));
        found.push(("percent", percent(text).into_bytes()));
    }
    for engine in [
        general_purpose::STANDARD_NO_PAD,
        general_purpose::URL_SAFE_NO_PAD,
    ] {
        for before in 0..3 {
            let encoded = engine.encode([&b"__"[..before], text].concat());
            let first = [0, 2, 3][before];
            let last = encoded.len() - usize::from(!(before + text.len()).is_multiple_of(3));
            found.push(("base64", encoded[first..last].into()));
        }
    }
    found.sort_by(|one, other| one.1.cmp(&other.1));
    found.dedup_by(|one, other| one.1 == other.1);
    found
}

/// A search for the mark and for keys made by servers.
#[derive(Debug)]
pub struct Hunt {
    names: Vec<&'static str>,
    longest: usize,
    automaton: AhoCorasick,
}

impl Hunt {
    /// Creates a search for the mark of secrets and for these keys.
    pub fn for_mark_and(keys: &[Vec<u8>]) -> Self {
        let texts = keys
            .iter()
            .map(Vec::as_slice)
            .chain([SECRET_MARK.as_bytes()]);
        let (names, patterns): (Vec<_>, Vec<_>) = texts.flat_map(spellings).unzip();
        let longest = patterns.iter().map(Vec::len).max().unwrap_or(0);
        // This match kind allows the search that compares many bytes at a time.
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostFirst)
            .build(&patterns);
        Self {
            names,
            longest,
            automaton: automaton.expect("they are few"),
        }
    }

    /// Searches bytes.
    ///
    /// # Errors
    /// A description of the match: the location, the encoding, the line, and where the secret was
    /// made.
    pub fn within(&self, place: &str, bytes: &[u8]) -> Result<(), String> {
        let Some(found) = self.automaton.find(bytes) else {
            return Ok(());
        };
        let before = bytes[..found.start()]
            .iter()
            .rev()
            .take(CONTEXT_BYTES)
            .take_while(|&&byte| byte != b'\n')
            .count();
        let after = bytes[found.end()..]
            .iter()
            .take(CONTEXT_BYTES)
            .take_while(|&&byte| byte != b'\n')
            .count();
        let around = &bytes[found.start() - before..found.end() + after];
        let made = CREATED_AT.lock();
        let holds = |secret: &str| {
            let spelled = spellings(secret.as_bytes());
            spelled.iter().any(|(_, spelled)| {
                around
                    .windows(spelled.len())
                    .any(|window| window == spelled)
            })
        };
        let made = made
            .iter()
            .find(|(secret, _)| holds(secret))
            .map(|(_, at)| format!(", made at {at}"));
        let name = self.names[found.pattern().as_usize()];
        let line = String::from_utf8_lossy(around);
        Err(format!(
            "{place} holds a secret as {name}{}: {line}",
            made.unwrap_or_default()
        ))
    }

    /// Searches a file piece by piece. A file that has been deleted in the meantime counts as
    /// clean.
    ///
    /// # Errors
    /// As for [`Hunt::within`].
    pub fn within_file(&self, path: &Path) -> Result<(), String> {
        let Ok(mut file) = File::open(path) else {
            return Ok(());
        };
        let place = path.display().to_string();
        let mut piece = Vec::new();
        while file
            .by_ref()
            .take(CHUNK_BYTES as u64)
            .read_to_end(&mut piece)
            .is_ok_and(|read| read > 0)
        {
            self.within(&place, &piece)?;
            piece.drain(..piece.len().saturating_sub(self.longest + CONTEXT_BYTES));
        }
        Ok(())
    }

    /// Searches every file of a folder except those with these names.
    ///
    /// # Errors
    /// As for [`Hunt::within`].
    pub fn within_folder(&self, folder: &Path, but: &[&str]) -> Result<(), String> {
        for path in files_below(folder) {
            let name = path.file_name().unwrap_or_default();
            if !but.iter().any(|but| name == *but) {
                self.within_file(&path)?;
            }
        }
        Ok(())
    }
}

/// Returns every file below a folder, sorted. Links are not followed.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let files = entries.flatten().flat_map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => files_below(&entry.path()),
        Ok(kind) if kind.is_file() => vec![entry.path()],
        _ => Vec::new(),
    });
    let mut files: Vec<_> = files.collect();
    files.sort();
    files
}

/// Asserts that a string contains no secret of a test.
#[track_caller]
pub fn assert_none(place: &str, bytes: &[u8]) {
    if let Err(found) = MARK_SEARCH.within(place, bytes) {
        panic!("{found}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every encoding is found with any neighboring bytes.
    #[test]
    fn secret_is_found_in_every_encoding() {
        let text = format!("k\"+/={}%é", secret());
        let utf16 =
            |order: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(order).collect::<Vec<_>>();
        let mut written = vec![
            text.clone().into_bytes(),
            text.bytes().rev().collect(),
            utf16(u16::to_le_bytes),
            utf16(u16::to_be_bytes),
            hex::encode(&text).into_bytes(),
            hex::encode_upper(&text).into_bytes(),
            percent(&text).into_bytes(),
            serde_json::to_vec(&text).unwrap(),
            format!("{:?}", text.as_bytes()).into_bytes(),
            serde_json::to_vec(text.as_bytes()).unwrap(),
        ];
        for before in ["", "a", "ab"] {
            let text = format!("{before}{text}");
            written.push(general_purpose::STANDARD.encode(&text).into_bytes());
            written.push(general_purpose::URL_SAFE_NO_PAD.encode(&text).into_bytes());
        }
        let folder = tempfile::tempdir().unwrap();
        for (number, written) in written.iter().enumerate() {
            let line = [b"first\n", &written[..], b"\nlast"].concat();
            let found = MARK_SEARCH.within("here", &line).unwrap_err();
            assert!(
                found.contains("here holds") && !found.contains("first"),
                "{number}: {found}"
            );
            assert!(number > 5 || found.contains("hunt.rs"), "{number}: {found}");
            // The secret also spans the boundary between two pieces.
            let file = folder.path().join(number.to_string());
            std::fs::write(&file, [&vec![b'.'; CHUNK_BYTES - 12][..], &line].concat()).unwrap();
            MARK_SEARCH.within_file(&file).unwrap_err();
        }
        MARK_SEARCH.within("here", b"canary").unwrap();
        let key = Hunt::for_mark_and(&[vec![0, 200, 7, 9, 90, 91, 92, 93]]);
        key.within("here", b"..00c807095a5b5c5d..").unwrap_err();
        key.within_folder(folder.path(), &["0"]).unwrap_err();
    }
}
