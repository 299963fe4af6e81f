//! Names of files in `Content-Disposition` (RFC 6266), as the platform and guests read them.

/// Returns the name of a file from a `Content-Disposition`. The extended form `filename*` takes precedence
/// over `filename`. A path is reduced to its last part.
#[must_use]
pub fn file_name(disposition: &str) -> Option<String> {
    let (mut plain, mut extended) = (None, None);
    for (name, value) in parameters(disposition) {
        if name.eq_ignore_ascii_case("filename*") {
            extended = extended.or_else(|| extended_value(&value));
        } else if name.eq_ignore_ascii_case("filename") {
            plain = plain.or(Some(value));
        }
    }
    base_name(&extended.or(plain)?)
}

/// Returns the last part of a path without control characters, if it is a name.
#[must_use]
pub fn base_name(path: &str) -> Option<String> {
    let last = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let printable: String = last.chars().filter(|letter| !letter.is_control()).collect();
    let name = printable.trim();
    (!name.trim_matches('.').is_empty()).then(|| name.to_owned())
}

/// Returns the parameters of a header, with quoted values unquoted. Providers also leave out the type before
/// the first one.
fn parameters(header: &str) -> Vec<(&str, String)> {
    let mut parameters = Vec::new();
    let mut rest = header;
    while !rest.is_empty() {
        let end = rest.find([';', '=']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let Some(value) = after.strip_prefix('=') else {
            rest = after.strip_prefix(';').unwrap_or_default();
            continue;
        };
        let value = value.trim_start();
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => unquoted(quoted),
            None => {
                let end = value.find(';').unwrap_or(value.len());
                (value[..end].trim().to_owned(), &value[end..])
            }
        };
        parameters.push((name.trim(), value));
        rest = after.split_once(';').map_or("", |(_, rest)| rest);
    }
    parameters
}

/// Returns the text up to the closing quote, and what follows. Some clients write the backslashes of paths
/// without escaping them, so only quotes and backslashes count as escaped.
fn unquoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, &text[at + 1..]),
            '\\' => {
                let escaped = letters.next_if(|(_, next)| matches!(next, '"' | '\\'));
                value.push(escaped.map_or(letter, |(_, escaped)| escaped));
            }
            other => value.push(other),
        }
    }
    (value, "")
}

/// Decodes an extended value (RFC 8187): charset, language and percent-encoded bytes.
fn extended_value(value: &str) -> Option<String> {
    let (charset, rest) = value.split_once('\'')?;
    let (_, encoded) = rest.split_once('\'')?;
    let bytes = percent_decoded(encoded)?;
    match charset.to_ascii_lowercase().as_str() {
        "utf-8" => String::from_utf8(bytes).ok(),
        "iso-8859-1" => Some(bytes.into_iter().map(char::from).collect()),
        _ => None,
    }
}

fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_read_in_both_forms() {
        for (header, name) in [
            ("attachment; filename=\"Q3 report.pdf\"", "Q3 report.pdf"),
            ("attachment; filename=plain.pdf", "plain.pdf"),
            ("Attachment; FileName = plain.pdf ; size=3", "plain.pdf"),
            ("filename=plain.pdf", "plain.pdf"),
            (
                "attachment; filename*=UTF-8''Angebot%20%E2%82%AC.pdf",
                "Angebot €.pdf",
            ),
            ("attachment; filename*=iso-8859-1'de'%E9.pdf", "é.pdf"),
            (
                "attachment; filename=\"x.pdf\"; filename*=UTF-8''%E5%90%8D.pdf",
                "名.pdf",
            ),
            (
                "attachment; filename*=UTF-8''%zz; filename=\"x.pdf\"",
                "x.pdf",
            ),
            (
                "attachment; filename=\"a;b \\\"c\\\".pdf\"",
                "a;b \"c\".pdf",
            ),
            (
                "attachment; filename=\"../../etc/passwd.pdf\"",
                "passwd.pdf",
            ),
            ("attachment; filename=\"C:\\dir\\scan.pdf\"", "scan.pdf"),
            ("attachment; filename*=UTF-8''..%2Fa%0D%0Ab", "ab"),
        ] {
            assert_eq!(file_name(header).as_deref(), Some(name), "{header}");
        }
        for header in [
            "",
            "inline",
            "attachment; filename=\"..\"",
            "attachment; filename=",
        ] {
            assert_eq!(file_name(header), None, "{header}");
        }
    }
}
