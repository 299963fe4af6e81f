//! Sources of a query's candidates: ranges of index keys.

use super::counters;
use super::keys::{Key, State, split_value};
use super::records::{self, CollectionRef, unreachable_tree};
use crate::batch::MAX_TEXT_BYTES;
use crate::{Condition, Error, Kind, Predicate, Query, Scalar};
use ::sled::Db;
use std::collections::HashSet;

/// Creation time and id, the last parts of an index key. A suffix names a record and sorts by age.
pub(super) type IndexSuffix = Box<[u8]>;

/// The projects and states that a query covers.
#[derive(Debug)]
pub(super) struct Scope {
    projects: Vec<String>,
    states: &'static [State],
}

impl Scope {
    pub(super) fn for_query(
        db: &Db,
        collection: CollectionRef,
        query: &Query,
    ) -> Result<Scope, Error> {
        let mut projects = match &query.project {
            Some(project) => vec![project.clone()],
            None => counters::projects(db, collection.number)?,
        };
        for condition in query.conditions.iter().filter(|found| is_of_scope(found)) {
            projects.retain(|project| condition.test.holds(&[Scalar::from(project.as_str())]));
        }
        Ok(Scope {
            projects,
            states: match (query.deleted, query.only_deleted) {
                (_, true) => &[State::Removed],
                (true, false) => &[State::Live, State::Removed],
                (false, false) => &[State::Live],
            },
        })
    }

    /// Returns the only project and state, if the scope has one of each.
    pub(super) fn single(&self) -> Option<(&str, State)> {
        match (&*self.projects, self.states) {
            ([project], [state]) => Some((project, *state)),
            _ => None,
        }
    }

    /// Returns every combination of project and state.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&str, State)> {
        self.projects.iter().flat_map(|project| {
            self.states
                .iter()
                .map(move |state| (project.as_str(), *state))
        })
    }
}

/// A set of candidates for one condition.
#[derive(Debug)]
pub(super) enum Source {
    /// All records in scope.
    All,
    /// Records created within bounds.
    Age(Bounds),
    /// Records with one of these ids.
    Ids(Vec<String>),
    /// Records whose field has one of these values, created within bounds.
    Values {
        place: usize,
        values: Vec<Scalar>,
        age: Bounds,
    },
    /// Records whose field is a number within bounds.
    Span { place: usize, bounds: Bounds },
    /// Records whose field meets the test, checked value by value.
    Predicate { place: usize, test: Predicate },
}

/// Numbers or times of at least `low`, and below `high` if an upper bound is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    low: i64,
    high: Option<i64>,
}

impl Bounds {
    const NONE: Bounds = Bounds {
        low: i64::MIN,
        high: None,
    };

    fn from(low: i64) -> Bounds {
        Bounds { low, high: None }
    }

    fn below(high: i64) -> Bounds {
        Bounds {
            low: i64::MIN,
            high: Some(high),
        }
    }

    fn narrow(&mut self, other: Bounds) {
        self.low = self.low.max(other.low);
        self.high = self.high.into_iter().chain(other.high).min();
    }
}

/// Returns the sources of a query, and whether it has conditions that no source settles.
pub(super) fn sources(collection: CollectionRef, query: &Query) -> (Vec<Source>, bool) {
    let mut found = Vec::<Source>::new();
    let mut rest = false;
    for condition in query.conditions.iter().filter(|found| !is_of_scope(found)) {
        let source = match collection.declaration.field(&condition.field) {
            Some((place, field)) => declared(place, field.kind, &condition.test),
            None => envelope(&condition.field, &condition.test),
        };
        match source {
            // A lower and an upper bound on the same value form one range.
            Some(source) => {
                // An id may name a record outside the scope.
                rest |= matches!(source, Source::Ids(_));
                let lists = matches!(source, Source::Span { place, .. } if collection.declaration.fields[place].kind == Kind::List);
                if lists || !found.iter_mut().any(|other| other.narrow(&source)) {
                    found.push(source);
                }
            }
            None => rest = true,
        }
    }
    if found.is_empty() && !rest {
        found.push(Source::All);
    }
    (with_age(found), rest)
}

/// Returns true for a condition that the [`Scope`] settles.
fn is_of_scope(condition: &Condition) -> bool {
    condition.field == "project"
}

/// Moves bounds on the age into the ranges of values. The keys of one value are in order of age.
fn with_age(mut found: Vec<Source>) -> Vec<Source> {
    let Some(place) = found
        .iter()
        .position(|source| matches!(source, Source::Age(_)))
    else {
        return found;
    };
    if let (true, Source::Age(bounds)) = (
        found.iter().any(|s| matches!(s, Source::Values { .. })),
        &found[place],
    ) {
        let bounds = *bounds;
        found.remove(place);
        for source in &mut found {
            if let Source::Values { age, .. } = source {
                age.narrow(bounds);
            }
        }
    }
    found
}

