//! JSON values that borrow from their text.
//!
//! Problem: a [`Value`] has an allocation for each text and a hash table for each object. Making and
//! dropping them takes most of the time in which a large body is validated.
//!
//! Guarantee: a tree is made in one pass over the text, and everything that it does not borrow from
//! the text is in one arena, which is dropped as a whole. This takes about a third of the time. The
//! rules for JSON from outside are checked in the same pass.
//!
//! Written by hand on `serde`: `serde_json` keeps the last of equal names, its own depth limit cannot be
//! chosen, and no crate borrows values and checks these rules.
//!
//! The problem of a broken rule, or of a number that no value can hold, has the path to the value. It repeats
//! no value.

use std::{
    collections::HashSet,
    fmt::{self, Write},
    str,
};

use bumpalo::Bump;
use jsonschema::json::Node;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Error, Number, Value};

use super::problem::Problem;

/// Maximum nesting depth of arrays and objects.
pub const MAX_DEPTH: usize = 64;
/// Maximum number of characters of a path in an error.
const MAX_PATH_CHARS: usize = 200;
/// Start of the error of the parser for a number that no value can hold.
const NUMBER_OUT_OF_RANGE: &str = "number out of range";
/// Number of fields up to which an object is searched linearly.
const MAX_UNSORTED_MEMBERS: usize = 16;

/// A JSON value.
#[derive(Debug)]
pub(crate) enum Tree<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(&'a str),
    Array(&'a [Tree<'a>]),
    Object(Members<'a>),
}

type Member<'a> = (&'a str, Tree<'a>);

/// The members of an object, whose names are distinct.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Members<'a>(&'a MemberTable<'a>);

#[derive(Debug)]
struct MemberTable<'a> {
    /// The members in the order of the text.
    members: &'a [Member<'a>],
    /// The indices of the members in the order of their names, or empty if they are few.
    by_name: &'a [usize],
}

/// The rules for a document in addition to those of JSON (RFC 8259).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rules {
    /// The nesting depth is at most [`MAX_DEPTH`], a name occurs at most once in an object, and no text
    /// contains NUL, which not every store can keep.
    Strict,
    /// The last of the members with the same name counts, and the nesting depth is at most 127.
    Lenient,
}

impl<'a> Tree<'a> {
    /// Parses one JSON value. Fails with the problem if the bytes are not exactly one JSON value in
    /// UTF-8 or break a rule.
    pub(crate) fn parse(bytes: &'a [u8], arena: &'a Bump, rules: Rules) -> Result<Self, Problem> {
        let text = str::from_utf8(bytes).map_err(|cause| Problem::of_charset(bytes, cause))?;
        let mut builder = Builder {
            arena,
            rules,
            elements: Vec::new(),
            members: Vec::with_capacity(MAX_UNSORTED_MEMBERS),
            path: Vec::new(),
        };
        let mut from = serde_json::Deserializer::from_str(text);
        let whole = Part {
            builder: &mut builder,
            depth_left: match rules {
                Rules::Strict => MAX_DEPTH,
                Rules::Lenient => usize::MAX,
            },
        };
        whole
            .deserialize(&mut from)
            .and_then(|tree| from.end().map(|()| tree))
            .map_err(|cause| builder.problem(&cause))
    }

    /// Returns the value as one that owns its parts.
    pub(crate) fn to_value(&self) -> Value {
        self.excerpt(usize::MAX)
    }

    /// Returns the start of the value, up to a number of characters: each value counts as one, and each
    /// text and name with its own.
    pub(crate) fn excerpt(&self, max_chars: usize) -> Value {
        let mut left = max_chars;
        self.excerpt_within(&mut left)
    }

