//! Detects pagination from widely used names. A wrong guess does no harm: reading further pages is
//! only an option, and it ends at a response without a next page.

use manifest::plan::{Next, Pages, ParameterIn};
use serde_json::Value;

use crate::Operation;

const CURSOR_PARAMETERS: [&str; 14] = [
    "cursor",
    "after",
    "page_token",
    "pageToken",
    "next_token",
    "nextToken",
    "NextToken",
    "page[cursor]",
    "page[after]",
    "start_cursor",
    "next_page_token",
    "continuation_token",
    "continuationToken",
    "marker",
];
const NEXT_CURSOR_MEMBERS: [&str; 16] = [
    "next_cursor",
    "nextCursor",
    "nextPageToken",
    "next_page_token",
    "nextToken",
    "NextToken",
    "next_token",
    "continuation_token",
    "continuationToken",
    "next_page",
    "cursor",
    "after",
    "marker",
    "end_cursor",
    "endCursor",
    "next",
];
const NEXT_URL_MEMBERS: [&str; 8] = [
    "next",
    "next_url",
    "next_page_url",
    "nextLink",
    "next_page_uri",
    "@odata.nextLink",
    "next_href",
    "href",
];
/// Objects of a page that are about pagination.
const PAGING_OBJECTS: [&str; 11] = [
    "meta",
    "paging",
    "pagination",
    "page_info",
    "pageInfo",
    "response_metadata",
    "links",
    "_links",
    "metadata",
    "cursors",
    "page",
];
const OFFSET_PARAMETERS: [&str; 6] = [
    "offset",
    "skip",
    "startAt",
    "start_at",
    "$skip",
    "page[offset]",
];
const PAGE_NUMBER_PARAMETERS: [&str; 5] =
    ["page", "page_number", "pageNumber", "page[number]", "Page"];
const LIST_MEMBERS: [&str; 8] = [
    "data", "items", "results", "values", "value", "records", "entries", "list",
];

/// Detects the pagination of the list that an operation returns.
pub(super) fn detect(
    made: &Operation,
    response: &Value,
    flat: &mut dyn FnMut(&Value) -> Value,
) -> Option<Pages> {
    if made.method != "GET" || made.answer.file {
        return None;
    }
    let page = flat(made.answer.schema.as_ref()?);
    let items = list(&page, flat)?;
    let link = response["headers"]
        .as_object()
        .is_some_and(|headers| headers.keys().any(|it| it.eq_ignore_ascii_case("link")));
    let by_link = link.then_some(Next::Link);
    let next = by_link
        .or_else(|| by_cursor(made, &page, flat))
        .or_else(|| by_url(&page, flat))
        .or_else(|| by_number(made));
    Some(Pages {
        next: next?,
        items,
        argument: String::new(),
    })
}

/// Returns the pointer to the list in a page, if it is unambiguous.
fn list(page: &Value, flat: &mut dyn FnMut(&Value) -> Value) -> Option<String> {
    if page["type"] == "array" {
        return Some(String::new());
    }
    let members = page.get("properties")?.as_object()?;
    let mut lists: Vec<&String> = Vec::new();
    for (name, member) in members {
        if flat(member)["type"] == "array" {
            lists.push(name);
        }
    }
    let usual = LIST_MEMBERS
        .iter()
        .find_map(|usual| lists.iter().find(|name| *name == usual));
    let name = match (usual, lists.as_slice()) {
        (Some(name), _) | (None, [name]) => name,
        _ => return None,
    };
    Some(format!("/{}", name.replace('~', "~0").replace('/', "~1")))
}

fn query<'a>(made: &'a Operation, names: &[&str]) -> Option<&'a crate::Parameter> {
    names.iter().find_map(|name| {
        made.parameters
            .iter()
            .find(|it| it.place == ParameterIn::Query && it.name == **name)
    })
}

fn by_cursor(
    made: &Operation,
    page: &Value,
    flat: &mut dyn FnMut(&Value) -> Value,
) -> Option<Next> {
    let parameter = query(made, &CURSOR_PARAMETERS)?.name.clone();
    let place = member(page, &NEXT_CURSOR_MEMBERS, &["string", "integer"], flat)?;
    Some(Next::Cursor { place, parameter })
}

fn by_url(page: &Value, flat: &mut dyn FnMut(&Value) -> Value) -> Option<Next> {
    let place = member(page, &NEXT_URL_MEMBERS, &["string"], flat)?;
    Some(Next::Url { place })
}

fn by_number(made: &Operation) -> Option<Next> {
    if let Some(offset) = query(made, &OFFSET_PARAMETERS) {
        return Some(Next::Offset {
            parameter: offset.name.clone(),
        });
    }
    let page = query(made, &PAGE_NUMBER_PARAMETERS)
        .filter(|page| page.schema["type"] != "object" && page.schema["type"] != "array")?;
    let from_zero = ["default", "minimum"]
        .iter()
        .any(|word| page.schema[*word].as_i64() == Some(0));
    Some(Next::Page {
        parameter: page.name.clone(),
        first: u32::from(!from_zero),
    })
}

/// Returns the pointer to a property with one of these names, at the top of a page or in an object
/// about pagination.
fn member(
    page: &Value,
    names: &[&str],
    kinds: &[&str],
    flat: &mut dyn FnMut(&Value) -> Value,
) -> Option<String> {
    let mut holders = vec![(String::new(), page.clone())];
    for holder in PAGING_OBJECTS {
        let inner = flat(&page["properties"][holder]);
        let deeper = flat(&inner["properties"]["next"]);
        holders.push((format!("/{holder}"), inner));
        holders.push((format!("/{holder}/next"), deeper));
    }
    for (place, holder) in holders {
        for name in names {
            let schema = flat(&holder["properties"][*name]);
            let fits = match &schema["type"] {
                Value::Array(several) => {
                    several.iter().any(|kind| kinds.iter().any(|it| kind == it))
                }
                one => kinds.iter().any(|it| one == it),
            };
            // A link at the top called `href` is that of the page itself.
            if fits && (*name != "href" || place.ends_with("/next")) {
                return Some(format!(
                    "{place}/{}",
                    name.replace('~', "~0").replace('/', "~1")
                ));
            }
        }
    }
    None
}
