//! Observed result of a case, in the format of its file.

use anyhow::{Context, Result};
use manifest::cases::{Case, CaseResult, lines, merged};
use sandbox::Outcome;
use serde_json::{Value, json};

use super::{case::CaseFile, upstream::Mismatches};
use crate::outcome;

/// Observed run of a case.
#[derive(Debug)]
pub(super) struct ObservedResult {
    mismatches: Mismatches,
    /// Data of a success, or kind and message of a failure.
    ended: Result<Value, (String, String)>,
}

/// A corrected case file.
#[derive(Debug)]
pub(super) struct CorrectedFile {
    /// Text of the whole file.
    pub(super) text: String,
    /// Changed lines: `-` marks an expected line, `+` an observed one.
    pub(super) difference: String,
}

impl ObservedResult {
    pub(super) fn new(mismatches: Mismatches, outcome: &Outcome) -> Self {
        let ended = match &outcome.output {
            Ok(answer) => Ok(outcome::answer_in_case(answer, &outcome.files)),
            Err(failure) => Err((failure.kind.clone(), failure.message.clone())),
        };
        Self { mismatches, ended }
    }

    /// Returns the data, if the call succeeded.
    pub(super) fn data(&self) -> Option<&Value> {
        self.ended.as_ref().ok()
    }

    /// Reports requests that no exchange answers. A case file cannot express them.
    pub(super) fn unanswered(&self) -> Vec<String> {
        self.mismatches
            .unanswered
            .iter()
            .map(|request| {
                format!("unexpected request; add an exchange with its response:\n{request}")
            })
            .collect()
    }

    /// Reports the failure of a case that expects a success. To write it as the expected result would
    /// hide a broken toolkit.
    pub(super) fn unexpected_failure(&self, case: &Case) -> Option<String> {
        let (kind, message) = self.ended.as_ref().err()?;
        case.data.as_ref()?;
        Some(format!(
            "the case expects a success, and the call failed with `{kind}: {message}`; --bless does not make it a \
             failure case: correct the toolkit, or replace `data` by `error` in the file"
        ))
    }

    /// Returns the corrected file, or `None` if the file is already correct.
    ///
    /// # Errors
    /// Fails if the file can no longer be read.
    pub(super) fn corrected(&self, file: &CaseFile<'_>) -> Result<Option<CorrectedFile>> {
        if self.fits(&file.case) {
            return Ok(None);
        }
        let content = std::fs::read(&file.file)
            .with_context(|| format!("cannot read {}", file.file.display()))?;
        let old: Value = serde_json::from_slice(&content)
            .with_context(|| format!("{} is not JSON", file.file.display()))?;
        let mut new = old.clone();
        self.rewrite(&file.case, &mut new);
        let text = format!("{new:#}\n");
        let difference = lines(&format!("{old:#}\n"), &text);
        Ok(Some(CorrectedFile { text, difference }))
    }

    fn fits(&self, case: &Case) -> bool {
        self.mismatches.changed.is_empty()
            && self.mismatches.unsent.is_empty()
            && self.ends_as(case)
    }

    fn ends_as(&self, case: &Case) -> bool {
        match &self.ended {
            Ok(data) => case.judge(CaseResult::Data(data)).is_none(),
            Err((kind, message)) => case.judge(CaseResult::Error { kind, message }).is_none(),
        }
    }

