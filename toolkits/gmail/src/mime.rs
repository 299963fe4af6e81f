//! MIME output (RFC 2045 to 2047, 2183, 2231, 5322).
//!
//! All bodies are base64, so that no line is too long, no character is lost, and no body contains a
//! boundary: no base64 line starts with `=_`. No value can end the header it is written into.
//!
//! Written by hand: `mail-builder` holds files in memory as a whole, and writes a subject that looks
//! like an encoded word unchanged, so that its readers see a different subject.

use data_encoding::{BASE64, BASE64_MIME};
use toolkit_sdk::prelude::*;

/// Number of bytes of a file encoded at a time. A multiple of 57 gives whole lines.
const CHUNK_BYTES: u32 = 57 * 16_384;
/// Max number of bytes of header text in one encoded word, which has at most 75 characters.
const MAX_ENCODED_WORD_BYTES: usize = 42;
/// Max number of characters of a header on one line. RFC 5322 allows 998.
const MAX_HEADER_LINE_CHARS: usize = 900;

/// A whole message.
pub(crate) struct Message<'a> {
    /// Header names and encoded values, in order.
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) plain: Option<String>,
    pub(crate) html: Option<String>,
    pub(crate) attachments: &'a [File],
}

impl Message<'_> {
    /// Estimates the size in bytes.
    pub(crate) fn size(&self) -> Result<u64> {
        let texts = self
            .plain
            .iter()
            .chain(&self.html)
            .map(|text| text.len() as u64)
            .sum::<u64>();
        let headers = self
            .headers
            .iter()
            .map(|(name, value)| name.len() + value.len() + 4)
            .sum::<usize>() as u64;
        let mut bytes = texts;
        for file in self.attachments {
            bytes += file.size()?;
        }
        // Base64 has four characters for three bytes and a line end for each 57 bytes. Each part
        // adds headers and a boundary.
        Ok(headers + bytes * 79 / 57 + 500 * (3 + self.attachments.len() as u64))
    }

    /// Writes the message piece by piece.
    pub(crate) fn write(&self, out: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut head = String::new();
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("MIME-Version: 1.0\r\n");
        out(head.as_bytes())?;
        if self.attachments.is_empty() {
            return self.write_texts(out);
        }
        out(b"Content-Type: multipart/mixed; boundary=\"=_mixed\"\r\n\r\n--=_mixed\r\n")?;
        self.write_texts(out)?;
        for file in self.attachments {
            out(b"--=_mixed\r\n")?;
            write_file(file, out)?;
        }
        out(b"--=_mixed--\r\n")
    }

    fn write_texts(&self, out: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let written = match (&self.plain, &self.html) {
            (Some(plain), Some(html)) => format!(
                "Content-Type: multipart/alternative; boundary=\"=_texts\"\r\n\r\n--=_texts\r\n{}--=_texts\r\n{}--=_texts--\r\n",
                text_part("plain", plain),
                text_part("html", html)
            ),
            (None, Some(html)) => text_part("html", html),
            (plain, None) => text_part("plain", plain.as_deref().unwrap_or_default()),
        };
        out(written.as_bytes())
    }
}

fn text_part(kind: &str, text: &str) -> String {
    let lines = text.replace("\r\n", "\n").replace('\n', "\r\n");
    let body = BASE64_MIME.encode(lines.as_bytes());
    format!(
        "Content-Type: text/{kind}; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n{body}"
    )
}

fn write_file(file: &File, out: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let printable: String = file
        .media_type
        .chars()
        .filter(|letter| letter.is_ascii_graphic())
        .collect();
    let media_type = if printable.contains('/') {
        printable.as_str()
    } else {
        "application/octet-stream"
    };
    let head = format!(
        "Content-Type: {media_type}\r\nContent-Disposition: attachment; {}\r\nContent-Transfer-Encoding: base64\r\n\r\n",
        filename(&file.name)
    );
    out(head.as_bytes())?;
    let mut offset = 0;
    loop {
        let chunk = file.read_at(offset, CHUNK_BYTES)?;
        if chunk.is_empty() {
            return Ok(());
        }
        offset += chunk.len() as u64;
        out(BASE64_MIME.encode(&chunk).as_bytes())?;
    }
}

/// Formats a file name as a header parameter. A non-ASCII name is written in both forms: with
/// underscores, and as RFC 2231 encodes it.
fn filename(name: &str) -> String {
    let plain = name.replace(|letter| !is_quotable(letter), "_");
    if plain == name {
        return format!("filename=\"{name}\"");
    }
    let mut encoded = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._".contains(&byte) {
            encoded.push(byte.into());
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    format!("filename=\"{plain}\"; filename*=UTF-8''{encoded}")
}

/// Returns true if a character is written as it is between quotation marks.
fn is_quotable(letter: char) -> bool {
    letter == ' ' || letter.is_ascii_graphic() && !"\"\\".contains(letter)
}

/// Encodes a string as the value of a header: unchanged, or in encoded words (RFC 2047). Control
/// characters, which could end the header, become spaces.
pub(crate) fn text(text: &str) -> String {
    let printable: String = text
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect();
    let line = printable.trim();
    if line.is_ascii() && line.len() <= MAX_HEADER_LINE_CHARS && !line.contains("=?") {
        return line.to_owned();
    }
    let mut words = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let (word, more) = rest.split_at(rest.floor_char_boundary(MAX_ENCODED_WORD_BYTES));
        words.push(format!("=?UTF-8?B?{}?=", BASE64.encode(word.as_bytes())));
        rest = more;
    }
    words.join("\r\n ")
}

