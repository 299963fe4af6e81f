//! The cost of a schema: the work that checking one value can cause when references are followed.
//!
//! A schema checks a value together with all schemas that it applies to the same value: those of
//! `allOf`, `anyOf`, `$ref` and so on. Properties and items are values of their own, so a schema
//! that leads back to itself through one of them ends with the value. A schema that leads back to
//! itself without them never ends. A schema that refers twice to schemas that refer twice grows
//! without bound. Both are small as text.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};

use super::schema::{IDENTITY_KEYWORDS, SCHEMA_MAP_KEYWORDS};

/// Maximum number of schemas that may check one value, references followed.
pub const MAX_SCHEMAS_PER_VALUE: usize = 1_000;
/// Maximum number of schemas that may follow from one another for the same value, references
/// followed.
pub const MAX_SCHEMA_CHAIN: usize = 32;
/// Maximum number of different regular expressions in a schema.
pub const MAX_PATTERNS_PER_SCHEMA: usize = 200;

/// Keywords with a list of schemas for the same value.
const SAME_VALUE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords with one schema for the same value.
const SAME_VALUE: [&str; 4] = ["else", "if", "not", "then"];
/// Keywords with named schemas for the same value.
const SAME_VALUE_MAPS: [&str; 2] = ["dependencies", "dependentSchemas"];
/// Keywords with schemas for the properties, names or items of the value.
const INNER_VALUE_KEYWORDS: [&str; 11] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "items",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];

/// The cost of a schema that ends.
#[derive(Debug, Default)]
pub struct SchemaCost<'a> {
    /// Largest number of schemas that check one value.
    pub schemas_per_value: usize,
    /// Different regular expressions of the schema.
    pub patterns: BTreeSet<&'a str>,
}

/// Measures a schema.
///
/// # Errors
/// An error if the schema refers to itself for the same value, is nested too deep for one value, or
/// uses keywords that make references depend on more than its text. The message names the path.
pub fn schema_cost(schema: &Value) -> Result<SchemaCost<'_>, String> {
    let mut survey = Survey {
        root: schema,
        measured: HashMap::new(),
        open: Vec::new(),
        waiting: Vec::new(),
        cost: SchemaCost::default(),
    };
    survey.waiting.push((schema, String::new()));
    while let Some((schema, place)) = survey.waiting.pop() {
        survey.measure(schema, &place)?;
    }
    Ok(survey.cost)
}

/// The size of a schema for one value.
#[derive(Clone, Copy)]
struct Size {
    /// Number of schemas that check the value.
    schemas: usize,
    /// Length of the longest chain of schemas that follow from one another.
    chain: usize,
}

struct Survey<'a> {
    root: &'a Value,
    /// Sizes of measured schemas, by address.
    measured: HashMap<*const Value, Size>,
    /// Addresses of the schemas that lead to the current one for the same value.
    open: Vec<*const Value>,
    /// Schemas of other values that are still to be measured, with their places.
    waiting: Vec<(&'a Value, String)>,
    cost: SchemaCost<'a>,
}

impl<'a> Survey<'a> {
    fn measure(&mut self, schema: &'a Value, place: &str) -> Result<Size, String> {
        let Some(keywords) = schema.as_object() else {
            return Ok(Size {
                schemas: 1,
                chain: 1,
            });
        };
        let address = std::ptr::from_ref(schema);
        if self.open.contains(&address) {
            return Err(format!(
                "{} refers to itself for the same value",
                place_or_schema(place)
            ));
        }
        let size = match self.measured.get(&address) {
            Some(size) => *size,
            None => {
                self.open.push(address);
                let size = self.measure_keywords(keywords, place)?;
                self.open.pop();
                self.measured.insert(address, size);
                size
            }
        };
        if self.open.len() + size.chain > MAX_SCHEMA_CHAIN {
            return Err(format!(
                "{} is nested deeper than {MAX_SCHEMA_CHAIN} schemas for one value",
                place_or_schema(place)
            ));
        }
        Ok(size)
    }

