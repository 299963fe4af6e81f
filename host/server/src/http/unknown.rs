//! Query parameters and members of bodies that an operation does not know. They have no effect, so
//! the response names them in a header, each with the nearest known name. Operations on sessions refuse
//! unknown members instead, because a misspelled one could be a restriction. A misspelled restriction is
//! refused everywhere ([`misspelling`](app::core::spelling::misspelling)), and so is a parameter that could
//! be meant as one of any operation ([`KnownParameters`](crate::http::query::KnownParameters)).
//!
//! The known names are those of the types that the request is deserialized into.

use std::{cell::OnceCell, fmt, sync::Arc};

use app::core::spelling::{nearest, resembles_session_restriction};
use axum::{
    http::{HeaderName, HeaderValue},
    response::Response,
};
use parking_lot::Mutex;

/// Header of a response whose request had something unknown.
const WARNING_HEADER: HeaderName = HeaderName::from_static("x-toolhost-warning");
/// Maximum number of warnings of a response.
pub(crate) const MAX_WARNINGS: usize = 10;
/// Maximum characters of a name that a client sent and a response repeats.
const MAX_NAME_CHARS: usize = 64;

/// Warnings about the request being answered. Nothing is allocated until there is one.
#[derive(Debug, Default)]
pub(crate) struct Warnings(OnceCell<Arc<Mutex<Vec<Warning>>>>);

/// An unknown query parameter or property of a body.
#[derive(Debug, Clone)]
pub(crate) struct Warning {
    text: String,
    /// True if the name is similar to a permitted one, or to a restriction of sessions.
    pub(super) may_restrict: bool,
}

impl Warning {
    /// Returns the reason why the name is refused instead of ignored.
    pub(super) fn refusal(&self) -> String {
        self.text.replace(" is ignored", " is not allowed")
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Warnings {
    /// Returns the same warnings for another task.
    pub(crate) fn share(&self) -> Self {
        Self(OnceCell::from(self.0.get_or_init(Arc::default).clone()))
    }

    /// Adds warnings until there is the maximum number of them.
    pub(crate) fn add(&self, added: Vec<Warning>) {
        if !added.is_empty() {
            let mut warnings = self.0.get_or_init(Arc::default).lock();
            let left = MAX_WARNINGS.saturating_sub(warnings.len());
            warnings.extend(added.into_iter().take(left));
        }
    }

    /// Moves the warnings to the response.
    pub(crate) fn write(&self, response: &mut Response) {
        let Some(warnings) = self.0.get() else {
            return;
        };
        for warning in std::mem::take(&mut *warnings.lock()) {
            if let Ok(value) = HeaderValue::try_from(warning.text) {
                response.headers_mut().append(WARNING_HEADER, value);
            }
        }
    }
}

/// Adds a warning about a body. The warning is not made if the body has the maximum number of them.
pub(super) fn add_warning(warnings: &mut Vec<Warning>, warning: impl FnOnce() -> Warning) {
    if warnings.len() < MAX_WARNINGS {
        warnings.push(warning());
    }
}

/// Returns the warning about an unknown property of a body. `place` is the path of its object, with
/// a dot at the end unless it is the body itself.
pub(crate) fn member_warning(place: &str, name: &str, known: &[&str]) -> Warning {
    warning("body member", place, name, known.iter())
}

/// Returns the warning about an unknown query parameter.
pub(super) fn parameter_warning(name: &str, known: &[String]) -> Warning {
    warning("query parameter", "", name, known.iter())
}

fn warning(
    kind: &str,
    place: &str,
    name: &str,
    known: impl Iterator<Item = impl AsRef<str>>,
) -> Warning {
    let shown = shown_name(name);
    let mut text = format!("unknown {kind} `{place}{shown}` is ignored");
    let nearest = nearest(name, known);
    if let Some(nearest) = &nearest {
        let nearest = nearest.as_ref();
        text.push_str(&format!("; the nearest known name is `{place}{nearest}`"));
    }
    Warning {
        text,
        may_restrict: nearest.is_some() || resembles_session_restriction(name),
    }
}

/// Returns the start of a name that a client sent.
pub(super) fn shortened(name: &str) -> &str {
    match name.char_indices().nth(MAX_NAME_CHARS) {
        Some((end, _)) => &name[..end],
        None => name,
    }
}

/// Returns a name that a client sent, shortened, with `?` for what is not plain ASCII.
fn shown_name(name: &str) -> String {
    shortened(name)
        .chars()
        .map(|c| if c.is_ascii_graphic() { c } else { '?' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_of_one_request_are_limited() {
        let warnings = Warnings::default();
        for _ in 0..2 {
            warnings.add(vec![member_warning("", "a", &[]); MAX_WARNINGS - 1]);
        }
        let mut response = Response::default();
        warnings.write(&mut response);
        let written = response.headers().get_all(WARNING_HEADER).iter();
        assert_eq!(written.count(), MAX_WARNINGS);
    }
}
