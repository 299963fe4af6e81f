//! Lists over several pages, read as one.

use manifest::plan::{Next, Pages};
use serde_json::{Map, Value};

use super::answer::written;
use crate::http::{Request, Response};
use crate::{Result, ToolError};

/// A call may send 50 requests.
const MOST_PAGES: u32 = 45;

/// Reads pages until there are so many items. The answer is the first page, with the items of all of them in its list.
pub(super) fn read(first: Request, pages: &Pages, wanted: usize) -> Result<Vec<u8>> {
    let mut told: Option<Value> = None;
    let mut items: Vec<Value> = Vec::new();
    let mut request = Some(first.clone());
    let mut at = Place { read: 0, items: 0, last: None };
    while let Some(next) = request.take() {
        let response = next.send()?;
        let mut page: Value = response.json()?;
        let Some(Value::Array(found)) = page.pointer_mut(&pages.items).map(Value::take) else {
            let message = format!("the application answered a page without a list at `{}`", pages.items);
            return Err(ToolError::upstream(message).upstream_status(response.status()));
        };
        at.read += 1;
        at.items += found.len();
        let more = !found.is_empty() && items.len() + found.len() < wanted && at.read < MOST_PAGES;
        items.extend(found);
        if more {
            request = at.next(&first, &response, &page, &pages.next);
        }
        told.get_or_insert(page);
    }
    items.truncate(wanted);
    let items = Value::Array(items);
    let mut told = told.unwrap_or_default();
    match told.pointer_mut(&pages.items) {
        Some(list) if !pages.items.is_empty() => *list = items,
        _ => told = Value::Object(Map::from_iter([("items".to_owned(), items)])),
    }
    written(&told)
}

/// How far the reading has come.
struct Place {
    read: u32,
    items: usize,
    /// Where the page before said the next one is: an application that repeats itself would never end.
    last: Option<String>,
}

impl Place {
    fn next(&mut self, first: &Request, response: &Response, page: &Value, next: &Next) -> Option<Request> {
        let first = first.clone();
        match next {
            Next::Link => Some(first.at(self.fresh(response.next_link()?)?)),
            Next::Url { place } => Some(first.at(self.fresh(text(page.pointer(place)?)?)?)),
            Next::Cursor { place, parameter } => {
                let cursor = self.fresh(text(page.pointer(place)?)?)?;
                Some(first.set_query(parameter, cursor))
            }
            Next::Offset { parameter } => Some(first.set_query(parameter, self.items)),
            Next::Page { parameter, first: number } => Some(first.set_query(parameter, number + self.read)),
        }
    }

    fn fresh(&mut self, place: String) -> Option<String> {
        let new = self.last.as_ref() != Some(&place);
        self.last = Some(place.clone());
        new.then_some(place)
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
