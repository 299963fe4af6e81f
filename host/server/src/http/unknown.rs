//! Query parameters and members of bodies that an operation does not know. They have no effect, so
//! the response names them in a header, each with the nearest known name. A misspelled restriction is
//! refused instead ([`misspelling`]).
//!
//! The known names are those of the types that the request is deserialized into.

use std::{cell::OnceCell, fmt, sync::Arc};

use app::core::spelling::{misspelling, nearest};
use axum::{
    http::{HeaderName, HeaderValue},
    response::Response,
};
use parking_lot::{Mutex, MutexGuard};
use serde::{
    Deserializer,
    de::{self, DeserializeSeed, MapAccess, Visitor},
    forward_to_deserialize_any,
};

use crate::http::branding::Branding;

/// Header of a response whose request had something unknown.
const WARNING_HEADER: HeaderName = HeaderName::from_static("x-toolhost-warning");
/// Maximum number of warnings of a response.
pub(crate) const MAX_WARNINGS: usize = 10;
/// Maximum characters of an unknown name that a warning repeats.
const MAX_NAME_CHARS: usize = 64;

/// Names that a request may have, and the warnings about others. Nothing is allocated until one is
/// noted.
#[derive(Debug, Default)]
pub(crate) struct Names(OnceCell<Arc<Mutex<Noted>>>);

#[derive(Debug, Default)]
struct Noted {
    /// Query parameters that arguments of the handler read.
    parameters: Vec<&'static [&'static str]>,
    /// True if the handler reads all parameters.
    reads_all: bool,
    warnings: Vec<String>,
}

impl Names {
    /// Returns the same names for another task.
    pub(crate) fn share(&self) -> Self {
        Self(OnceCell::from(self.0.get_or_init(Arc::default).clone()))
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.get_or_init(Arc::default).lock()
    }

    /// Notes that the handler reads these query parameters.
    pub(crate) fn read_parameters(&self, names: &'static [&'static str]) {
        self.noted().parameters.push(names);
    }

    /// Notes that the handler reads every query parameter.
    pub(crate) fn read_all_parameters(&self) {
        self.noted().reads_all = true;
    }

    /// Adds warnings about members of a body.
    pub(crate) fn warn(&self, warnings: Vec<String>) {
        if !warnings.is_empty() {
            self.noted().add(warnings);
        }
    }

    /// Adds a warning about each parameter of a query that no argument of the handler read.
    pub(crate) fn compare(&self, query: &str, branding: &Branding) {
        let mut noted = self.noted();
        if noted.reads_all {
            return;
        }
        let known = noted.parameters.iter().copied().flatten();
        let known: Vec<_> = known.map(|name| branding.rename(name)).collect();
        let unknown = url::form_urlencoded::parse(query.as_bytes())
            .filter_map(|(name, _)| {
                let plain = name.split('[').next().unwrap_or_default();
                let is_known = known.iter().any(|known| known == plain);
                (!is_known).then(|| warning("query parameter", "", plain, known.iter()))
            })
            .take(MAX_WARNINGS)
            .collect();
        noted.add(unknown);
    }

    /// Adds the warnings to the response.
    pub(crate) fn write(&self, response: &mut Response) {
        let Some(noted) = self.0.get() else {
            return;
        };
        let warnings = std::mem::take(&mut noted.lock().warnings);
        for warning in warnings {
            if let Ok(value) = HeaderValue::try_from(warning) {
                response.headers_mut().append(WARNING_HEADER, value);
            }
        }
    }
}

impl Noted {
    /// Adds warnings until a response has the maximum number of them.
    fn add(&mut self, warnings: Vec<String>) {
        let left = MAX_WARNINGS.saturating_sub(self.warnings.len());
        self.warnings.extend(warnings.into_iter().take(left));
    }
}

/// Adds a warning about a body. The warning is not made if the body has the maximum number of them.
pub(super) fn add_warning(warnings: &mut Vec<String>, warning: impl FnOnce() -> String) {
    if warnings.len() < MAX_WARNINGS {
        warnings.push(warning());
    }
}

/// Returns the warning about an unknown member of a body. The place is the path of its object, with
/// a dot at the end unless it is the body itself.
pub(crate) fn member_warning(place: &str, name: &str, known: &[&str]) -> String {
    warning("body member", place, name, known.iter())
}