    fn rewrite(&self, case: &Case, file: &mut Value) {
        for (place, request) in &self.mismatches.changed {
            let old = &mut file["exchanges"][*place]["request"];
            *old = merged(old, &json!(request), &[]);
        }
        if let Some(Value::Array(exchanges)) = file.get_mut("exchanges") {
            let mut place = 0..;
            exchanges.retain(|_| {
                place
                    .next()
                    .is_none_or(|place| !self.mismatches.unsent.contains(&place))
            });
        }
        let Value::Object(members) = file else { return };
        if self.ends_as(case) {
            return;
        }
        match &self.ended {
            Ok(data) => {
                members.shift_remove("error");
                let data = members
                    .get("data")
                    .map_or_else(|| data.clone(), |old| merged(old, data, &case.files));
                members.insert("data".to_owned(), data);
            }
            Err((kind, message)) => {
                members.shift_remove("data");
                let error = if case.is_broken() {
                    json!({ "kind": kind })
                } else {
                    json!({ "kind": kind, "message": message })
                };
                members.insert("error".to_owned(), error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use manifest::cases::ExpectedRequest;
    use sandbox::{Cause, Failure, File, Output, Usage};

    use super::*;

    fn case(value: &Value) -> Case {
        Case::from_json(&value.to_string()).unwrap()
    }

    fn ended(answer: Result<Output, Failure>) -> ObservedResult {
        let file = File {
            id: "blob-77".into(),
            name: "n".into(),
            media_type: "m".into(),
            bytes: Bytes::new(),
        };
        let outcome = Outcome {
            output: answer,
            requests: Vec::new(),
            log: Vec::new(),
            usage: Usage::default(),
            files: vec![file],
            memory: None,
            state: std::collections::BTreeMap::new(),
        };
        ObservedResult::new(Mismatches::default(), &outcome)
    }

    fn data(json: &'static str) -> ObservedResult {
        ended(Ok(Output::Data(Bytes::from_static(json.as_bytes()))))
    }

    fn failed(kind: &str, message: &str) -> ObservedResult {
        ended(Err(Failure {
            cause: Cause::Tool,
            kind: kind.to_owned(),
            message: message.to_owned(),
            retry_after: None,
            upstream_status: None,
            details: None,
        }))
    }

    fn corrected(observed: &ObservedResult, file: Value) -> Value {
        let mut new = file.clone();
        observed.rewrite(&case(&file), &mut new);
        new
    }

    #[test]
    fn data_comparison_ignores_order_and_file_names() {
        let answered = data(r#"{"b":2,"a":{"s3url":"blob-77"}}"#);
        assert!(answered.fits(&case(
            &json!({ "data": { "a": { "s3url": "file_1" }, "b": 2 } })
        )));
        let wrong = json!({ "data": { "a": { "s3url": "file_1" }, "b": 3 }, "now": 5 });
        assert!(!answered.fits(&case(&wrong)));
        let right = r#"{"data":{"a":{"s3url":"file_1"},"b":2},"now":5}"#;
        assert_eq!(
            corrected(&answered, wrong).to_string(),
            right,
            "only what differs changes, where it stands"
        );
    }

    #[test]
    fn failures_match_by_kind_and_message_part() {
        let observed = failed("not_found", "there is no item 7");
        for (expected, fits) in [
            (json!({ "error": { "kind": "not_found" } }), true),
            (
                json!({ "error": { "kind": "not_found", "message": "item 8" } }),
                false,
            ),
            (json!({ "data": {} }), false),
        ] {
            assert_eq!(observed.fits(&case(&expected)), fits, "{expected}");
        }
        assert!(!data("{}").fits(&case(&json!({ "error": { "kind": "not_found" } }))));
        let now = corrected(&observed, json!({ "data": {} }));
        assert_eq!(
            now,
            json!({ "error": { "kind": "not_found", "message": "there is no item 7" } })
        );
    }

    #[test]
    fn success_case_never_becomes_failure_case() {
        let observed = failed("not_found", "there is no item 7");
        let problem = observed.unexpected_failure(&case(&json!({ "data": {} })));
        assert!(problem.unwrap().contains("--bless does not"));
        let given = json!({ "error": { "kind": "forbidden" } });
        assert_eq!(observed.unexpected_failure(&case(&given)), None);
        let given = case(&json!({ "data": { "a": 1 } }));
        assert_eq!(data("{}").unexpected_failure(&given), None);
    }

    #[test]
    fn platform_messages_are_neither_compared_nor_written() {
        let request = json!({ "method": "GET", "url": "https://a.example/" });
        let broken = json!([{ "request": request, "response": { "error": "timeout" } }]);
        let observed = failed("upstream_unavailable", "in other words");
        let given = json!({ "exchanges": broken, "error": { "kind": "upstream_unavailable", "message": "scripted" } });
        assert!(observed.fits(&case(&given)));
        let given = json!({ "exchanges": broken, "data": {} });
        assert_eq!(
            corrected(&observed, given)["error"],
            json!({ "kind": "upstream_unavailable" })
        );
    }

    #[test]
    fn bless_rewrites_changed_and_removes_unsent_requests() {
        let exchange = |path: &str| {
            let request = json!({ "url": format!("https://a.example/{path}"), "method": "GET" });
            json!({ "request": request, "response": { "status": 204 } })
        };
        let mut observed = data("{}");
        let received = ExpectedRequest {
            method: "PUT".into(),
            url: "https://a.example/two".into(),
            ..Default::default()
        };
        observed.mismatches.changed.push((1, received));
        observed.mismatches.unsent = vec![0, 2];
        let file =
            json!({ "exchanges": [exchange("1"), exchange("2"), exchange("3")], "data": {} });
        let now = corrected(&observed, file);
        let right = r#"[{"request":{"url":"https://a.example/two","method":"PUT"},"response":{"status":204}}]"#;
        assert_eq!(now["exchanges"].to_string(), right);
    }
}
