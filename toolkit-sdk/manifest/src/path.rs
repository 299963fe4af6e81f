//! Parts of a response by their path: names separated by dots, with numbers for positions in a
//! list.

use regex::Regex;
use serde_json::Value;

use crate::Pick;

const MAX_PATH_BYTES: usize = 200;

/// Returns true if the text is a valid path. The empty path is the whole value.
pub(crate) fn is_path(path: &str) -> bool {
    path.is_empty()
        || (path.len() <= MAX_PATH_BYTES && path.split('.').all(|name| !name.is_empty()))
}

/// Returns the value at a path.
#[must_use]
pub fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let mut names = path.split('.').filter(|name| !name.is_empty());
    names.try_fold(value, |value, name| match value {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        value => value.get(name),
    })
}

impl Pick {
    /// Returns the string that it selects from a response. An empty string counts as missing.
    #[must_use]
    pub fn of(&self, answer: &Value) -> Option<String> {
        let text = match at(answer, &self.path)? {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(value) => value.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        let Some(pattern) = &self.pattern else {
            return Some(text).filter(|text| !text.is_empty());
        };
        let pattern = Regex::new(&format!("^(?:{pattern})$")).ok()?;
        let captures = pattern.captures(&text)?;
        let part = captures.get(1).or_else(|| captures.get(0))?.as_str();
        (!part.is_empty()).then(|| part.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_leads_through_objects_and_lists() {
        let answer = json!({ "data": [{ "id": 7 }, { "id": "b" }], "": 1 });
        let pick = |path: &str| {
            Pick {
                path: path.to_owned(),
                pattern: None,
            }
            .of(&answer)
        };
        assert_eq!(
            (pick("data.0.id").as_deref(), pick("data.1.id").as_deref()),
            (Some("7"), Some("b"))
        );
        assert_eq!(
            (pick("data.2.id"), pick("data"), pick("data.id")),
            (None, None, None)
        );
        assert_eq!(
            Pick::default().of(&json!("whole")).as_deref(),
            Some("whole")
        );
    }

    #[test]
    fn pattern_selects_its_first_group() {
        let pattern = Some(r"https://([a-z]+)\.example\.com".to_owned());
        let pick = |url: &str| {
            Pick {
                path: String::new(),
                pattern: pattern.clone(),
            }
            .of(&json!(url))
        };
        assert_eq!(pick("https://north.example.com").as_deref(), Some("north"));
        assert_eq!(pick("https://north.example.com.evil.example"), None);
    }
}