fn declared(place: usize, kind: Kind, test: &Predicate) -> Option<Source> {
    let one_of = |values| Source::Values {
        place,
        values,
        age: Bounds::NONE,
    };
    let within = |bounds| Source::Span { place, bounds };
    Some(match test {
        Predicate::Equals(value) => one_of(vec![value.clone()]),
        Predicate::AnyOf(values) => one_of(values.clone()),
        Predicate::AtLeast(low) => within(Bounds::from(*low)),
        Predicate::Below(high) => within(Bounds::below(*high)),
        // Every element of a list has its own key. One key does not show which elements the list
        // lacks.
        Predicate::Not(_) if kind == Kind::List => return None,
        Predicate::Contains(_) | Predicate::Not(_) => Source::Predicate {
            place,
            test: test.clone(),
        },
    })
}

fn envelope(name: &str, test: &Predicate) -> Option<Source> {
    match (name, test) {
        ("created_at", Predicate::AtLeast(low)) => Some(Source::Age(Bounds::from(*low))),
        ("created_at", Predicate::Below(high)) => Some(Source::Age(Bounds::below(*high))),
        ("id", Predicate::Equals(Scalar::Text(id))) => Some(Source::Ids(vec![id.clone()])),
        ("id", Predicate::AnyOf(ids)) => {
            let ids = ids.iter().filter_map(|id| {
                if let Scalar::Text(id) = id {
                    Some(id.clone())
                } else {
                    None
                }
            });
            Some(Source::Ids(ids.collect()))
        }
        _ => None,
    }
}

/// A range of keys, and the length of the prefix before the part that names a candidate.
pub(super) struct Range {
    pub(super) start: Vec<u8>,
    pub(super) end: Vec<u8>,
    pub(super) prefix: usize,
}

impl Range {
    /// Returns the range of every key that starts with this one.
    pub(super) fn all(key: Key) -> Range {
        let end = key.range_end();
        let prefix = key.len();
        Range {
            start: key.into_bytes(),
            end,
            prefix,
        }
    }

    /// Leaves only the keys that come after the one with a suffix, in a range in order of age. With
    /// `descending`, these are the keys before it.
    pub(super) fn continue_after(&mut self, suffix: &[u8], descending: bool) {
        let mut key = [&self.start[..self.prefix], suffix].concat();
        if descending {
            self.end = key.min(std::mem::take(&mut self.end));
        } else {
            // First key after the one with the suffix.
            key.push(0);
            self.start = key.max(std::mem::take(&mut self.start));
        }
    }
}

/// Sorts candidates in order of age and removes duplicates. A list may name a record once for each
/// of its elements.
pub(super) fn distinct(mut suffixes: Vec<IndexSuffix>) -> Vec<IndexSuffix> {
    suffixes.sort_unstable();
    suffixes.dedup();
    suffixes
}

impl Source {
    /// Adds another bound on the same value. Returns false if the sources cannot be combined.
    fn narrow(&mut self, other: &Source) -> bool {
        match (self, other) {
            (Source::Age(bounds), Source::Age(other)) => bounds.narrow(*other),
            (
                Source::Span { place, bounds },
                Source::Span {
                    place: same,
                    bounds: other,
                },
            ) if place == same => {
                bounds.narrow(*other);
            }
            _ => return false,
        }
        true
    }

    /// Returns the single range whose keys are in order of age and name each record once, if the
    /// source is such a range.
    pub(super) fn by_age(&self, collection: CollectionRef, scope: &Scope) -> Option<Range> {
        let (project, state) = scope.single()?;
        let ordered = match self {
            Source::All | Source::Age(_) => true,
            Source::Values { values, .. } => values.len() == 1,
            _ => false,
        };
        let mut ranges = self.ranges(collection, project, state);
        if ordered && ranges.len() == 1 {
            ranges.pop()
        } else {
            None
        }
    }

    /// Returns all candidates, each once, in order of age.
    pub(super) fn collect(
        &self,
        db: &Db,
        collection: CollectionRef,
        scope: &Scope,
    ) -> Result<Vec<IndexSuffix>, Error> {
        let suffixes = self
            .walk(db, collection, scope)
            .filter_map(Result::transpose);
        Ok(distinct(suffixes.collect::<Result<_, _>>()?))
    }

    /// Returns all candidates, or `None` if more than `limit` keys would have to be read.
    pub(super) fn within(
        &self,
        limit: usize,
        db: &Db,
        collection: CollectionRef,
        scope: &Scope,
    ) -> Result<Option<HashSet<IndexSuffix>>, Error> {
        let mut suffixes = HashSet::new();
        for (place, found) in self.walk(db, collection, scope).enumerate() {
            if place >= limit {
                return Ok(None);
            }
            suffixes.extend(found?);
        }
        Ok(Some(suffixes))
    }

