//! Opening of a connection pool: parsing the URL, checking the server, and updating the schema.
//!
//! Between this process and the server there may be a pooler, such as PgBouncer. One that lends a
//! connection of the server for a whole session changes nothing, but accepts few parameters at the
//! start of a connection: therefore settings are set afterwards. One that lends it for a
//! transaction loses settings, prepared statements and `listen` between two transactions. It is
//! recognized by its connections, and then every statement runs in a transaction that starts with
//! the settings ([`Pooled`]).

use super::failure;
use super::schema::{self, SchemaError};
use crate::{Collection, DatabaseState, OpenError, Time, document};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, Row as _};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Maximum number of connections of one process.
const MAX_CONNECTIONS: u32 = 20;
/// Maximum time a call waits for a connection, also while the server starts.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time a start waits for the database to answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Oldest major version of PostgreSQL whose statements are known to work.
const MIN_POSTGRES_VERSION: i32 = 14;

/// Remedy for a user that lacks the right to create tables.
const CREATE_HINT: &str = "let the user own the database, or grant it `create` on the schema";

/// Server settings of every connection, as rows of name and value. The timeout for an idle transaction is
/// shorter than the leases of jobs, so a stalled process releases its locks before other processes
/// may claim its jobs.
const SESSION_SETTINGS: &str = "('statement_timeout', '5s'), ('lock_timeout', '2s'), \
                        ('idle_in_transaction_session_timeout', '5s'), ('client_min_messages', 'warning'), \
                        ('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'))";
/// Number of times that a start compares the connections of the server which two of its own have.
const POOLER_CHECKS: usize = 8;

/// A pool of connections to a database with all tables.
pub(super) struct Opened {
    pub(super) pool: PgPool,
    /// Statements that start a transaction, behind a pooler that lends connections for one.
    pub(super) pooled: Option<Pooled>,
}

/// Statements that start a transaction with the settings of a connection.
#[derive(Clone)]
pub(super) struct Pooled(Arc<str>);

impl Pooled {
    fn new() -> Self {
        Self(format!("begin; {}", settings_sql(true)).into())
    }

    pub(super) fn begin(&self) -> AssertSqlSafe<Arc<str>> {
        AssertSqlSafe(self.0.clone())
    }
}

/// Returns the statement that sets [`SESSION_SETTINGS`]: for the current transaction if they are `local`, else for
/// the connection.
fn settings_sql(local: bool) -> String {
    format!(
        "select set_config(name, value, {local}) from (values {SESSION_SETTINGS}) as settings (name, value)"
    )
}

