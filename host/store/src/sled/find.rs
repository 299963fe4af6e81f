//! Queries on keys, which read as few records as possible.
//!
//! Each condition on a declared field becomes a *source*: ranges of index keys, each key naming a
//! record. A list without conditions walks one range and takes its total from a counter. A list
//! with a single equality counts and pages on keys. With more conditions, the sources are walked in
//! step, and the one that ends first is the smallest. If it is small, its records are read and
//! [`Query::run`] decides. Otherwise the other sources are intersected with it, on keys.

use super::counters;
use super::keys::{DOCUMENT_ID, Key, Prefix, State, split_value, tail_id};
use super::records::{self, Shelf, unreachable_tree};
use super::sources::{Range, Scope, Source, Tail, distinct, sources};
use crate::{Error, Page, Query, Row, Scalar};
use ::sled::Db;
use std::collections::HashSet;
use std::ops::Bound;

/// Maximum number of candidates that are all read and decided one by one.
const FEW: usize = 512;
/// Maximum number of keys to walk per candidate. Above it, the candidates are read instead.
const KEYS_PER_RECORD: usize = 4;

/// Runs a query. Nothing may write during the call.
pub(super) fn find(db: &Db, shelf: Shelf, query: &Query) -> Result<Page, Error> {
    query.check(shelf.at)?;
    let scope = Scope::of(db, shelf, query)?;
    if query.conditions.is_empty()
        && let Some((project, State::Live)) = scope.single()
    {
        return whole(db, shelf, query, project);
    }
    let (sources, rest) = sources(shelf, query);
    if let ([source], false, None) = (&sources[..], rest, &query.order.field)
        && let Some(range) = source.by_age(shelf, &scope)
    {
        return counted(db, shelf, query, &range);
    }
    let Some(smallest) = race(db, shelf, &scope, &sources)? else {
        return query.run(shelf.at, scan(db, shelf, &scope)?);
    };
    let mut tails = smallest.tails;
    if tails.len() <= FEW {
        return query.run(shelf.at, rows(db, shelf, &tails)?);
    }
    let mut read = rest;
    for (_, source) in sources
        .iter()
        .enumerate()
        .filter(|(place, _)| *place != smallest.place)
    {
        match source.within(tails.len() * KEYS_PER_RECORD, db, shelf, &scope)? {
            Some(others) => tails.retain(|tail| others.contains(tail)),
            None => read = true,
        }
    }
    if read {
        decide(db, shelf, query, &mut tails)?;
    }
    let total = tails.len() as u64;
    let tails = ordered(db, shelf, &scope, query, tails)?;
    Ok(Page {
        rows: rows(db, shelf, &query.cut(tails.into_iter()).collect::<Vec<_>>())?,
        total,
    })
}

/// Reads documents in order of id, starting after one. Nothing may write during the call.
pub(super) fn scan_from(db: &Db, shelf: Shelf, after: &str, limit: u64) -> Result<Vec<Row>, Error> {
    let end = Key::collection(Prefix::Document, shelf.number).after();
    let start = Key::document(shelf.number, after).into_bytes();
    let mut rows = Vec::new();
    for entry in db.range((Bound::Excluded(start), Bound::Excluded(end))) {
        if rows.len() as u64 == limit {
            break;
        }
        let (key, value) = entry.map_err(|error| unreachable_tree(&error))?;
        let (key, id) = (
            Key::whole(&key),
            String::from_utf8_lossy(&key[DOCUMENT_ID..]),
        );
        rows.push(records::assemble(db, shelf, &key, &id, value)?.row);
    }
    Ok(rows)
}

/// Returns a page of every live record of one project. The total is in a counter, and the page is a
/// part of one range.
fn whole(db: &Db, shelf: Shelf, query: &Query, project: &str) -> Result<Page, Error> {
    let total = counters::of(db, shelf.number, project)?.live.unsigned_abs();
    let field = query
        .order
        .field
        .as_deref()
        .and_then(|name| shelf.at.field(name));
    let key = match field {
        Some((place, _)) => Key::index(shelf.number, State::Live, project, place),
        None => Key::age(shelf.number, State::Live, project),
    };
    let mut range = Range::all(key.clone());
    if let Some(mark) = &query.after {
        let key = if field.is_some() {
            key.value(mark.value.as_ref())
        } else {
            key
        };
        let key = key.tail(mark.created_at, &mark.id);
        if query.order.descending {
            range.end = key.into_bytes();
        } else {
            // First key after the mark.
            range.start = key.raw(&[0]).into_bytes();
        }
    }
    let tail = |rest: &[u8]| -> Option<Tail> {
        Some(if field.is_some() {
            split_value(rest)?.1.into()
        } else {
            rest.into()
        })
    };
    // A page in the second half of a list is reached faster from the end.
    let length = query.limit.min(total.saturating_sub(query.offset));
    let from_end = query.after.is_none() && query.offset > total / 2;
    let skip = if from_end {
        total - query.offset.min(total) - length
    } else {
        query.offset
    };
    let backwards = query.order.descending != from_end;
    let mut tails = Vec::new();
    each(db, &range, backwards, skip, length, |rest| {
        tails.extend(tail(rest))
    })?;
    if from_end {
        tails.reverse();
    }
    Ok(Page {
        rows: rows(db, shelf, &tails)?,
        total,
    })
}

