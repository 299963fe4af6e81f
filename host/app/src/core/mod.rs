//! The parts that every module uses: the clock, ids, errors, strict JSON, placeholders, sealed secrets,
//! escaping of invisible characters, misspelled names, caches of what was read, the threads for work
//! on large bodies, and the shares of projects in the processors. This module imports no other module
//! of the crate except the [`App`](crate::App) that it is part of.

mod class;
pub mod clock;
pub(crate) mod error;
pub mod errors;
pub mod ids;
pub mod json;
pub(crate) mod large_pages;
pub mod large_work;
pub mod mapping;
pub(crate) mod read_cache;
pub mod request_id;
pub mod shares;
pub mod spelling;
pub mod trace;
pub mod vault;
pub mod visible;

/// The value of the project field in records that belong to the whole installation.
pub(crate) const INSTALLATION_PROJECT: &str = "installation";
/// Target of log lines about changes that operators want to trace: keys, members, settings,
/// publications. The lines name ids, never values.
pub(crate) const AUDIT_LOG_TARGET: &str = "toolhost::audit";
/// Length in characters of the shortest secret of which responses show a part.
pub(crate) const MIN_SHOWN_SECRET_CHARS: usize = 8;

/// Truncates an untrusted string for use in a message.
#[must_use]
pub fn truncate(text: &str) -> String {
    text.chars().take(80).collect()
}
