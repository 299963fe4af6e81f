//! Comparison of two JSON Schemas: values that one accepts and the other does not.
//!
//! The schemas are compared in both directions, each time by structure: each demand of the second
//! schema must follow from a demand of the first. A demand that does not follow is a finding, and
//! so is an unknown one. Schemas come from toolkits, so the work is bounded. A pair that takes more
//! work is a finding too.

mod node;

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use super::{Party, Report};
use node::{ARRAY_KIND, Node, OBJECT_KIND, STRING_KIND, mask_of};

/// Maximum number of steps to compare two manifests. Comparing a schema of 64 KiB with a similar
/// one takes about ten thousand.
pub(super) const MAX_COMPARE_STEPS: usize = 1_000_000;
/// Number of listed values that are compared in one step.
const VALUES_PER_STEP: usize = 64;
/// Maximum length of a value in a line, in characters.
const MAX_VALUE_CHARS: usize = 120;
/// Keywords that are compared for equality, as a whole.
const KEYWORDS_COMPARED_WHOLE: [&str; 20] = [
    "additionalItems",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "format",
    "if",
    "maxContains",
    "minContains",
    "multipleOf",
    "not",
    "pattern",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];
/// Keywords for bounds: the name, whether a greater value is stricter, and the kinds of values that
/// it applies to.
const BOUND_KEYWORDS: [(&str, bool, u8); 10] = [
    ("exclusiveMaximum", false, node::NUMBER_KIND),
    ("exclusiveMinimum", true, node::NUMBER_KIND),
    ("maximum", false, node::NUMBER_KIND),
    ("minimum", true, node::NUMBER_KIND),
    ("maxItems", false, ARRAY_KIND),
    ("minItems", true, ARRAY_KIND),
    ("maxLength", false, STRING_KIND),
    ("minLength", true, STRING_KIND),
    ("maxProperties", false, OBJECT_KIND),
    ("minProperties", true, OBJECT_KIND),
];

/// The direction of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// From callers: values that are no longer accepted break them.
    In,
    /// To callers: values that are newly possible break them.
    Out,
}

/// A value that the first schema accepts or promises, and the second does not.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    /// Demand of the first schema.
    first: Option<String>,
    /// Demand of the second schema.
    second: Option<String>,
    /// True if the second schema still accepts it, as a property that it does not name.
    tolerated: bool,
}