    fn excerpt_within(&self, left: &mut usize) -> Value {
        *left = left.saturating_sub(1);
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Number(number) => Value::Number(number.clone()),
            Self::Text(text) => Value::String(first_chars(text, left).to_owned()),
            Self::Array(elements) => {
                let shown = elements
                    .iter()
                    .map_while(|element| (*left > 0).then(|| element.excerpt_within(left)));
                Value::Array(shown.collect())
            }
            Self::Object(members) => {
                let mut shown = serde_json::Map::new();
                for (name, value) in members.iter() {
                    if *left == 0 {
                        break;
                    }
                    shown.insert(
                        first_chars(name, left).to_owned(),
                        value.excerpt_within(left),
                    );
                }
                Value::Object(shown)
            }
        }
    }

    /// Returns true if a value is equal under the rules of JSON Schema: numbers are compared as
    /// numbers, and the order of fields does not matter.
    pub(crate) fn equals(&self, other: &Value) -> bool {
        match (self, other) {
            (Self::Null, Value::Null) => true,
            (Self::Bool(value), Value::Bool(other)) => value == other,
            (Self::Number(number), other) => (&Value::Number(number.clone())).equals_value(other),
            (Self::Text(text), Value::String(other)) => text == other,
            (Self::Array(elements), Value::Array(others)) => {
                let mut pairs = elements.iter().zip(others);
                elements.len() == others.len()
                    && pairs.all(|(element, other)| element.equals(other))
            }
            (Self::Object(members), Value::Object(others)) => {
                members.len() == others.len()
                    && members.iter().all(|(name, value)| {
                        others.get(*name).is_some_and(|other| value.equals(other))
                    })
            }
            _ => false,
        }
    }
}

/// Returns the first characters of a string and their number.
fn first_chars<'t>(text: &'t str, left: &mut usize) -> &'t str {
    if text.len() <= *left {
        *left -= text.len();
        return text;
    }
    let end = text
        .char_indices()
        .nth(*left)
        .map_or(text.len(), |(end, _)| end);
    *left = 0;
    &text[..end]
}

impl<'a> Members<'a> {
    pub(crate) fn len(self) -> usize {
        self.0.members.len()
    }

    pub(crate) fn iter(self) -> std::slice::Iter<'a, Member<'a>> {
        self.0.members.iter()
    }

    pub(crate) fn get(self, name: &str) -> Option<&'a Tree<'a>> {
        let MemberTable { members, by_name } = self.0;
        let found = if by_name.is_empty() {
            members.iter().find(|(known, _)| *known == name)
        } else {
            let at = by_name.binary_search_by_key(&name, |index| members[*index].0);
            at.ok().map(|at| &members[by_name[at]])
        };
        found.map(|(_, value)| value)
    }
}

/// The state of one pass over a document.
struct Builder<'a> {
    arena: &'a Bump,
    rules: Rules,
    /// The elements of the open arrays. Those of the innermost one are last.
    elements: Vec<Tree<'a>>,
    /// The members of the open objects. Those of the innermost one are last.
    members: Vec<Member<'a>>,
    /// The position of the problem in each open array and object, from the innermost one. Empty
    /// until parsing fails.
    path: Vec<Position<'a>>,
}

/// A position in an array or an object.
#[derive(Debug, Clone, Copy)]
enum Position<'a> {
    Element(usize),
    Member(&'a str),
}

impl<'a> Builder<'a> {
    fn text<E: serde::de::Error>(&self, text: &str) -> Result<&'a str, E> {
        if self.rules == Rules::Strict && text.as_bytes().contains(&0) {
            return Err(E::custom("contains a NUL character"));
        }
        Ok(self.arena.alloc_str(text))
    }

    /// Returns the problem of a document. A broken rule is one of the value at the path.
    fn problem(&self, cause: &Error) -> Problem {
        let message = cause.to_string();
        if message.starts_with(NUMBER_OUT_OF_RANGE) {
            return Problem {
                path: self.path_text(),
                text: "the number is too large".to_owned(),
            };
        }
        if !cause.is_data() {
            return Problem::of_syntax(cause);
        }
        let position = format!(" at line {} column {}", cause.line(), cause.column());
        Problem {
            path: self.path_text(),
            text: message.trim_end_matches(&*position).to_owned(),
        }
    }

    /// Returns the start of the path as text.
    fn path_text(&self) -> String {
        let mut path = String::new();
        for position in self.path.iter().rev() {
            // Writing to a string cannot fail.
            let _ = match position {
                Position::Element(index) => write!(path, "[{index}]"),
                Position::Member(name) if path.is_empty() => write!(path, "{name}"),
                Position::Member(name) => write!(path, ".{name}"),
            };
        }
        path.chars().take(MAX_PATH_CHARS).collect()
    }

    /// Closes the array whose first element has this index.
    fn close_array(&mut self, first: usize) -> Tree<'a> {
        let elements = self.elements.drain(first..);
        Tree::Array(self.arena.alloc_slice_fill_iter(elements))
    }

    /// Closes the object whose first field has this index.
    fn close_object<E: serde::de::Error>(&mut self, first: usize) -> Result<Tree<'a>, E> {
        let mut by_name = sorted(&self.members[first..]);
        if let Some(name) = repeated_name(&self.members[first..], &by_name) {
            if self.rules == Rules::Strict {
                self.path.push(Position::Member(name));
                return Err(E::custom("is given twice"));
            }
            self.keep_last_of_names(first);
            by_name = sorted(&self.members[first..]);
        }
        let members = self.members.drain(first..);
        Ok(Tree::Object(Members(self.arena.alloc(MemberTable {
            members: self.arena.alloc_slice_fill_iter(members),
            by_name: self.arena.alloc_slice_copy(&by_name),
        }))))
    }

    fn keep_last_of_names(&mut self, first: usize) {
        let mut names = HashSet::new();
        let from_last = self.members.drain(first..).rev();
        let kept: Vec<_> = from_last.filter(|(name, _)| names.insert(*name)).collect();
        self.members.extend(kept.into_iter().rev());
    }
}

