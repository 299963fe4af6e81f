//! JSON objects of bodies: what does not fit their types, and what is unknown in them.

use app::core::json;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use settings::UnknownMembers;

use crate::{
    ApiResult, Branding, CURRENT_REQUEST, Server,
    context::operation,
    errors,
    members::{self, DOCUMENT_NAME},
    noting::{Notes, Noting},
    unknown::{Warning, Warnings},
};

/// Problem of a body of another type.
const NOT_AN_OBJECT: &str = "body: must be a JSON object";

/// Problems of a body that does not fit its type, and what is unknown in it.
#[derive(Default)]
pub struct Unfit {
    problems: Vec<String>,
    unknown: Warnings,
}

impl From<String> for Unfit {
    fn from(line: String) -> Self {
        Self {
            problems: vec![line],
            ..Self::default()
        }
    }
}

impl Unfit {
    /// Returns one line for each problem. Those of unknown properties that the operation refuses are last.
    pub fn problems(self, server: &Server) -> Vec<String> {
        let mut problems = self.problems;
        problems.extend(refused_members(server, &self.unknown));
        problems
    }
}

/// An object that was read as the body of a request.
pub(super) struct ReadObject<T> {
    /// The body, or the problems if it does not fit its type.
    body: Result<T, Vec<String>>,
    unknown: Warnings,
    /// True if the object has a property that is known.
    has_known: bool,
}

impl<T> ReadObject<T> {
    /// Returns the body, and takes note of its unknown properties.
    ///
    /// # Errors
    /// All problems, if the body does not fit its type, if the operation refuses unknown properties, or if a
    /// change would change nothing because all its properties are unknown.
    pub(super) fn admit(self, server: &Server, is_change: bool) -> ApiResult<T> {
        let unknown = self.unknown;
        let is_without_effect =
            is_change && !self.has_known && !operation().refuses_unknown_members;
        let refusals = if is_without_effect {
            unknown.named().map(Warning::refusal).collect()
        } else {
            Vec::new()
        };
        match self.body {
            Ok(body) if refusals.is_empty() => {
                admit_unknown(server, unknown)?;
                Ok(body)
            }
            Ok(_) => Err(errors::invalid(refusals).into()),
            Err(problems) => {
                let unfit = Unfit { problems, unknown };
                let problems = [unfit.problems(server), refusals].concat();
                Err(errors::invalid(problems).into())
            }
        }
    }
}

/// Takes note of the unknown properties of the body of the request being answered. An operation
/// that refuses them does so. If `sessions.unknown_members` is `warn`, it refuses only those that
/// may be misspelled or misplaced restrictions.
///
/// # Errors
/// `4300` with every refused property that was noted.
pub fn admit_unknown(server: &Server, warnings: Warnings) -> ApiResult<()> {
    if operation().refuses_unknown_members && !warnings.is_empty() {
        errors::refuse_problems(refused_members(server, &warnings), errors::session_invalid)?;
        let warnings: Vec<_> = warnings.named().map(Warning::to_string).collect();
        let warnings = warnings.join(", ");
        tracing::warn!(warnings, "a request to a session has unknown members");
    }
    CURRENT_REQUEST.with(|context| context.warnings.lock().extend(warnings));
    Ok(())
}

/// Returns the lines for the unknown properties that the operation refuses.
fn refused_members(server: &Server, unknown: &Warnings) -> Vec<String> {
    if !operation().refuses_unknown_members {
        return Vec::new();
    }
    // Of more properties than are noted, one could be a restriction.
    let accepts_others =
        server.config.sessions.unknown_members == UnknownMembers::Warn && unknown.unnamed() == 0;
    let mut lines: Vec<_> = unknown
        .named()
        .filter(|warning| !accepts_others || warning.may_restrict)
        .map(Warning::refusal)
        .collect();
    if let more @ 1.. = unknown.unnamed() {
        lines.push(format!("and {more} more unknown body members"));
    }
    lines
}

/// Parses a JSON object strictly. An empty body is read as an empty object.
///
/// # Errors
/// The problem with the bytes.
pub(super) fn parse_object<T: DeserializeOwned>(
    bytes: &[u8],
    branding: &Branding,
) -> ApiResult<ReadObject<T>> {
    let parsed = || strict_object(bytes).map(|object| branding.restore(object.into()));
    let value = parsed().map_err(errors::invalid)?;
    let (body, notes) = match members::read(value) {
        Ok((body, notes)) => (Ok(body), notes),
        Err(_) => {
            let (lines, notes) = members::problems::<T>(parsed().map_err(errors::invalid)?);
            let renamed = lines.iter().map(|line| branding.rename(line).into_owned());
            (Err(renamed.collect()), notes)
        }
    };
    Ok(ReadObject {
        body,
        has_known: notes.has_known,
        unknown: notes.warnings,
    })
}

/// Parses a JSON object strictly. An empty body is read as an empty object.
///
/// # Errors
/// The problem with the bytes.
fn strict_object(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { bytes };
    let value = json::parse(bytes).map_err(|problem| problem.line(DOCUMENT_NAME))?;
    // serde would deserialize a struct from an array of its properties in order.
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(NOT_AN_OBJECT.to_owned()),
    }
}

/// Parses a JSON object whose parts are borrowed from its bytes. Returns also the warnings about
/// unknown properties.
///
/// # Errors
/// If the bytes are not an object that fits the type.
pub fn borrowed_object<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> ApiResult<(T, Warnings)> {
    borrowed(bytes).map_err(|unfit| errors::invalid(unfit.problems).into())
}

/// Parses as [`borrowed_object`] does, for operations with errors of their own.
///
/// # Errors
/// Every problem with the bytes.
pub fn borrowed<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<(T, Warnings), Unfit> {
    let json: &[u8] = if bytes.is_empty() { b"{}" } else { bytes };
    // serde would deserialize a struct from an array of its properties in order.
    if json.trim_ascii_start().first() != Some(&b'{') {
        return Err(NOT_AN_OBJECT.to_owned().into());
    }
    let mut notes = Notes::default();
    let mut reader = serde_json::Deserializer::from_slice(json);
    let body = T::deserialize(Noting::new(&mut reader, &mut notes));
    body.and_then(|body| reader.end().map(|()| (body, notes.warnings)))
        .map_err(|_| match strict_object(bytes) {
            Ok(object) => {
                let (problems, found) = members::problems::<T>(object.into());
                let unknown = found.warnings;
                Unfit { problems, unknown }
            }
            Err(line) => line.into(),
        })
}
