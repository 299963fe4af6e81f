//! Information that the platform gives to a call about itself. It never contains a secret.

use std::cell::RefCell;
use std::time::Duration;

use crate::{ToolError, clock};

#[derive(Default)]
pub(crate) struct Context {
    pub(crate) run_id: String,
    pub(crate) user_id: String,
    pub(crate) fields: Vec<(String, String)>,
    /// Wall-clock time that the call had when it started, in milliseconds.
    pub(crate) deadline_ms: u64,
}

thread_local! {
    static CURRENT_CONTEXT: RefCell<Context> = const {
        RefCell::new(Context { run_id: String::new(), user_id: String::new(), fields: Vec::new(), deadline_ms: 0 })
    };
}

pub(crate) fn set(context: Context) {
    CURRENT_CONTEXT.set(context);
}

/// Returns a non-secret field of the connected account, for example `subdomain`.
#[must_use]
pub fn field(name: &str) -> Option<String> {
    CURRENT_CONTEXT.with_borrow(|context| {
        context
            .fields
            .iter()
            .find(|(field, _)| field == name)
            .map(|(_, value)| value.clone())
    })
}

/// Returns a non-secret field of the connected account that the call cannot do without.
///
/// # Errors
/// `unauthorized` if the connected account lacks the field.
pub fn require(name: &str) -> crate::Result<String> {
    let hint = "connect the account again and enter a value for it";
    field(name).ok_or_else(|| {
        ToolError::unauthorized(format!("the connected account has no `{name}`; {hint}"))
    })
}

/// Returns the identifier of this run in logs.
#[must_use]
pub fn run_id() -> String {
    CURRENT_CONTEXT.with_borrow(|context| context.run_id.clone())
}

/// Returns the project's own identifier of the user on whose behalf the call runs. Empty if the
/// call runs for no user.
#[must_use]
pub fn user_id() -> String {
    CURRENT_CONTEXT.with_borrow(|context| context.user_id.clone())
}

/// Returns the wall-clock time that this call may still take.
#[must_use]
pub fn remaining() -> Duration {
    Duration::from_millis(CURRENT_CONTEXT.with_borrow(|context| context.deadline_ms))
        .saturating_sub(clock::elapsed())
}
