//! Queries on keys, which read as few records as possible.
//!
//! Each condition on a declared field becomes a *source*: ranges of index keys, each key naming a
//! record. A list without conditions walks one range and takes its total from a counter. A list
//! with a single equality, or with bounds on the field that orders it, counts and pages on keys.
//! A list in order of age with a single source sorts its keys and reads only the page. With more
//! conditions, the sources are walked in step, and the one that ends first is the smallest. If it
//! is small, its records are read and [`Query::run`] decides. Otherwise the other sources are
//! intersected with it, on keys.

use super::counters;
use super::keys::{DOCUMENT_ID_OFFSET, Key, Prefix, State, split_value, suffix_id};
use super::records::{self, CollectionRef, unreachable_tree};
use super::sources::{IndexSuffix, Range, Scope, Source, distinct, sources};
use crate::{Error, Page, Query, Row, Scalar};
use ::sled::Db;
use std::collections::HashSet;
use std::ops::Bound;

/// Maximum number of candidates that are all read and decided one by one.
const MAX_CANDIDATES_READ: usize = 512;
/// Maximum number of keys to walk per candidate. Above it, the candidates are read instead.
const MAX_KEYS_PER_CANDIDATE: usize = 4;

/// Runs a query. Nothing may write during the call.
pub(super) fn find(db: &Db, collection: CollectionRef, query: &Query) -> Result<Page, Error> {
    let page = counted(db, collection, query)?;
    let total = if query.counted { page.total } else { 0 };
    Ok(Page { total, ..page })
}

/// Runs a query. The total is that of a query that counts.
fn counted(db: &Db, collection: CollectionRef, query: &Query) -> Result<Page, Error> {
    query.check(collection.declaration)?;
    let scope = Scope::for_query(db, collection, query)?;
    if query.conditions.is_empty()
        && let Some((project, State::Live)) = scope.single()
    {
        return page_without_conditions(db, collection, query, project);
    }
    let (sources, rest) = sources(collection, query);
    if let ([source], false, None) = (&sources[..], rest, &query.order.field)
        && let Some(range) = source.by_age(collection, &scope)
    {
        return page_of_range(db, collection, query, range);
    }
    if let ([source @ Source::Span { place, .. }], false, Some(field)) =
        (&sources[..], rest, &query.order.field)
        && collection.declaration.fields[*place].name == field
    {
        return page_of_field(db, collection, query, &scope, source);
    }
    page_of_candidates(db, collection, query, &scope, &sources, rest)
}

/// Returns a page of all records that the keys of one field name, in the order of this field.
fn page_of_field(
    db: &Db,
    collection: CollectionRef,
    query: &Query,
    scope: &Scope,
    source: &Source,
) -> Result<Page, Error> {
    let is_beginning = query.after.is_none() && !query.order.descending;
    let length = match is_beginning && !query.counted {
        true => query.offset.saturating_add(query.limit),
        false => u64::MAX,
    };
    let (suffixes, total) = in_field_order(
        db,
        scope,
        query,
        length,
        |project, state| source.ranges(collection, project, state),
        |_| true,
    )?;
    cut(db, collection, query, suffixes, total)
}

/// Returns a page of the records that all sources name, and that meet the remaining conditions if there
/// are any.
fn page_of_candidates(
    db: &Db,
    collection: CollectionRef,
    query: &Query,
    scope: &Scope,
    sources: &[Source],
    rest: bool,
) -> Result<Page, Error> {
    let Some(smallest) = find_smallest(db, collection, scope, sources)? else {
        return query.run(collection.declaration, scan(db, collection, scope)?);
    };
    let mut candidates = smallest.suffixes;
    // The candidates of one source that settles all conditions are the result, in order of age.
    let are_decided = sources.len() == 1 && !rest && query.order.field.is_none();
    if candidates.len() <= MAX_CANDIDATES_READ && !are_decided {
        return query.run(collection.declaration, rows(db, collection, &candidates)?);
    }
    let mut read = rest;
    for (_, source) in sources
        .iter()
        .enumerate()
        .filter(|(place, _)| *place != smallest.place)
    {
        match source.within(
            candidates.len() * MAX_KEYS_PER_CANDIDATE,
            db,
            collection,
            scope,
        )? {
            Some(others) => candidates.retain(|suffix| others.contains(suffix)),
            None => read = true,
        }
    }
    if read {
        retain_matching(db, collection, query, &mut candidates)?;
    }
    let total = candidates.len() as u64;
    let suffixes = in_query_order(db, collection, scope, query, candidates)?;
    cut(db, collection, query, suffixes, total)
}

