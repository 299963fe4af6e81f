//! The shared backend: any number of processes over one PostgreSQL database.
//!
//! Each collection is a table that an operator can read: the envelope, the body as JSON, and a
//! column filled from the body for each declared field (`schema`). A query becomes one statement,
//! so rows and total are of one point in time (`find`). A batch becomes one transaction (`commit`).
//! Texts are compared byte by byte. Characters that PostgreSQL cannot hold in a text are escaped
//! (`text`).
//!
//! Acknowledged means that the server has confirmed the commit of the transaction, with
//! `synchronous_commit` on and `fsync` on; opening the store checks both. When a connection is
//! lost, the work is retried for up to [`PATIENCE`], since a server that restarts is back within
//! seconds. `commit` describes how a lost commit is told from a completed one. No call takes longer
//! than [`LONGEST`].

mod commit;
mod failure;
mod find;
mod listen;
mod open;
mod schema;
mod text;

use crate::{
    Backend, Batch, Change, Collection, CommitError, Error, Health, OpenError, Page, Query, Report,
    Row, Time,
};
use async_trait::async_trait;
use commit::Statements;
use sqlx::postgres::{PgPool, PgRow, Postgres as Database};
use sqlx::{QueryBuilder, Row as _};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout};

pub(crate) use schema::render;

/// Time for which work is retried when connections are lost.
const PATIENCE: Duration = Duration::from_secs(4);
/// Maximum time of a call, also when the server does not answer.
const LONGEST: Duration = Duration::from_secs(8);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);
/// The columns of a record, in the order [`record`] reads them.
const COLUMNS: &str = "id, project, revision, created_at, updated_at, deleted_at, body::text";
/// Number of records read at a time by [`Postgres::verify`](Backend::verify).
const STEP: u64 = 500;
/// Maximum number of broken records that a report names. It only counts the rest.
const NAMED: usize = 100;

/// A store in one database.
pub(crate) struct Postgres {
    pool: PgPool,
    statements: HashMap<&'static str, Statements>,
    listener: listen::Listener,
    /// Reason why the last call was not answered, if it was not.
    trouble: Mutex<Option<String>>,
}

