//! Query parameters and members of bodies that an operation does not know. They have no effect, so
//! the response names them in a header, each with the nearest known name. Operations on sessions refuse
//! unknown members instead, because a misspelled one could be a restriction. A misspelled restriction is
//! refused everywhere ([`misspelling`](app::core::spelling::misspelling)), and so is a parameter that could
//! be meant as one of any operation ([`KnownParameters`](crate::query::KnownParameters)). Arguments that
//! the schema of a tool does not describe, and slugs in filters that the catalog does not have, are named in
//! the same header.
//!
//! The known names are those of the types that the request is deserialized into.

use std::fmt;

use app::core::spelling::{nearest, resembles_session_restriction, shortened};
use axum::{
    http::{HeaderName, HeaderValue},
    response::Response,
};

use crate::Branding;

/// Header of a response whose request had something unknown.
const WARNING_HEADER: HeaderName = HeaderName::from_static("x-toolhost-warning");
/// Maximum number of warnings of a response.
pub const MAX_WARNINGS: usize = 10;

/// Warnings about a request. Nothing is allocated until there is one.
#[derive(Debug, Default)]
pub struct Warnings {
    /// The first ones, at most [`MAX_WARNINGS`].
    named: Vec<Warning>,
    /// Number of further ones.
    unnamed: usize,
}

/// Warning about a name in a request: a query parameter, a property of a body, an argument, or a slug in a
/// filter.
#[derive(Debug, Clone)]
pub(crate) struct Warning {
    text: String,
    /// End of the text with the nearest known name; empty if no known name is similar.
    suggestion: String,
    /// True if the name is similar to a permitted one, or to a restriction of sessions.
    pub(super) may_restrict: bool,
}

impl Warning {
    /// Returns the reason why the name is refused instead of ignored.
    pub(super) fn refusal(&self) -> String {
        self.to_string().replace(" is ignored", " is not allowed")
    }

    /// Returns true if a problem is that the nearest known name is missing, for which this one was sent.
    fn is_named_by(&self, problem: &str) -> bool {
        let missing = problem.split_once(": is required; ");
        missing.is_some_and(|(path, _)| self.suggestion.ends_with(&format!("`{path}`")))
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.text, self.suggestion)
    }
}

impl Warnings {
    /// Returns true if nothing was unknown.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// Iterates over the first warnings.
    pub(crate) fn named(&self) -> impl Iterator<Item = &Warning> {
        self.named.iter()
    }

    /// Returns the number of further ones.
    pub(crate) fn unnamed(&self) -> usize {
        self.unnamed
    }

    /// Adds a warning, which is made only if it is one of the first.
    pub(super) fn add(&mut self, warning: impl FnOnce() -> Warning) {
        if self.named.len() < MAX_WARNINGS {
            self.named.push(warning());
        } else {
            self.unnamed += 1;
        }
    }

    /// Removes the warnings about names that a problem of the request names already.
    pub(super) fn remove_named_by(&mut self, problems: &[String]) {
        self.named
            .retain(|warning| !problems.iter().any(|line| warning.is_named_by(line)));
    }

    /// Spells the suggested names with the word of an installation.
    pub(super) fn rename_suggestions(&mut self, branding: &Branding) {
        for warning in &mut self.named {
            warning.suggestion = branding.rename(&warning.suggestion).into_owned();
        }
    }

    /// Adds the warnings of a part of the request.
    pub fn extend(&mut self, other: Self) {
        for warning in other.named {
            self.add(|| warning);
        }
        self.unnamed += other.unnamed;
    }

    /// Adds warnings about arguments that the schema of an executed tool does not describe.
    pub fn add_arguments(&mut self, names: &[String]) {
        for name in names {
            self.add(|| argument_warning(name));
        }
    }

    /// Moves the warnings to the response.
    pub(crate) fn write(&mut self, response: &mut Response) {
        let Self { named, unnamed } = std::mem::take(self);
        let more = (unnamed > 0).then(|| format!("and {unnamed} more unknown names are ignored"));
        for text in named.iter().map(Warning::to_string).chain(more) {
            if let Ok(value) = HeaderValue::try_from(text) {
                response.headers_mut().append(WARNING_HEADER, value);
            }
        }
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

/// Returns the warning about a slug in a filter that the catalog does not have. `similar` is the text that
/// suggests another slug; empty if no slug is similar.
pub(super) fn slug_warning(parameter: &str, slug: &str, similar: &str) -> Warning {
    Warning {
        text: format!("{parameter}: {slug} does not exist"),
        suggestion: similar.to_owned(),
        may_restrict: false,
    }
}

fn argument_warning(name: &str) -> Warning {
    let shown = shown_name(name);
    Warning {
        text: format!("the schema of the tool does not describe the argument `{shown}`"),
        suggestion: String::new(),
        may_restrict: false,
    }
}

fn warning(
    kind: &str,
    place: &str,
    name: &str,
    known: impl Iterator<Item = impl AsRef<str>>,
) -> Warning {
    let shown = shown_name(name);
    let nearest = nearest(name, known);
    let suggestion = nearest.as_ref().map_or_else(String::new, |similar| {
        let similar = similar.as_ref();
        format!("; the nearest known name is `{place}{similar}`")
    });
    Warning {
        text: format!("unknown {kind} `{place}{shown}` is ignored"),
        suggestion,
        may_restrict: nearest.is_some() || resembles_session_restriction(name),
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
        let mut warnings = Warnings::default();
        for _ in 0..2 {
            let mut part = Warnings::default();
            for _ in 1..MAX_WARNINGS {
                part.add(|| member_warning("", "a", &[]));
            }
            warnings.extend(part);
        }
        let mut response = Response::default();
        warnings.write(&mut response);
        let written: Vec<_> = response.headers().get_all(WARNING_HEADER).iter().collect();
        assert_eq!(written.len(), MAX_WARNINGS + 1);
        assert_eq!(
            written[MAX_WARNINGS],
            "and 8 more unknown names are ignored"
        );
    }
}