/// Returns the page of records in the order of the query.
fn cut(
    db: &Db,
    collection: CollectionRef,
    query: &Query,
    suffixes: Vec<IndexSuffix>,
    total: u64,
) -> Result<Page, Error> {
    let page = query.cut(suffixes.into_iter()).collect::<Vec<_>>();
    Ok(Page {
        rows: page_rows(db, collection, query, &page)?,
        total,
    })
}

/// Reads documents in order of id, starting after one. Nothing may write during the call.
pub(super) fn scan_from(
    db: &Db,
    collection: CollectionRef,
    after: &str,
    limit: u64,
) -> Result<Vec<Row>, Error> {
    let end = Key::collection(Prefix::Document, collection.number).range_end();
    let start = Key::document(collection.number, after).into_bytes();
    let mut rows = Vec::new();
    for entry in db.range((Bound::Excluded(start), Bound::Excluded(end))) {
        if rows.len() as u64 == limit {
            break;
        }
        let (key, value) = entry.map_err(|error| unreachable_tree(&error))?;
        let id = String::from_utf8_lossy(&key[DOCUMENT_ID_OFFSET..]);
        let document = Key::from_bytes(&key);
        rows.push(records::assemble(db, collection, &document, &id, value)?.row);
    }
    Ok(rows)
}

/// Returns a page of every live record of one project. The total is in a counter, and the page is a
/// part of one range.
fn page_without_conditions(
    db: &Db,
    collection: CollectionRef,
    query: &Query,
    project: &str,
) -> Result<Page, Error> {
    let total = counters::read(db, collection.number, project)?
        .live
        .unsigned_abs();
    let field = query
        .order
        .field
        .as_deref()
        .and_then(|name| collection.declaration.field(name));
    let key = match field {
        Some((place, _)) => Key::index(collection.number, State::Live, project, place),
        None => Key::age(collection.number, State::Live, project),
    };
    let mut range = Range::all(key.clone());
    if let Some(cursor) = &query.after {
        let value_key = if field.is_some() {
            key.value(cursor.value.as_ref())
        } else {
            key
        };
        let cursor_key = value_key.suffix(cursor.created_at, &cursor.id);
        if query.order.descending {
            range.end = cursor_key.into_bytes();
        } else {
            // First key after the cursor.
            range.start = cursor_key.raw(&[0]).into_bytes();
        }
    }
    // A page in the second half of a list is reached faster from the end.
    let length = query.limit.min(total.saturating_sub(query.offset));
    let from_end = query.after.is_none() && query.offset > total / 2;
    let skip = if from_end {
        total - query.offset.min(total) - length
    } else {
        query.offset
    };
    let backwards = query.order.descending != from_end;
    let mut suffixes = Vec::new();
    visit_keys(db, &range, backwards, skip, length, |rest| {
        let suffix = match field {
            Some(_) => split_value(rest).map(|(_, suffix)| suffix),
            None => Some(rest),
        };
        suffixes.extend(suffix.map(IndexSuffix::from));
    })?;
    if from_end {
        suffixes.reverse();
    }
    Ok(Page {
        rows: page_rows(db, collection, query, &suffixes)?,
        total,
    })
}

