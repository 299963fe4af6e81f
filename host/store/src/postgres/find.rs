//! Translation of a query into one statement.

use super::{ENVELOPE_COLUMNS, RECORD_COLUMNS, quoted, record, text};
use crate::{Collection, Cursor, Kind, Page, Predicate, Query, Scalar};
use sqlx::postgres::{PgRow, Postgres};
use sqlx::{QueryBuilder, Row as _};

/// Reads the result of the [`statement`] for a query.
pub(super) fn page(query: &Query, rows: &[PgRow]) -> Result<Page, sqlx::Error> {
    let counted = rows.first().filter(|_| query.counted);
    let total = counted.map_or(Ok(0), |row| row.try_get::<i64, _>("total"))?;
    // An empty page has one row, in which only the total is set.
    let found = rows
        .iter()
        .filter(|row| !matches!(row.try_get::<Option<&str>, _>("id"), Ok(None)));
    Ok(Page {
        rows: found.map(record).collect::<Result<_, _>>()?,
        total: total.unsigned_abs(),
    })
}

/// Builds the statement for a query. The query must name declared fields only.
pub(super) fn statement(collection: &Collection, query: &Query) -> QueryBuilder<Postgres> {
    if query.counted {
        return counted(collection, query);
    }
    let mut sql = QueryBuilder::new("");
    page_of(&mut sql, collection, query);
    sql
}

/// Each row of the page carries the total. The left join of one row to many keeps the order of the
/// many.
fn counted(collection: &Collection, query: &Query) -> QueryBuilder<Postgres> {
    let table = quoted(collection.name);
    let mut sql = QueryBuilder::new(format!(
        "select * from (select count(*) as total from {table}"
    ));
    conditions(&mut sql, collection, query);
    sql.push(") as counted left join (");
    page_of(&mut sql, collection, query);
    sql.push(") as page on true");
    sql
}

/// Adds the statement for the records of the page.
fn page_of(sql: &mut QueryBuilder<Postgres>, collection: &Collection, query: &Query) {
    let table = quoted(collection.name);
    let columns = if query.bodies {
        RECORD_COLUMNS
    } else {
        ENVELOPE_COLUMNS
    };
    sql.push(format!("select {columns} from {table}"));
    conditions(sql, collection, query);
    after(sql, query);
    sql.push(order(query));
    if query.limit != u64::MAX {
        sql.push(format!(
            " limit {}",
            query.limit.min(i64::MAX.unsigned_abs())
        ));
    }
    if query.offset > 0 {
        sql.push(format!(
            " offset {}",
            query.offset.min(i64::MAX.unsigned_abs())
        ));
    }
}

/// Builds the statement that counts the records of a query by the values of a string field.
pub(super) fn counts(
    collection: &Collection,
    query: &Query,
    field: &str,
) -> QueryBuilder<Postgres> {
    let table = quoted(collection.name);
    let column = quoted(field);
    let mut sql = QueryBuilder::new(format!(
        "select {column} as value, count(*) as total from {table}"
    ));
    conditions(&mut sql, collection, query);
    sql.push(" group by 1");
    sql
}

/// Reads one row of the result of [`counts`].
pub(super) fn count(row: &PgRow) -> Result<(String, u64), sqlx::Error> {
    let total: i64 = row.try_get("total")?;
    Ok((text::unescape(row.try_get("value")?), total.unsigned_abs()))
}

fn order(query: &Query) -> String {
    let (turn, absent) = if query.order.descending {
        ("desc", "last")
    } else {
        ("asc", "first")
    };
    let field = query
        .order
        .field
        .as_deref()
        .map(quoted)
        .map(|field| format!("{field} {turn} nulls {absent}, "))
        .unwrap_or_default();
    format!(" order by {field}created_at {turn}, id {turn}")
}

fn push_scalar(sql: &mut QueryBuilder<Postgres>, value: &Scalar) {
    match value {
        Scalar::Int(number) => sql.push_bind(*number),
        Scalar::Text(text) => sql.push_bind(text::escape(text).into_owned()),
    };
}

/// Adds the condition that a row comes after the query's cursor. Absent values come first in
/// ascending order and last in descending order.
fn after(sql: &mut QueryBuilder<Postgres>, query: &Query) {
    let Some(cursor) = &query.after else { return };
    let (operator, other) = if query.order.descending {
        ("<", "is null")
    } else {
        (">", "is not null")
    };
    sql.push(" and (");
    match (query.order.field.as_deref().map(quoted), &cursor.value) {
        (None, _) => push_age(sql, operator, cursor),
        // Absent values are the end of the descending order and the beginning of the ascending one.
        (Some(field), None) if query.order.descending => {
            sql.push(format!("{field} is null and "));
            push_age(sql, operator, cursor);
        }
        (Some(field), None) => {
            sql.push(format!("{field} {other} or "));
            push_age(sql, operator, cursor);
        }
        (Some(field), Some(value)) => {
            if query.order.descending {
                sql.push(format!("{field} {other} or "));
            }
            sql.push(format!("{field} {operator} "));
            push_scalar(sql, value);
            sql.push(format!(" or {field} = "));
            push_scalar(sql, value);
            sql.push(" and ");
            push_age(sql, operator, cursor);
        }
    }
    sql.push(")");
}

/// Adds the condition that a row comes after a cursor in order of age.
fn push_age(sql: &mut QueryBuilder<Postgres>, operator: &str, cursor: &Cursor) {
    sql.push(format!("(created_at, id) {operator} ("))
        .push_bind(cursor.created_at.0)
        .push(", ");
    sql.push_bind(text::escape(&cursor.id).into_owned())
        .push(")");
}

