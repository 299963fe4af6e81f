//! What was expected beside what came.
//!
//! Case files say what the toolkit sends. What arrives has the credential in it, so that is taken out again before the two
//! are compared.

use manifest::{
    Placement,
    cases::{ExpectedRequest, GivenFile, body_value, difference, lines},
};
use serde_json::{Map, Value, json};
use url::{Url, form_urlencoded};

use super::multipart;

/// A request that arrived.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) method: String,
    /// As the toolkit addressed it.
    pub(super) url: Url,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// What is known when requests of a case are compared.
#[derive(Debug, Default)]
pub(super) struct Background {
    /// What the sandbox adds to requests.
    pub(super) placements: Vec<Placement>,
    pub(super) files: Vec<GivenFile>,
}

/// What differs, if anything. Of headers only the expected ones count; a body only when one is expected.
pub(super) fn request(expected: &ExpectedRequest, sent: &Sent, background: &Background) -> Option<String> {
    let (expected_line, sent_line) = (expected_line(expected), sent_line(sent, &background.placements));
    if expected_line != sent_line {
        return Some(lines(&expected_line, &sent_line));
    }
    for (name, value) in &expected.headers {
        let found = sent.header(name);
        if found != Some(value) {
            let sent = found.map_or_else(|| format!("no {name}\n"), |found| format!("{name}: {found}\n"));
            return Some(lines(&format!("{name}: {value}\n"), &sent));
        }
    }
    let actual = sent.body_value();
    let mut expected = expected.body.clone()?;
    settle(&mut expected, &actual, &background.files);
    if expected == json!("") && actual.is_null() {
        return None;
    }
    difference(&expected, &actual)
}

fn expected_line(expected: &ExpectedRequest) -> String {
    // Both sides in the one spelling that a parsed address has.
    let url = Url::parse(&expected.url).map_or_else(|_| expected.url.clone(), String::from);
    format!("{} {url}\n", expected.method)
}

fn sent_line(sent: &Sent, placements: &[Placement]) -> String {
    let mut url = sent.url.clone();
    for placement in placements {
        match placement {
            Placement::Query { name, value } => without(&mut url, name, value),
            Placement::Path { marker, value } => {
                let encoded: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
                let path = url.path().replace(&encoded, marker).replace(value.as_str(), marker);
                url.set_path(&path);
            }
            Placement::Header { .. } | Placement::Basic { .. } => {}
        }
    }
    format!("{} {url}\n", sent.method)
}

/// Takes one parameter out of a query and leaves the spelling of the others alone.
fn without(url: &mut Url, name: &str, value: &str) {
    let Some(query) = url.query() else { return };
    let is_it = |pair: &str| form_urlencoded::parse(pair.as_bytes()).next() == Some((name.into(), value.into()));
    let rest = query.split('&').filter(|pair| !is_it(pair)).collect::<Vec<_>>().join("&");
    url.set_query((!rest.is_empty()).then_some(&rest));
}

/// Replaces `{ "blob": id }` by what is in the file; by what came, when the toolkit made the file itself.
fn settle(expected: &mut Value, actual: &Value, files: &[GivenFile]) {
    if let Value::Object(object) = &*expected
        && object.len() == 1
        && let Some(Value::String(id)) = object.get("blob")
    {
        let given = files.iter().find(|file| file.id == *id);
        *expected = given.map_or_else(|| actual.clone(), |file| body_value(file.text.as_bytes()));
        return;
    }
    if let (Value::Object(expected), Value::Object(actual)) = (expected, actual) {
        for (name, value) in expected {
            settle(value, actual.get(name).unwrap_or(&Value::Null), files);
        }
    }
}

impl Sent {
    fn header(&self, name: &str) -> Option<&String> {
        self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The body as case files write it.
    fn body_value(&self) -> Value {
        if self.body.is_empty() {
            return Value::Null;
        }
        let media_type = self.header("content-type").map(String::as_str).unwrap_or_default();
        let Some(parts) = multipart::parts(media_type, &self.body) else { return body_value(&self.body) };
        let value = |part: multipart::Part<'_>| {
            let content = body_value(part.content);
            let value = match part.filename {
                Some(filename) => json!({ "filename": filename, "content": content }),
                None => content,
            };
            (part.name, value)
        };
        Value::Object(parts.into_iter().map(value).collect::<Map<_, _>>())
    }

    /// For a person.
    pub(super) fn describe(&self) -> String {
        let body = if self.body.is_empty() { String::new() } else { format!("\n  {}", self.body_value()) };
        format!("  {} {}{body}", self.method, self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(url: &str, body: &str) -> Sent {
        Sent {
            method: "POST".to_owned(),
            url: Url::parse(url).unwrap(),
            headers: vec![("x-kind".to_owned(), "a".to_owned())],
            body: body.as_bytes().to_vec(),
        }
    }

    fn expected(text: &Value) -> ExpectedRequest {
        serde_json::from_value(text.clone()).unwrap()
    }

    #[test]
    fn the_credential_is_taken_out_of_the_address_before_it_is_compared() {
        let background = Background {
            placements: vec![
                Placement::Query { name: "key".to_owned(), value: "case-api_key".to_owned() },
                Placement::Path { marker: "~token~".to_owned(), value: "case-token".to_owned() },
            ],
            files: Vec::new(),
        };
        let case = expected(&json!({ "method": "POST", "url": "https://a.example/bot~token~/send?q=a%20b" }));
        let arrived = sent("https://a.example/botcase-token/send?q=a%20b&key=case-api_key", "");
        assert_eq!(request(&case, &arrived, &background), None);
        let elsewhere = sent("https://a.example/botother/send?q=a%20b", "");
        let difference = request(&case, &elsewhere, &background).unwrap();
        assert!(difference.contains("- POST https://a.example/bot~token~"), "{difference}");
        assert!(difference.contains("+ POST https://a.example/botother"), "{difference}");
    }

    #[test]
    fn only_expected_headers_and_bodies_count() {
        let url = "https://a.example/x";
        let background = Background::default();
        let difference = |case: Value| request(&expected(&case), &sent(url, r#"{"b":1,"a":[2]}"#), &background);
        assert_eq!(difference(json!({ "method": "POST", "url": url })), None);
        assert_eq!(difference(json!({ "method": "POST", "url": url, "headers": { "X-Kind": "a" } })), None);
        assert_eq!(difference(json!({ "method": "POST", "url": url, "body": { "a": [2], "b": 1 } })), None);
        let wrong = difference(json!({ "method": "POST", "url": url, "headers": { "x-other": "a" } })).unwrap();
        assert!(wrong.contains("+ no x-other"), "{wrong}");
        let wrong = difference(json!({ "method": "POST", "url": url, "body": { "a": [3], "b": 1 } })).unwrap();
        assert!(wrong.contains("-     3") && wrong.contains("+     2"), "{wrong}");
    }

    #[test]
    fn a_file_in_a_body_stands_for_what_is_in_it() {
        let url = "https://a.example/x";
        let file = GivenFile { id: "f".into(), name: "n".into(), mimetype: "text/plain".into(), text: "abc".into() };
        let background = Background { placements: Vec::new(), files: vec![file] };
        let difference = |id: &str, body: &str| {
            let case = json!({ "method": "POST", "url": url, "body": { "blob": id } });
            request(&expected(&case), &sent(url, body), &background)
        };
        assert_eq!(difference("f", "abc"), None);
        assert!(difference("f", "abd").is_some());
        assert_eq!(difference("made_by_the_tool", "anything"), None);
    }
}
