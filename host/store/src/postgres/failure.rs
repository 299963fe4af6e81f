//! Classification of database errors.
//!
//! The codes are the server's, from PostgreSQL's appendix of error codes.

use crate::Error;

pub(super) const NO_ANSWER: &str = "the database does not answer";

pub(super) fn no_answer() -> Error {
    Error::Unavailable(NO_ANSWER.to_owned())
}

/// Returns true if the connection was lost or the server gave up the work, so that an immediate
/// retry may succeed.
pub(super) fn is_transient(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(cause) => {
            let code = cause.code().unwrap_or_default();
            // Connection exceptions, shutdown and start of the server, serialization failure and
            // deadlock, too many connections, a transaction that was idle for too long.
            code.starts_with("08")
                || [
                    "57P01", "57P02", "57P03", "40001", "40P01", "53300", "25P03",
                ]
                .contains(&&*code)
        }
        _ => false,
    }
}

/// Returns true if a later start may succeed without a change of the settings or of the database.
pub(super) fn is_temporary(error: &sqlx::Error) -> bool {
    let code = code(error);
    // Insufficient resources, interventions of the database's operator, a lock that another process
    // holds.
    (is_transient(error) && !is_tls(error))
        || code.starts_with("53")
        || code.starts_with("57")
        || code == "55P03"
}

/// Returns true if the TLS handshake with the server failed.
pub(super) fn is_tls(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Tls(_) => true,
        sqlx::Error::Io(error) => error.kind() == std::io::ErrorKind::InvalidData,
        _ => false,
    }
}

/// Describes an error without the data of the statement.
pub(super) fn reason(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::PoolTimedOut => "no connection to the database was free in time".to_owned(),
        sqlx::Error::PoolClosed => "the store was closed".to_owned(),
        sqlx::Error::Tls(error) => format!("no encrypted connection to the database: {error}"),
        sqlx::Error::Io(error) => format!("the connection to the database is lost: {error}"),
        sqlx::Error::Database(cause) => {
            format!(
                "the database reported: {} ({})",
                cause.message(),
                cause.code().unwrap_or_default()
            )
        }
        error => format!("the database cannot be queried: {error}"),
    }
}

/// Returns the error code of the server, or an empty string where the error lacks one.
pub(super) fn code(error: &sqlx::Error) -> String {
    error
        .as_database_error()
        .and_then(|cause| cause.code())
        .unwrap_or_default()
        .into_owned()
}

/// Converts the error of a read.
pub(super) fn read_error(error: &sqlx::Error) -> Error {
    match &*code(error) {
        // Data corrupted, index corrupted.
        "XX001" | "XX002" => Error::Damaged {
            what: "the database".to_owned(),
            reason: reason(error),
        },
        _ => Error::Unavailable(reason(error)),
    }
}

/// Returns true if the disk of the server is full.
pub(super) fn is_full(error: &sqlx::Error) -> bool {
    code(error) == "53100"
}

/// Returns true if the data itself is refused: malformed JSON, a character the database cannot
/// hold, an overlong index entry.
pub(super) fn is_invalid_data(error: &sqlx::Error) -> bool {
    let code = code(error);
    code.starts_with("22") || code.starts_with("54")
}
