//! The shared backend: any number of processes over one PostgreSQL database.
//!
//! Each collection is a table that an operator can read: the envelope, the body as JSON, and a
//! column filled from the body for each declared field (`schema`). A query becomes one statement,
//! so rows and total are of one point in time (`find`). A batch becomes one transaction (`commit`).
//! Reads and updates of single records share statements where many are made at a time (`single`).
//! Strings are compared byte by byte. Characters that PostgreSQL cannot hold in a string are
//! escaped (`text`).
//!
//! Acknowledged means that the server has confirmed the commit of the transaction, with
//! `synchronous_commit` on and `fsync` on; opening the store checks both. When a connection is
//! lost, the work is retried for up to [`RETRY_TIMEOUT`], since a server that restarts is back
//! within seconds. `commit` describes how a lost commit is told from a completed one. No call takes
//! longer than [`CALL_TIMEOUT`].

mod commit;
mod failure;
mod find;
mod listen;
mod open;
mod schema;
mod sharing;
mod single;
mod text;

use crate::{
    Backend, Batch, Change, Collection, CommitError, Error, Health, MAX_REPORTED_DAMAGE, OpenError,
    Page, Query, Report, Row, Time, shortened,
};
use async_trait::async_trait;
use commit::Statements;
use open::{Opened, Pooled};
use parking_lot::Mutex;
use single::SingleRecords;
use sqlx::postgres::{PgArguments, PgPool, PgRow, Postgres as Database};
use sqlx::query::Query as Statement;
use sqlx::{QueryBuilder, Row as _};
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::{Instant, timeout};

pub(crate) use open::inspect;
pub(crate) use schema::render;

/// Time for which work is retried when connections are lost.
const RETRY_TIMEOUT: Duration = Duration::from_secs(4);
/// Maximum time of a call, also when the server does not answer.
const CALL_TIMEOUT: Duration = Duration::from_secs(8);
/// Pause between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);
/// The columns of a record, in the order [`record`] reads them.
const RECORD_COLUMNS: &str =
    "id, project, revision, created_at, updated_at, deleted_at, body::text";
/// The columns of a record without its body, in the order of [`RECORD_COLUMNS`].
const ENVELOPE_COLUMNS: &str =
    "id, project, revision, created_at, updated_at, deleted_at, ''::text as body";
/// Number of records read at a time by [`Postgres::verify`](Backend::verify).
const VERIFY_BATCH_RECORDS: u64 = 500;
/// Time for which the clock of the server is followed with the clock of this process before it is
/// read again.
const CLOCK_READ_INTERVAL: Duration = Duration::from_secs(1);

/// A store in one database.
pub(crate) struct Postgres {
    pool: PgPool,
    pooled: Option<Pooled>,
    statements: HashMap<&'static str, Statements>,
    single: HashMap<&'static str, SingleRecords>,
    listener: listen::Listener,
    /// Reason why the last call was not answered, if it was not.
    outage: Mutex<Option<String>>,
    /// Time of the server when it was last read, and the moment of its arrival.
    clock: Mutex<Option<(Time, Instant)>>,
}