    fn measure_keywords(
        &mut self,
        keywords: &'a Map<String, Value>,
        place: &str,
    ) -> Result<Size, String> {
        if self.open.len() > MAX_SCHEMA_CHAIN {
            return Err(format!(
                "{} is nested deeper than {MAX_SCHEMA_CHAIN} schemas for one value",
                place_or_schema(place)
            ));
        }
        self.check_dialect(keywords, place)?;
        let mut schemas = 1_usize;
        let mut chain = 0;
        let mut looks_again = false;
        for (keyword, value) in keywords {
            let keyword = keyword.as_str();
            match keyword {
                "pattern" => self.cost.patterns.extend(value.as_str()),
                "patternProperties" => {
                    self.cost.patterns.extend(
                        value
                            .as_object()
                            .into_iter()
                            .flatten()
                            .map(|(pattern, _)| pattern.as_str()),
                    );
                }
                _ => {}
            }
            looks_again |= keyword.starts_with("unevaluated");
            for (inner, place) in self.same_value(keyword, value, place)? {
                let size = self.measure(inner, &place)?;
                schemas = schemas.saturating_add(size.schemas);
                chain = chain.max(size.chain);
            }
            if INNER_VALUE_KEYWORDS.contains(&keyword) {
                self.waiting.extend(children(keyword, value, place));
            }
        }
        if looks_again {
            // To find what is not evaluated, a validator checks each schema once more that may have
            // evaluated it.
            schemas = schemas.saturating_mul(chain + 2);
        }
        self.cost.schemas_per_value = self.cost.schemas_per_value.max(schemas);
        Ok(Size {
            schemas,
            chain: chain + 1,
        })
    }

    /// Returns the schemas that a keyword applies to the same value, with their places.
    fn same_value(
        &self,
        keyword: &str,
        value: &'a Value,
        place: &str,
    ) -> Result<Vec<(&'a Value, String)>, String> {
        if keyword == "$ref" {
            let target = self.target(value, place)?;
            return Ok(target
                .map(|target| (target, format!("{place}.$ref")))
                .into_iter()
                .collect());
        }
        let applies = SAME_VALUE.contains(&keyword)
            || (SAME_VALUE_LISTS.contains(&keyword) && value.is_array())
            || (SAME_VALUE_MAPS.contains(&keyword) && value.is_object());
        Ok(if applies {
            children(keyword, value, place)
        } else {
            Vec::new()
        })
    }

    /// Returns the target of a reference, or `None` if the target does not exist, which is refused
    /// elsewhere.
    fn target(&self, reference: &'a Value, place: &str) -> Result<Option<&'a Value>, String> {
        let local = reference
            .as_str()
            .and_then(|text| text.strip_prefix('#'))
            .filter(|pointer| !pointer.contains('%'));
        let Some(pointer) = local else {
            return Err(format!(
                "{}: {reference} is not local; write it as \"#/$defs/name\", without %",
                place_or_schema(place)
            ));
        };
        Ok(self.root.pointer(pointer))
    }

    /// Refuses keywords that give a reference another meaning than its text has. A reference may
    /// lead into data, where other rules do not apply. In old dialects, `id` is such a keyword.
    fn check_dialect(&self, keywords: &Map<String, Value>, place: &str) -> Result<(), String> {
        let old = is_old_dialect(&self.root["$schema"]);
        let foreign = IDENTITY_KEYWORDS
            .into_iter()
            .find(|keyword| keywords.contains_key(*keyword))
            .or_else(|| (old && keywords.get("id").is_some_and(Value::is_string)).then_some("id"));
        if let Some(keyword) = foreign {
            return Err(format!(
                "{}: remove `{keyword}`; a schema must be self-contained",
                place_or_schema(place)
            ));
        }
        if !old && keywords.get("$schema").is_some_and(is_old_dialect) {
            return Err(format!(
                "{}: remove `$schema`; the top of the schema names the dialect",
                place_or_schema(place)
            ));
        }
        Ok(())
    }
}

fn is_old_dialect(dialect: &Value) -> bool {
    dialect
        .as_str()
        .is_some_and(|name| name.contains("draft-03") || name.contains("draft-04"))
}

/// Returns the schemas below a keyword.
fn children<'a>(keyword: &str, value: &'a Value, place: &str) -> Vec<(&'a Value, String)> {
    match value {
        Value::Array(list) => list
            .iter()
            .enumerate()
            .map(|(index, schema)| (schema, format!("{place}.{keyword}.{index}")))
            .collect(),
        Value::Object(named) if SCHEMA_MAP_KEYWORDS.contains(&keyword) => named
            .iter()
            .map(|(name, schema)| (schema, format!("{place}.{keyword}.{name}")))
            .collect(),
        Value::Object(_) => vec![(value, format!("{place}.{keyword}"))],
        _ => Vec::new(),
    }
}

fn place_or_schema(place: &str) -> &str {
    if place.is_empty() {
        "the schema"
    } else {
        place.trim_start_matches('.')
    }
}
