//! Pages of lists: the limit and the cursor that a client sends.

mod listed;

use std::sync::Arc;

use app::{Cursor, Scalar, Time, Window};
use axum::{extract::FromRequestParts, http::request::Parts};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::{ApiError, ApiResult, Query, Server, errors, permits, query::number_or_null};

pub use self::listed::{Listed, Position};

/// Items on a page of a request that names no limit.
const DEFAULT_LIMIT: u64 = 20;
/// Maximum number of items on a page.
pub const MAX_LIMIT: u64 = 1_000;
/// Maximum number of items on a [`ShortPage`].
const MAX_SHORT_LIMIT: u64 = 50;
/// Maximum characters that a list adds to its cursors: a time, and the last key of the page.
const MAX_STATE_CHARS: usize = 128;

/// Selection of a page of a list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Paging {
    /// Items on a page, 20 without it. More than the maximum of the list, 1000 for most lists and 50
    /// for a few, means that maximum.
    #[serde(default, deserialize_with = "number_or_null")]
    limit: Option<f64>,
    /// `next_cursor` of the page before; the limit that it contains takes precedence over `limit`.
    cursor: Option<String>,
}

/// Position in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Number of the page, from 1.
    pub number: u64,
    /// Items on the page, 1 to 1000.
    pub limit: u64,
    /// Additional state of the list for its next page, so that pages fit together even if items are
    /// added in the meantime.
    pub state: Option<String>,
}

impl Page {
    /// Returns the page that a limit and a cursor select, and acquires the permit to build it.
    ///
    /// # Errors
    /// If the cursor was not made by this server, or the project builds too many pages.
    pub async fn admit(limit: Option<f64>, cursor: Option<&str>) -> ApiResult<Self> {
        let page = Self::new(limit, cursor)?;
        permits::acquire_page().await?;
        Ok(page)
    }

    /// Returns the page that a limit and a cursor select. The limit in the cursor takes precedence.
    fn new(limit: Option<f64>, cursor: Option<&str>) -> ApiResult<Self> {
        if let Some(cursor) = cursor.filter(|cursor| !cursor.is_empty()) {
            return read_cursor(cursor).ok_or_else(|| errors::cursor_invalid().into());
        }
        let limit = limit.map_or(DEFAULT_LIMIT, |limit| {
            limit.clamp(1.0, MAX_LIMIT as f64) as u64
        });
        Ok(Self {
            number: 1,
            limit,
            state: None,
        })
    }

    /// Limits the items on the page to the most of a list.
    pub fn at_most(mut self, limit: u64) -> Self {
        self.limit = self.limit.min(limit);
        self
    }

    /// Returns the number of items on all earlier pages.
    pub fn offset(&self) -> u64 {
        (self.number - 1).saturating_mul(self.limit)
    }

    /// Returns the items of a list that are on the page, and the total number.
    pub fn cut<T>(&self, items: Vec<T>) -> (Vec<T>, u64) {
        let total = items.len() as u64;
        (self.part(items.into_iter()).collect(), total)
    }

    /// Returns the items of a list that are on the page.
    pub fn part<T>(&self, items: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        let offset = usize::try_from(self.offset()).unwrap_or(usize::MAX);
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        items.skip(offset).take(limit)
    }

    /// Returns the time recorded by the first page. Items created later are on no later page.
    pub fn as_of(&self) -> ApiResult<Option<Time>> {
        let time = self
            .state
            .as_deref()
            .and_then(|state| state.split('-').next())
            .filter(|time| !time.is_empty());
        time.map(|time| time.parse().map(Time))
            .transpose()
            .map_err(|_| errors::cursor_invalid().into())
    }

    /// Returns the section of a list of records on the page. A cursor continues after the last
    /// record of the page before; a cursor of an earlier version counts pages. `by_value` is true
    /// if a field other than the time of creation orders the list.
    pub fn window(&self, by_value: bool) -> ApiResult<Window> {
        let parts = self
            .state
            .as_deref()
            .and_then(|state| state.split_once('-'))
            .map(|(_, after)| after);
        let after = parts
            .map(|parts| parse_last_key(parts).filter(|last| last.value.is_some() == by_value));
        let after = after
            .map(|after| after.ok_or_else(errors::cursor_invalid))
            .transpose()?;
        let offset = if after.is_some() { 0 } else { self.offset() };
        Ok(Window {
            after,
            offset,
            limit: self.limit,
        })
    }