impl Postgres {
    /// Connects, and brings the schema up to date.
    pub(crate) async fn open(
        url: &str,
        collections: &[&'static Collection],
    ) -> Result<Postgres, OpenError> {
        let pool = open::open(url, collections).await?;
        let statements = collections
            .iter()
            .map(|at| (at.name, Statements::of(at)))
            .collect();
        Ok(Postgres {
            pool,
            statements,
            listener: listen::Listener::default(),
            trouble: Mutex::default(),
        })
    }

    /// Runs a statement and retries it while connections are lost.
    async fn rows(
        &self,
        ask: Ask,
        statement: impl Fn() -> QueryBuilder<Database> + Send,
    ) -> Result<Vec<PgRow>, Error> {
        let until = Instant::now() + PATIENCE;
        let tries = async {
            loop {
                let mut statement = statement();
                let asked = statement.build().persistent(matches!(ask, Ask::Often));
                match asked.fetch_all(&self.pool).await {
                    Err(error) if failure::is_passing(&error) && Instant::now() < until => {}
                    result => return result.map_err(|error| failure::of_read(&error)),
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        let result = timeout(LONGEST, tries)
            .await
            .unwrap_or_else(|_| Err(failure::silent()));
        self.note(result.as_ref().err().and_then(|error| match error {
            Error::Unavailable(why) => Some(why),
            _ => None,
        }));
        result
    }

    async fn records(
        &self,
        statement: impl Fn() -> QueryBuilder<Database> + Send,
    ) -> Result<Vec<Row>, Error> {
        let rows = self.rows(Ask::Often, statement).await?;
        rows.iter()
            .map(record)
            .collect::<Result<_, _>>()
            .map_err(|error| failure::of_read(&error))
    }

    async fn after(
        &self,
        statements: &Statements,
        id: &str,
        limit: u64,
    ) -> Result<Vec<Row>, Error> {
        self.records(|| {
            let mut statement = QueryBuilder::new(&statements.select);
            statement
                .push(" where id > ")
                .push_bind(text::store(id).into_owned());
            statement
                .push(" order by id limit ")
                .push_bind(i64::try_from(limit).unwrap_or(i64::MAX));
            statement
        })
        .await
    }

    /// Records whether the database answers, and logs a change.
    fn note(&self, trouble: Option<&String>) {
        let mut known = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_some() != trouble.is_some() {
            tracing::warn!(
                trouble,
                "the database has changed between answering and not answering"
            );
        }
        *known = trouble.cloned();
    }

    fn declared(&self, at: &'static Collection) -> Result<&Statements, Error> {
        let unknown = || Error::Unavailable(format!("the collection {} was not declared", at.name));
        self.statements.get(at.name).ok_or_else(unknown)
    }
}

/// Frequency of a statement. Only frequent ones are kept prepared.
#[derive(Clone, Copy)]
enum Ask {
    Often,
    Once,
}

#[async_trait]
impl Backend for Postgres {
    async fn get(&self, at: &'static Collection, id: &str) -> Result<Option<Row>, Error> {
        let statements = self.declared(at)?;
        let found = self.records(|| {
            let mut statement = QueryBuilder::new(&statements.select);
            statement
                .push(" where id = ")
                .push_bind(text::store(id).into_owned());
            statement
        });
        Ok(found.await?.pop())
    }

    async fn find(&self, at: &'static Collection, query: &Query) -> Result<Page, Error> {
        query.check(at)?;
        self.declared(at)?;
        // A generic plan is bad for a value that most records have.
        let rows = self.rows(Ask::Once, || find::statement(at, query)).await?;
        find::page(&rows).map_err(|error| failure::of_read(&error))
    }

    async fn scan(
        &self,
        at: &'static Collection,
        after: &str,
        limit: u64,
    ) -> Result<Vec<Row>, Error> {
        self.after(self.declared(at)?, after, limit).await
    }

    async fn commit(&self, batch: Batch) -> Result<(), CommitError> {
        let (now, announced) = (batch.now, batch.announced);
        let writes = batch.checked()?;
        if let Some((write, _)) = writes
            .iter()
            .find(|(write, _)| !self.statements.contains_key(write.at.name))
        {
            return Err(CommitError::Invalid(format!(
                "the collection {} was not declared",
                write.at.name
            )));
        }
        let committed = timeout(LONGEST, self.commit_again(now, announced, &writes)).await;
        let result =
            committed.unwrap_or_else(|_| Err(CommitError::Unavailable(failure::SILENT.to_owned())));
        self.note(match &result {
            Err(CommitError::Unavailable(why)) => Some(why),
            _ => None,
        });
        result
    }

    async fn changed(&self) -> Change {
        self.listener.changed(&self.pool).await
    }

    async fn now(&self) -> Result<Option<Time>, Error> {
        let clock = "select (extract(epoch from clock_timestamp()) * 1000)::bigint";
        let rows = self.rows(Ask::Often, || QueryBuilder::new(clock)).await?;
        let now = rows
            .first()
            .map(|row| row.try_get(0))
            .transpose()
            .map_err(|error| failure::of_read(&error))?;
        Ok(now.map(Time))
    }

    fn health(&self) -> Health {
        if self.pool.is_closed() {
            return Health::Closed;
        }
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.clone().map_or(Health::Ready, Health::Away)
    }

    async fn verify(&self) -> Result<Report, Error> {
        let mut report = Report::default();
        let mut broken = 0_usize;
        for statements in self.statements.values() {
            let mut after = String::new();
            loop {
                let rows = self.after(statements, &after, STEP).await?;
                let Some(last) = rows.last() else { break };
                after.clone_from(&last.id);
                report.records += rows.len() as u64;
                for row in rows {
                    let Err(error) = serde_json::from_slice::<serde_json::Map<_, _>>(&row.body)
                    else {
                        continue;
                    };
                    broken += 1;
                    if broken <= NAMED {
                        report
                            .damage
                            .push(Error::unreadable(statements.at, &row.id, &error).to_string());
                    }
                }
            }
        }
        if broken > NAMED {
            report.damage.push(format!("and {} more", broken - NAMED));
        }
        Ok(report)
    }

    async fn close(&self) {
        // The pool accepts no new calls. Calls in progress end within their timeouts or are
        // abandoned.
        let closing = async { tokio::join!(self.pool.close(), self.listener.close()) };
        let _ = timeout(LONGEST, closing).await;
    }
}

/// Reads a record from the columns of [`COLUMNS`].
fn record(row: &PgRow) -> Result<Row, sqlx::Error> {
    Ok(Row {
        id: text::read(row.try_get("id")?),
        project: text::read(row.try_get("project")?),
        revision: row.try_get("revision")?,
        created_at: Time(row.try_get("created_at")?),
        updated_at: Time(row.try_get("updated_at")?),
        deleted_at: row.try_get::<Option<i64>, _>("deleted_at")?.map(Time),
        body: text::read_json(row.try_get("body")?).into_bytes().into(),
    })
}

/// Quotes a name as an SQL identifier.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