/// Connects, checks the server, and brings the schema up to date.
pub(super) async fn open(
    url: &str,
    collections: &[&'static Collection],
) -> Result<Opened, OpenError> {
    let Connected {
        mut connection,
        options,
        at,
    } = connect(url, collections).await?;
    schema::bring_up_to_date(&mut connection, collections)
        .await
        .map_err(|error| schema_error(&at, error))?;
    let pooled = is_pooled(&mut connection, &options)
        .await
        .map_err(|error| connect_error(&at, &error))?;
    drop(connection);
    if pooled {
        tracing::info!("a pooler lends the connections to the database for a transaction each");
    }
    let pool = PgPoolOptions::new()
        .max_connections(MAX_CONNECTIONS)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        // A lost connection is noticed when it is used, and the work is retried.
        .test_before_acquire(false)
        .after_connect(move |connection, _| {
            Box::pin(async move {
                if !pooled {
                    let settings = AssertSqlSafe(settings_sql(false));
                    connection.execute(sqlx::raw_sql(settings)).await?;
                }
                Ok(())
            })
        });
    Ok(Opened {
        pool: pool.connect_lazy_with(options),
        pooled: pooled.then(Pooled::new),
    })
}

/// Returns true if a pooler lends connections of the server for a transaction: then two connections of this
/// process have the same one, or one has different ones.
async fn is_pooled(
    connection: &mut PgConnection,
    options: &PgConnectOptions,
) -> Result<bool, sqlx::Error> {
    let mut other = options.connect().await?;
    let first = (process_id(connection).await?, process_id(&mut other).await?);
    let mut pooled = first.0 == first.1;
    for _ in 0..POOLER_CHECKS {
        let next = (process_id(connection).await?, process_id(&mut other).await?);
        pooled |= next != first;
    }
    Ok(pooled)
}

/// Returns the number of the server's process that answers a connection.
async fn process_id(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    let id = sqlx::raw_sql("select pg_backend_pid()");
    connection.fetch_one(id).await?.try_get(0)
}

/// Checks the server and compares its schema with the declarations. Changes nothing.
pub(crate) async fn inspect(
    url: &str,
    collections: &[&'static Collection],
) -> Result<DatabaseState, OpenError> {
    let Connected {
        mut connection, at, ..
    } = connect(url, collections).await?;
    let mut reading = connection
        .begin_with("begin transaction read only")
        .await
        .map_err(|error| connect_error(&at, &error))?;
    let compared = schema::compare(&mut reading, collections)
        .await
        .map_err(|error| schema_error(&at, error))?;
    let facts = "select (extract(epoch from clock_timestamp()) * 1000)::bigint, \
                 coalesce(has_schema_privilege(current_schema(), 'create'), false)";
    let (now, may_create): (i64, bool) = sqlx::query_as(facts)
        .persistent(false)
        .fetch_one(&mut *reading)
        .await
        .map_err(|error| connect_error(&at, &error))?;
    if compared.missing > 0 && !may_create {
        return Err(refused(&at, "the user may not create tables", CREATE_HINT));
    }
    Ok(DatabaseState {
        is_new: !compared.has_tables,
        missing: compared.missing,
        now: Time(now),
    })
}

/// A connection to a server that was checked, with a description for messages.
struct Connected {
    connection: PgConnection,
    options: PgConnectOptions,
    at: String,
}

/// Connects to the database and checks the server. Changes nothing.
async fn connect(url: &str, collections: &[&'static Collection]) -> Result<Connected, OpenError> {
    let options = options(url)?;
    let at = describe(&options);
    document::check(collections)
        .map_err(|reason| refused(&at, reason, "this is a bug in the program"))?;
    let connecting = timeout(CONNECT_TIMEOUT, options.connect());
    let mut connection = match connecting.await {
        Ok(connected) => connected.map_err(|error| connect_error(&at, &error))?,
        Err(_) => {
            let hint = "check address, port and firewall";
            return Err(unavailable(&at, "it does not answer", hint));
        }
    };
    check(&mut connection, &at).await?;
    Ok(Connected {
        connection,
        options,
        at,
    })
}

/// Returns the error of a database that cannot be used until the operator changes something.
fn refused(at: &str, reason: impl Into<String>, hint: &str) -> OpenError {
    unusable(at, reason, hint, false)
}

/// Returns the error of a database that a later start may find usable.
fn unavailable(at: &str, reason: impl Into<String>, hint: &str) -> OpenError {
    unusable(at, reason, hint, true)
}

fn unusable(at: &str, reason: impl Into<String>, hint: &str, temporary: bool) -> OpenError {
    OpenError::Database {
        at: at.to_owned(),
        reason: reason.into(),
        hint: hint.to_owned(),
        temporary,
    }
}

fn schema_error(at: &str, error: SchemaError) -> OpenError {
    match error {
        SchemaError::Database(error) => connect_error(at, &error),
        SchemaError::Declaration(reason) => refused(
            at,
            reason,
            "start the version of this program that matches the database",
        ),
    }
}

fn options(url: &str) -> Result<PgConnectOptions, OpenError> {
    let options = PgConnectOptions::from_str(url).map_err(|error| {
        let cause = failure::reason(&error);
        let reason = format!("`store` is not a URL that can be used: {cause}");
        let hint = "write postgres://user:password@host:5432/database, with special characters \
                    percent-encoded";
        refused("the database", reason, hint)
    })?;
    Ok(options
        // Poolers refuse parameters that they do not know.
        .extra_float_digits(None)
        .application_name("toolhost")
        .disable_statement_logging())
}

/// Describes the database without its password.
fn describe(options: &PgConnectOptions) -> String {
    let host = options.get_socket().map_or_else(
        || options.get_host().to_owned(),
        |path| path.display().to_string(),
    );
    let user = options.get_username();
    let database = options.get_database().unwrap_or(options.get_username());
    format!(
        "database `{database}` at {host}:{} as `{user}`",
        options.get_port()
    )
}

/// Checks that the database can hold the store, and that acknowledged means durable on its server.
async fn check(connection: &mut PgConnection, at: &str) -> Result<(), OpenError> {
    let sql = "select current_setting('server_version_num')::int / 10000, current_setting('fsync'), \
               current_setting('server_encoding'), pg_is_in_recovery()";
    let facts = async {
        let mut reading = connection.begin().await?;
        let facts = sqlx::query_as(sql).persistent(false);
        facts.fetch_one(&mut *reading).await
    };
    let (version, fsync, encoding, standby): (i32, String, String, bool) =
        facts.await.map_err(|error| connect_error(at, &error))?;
    if version < MIN_POSTGRES_VERSION {
        let reason = format!("the server is PostgreSQL {version}");
        return Err(refused(at, reason, "use PostgreSQL 14 or newer"));
    }
    if fsync == "off" {
        let reason = "the server runs with `fsync = off` and may lose what was acknowledged";
        return Err(refused(at, reason, "turn `fsync` on"));
    }
    if encoding != "UTF8" {
        let reason = format!("the database has the encoding {encoding}");
        return Err(refused(at, reason, "create one with `encoding 'UTF8'`"));
    }
    if standby {
        // A failover makes a standby the primary server.
        let reason = "the server is a standby and takes no writes";
        return Err(unavailable(at, reason, "use the primary server"));
    }
    Ok(())
}

/// Converts a failure to connect to an error with a fix for the operator.
fn connect_error(at: &str, error: &sqlx::Error) -> OpenError {
    let (reason, hint) = match &*failure::code(error) {
        "28P01" => (
            "the password is wrong".to_owned(),
            "correct the password in `store`",
        ),
        "28000" => (
            failure::reason(error),
            "check the user in `store` and the server's pg_hba.conf",
        ),
        "3D000" => (
            "the database does not exist".to_owned(),
            "create it with `createdb`, or correct the name in `store`",
        ),
        "42501" => (failure::reason(error), CREATE_HINT),
        "" if failure::is_tls(error) => (
            failure::reason(error),
            "name the authority that has signed the server's certificate with `sslrootcert=FILE` in `store`, and the host as \
             the certificate does; `sslmode=require` encrypts without looking at it",
        ),
        "" => (
            failure::reason(error),
            "check that the server runs and that host, port and `sslmode` in `store` are right",
        ),
        _ => (
            failure::reason(error),
            "the server's log may show the reason",
        ),
    };
    unusable(at, reason, hint, failure::is_temporary(error))
}
