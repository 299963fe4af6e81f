//! Tables, columns and indexes for the declared collections.
//!
//! Missing ones are added at start, under a lock that only one node has at a time: all new tables
//! in one transaction, and what each other table lacks in another, so that no transaction locks
//! several tables in use. Nothing is ever removed or changed. Therefore a node with older
//! declarations keeps running at the same time as one with newer ones, and the database fills the
//! columns that the older node does not know. Adding a column rewrites the table and locks it for
//! that time.

use super::quoted;
use crate::{Collection, Field, Kind};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Row as _};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// Number of the advisory lock. Any number works if no other program on the database uses it.
const ADVISORY_LOCK: i64 = 0x746f_6f6c_686f_7374;

/// Statements that start a transaction which changes the schema: it may wait for others, and take
/// long.
const BEGIN_CHANGE: &str = "begin; set local statement_timeout = 0; set local lock_timeout = '60s'; \
                            set local idle_in_transaction_session_timeout = 0";

/// Reason why the schema cannot be brought up to date.
pub(super) enum SchemaError {
    /// The database returned an error.
    Database(sqlx::Error),
    /// The existing tables do not allow the declarations.
    Declaration(String),
}

impl From<sqlx::Error> for SchemaError {
    fn from(error: sqlx::Error) -> SchemaError {
        SchemaError::Database(error)
    }
}