/// Findings by path and keyword.
type Findings = BTreeMap<(String, &'static str), Finding>;

/// Reports the differences at the path of the report.
pub(super) fn compare(old: &Value, new: &Value, direction: Direction, report: &mut Report) {
    if old == new {
        return;
    }
    let mut narrowed = findings(old, new, &mut report.steps);
    let mut widened = findings(new, old, &mut report.steps);
    let keys: Vec<_> = narrowed.keys().chain(widened.keys()).cloned().collect();
    let mut seen = HashSet::new();
    for key in keys {
        if seen.insert(key.clone()) {
            let narrow = narrowed.remove(&key);
            let wide = widened.remove(&key);
            line(&key.0, key.1, narrow, wide, direction, report);
        }
    }
    if seen.is_empty() {
        report.add_here("is described differently", &[]);
    }
}

fn line(
    place: &str,
    keyword: &str,
    narrow: Option<Finding>,
    wide: Option<Finding>,
    direction: Direction,
    report: &mut Report,
) {
    let breaking = match (direction, keyword) {
        // A property that callers sent or read is gone, even if it is still tolerated.
        (_, "property") if narrow.is_some() => true,
        (Direction::In, _) => narrow.as_ref().is_some_and(|finding| !finding.tolerated),
        (Direction::Out, _) => wide.as_ref().is_some_and(|finding| !finding.tolerated),
    };
    let gone = narrow.is_some();
    let came = wide.is_some();
    let (old, new) = match (narrow, wide) {
        (Some(finding), _) => (finding.first, finding.second),
        (None, Some(finding)) => (finding.second, finding.first),
        (None, None) => (None, None),
    };
    let change = match (keyword, old, new) {
        ("property", ..) => if gone { "is gone" } else { "is new" }.to_owned(),
        ("required", ..) if gone => "is newly required".to_owned(),
        ("required", ..) => "is no longer required".to_owned(),
        ("work", ..) => "is too complex to be compared".to_owned(),
        ("form", ..) => match (gone, came) {
            (true, true) => "has other forms",
            (true, false) => "has fewer forms",
            _ => "has more forms",
        }
        .to_owned(),
        (keyword, Some(old), Some(new)) => format!("`{keyword}` is {new} instead of {old}"),
        (keyword, None, Some(new)) => format!("`{keyword}` is new: {new}"),
        (keyword, Some(old), None) => format!("`{keyword}` is gone: {old}"),
        (keyword, None, None) => format!("`{keyword}` is different"),
    };
    let breaks: &[Party] = if breaking { &[Party::Callers] } else { &[] };
    if place.is_empty() {
        report.add_here(change, breaks)
    } else {
        report.add(place, change, breaks)
    }
}

/// Returns the findings for values that `first` accepts and `second` does not.
fn findings(first: &Value, second: &Value, steps: &mut usize) -> Findings {
    let mut comparison = Comparison {
        steps: *steps,
        found: Findings::new(),
        open: HashSet::new(),
    };
    comparison.nodes(&Node::new(first, first), &Node::new(second, second), "");
    *steps = comparison.steps;
    comparison.found
}

struct Comparison {
    /// Steps left.
    steps: usize,
    found: Findings,
    /// Pairs that are being compared. A recursive schema leads back to them.
    open: HashSet<(Vec<usize>, Vec<usize>)>,
}

impl Comparison {
    fn find(
        &mut self,
        place: &str,
        keyword: &'static str,
        first: Option<&Value>,
        second: Option<&Value>,
    ) {
        self.put(
            place,
            keyword,
            first.map(abbreviated),
            second.map(abbreviated),
            false,
        );
    }

    fn put(
        &mut self,
        place: &str,
        keyword: &'static str,
        first: Option<String>,
        second: Option<String>,
        tolerated: bool,
    ) {
        let found = self.found.entry((place.to_owned(), keyword));
        let finding = Finding {
            first,
            second,
            tolerated,
        };
        found
            .and_modify(|found| found.tolerated &= tolerated)
            .or_insert(finding);
    }

    fn nodes(&mut self, first: &Node<'_>, second: &Node<'_>, place: &str) {
        if self.steps == 0 {
            return self.put("", "work", None, None, false);
        }
        self.steps -= 1;
        if first.accepts_nothing() {
            return;
        }
        // Each form that the first schema allows is compared by itself.
        if let Some(choice) = first.choice() {
            for form in choice.forms {
                self.nodes(&first.with_form(choice, form), second, place);
            }
            return;
        }
        // The second schema must accept the value in one of its forms.
        if let Some(choice) = second.choice() {
            return self.forms(first, second, choice, place);
        }
        let pair = (first.key(), second.key());
        if self.open.insert(pair.clone()) {
            self.demands(first, second, place);
            self.open.remove(&pair);
        }
    }

    fn forms(
        &mut self,
        first: &Node<'_>,
        second: &Node<'_>,
        choice: node::Choice<'_>,
        place: &str,
    ) {
        let mut best: Option<Findings> = None;
        for form in choice.forms {
            let opened = second.with_form(choice, form);
            let found = self.compare_apart(first, &opened, place);
            let alone = !choice.exactly_one
                || first.was_in(choice)
                || choice.forms.iter().all(|other| {
                    std::ptr::eq(other, form) || first.excludes(&second.with_form(choice, other))
                });
            if found.is_empty() && alone {
                return;
            }
            let related = alone && first.is_like(&opened);
            if related
                && !found.is_empty()
                && best.as_ref().is_none_or(|best| found.len() < best.len())
            {
                best = Some(found);
            }
        }
        let parts = first.parts();
        if parts.len() > 1 {
            return parts
                .iter()
                .for_each(|part| self.nodes(part, second, place));
        }
        match best {
            Some(found) => found.into_iter().for_each(|((place, keyword), finding)| {
                self.put(
                    &place,
                    keyword,
                    finding.first,
                    finding.second,
                    finding.tolerated,
                );
            }),
            None => self.find(place, "form", None, None),
        }
    }

    /// Returns the findings of a comparison without recording them.
    fn compare_apart(&mut self, first: &Node<'_>, second: &Node<'_>, place: &str) -> Findings {
        let before = std::mem::take(&mut self.found);
        self.nodes(first, second, place);
        std::mem::replace(&mut self.found, before)
    }

    /// Checks that each demand of the second node follows from one of the first. Neither node has
    /// choices left.
    fn demands(&mut self, first: &Node<'_>, second: &Node<'_>, place: &str) {
        if second.never {
            return self.find(place, "false", None, None);
        }
        let kinds = first.mask();
        for demand in &second.maps {
            if kinds & !mask_of(demand) != 0 {
                self.find(place, "type", first.keyword("type"), demand.get("type"));
            }
            self.values(first, demand, place);
            for (keyword, more, about) in BOUND_KEYWORDS
                .into_iter()
                .filter(|(_, _, about)| kinds & about != 0)
            {
                if let Some(bound) = demand.get(keyword)
                    && !first
                        .values(keyword)
                        .any(|own| is_as_strict(own, bound, more))
                    && !(more && about != node::NUMBER_KIND && *bound == 0)
                {
                    self.find(place, keyword, first.keyword(keyword), Some(bound));
                }
            }
            self.whole(first, demand, place);
            if kinds & OBJECT_KIND != 0 {
                self.object(first, second, demand, place);
            }
            if kinds & ARRAY_KIND != 0 {
                self.items(first, second, demand, place);
            }
        }
        if kinds & OBJECT_KIND != 0 {
            for name in first.declared().difference(&second.declared()) {
                if !first.forbids(name) {
                    self.put(&below(place, name), "property", None, None, true);
                }
            }
        }
    }

    fn values(&mut self, first: &Node<'_>, demand: &Map<String, Value>, place: &str) {
        for keyword in ["enum", "const"] {
            let Some(second) = demand.get(keyword) else {
                continue;
            };
            let allowed = if keyword == "enum" {
                second.as_array().map_or(&[][..], Vec::as_slice)
            } else {
                std::slice::from_ref(second)
            };
            let known = first.finite();
            let work = known.as_ref().map_or(0, Vec::len) * allowed.len() / VALUES_PER_STEP;
            self.steps = self.steps.saturating_sub(work);
            if !known
                .as_ref()
                .is_some_and(|known| known.iter().all(|value| allowed.contains(value)))
            {
                let own = known.map(|values| Value::Array(values.into_iter().cloned().collect()));
                self.find(
                    place,
                    if keyword == "enum" { "enum" } else { "const" },
                    own.as_ref(),
                    Some(second),
                );
            }
        }
    }

    /// Compares the keywords that are only understood as a whole.
    fn whole(&mut self, first: &Node<'_>, demand: &Map<String, Value>, place: &str) {
        let lone = demand
            .keys()
            .any(|keyword| keyword.starts_with("unevaluated"));
        let follows = |keywords: &[&str]| {
            first.maps.iter().any(|own| {
                if lone {
                    *own == demand && demand.values().all(has_no_references)
                } else {
                    keywords.iter().all(|keyword| {
                        own.get(*keyword) == demand.get(*keyword)
                            && has_no_references(&demand[*keyword])
                    })
                }
            })
        };
        let together: Vec<_> = demand
            .keys()
            .map(String::as_str)
            .filter(|keyword| {
                KEYWORDS_COMPARED_WHOLE.contains(keyword)
                    || (*keyword == "items" && demand[*keyword].is_array())
            })
            .collect();
        let (free, bound): (Vec<_>, Vec<_>) = together.into_iter().partition(|keyword| {
            ["format", "multipleOf", "not", "pattern", "uniqueItems"].contains(keyword)
        });
        for keyword in free {
            if !follows(&[keyword]) {
                self.unlike(place, keyword, first, demand);
            }
        }
        if (!bound.is_empty() || lone) && !follows(&bound) {
            self.unlike(
                place,
                bound.first().copied().unwrap_or("$ref"),
                first,
                demand,
            );
        }
    }

    fn unlike(
        &mut self,
        place: &str,
        keyword: &str,
        first: &Node<'_>,
        demand: &Map<String, Value>,
    ) {
        let name = KEYWORDS_COMPARED_WHOLE
            .into_iter()
            .chain(["items"])
            .find(|known| *known == keyword)
            .unwrap_or("$ref");
        self.find(place, name, first.keyword(keyword), demand.get(keyword));
    }

    fn object(
        &mut self,
        first: &Node<'_>,
        second: &Node<'_>,
        demand: &Map<String, Value>,
        place: &str,
    ) {
        let needed = demand
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        for name in needed.filter(|name| !first.requires(name)) {
            self.find(&below(place, name), "required", None, None);
        }
        let declared = first.declared();
        let more = first.more();
        let named = demand.get("properties").and_then(Value::as_object);
        for (name, schema) in named.into_iter().flatten() {
            let here = below(place, name);
            if declared.contains(name.as_str()) {
                self.nodes(&first.property(name), &second.child(schema), &here);
            } else if let Some(more) = &more {
                self.nodes(more, &second.child(schema), &here);
            }
        }
        let Some(rest) = demand
            .get("additionalProperties")
            .filter(|rest| **rest != Value::Bool(true))
        else {
            return;
        };
        for name in declared
            .iter()
            .filter(|name| named.is_none_or(|named| !named.contains_key(**name)))
        {
            let here = below(place, name);
            if *rest != Value::Bool(false) {
                self.nodes(&first.property(name), &second.child(rest), &here);
            } else if !first.forbids(name) {
                self.put(&here, "property", None, None, false);
            }
        }
        match more {
            None => {}
            Some(_) if *rest == Value::Bool(false) => {
                self.find(
                    place,
                    "additionalProperties",
                    first.keyword("additionalProperties"),
                    Some(rest),
                );
            }
            Some(more) => self.nodes(&more, &second.child(rest), &below(place, "*")),
        }
    }

    fn items(
        &mut self,
        first: &Node<'_>,
        second: &Node<'_>,
        demand: &Map<String, Value>,
        place: &str,
    ) {
        let Some(schema) = demand.get("items").filter(|items| !items.is_array()) else {
            return;
        };
        match first.items() {
            Some(items) => self.nodes(&items, &second.child(schema), &below(place, "[]")),
            // The positions of a list have schemas of their own. A demand follows only from the
            // same schemas.
            None => {
                let is_implied = first.maps.iter().any(|own| {
                    ["items", "prefixItems", "additionalItems"]
                        .iter()
                        .all(|keyword| own.get(*keyword) == demand.get(*keyword))
                });
                if !(is_implied && has_no_references(schema)) {
                    self.find(place, "items", first.keyword("items"), Some(schema));
                }
            }
        }
    }
}

/// Returns true if a bound is at least as strict as another.
fn is_as_strict(own: &Value, other: &Value, more: bool) -> bool {
    let order = match (own.as_i64(), other.as_i64(), own.as_f64(), other.as_f64()) {
        (Some(own), Some(other), ..) => Some(own.cmp(&other)),
        (.., Some(own), Some(other)) if own != other => own.partial_cmp(&other),
        _ => (own == other).then_some(std::cmp::Ordering::Equal),
    };
    order.is_some_and(|order| order.is_eq() || order.is_gt() == more)
}

/// Returns true if a schema contains no references and so means the same at any path.
fn has_no_references(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            !members.contains_key("$ref") && members.values().all(has_no_references)
        }
        Value::Array(items) => items.iter().all(has_no_references),
        _ => true,
    }
}

/// Returns the path of a part.
pub(super) fn below(place: &str, name: &str) -> String {
    if place.is_empty() {
        name.to_owned()
    } else {
        format!("{place}.{name}")
    }
}

fn abbreviated(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_VALUE_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
