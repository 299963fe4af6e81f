//! Pagination of lists: `pageToken` takes the value of `nextPageToken`.

use manifest::plan::{Next, Pages, ParameterIn};
use serde_json::{Map, Value};

use crate::{Operation, schema, schema::Shared};

/// Lists of a page that are about the response itself.
const METADATA_MEMBERS: [&str; 4] = [
    "defaultReminders",
    "unreachable",
    "unreachables",
    "warnings",
];

/// Returns the pagination of the list that an operation returns. `resource` is the name of the
/// listed resource.
pub(super) fn detect(operation: &Operation, resource: &str, shared: &Shared) -> Option<Pages> {
    let asks = operation
        .parameters
        .iter()
        .any(|it| it.place == ParameterIn::Query && it.name == "pageToken");
    let page = schema::flat(operation.answer.schema.as_ref()?, shared);
    let members = page.get("properties")?.as_object()?;
    if !asks || !members.contains_key("nextPageToken") {
        return None;
    }
    Some(Pages {
        next: Next::Cursor {
            place: "/nextPageToken".to_owned(),
            parameter: "pageToken".to_owned(),
        },
        items: format!("/{}", list(members, resource)?),
        argument: String::new(),
    })
}

/// Returns the list that the page is about, if it is unambiguous.
fn list<'a>(members: &'a Map<String, Value>, resource: &str) -> Option<&'a String> {
    let lists: Vec<&String> = members
        .iter()
        .filter(|(name, member)| {
            member["type"] == "array" && !METADATA_MEMBERS.contains(&name.as_str())
        })
        .map(|(name, _)| name)
        .collect();
    let named = lists
        .iter()
        .find(|name| name.as_str() == "items" || name.as_str() == resource);
    match (named, lists.as_slice()) {
        (Some(name), _) | (None, [name]) => Some(name),
        _ => None,
    }
}
