//! Reads and updates of single records, which share statements ([`sharing`](super::sharing)).
//!
//! A shared update is that of batches which consist of one update each. It skips records that are
//! not as they were read, and those that are locked, so that it waits for no other transaction. The
//! batches of skipped records are applied alone, which tells why.

use super::sharing::SharedCalls;
use super::{Frequency, Postgres, Statements, failure, quoted, text};
use crate::values::Values;
use crate::{Collection, Error, Row, Step, Time, Write};
use sqlx::{AssertSqlSafe, Row as _};
use std::collections::HashMap;
use std::sync::Arc;

/// Calls for single records of a collection.
pub(super) struct SingleRecords {
    /// Reads by id. An error is the reason why the store is unavailable.
    reads: SharedCalls<String, Result<Option<Row>, String>>,
    /// The answers are true for updates that were applied.
    updates: SharedCalls<Update, bool>,
    update_sql: String,
    /// True if some fields are unique. Their updates need statements of their own.
    has_unique: bool,
}

/// A batch of one update.
struct Update {
    id: String,
    project: String,
    revision: i64,
    body: String,
    now: Time,
}

impl SingleRecords {
    pub(super) fn new(collection: &Collection) -> Self {
        let table = quoted(collection.name);
        let update_sql = format!(
            "with held as materialized (select old.place, given.body, given.now, given.number \
                 from unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[]) \
                 with ordinality as given(id, project, revision, body, now, number), \
                 lateral (select t.ctid as place from {table} as t \
                     where t.id = given.id and t.project = given.project \
                     and t.revision = given.revision and num_nulls(t.deleted_at) = 1 \
                     for update skip locked) as old) \
             update {table} as t set revision = t.revision + 1, updated_at = held.now, body = held.body::json \
                 from held where t.ctid = held.place returning held.number"
        );
        SingleRecords {
            reads: SharedCalls::default(),
            updates: SharedCalls::default(),
            update_sql,
            has_unique: collection.fields.iter().any(|field| field.unique),
        }
    }
}

impl Postgres {
    /// Reads a record together with others. Returns `None` if the statement was cut off.
    pub(super) async fn get_shared(
        &self,
        statements: &Statements,
        id: &str,
    ) -> Option<Result<Option<Row>, Error>> {
        let single = self.single.get(statements.collection.name)?;
        let found = single
            .reads
            .make(
                id.to_owned(),
                id.len(),
                |ids: Vec<Arc<String>>| async move {
                    let ids: Vec<String> = ids.iter().map(|id| id.as_ref().clone()).collect();
                    match self.with_ids(statements, &ids).await {
                        Ok(rows) => {
                            let by_id: HashMap<_, _> =
                                rows.into_iter().map(|row| (row.id.clone(), row)).collect();
                            Some(ids.iter().map(|id| Ok(by_id.get(id).cloned())).collect())
                        }
                        Err(Error::Unavailable(reason)) => Some(vec![Err(reason); ids.len()]),
                        // One of the records may be the cause.
                        Err(_) => None,
                    }
                },
            )
            .await?;
        Some(found.map_err(Error::Unavailable))
    }

    /// Applies a batch together with others, if it is one update. Returns false if it was not
    /// applied, and `None` if the outcome is unknown.
    pub(super) async fn update_shared(
        &self,
        now: Time,
        announced: bool,
        writes: &[(Write, Values)],
    ) -> Option<bool> {
        let ([(write, _)], false) = (writes, announced) else {
            return Some(false);
        };
        let single = self
            .single
            .get(write.collection.name)
            .filter(|single| !single.has_unique);
        let (Step::Update { revision, body }, Some(single)) = (&write.step, single) else {
            return Some(false);
        };
        let Ok(body) = std::str::from_utf8(body) else {
            return Some(false);
        };
        let update = Update {
            id: text::escape(&write.id).into_owned(),
            project: text::escape(&write.project).into_owned(),
            revision: *revision,
            body: text::escape_json(body).into_owned(),
            now,
        };
        let bytes = update.body.len();
        let applied = single
            .updates
            .make(update, bytes, |updates| self.apply_updates(single, updates));
        applied.await
    }

    /// Applies updates with one statement. Returns `None` if it is unknown which were applied.
    async fn apply_updates(
        &self,
        single: &SingleRecords,
        updates: Vec<Arc<Update>>,
    ) -> Option<Vec<bool>> {
        let query = sqlx::query(AssertSqlSafe(single.update_sql.as_str()))
            .bind(parts(&updates, |update| update.id.clone()))
            .bind(parts(&updates, |update| update.project.clone()))
            .bind(parts(&updates, |update| update.revision))
            .bind(parts(&updates, |update| update.body.clone()))
            .bind(parts(&updates, |update| update.now.0));
        let found = match self.fetch(Frequency::Often, query).await {
            Ok(found) => found,
            Err(error) if failure::is_transient(&error) => return None,
            Err(_) => Vec::new(),
        };
        let mut applied = vec![false; updates.len()];
        // Ordinal numbers start at one.
        let numbers = found.iter().filter_map(|row| row.try_get::<i64, _>(0).ok());
        for place in numbers.filter_map(|number| usize::try_from(number - 1).ok()) {
            if let Some(applied) = applied.get_mut(place) {
                *applied = true;
            }
        }
        Some(applied)
    }
}

/// Returns one part of each update, as an array to bind.
fn parts<T>(updates: &[Arc<Update>], part: impl Fn(&Update) -> T) -> Vec<T> {
    updates.iter().map(|update| part(update)).collect()
}
