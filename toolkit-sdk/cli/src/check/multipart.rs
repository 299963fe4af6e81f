//! Parser for `multipart/form-data` (RFC 7578) as the project's own client writes it, to compare
//! its parts.

/// One part of a form.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part<'a> {
    pub(super) name: String,
    pub(super) filename: Option<String>,
    pub(super) content: &'a [u8],
}

/// Returns the parts in order, or `None` if the body is not such a form.
pub(super) fn parts<'a>(media_type: &str, body: &'a [u8]) -> Option<Vec<Part<'a>>> {
    let boundary = media_type
        .strip_prefix("multipart/form-data")?
        .split_once("boundary=")?
        .1
        .trim_matches('"');
    let delimiter = format!("\r\n--{boundary}");
    // The first delimiter lacks the leading line break of the others.
    let mut rest = body.strip_prefix(&delimiter.as_bytes()[2..])?;
    let mut parts = Vec::new();
    while !rest.starts_with(b"--") {
        rest = rest.strip_prefix(b"\r\n")?;
        let end = find(rest, delimiter.as_bytes())?;
        let head = find(&rest[..end], b"\r\n\r\n")?;
        parts.push(part(&rest[..head], &rest[head + 4..end])?);
        rest = &rest[end + delimiter.len()..];
    }
    Some(parts)
}

fn part<'a>(head: &[u8], content: &'a [u8]) -> Option<Part<'a>> {
    let head = std::str::from_utf8(head).ok()?;
    let disposition = head.split("\r\n").find(|line| {
        line.to_ascii_lowercase()
            .starts_with("content-disposition:")
    })?;
    Some(Part {
        name: parameter(disposition, "name")?,
        filename: parameter(disposition, "filename"),
        content,
    })
}

fn parameter(disposition: &str, name: &str) -> Option<String> {
    let after = disposition.split_once(&format!("; {name}=\""))?.1;
    Some(after.split_once('"')?.0.to_owned())
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_with_their_names() {
        let body = b"--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\none\r\n--XX\r\n\
            Content-Disposition: form-data; name=\"f\"; filename=\"x.txt\"\r\nContent-Type: text/plain\r\n\r\n\r\n--YY\r\n--XX--\r\n";
        let parts = parts("multipart/form-data; boundary=XX", body).unwrap();
        assert_eq!(
            parts[0],
            Part {
                name: "a".into(),
                filename: None,
                content: b"one"
            }
        );
        assert_eq!(
            parts[1],
            Part {
                name: "f".into(),
                filename: Some("x.txt".into()),
                content: b"\r\n--YY"
            }
        );
    }

    #[test]
    fn anything_else_is_no_form() {
        assert_eq!(parts("application/json", b"{}"), None);
        assert_eq!(
            parts("multipart/form-data; boundary=XX", b"--XX\r\ncut"),
            None
        );
    }
}
