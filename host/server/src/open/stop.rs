//! Reasons why commands end without doing their work.

use std::fmt::Display;

/// Exit code of a start that would lose or expose data: the store is damaged, or the key is wrong
/// or unsafe.
const EXIT_REFUSED: u8 = 78;

/// Reason why a command ends without doing its work, as a message for the operator and an exit code.
#[derive(Debug)]
pub(crate) struct Stop {
    /// The problem and its remedy.
    pub line: String,
    /// The exit code of the process.
    pub code: u8,
    /// True if another process has locked the store.
    pub locked: bool,
}

impl Stop {
    /// Stops with exit code 1.
    pub(super) fn failed(cause: impl Display) -> Self {
        Self {
            line: cause.to_string(),
            code: 1,
            locked: false,
        }
    }

    /// Stops because starting would lose or expose data.
    pub(super) fn refused(cause: impl Display) -> Self {
        Self {
            code: EXIT_REFUSED,
            ..Self::failed(cause)
        }
    }
}

impl From<anyhow::Error> for Stop {
    fn from(cause: anyhow::Error) -> Self {
        Self::failed(format_args!("{cause:#}"))
    }
}

impl From<app::Error> for Stop {
    fn from(cause: app::Error) -> Self {
        Self::failed(cause)
    }
}
