//! Pagination: reads the pages of a list sequentially, as one sequence of items.

use std::collections::VecDeque;
use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Request, Response};
use crate::{Result, ToolError, mismatch};

/// Pagination scheme of a list.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Paging {
    step: Step,
    items: &'static str,
    size: Option<(&'static str, usize)>,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Link,
    NextUrl {
        place: &'static str,
    },
    Cursor {
        parameter: &'static str,
        place: &'static str,
    },
    Offset {
        parameter: &'static str,
    },
    Page {
        parameter: &'static str,
        first: usize,
    },
}

impl Paging {
    const fn new(step: Step) -> Self {
        Self {
            step,
            items: "",
            size: None,
        }
    }

    /// Follows the URL of the next page in the `Link` header.
    pub const fn link() -> Self {
        Self::new(Step::Link)
    }

    /// Follows the URL of the next page in the body at this JSON pointer, for example `/next`.
    pub const fn next_url(place: &'static str) -> Self {
        Self::new(Step::NextUrl { place })
    }

    /// Sends a cursor in the query parameter. Each page has the cursor of the next one in its body
    /// at this JSON pointer, for example `/meta/next_cursor`.
    pub const fn cursor(parameter: &'static str, place: &'static str) -> Self {
        Self::new(Step::Cursor { parameter, place })
    }

    /// Sends the number of items to skip in the query parameter. The list ends with an empty page,
    /// or with a short one if [`Self::size`] is set.
    pub const fn offset(parameter: &'static str) -> Self {
        Self::new(Step::Offset { parameter })
    }

    /// Sends the number of the page in the query parameter, counted from `first`. The list ends as
    /// with [`Self::offset`].
    pub const fn page(parameter: &'static str, first: usize) -> Self {
        Self::new(Step::Page { parameter, first })
    }

    /// Sets the JSON pointer to the items in the body of a page, for example `/data`. Without it
    /// the body is the array.
    pub const fn items(mut self, place: &'static str) -> Self {
        self.items = place;
        self
    }

    /// Asks for this many items per page with this query parameter.
    pub const fn size(mut self, parameter: &'static str, items: usize) -> Self {
        self.size = Some((parameter, items));
        self
    }
}

impl Request {
    /// Reads the items of all pages, at most `max` of them. The next page is requested when the
    /// items of the previous one are used up: `API.get("/items").items(Paging::link(),
    /// 200).collect::<Result<Vec<Item>>>()?`. An error ends the sequence.
    pub fn items<T: DeserializeOwned>(self, paging: Paging, max: usize) -> Items<T> {
        let first = match paging.size {
            // Items beyond `max` would only be discarded.
            Some((parameter, size)) => self.query(parameter, size.min(max.max(1))),
            None => self,
        };
        let next = match paging.step {
            Step::Offset { parameter } => first.clone().set_query(parameter, 0),
            Step::Page {
                parameter,
                first: number,
            } => first.clone().set_query(parameter, number),
            _ => first.clone(),
        };
        Items {
            first,
            paging,
            next: Some(next),
            page: VecDeque::new(),
            left: max,
            seen: 0,
            pages: 0,
            last: None,
            item: PhantomData,
        }
    }
}

/// Iterator over the items of all pages.
#[derive(Debug)]
pub struct Items<T> {
    first: Request,
    paging: Paging,
    next: Option<Request>,
    page: VecDeque<Value>,
    left: usize,
    seen: usize,
    pages: usize,
    /// Last cursor or URL of a next page. A provider that repeats it would otherwise never end the
    /// list.
    last: Option<String>,
    item: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Iterator for Items<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        if self.left == 0 {
            return None;
        }
        while self.page.is_empty() {
            let request = self.next.take()?;
            if let Err(error) = self.read(request) {
                self.left = 0;
                return Some(Err(error));
            }
        }
        self.left -= 1;
        let value = self.page.pop_front()?;
        Some(serde_json::from_value(value).map_err(|error| {
            let reason = mismatch::reason(&error);
            ToolError::upstream(format!(
                "an item of the list has an unexpected form: {reason}"
            ))
        }))
    }
}

impl<T> Items<T> {
    fn read(&mut self, request: Request) -> Result<()> {
        let response = request.send()?;
        let mut body: Value = response.json()?;
        let place = self.paging.items;
        let Some(Value::Array(items)) = body.pointer_mut(place).map(Value::take) else {
            let message = format!("the provider's page has no list at `{place}`");
            return Err(ToolError::upstream(message).upstream_status(response.status()));
        };
        self.seen += items.len();
        self.pages += 1;
        self.next = self.following(&response, &body, items.len());
        self.page = items.into();
        Ok(())
    }

    fn following(&mut self, response: &Response, body: &Value, count: usize) -> Option<Request> {
        let short = count == 0 || self.paging.size.is_some_and(|(_, size)| count < size);
        match self.paging.step {
            Step::Link => {
                let url = self.fresh(response.next_link()?)?;
                Some(self.first.clone().at(url))
            }
            Step::NextUrl { place } => {
                let url = self.fresh(cursor_text(body.pointer(place)?)?)?;
                Some(self.first.clone().at(url))
            }
            Step::Cursor { parameter, place } => {
                let cursor = self.fresh(cursor_text(body.pointer(place)?)?)?;
                Some(self.first.clone().set_query(parameter, cursor))
            }
            Step::Offset { parameter } => {
                (!short).then(|| self.first.clone().set_query(parameter, self.seen))
            }
            Step::Page { parameter, first } => {
                (!short).then(|| self.first.clone().set_query(parameter, first + self.pages))
            }
        }
    }

    /// Returns the cursor or URL of the next page, unless it is the same as the previous one.
    fn fresh(&mut self, place: String) -> Option<String> {
        if self.last.as_ref() == Some(&place) {
            return None;
        }
        self.last = Some(place.clone());
        Some(place)
    }
}

/// Returns a cursor as text: a string that is not empty, or a number.
pub(crate) fn cursor_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns the target of `rel="next"` in a `Link` header.
pub(super) fn next_link(header: &str) -> Option<String> {
    let mut rest = header;
    while let Some((_, link)) = rest.split_once('<') {
        let (target, parameters) = link.split_once('>')?;
        let end = parameters
            .find(",<")
            .or_else(|| parameters.find(", <"))
            .unwrap_or(parameters.len());
        let next = parameters[..end].split(';').any(|parameter| {
            let Some((name, value)) = parameter.split_once('=') else {
                return false;
            };
            let value = value.trim().trim_end_matches(',').trim().trim_matches('"');
            name.trim().eq_ignore_ascii_case("rel")
                && value
                    .split_whitespace()
                    .any(|kind| kind.eq_ignore_ascii_case("next"))
        });
        if next {
            return Some(target.to_owned());
        }
        rest = &parameters[end..];
    }
    None
}

#[cfg(test)]
mod tests {
    use super::next_link;

    #[test]
    fn the_next_link_is_found_in_every_spelling() {
        let two =
            r#"<https://a.example/i?page=1>; rel="prev", <https://a.example/i?page=3>; rel="next""#;
        assert_eq!(
            next_link(two).as_deref(),
            Some("https://a.example/i?page=3")
        );
        assert_eq!(
            next_link("<https://a.example/x,y>; title=x; rel=next").as_deref(),
            Some("https://a.example/x,y")
        );
        assert_eq!(
            next_link(r#"<https://a.example/z>; rel="last next""#).as_deref(),
            Some("https://a.example/z")
        );
        assert_eq!(next_link(r#"<https://a.example/z>; rel="last""#), None);
        assert_eq!(next_link("nonsense <"), None);
    }
}