fn warning(
    kind: &str,
    place: &str,
    name: &str,
    known: impl Iterator<Item = impl AsRef<str>>,
) -> String {
    let shown: String = name
        .chars()
        .take(MAX_NAME_CHARS)
        .map(|c| if c.is_ascii_graphic() { c } else { '?' })
        .collect();
    let mut text = format!("unknown {kind} `{place}{shown}` is ignored");
    if let Some(nearest) = nearest(name, known) {
        let nearest = nearest.as_ref();
        text.push_str(&format!("; the nearest known name is `{place}{nearest}`"));
    }
    text
}

/// Notes of [`Noting`] about a body.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Warnings about unknown members, at most [`MAX_WARNINGS`].
    pub warnings: Vec<String>,
    /// Known name of the member that is being read.
    current: &'static str,
}

/// Deserializer of a body that notes its unknown members and names its wrong ones, without those of
/// objects inside. It costs one comparison of each name, and allocates nothing unless a member is
/// unknown or wrong.
pub(crate) struct Noting<'a, T> {
    inner: T,
    known: &'static [&'static str],
    notes: &'a mut Notes,
}

impl<'a, T> Noting<'a, T> {
    /// Wraps the deserializer of a body.
    pub(crate) fn new(inner: T, notes: &'a mut Notes) -> Self {
        Self {
            inner,
            known: &[],
            notes,
        }
    }

    /// Wraps another part of the same body, and returns it with the part inside.
    fn swap<U>(self, other: U) -> (T, Noting<'a, U>) {
        let noting = Noting {
            inner: other,
            known: self.known,
            notes: self.notes,
        };
        (self.inner, noting)
    }

    /// Notes the name of a member.
    ///
    /// # Errors
    /// If it is a misspelled restriction.
    fn note<E: de::Error>(&mut self, name: &str) -> Result<(), E> {
        if let Some(known) = self.known.iter().find(|known| **known == name) {
            self.notes.current = *known;
            return Ok(());
        }
        if let Some(problem) = misspelling(name, self.known) {
            return Err(E::custom(format_args!("{name}: {problem}")));
        }
        add_warning(&mut self.notes.warnings, || {
            member_warning("", name, self.known)
        });
        Ok(())
    }
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Noting<'_, D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.known = fields;
        let (inner, visitor) = self.swap(visitor);
        inner.deserialize_struct(name, fields, visitor)
    }

    /// Reads the name of a member.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.swap(visitor);
        inner.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Noting<'_, V> {
    type Value = V::Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(out)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        let (inner, members) = self.swap(members);
        inner.visit_map(members)
    }

    fn visit_str<E: de::Error>(mut self, name: &str) -> Result<V::Value, E> {
        self.note(name)?;
        self.inner.visit_str(name)
    }

    fn visit_borrowed_str<E: de::Error>(mut self, name: &'de str) -> Result<V::Value, E> {
        self.note(name)?;
        self.inner.visit_borrowed_str(name)
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Noting<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        self.inner.next_key_seed(Noting {
            inner: seed,
            known: self.known,
            notes: self.notes,
        })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        let read = self.inner.next_value_seed(seed);
        read.map_err(|cause| de::Error::custom(format_args!("{}: {cause}", self.notes.current)))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Noting<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, name: D) -> Result<S::Value, D::Error> {
        let (inner, name) = self.swap(name);
        inner.deserialize(name)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::http::branding::DEFAULT_BRAND;

    #[derive(Deserialize)]
    struct Body {
        name: String,
    }

    #[test]
    fn warnings_of_one_request_are_limited() {
        let body = format!("{{{}\"name\":\"n\"}}", "\"\":0,".repeat(5_000));
        let mut notes = Notes::default();
        let mut json = serde_json::Deserializer::from_str(&body);
        let body: Body = Deserialize::deserialize(Noting::new(&mut json, &mut notes)).unwrap();
        assert_eq!(body.name, "n");
        assert_eq!(notes.warnings.len(), MAX_WARNINGS);
        let names = Names::default();
        names.warn(notes.warnings.clone());
        names.warn(notes.warnings);
        names.compare(&"a=1&".repeat(5_000), &Branding::new(DEFAULT_BRAND));
        assert_eq!(names.noted().warnings.len(), MAX_WARNINGS);
    }
}
