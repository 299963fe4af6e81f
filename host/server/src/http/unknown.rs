//! Query parameters and members of bodies that an operation does not know. They have no effect, so
//! the response names them in a header, each with the nearest known name. Operations on sessions refuse
//! unknown members instead, because a misspelled one could be a restriction. A misspelled restriction is
//! refused everywhere ([`misspelling`](app::core::spelling::misspelling)).
//!
//! The known names are those of the types that the request is deserialized into.

use std::fmt;

use app::{
    Error,
    core::spelling::{is_same, nearest, resembles_session_restriction},
};
use axum::{
    http::{HeaderName, HeaderValue},
    response::Response,
};
use parking_lot::{Mutex, MutexGuard};

use crate::http::{branding::Branding, errors};

/// Query parameters that filter lists and streams. A read that does not know one would return more than was
/// asked for.
const FILTER_NAMES: [&str; 10] = [
    "auth_config_id",
    "auth_config_ids",
    "connected_account_id",
    "connected_account_ids",
    "toolkit_slug",
    "toolkit_slugs",
    "trigger_id",
    "trigger_ids",
    "user_id",
    "user_ids",
];
/// Header of a response whose request had something unknown.
const WARNING_HEADER: HeaderName = HeaderName::from_static("x-toolhost-warning");
/// Maximum number of warnings of a response.
pub(crate) const MAX_WARNINGS: usize = 10;
/// Maximum characters of a name that a client sent and a response repeats.
const MAX_NAME_CHARS: usize = 64;

/// Names that a request may have, and the warnings about others. Nothing is allocated until one is
/// noted.
#[derive(Debug, Default)]
pub(crate) struct Names(Mutex<Noted>);

#[derive(Debug, Default)]
struct Noted {
    /// Query parameters that arguments of the handler read.
    parameters: Vec<&'static [&'static str]>,
    /// True if the handler reads all parameters.
    reads_all: bool,
    warnings: Vec<Warning>,
}

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

impl Names {
    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock()
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
    pub(crate) fn warn(&self, warnings: Vec<Warning>) {
        if !warnings.is_empty() {
            self.noted().add(warnings);
        }
    }

    /// Checks that a query is without filters of other lists, which would return everything here.
    ///
    /// # Errors
    /// Names the parameter.
    pub(crate) fn check_filters(&self, query: &str, branding: &Branding) -> Result<(), Error> {
        let noted = self.noted();
        let known = noted.parameters.iter().copied().flatten();
        let known: Vec<_> = known.map(|name| branding.rename(name)).collect();
        for (name, _) in url::form_urlencoded::parse(query.as_bytes()) {
            let plain = name.split('[').next().unwrap_or_default();
            if noted.reads_all || known.iter().any(|known| known == plain) {
                continue;
            }
            let misspelled = nearest(plain, &known).is_some_and(|it| FILTER_NAMES.contains(&&**it));
            if misspelled || FILTER_NAMES.iter().any(|filter| is_same(filter, plain)) {
                let problem = warning("query parameter", "", plain, known.iter()).refusal();
                return Err(errors::invalid(problem));
            }
        }
        Ok(())
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
        let warnings = std::mem::take(&mut self.noted().warnings);
        for warning in warnings {
            if let Ok(value) = HeaderValue::try_from(warning.text) {
                response.headers_mut().append(WARNING_HEADER, value);
            }
        }
    }
}

impl Noted {
    /// Adds warnings until a response has the maximum number of them.
    fn add(&mut self, warnings: Vec<Warning>) {
        let left = MAX_WARNINGS.saturating_sub(self.warnings.len());
        self.warnings.extend(warnings.into_iter().take(left));
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
    use crate::http::branding::DEFAULT_BRAND;

    #[test]
    fn warnings_of_one_request_are_limited() {
        let names = Names::default();
        let warnings = vec![member_warning("", "a", &[]); MAX_WARNINGS - 1];
        names.warn(warnings.clone());
        names.warn(warnings);
        names.compare(&"a=1&".repeat(5_000), &Branding::new(DEFAULT_BRAND));
        assert_eq!(names.noted().warnings.len(), MAX_WARNINGS);
    }
}
