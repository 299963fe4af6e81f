//! Teams, with their members, states, labels and cycles.

use toolkit_sdk::prelude::*;

use crate::api::{Page, Part, ask, list, name, nodes};
use crate::names::{self, of_team};

const PERSON_FIELDS: &str = "id name displayName email active";

/// A user.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all(deserialize = "camelCase"))]
pub(crate) struct Person {
    id: String,
    name: String,
    display_name: String,
    email: String,
    /// True if the account is active.
    active: bool,
}

/// Gets the user of the connected account.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("read"),
    egress("POST api.linear.app/graphql"),
    example = r#"{}"#
)]
pub(crate) fn get_me() -> Result<Person> {
    ask(
        &format!("query {{ viewer {{ {PERSON_FIELDS} }} }}"),
        &json!({}),
        "/viewer",
    )
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListUsers {
    /// Part of the name.
    name: Option<String>,
    #[serde(flatten)]
    part: Part,
}

/// Lists users of the workspace.
#[tool(
    read_only,
    idempotent,
    scopes("read"),
    egress("POST api.linear.app/graphql"),
    example = r#"{"name": "ada"}"#
)]
pub(crate) fn list_users(input: ListUsers) -> Result<Page<Person>> {
    let filter = input.name.map_or_else(
        || json!({}),
        |name| json!({ "name": { "containsIgnoreCase": name } }),
    );
    list("users", "UserFilter", PERSON_FIELDS, filter, &input.part)
}

/// A team.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Team {
    id: String,
    /// Key, the prefix of its issues' identifiers: `ENG`.
    key: String,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

/// Lists the teams of the workspace that the connected account can see.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("read"),
    egress("POST api.linear.app/graphql"),
    example = r#"{}"#
)]
pub(crate) fn list_teams(input: Part) -> Result<Page<Team>> {
    list(
        "teams",
        "TeamFilter",
        "id key name description",
        json!({}),
        &input,
    )
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct OfTeam {
    /// Key, name or id of the team.
    #[schemars(length(min = 1))]
    team: String,
}

/// A team with all details.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Whole {
    #[serde(flatten)]
    team: Team,
    /// States of its issues.
    #[serde(deserialize_with = "nodes")]
    states: Vec<State>,
    #[serde(deserialize_with = "nodes")]
    members: Vec<Member>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct State {
    name: String,
    /// `triage`, `backlog`, `unstarted`, `started`, `completed`, `canceled` or `duplicate`.
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Member {
    name: String,
    email: String,
}

/// Gets a team: the states of its issues, and its members.
#[tool(
    read_only,
    idempotent,
    scopes("read"),
    egress("POST api.linear.app/graphql"),
    example = r#"{"team": "ENG"}"#
)]
pub(crate) fn get_team(input: OfTeam) -> Result<Whole> {
    let query = "query($id: String!) { team(id: $id) { id key name description states { nodes { name type } } \
        members { nodes { name email } } } }";
    ask(query, &json!({ "id": names::team(&input.team)? }), "/team")
}

/// A label.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Label {
    id: String,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Key of its team; missing for a label of all teams.
    #[serde(deserialize_with = "name", skip_serializing_if = "Option::is_none")]
    team: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListOfTeam {
    /// Key or name of the team. Defaults to all teams.
    team: Option<String>,
    #[serde(flatten)]
    part: Part,
}

/// Lists labels for issues: those of a team and those of all teams.
#[tool(
    read_only,
    idempotent,
    scopes("read"),
    egress("POST api.linear.app/graphql"),
    example = r#"{"team": "ENG"}"#
)]
pub(crate) fn list_labels(input: ListOfTeam) -> Result<Page<Label>> {
    let filter = match &input.team {
        Some(team) => json!({ "or": [{ "team": { "null": true } }, { "team": of_team(team) }] }),
        None => json!({}),
    };
    list(
        "issueLabels",
        "IssueLabelFilter",
        "id name description team { name: key }",
        filter,
        &input.part,
    )
}

/// A cycle: a period of some weeks of work.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all(deserialize = "camelCase"))]
pub(crate) struct Cycle {
    id: String,
    number: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Key of the team.
    #[serde(deserialize_with = "name")]
    team: Option<String>,
    starts_at: String,
    ends_at: String,
    /// Completed share, 0 to 1.
    progress: f64,
    /// True if the cycle is running now.
    is_active: bool,
}

/// Lists cycles and marks the current one. Issues of the current cycles are listed by
/// `LINEAR_LIST_ISSUES`.
#[tool(
    read_only,
    idempotent,
    scopes("read"),
    egress("POST api.linear.app/graphql"),
    example = r#"{"team": "ENG"}"#
)]
pub(crate) fn list_cycles(input: ListOfTeam) -> Result<Page<Cycle>> {
    let filter = input
        .team
        .as_deref()
        .map_or_else(|| json!({}), |team| json!({ "team": of_team(team) }));
    let fields = "id number name startsAt endsAt progress isActive team { name: key }";
    list("cycles", "CycleFilter", fields, filter, &input.part)
}