    /// Records the time of the newest item, unless an earlier page did.
    pub fn with_newest(self, newest: Option<Time>) -> Self {
        Self {
            state: self.state.or_else(|| Some(newest?.0.to_string())),
            ..self
        }
    }

    /// Returns the cursor of the next page, if there is one.
    pub fn next_cursor(&self, total: u64) -> Option<String> {
        (self.number.saturating_mul(self.limit) < total).then(|| self.next())
    }

    /// Returns the cursor of the page after the given last record.
    pub fn next_after(&self, last: Cursor) -> String {
        let Cursor {
            value,
            created_at,
            id,
        } = last;
        let as_of = self
            .state
            .as_deref()
            .and_then(|state| state.split('-').next())
            .unwrap_or_default();
        let value = match value {
            Some(Scalar::Int(number)) => number.to_string(),
            Some(Scalar::Text(_)) | None => String::new(),
        };
        let state = Some(format!("{as_of}-{value}-{}-{id}", created_at.0));
        Self {
            state,
            ..self.clone()
        }
        .next()
    }

    /// Returns the cursor of the next page.
    pub fn next(&self) -> String {
        cursor(&Page {
            number: self.number + 1,
            ..self.clone()
        })
    }
}

/// Reads the last key of a page: the value that orders the list, if one does, the time of creation,
/// and the id.
fn parse_last_key(parts: &str) -> Option<Cursor> {
    let mut parts = parts.splitn(3, '-');
    let value = match parts.next()? {
        "" => None,
        number => Some(Scalar::Int(number.parse().ok()?)),
    };
    let created_at = Time(parts.next()?.parse().ok()?);
    Some(Cursor {
        value,
        created_at,
        id: parts.next()?.to_owned(),
    })
}

/// Page of a list of at most [`MAX_SHORT_LIMIT`] items.
pub struct ShortPage(pub Page);

impl FromRequestParts<Arc<Server>> for Page {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> ApiResult<Self> {
        let Query(Paging { limit, cursor }) = Query::from_request_parts(parts, server).await?;
        Self::admit(limit, cursor.as_deref()).await
    }
}

impl FromRequestParts<Arc<Server>> for ShortPage {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> ApiResult<Self> {
        let page = Page::from_request_parts(parts, server).await?;
        Ok(Self(page.at_most(MAX_SHORT_LIMIT)))
    }
}

/// Encodes the cursor of a page: its number and limit, and the additional state of the list.
pub(crate) fn cursor(page: &Page) -> String {
    let state = page
        .state
        .as_ref()
        .map_or_else(String::new, |state| format!("-{state}"));
    BASE64.encode(format!("{}-{}{state}", page.number, page.limit))
}

fn read_cursor(text: &str) -> Option<Page> {
    let decoded = String::from_utf8(BASE64.decode(text).ok()?).ok()?;
    let mut parts = decoded.splitn(3, '-');
    let (number, limit) = (cursor_number(parts.next()?)?, cursor_number(parts.next()?)?);
    let state = parts.next().map(str::to_owned);
    let page = Page {
        number,
        limit,
        state,
    };
    (page.number >= 1
        && (1..=MAX_LIMIT).contains(&page.limit)
        && page.state.as_deref().is_none_or(is_cursor_state))
    .then_some(page)
}

