//! Pagination: reads the pages of a list as one.

use manifest::plan::{Body, Call, Next, Pages};
use serde_json::{Map, Value};

use super::answer::written;
use super::{Arguments, body};
use crate::http::{self, Request, Response, cursor_text};
use crate::{Result, ToolError};

/// Largest number of pages that one call reads. A call may send 50 requests.
const MAX_PAGES: u32 = 45;

/// Reads pages until they hold the wanted number of items. The result is the first page, with the
/// items of all pages in its list and with the continuation of the last page. The continuation is
/// left out if items of the last page were left out.
pub(super) fn read(
    first: Request,
    call: &Call,
    pages: &Pages,
    wanted: usize,
    given: &Arguments,
) -> Result<Vec<u8>> {
    let mut told: Option<Value> = None;
    let mut items: Vec<Value> = Vec::new();
    let mut request = Some(first.clone());
    let mut at = Position {
        read: 0,
        items: 0,
        last: None,
    };
    while let Some(next) = request.take() {
        let response = next.send()?;
        let mut page: Value = match &call.body {
            Some(Body::Graphql { .. }) => http::graphql_part(&response, &call.answer.pick)?,
            _ => response.json()?,
        };
        let Some(Value::Array(found)) = page.pointer_mut(&pages.items).map(Value::take) else {
            let message = format!("the provider's page has no list at `{}`", pages.items);
            return Err(ToolError::upstream(message).upstream_status(response.status()));
        };
        at.read += 1;
        at.items += found.len();
        let more = !found.is_empty() && items.len() + found.len() < wanted && at.read < MAX_PAGES;
        items.extend(found);
        if more {
            request = match (&call.body, &pages.next) {
                (Some(body @ Body::Graphql { .. }), Next::Cursor { place, parameter }) => {
                    let ended = page.pointer("/pageInfo/hasNextPage") == Some(&Value::Bool(false));
                    let cursor = if ended { None } else { at.cursor(&page, place) };
                    cursor
                        .map(|cursor| queried(&first, body, given, parameter, cursor))
                        .transpose()?
                }
                _ => at.next(&first, &response, &page, &pages.next),
            };
        }
        match &mut told {
            None => told = Some(page),
            Some(told) => goes_on(&pages.next)
                .for_each(|place| put(told, place, page.pointer(place).cloned())),
        }
    }
    let mut output = told.unwrap_or_default();
    if items.len() > wanted {
        items.truncate(wanted);
        goes_on(&pages.next).for_each(|place| put(&mut output, place, None));
    }
    let all = Value::Array(items);
    match output.pointer_mut(&pages.items) {
        Some(list) if !pages.items.is_empty() => *list = all,
        _ => output = Value::Object(Map::from_iter([("items".to_owned(), all)])),
    }
    written(&output)
}

/// Returns the JSON pointers to the continuation in a page.
fn goes_on(next: &Next) -> impl Iterator<Item = &str> {
    let place = match next {
        Next::Cursor { place, .. } | Next::Url { place } => Some(place.as_str()),
        _ => None,
    };
    // Connections of GraphQL state this next to their cursor.
    let more = place
        .filter(|place| place.ends_with("/pageInfo/endCursor"))
        .map(|_| "/pageInfo/hasNextPage");
    place.into_iter().chain(more)
}

/// Writes or removes the value at a JSON pointer.
fn put(page: &mut Value, place: &str, value: Option<Value>) {
    let Some((holder, name)) = place.rsplit_once('/') else {
        return;
    };
    let Some(Value::Object(holder)) = page.pointer_mut(holder) else {
        return;
    };
    let name = name.replace("~1", "/").replace("~0", "~");
    match value {
        Some(value) => drop(holder.insert(name, value)),
        None => holder.retain(|key, _| *key != name),
    }
}

/// Builds a query with the cursor among its variables.
fn queried(
    first: &Request,
    body: &Body,
    given: &Arguments,
    variable: &str,
    cursor: String,
) -> Result<Request> {
    let mut variables = given.clone();
    variables.insert(variable.to_owned(), cursor.into());
    body::write(first.clone(), body, &mut variables)
}

/// Progress of the reading.
struct Position {
    read: u32,
    items: usize,
    /// Last cursor or URL of a next page. A provider that repeats it would otherwise never end the
    /// list.
    last: Option<String>,
}

impl Position {
    fn next(
        &mut self,
        first: &Request,
        response: &Response,
        page: &Value,
        next: &Next,
    ) -> Option<Request> {
        let first = first.clone();
        match next {
            Next::Link => Some(first.at(self.fresh(response.next_link()?)?)),
            Next::Url { place } => Some(first.at(self.fresh(cursor_text(page.pointer(place)?)?)?)),
            Next::Cursor { place, parameter } => {
                let cursor = self.cursor(page, place)?;
                Some(first.set_query(parameter, cursor))
            }
            Next::Offset { parameter } => Some(first.set_query(parameter, self.items)),
            Next::Page {
                parameter,
                first: number,
            } => Some(first.set_query(parameter, number + self.read)),
        }
    }

    fn cursor(&mut self, page: &Value, place: &str) -> Option<String> {
        self.fresh(cursor_text(page.pointer(place)?)?)
    }

    fn fresh(&mut self, place: String) -> Option<String> {
        let new = self.last.as_ref() != Some(&place);
        self.last = Some(place.clone());
        new.then_some(place)
    }
}
