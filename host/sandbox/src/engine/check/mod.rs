//! Checks the content of a component before anything is compiled.
//!
//! Guarantee: the check takes time bounded by the size of the file, and the counts bound the cost
//! of compiling and running the component.
//!
//! The component is read section by section. Nothing is validated in depth and no function body is
//! decoded. The compiler decides whether the component is valid WebAssembly.

mod imports;
mod survey;

use manifest::Manifest;

use super::error::InstallError;
use crate::trace::{cut, one_line};
use survey::Survey;

pub use imports::{import_advice, is_import_available};
pub use survey::{MAX_FUNCTION_BYTES, MAX_FUNCTIONS};

/// Maximum number of problems to list one by one.
const MAX_LISTED_PROBLEMS: usize = 50;

/// Manifest and imports of a component that passed the check.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) manifest: Manifest,
    pub(crate) imports: Vec<String>,
}

/// Reads a component and lists all of its problems, or its exceeded limits if those are the only
/// problems.
pub(crate) fn check(component: &[u8]) -> Result<Checked, InstallError> {
    let mut problems = Vec::new();
    let manifest = match manifest::extract(component) {
        Ok(manifest) => {
            problems.extend(manifest.problems());
            Some(manifest)
        }
        Err(
            unreadable @ (manifest::ReadError::Missing
            | manifest::ReadError::Duplicate
            | manifest::ReadError::Invalid(_)),
        ) => {
            problems.push(unreadable.to_string());
            None
        }
        // The file is not a component, so no further check applies.
        Err(unreadable) => return Err(InstallError::Refused(vec![unreadable.to_string()])),
    };
    let mut survey = Survey::default();
    if let Err(broken) = survey.read(component) {
        survey.problem(format!("the component is not valid: {broken}"));
    }
    let Survey {
        problems: found,
        over,
        imports,
        ..
    } = survey.finish();
    problems.extend(found);
    match manifest {
        Some(manifest) if problems.is_empty() && over.is_empty() => {
            Ok(Checked { manifest, imports })
        }
        Some(_) if problems.is_empty() => Err(InstallError::PastLimit(listed(over))),
        _ => Err(InstallError::Refused(listed([problems, over].concat()))),
    }
}

/// Limits the number and the length of the problem lines.
fn listed(mut problems: Vec<String>) -> Vec<String> {
    let more = problems.len().saturating_sub(MAX_LISTED_PROBLEMS);
    problems.truncate(MAX_LISTED_PROBLEMS);
    if more > 0 {
        problems.push(format!("and {more} more problems"));
    }
    problems
        .iter()
        .map(|problem| one_line(cut(problem, 500)))
        .collect()
}

#[cfg(test)]
mod tests;