fn cursor_number(text: &str) -> Option<u64> {
    let is_plain = !text.is_empty() && text.len() <= 12 && text.bytes().all(|b| b.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}

fn is_cursor_state(state: &str) -> bool {
    (1..=MAX_STATE_CHARS).contains(&state.len())
        && state
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page(number: u64, limit: u64) -> Page {
        with_state(number, limit, None)
    }

    fn with_state(number: u64, limit: u64, state: Option<&str>) -> Page {
        let state = state.map(str::to_owned);
        Page {
            number,
            limit,
            state,
        }
    }

    fn window(after: Option<Cursor>, offset: u64) -> Window {
        Window {
            after,
            offset,
            limit: 3,
        }
    }

    #[test]
    fn empty_list_has_one_page_without_cursor() {
        let position = Position::counted(&page(1, 20), 0);
        assert_eq!((position.total_pages, position.current_page), (1, 1));
        assert_eq!(position.next_cursor, None);
    }

    #[test]
    fn pages_cut_a_list_without_gap_or_overlap() {
        let (first, total) = page(1, 3).cut((0..7).collect());
        let (last, _) = page(3, 3).cut((0..7).collect());
        assert_eq!((first, total, last), (vec![0, 1, 2], 7, vec![6]));
        assert!(page(2, 3).next_cursor(7).is_some());
        assert!(page(3, 3).next_cursor(7).is_none());
        assert!(page(u64::MAX, 1000).cut(vec![1]).0.is_empty());
    }

    #[test]
    fn record_cursor_continues_after_last_key() {
        let next = |state: Option<&str>, value: Option<i64>| {
            let last = Cursor {
                value: value.map(Scalar::Int),
                created_at: Time(7),
                id: "ca_x".to_owned(),
            };
            let page = with_state(2, 3, state);
            let position = Position::after(&page, 1, Some(last.clone()));
            assert_eq!(
                (position.total_pages, position.current_page),
                (3, 2),
                "a page follows"
            );
            let read = Page::new(None, position.next_cursor.as_deref())
                .ok()
                .unwrap();
            assert_eq!((read.number, read.limit), (3, 3));
            let found = read.window(value.is_some()).ok().unwrap();
            assert_eq!(found, window(Some(last), 0));
            assert!(
                read.window(value.is_none()).is_err(),
                "it is a cursor of another order"
            );
            read.as_of().ok().unwrap()
        };
        assert_eq!(next(Some("1700"), None), Some(Time(1700)));
        assert_eq!(next(None, Some(9)), None);
        for earlier in [None, Some("1700")] {
            let read = with_state(2, 3, earlier);
            assert_eq!(read.window(true).ok().unwrap(), window(None, 3));
        }
        let foreign = with_state(2, 3, Some("1700-x"));
        assert!(foreign.window(false).is_err() && foreign.window(true).is_err());
    }

    #[test]
    fn other_text_is_no_cursor() {
        let not = "|x|0-20|1-0|1-1001|-1-20|+1-20|9999999999999-20|1-20 |a-b|1-20-|1-20-/";
        for text in not.split('|') {
            assert_eq!(read_cursor(&BASE64.encode(text)), None, "{text}");
        }
        assert_eq!(read_cursor("1-20"), None, "not base64");
        let read = Page::new(Some(5.0), Some("Ny01MA=="));
        assert_eq!(read.ok().unwrap(), page(7, 50), "the cursor's limit wins");
        assert!(Page::new(None, Some("%%%")).is_err());
    }

    proptest! {
        #[test]
        fn every_page_reads_back_from_its_cursor(
            number in 1_u64..=999_999_999_999,
            limit in 1..=MAX_LIMIT,
            state in proptest::option::of("[A-Za-z0-9_-]{1,20}"),
        ) {
            let page = Page { number, limit, state };
            prop_assert_eq!(read_cursor(&cursor(&page)), Some(page));
        }

        #[test]
        fn every_accepted_cursor_is_a_valid_page(text in "[0-9]{0,3}-[0-9]{0,4}(-.{0,4})?|.{0,12}") {
            if let Some(page) = read_cursor(&BASE64.encode(text)) {
                prop_assert!(page.number >= 1 && (1..=MAX_LIMIT).contains(&page.limit));
                prop_assert_eq!(read_cursor(&cursor(&page)), Some(page));
            }
        }
    }

    #[test]
    fn limit_out_of_range_is_clamped() {
        let limit = |limit| Page::new(limit, None).ok().unwrap().limit;
        assert_eq!(limit(None), 20);
        assert_eq!(limit(Some(9_999.0)), 1_000);
        assert_eq!(limit(Some(0.0)), 1);
        assert_eq!(limit(Some(-5.0)), 1);
    }
}
