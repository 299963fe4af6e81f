//! What the platform tells a call about itself. Never a secret.

use std::cell::RefCell;
use std::time::Duration;

use crate::{ToolError, clock};

#[derive(Default)]
pub(crate) struct Context {
    pub(crate) run_id: String,
    pub(crate) user_id: String,
    pub(crate) fields: Vec<(String, String)>,
    /// Wall-clock time the call had when it began.
    pub(crate) deadline_ms: u64,
}

thread_local! {
    static CONTEXT: RefCell<Context> = const {
        RefCell::new(Context { run_id: String::new(), user_id: String::new(), fields: Vec::new(), deadline_ms: 0 })
    };
}

pub(crate) fn set(context: Context) {
    CONTEXT.set(context);
}

/// A non-secret field of the connected account, for example `subdomain`.
#[must_use]
pub fn field(name: &str) -> Option<String> {
    CONTEXT
        .with_borrow(|context| context.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.clone()))
}

/// A non-secret field of the connected account that must be there.
///
/// # Errors
/// `unauthorized` when the account has no such field.
pub fn require(name: &str) -> crate::Result<String> {
    let hint = "connect the account again and fill it in";
    field(name).ok_or_else(|| ToolError::unauthorized(format!("the connected account has no `{name}`; {hint}")))
}

/// Identifies this run in logs.
#[must_use]
pub fn run_id() -> String {
    CONTEXT.with_borrow(|context| context.run_id.clone())
}

/// The project's own name for the person on whose behalf the call runs; empty when there is none.
#[must_use]
pub fn user_id() -> String {
    CONTEXT.with_borrow(|context| context.user_id.clone())
}

/// Wall-clock time this call may still take.
#[must_use]
pub fn remaining() -> Duration {
    Duration::from_millis(CONTEXT.with_borrow(|context| context.deadline_ms)).saturating_sub(clock::elapsed())
}
