//! Queries and their meaning.
//!
//! [`Query::run`] over all records of a collection defines the meaning of a query. A backend may
//! work in any way that returns the same records in the same order and the same total. The
//! conformance suite compares backends with `run`.
//!
//! In addition to the declared fields, conditions may name these fields of the envelope: `id`,
//! `project`, `created_at`, `updated_at`. Ties are broken by creation time, then by id, so every
//! order is total.

use crate::values::{Scalar, Values};
use crate::{Collection, Error, Kind, Record, Row, Time};
use bytes::Bytes;
use std::cmp::Ordering;

/// The test of a condition on a field's value. On a list, one element has to meet it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Predicate {
    /// Equal to the value.
    Equals(Scalar),
    /// Equal to one of the values. An empty list of values holds for no record.
    AnyOf(Vec<Scalar>),
    /// A string that contains this part, compared byte by byte. For a comparison without case, fold
    /// case before storing and before asking.
    Contains(String),
    /// A number or time of at least this.
    AtLeast(i64),
    /// A number or time below this.
    Below(i64),
    /// The opposite of a test. It holds when the value is absent and the inner test needs one.
    Not(Box<Predicate>),
}

/// A condition on one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// A declared field, or `id`, `project`, `created_at`, `updated_at`.
    pub field: String,
    /// The test of the value.
    pub test: Predicate,
}

/// The order of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// A declared field, except a list, absent values first. `None` means creation time.
    pub field: Option<String>,
    /// True if the whole order is reversed, ties included.
    pub descending: bool,
}

/// A cursor: the position of a record in the order of a list. Cursors compare as the records do in
/// ascending order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// Value of the field that orders the list. `None` where no field does, or where the value is
    /// absent.
    pub value: Option<Scalar>,
    /// Creation time of the record.
    pub created_at: Time,
    /// Id of the record.
    pub id: String,
}

impl Cursor {
    /// Returns the position of a record in a list without an ordering field.
    pub fn at<T>(record: &Record<T>) -> Cursor {
        Cursor {
            value: None,
            created_at: record.created_at,
            id: record.id.clone(),
        }
    }
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Cursor after which the part starts, or `None` for the start of the list.
    pub after: Option<Cursor>,
    /// Number of records to skip from there.
    pub offset: u64,
    /// Maximum number of records in the part.
    pub limit: u64,
}

impl Window {
    /// Returns the window at the beginning of a list, with at most `limit` records.
    #[must_use]
    pub fn first(limit: u64) -> Window {
        Window {
            after: None,
            offset: 0,
            limit,
        }
    }

    /// Returns the window of the same size after a cursor.
    #[must_use]
    pub fn after(self, cursor: Cursor) -> Window {
        Window {
            after: Some(cursor),
            offset: 0,
            limit: self.limit,
        }
    }
}

/// Filter, order and page of a list of one collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Project of the records. `None` asks across all projects.
    pub project: Option<String>,
    /// Conditions that all have to hold.
    pub conditions: Vec<Condition>,
    /// The order.
    pub order: Order,
    /// Cursor after which the records start. The total counts all records nevertheless.
    pub after: Option<Cursor>,
    /// Number of records to skip after `after`.
    pub offset: u64,
    /// Maximum number of records to return.
    pub limit: u64,
    /// True if removed records are included.
    pub deleted: bool,
    /// True if live records are left out.
    pub only_deleted: bool,
    /// True if the records of all pages are counted.
    pub counted: bool,
    /// True if rows have their bodies. Otherwise their bodies are empty.
    pub bodies: bool,
}

/// One page of a list of rows, and the total number of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The rows of the page, in order.
    pub rows: Vec<Row>,
    /// Number of rows that meet the conditions, on all pages together. Zero if the query does not
    /// count them.
    pub total: u64,
}

impl Query {
    /// Asks for every record of a project, oldest first.
    pub fn for_project(project: &str) -> Query {
        Query {
            project: Some(project.to_owned()),
            ..Query::all_projects()
        }
    }

