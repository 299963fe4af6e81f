//! Names at the top level of a caller's value that its schema does not describe.
//!
//! A schema that says nothing about further properties permits them, so a misspelled optional argument
//! is valid and has no effect. The names are therefore compared with those of the schema.

use std::collections::BTreeMap;

use manifest::{is_near_miss, nearest};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::core::{json::Tree, truncate};

/// Keywords by which a schema may describe or refuse names that are not in its `properties`.
const OTHER_KEYWORDS: [&str; 14] = [
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "dependencies",
    "dependentSchemas",
    "if",
    "not",
    "oneOf",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
];
/// Maximum number of unknown names of one value that are reported.
const MAX_UNKNOWN_NAMES: usize = 10;
/// Maximum number of names of a schema that an unknown one is compared with.
const MAX_COMPARED_NAMES: usize = 200;

/// Names of all properties that a schema describes, sorted.
#[derive(Debug)]
pub(super) struct DescribedNames(Box<[Box<str>]>);

/// A name that the schema of a value does not describe.
#[derive(Debug)]
pub(crate) struct UnknownName {
    /// The name, truncated.
    pub name: String,
    /// The described name of which this is probably a misspelling.
    pub meant: Option<String>,
}

impl DescribedNames {
    /// Returns the names of a schema, or `None` if it has no `properties`, or also other rules for names.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        let keywords = schema.as_object()?;
        if OTHER_KEYWORDS
            .iter()
            .any(|keyword| keywords.contains_key(*keyword))
        {
            return None;
        }
        let properties = keywords.get("properties")?.as_object()?;
        let mut names: Box<[Box<str>]> =
            properties.keys().map(|name| name.as_str().into()).collect();
        names.sort_unstable();
        Some(Self(names))
    }

    /// Returns the names of a value that the schema does not describe. Allocates nothing if it describes
    /// all.
    pub(super) fn unknown(&self, value: &Tree<'_>) -> Vec<UnknownName> {
        match value {
            Tree::Object(members) => self.undescribed(members.iter().map(|(name, _)| *name)),
            _ => Vec::new(),
        }
    }

    fn undescribed<'n>(&self, names: impl Iterator<Item = &'n str>) -> Vec<UnknownName> {
        names
            .filter(|name| !self.contains(name))
            .take(MAX_UNKNOWN_NAMES)
            .map(|name| UnknownName {
                name: truncate(name),
                meant: self.meant_by(name),
            })
            .collect()
    }

    fn contains(&self, name: &str) -> bool {
        self.0.binary_search_by(|known| (**known).cmp(name)).is_ok()
    }

    fn meant_by(&self, name: &str) -> Option<String> {
        let compared = self.0.iter().take(MAX_COMPARED_NAMES);
        let nearest = nearest(name, compared)?;
        is_near_miss(name, nearest).then(|| nearest.to_string())
    }
}

impl UnknownName {
    /// Returns the problem of the name. The kind is that of the value's parts, for example `argument`.
    pub(crate) fn problem(&self, kind: &str) -> String {
        let name = &self.name;
        match &self.meant {
            Some(meant) => format!("unknown {kind} `{name}`: did you mean `{meant}`?"),
            None => format!("unknown {kind} `{name}`"),
        }
    }

    /// Returns true if a problem is that the name is missing of which this is a misspelling.
    fn causes(&self, problem: &str) -> bool {
        let meant = self.meant.as_deref();
        let rest = meant.and_then(|meant| problem.strip_prefix(meant));
        rest.is_some_and(|rest| rest.starts_with(": is required"))
    }
}

/// Returns the names of a JSON object that its schema does not describe. Malformed JSON yields no names.
pub(crate) fn undescribed_names(schema: &Value, object: &[u8]) -> Vec<UnknownName> {
    let Some(described) = DescribedNames::of(schema) else {
        return Vec::new();
    };
    let members: BTreeMap<String, IgnoredAny> = serde_json::from_slice(object).unwrap_or_default();
    described.undescribed(members.keys().map(String::as_str))
}

/// Returns a line for each name that is probably misspelled.
pub(crate) fn misspellings(unknown: &[UnknownName]) -> Vec<String> {
    unknown
        .iter()
        .filter(|unknown| unknown.meant.is_some())
        .map(|unknown| unknown.problem("argument"))
        .collect()
}

/// Adds the lines of misspelled names before the other problems of a value, without those that they cause.
pub(super) fn with_misspellings(unknown: &[UnknownName], mut problems: Vec<String>) -> Vec<String> {
    problems.retain(|problem| !unknown.iter().any(|name| name.causes(problem)));
    [misspellings(unknown), problems].concat()
}

#[cfg(test)]
mod tests {
    use bumpalo::Bump;
    use serde_json::json;

    use super::*;
    use crate::core::json::Rules;

    fn unknown(schema: &Value, value: &str) -> Vec<String> {
        let Some(names) = DescribedNames::of(schema) else {
            return Vec::new();
        };
        let arena = Bump::new();
        let value = Tree::parse(value.as_bytes(), &arena, Rules::Strict).unwrap();
        let unknown = names.unknown(&value);
        unknown
            .iter()
            .map(|unknown| unknown.problem("argument"))
            .collect()
    }

    #[test]
    fn schemas_with_rules_for_other_names_decide() {
        let value = r#"{"algoritm": "md5"}"#;
        for (keyword, rule) in [
            ("additionalProperties", json!(true)),
            ("patternProperties", json!({"^a": {}})),
            ("anyOf", json!([{"properties": {"algoritm": {}}}])),
        ] {
            let mut schema = json!({"properties": {"algorithm": {}}});
            schema[keyword] = rule;
            assert_eq!(unknown(&schema, value), [""; 0], "{keyword}");
        }
        assert_eq!(unknown(&json!({"type": "object"}), value), [""; 0]);
    }
}