/// Returns a page of all records that one range of keys names, already in order of age. Only the keys
/// of the page are kept. All keys are counted, unless the query counts nothing: then only the keys up
/// to the end of the page are visited, from the query's cursor on.
fn page_of_range(
    db: &Db,
    collection: CollectionRef,
    query: &Query,
    mut range: Range,
) -> Result<Page, Error> {
    let mut total = 0_u64;
    let mut place = 0_u64;
    let mut suffixes = Vec::<IndexSuffix>::new();
    let end = query.offset.saturating_add(query.limit);
    let mut after_cursor = AfterCursor::from_query(query);
    let mut length = u64::MAX;
    if !query.counted {
        if let Some(cursor) = after_cursor.take() {
            range.continue_after(&cursor.suffix, cursor.descending);
        }
        length = end;
    }
    visit_keys(db, &range, query.order.descending, 0, length, |suffix| {
        total += 1;
        if after_cursor
            .as_ref()
            .is_none_or(|after_cursor| after_cursor.includes(None, suffix))
        {
            if (query.offset..end).contains(&place) {
                suffixes.push(suffix.into());
            }
            place += 1;
        }
    })?;
    Ok(Page {
        rows: page_rows(db, collection, query, &suffixes)?,
        total,
    })
}

/// Walks a part of a range, and passes the part of each key after the range's prefix to `visit`.
fn visit_keys(
    db: &Db,
    range: &Range,
    backwards: bool,
    skip: u64,
    length: u64,
    mut visit: impl FnMut(&[u8]),
) -> Result<(), Error> {
    let mut keys = db.range(&*range.start..&*range.end).keys();
    let mut next = || {
        if backwards {
            keys.next_back()
        } else {
            keys.next()
        }
    };
    let mut place = 0_u64;
    while place < skip.saturating_add(length)
        && let Some(key) = next()
    {
        let key = key.map_err(|error| unreachable_tree(&error))?;
        if place >= skip {
            visit(&key[range.prefix..]);
        }
        place += 1;
    }
    Ok(())
}

struct Smallest {
    place: usize,
    suffixes: Vec<IndexSuffix>,
}

/// Walks all sources in step until one has ended, and returns its candidates. Returns `None`
/// without sources.
fn find_smallest(
    db: &Db,
    collection: CollectionRef,
    scope: &Scope,
    sources: &[Source],
) -> Result<Option<Smallest>, Error> {
    let mut walks = sources
        .iter()
        .map(|source| (source.walk(db, collection, scope), Vec::new()))
        .collect::<Vec<_>>();
    if walks.is_empty() {
        return Ok(None);
    }
    loop {
        for (place, (walk, suffixes)) in walks.iter_mut().enumerate() {
            match walk.next().transpose()? {
                Some(found) => suffixes.extend(found),
                None => {
                    return Ok(Some(Smallest {
                        place,
                        suffixes: distinct(std::mem::take(suffixes)),
                    }));
                }
            }
        }
    }
}

/// Keeps the candidates that meet all conditions. Reads each of them.
fn retain_matching(
    db: &Db,
    collection: CollectionRef,
    query: &Query,
    suffixes: &mut Vec<IndexSuffix>,
) -> Result<(), Error> {
    let mut kept = Vec::new();
    for suffix in suffixes.drain(..) {
        let row = row(db, collection, &suffix)?;
        if query.holds(
            collection.declaration,
            &row,
            &records::values(collection, &row)?,
        ) {
            kept.push(suffix);
        }
    }
    *suffixes = kept;
    Ok(())
}

/// The position in the order after which a page starts, in the encoding of keys.
struct AfterCursor<'a> {
    value: Option<&'a Scalar>,
    suffix: Vec<u8>,
    descending: bool,
}

impl AfterCursor<'_> {
    fn from_query(query: &Query) -> Option<AfterCursor<'_>> {
        let cursor = query.after.as_ref()?;
        let suffix = Key::encode_suffix(cursor.created_at, &cursor.id);
        Some(AfterCursor {
            value: cursor.value.as_ref(),
            suffix,
            descending: query.order.descending,
        })
    }

    /// Returns true if a candidate comes after the position.
    fn includes(&self, value: Option<&Scalar>, suffix: &[u8]) -> bool {
        let ascending = (value, suffix).cmp(&(self.value, &*self.suffix));
        if self.descending {
            ascending.is_lt()
        } else {
            ascending.is_gt()
        }
    }
}

