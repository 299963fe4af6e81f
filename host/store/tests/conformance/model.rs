//! The reference: the simplest implementation of a batch.

use host_store::{
    Batch, Collection, CommitError, Kind, Page, Query, Record, Row, Scalar, Step, Write,
};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};

#[derive(Clone, Default)]
pub(crate) struct Model(BTreeMap<(&'static str, String), Row>);

impl Model {
    pub(crate) fn find(&self, collection: &'static Collection, query: &Query) -> Page {
        let rows = self
            .0
            .iter()
            .filter(|((name, _), _)| *name == collection.name)
            .map(|(_, row)| row.clone());
        query.run(collection, rows).unwrap()
    }

    pub(crate) fn get(&self, collection: &'static Collection, id: &str) -> Option<&Row> {
        self.0.get(&(collection.name, id.to_owned()))
    }

    pub(crate) fn commit(&mut self, batch: &Batch) -> Result<(), CommitError> {
        let mut after = self.0.clone();
        let mut claimed = HashSet::new();
        let mut writes = batch.writes.clone();
        writes.sort_by(|a, b| (a.collection.name, &a.id).cmp(&(b.collection.name, &b.id)));
        for Write {
            collection,
            project,
            id,
            step,
            ..
        } in writes
        {
            let key = (collection.name, id.clone());
            let old = self.0.get(&key);
            let revision = match step {
                Step::Insert { .. } | Step::Restore { .. } => 0,
                Step::Update { revision, .. }
                | Step::Remove { revision }
                | Step::Purge { revision }
                | Step::Check { revision } => revision,
            };
            let purge = matches!(step, Step::Purge { .. });
            let new = match (step, old) {
                (Step::Insert { .. } | Step::Restore { .. }, Some(_)) => {
                    return Err(CommitError::Taken {
                        collection: collection.name,
                        field: "id",
                    });
                }
                (Step::Insert { created_at, body }, None) => {
                    let updated_at = batch.now;
                    Record {
                        id,
                        project,
                        revision: 1,
                        created_at,
                        updated_at,
                        deleted_at: None,
                        body,
                    }
                }
                (
                    Step::Restore {
                        revision,
                        created_at,
                        updated_at,
                        deleted_at,
                        body,
                    },
                    None,
                ) => Record {
                    id,
                    project,
                    revision,
                    created_at,
                    updated_at,
                    deleted_at,
                    body,
                },
                (_, old)
                    if old
                        .is_none_or(|old| (&old.project, old.revision) != (&project, revision)) =>
                {
                    return Err(CommitError::Stale);
                }
                (_, Some(old)) if !old.is_live() && !purge => return Err(CommitError::Stale),
                (Step::Check { .. }, _) => continue,
                (Step::Purge { .. }, _) => {
                    after.remove(&key);
                    continue;
                }
                (step, old) => {
                    let mut row = old.unwrap().clone();
                    (row.revision, row.updated_at) = (revision + 1, batch.now);
                    match step {
                        Step::Update { body, .. } => row.body = body,
                        _ => row.deleted_at = Some(batch.now),
                    }
                    row
                }
            };
            for (field, claim) in claims(collection, &new) {
                let own = old
                    .is_some_and(|old| claims(collection, old).contains(&(field, claim.clone())));
                let others = self.0.iter().any(|((name, _), row)| {
                    *name == collection.name
                        && row.project == new.project
                        && claims(collection, row).contains(&(field, claim.clone()))
                });
                if !own
                    && (others
                        || !claimed.insert((collection.name, new.project.clone(), field, claim)))
                {
                    return Err(CommitError::Taken {
                        collection: collection.name,
                        field,
                    });
                }
            }
            after.insert(key, new);
        }
        self.0 = after;
        Ok(())
    }
}

fn claims(collection: &'static Collection, row: &Row) -> Vec<(&'static str, Scalar)> {
    let body: Value = serde_json::from_slice(&row.body).unwrap();
    let unique = collection
        .fields
        .iter()
        .filter(|field| field.unique && row.is_live());
    unique
        .filter_map(|field| match (field.kind, &body[field.name]) {
            (Kind::Text, Value::String(text)) => Some((field.name, text.into())),
            _ => None,
        })
        .collect()
}
