//! The records of an installation, and the clock that they tell the time of.

use std::{
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use app::{Clock, Time};
use settings::Config;
use store::{DatabaseState, Store};

use super::Finding::{self, Bad, Good, Note};
use crate::open;

/// Clock difference, in milliseconds, above which signed links and leases are unreliable.
const MAX_CLOCK_SKEW_MS: i64 = 5_000;

/// Records of the installation, as far as they can be seen without opening the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Records {
    /// The first start creates them.
    Missing,
    /// An earlier start created them.
    Present,
    /// The store or the database cannot be used.
    Unknown,
}

/// Another clock that the clock of this machine is compared with.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reference {
    /// The time of the database, and the time of this machine when it arrived.
    Database {
        theirs: Time,
        ours: Time,
    },
    /// Time at which the store was last written.
    LastWrite(Time),
    None,
}

/// Compares the database with the collections of this version.
pub(super) async fn database(config: &Config, url: &str) -> (Finding, Records, Reference) {
    if config.data.exists()
        && let Err(stop) = open::check_private(&config.data)
    {
        return (Bad(stop.line), Records::Unknown, Reference::None);
    }
    let DatabaseState {
        is_new,
        missing,
        now,
    } = match Store::inspect_database(url, app::COLLECTIONS).await {
        Ok(state) => state,
        Err(cause) => return (Bad(cause.to_string()), Records::Unknown, Reference::None),
    };
    let reference = Reference::Database {
        theirs: now,
        ours: Clock::system().now(),
    };
    if is_new {
        let text = "the database can be used; the first start creates its tables";
        return (Good(text.to_owned()), Records::Missing, reference);
    }
    let text = match missing {
        0 => "the database can be used and has every table and index".to_owned(),
        missing => format!(
            "the database can be used; {missing} of its tables, columns and indexes are missing, and the next start adds them"
        ),
    };
    (Good(text), Records::Present, reference)
}

/// Checks the files of the embedded store, which stays closed.
pub(super) fn embedded(config: &Config, running: bool) -> (Finding, Records, Reference) {
    let shown = config.data.display();
    if !config.data.exists() {
        let text = format!("the data directory {shown} does not exist; the first start creates it");
        return (Good(text), Records::Missing, Reference::None);
    }
    if let Err(stop) = open::check_private(&config.data) {
        return (Bad(stop.line), Records::Unknown, Reference::None);
    }
    let folder = open::store_folder(&config.data);
    let reference = last_write(&folder).map_or(Reference::None, Reference::LastWrite);
    match Store::inspect(&folder) {
        Ok(true) if running => {
            let text = format!(
                "a server has the store in {shown} open, and only its owner has access to it"
            );
            (Good(text), Records::Present, reference)
        }
        Ok(true) => {
            let text = format!(
                "only its owner has access to the store in {shown}; no record was read: `toolhost verify` reads all"
            );
            (Good(text), Records::Present, reference)
        }
        Ok(false) => {
            let text =
                format!("the data directory {shown} has no store; the first start creates it");
            (Good(text), Records::Missing, Reference::None)
        }
        Err(cause) => (Bad(cause.to_string()), Records::Unknown, reference),
    }
}

/// Returns the time of the newest file in a folder.
fn last_write(folder: &Path) -> Option<Time> {
    let newest: SystemTime = folder
        .read_dir()
        .ok()?
        .filter_map(|entry| entry.ok()?.metadata().ok()?.modified().ok())
        .max()?;
    let since = newest.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok().map(Time)
}

/// Compares the clock of this machine with another one. Any further clock would require sending a
/// request.
pub(super) fn clock(reference: Reference) -> Finding {
    match reference {
        Reference::Database { theirs, ours } => {
            let skew = (ours.0 - theirs.0).abs();
            if skew > MAX_CLOCK_SKEW_MS {
                return Bad(format!(
                    "the clock differs by {} s from the clock of the database: correct the time of both machines",
                    skew / 1000
                ));
            }
            Good("the clock agrees with the clock of the database".to_owned())
        }
        Reference::LastWrite(at) => {
            let ahead = at.0 - Clock::system().now().0;
            if ahead > MAX_CLOCK_SKEW_MS {
                return Bad(format!(
                    "the store was written {} s after the time of this machine, so the clock was set back: correct the time",
                    ahead / 1000
                ));
            }
            Good("no file of the store is from the future; the clock was compared with no other clock".to_owned())
        }
        Reference::None => Note("the clock was compared with no other clock".to_owned()),
    }
}
