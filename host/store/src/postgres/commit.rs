//! Application of a batch as one transaction.
//!
//! Each step is a statement with the step's precondition, in order of collection and id, so that
//! two batches cannot deadlock. If a statement changes no row, the record is not as it was read,
//! and the batch is stale. Consecutive steps of the same kind in a collection without unique fields
//! share a statement, which locks their records in the same order and changes either all of them or
//! nothing. A batch of one statement is its own transaction, which saves two round trips. A batch
//! of one update may share its statement with others (`single`).
//!
//! If the connection is lost during the commit, the outcome is unknown. Then the batch is tried
//! again. No change is made twice, since the precondition of every step that changes anything holds
//! only once. If the retry is refused, the stored record shows whether this batch had changed it.

use super::{Postgres, RETRY_INTERVAL, RETRY_TIMEOUT, failure, listen, quoted, schema, text};
use crate::values::Values;
use crate::{Backend as _, Collection, CommitError, Kind, Row, Scalar, Step, Time, Write};
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection as _, Row as _};
use std::collections::HashSet;
use tokio::time::Instant;

/// Maximum number of steps that share a statement.
const MAX_STEPS_PER_STATEMENT: usize = 1_000;

/// The SQL statements of one collection.
pub(super) struct Statements {
    pub(super) collection: &'static Collection,
    pub(super) select: String,
    insert: String,
    insert_many: String,
    update: String,
    update_many: String,
    remove: String,
    purge: String,
    check: String,
}

impl Statements {
    pub(super) fn for_collection(collection: &'static Collection) -> Statements {
        let table = quoted(collection.name);
        let columns = super::RECORD_COLUMNS;
        // Written as `is null`, the last test would allow the indexes of live records. In a table
        // without statistics PostgreSQL prefers them to the primary key, although it then reads all
        // records of the project.
        let live = "num_nulls(t.deleted_at) = 1";
        let found = format!("t.id = $1 and t.project = $2 and t.revision = $3 and {live}");
        // Statements that return values of unique fields return the values from before the change.
        let unique = collection
            .fields
            .iter()
            .filter(|field| field.unique)
            .map(|field| format!("old.{}", quoted(field.name)));
        let mut before = unique.collect::<Vec<_>>().join(", ");
        if before.is_empty() {
            before = "1".to_owned();
        }
        let change = |set: &str| {
            format!(
                "update {table} as t set revision = t.revision + 1, updated_at = $4, {set} from {table} as old \
                     where {found} and old.id = t.id returning {before}"
            )
        };
        Statements {
            collection,
            select: format!("select {columns} from {table}"),
            insert: format!(
                "insert into {table} (id, project, revision, created_at, updated_at, deleted_at, body) \
                 values ($1, $2, $3, $4, $5, $6, $7::text::json) returning 1"
            ),
            insert_many: format!(
                "insert into {table} (id, project, revision, created_at, updated_at, deleted_at, body) \
                 select id, project, 1, created_at, $5, null, body::json \
                     from unnest($1::text[], $2::text[], $3::bigint[], $4::text[]) \
                     as given(id, project, created_at, body)"
            ),
            update_many: format!(
                "with held as materialized (select old.place, given.body \
                     from unnest($1::text[], $2::text[], $3::bigint[], $4::text[]) \
                     as given(id, project, revision, body), \
                     lateral (select t.ctid as place from {table} as t \
                         where t.id = given.id and t.project = given.project \
                         and t.revision = given.revision and {live} for update) as old) \
                 update {table} as t set revision = t.revision + 1, updated_at = $5, body = held.body::json \
                     from held where t.ctid = held.place \
                     and (select count(*) from held) = cardinality($1)"
            ),
            update: change("body = $5::text::json"),
            remove: change("deleted_at = $4"),
            purge: format!(
                "delete from {table} as old where id = $1 and project = $2 and revision = $3 \
                 returning deleted_at, {before}"
            ),
            check: format!("select 1 from {table} as t where {found} for share"),
        }
    }
}

/// Outcome of a failed attempt.
enum AttemptError {
    /// The batch was refused and not applied.
    Refused(CommitError),
    /// The connection was lost. `not_applied` is true if nothing was applied.
    ConnectionLost { reason: String, not_applied: bool },
}