/// Sorts candidates, given in order of age, into the query's order, and drops those before the
/// beginning of the page.
fn in_query_order(
    db: &Db,
    collection: CollectionRef,
    scope: &Scope,
    query: &Query,
    mut suffixes: Vec<IndexSuffix>,
) -> Result<Vec<IndexSuffix>, Error> {
    let field = query.order.field.as_deref();
    let Some((place, _)) = field.and_then(|name| collection.declaration.field(name)) else {
        if let Some(after_cursor) = AfterCursor::from_query(query) {
            suffixes.retain(|suffix| after_cursor.includes(None, suffix));
        }
        if query.order.descending {
            suffixes.reverse();
        }
        return Ok(suffixes);
    };
    let wanted = suffixes.into_iter().collect::<HashSet<_>>();
    let (suffixes, _) = in_field_order(
        db,
        scope,
        query,
        u64::MAX,
        |project, state| {
            let key = Key::index(collection.number, state, project, place);
            vec![Range::all(key)]
        },
        |suffix| wanted.contains(suffix),
    )?;
    Ok(suffixes)
}

/// Returns the wanted candidates of ranges of one field's keys in the query's order, without those
/// before the beginning of the page, and the number of wanted candidates. Of each range, only the
/// first `length` keys are visited.
fn in_field_order(
    db: &Db,
    scope: &Scope,
    query: &Query,
    length: u64,
    ranges: impl Fn(&str, State) -> Vec<Range>,
    wanted: impl Fn(&[u8]) -> bool,
) -> Result<(Vec<IndexSuffix>, u64), Error> {
    let after_cursor = AfterCursor::from_query(query);
    let mut total = 0_u64;
    let mut found = Vec::new();
    for (project, state) in scope.parts() {
        for range in ranges(project, state) {
            visit_keys(db, &range, false, 0, length, |rest| {
                let Some((value, suffix)) = split_value(rest).filter(|(_, found)| wanted(found))
                else {
                    return;
                };
                total += 1;
                if after_cursor
                    .as_ref()
                    .is_none_or(|after_cursor| after_cursor.includes(value.as_ref(), suffix))
                {
                    found.push((value, IndexSuffix::from(suffix)));
                }
            })?;
        }
    }
    found.sort_unstable();
    if query.order.descending {
        found.reverse();
    }
    let suffixes = found.into_iter().map(|(_, suffix)| suffix).collect();
    Ok((suffixes, total))
}

/// Reads every record in scope, for a query whose conditions no index answers.
fn scan(db: &Db, collection: CollectionRef, scope: &Scope) -> Result<Vec<Row>, Error> {
    rows(db, collection, &Source::All.collect(db, collection, scope)?)
}

/// Reads the rows of a page. A body that the query leaves out is dropped before the next is read.
fn page_rows(
    db: &Db,
    collection: CollectionRef,
    query: &Query,
    suffixes: &[IndexSuffix],
) -> Result<Vec<Row>, Error> {
    suffixes
        .iter()
        .map(|suffix| Ok(query.page_row(row(db, collection, suffix)?)))
        .collect()
}

fn rows(db: &Db, collection: CollectionRef, suffixes: &[IndexSuffix]) -> Result<Vec<Row>, Error> {
    suffixes
        .iter()
        .map(|suffix| row(db, collection, suffix))
        .collect()
}

fn row(db: &Db, collection: CollectionRef, suffix: &[u8]) -> Result<Row, Error> {
    let id = suffix_id(suffix).ok_or_else(|| {
        Error::unreadable(collection.declaration, "?", &"an index key names no record")
    })?;
    match records::read(db, collection, id)? {
        Some(stored) => Ok(stored.row),
        None => Err(Error::unreadable(
            collection.declaration,
            id,
            &"an index refers to it, but it does not exist",
        )),
    }
}