impl Postgres {
    /// Connects, and brings the schema up to date.
    pub(crate) async fn open(
        url: &str,
        collections: &[&'static Collection],
    ) -> Result<Postgres, OpenError> {
        let Opened { pool, pooled } = open::open(url, collections).await?;
        let statements = collections
            .iter()
            .map(|collection| (collection.name, Statements::for_collection(collection)))
            .collect();
        Ok(Postgres {
            pool,
            listener: listen::Listener::new(pooled.is_none()),
            pooled,
            statements,
            single: collections
                .iter()
                .map(|collection| (collection.name, SingleRecords::new(collection)))
                .collect(),
            outage: Mutex::default(),
            clock: Mutex::default(),
        })
    }

    /// Runs a statement, in a transaction of its own behind a pooler.
    async fn fetch(
        &self,
        frequency: Frequency,
        statement: Statement<'_, Database, PgArguments>,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        let Some(pooled) = &self.pooled else {
            let statement = statement.persistent(matches!(frequency, Frequency::Often));
            return statement.fetch_all(&self.pool).await;
        };
        let mut transaction = self.pool.begin_with(pooled.begin()).await?;
        let rows = statement
            .persistent(false)
            .fetch_all(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(rows)
    }

    /// Runs a statement and retries it while connections are lost.
    async fn rows(
        &self,
        frequency: Frequency,
        statement: impl Fn() -> QueryBuilder<Database> + Send,
    ) -> Result<Vec<PgRow>, Error> {
        let deadline = Instant::now() + RETRY_TIMEOUT;
        let tries = async {
            loop {
                let mut statement = statement();
                match self.fetch(frequency, statement.build()).await {
                    Err(error) if failure::is_transient(&error) && Instant::now() < deadline => {}
                    result => return result.map_err(|error| failure::read_error(&error)),
                }
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
        };
        let result = timeout(CALL_TIMEOUT, tries)
            .await
            .unwrap_or_else(|_| Err(failure::no_answer()));
        self.note_outage(result.as_ref().err().and_then(|error| match error {
            Error::Unavailable(why) => Some(why),
            _ => None,
        }));
        result
    }

    async fn records(
        &self,
        statement: impl Fn() -> QueryBuilder<Database> + Send,
    ) -> Result<Vec<Row>, Error> {
        let rows = self.rows(Frequency::Often, statement).await?;
        rows.iter()
            .map(record)
            .collect::<Result<_, _>>()
            .map_err(|error| failure::read_error(&error))
    }

    /// Reads the records with these ids, removed ones included.
    async fn with_ids(&self, statements: &Statements, ids: &[String]) -> Result<Vec<Row>, Error> {
        let ids: Vec<String> = ids.iter().map(|id| text::escape(id).into_owned()).collect();
        self.records(|| {
            let mut statement = QueryBuilder::new(&statements.select);
            statement
                .push(" where id = any(")
                .push_bind(ids.clone())
                .push(")");
            statement
        })
        .await
    }

    async fn rows_after(
        &self,
        statements: &Statements,
        id: &str,
        limit: u64,
    ) -> Result<Vec<Row>, Error> {
        self.records(|| {
            let mut statement = QueryBuilder::new(&statements.select);
            statement
                .push(" where id > ")
                .push_bind(text::escape(id).into_owned());
            statement
                .push(" order by id limit ")
                .push_bind(i64::try_from(limit).unwrap_or(i64::MAX));
            statement
        })
        .await
    }

    /// Records whether the database answers, and logs a change.
    fn note_outage(&self, outage: Option<&String>) {
        let mut known = self.outage.lock();
        if known.is_some() != outage.is_some() {
            tracing::warn!(outage, "the availability of the database has changed");
        }
        *known = outage.cloned();
    }

    fn statements(&self, collection: &'static Collection) -> Result<&Statements, Error> {
        self.statements.get(collection.name).ok_or_else(|| {
            Error::Unavailable(format!(
                "the collection {} was not declared",
                collection.name
            ))
        })
    }
}

/// Frequency of a statement. Only frequent ones are kept prepared.
#[derive(Clone, Copy)]
enum Frequency {
    Often,
    Once,
}

#[async_trait]
impl Backend for Postgres {
    async fn get(&self, collection: &'static Collection, id: &str) -> Result<Option<Row>, Error> {
        let statements = self.statements(collection)?;
        match timeout(CALL_TIMEOUT, self.get_shared(statements, id)).await {
            Ok(Some(found)) => found,
            Ok(None) => Ok(self.with_ids(statements, &[id.to_owned()]).await?.pop()),
            Err(_) => Err(failure::no_answer()),
        }
    }

    async fn get_many(
        &self,
        collection: &'static Collection,
        ids: &[&str],
    ) -> Result<Vec<Row>, Error> {
        let statements = self.statements(collection)?;
        let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        self.with_ids(statements, &ids).await
    }

    async fn count_by(
        &self,
        collection: &'static Collection,
        query: &Query,
        field: &str,
        values: &[&str],
    ) -> Result<HashMap<String, u64>, Error> {
        let query = query.clone().any_of(field, values.iter().copied());
        query.check(collection)?;
        self.statements(collection)?;
        let rows = self
            .rows(Frequency::Once, || find::counts(collection, &query, field))
            .await?;
        rows.iter()
            .map(find::count)
            .collect::<Result<_, _>>()
            .map_err(|error| failure::read_error(&error))
    }

    async fn find(&self, collection: &'static Collection, query: &Query) -> Result<Page, Error> {
        query.check(collection)?;
        self.statements(collection)?;
        // A generic plan is bad for a value that most records have.
        let rows = self
            .rows(Frequency::Once, || find::statement(collection, query))
            .await?;
        find::page(query, &rows).map_err(|error| failure::read_error(&error))
    }

    async fn scan(
        &self,
        collection: &'static Collection,
        after: &str,
        limit: u64,
    ) -> Result<Vec<Row>, Error> {
        self.rows_after(self.statements(collection)?, after, limit)
            .await
    }

    async fn commit(&self, batch: Batch) -> Result<(), CommitError> {
        let now = batch.now;
        let announced = batch.announced;
        let writes = batch.checked()?;
        if let Some((write, _)) = writes
            .iter()
            .find(|(write, _)| !self.statements.contains_key(write.collection.name))
        {
            return Err(CommitError::Invalid(format!(
                "the collection {} was not declared",
                write.collection.name
            )));
        }
        let committing = async {
            let outcome_unknown = match self.update_shared(now, announced, &writes).await {
                Some(true) => return Ok(()),
                applied => applied.is_none(),
            };
            self.commit_with_retry(now, announced, &writes, outcome_unknown)
                .await
        };
        let committed = timeout(CALL_TIMEOUT, committing).await;
        let result = committed
            .unwrap_or_else(|_| Err(CommitError::Unavailable(failure::NO_ANSWER.to_owned())));
        self.note_outage(match &result {
            Err(CommitError::Unavailable(why)) => Some(why),
            _ => None,
        });
        result
    }

    async fn changed(&self) -> Change {
        self.listener.changed(&self.pool).await
    }

    async fn send(&self, message: &str) -> Result<(), Error> {
        let sent = self.rows(Frequency::Often, || {
            let mut statement = QueryBuilder::new(listen::SEND_SQL);
            statement.push_bind(message.to_owned()).push(")");
            statement
        });
        sent.await.map(drop)
    }

    async fn message(&self) -> String {
        self.listener.message().await
    }

    async fn now(&self) -> Result<Option<Time>, Error> {
        if let Some((read, at)) = *self.clock.lock()
            && let elapsed = at.elapsed()
            && elapsed < CLOCK_READ_INTERVAL
        {
            let elapsed = i64::try_from(elapsed.as_millis()).unwrap_or(0);
            return Ok(Some(Time(read.0.saturating_add(elapsed))));
        }
        let clock = "select (extract(epoch from clock_timestamp()) * 1000)::bigint";
        let rows = self
            .rows(Frequency::Often, || QueryBuilder::new(clock))
            .await?;
        let now = rows
            .first()
            .map(|row| row.try_get(0))
            .transpose()
            .map_err(|error| failure::read_error(&error))?
            .map(Time);
        // It is behind the server's by the time that the response took, so that no lease is taken
        // for expired too early.
        *self.clock.lock() = now.map(|now| (now, Instant::now()));
        Ok(now)
    }

    fn health(&self) -> Health {
        if self.pool.is_closed() {
            return Health::Closed;
        }
        let outage = self.outage.lock();
        outage.clone().map_or(Health::Ready, Health::Unreachable)
    }

    async fn verify(&self) -> Result<Report, Error> {
        let mut report = Report::default();
        let mut damaged = 0;
        for statements in self.statements.values() {
            let mut after = String::new();
            loop {
                let rows = self
                    .rows_after(statements, &after, VERIFY_BATCH_RECORDS)
                    .await?;
                let Some(last) = rows.last() else { break };
                after.clone_from(&last.id);
                report.records += rows.len() as u64;
                for row in rows {
                    if let Err(error) = serde_json::from_slice::<serde_json::Map<_, _>>(&row.body) {
                        damaged += 1;
                        if damaged <= MAX_REPORTED_DAMAGE {
                            let broken = Error::unreadable(statements.collection, &row.id, &error);
                            report.damage.push(broken.to_string());
                        }
                    }
                }
            }
        }
        report.damage = shortened(report.damage, damaged);
        Ok(report)
    }

    async fn close(&self) {
        // The pool accepts no new calls. Calls in progress end within their timeouts or are
        // abandoned.
        let closing = async { tokio::join!(self.pool.close(), self.listener.close()) };
        let _ = timeout(CALL_TIMEOUT, closing).await;
    }
}

/// Reads a record from the columns of [`RECORD_COLUMNS`].
fn record(row: &PgRow) -> Result<Row, sqlx::Error> {
    Ok(Row {
        id: text::unescape(row.try_get("id")?),
        project: text::unescape(row.try_get("project")?),
        revision: row.try_get("revision")?,
        created_at: Time(row.try_get("created_at")?),
        updated_at: Time(row.try_get("updated_at")?),
        deleted_at: row.try_get::<Option<i64>, _>("deleted_at")?.map(Time),
        body: text::unescape_json(row.try_get("body")?)
            .into_bytes()
            .into(),
    })
}

/// Quotes a name as an SQL identifier.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