    /// Asks for every record of all projects, oldest first.
    pub fn all_projects() -> Query {
        Query {
            project: None,
            conditions: Vec::new(),
            order: Order::default(),
            after: None,
            offset: 0,
            limit: u64::MAX,
            deleted: false,
            only_deleted: false,
            counted: true,
            bodies: true,
        }
    }

    /// Demands that a field equals a value.
    pub fn is(self, field: &str, value: impl Into<Scalar>) -> Query {
        self.test(field, Predicate::Equals(value.into()))
    }

    /// Demands that a field equals one of several values.
    pub fn any_of<S: Into<Scalar>>(
        self,
        field: &str,
        values: impl IntoIterator<Item = S>,
    ) -> Query {
        self.test(
            field,
            Predicate::AnyOf(values.into_iter().map(Into::into).collect()),
        )
    }

    /// Demands that a field equals one of several values, if there are any.
    pub fn filter<S: Into<Scalar>>(
        self,
        field: &str,
        values: impl IntoIterator<Item = S>,
    ) -> Query {
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return self;
        }
        self.any_of(field, values)
    }

    /// Requires that a string contains a part.
    pub fn contains(self, field: &str, part: &str) -> Query {
        self.test(field, Predicate::Contains(part.to_owned()))
    }

    /// Demands a number or time of at least `least`.
    pub fn at_least(self, field: &str, least: i64) -> Query {
        self.test(field, Predicate::AtLeast(least))
    }

    /// Demands a number or time below `bound`.
    pub fn below(self, field: &str, bound: i64) -> Query {
        self.test(field, Predicate::Below(bound))
    }

    /// Demands that a field does not equal a value.
    pub fn is_not(self, field: &str, value: impl Into<Scalar>) -> Query {
        self.test(
            field,
            Predicate::Not(Box::new(Predicate::Equals(value.into()))),
        )
    }

    /// Adds a condition.
    pub fn test(mut self, field: &str, test: Predicate) -> Query {
        self.conditions.push(Condition {
            field: field.to_owned(),
            test,
        });
        self
    }

    /// Orders by a declared field, smallest first.
    pub fn order_by(mut self, field: &str) -> Query {
        self.order.field = Some(field.to_owned());
        self
    }

    /// Reverses the order: newest first, or greatest value of the ordering field first.
    pub fn descending(mut self) -> Query {
        self.order.descending = true;
        self
    }

    /// Asks for at most `limit` records after the first `offset`.
    pub fn page(mut self, offset: u64, limit: u64) -> Query {
        (self.offset, self.limit) = (offset, limit);
        self
    }

    /// Asks for a part of the list.
    pub fn window(mut self, window: Window) -> Query {
        (self.after, self.offset, self.limit) = (window.after, window.offset, window.limit);
        self
    }

    /// Asks for the records after a cursor.
    pub fn after(mut self, cursor: Cursor) -> Query {
        self.after = Some(cursor);
        self
    }

    /// Leaves out the total, which may cost more than the page.
    pub fn uncounted(mut self) -> Query {
        self.counted = false;
        self
    }

    /// Leaves out the bodies, which may be large. For [`Store::rows`](crate::Store::rows): a row
    /// without its body cannot be decoded.
    pub fn without_bodies(mut self) -> Query {
        self.bodies = false;
        self
    }

    /// Includes removed records.
    pub fn with_deleted(mut self) -> Query {
        self.deleted = true;
        self
    }

    /// Asks for removed records alone.
    pub fn only_deleted(mut self) -> Query {
        (self.deleted, self.only_deleted) = (true, true);
        self
    }

    /// Runs the query over all records of a collection. This is the definition of the query's
    /// meaning.
    ///
    /// Fails when the query names a field the collection does not declare, or orders by a list.
    pub fn run(
        &self,
        collection: &'static Collection,
        rows: impl IntoIterator<Item = Row>,
    ) -> Result<Page, Error> {
        self.check(collection)?;
        let mut kept = Vec::new();
        for row in rows {
            let values = Values::from_body(collection, &row.body)
                .map_err(|error| Error::unreadable(collection, &row.id, &error))?;
            if self.holds(collection, &row, &values) {
                kept.push((self.sort_key(collection, &values), row));
            }
        }
        kept.sort_by(|(a_key, a), (b_key, b)| {
            self.compare((a_key, a.created_at, &a.id), (b_key, b.created_at, &b.id))
        });
        let total = if self.counted { kept.len() as u64 } else { 0 };
        let after_cursor = kept.into_iter().filter(|(key, row)| {
            self.after.as_ref().is_none_or(|cursor| {
                let order = self.compare(
                    (key, row.created_at, &row.id),
                    (&cursor.value, cursor.created_at, &cursor.id),
                );
                order.is_gt()
            })
        });
        let rows = after_cursor.map(|(_, row)| row);
        Ok(Page {
            rows: self.cut(rows).map(|row| self.page_row(row)).collect(),
            total,
        })
    }

    /// Returns the position of a record in the order of this list.
    pub fn cursor(&self, collection: &'static Collection, row: &Row) -> Result<Cursor, Error> {
        let values = Values::from_body(collection, &row.body)
            .map_err(|error| Error::unreadable(collection, &row.id, &error))?;
        Ok(Cursor {
            value: self.sort_key(collection, &values),
            created_at: row.created_at,
            id: row.id.clone(),
        })
    }

    /// Refuses a query that names an undeclared field, or that continues after a value of another
    /// type than its order has.
    pub fn check(&self, collection: &'static Collection) -> Result<(), Error> {
        let ordered = self.order.field.iter().map(|name| (name, true));
        let tested = self
            .conditions
            .iter()
            .map(|condition| (&condition.field, false));
        for (name, ordered) in tested.chain(ordered) {
            let known = match collection.field(name) {
                Some((_, field)) => !(ordered && field.kind == Kind::List),
                None => ENVELOPE_MEMBERS.contains(&name.as_str()) && !ordered,
            };
            if !known {
                return Err(Error::Undeclared {
                    collection: collection.name,
                    field: name.clone(),
                });
            }
        }
        if let Some(value) = self.after.as_ref().and_then(|cursor| cursor.value.as_ref()) {
            let ordered = self.order.field.as_deref();
            let kind = ordered
                .and_then(|name| collection.field(name))
                .map(|(_, field)| field.kind);
            let fits = match value {
                Scalar::Int(_) => matches!(kind, Some(Kind::Int | Kind::Time)),
                Scalar::Text(_) => kind == Some(Kind::Text),
            };
            if !fits {
                let field = ordered.unwrap_or("created_at").to_owned();
                return Err(Error::Undeclared {
                    collection: collection.name,
                    field,
                });
            }
        }
        Ok(())
    }

    /// Returns true if a record meets the conditions, on any page.
    pub(crate) fn holds<T>(
        &self,
        collection: &Collection,
        record: &Record<T>,
        values: &Values,
    ) -> bool {
        (self.deleted || record.is_live())
            && !(self.only_deleted && record.is_live())
            && self
                .project
                .as_ref()
                .is_none_or(|project| *project == record.project)
            && self
                .conditions
                .iter()
                .all(|condition| match collection.field(&condition.field) {
                    Some((place, _)) => condition.test.holds(values.at(place)),
                    None => condition.test.holds(&[envelope(record, &condition.field)]),
                })
    }

    /// Skips the offset and stops at the limit.
    pub(crate) fn cut<I>(&self, items: impl Iterator<Item = I>) -> impl Iterator<Item = I> {
        let offset = usize::try_from(self.offset).unwrap_or(usize::MAX);
        items
            .skip(offset)
            .take(usize::try_from(self.limit).unwrap_or(usize::MAX))
    }

    /// Returns a row of the page, without its body if the query leaves out bodies.
    pub(crate) fn page_row(&self, row: Row) -> Row {
        if self.bodies {
            row
        } else {
            row.map(|_| Bytes::new())
        }
    }

    /// Returns the value that a record is ordered by, before its creation time.
    fn sort_key(&self, collection: &Collection, values: &Values) -> Option<Scalar> {
        let (place, _) = collection.field(self.order.field.as_deref()?)?;
        values.at(place).first().cloned()
    }

    /// Compares two positions of the list. Each is a value of the ordering field, a creation time
    /// and an id.
    fn compare(
        &self,
        a: (&Option<Scalar>, Time, &str),
        b: (&Option<Scalar>, Time, &str),
    ) -> Ordering {
        let ascending = a.cmp(&b);
        if self.order.descending {
            ascending.reverse()
        } else {
            ascending
        }
    }
}

