//! The workflow that calls of meta tools belong to. It is a name that the assistant repeats, so that
//! the calls of one task can be told from those of another; it is not a tool router session.

use serde::Serialize;

use crate::core::ids::random_text;

/// Number of random characters in the id of a workflow.
const ID_CHARS: usize = 8;
/// Maximum number of characters of an id that the assistant sends.
const MAX_ID_CHARS: usize = 64;

/// The workflow of a call, as results of meta tools show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Workflow {
    /// Id of the workflow.
    pub id: String,
    /// Instructions for the assistant.
    pub instructions: String,
}

impl Workflow {
    /// Returns the workflow that a call names, or a new one.
    #[must_use]
    pub fn new(given: Option<&str>) -> Self {
        let sent_id = given.map(str::trim).filter(|id| !id.is_empty());
        let id: String = sent_id.map_or_else(
            || random_text(ID_CHARS),
            |id| id.chars().take(MAX_ID_CHARS).collect(),
        );
        Self {
            instructions: format!("Send \"{id}\" as `session_id` in further calls of this task."),
            id,
        }
    }
}
