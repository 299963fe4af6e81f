//! Counters of a project's records in a collection. Each change updates them, so a total needs no
//! counting.

use super::keys::Key;
use super::records::unreachable_tree;
use crate::Error;
use ::sled::Db;

/// Number of live and removed records, or a change of these numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) live: i64,
    pub(super) removed: i64,
}

impl Count {
    pub(super) fn encode(self) -> Vec<u8> {
        [self.live.to_le_bytes(), self.removed.to_le_bytes()].concat()
    }
}

/// Decodes a counter's value. A missing value counts as zero.
pub(super) fn decode(project: &str, value: Option<&[u8]>) -> Result<Count, Error> {
    let Some(value) = value else {
        return Ok(Count::default());
    };
    let broken = || Error::Damaged {
        what: format!("a counter of project {project}"),
        reason: "it is truncated".into(),
    };
    let (live, rest) = value.split_first_chunk::<8>().ok_or_else(broken)?;
    let removed: &[u8; 8] = rest.try_into().map_err(|_| broken())?;
    Ok(Count {
        live: i64::from_le_bytes(*live),
        removed: i64::from_le_bytes(*removed),
    })
}

/// Reads the counter of one project.
pub(super) fn read(db: &Db, number: u16, project: &str) -> Result<Count, Error> {
    let value = db
        .get(Key::counter(number, project).bytes())
        .map_err(|error| unreachable_tree(&error))?;
    decode(project, value.as_deref())
}

/// Lists the projects that have records in a collection, removed ones included.
pub(super) fn projects(db: &Db, number: u16) -> Result<Vec<String>, Error> {
    let start = Key::collection(super::keys::Prefix::Counter, number);
    let keys = db.scan_prefix(start.bytes()).keys();
    keys.map(|key| {
        let key = key.map_err(|error| unreachable_tree(&error))?;
        String::from_utf8(key[start.len()..].to_vec()).map_err(|_| Error::Damaged {
            what: "a counter".into(),
            reason: "its project is not text".into(),
        })
    })
    .collect()
}
