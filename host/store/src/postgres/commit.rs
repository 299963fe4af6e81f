//! Application of a batch as one transaction.
//!
//! Each step is a statement with the step's precondition, in order of collection and id, so that
//! two batches cannot deadlock. If a statement changes no row, the record is not as it was read,
//! and the batch is stale.
//!
//! If the connection is lost during the commit, the outcome is unknown. Then the batch is tried
//! again. No change is made twice, since the precondition of every step that changes anything holds
//! only once. If the retry is refused, the stored record shows whether this batch had changed it.

use super::{PATIENCE, PAUSE, Postgres, failure, listen, quoted, schema, text};
use crate::values::Values;
use crate::{Backend as _, Collection, CommitError, Kind, Record, Row, Scalar, Step, Time, Write};
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection as _, Row as _};
use std::collections::HashSet;
use tokio::time::Instant;

/// The SQL statements of one collection.
pub(super) struct Statements {
    pub(super) at: &'static Collection,
    pub(super) select: String,
    insert: String,
    update: String,
    remove: String,
    purge: String,
    check: String,
}

impl Statements {
    pub(super) fn of(at: &'static Collection) -> Statements {
        let (table, columns) = (quoted(at.name), super::COLUMNS);
        let live = "t.id = $1 and t.project = $2 and t.revision = $3 and t.deleted_at is null";
        // Statements that return values of unique fields return the values from before the change.
        let unique = at
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
                     where {live} and old.id = t.id returning {before}"
            )
        };
        Statements {
            at,
            select: format!("select {columns} from {table}"),
            insert: format!(
                "insert into {table} (id, project, revision, created_at, updated_at, deleted_at, body) \
                 values ($1, $2, $3, $4, $5, $6, $7::text::json) returning 1"
            ),
            update: change("body = $5::text::json"),
            remove: change("deleted_at = $4"),
            purge: format!(
                "delete from {table} as old where id = $1 and project = $2 and revision = $3 \
                 returning deleted_at, {before}"
            ),
            check: format!("select 1 from {table} as t where {live} for share"),
        }
    }
}

/// Outcome of a failed attempt.
enum Failed {
    /// The batch was refused and not applied.
    Refused(CommitError),
    /// The connection was lost. `sure` is true if nothing was applied.
    Lost { why: String, sure: bool },
}