fn conditions(sql: &mut QueryBuilder<Postgres>, collection: &Collection, query: &Query) {
    sql.push(" where true");
    if !query.deleted {
        sql.push(" and deleted_at is null");
    }
    if query.only_deleted {
        sql.push(" and deleted_at is not null");
    }
    if let Some(project) = &query.project {
        sql.push(" and project = ")
            .push_bind(text::escape(project).into_owned());
    }
    for condition in &query.conditions {
        let kind = match collection.field(&condition.field) {
            Some((_, field)) => field.kind,
            None if condition.field.ends_with("_at") => Kind::Time,
            None => Kind::Text,
        };
        sql.push(" and ");
        test(sql, &quoted(&condition.field), kind, &condition.test);
    }
}

/// Adds a test of a column with the meaning of [`Predicate::holds`]. In SQL, a test of an absent
/// value is unknown, which is not true.
fn test(sql: &mut QueryBuilder<Postgres>, column: &str, kind: Kind, test: &Predicate) {
    match test {
        Predicate::Not(inner) => {
            sql.push("(");
            self::test(sql, column, kind, inner);
            sql.push(") is not true");
        }
        Predicate::Equals(value) => equal(sql, column, kind, std::slice::from_ref(value)),
        Predicate::AnyOf(values) => equal(sql, column, kind, values),
        Predicate::Contains(part) => contains(sql, column, kind, part),
        Predicate::AtLeast(bound) => compare(sql, column, kind, ">=", *bound),
        Predicate::Below(bound) => compare(sql, column, kind, "<", *bound),
    }
}

fn equal(sql: &mut QueryBuilder<Postgres>, column: &str, kind: Kind, values: &[Scalar]) {
    match (kind, values) {
        (Kind::Text, [Scalar::Text(text)]) => {
            sql.push(format!("{column} = "))
                .push_bind(text::escape(text).into_owned());
        }
        (Kind::Int | Kind::Time, [Scalar::Int(number)]) => {
            sql.push(format!("{column} = ")).push_bind(*number);
        }
        (Kind::Text, _) => {
            sql.push(format!("{column} = any("))
                .push_bind(texts(values).collect::<Vec<_>>())
                .push(")");
        }
        (Kind::Int | Kind::Time, _) => {
            sql.push(format!("{column} = any("))
                .push_bind(numbers(values).collect::<Vec<_>>())
                .push(")");
        }
        (Kind::List, _) => {
            let texts = texts(values).map(serde_json::Value::from);
            let elements = texts.chain(numbers(values).map(serde_json::Value::from));
            sql.push("(false");
            for element in elements {
                let holder = serde_json::Value::from(vec![element]);
                sql.push(format!(" or {column} @> "))
                    .push_bind(holder.to_string())
                    .push("::jsonb");
            }
            sql.push(")");
        }
    }
}

/// Returns the strings among values, escaped.
fn texts(values: &[Scalar]) -> impl Iterator<Item = String> {
    values.iter().filter_map(|value| match value {
        Scalar::Text(text) => Some(text::escape(text).into_owned()),
        Scalar::Int(_) => None,
    })
}

/// Returns the numbers among values.
fn numbers(values: &[Scalar]) -> impl Iterator<Item = i64> {
    values.iter().filter_map(|value| match value {
        Scalar::Int(number) => Some(*number),
        Scalar::Text(_) => None,
    })
}

fn contains(sql: &mut QueryBuilder<Postgres>, column: &str, kind: Kind, part: &str) {
    match kind {
        Kind::Text => push_contains(sql, column, part),
        Kind::Int | Kind::Time => {
            sql.push("false");
        }
        Kind::List => {
            sql.push(format!(
                "exists (select from jsonb_array_elements({column}) as element where "
            ));
            sql.push("jsonb_typeof(element) = 'string' and ");
            push_contains(sql, "(element #>> '{}')", part);
            sql.push(")");
        }
    }
}

/// Adds the condition that a string contains a part.
fn push_contains(sql: &mut QueryBuilder<Postgres>, column: &str, part: &str) {
    let escaped = text::escape(part).into_owned();
    if !escaped.starts_with(text::SECOND_CHARS) {
        sql.push(format!("strpos({column}, "))
            .push_bind(escaped)
            .push(") > 0");
        return;
    }
    let (before, after) = with_distinct_escapes("\n")
        .split_once('\n')
        .map_or_else(Default::default, |(a, b)| (a.to_owned(), b.to_owned()));
    let searched = with_distinct_escapes(column);
    sql.push(format!("strpos({searched}, {before}"))
        .push_bind(escaped)
        .push(format!("{after}) > 0"));
}

/// Returns an expression in which `strpos` does not match within an escape. The second character of
/// an escape can equal the first character of a part. The `replace` calls change the escapes.
fn with_distinct_escapes(expression: &str) -> String {
    format!(
        "replace(replace({expression}, e'\\x01\\x02', e'\\x01\\x04'), e'\\x01\\x03', e'\\x01\\x05')"
    )
}

fn compare(sql: &mut QueryBuilder<Postgres>, column: &str, kind: Kind, operator: &str, bound: i64) {
    match kind {
        Kind::Int | Kind::Time => {
            sql.push(format!("{column} {operator} ")).push_bind(bound);
        }
        Kind::Text => {
            sql.push("false");
        }
        Kind::List => {
            sql.push(format!(
                "exists (select from jsonb_array_elements({column}) as element where "
            ));
            sql.push(format!(
                "jsonb_typeof(element) = 'number' and element {operator} to_jsonb("
            ));
            sql.push_bind(bound).push("))");
        }
    }
}