/// Encodes addresses as the value of a header, one per line: `ada@example.com` and
/// `Ada Lovelace <ada@example.com>`.
///
/// # Errors
/// `invalid_input` if one of them is not an address.
pub(crate) fn addresses(argument: &str, all: &[String]) -> Result<String> {
    let written: Result<Vec<String>> = all.iter().map(|one| address(argument, one)).collect();
    Ok(written?.join(",\r\n "))
}

fn address(argument: &str, given: &str) -> Result<String> {
    let (name, address) = split(given);
    let parts = address.rsplit_once('@');
    if !address
        .chars()
        .all(|letter| letter.is_ascii_graphic() && !"<>(),;:\\\"[]".contains(letter))
        || parts.is_none_or(|(local, domain)| local.is_empty() || domain.is_empty())
    {
        return Err(ToolError::invalid_input(format!(
            "`{argument}` has `{given}`, which is no mail address; write `ada@example.com` or `Ada Lovelace <ada@example.com>`"
        )));
    }
    if name.is_empty() {
        return Ok(address.to_owned());
    }
    let encoded = text(name);
    // The name becomes a quoted string, unless it is in encoded words.
    let name = if encoded == name.trim() {
        format!("\"{}\"", name.replace(['"', '\\'], "'"))
    } else {
        encoded
    };
    Ok(format!("{name} <{address}>"))
}

/// Returns true if a mail can be sent to this address. Headers also have groups such as
/// `undisclosed-recipients:;`.
pub(crate) fn is_address(given: &str) -> bool {
    address("", given).is_ok()
}

/// Splits `Ada Lovelace <ada@example.com>` into name and address. The name may be missing.
pub(crate) fn split(given: &str) -> (&str, &str) {
    match given
        .trim()
        .strip_suffix('>')
        .and_then(|inner| inner.rsplit_once('<'))
    {
        Some((name, address)) => (name.trim().trim_matches('"'), address.trim()),
        None => commented(given.trim()),
    }
}

/// Splits the older form `ada@example.com (Ada Lovelace)`, which some programs still write.
fn commented(given: &str) -> (&str, &str) {
    match given
        .strip_suffix(')')
        .and_then(|inner| inner.split_once('('))
    {
        Some((address, name)) => (name.trim(), address.trim()),
        None => ("", given),
    }
}

/// Splits the addresses of a header at commas outside of quotes, brackets and comments.
pub(crate) fn listed(header: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut one = String::new();
    let mut quoted = false;
    let mut deep = 0_i32;
    for letter in header.chars() {
        match letter {
            '"' => quoted = !quoted,
            '<' | '(' if !quoted => deep += 1,
            '>' | ')' if !quoted => deep -= 1,
            _ => {}
        }
        if letter == ',' && !quoted && deep == 0 {
            all.push(std::mem::take(&mut one));
        } else {
            one.push(letter);
        }
    }
    all.push(one);
    all.iter()
        .map(|one| one.trim().to_owned())
        .filter(|one| !one.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_ascii_without_injection() {
        assert_eq!(text("Hello"), "Hello");
        assert_eq!(
            text("Hello\r\nBcc: x@example.com"),
            "Hello  Bcc: x@example.com"
        );
        assert_eq!(text("Größe"), "=?UTF-8?B?R3LDtsOfZQ==?=");
        let long = text(&"ü".repeat(200));
        assert!(
            long.is_ascii() && long.split("\r\n ").all(|word| word.len() <= 75),
            "{long}"
        );
        assert_eq!(text("=?UTF-8?Q?x?="), "=?UTF-8?B?PT9VVEYtOD9RP3g/PQ==?=");
    }

    #[test]
    fn address_allows_only_a_display_name() {
        let written = |given: &str| address("to", given).map_err(|error| error.kind().to_owned());
        let ada = "\"Lovelace, Ada\" <ada@example.com>";
        let zoe = "=?UTF-8?B?Wm/Dqw==?= <zoe@example.com>";
        for (given, sent) in [
            (" ada@example.com ", "ada@example.com"),
            ("Ada <ada@example.com>", "\"Ada\" <ada@example.com>"),
            (ada, ada),
            ("ada@example.com (Lovelace, Ada)", ada),
            ("Zoë <zoe@example.com>", zoe),
        ] {
            assert_eq!(written(given), Ok(sent.into()));
        }
        for wrong in [
            "",
            "ada",
            "ada@",
            "@example.com",
            "a@b, c@d",
            "a@b\r\nBcc: c@d",
            "<a@b> <c@d",
            "a b@c",
            "undisclosed-recipients:;",
            "ü@example.com",
        ] {
            assert_eq!(written(wrong), Err("invalid_input".into()), "{wrong}");
        }
    }

    #[test]
    fn addresses_of_a_header_are_told_apart() {
        let header = "\"Lovelace, Ada\" <ada@example.com>, grace@example.com (Hopper, Grace),, Linus <linus@example.com>";
        let all = [
            "\"Lovelace, Ada\" <ada@example.com>",
            "grace@example.com (Hopper, Grace)",
            "Linus <linus@example.com>",
        ];
        assert_eq!(listed(header), all);
        assert_eq!(listed(""), Vec::<String>::new());
    }

    #[test]
    fn attachment_keeps_its_file_name() {
        assert_eq!(filename("a b.txt"), "filename=\"a b.txt\"");
        assert_eq!(
            filename("Übersicht \"1\".pdf"),
            "filename=\"_bersicht _1_.pdf\"; filename*=UTF-8''%C3%9Cbersicht%20%221%22.pdf"
        );
        assert_eq!(
            filename("a\r\nb"),
            "filename=\"a__b\"; filename*=UTF-8''a%0D%0Ab"
        );
    }
}