/// A unique value that a record of the batch had before: collection, position of the field,
/// project, value.
type Claim = (&'static str, usize, String, Scalar);

impl Postgres {
    /// Applies a batch and retries it when the connection is lost.
    pub(super) async fn commit_again(
        &self,
        now: Time,
        announced: bool,
        writes: &[(Write, Values)],
    ) -> Result<(), CommitError> {
        let until = Instant::now() + PATIENCE;
        let mut doubtful = false;
        loop {
            match self.attempt(now, announced, writes).await {
                Ok(()) => return Ok(()),
                Err(Failed::Refused(CommitError::Stale | CommitError::Taken { .. }))
                    if doubtful =>
                {
                    return self.judge(now, writes).await;
                }
                Err(Failed::Refused(error)) => return Err(error),
                Err(Failed::Lost { why, sure }) => {
                    doubtful |= !sure;
                    if Instant::now() >= until {
                        return Err(CommitError::Unavailable(why));
                    }
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn attempt(
        &self,
        now: Time,
        announced: bool,
        writes: &[(Write, Values)],
    ) -> Result<(), Failed> {
        let mut connection = self.pool.acquire().await.map_err(|error| lost(&error))?;
        let mut transaction = connection.begin().await.map_err(|error| lost(&error))?;
        let mut released = HashSet::new();
        for (write, values) in writes {
            self.step(&mut transaction, now, write, values, &mut released)
                .await?;
        }
        if announced {
            let told = sqlx::query(listen::TELL).execute(&mut *transaction).await;
            told.map_err(|error| lost(&error))?;
        }
        transaction
            .commit()
            .await
            .map_err(|error| match lost(&error) {
                Failed::Lost { why, .. } => Failed::Lost { why, sure: false },
                refused => refused,
            })
    }

    async fn step(
        &self,
        connection: &mut PgConnection,
        now: Time,
        write: &Write,
        values: &Values,
        released: &mut HashSet<Claim>,
    ) -> Result<(), Failed> {
        let Write {
            at,
            project,
            id,
            step,
        } = write;
        let Some(statements) = self.statements.get(at.name) else {
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
            .bind(text::store(id))
            .bind(text::store(project));
        let query = match step {
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
        let refused = |error: sqlx::Error| refusal(at, &error);
        let row = query.fetch_optional(connection).await.map_err(refused)?;
        let row = row.ok_or(Failed::Refused(CommitError::Stale))?;
        let after: Vec<_> = match step {
            Step::Restore {
                deleted_at: Some(_),
                ..
            } => Vec::new(),
            _ => claims(at, project, |place| values.at(place).first().cloned()),
        };
        if let Some((.., place, _, _)) = after.iter().find(|claim| released.contains(claim)) {
            let field = at.fields[*place].name;
            return Err(Failed::Refused(CommitError::Taken {
                collection: at.name,
                field,
            }));
        }
        if matches!(
            step,
            Step::Insert { .. } | Step::Restore { .. } | Step::Check { .. }
        ) {
            return Ok(());
        }
        let before = before(at, project, step, &row).map_err(refused)?;
        released.extend(before.into_iter().filter(|claim| !after.contains(claim)));
        Ok(())
    }

    /// Decides whether an earlier attempt with an unknown outcome was applied, by the first record
    /// that the batch changes.
    async fn judge(&self, now: Time, writes: &[(Write, Values)]) -> Result<(), CommitError> {
        let changes = writes
            .iter()
            .find(|(write, _)| !matches!(write.step, Step::Check { .. }));
        let Some((write, _)) = changes else {
            return Err(CommitError::Stale);
        };
        let row = self
            .get(write.at, &write.id)
            .await
            .map_err(|error| CommitError::Unavailable(error.to_string()))?;
        let open = || {
            CommitError::Unavailable(
                "the connection was lost while the batch was committed".to_owned(),
            )
        };
        let (wanted, of_others) = match &write.step {
            Step::Purge { .. } => {
                return if row.is_none() {
                    Ok(())
                } else {
                    Err(CommitError::Stale)
                };
            }
            Step::Insert { .. } | Step::Restore { .. } => (
                wanted(now, write, row.as_ref()),
                CommitError::Taken {
                    collection: write.at.name,
                    field: "id",
                },
            ),
            _ => (wanted(now, write, row.as_ref()), CommitError::Stale),
        };
        match row {
            Some(row) if Some(&row) == wanted.as_ref() => Ok(()),
            // The record was changed again, by a writer that may have seen this batch's change.
            Some(row)
                if wanted
                    .as_ref()
                    .is_some_and(|wanted| row.revision > wanted.revision) =>
            {
                Err(open())
            }
            _ => Err(of_others),
        }
    }
}

/// Returns the record as the batch leaves it, as far as the batch decides.
fn wanted(now: Time, write: &Write, row: Option<&Row>) -> Option<Row> {
    let (id, project) = (write.id.clone(), write.project.clone());
    match &write.step {
        Step::Insert { created_at, body } => Some(Record {
            id,
            project,
            revision: 1,
            created_at: *created_at,
            updated_at: now,
            deleted_at: None,
            body: body.clone(),
        }),
        Step::Restore {
            revision,
            created_at,
            updated_at,
            deleted_at,
            body,
        } => Some(Record {
            id,
            project,
            revision: *revision,
            created_at: *created_at,
            updated_at: *updated_at,
            deleted_at: *deleted_at,
            body: body.clone(),
        }),
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
fn before(
    at: &'static Collection,
    project: &str,
    step: &Step,
    row: &PgRow,
) -> Result<Vec<Claim>, sqlx::Error> {
    if matches!(step, Step::Purge { .. }) && row.try_get::<Option<i64>, _>("deleted_at")?.is_some()
    {
        return Ok(Vec::new());
    }
    let mut values = vec![None; at.fields.len()];
    for (place, field) in at
        .fields
        .iter()
        .enumerate()
        .filter(|(_, field)| field.unique)
    {
        values[place] = match field.kind {
            Kind::Int | Kind::Time => row.try_get::<Option<i64>, _>(field.name)?.map(Scalar::Int),
            Kind::Text | Kind::List => row
                .try_get::<Option<String>, _>(field.name)?
                .map(|value| Scalar::Text(text::read(value))),
        };
    }
    Ok(claims(at, project, |place| values[place].clone()))
}

fn claims(
    at: &'static Collection,
    project: &str,
    value: impl Fn(usize) -> Option<Scalar>,
) -> Vec<Claim> {
    let unique = at
        .fields
        .iter()
        .enumerate()
        .filter(|(_, field)| field.unique);
    unique
        .filter_map(|(place, _)| Some((at.name, place, project.to_owned(), value(place)?)))
        .collect()
}

fn json(body: &[u8]) -> Result<std::borrow::Cow<'_, str>, Failed> {
    let text = std::str::from_utf8(body);
    let text = text.map_err(|error| {
        Failed::Refused(CommitError::Invalid(format!("a body is no text: {error}")))
    })?;
    Ok(text::store_json(text))
}

/// Converts the error of a statement to the failure of the attempt. Nothing of the batch was
/// applied.
fn refusal(at: &'static Collection, error: &sqlx::Error) -> Failed {
    match error.as_database_error() {
        Some(cause) if cause.is_unique_violation() => {
            let field = schema::field_of(at, cause.constraint().unwrap_or_default());
            Failed::Refused(CommitError::Taken {
                collection: at.name,
                field,
            })
        }
        _ => lost(error),
    }
}

fn lost(error: &sqlx::Error) -> Failed {
    let why = failure::reason(error);
    if failure::is_passing(error) {
        Failed::Lost { why, sure: true }
    } else if failure::is_full(error) {
        Failed::Refused(CommitError::Full)
    } else if failure::is_refusal(error) {
        Failed::Refused(CommitError::Invalid(why))
    } else {
        Failed::Refused(CommitError::Unavailable(why))
    }
}
