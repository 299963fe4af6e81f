//! Query parameters and members of bodies that an operation does not know. They have no effect, so
//! the response names them in a header, each with the nearest known name. Operations on sessions refuse
//! unknown members instead, because a misspelled one could be a restriction. A misspelled restriction is
//! refused everywhere ([`misspelling`](app::core::spelling::misspelling)).
//!
//! The known names are those of the types that the request is deserialized into.

use std::{cell::OnceCell, fmt, sync::Arc};

use app::{
    Error,
    core::spelling::{is_same, nearest, resembles_session_restriction, shortened},
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
    warnings: Warnings,
}

/// Warnings about a request.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    /// The first ones, at most [`MAX_WARNINGS`].
    named: Vec<Warning>,
    /// Number of further ones.
    unnamed: usize,
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

impl Warnings {
    /// Returns true if nothing was unknown.
    pub(crate) fn is_empty(&self) -> bool {
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

    fn extend(&mut self, other: Self) {
        for warning in other.named {
            self.add(|| warning);
        }
        self.unnamed += other.unnamed;
    }
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
    pub(crate) fn warn(&self, warnings: Warnings) {
        if !warnings.is_empty() {
            self.noted().warnings.extend(warnings);
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
        for (name, _) in url::form_urlencoded::parse(query.as_bytes()) {
            let plain = name.split('[').next().unwrap_or_default();
            if !known.iter().any(|known| known == plain) {
                noted
                    .warnings
                    .add(|| warning("query parameter", "", plain, known.iter()));
            }
        }
    }

    /// Adds the warnings to the response.
    pub(crate) fn write(&self, response: &mut Response) {
        let Some(noted) = self.0.get() else {
            return;
        };
        let Warnings { named, unnamed } = std::mem::take(&mut noted.lock().warnings);
        let more = (unnamed > 0).then(|| format!("and {unnamed} more unknown names are ignored"));
        for text in named.into_iter().map(|warning| warning.text).chain(more) {
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
        for _ in 0..2 {
            let mut warnings = Warnings::default();
            for _ in 1..MAX_WARNINGS {
                warnings.add(|| member_warning("", "a", &[]));
            }
            names.warn(warnings);
        }
        names.compare(&"a=1&".repeat(5_000), &Branding::new(DEFAULT_BRAND));
        let noted = names.noted();
        assert_eq!(noted.warnings.named.len(), MAX_WARNINGS);
        assert_eq!(noted.warnings.unnamed, 5_000 + MAX_WARNINGS - 2);
    }
}