    /// Walks the keys. A key that names no candidate yields `None`, so that the length of the walk
    /// is its cost.
    pub(super) fn walk<'a>(
        &'a self,
        db: &'a Db,
        collection: CollectionRef,
        scope: &'a Scope,
    ) -> Box<dyn Iterator<Item = Result<Option<IndexSuffix>, Error>> + 'a> {
        if let Source::Ids(ids) = self {
            return Box::new(ids.iter().map(move |id| suffix_of_id(db, collection, id)));
        }
        let ranges = scope
            .parts()
            .flat_map(move |(project, state)| self.ranges(collection, project, state));
        Box::new(ranges.flat_map(move |Range { start, end, prefix }| {
            db.range(start..end).keys().map(move |key| {
                let key = key.map_err(|error| unreachable_tree(&error))?;
                Ok(self.candidate(&key[prefix..]))
            })
        }))
    }

    pub(super) fn ranges(
        &self,
        collection: CollectionRef,
        project: &str,
        state: State,
    ) -> Vec<Range> {
        match self {
            Source::All => vec![Range::all(Key::age(collection.number, state, project))],
            Source::Age(bounds) => aged(Key::age(collection.number, state, project), bounds),
            Source::Ids(_) => Vec::new(),
            Source::Values { place, values, age } => {
                let key = Key::index(collection.number, state, project, *place);
                // A string above the limit is in no record. Its key would only be long.
                let stored = values
                    .iter()
                    .filter(|value| !matches!(value, Scalar::Text(t) if t.len() > MAX_TEXT_BYTES));
                stored
                    .flat_map(|value| aged(key.clone().value(Some(value)), age))
                    .collect()
            }
            Source::Span {
                place,
                bounds: Bounds { low, high },
            } => {
                let key = Key::index(collection.number, state, project, *place);
                let numbers = key.clone().numbers();
                let end = high.map_or_else(
                    || numbers.range_end(),
                    |high| key.clone().numbers_from(high).into_bytes(),
                );
                let prefix = key.len();
                non_empty(key.numbers_from(*low), end, prefix)
            }
            Source::Predicate { place, .. } => {
                let key = Key::index(collection.number, state, project, *place);
                vec![Range::all(key)]
            }
        }
    }

    fn candidate(&self, rest: &[u8]) -> Option<IndexSuffix> {
        match self {
            Source::All | Source::Age(_) | Source::Values { .. } | Source::Ids(_) => {
                Some(rest.into())
            }
            Source::Span { .. } => split_value(rest).map(|(_, suffix)| suffix.into()),
            Source::Predicate { test, .. } => {
                let (value, suffix) = split_value(rest)?;
                test.holds(value.as_slice()).then(|| suffix.into())
            }
        }
    }
}

/// Returns the range of the keys with this prefix whose creation time is within bounds.
fn aged(key: Key, Bounds { low, high }: &Bounds) -> Vec<Range> {
    let end = high.map_or_else(
        || key.range_end(),
        |high| key.clone().created_from(high).into_bytes(),
    );
    let prefix = key.len();
    non_empty(key.created_from(*low), end, prefix)
}

/// Returns a range, unless it is empty.
fn non_empty(start: Key, end: Vec<u8>, prefix: usize) -> Vec<Range> {
    let start = start.into_bytes();
    if start < end {
        vec![Range { start, end, prefix }]
    } else {
        Vec::new()
    }
}

/// Returns the suffix of the record with an id. The conditions decide on project and state.
fn suffix_of_id(
    db: &Db,
    collection: CollectionRef,
    id: &str,
) -> Result<Option<IndexSuffix>, Error> {
    let found = records::read(db, collection, id)?;
    Ok(found.map(|found| Key::encode_suffix(found.row.created_at, id).into_boxed_slice()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Collection, Field};

    static THING_DECLARATION: Collection = Collection {
        name: "things",
        erasure: crate::Erasure::Project,
        fields: &[
            Field::new("rank", Kind::Int),
            Field::new("tags", Kind::List),
        ],
    };

    const THING_COLLECTION: CollectionRef = CollectionRef {
        number: 0,
        declaration: &THING_DECLARATION,
    };

    #[test]
    fn bounds_merge_for_numbers_but_not_lists() {
        let all = Query::for_project("p");
        let ranks = all.clone().at_least("rank", 2).below("rank", 9);
        let (one, rest) = sources(THING_COLLECTION, &ranks.at_least("rank", 4));
        assert!(
            matches!(
                one[..],
                [Source::Span {
                    bounds: Bounds {
                        low: 4,
                        high: Some(9)
                    },
                    ..
                }]
            ) && !rest
        );
        let (two, _) = sources(THING_COLLECTION, &all.at_least("tags", 2).below("tags", 9));
        assert_eq!(two.len(), 2);
    }

    #[test]
    fn age_bounds_narrow_a_value_range() {
        let recent = Query::for_project("p").at_least("created_at", 5);
        let (one, _) = sources(
            THING_COLLECTION,
            &recent.is("rank", 1).below("created_at", 7),
        );
        assert!(matches!(
            one[..],
            [Source::Values {
                age: Bounds {
                    low: 5,
                    high: Some(7)
                },
                ..
            }]
        ));
    }
}
