//! Comparison of expected and received requests.
//!
//! Case files describe the request that the toolkit sends. The received request also contains the
//! credential, which is removed before the comparison.

use manifest::{
    Placement,
    cases::{ExpectedRequest, GivenFile, body_value, merged},
};
use serde_json::{Map, Value, json};
use url::{Url, form_urlencoded};

use super::multipart;

/// A received request.
#[derive(Debug)]
pub(super) struct ReceivedRequest {
    pub(super) method: String,
    /// URL that the toolkit addressed.
    pub(super) url: Url,
    /// Headers, with names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// Context for the comparison of a case's requests.
#[derive(Debug, Default)]
pub(super) struct CompareContext {
    /// Parts that the sandbox adds to requests.
    pub(super) placements: Vec<Placement>,
    pub(super) files: Vec<GivenFile>,
}

/// Returns true if a request meets its expectation. Only expected headers count, and the body
/// counts only if one is expected.
pub(super) fn fits(
    expected: &ExpectedRequest,
    received: &ReceivedRequest,
    context: &CompareContext,
) -> bool {
    observed(expected, received, context) == *expected
}

/// Returns the expectation that a request would have met, as close as possible to the given one.
pub(super) fn observed(
    expected: &ExpectedRequest,
    received: &ReceivedRequest,
    context: &CompareContext,
) -> ExpectedRequest {
    let url = address(received, &context.placements);
    // The spelling of the case file is kept if both URLs are equal.
    let same = Url::parse(&expected.url).is_ok_and(|expected| expected == url);
    ExpectedRequest {
        method: received.method.clone(),
        url: if same {
            expected.url.clone()
        } else {
            url.into()
        },
        headers: expected
            .headers
            .keys()
            .filter_map(|name| Some((name.clone(), received.header(name)?.clone())))
            .collect(),
        body: expected
            .body
            .as_ref()
            .map(|body| merged(body, &received.body_value(), &context.files)),
    }
}

/// Returns the URL of a request without the parts that the sandbox added.
fn address(received: &ReceivedRequest, placements: &[Placement]) -> Url {
    let mut url = received.url.clone();
    for placement in placements {
        match placement {
            Placement::Query { name, value } => without(&mut url, name, value),
            Placement::Path { marker, value } => {
                let encoded: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
                let path = url
                    .path()
                    .replace(&encoded, marker)
                    .replace(value.as_str(), marker);
                url.set_path(&path);
            }
            Placement::Header { .. } | Placement::Basic { .. } => {}
        }
    }
    url
}

/// Removes one parameter from a query and keeps the spelling of the others.
fn without(url: &mut Url, name: &str, value: &str) {
    let Some(query) = url.query() else { return };
    let rest = query
        .split('&')
        .filter(|pair| {
            form_urlencoded::parse(pair.as_bytes()).next() != Some((name.into(), value.into()))
        })
        .collect::<Vec<_>>()
        .join("&");
    url.set_query((!rest.is_empty()).then_some(&rest));
}

impl ReceivedRequest {
    fn header(&self, name: &str) -> Option<&String> {
        self.headers
            .iter()
            .find(|(header, _)| header.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// Returns the body in the notation of case files.
    fn body_value(&self) -> Value {
        if self.body.is_empty() {
            return Value::Null;
        }
        let media_type = self
            .header("content-type")
            .map(String::as_str)
            .unwrap_or_default();
        let Some(parts) = multipart::parts(media_type, &self.body) else {
            return body_value(&self.body);
        };
        Value::Object(
            parts
                .into_iter()
                .map(|part| {
                    let content = body_value(part.content);
                    let value = match part.filename {
                        Some(filename) => json!({ "filename": filename, "content": content }),
                        None => content,
                    };
                    (part.name, value)
                })
                .collect::<Map<_, _>>(),
        )
    }

    /// Describes the request for the report.
    pub(super) fn describe(&self) -> String {
        let body = if self.body.is_empty() {
            String::new()
        } else {
            format!("\n  {}", self.body_value())
        };
        format!("  {} {}{body}", self.method, self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(url: &str, body: &str) -> ReceivedRequest {
        ReceivedRequest {
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
    fn credentials_are_removed_before_comparing_urls() {
        let context = CompareContext {
            placements: vec![
                Placement::query("key", "case-api_key"),
                Placement::Path {
                    marker: "~token~".to_owned(),
                    value: "case-token".to_owned(),
                },
            ],
            files: Vec::new(),
        };
        let case = expected(
            &json!({ "method": "POST", "url": "https://a.example/bot~token~/send?q=a%20b" }),
        );
        let arrived = received(
            "https://a.example/botcase-token/send?q=a%20b&key=case-api_key",
            "",
        );
        assert!(fits(&case, &arrived, &context));
        let elsewhere = observed(
            &case,
            &received("https://a.example/botother/send?q=a%20b", ""),
            &context,
        );
        assert_eq!(elsewhere.url, "https://a.example/botother/send?q=a%20b");
    }

    #[test]
    fn only_expected_headers_and_bodies_count() {
        let url = "https://a.example/x";
        let context = CompareContext::default();
        let received = received(url, r#"{"b":1,"a":[2]}"#);
        let observed = |case: Value| {
            let case = expected(&case);
            let observed = observed(&case, &received, &context);
            (observed != case).then_some(observed)
        };
        for fitting in [
            json!({ "method": "POST", "url": url }),
            json!({ "method": "POST", "url": url, "headers": { "X-Kind": "a" } }),
            json!({ "method": "POST", "url": url, "body": { "a": [2], "b": 1 } }),
        ] {
            assert_eq!(observed(fitting), None);
        }
        let wrong =
            observed(json!({ "method": "POST", "url": url, "headers": { "x-other": "a" } }))
                .unwrap();
        assert!(wrong.headers.is_empty());
        let wrong = observed(json!({ "method": "POST", "url": url, "body": { "a": [3], "c": 1 } }))
            .unwrap();
        assert_eq!(wrong.body.unwrap().to_string(), r#"{"a":[2],"b":1}"#);
    }

    #[test]
    fn file_reference_matches_its_content() {
        let url = "https://a.example/x";
        let file = GivenFile {
            id: "f".into(),
            name: "n".into(),
            mimetype: "text/plain".into(),
            text: "abc".into(),
        };
        let context = CompareContext {
            placements: Vec::new(),
            files: vec![file],
        };
        let fits = |id: &str, body: &str| {
            let case = json!({ "method": "POST", "url": url, "body": { "blob": id } });
            fits(&expected(&case), &received(url, body), &context)
        };
        assert!(fits("f", "abc"));
        assert!(!fits("f", "abd"));
        assert!(fits("made_by_the_tool", "anything"));
    }
}