/// Returns the indices of fields in the order of their names, or `None` if there are few.
fn sorted(members: &[Member<'_>]) -> Vec<usize> {
    if members.len() <= MAX_UNSORTED_MEMBERS {
        return Vec::new();
    }
    let mut by_name: Vec<_> = (0..members.len()).collect();
    by_name.sort_unstable_by_key(|index| members[*index].0);
    by_name
}

fn repeated_name<'a>(members: &[Member<'a>], by_name: &[usize]) -> Option<&'a str> {
    let name = |index: usize| members[index].0;
    let repeated = if by_name.is_empty() {
        (1..members.len()).find(|index| (0..*index).any(|before| name(before) == name(*index)))
    } else {
        let mut pairs = by_name.windows(2);
        pairs.find_map(|pair| (name(pair[0]) == name(pair[1])).then_some(pair[0]))
    };
    repeated.map(name)
}

/// A value to parse.
struct Part<'b, 'a> {
    builder: &'b mut Builder<'a>,
    /// The remaining number of levels.
    depth_left: usize,
}

impl<'a> Part<'_, 'a> {
    /// Returns the remaining depth inside of this value.
    fn depth_inside<E: serde::de::Error>(&self) -> Result<usize, E> {
        let depth = self.depth_left.checked_sub(1);
        depth.ok_or_else(|| E::custom(format_args!("is nested deeper than {MAX_DEPTH}")))
    }
}

impl<'a> DeserializeSeed<'a> for Part<'_, 'a> {
    type Value = Tree<'a>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Tree<'a>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Part<'_, 'a> {
    type Value = Tree<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Tree<'a>, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree<'a>, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree<'a>, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree<'a>, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree<'a>, E> {
        Ok(Number::from_f64(value).map_or(Tree::Null, Tree::Number))
    }

    /// A string without escapes and without NUL.
    fn visit_borrowed_str<E>(self, text: &'a str) -> Result<Tree<'a>, E> {
        Ok(Tree::Text(text))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Tree<'a>, E> {
        self.builder.text(text).map(Tree::Text)
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut elements: A) -> Result<Tree<'a>, A::Error> {
        let depth_left = self.depth_inside()?;
        let Part { builder, .. } = self;
        let first = builder.elements.len();
        loop {
            let index = builder.elements.len() - first;
            let parsed = elements.next_element_seed(Part {
                builder,
                depth_left,
            });
            match parsed.inspect_err(|_| builder.path.push(Position::Element(index)))? {
                Some(element) => builder.elements.push(element),
                None => return Ok(builder.close_array(first)),
            }
        }
    }

    fn visit_map<A: MapAccess<'a>>(self, mut members: A) -> Result<Tree<'a>, A::Error> {
        let depth_left = self.depth_inside()?;
        let Part { builder, .. } = self;
        let first = builder.members.len();
        while let Some(name) = members.next_key_seed(Name(builder))? {
            let parsed = members.next_value_seed(Part {
                builder,
                depth_left,
            });
            let value = parsed.inspect_err(|_| builder.path.push(Position::Member(name)))?;
            builder.members.push((name, value));
        }
        builder.close_object(first)
    }
}

/// The name of a field to parse.
struct Name<'b, 'a>(&'b Builder<'a>);

impl<'a> DeserializeSeed<'a> for Name<'_, 'a> {
    type Value = &'a str;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<&'a str, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'a> Visitor<'a> for Name<'_, 'a> {
    type Value = &'a str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_borrowed_str<E>(self, text: &'a str) -> Result<&'a str, E> {
        Ok(text)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<&'a str, E> {
        self.0.text(text)
    }
}

#[cfg(test)]
mod tests;