impl AttemptError {
    /// Returns the failure of a statement that commits: a lost connection leaves its outcome unknown.
    fn during_commit(self) -> Self {
        match self {
            Self::ConnectionLost { reason, .. } => Self::ConnectionLost {
                reason,
                not_applied: false,
            },
            refused @ Self::Refused(_) => refused,
        }
    }
}

/// Divides the steps of a batch among statements.
fn statements(writes: &[(Write, Values)]) -> Vec<&[(Write, Values)]> {
    writes
        .chunk_by(|(a, _), (b, _)| share_statement(a, b))
        .flat_map(|steps| steps.chunks(MAX_STEPS_PER_STATEMENT))
        .collect()
}

/// Returns true if one statement can apply both steps. Unique values need a statement for each, which
/// returns the values from before.
fn share_statement(a: &Write, b: &Write) -> bool {
    let is_same_kind = matches!(
        (&a.step, &b.step),
        (Step::Insert { .. }, Step::Insert { .. }) | (Step::Update { .. }, Step::Update { .. })
    );
    is_same_kind
        && a.collection.name == b.collection.name
        && !a.collection.fields.iter().any(|field| field.unique)
}

/// A unique value that a record of the batch had before: collection, position of the field,
/// project, value.
type Claim = (&'static str, usize, String, Scalar);

impl Postgres {
    /// Applies a batch and retries it when the connection is lost. `outcome_unknown` is true if the
    /// batch may have been applied already.
    pub(super) async fn commit_with_retry(
        &self,
        now: Time,
        announced: bool,
        writes: &[(Write, Values)],
        mut outcome_unknown: bool,
    ) -> Result<(), CommitError> {
        let deadline = Instant::now() + RETRY_TIMEOUT;
        loop {
            match self.attempt(now, announced, writes).await {
                Ok(()) => return Ok(()),
                Err(AttemptError::Refused(CommitError::Stale | CommitError::Taken { .. }))
                    if outcome_unknown =>
                {
                    return self.resolve_unknown_outcome(now, writes).await;
                }
                Err(AttemptError::Refused(error)) => return Err(error),
                Err(AttemptError::ConnectionLost {
                    reason,
                    not_applied,
                }) => {
                    outcome_unknown |= !not_applied;
                    if Instant::now() >= deadline {
                        return Err(CommitError::Unavailable(reason));
                    }
                }
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }

    async fn attempt(
        &self,
        now: Time,
        announced: bool,
        writes: &[(Write, Values)],
    ) -> Result<(), AttemptError> {
        let mut connection = self
            .pool
            .acquire()
            .await
            .map_err(|error| attempt_error(&error))?;
        let mut released = HashSet::new();
        let statements = statements(writes);
        if let ([only], false, None) = (&*statements, announced, &self.pooled) {
            let applied = self.steps(&mut connection, now, only, &mut released).await;
            return applied.map_err(AttemptError::during_commit);
        }
        let started = match &self.pooled {
            None => connection.begin().await,
            Some(pooled) => connection.begin_with(pooled.begin()).await,
        };
        let mut transaction = started.map_err(|error| attempt_error(&error))?;
        for steps in statements {
            self.steps(&mut transaction, now, steps, &mut released)
                .await?;
        }
        if announced {
            let notified = sqlx::query(listen::NOTIFY_SQL)
                .persistent(self.pooled.is_none())
                .execute(&mut *transaction)
                .await;
            notified.map_err(|error| attempt_error(&error))?;
        }
        transaction
            .commit()
            .await
            .map_err(|error| attempt_error(&error).during_commit())
    }

    /// Applies steps with one statement.
    async fn steps(
        &self,
        connection: &mut PgConnection,
        now: Time,
        steps: &[(Write, Values)],
        released: &mut HashSet<Claim>,
    ) -> Result<(), AttemptError> {
        match steps {
            [(write, values)] => self.step(connection, now, write, values, released).await,
            _ => self.many(connection, now, steps).await,
        }
    }

    /// Applies several steps that [`share_statement`].
    async fn many(
        &self,
        connection: &mut PgConnection,
        now: Time,
        steps: &[(Write, Values)],
    ) -> Result<(), AttemptError> {
        let Some((Write { collection, .. }, _)) = steps.first() else {
            return Ok(());
        };
        let Some(statements) = self.statements.get(collection.name) else {
            return Ok(());
        };
        let mut sql = &statements.update_many;
        let mut ids = Vec::with_capacity(steps.len());
        let mut projects = Vec::with_capacity(steps.len());
        let mut numbers = Vec::with_capacity(steps.len());
        let mut bodies = Vec::with_capacity(steps.len());
        for (write, _) in steps {
            ids.push(text::escape(&write.id));
            projects.push(text::escape(&write.project));
            match &write.step {
                Step::Insert { created_at, body } => {
                    sql = &statements.insert_many;
                    numbers.push(created_at.0);
                    bodies.push(json(body)?);
                }
                Step::Update { revision, body } => {
                    numbers.push(*revision);
                    bodies.push(json(body)?);
                }
                _ => {}
            }
        }
        let query = sqlx::query(AssertSqlSafe(sql.as_str()))
            .bind(ids)
            .bind(projects)
            .bind(numbers)
            .bind(bodies)
            .bind(now.0)
            .persistent(self.pooled.is_none());
        let applied = query
            .execute(connection)
            .await
            .map_err(|error| statement_error(collection, &error))?;
        if applied.rows_affected() == steps.len() as u64 {
            Ok(())
        } else {
            Err(AttemptError::Refused(CommitError::Stale))
        }
    }

    async fn step(
        &self,
        connection: &mut PgConnection,
        now: Time,
        write: &Write,
        values: &Values,
        released: &mut HashSet<Claim>,
    ) -> Result<(), AttemptError> {
        let Write {
            collection,
            project,
            id,
            step,
            ..
        } = write;
        let Some(statements) = self.statements.get(collection.name) else {
            return Ok(());
        };
        let sql = match step {
            Step::Insert { .. } | Step::Restore { .. } => &statements.insert,
            Step::Update { .. } => &statements.update,
            Step::Remove { .. } => &statements.remove,
            Step::Purge { .. } => &statements.purge,
            Step::Check { .. } => &statements.check,
        };
        let query = sqlx::query(AssertSqlSafe(sql.as_str()))
            .bind(text::escape(id))
            .bind(text::escape(project));
        let bound = match step {
            Step::Insert { created_at, body } => query
                .bind(1_i64)
                .bind(created_at.0)
                .bind(now.0)
                .bind(None::<i64>)
                .bind(json(body)?),
            Step::Restore {
                revision,
                created_at,
                updated_at,
                deleted_at,
                body,
            } => query
                .bind(revision)
                .bind(created_at.0)
                .bind(updated_at.0)
                .bind(deleted_at.map(|Time(at)| at))
                .bind(json(body)?),
            Step::Update { revision, body } => query.bind(revision).bind(now.0).bind(json(body)?),
            Step::Remove { revision } => query.bind(revision).bind(now.0),
            Step::Purge { revision } | Step::Check { revision } => query.bind(revision),
        };
        let row = bound
            .persistent(self.pooled.is_none())
            .fetch_optional(connection)
            .await
            .map_err(|error| statement_error(collection, &error))?
            .ok_or(AttemptError::Refused(CommitError::Stale))?;
        let new_claims: Vec<_> = match step {
            Step::Restore {
                deleted_at: Some(_),
                ..
            } => Vec::new(),
            _ => claims(collection, project, |place| {
                values.at(place).first().cloned()
            }),
        };
        if let Some((.., place, _, _)) = new_claims.iter().find(|claim| released.contains(claim)) {
            let field = collection.fields[*place].name;
            return Err(AttemptError::Refused(CommitError::Taken {
                collection: collection.name,
                field,
            }));
        }
        if matches!(
            step,
            Step::Insert { .. } | Step::Restore { .. } | Step::Check { .. }
        ) {
            return Ok(());
        }
        let old_claims = previous_claims(collection, project, step, &row)
            .map_err(|error| statement_error(collection, &error))?;
        released.extend(
            old_claims
                .into_iter()
                .filter(|claim| !new_claims.contains(claim)),
        );
        Ok(())
    }

    /// Decides whether an earlier attempt with an unknown outcome was applied, by the first record
    /// that the batch changes.
    async fn resolve_unknown_outcome(
        &self,
        now: Time,
        writes: &[(Write, Values)],
    ) -> Result<(), CommitError> {
        let changes = writes
            .iter()
            .find(|(write, _)| !matches!(write.step, Step::Check { .. }));
        let Some((write, _)) = changes else {
            return Err(CommitError::Stale);
        };
        let row = self
            .get(write.collection, &write.id)
            .await
            .map_err(|error| CommitError::Unavailable(error.to_string()))?;
        let otherwise = match &write.step {
            Step::Purge { .. } if row.is_none() => return Ok(()),
            Step::Insert { .. } | Step::Restore { .. } => CommitError::Taken {
                collection: write.collection.name,
                field: "id",
            },
            _ => CommitError::Stale,
        };
        let expected = expected_record(now, write, row.as_ref());
        match row {
            Some(row) if Some(&row) == expected.as_ref() => Ok(()),
            // The record was changed again, by a writer that may have seen this batch's change.
            Some(row)
                if expected
                    .as_ref()
                    .is_some_and(|expected| row.revision > expected.revision) =>
            {
                Err(CommitError::Unavailable(
                    "the connection was lost while the batch was committed".to_owned(),
                ))
            }
            _ => Err(otherwise),
        }
    }
}

/// Returns the record as the batch leaves it, as far as the batch decides.
fn expected_record(now: Time, write: &Write, row: Option<&Row>) -> Option<Row> {
    match &write.step {
        Step::Insert { .. } | Step::Restore { .. } => write.clone().into_created(now),
        Step::Update { revision, body } => row.map(|row| Row {
            revision: revision + 1,
            updated_at: now,
            deleted_at: None,
            body: body.clone(),
            ..row.clone()
        }),
        Step::Remove { revision } => row.map(|row| Row {
            revision: revision + 1,
            updated_at: now,
            deleted_at: Some(now),
            ..row.clone()
        }),
        Step::Purge { .. } | Step::Check { .. } => None,
    }
}

/// Returns the unique values that a record held before the step.
fn previous_claims(
    collection: &'static Collection,
    project: &str,
    step: &Step,
    row: &PgRow,
) -> Result<Vec<Claim>, sqlx::Error> {
    if matches!(step, Step::Purge { .. }) && row.try_get::<Option<i64>, _>("deleted_at")?.is_some()
    {
        return Ok(Vec::new());
    }
    let mut values = vec![None; collection.fields.len()];
    for (place, field) in collection
        .fields
        .iter()
        .enumerate()
        .filter(|(_, field)| field.unique)
    {
        values[place] = match field.kind {
            Kind::Int | Kind::Time => row.try_get::<Option<i64>, _>(field.name)?.map(Scalar::Int),
            Kind::Text | Kind::List => row
                .try_get::<Option<String>, _>(field.name)?
                .map(|value| Scalar::Text(text::unescape(value))),
        };
    }
    Ok(claims(collection, project, |place| values[place].clone()))
}

fn claims(
    collection: &'static Collection,
    project: &str,
    value: impl Fn(usize) -> Option<Scalar>,
) -> Vec<Claim> {
    let unique = collection
        .fields
        .iter()
        .enumerate()
        .filter(|(_, field)| field.unique);
    unique
        .filter_map(|(place, _)| Some((collection.name, place, project.to_owned(), value(place)?)))
        .collect()
}

fn json(body: &[u8]) -> Result<std::borrow::Cow<'_, str>, AttemptError> {
    let text = std::str::from_utf8(body).map_err(|error| {
        AttemptError::Refused(CommitError::Invalid(format!("a body is not text: {error}")))
    })?;
    Ok(text::escape_json(text))
}

/// Converts the error of a statement to the failure of the attempt. Nothing of the batch was
/// applied.
fn statement_error(collection: &'static Collection, error: &sqlx::Error) -> AttemptError {
    match error.as_database_error() {
        Some(cause) if cause.is_unique_violation() => {
            let field = schema::violated_field(collection, cause.constraint().unwrap_or_default());
            AttemptError::Refused(CommitError::Taken {
                collection: collection.name,
                field,
            })
        }
        _ => attempt_error(error),
    }
}

fn attempt_error(error: &sqlx::Error) -> AttemptError {
    let reason = failure::reason(error);
    if failure::is_transient(error) {
        AttemptError::ConnectionLost {
            reason,
            not_applied: true,
        }
    } else if failure::is_full(error) {
        AttemptError::Refused(CommitError::Full)
    } else if failure::is_invalid_data(error) {
        AttemptError::Refused(CommitError::Invalid(reason))
    } else {
        AttemptError::Refused(CommitError::Unavailable(reason))
    }
}
