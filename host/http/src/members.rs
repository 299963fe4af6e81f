//! JSON values read as the types of bodies: every wrong property is named with its path, and
//! unknown properties are noted, except inside a part with `#[serde(flatten)]`.

use app::core::json::{Problem, Reader, all_problems};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

use crate::noting::{Notes, Noting};

/// Path of the whole in problems.
pub(crate) const DOCUMENT_NAME: &str = "body";

/// Reads a value. Returns also the notes about its members.
///
/// # Errors
/// The first problem, if the value does not fit the type.
pub fn read<T: DeserializeOwned>(value: Value) -> Result<(T, Notes), Problem> {
    let mut notes = Notes::default();
    let read = T::deserialize(Noting::new(Reader::new(value), &mut notes));
    read.map(|body| (body, notes))
}

/// Returns every problem of a value that does not fit the type, and the notes about its members. A name that
/// was sent instead of a missing one is only in the problem.
pub(crate) fn problems<'de, T: Deserialize<'de>>(value: Value) -> (Vec<String>, Notes) {
    let mut notes = Notes::default();
    let lines = all_problems(value, DOCUMENT_NAME, |reader| {
        notes = Notes::default();
        T::deserialize(Noting::new(reader, &mut notes)).err()
    });
    notes.warnings.remove_named_by(&lines);
    (lines, notes)
}

/// Deserializes a property whose null differs from its absence.
///
/// # Errors
/// If the value does not fit the type.
pub fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only the reading of its members is tested")]
    struct Body {
        name: String,
    }

    #[test]
    fn misspelled_required_name_is_one_problem() {
        let (lines, notes) = problems::<Body>(json!({"nmae": "a", "other": 1}));
        let expected = "name: is required; `nmae` was sent: did you mean `name`?";
        assert_eq!(lines, [expected]);
        let warnings = notes.warnings.named().map(ToString::to_string);
        let expected = ["unknown body member `other` is ignored"];
        assert_eq!(warnings.collect::<Vec<_>>(), expected);
    }
}