impl Predicate {
    /// Returns true if the values of a field meet the test.
    pub fn holds(&self, values: &[Scalar]) -> bool {
        match self {
            Predicate::Equals(wanted) => values.contains(wanted),
            Predicate::AnyOf(wanted) => values.iter().any(|value| wanted.contains(value)),
            Predicate::Contains(part) => values
                .iter()
                .any(|value| matches!(value, Scalar::Text(text) if text.contains(part.as_str()))),
            Predicate::AtLeast(least) => values
                .iter()
                .any(|value| matches!(value, Scalar::Int(n) if n >= least)),
            Predicate::Below(bound) => values
                .iter()
                .any(|value| matches!(value, Scalar::Int(n) if n < bound)),
            Predicate::Not(test) => !test.holds(values),
        }
    }
}

/// Members of the envelope that conditions may name.
pub(crate) const ENVELOPE_MEMBERS: [&str; 4] = ["id", "project", "created_at", "updated_at"];

fn envelope<T>(record: &Record<T>, name: &str) -> Scalar {
    let Time(at) = if name == "created_at" {
        record.created_at
    } else {
        record.updated_at
    };
    match name {
        "id" => Scalar::Text(record.id.clone()),
        "project" => Scalar::Text(record.project.clone()),
        _ => Scalar::Int(at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Field;

    static THINGS_COLLECTION: Collection = Collection {
        name: "things",
        erasure: crate::Erasure::Project,
        fields: &[
            Field::new("rank", Kind::Int),
            Field::new("tags", Kind::List),
        ],
    };

    fn row(id: &str, at: i64, body: &str) -> Row {
        let body = Bytes::copy_from_slice(body.as_bytes());
        Record::inserted("p", id, Time(at), body)
    }

    fn ids(query: &Query) -> Vec<String> {
        let rows = [
            row("a", 2, r#"{"rank":1,"tags":["x","y"]}"#),
            row("b", 1, r#"{"rank":1}"#),
            row("c", 1, r#"{"tags":["y"]}"#),
            Record {
                deleted_at: Some(Time(9)),
                ..row("d", 1, "{}")
            },
        ];
        query
            .run(&THINGS_COLLECTION, rows)
            .unwrap()
            .rows
            .into_iter()
            .map(|row| row.id)
            .collect()
    }

    #[test]
    fn absent_values_sort_first_ties_by_age() {
        let all = Query::for_project("p");
        let by_rank = all.clone().order_by("rank");
        assert_eq!(ids(&by_rank), ["c", "b", "a"]);
        assert_eq!(ids(&by_rank.descending()), ["a", "b", "c"]);
        assert_eq!(ids(&all), ["b", "c", "a"]);
    }

    #[test]
    fn one_list_element_satisfies_a_test() {
        let all = Query::for_project("p");
        assert_eq!(ids(&all.clone().is("tags", "y")), ["c", "a"]);
        assert_eq!(ids(&all.clone().is_not("tags", "x")), ["b", "c"]);
        assert!(ids(&all.any_of::<&str>("tags", [])).is_empty());
    }

    #[test]
    fn removed_records_are_hidden_unless_asked_for() {
        assert_eq!(ids(&Query::all_projects().with_deleted().page(2, 1)), ["d"]);
        assert_eq!(ids(&Query::for_project("p").only_deleted()), ["d"]);
    }

    #[test]
    fn undeclared_field_and_list_order_are_refused() {
        let all = Query::for_project("p");
        for query in [all.clone().is("colour", "red"), all.order_by("tags")] {
            assert!(query.run(&THINGS_COLLECTION, []).is_err(), "{query:?}");
        }
    }
}
