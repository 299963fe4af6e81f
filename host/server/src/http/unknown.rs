//! Query parameters and members of bodies that an operation does not know. They have no effect, so
//! the response names them in a header, each with the nearest known name. Operations on sessions refuse
//! unknown members instead, because a misspelled one could be a restriction.
//!
//! The known names are those of the types that the request is deserialized into.

use std::{cell::OnceCell, sync::Arc};

use crate::{
    Server,
    config::UnknownMembers,
    http::{ApiResult, CURRENT_REQUEST, branding::Branding, context::operation, errors},
};
use axum::{
    http::{HeaderName, HeaderValue},
    response::Response,
};
use parking_lot::{Mutex, MutexGuard};

/// Header of a response whose request had something unknown.
const WARNING_HEADER: HeaderName = HeaderName::from_static("x-toolhost-warning");
/// Maximum number of warnings of a response.
pub(crate) const MAX_WARNINGS: usize = 10;
/// Maximum characters of an unknown name that a warning repeats.
pub(super) const MAX_NAME_CHARS: usize = 64;

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

/// Takes note of the unknown members of the body of the request being answered. An operation that
/// refuses them does so unless `sessions.unknown_members` is `warn`.
///
/// # Errors
/// `4300` with every unknown member that was noted.
pub(crate) fn admit(server: &Server, warnings: Vec<String>) -> ApiResult<()> {
    if operation().refuses_unknown_members && !warnings.is_empty() {
        if server.config.sessions.unknown_members == UnknownMembers::Refuse {
            let problems = warnings.iter().map(|warning| refusal(warning));
            return Err(errors::session_invalid(problems.collect::<Vec<_>>()).into());
        }
        let warnings = warnings.join(", ");
        tracing::warn!(warnings, "a request to a session has unknown members");
    }
    CURRENT_REQUEST.with(|context| context.names.warn(warnings));
    Ok(())
}

/// Returns a warning about an unknown member as the reason why it is refused.
pub(super) fn refusal(warning: &str) -> String {
    warning.replace(" is ignored", " is not allowed")
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
    let shown = shown_name(name);
    let mut text = format!("unknown {kind} `{place}{shown}` is ignored");
    if let Some(nearest) = nearest(name, known) {
        let nearest = nearest.as_ref();
        text.push_str(&format!("; the nearest known name is `{place}{nearest}`"));
    }
    text
}

/// Returns a name that a client sent, shortened, with `?` for what is not plain ASCII.
pub(super) fn shown_name(name: &str) -> String {
    name.chars()
        .take(MAX_NAME_CHARS)
        .map(|c| if c.is_ascii_graphic() { c } else { '?' })
        .collect()
}

/// Returns the known name that is most similar to a name, if one is similar. Case, `_` and `-` make
/// no difference.
fn nearest<K: AsRef<str>>(name: &str, known: impl Iterator<Item = K>) -> Option<K> {
    let plain = |name: &str| -> String {
        let letters = name.chars().take(MAX_NAME_CHARS);
        letters
            .filter(|c| !matches!(c, '_' | '-'))
            .flat_map(char::to_lowercase)
            .collect()
    };
    let name = plain(name);
    known
        .filter_map(|known| {
            let other = plain(known.as_ref());
            let longest = name.chars().count().max(other.chars().count());
            let edits = strsim::osa_distance(&name, &other);
            (edits * 2 <= longest).then_some((edits, known))
        })
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, known)| known)
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