/// Adds the tables, columns and indexes that are missing.
pub(super) async fn bring_up_to_date(
    connection: &mut PgConnection,
    collections: &[&'static Collection],
) -> Result<(), SchemaError> {
    loop {
        let mut transaction = connection.begin_with(BEGIN_CHANGE).await?;
        sqlx::query("select pg_advisory_xact_lock($1)")
            .bind(ADVISORY_LOCK)
            .persistent(false)
            .execute(&mut *transaction)
            .await?;
        let is_complete = add_missing(&mut transaction, collections).await?;
        transaction.commit().await?;
        if is_complete {
            return Ok(());
        }
    }
}

/// Adds all missing tables, or else what the first incomplete one lacks. Returns true if nothing is missing.
async fn add_missing(
    connection: &mut PgConnection,
    collections: &[&'static Collection],
) -> Result<bool, SchemaError> {
    let (columns, indexes) = existing(connection).await?;
    let parts = missing(collections, &columns, &indexes)?;
    let Some(first) = parts.first() else {
        return Ok(true);
    };
    let has_new = parts
        .iter()
        .any(|part| !columns.contains_key(part.collection));
    let chosen = parts.iter().filter(|part| match has_new {
        true => !columns.contains_key(part.collection),
        false => part.collection == first.collection,
    });
    for part in chosen {
        let added = run(connection, &part.statement).await;
        added.map_err(|error| match (&error, &part.index) {
            (sqlx::Error::Database(cause), Some(name)) if cause.is_unique_violation() => {
                SchemaError::Declaration(format!(
                    "{name} of {} cannot be created: a field is declared unique, but records share a value",
                    part.collection
                ))
            }
            _ => error.into(),
        })?;
    }
    Ok(false)
}

/// The difference between a database and the declarations.
pub(super) struct Comparison {
    /// True if the table of any collection exists.
    pub(super) has_tables: bool,
    /// Number of statements that would add what is missing.
    pub(super) missing: usize,
}

/// Compares the database with the declarations. Changes nothing.
pub(super) async fn compare(
    connection: &mut PgConnection,
    collections: &[&'static Collection],
) -> Result<Comparison, SchemaError> {
    let (columns, indexes) = existing(connection).await?;
    Ok(Comparison {
        has_tables: collections
            .iter()
            .any(|collection| columns.contains_key(collection.name)),
        missing: missing(collections, &columns, &indexes)?.len(),
    })
}

/// A part of the schema that the database lacks.
struct MissingPart {
    collection: &'static str,
    /// Name of the index, if the part is one.
    index: Option<String>,
    statement: String,
}

/// Returns the missing parts in the order in which they can be added.
fn missing(
    collections: &[&'static Collection],
    columns: &Columns,
    indexes: &HashSet<String>,
) -> Result<Vec<MissingPart>, SchemaError> {
    let mut parts = Vec::new();
    for collection in collections {
        let statement = match columns.get(collection.name) {
            None => Some(create_table_sql(collection)),
            Some(existing) => {
                let fields = missing_fields(collection, existing)?;
                (!fields.is_empty()).then(|| add_columns_sql(collection, &fields))
            }
        };
        parts.extend(statement.map(|statement| MissingPart {
            collection: collection.name,
            index: None,
            statement,
        }));
        let absent = index_statements(collection)
            .into_iter()
            .filter(|(name, _)| !indexes.contains(name));
        parts.extend(absent.map(|(name, statement)| MissingPart {
            collection: collection.name,
            index: Some(name),
            statement,
        }));
    }
    Ok(parts)
}

fn missing_fields(
    collection: &'static Collection,
    existing: &HashMap<String, String>,
) -> Result<Vec<&'static Field>, SchemaError> {
    let mut missing = Vec::new();
    for field in collection.fields {
        match existing.get(field.name) {
            None => missing.push(field),
            Some(found) if found == sql_type(field.kind) => {}
            Some(found) => {
                return Err(SchemaError::Declaration(format!(
                    "the field {} of {} was declared with another kind (the column is {found})",
                    field.name, collection.name
                )));
            }
        }
    }
    Ok(missing)
}

type Columns = HashMap<String, HashMap<String, String>>;

async fn existing(
    connection: &mut PgConnection,
) -> Result<(Columns, HashSet<String>), sqlx::Error> {
    // The information schema takes many times as long.
    let sql = "select c.relname::text, a.attname::text, format_type(a.atttypid, null) \
               from pg_attribute as a join pg_class as c on c.oid = a.attrelid \
               where c.relnamespace = (select oid from pg_namespace where nspname = current_schema()) and c.relkind in ('r', 'p') \
               and a.attnum > 0 and not a.attisdropped";
    let mut found = Columns::new();
    let columns = sqlx::query(sql).persistent(false);
    for row in columns.fetch_all(&mut *connection).await? {
        found
            .entry(row.try_get(0)?)
            .or_default()
            .insert(row.try_get(1)?, row.try_get(2)?);
    }
    let indexes = "select indexname::text from pg_indexes where schemaname = current_schema()";
    let names = sqlx::query_scalar(indexes)
        .persistent(false)
        .fetch_all(&mut *connection)
        .await?;
    Ok((found, names.into_iter().collect()))
}

/// Runs statements.
async fn run(connection: &mut PgConnection, statement: &str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(statement))
        .execute(connection)
        .await
        .map(drop)
}

/// Renders the whole schema as a script.
pub(crate) fn render(collections: &[&'static Collection]) -> String {
    let mut script = String::new();
    for collection in collections {
        // Writing to a string does not fail.
        let _ = writeln!(script, "{};", create_table_sql(collection));
        for (_, statement) in index_statements(collection) {
            let _ = writeln!(script, "{statement};");
        }
        script.push('\n');
    }
    script.truncate(script.trim_end().len());
    script + "\n"
}

fn create_table_sql(collection: &Collection) -> String {
    let mut columns = vec![
        "id text collate \"C\" primary key".to_owned(),
        "project text collate \"C\" not null".to_owned(),
        "revision bigint not null".to_owned(),
        "created_at bigint not null".to_owned(),
        "updated_at bigint not null".to_owned(),
        "deleted_at bigint".to_owned(),
        "body json not null".to_owned(),
    ];
    columns.extend(collection.fields.iter().map(column_sql));
    let table = format!(
        "create table {} (\n    {}\n)",
        quoted(collection.name),
        columns.join(",\n    ")
    );
    if collection.fields.is_empty() {
        table
    } else {
        format!("{table};\n{}", trigger_sql(collection))
    }
}

/// Returns statements that add columns and fill them in one transaction. Other writers wait for it.
fn add_columns_sql(collection: &Collection, fields: &[&Field]) -> String {
    let table = quoted(collection.name);
    let columns = fields
        .iter()
        .map(|field| format!("add column {}", column_sql(field)))
        .collect::<Vec<_>>()
        .join(", ");
    let filled = trigger_sql(collection);
    format!("alter table {table} {columns};\n{filled};\nupdate {table} set body = body")
}

fn column_sql(field: &Field) -> String {
    let collation = if field.kind == Kind::Text {
        " collate \"C\""
    } else {
        ""
    };
    format!("{} {}{collation}", quoted(field.name), sql_type(field.kind))
}

/// Returns the trigger that fills the columns of fields whenever a body is written.
///
/// The trigger reads the body once for all columns. Each generated column would parse the whole
/// body by itself: for the seven columns of the execution log, that was measured at five times all
/// other work of a write.
fn trigger_sql(collection: &Collection) -> String {
    let table = quoted(collection.name);
    let name = quoted(&format!("{}_fields", collection.name));
    let values = join_fields(collection, ",\n        ", value_sql);
    let columns = join_fields(collection, ", ", |field| {
        format!("new.{}", quoted(field.name))
    });
    let members = join_fields(collection, ", ", |field| {
        format!("{} json", quoted(field.name))
    });
    format!(
        "create or replace function {name}() returns trigger language plpgsql as $$\nbegin\n    select\n        {values}\n    \
         into {columns}\n    from json_to_record(new.body) as f ({members});\n    return new;\nend\n$$;\n\
         create or replace trigger {name} before insert or update of body on {table} for each row execute function {name}()"
    )
}

/// Renders every field of a collection, with a separator between them.
fn join_fields(
    collection: &Collection,
    separator: &str,
    render: impl Fn(&Field) -> String,
) -> String {
    collection
        .fields
        .iter()
        .map(render)
        .collect::<Vec<_>>()
        .join(separator)
}

/// Returns the SQL expression for the value of a field. A value that does not fit the field's kind
/// is absent, as it is for [`Values`](crate::values::Values).
fn value_sql(field: &Field) -> String {
    let member = format!("f.{}", quoted(field.name));
    let text = format!("{member} #>> '{{}}'");
    match field.kind {
        Kind::Text => {
            format!("case when json_typeof({member}) in ('string', 'boolean') then {text} end")
        }
        // The pattern is checked before the cast, because casting a fraction or too large a number
        // would fail the write.
        Kind::Int | Kind::Time => format!(
            "case when json_typeof({member}) = 'number' and {text} ~ '^(0|-?[1-9][0-9]{{0,18}})$' \
             then case when ({text})::numeric between -9223372036854775808 and 9223372036854775807 \
             then ({text})::bigint end end"
        ),
        Kind::List => format!("case when json_typeof({member}) = 'array' then {member}::jsonb end"),
    }
}

fn sql_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "text",
        Kind::Int | Kind::Time => "bigint",
        Kind::List => "jsonb",
    }
}

/// Returns the name and statement of every index: one on the age of live records, and one per field
/// on value and age. The index of a field across projects contains only records with a value.
fn index_statements(collection: &Collection) -> Vec<(String, String)> {
    let table = collection.name;
    let age = format!("{table}_by_created_at");
    let mut indexes = vec![index(collection, "index", age, "(project, created_at, id)")];
    for field in collection.fields {
        let column = quoted(field.name);
        let by_field = format!("{table}_by_{}", field.name);
        indexes.push(if field.unique {
            let on = format!("(project, {column} nulls first)");
            let name = unique_name(collection, field);
            index(collection, "unique index", name, &on)
        } else if field.across_projects {
            let name = format!("{table}_all_by_{}", field.name);
            let on = format!("({column} nulls first, created_at, id)");
            let (name, statement) = index(collection, "index", name, &on);
            (name, format!("{statement} and {column} is not null"))
        } else if field.kind == Kind::List {
            let on = format!("using gin ({column} jsonb_path_ops)");
            index(collection, "index", by_field, &on)
        } else {
            let on = format!("(project, {column} nulls first, created_at, id)");
            index(collection, "index", by_field, &on)
        });
    }
    indexes
}

/// Returns the name and statement of one index.
fn index(collection: &Collection, what: &str, name: String, on: &str) -> (String, String) {
    let statement = format!(
        "create {what} {} on {} {on} where deleted_at is null",
        quoted(&name),
        quoted(collection.name)
    );
    (name, statement)
}

fn unique_name(collection: &Collection, field: &Field) -> String {
    format!("{}_one_{}", collection.name, field.name)
}

/// Returns the field that a violated constraint is about, or `id` where the field is not declared.
pub(super) fn violated_field(collection: &'static Collection, constraint: &str) -> &'static str {
    collection
        .fields
        .iter()
        .find(|field| unique_name(collection, field) == constraint)
        .map_or("id", |field| field.name)
}