/// Returns a page of all records that one range of keys names, already in order of age. All keys
/// are counted, and only those of the page are kept.
fn counted(db: &Db, shelf: Shelf, query: &Query, range: &Range) -> Result<Page, Error> {
    let (mut total, mut place, mut tails) = (0_u64, 0_u64, Vec::<Tail>::new());
    let end = query.offset.saturating_add(query.limit);
    let behind = Behind::of(query);
    each(db, range, query.order.descending, 0, u64::MAX, |tail| {
        total += 1;
        if behind
            .as_ref()
            .is_none_or(|behind| behind.is_met(None, tail))
        {
            if (query.offset..end).contains(&place) {
                tails.push(tail.into());
            }
            place += 1;
        }
    })?;
    Ok(Page {
        rows: rows(db, shelf, &tails)?,
        total,
    })
}

/// Walks a part of a range, and passes the part of each key after the range's prefix to `visit`.
fn each(
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
    tails: Vec<Tail>,
}

/// Walks all sources in step until one has ended, and returns its candidates. Returns none without
/// sources.
fn race(
    db: &Db,
    shelf: Shelf,
    scope: &Scope,
    sources: &[Source],
) -> Result<Option<Smallest>, Error> {
    let mut walks = sources
        .iter()
        .map(|source| (source.walk(db, shelf, scope), Vec::new()))
        .collect::<Vec<_>>();
    if walks.is_empty() {
        return Ok(None);
    }
    loop {
        for (place, (walk, tails)) in walks.iter_mut().enumerate() {
            match walk.next().transpose()? {
                Some(found) => tails.extend(found),
                None => {
                    return Ok(Some(Smallest {
                        place,
                        tails: distinct(std::mem::take(tails)),
                    }));
                }
            }
        }
    }
}

/// Keeps the candidates that meet all conditions. Reads each of them.
fn decide(db: &Db, shelf: Shelf, query: &Query, tails: &mut Vec<Tail>) -> Result<(), Error> {
    let mut kept = Vec::new();
    for tail in tails.drain(..) {
        let row = row(db, shelf, &tail)?;
        if query.holds(shelf.at, &row, &records::values(shelf, &row)?) {
            kept.push(tail);
        }
    }
    *tails = kept;
    Ok(())
}

/// The position in the order after which a page starts, in the encoding of keys.
struct Behind<'a> {
    value: Option<&'a Scalar>,
    tail: Vec<u8>,
    descending: bool,
}

impl Behind<'_> {
    fn of(query: &Query) -> Option<Behind<'_>> {
        let mark = query.after.as_ref()?;
        let tail = Key::tail_of(mark.created_at, &mark.id);
        Some(Behind {
            value: mark.value.as_ref(),
            tail,
            descending: query.order.descending,
        })
    }

    /// Returns true if a candidate comes after the position.
    fn is_met(&self, value: Option<&Scalar>, tail: &[u8]) -> bool {
        let ascending = (value, tail).cmp(&(self.value, &*self.tail));
        if self.descending {
            ascending.is_lt()
        } else {
            ascending.is_gt()
        }
    }
}

/// Sorts candidates, given in order of age, into the query's order, and drops those before the
/// beginning of the page.
fn ordered(
    db: &Db,
    shelf: Shelf,
    scope: &Scope,
    query: &Query,
    tails: Vec<Tail>,
) -> Result<Vec<Tail>, Error> {
    let behind = Behind::of(query);
    let is_met = |value: Option<&Scalar>, tail: &[u8]| {
        behind
            .as_ref()
            .is_none_or(|behind| behind.is_met(value, tail))
    };
    let mut tails = match query
        .order
        .field
        .as_deref()
        .and_then(|name| shelf.at.field(name))
    {
        None => tails
            .into_iter()
            .filter(|tail| is_met(None, tail))
            .collect::<Vec<_>>(),
        Some((place, _)) => {
            let wanted = tails.into_iter().collect::<HashSet<_>>();
            let mut found = Vec::with_capacity(wanted.len());
            for (project, state) in scope.parts() {
                let range = Range::all(Key::index(shelf.number, state, project, place));
                each(db, &range, false, 0, u64::MAX, |rest| {
                    if let Some((value, tail)) = split_value(rest)
                        && wanted.contains(tail)
                        && is_met(value.as_ref(), tail)
                    {
                        found.push((value, Tail::from(tail)));
                    }
                })?;
            }
            found.sort_unstable();
            found.into_iter().map(|(_, tail)| tail).collect()
        }
    };
    if query.order.descending {
        tails.reverse();
    }
    Ok(tails)
}

/// Reads every record in scope, for a query whose conditions no index answers.
fn scan(db: &Db, shelf: Shelf, scope: &Scope) -> Result<Vec<Row>, Error> {
    rows(db, shelf, &Source::All.collect(db, shelf, scope)?)
}

fn rows(db: &Db, shelf: Shelf, tails: &[Tail]) -> Result<Vec<Row>, Error> {
    tails.iter().map(|tail| row(db, shelf, tail)).collect()
}

fn row(db: &Db, shelf: Shelf, tail: &[u8]) -> Result<Row, Error> {
    let id = tail_id(tail)
        .ok_or_else(|| Error::unreadable(shelf.at, "?", &"an index key names no record"))?;
    match records::read(db, shelf, id)? {
        Some(stored) => Ok(stored.row),
        None => Err(Error::unreadable(
            shelf.at,
            id,
            &"an index names it, but it is not there",
        )),
    }
}
