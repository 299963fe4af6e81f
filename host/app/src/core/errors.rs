//! Errors that any module may return, and those that failures of the store become.
//!
//! The errors of a module include those of the modules below it, so that code names each error as
//! `errors::name`.

use std::fmt::Display;

use gate::{Busy, Capacity};

use super::error::{Error, Problems, Result, SHORT_WAIT};

crate::error_table! { pub table:
    /// The request is invalid.
    INVALID = invalid(problems: impl Into<Problems>): Invalid, 10400, "Request_Invalid",
        "the request is invalid",
        "correct the problems that the error lists", with_problems(problems);
    /// The text cannot be an id of this kind, which is named with its article. It is not repeated, because it
    /// could be a secret.
    MALFORMED_ID = malformed_id(kind: &str, prefix: &str): Invalid, 10422, "Request_MalformedId",
        "the text is not the id of {kind}: `{prefix}` and at least 12 letters or digits",
        "send the id exactly as the server returned it";

    /// The project has too many calls running, or they hold too much. Nothing was started.
    PROJECT_BUSY = project_busy(capacity: Capacity): LimitReached, 10431, "Server_ProjectBusy",
        "the project has reached its limit of {capacity}",
        "nothing was started: retry after a moment", with_retry_after(SHORT_WAIT);
    /// The node has too many calls running, or they hold too much. Nothing was started.
    NODE_BUSY = node_busy(capacity: Capacity): Unavailable, 10503, "Server_Busy",
        "the server has reached its limit of {capacity}",
        "nothing was started: retry after a moment", with_retry_after(SHORT_WAIT);
    /// The operation exceeded its deadline.
    DEADLINE = deadline(seconds: u64): Unavailable, 10504, "Server_DeadlineExceeded",
        "the operation took longer than {seconds} s",
        "retry; if it fails again, request less in one operation", with_retry_after(SHORT_WAIT);
    /// A service that the server depends on does not answer.
    UNAVAILABLE = unavailable(reason: impl Display): Unavailable, 10503, "Server_Unavailable",
        "the server cannot perform the operation now: {reason}",
        "retry after a moment", with_retry_after(SHORT_WAIT);
    /// The disk is full.
    STORAGE_FULL = storage_full(): StorageFull, 10507, "Server_StorageFull",
        "the server's storage is full",
        "nothing was changed: ask the operator to free disk space";
    /// A fault of the server. The reason is for the server's log, not for callers.
    INTERNAL = internal(reason: impl Display): Internal, 10500, "Server_InternalError",
        "internal error: {reason}",
        "send the `request_id` to the operator; the server's log has the reason";
}

impl From<store::Error> for Error {
    fn from(cause: store::Error) -> Self {
        match cause {
            store::Error::Full => storage_full(),
            store::Error::Unavailable(_) => unavailable(cause),
            // Damaged data, or a query that the store does not support.
            other => internal(other),
        }
    }
}

impl From<store::EditError<Error>> for Error {
    fn from(cause: store::EditError<Error>) -> Self {
        match cause {
            store::EditError::Change(cause) => cause,
            store::EditError::Read(cause) => cause.into(),
            store::EditError::Commit(cause) => cause.into(),
        }
    }
}

impl From<store::CommitError> for Error {
    fn from(cause: store::CommitError) -> Self {
        match cause {
            store::CommitError::Full => storage_full(),
            store::CommitError::Invalid(_) => internal(cause),
            other => unavailable(other),
        }
    }
}

/// Returns the error for a request that gets no permit of a limited capacity.
#[must_use]
pub fn busy(capacity: Capacity, busy: Busy) -> Error {
    match busy {
        Busy::Own => project_busy(capacity),
        Busy::Others => node_busy(capacity),
    }
}

/// Collects the results of several checks of a request. Fails with the error of the first check
/// that failed, with the problems that the others found, too.
pub fn collect_all<T, C: Default + Extend<T>>(
    checks: impl IntoIterator<Item = Result<T>>,
) -> Result<C> {
    let mut values = C::default();
    let mut failed: Option<Error> = None;
    for check in checks {
        match check {
            Ok(value) => values.extend([value]),
            Err(error) => {
                failed = Some(match failed {
                    Some(first) => first.and(error),
                    None => error,
                });
            }
        }
    }
    failed.map_or(Ok(values), Err)
}

/// Returns both results of two checks of a request. Fails with the error of the first check that
/// failed, with the problems that the other one found, too.
pub fn both<A, B>(first: Result<A>, second: Result<B>) -> Result<(A, B)> {
    match (first, second) {
        (Ok(first), Ok(second)) => Ok((first, second)),
        (Err(first), Err(second)) => Err(first.and(second)),
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

/// Refuses a request that has problems. Fails with the error that `refuse` makes of the problems.
pub fn refuse_problems(
    problems: Vec<String>,
    refuse: impl FnOnce(Vec<String>) -> Error,
) -> Result<()> {
    if problems.is_empty() {
        return Ok(());
    }
    Err(refuse(problems))
}
