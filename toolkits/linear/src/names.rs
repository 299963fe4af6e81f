//! Resolution of names, as agents give them, to Linear's ids.

use toolkit_sdk::prelude::*;

use crate::api::ask;

/// Returns true if a string is an id, which is a UUID.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() == 36
        && text
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// Builds a filter for objects with this id, or with this text in one of the fields, ignoring
/// case.
pub(crate) fn filter(text: &str, members: &[&str]) -> Value {
    if is_id(text) {
        return json!({ "id": { "eq": text } });
    }
    let each = members
        .iter()
        .map(|member| json!({ *member: { "eqIgnoreCase": text } }));
    json!({ "or": each.collect::<Vec<_>>() })
}

/// Builds a filter for a team, by key, name or id.
pub(crate) fn of_team(text: &str) -> Value {
    filter(text, &["key", "name"])
}

/// Builds a filter for a user: `me`, or by email address, name or id.
pub(crate) fn of_person(text: &str) -> Value {
    if text == "me" {
        json!({ "isMe": { "eq": true } })
    } else {
        filter(text, &["email", "name", "displayName"])
    }
}

/// Resolves a team to its id.
pub(crate) fn team(text: &str) -> Result<String> {
    if is_id(text) {
        Ok(text.to_owned())
    } else {
        one(
            "teams",
            "TeamFilter",
            &of_team(text),
            text,
            "LINEAR_LIST_TEAMS",
        )
    }
}

/// Resolves a user to its id.
pub(crate) fn person(text: &str) -> Result<String> {
    if is_id(text) {
        Ok(text.to_owned())
    } else {
        one(
            "users",
            "UserFilter",
            &of_person(text),
            text,
            "LINEAR_LIST_USERS",
        )
    }
}

/// Resolves a workflow state of a team to its id.
pub(crate) fn state(text: &str, team: &str) -> Result<String> {
    if is_id(text) {
        return Ok(text.to_owned());
    }
    let filter = json!({ "name": { "eqIgnoreCase": text }, "team": { "id": { "eq": team } } });
    one(
        "workflowStates",
        "WorkflowStateFilter",
        &filter,
        text,
        "LINEAR_GET_TEAM",
    )
}

/// Resolves labels, shared or of a team, to their ids.
pub(crate) fn labels(texts: &[String], team: &str) -> Result<Vec<String>> {
    texts
        .iter()
        .map(|text| {
            if is_id(text) {
                return Ok(text.clone());
            }
            let shared_or_own =
                json!([{ "team": { "null": true } }, { "team": { "id": { "eq": team } } }]);
            let filter = json!({ "name": { "eqIgnoreCase": text }, "or": shared_or_own });
            one(
                "issueLabels",
                "IssueLabelFilter",
                &filter,
                text,
                "LINEAR_LIST_LABELS",
            )
        })
        .collect()
}

/// Resolves a project to its id.
pub(crate) fn project(text: &str) -> Result<String> {
    if is_id(text) {
        return Ok(text.to_owned());
    }
    one(
        "projects",
        "ProjectFilter",
        &filter(text, &["name"]),
        text,
        "LINEAR_LIST_PROJECTS",
    )
}

#[derive(Deserialize)]
struct Found {
    id: String,
}

/// Returns the id of the only object that matches a filter.
fn one(field: &str, kind: &str, filter: &Value, text: &str, tool: &str) -> Result<String> {
    let query = format!(
        "query($filter: {kind}) {{ {field}(filter: $filter, first: 2) {{ nodes {{ id }} }} }}"
    );
    let found: Vec<Found> = ask(
        &query,
        &json!({ "filter": filter }),
        &format!("/{field}/nodes"),
    )?;
    match <[Found; 1]>::try_from(found) {
        Ok([Found { id }]) => Ok(id),
        Err(found) if found.is_empty() => Err(ToolError::not_found(format!(
            "`{text}` is not among the {field}; {tool} lists them"
        ))),
        Err(_) => Err(ToolError::invalid_input(format!(
            "`{text}` names several of the {field}; take an id from {tool}"
        ))),
    }
}
