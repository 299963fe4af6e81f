//! The plan of a change: which records of a session it updates, and which are not needed afterwards.

use std::collections::{BTreeMap, HashMap};

use store::{Record, Time};

use super::Stored;
use crate::{Result, agents::errors};

/// The steps of one exchange.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) updated: Vec<Record<Stored>>,
    /// Records to erase after the exchange.
    pub(super) replaced: Vec<Record<Stored>>,
    pub(super) removed_bytes: u64,
    pub(super) added_bytes: u64,
}

impl Plan {
    pub(super) fn new(
        records: Vec<Record<Stored>>,
        sizes: &BTreeMap<String, Option<u64>>,
        written: &HashMap<String, String>,
        now: Time,
    ) -> Result<Self> {
        let mut plan = Self::default();
        let mut files = HashMap::new();
        let mut temporary = HashMap::new();
        for record in records {
            if record.body.place.is_some() {
                files.insert(record.body.path.clone(), record);
            } else if record.body.is_expired(now) {
                plan.replaced.push(record);
            } else {
                temporary.insert(record.id.clone(), record);
            }
        }
        for (path, size) in sizes {
            let file = files.remove(path);
            match (size, file) {
                (None, None) => {}
                (None, Some(file)) => plan.remove(file, now),
                (Some(_), file) => {
                    let new = written
                        .get(path)
                        .and_then(|id| temporary.remove(id))
                        .ok_or_else(|| {
                            errors::unavailable("the files of the session were erased meanwhile")
                        })?;
                    plan.write(file, new);
                }
            }
        }
        let unused = files.into_values();
        plan.replaced
            .extend(unused.filter(|file| file.body.is_expired(now)));
        Ok(plan)
    }

    fn remove(&mut self, mut file: Record<Stored>, now: Time) {
        self.removed_bytes += file.body.size;
        (file.body.place, file.body.size) = (None, 0);
        file.body.expires_at = Some(now);
        self.replaced.push(file.clone());
        self.updated.push(file);
    }

    /// Gives the content of a temporary record to a file, which is created if it does not exist.
    fn write(&mut self, file: Option<Record<Stored>>, mut new: Record<Stored>) {
        self.added_bytes += new.body.size;
        let Some(mut file) = file else {
            let Stored { session, path, .. } = &new.body;
            new.body.place = Some(format!("{session}/{path}"));
            new.body.expires_at = None;
            self.updated.push(new);
            return;
        };
        self.removed_bytes += file.body.size;
        std::mem::swap(&mut file.body.blob, &mut new.body.blob);
        file.body.size = std::mem::take(&mut new.body.size);
        file.body.modified_at = new.body.modified_at;
        file.body.expires_at = None;
        self.replaced.push(new.clone());
        self.updated.extend([file, new]);
    }
}
