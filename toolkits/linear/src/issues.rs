//! Issues.

use serde::Deserializer;
use toolkit_sdk::prelude::*;

use crate::api::{Done, Page, Part, ask, done, list, name, names, nodes, page};
use crate::names::{self, of_person, of_team};

const ISSUE_FIELDS: &str = "id identifier title url priorityLabel estimate dueDate createdAt updatedAt state { name } assignee { name } \
    team { name: key } project { name } labels { nodes { name } }";

/// An issue, without its description.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all(deserialize = "camelCase"))]
pub(crate) struct Issue {
    id: String,
    /// Identifier, for example `ENG-123`, for other tools.
    identifier: String,
    title: String,
    /// URL of the web page.
    url: String,
    /// Name of its state.
    #[serde(deserialize_with = "name")]
    state: Option<String>,
    /// `No priority`, `Urgent`, `High`, `Medium` or `Low`.
    #[serde(rename(deserialize = "priorityLabel"))]
    priority: String,
    /// Name of the assignee.
    #[serde(deserialize_with = "name", skip_serializing_if = "Option::is_none")]
    assignee: Option<String>,
    /// Key of the team.
    #[serde(deserialize_with = "name")]
    team: Option<String>,
    #[serde(deserialize_with = "name", skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    #[serde(deserialize_with = "names", skip_serializing_if = "Vec::is_empty")]
    labels: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<f64>,
    /// Due date.
    #[serde(skip_serializing_if = "Option::is_none")]
    due_date: Option<String>,
    created_at: String,
    updated_at: String,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Search {
    /// Words in titles, descriptions or comments.
    #[schemars(length(min = 1))]
    query: String,
    #[serde(flatten)]
    part: Part,
}

/// Searches issues by words, best match first.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("read"),
    egress("POST api.linear.app/graphql"),
    example = r#"{"query": "login fails"}"#
)]
pub(crate) fn search_issues(input: Search) -> Result<Page<Issue>> {
    let query = format!(
        "query($term: String!, $first: Int, $after: String) {{ searchIssues(term: $term, includeComments: true, first: $first, \
         after: $after) {{ nodes {{ {ISSUE_FIELDS} }} pageInfo {{ hasNextPage endCursor }} }} }}"
    );
    let mut variables = json!({ "term": input.query });
    input.part.fill(&mut variables);
    page(&query, &variables, "/searchIssues")
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListIssues {
    /// Key or name of the team.
    team: Option<String>,
    /// Assignee: `me`, an email address or a name.
    assignee: Option<String>,
    /// Name of the state: `In Progress`.
    state: Option<String>,
    /// Name of a label.
    label: Option<String>,
    /// Name of the project.
    project: Option<String>,
    /// Only issues of the teams' current cycles.
    #[serde(default)]
    current_cycle: bool,
    /// Only issues changed since this time, RFC 3339; `-P1W` is a week ago.
    updated_since: Option<String>,
    /// Includes completed and canceled issues.
    #[serde(default)]
    closed: bool,
    #[serde(flatten)]
    part: Part,
}

/// Lists issues by team, assignee, state, label, project or cycle: only open ones by default.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("read"),
    egress("POST api.linear.app/graphql"),
    example = r#"{"assignee": "me", "team": "ENG"}"#
)]
pub(crate) fn list_issues(input: ListIssues) -> Result<Page<Issue>> {
    let wanted = [
        ("team", input.team.as_deref().map(of_team)),
        ("assignee", input.assignee.as_deref().map(of_person)),
        ("state", input.state.as_deref().map(named)),
        (
            "labels",
            input
                .label
                .as_deref()
                .map(|text| json!({ "some": named(text) })),
        ),
        ("project", input.project.as_deref().map(named)),
        (
            "cycle",
            input
                .current_cycle
                .then(|| json!({ "isActive": { "eq": true } })),
        ),
        (
            "updatedAt",
            input.updated_since.map(|time| json!({ "gte": time })),
        ),
    ];
    let mut filter = json!({});
    for (member, value) in wanted
        .into_iter()
        .filter_map(|(member, value)| Some((member, value?)))
    {
        filter[member] = value;
    }
    // A state filter selects open and closed issues.
    if !input.closed && input.state.is_none() {
        filter["state"] = json!({ "type": { "nin": ["completed", "canceled", "duplicate"] } });
    }
    list("issues", "IssueFilter", ISSUE_FIELDS, filter, &input.part)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct OfIssue {
    /// Identifier, for example `ENG-123`, or id.
    #[schemars(length(min = 1))]
    pub(crate) issue: String,
}

/// An issue with all details.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all(deserialize = "camelCase"))]
pub(crate) struct Whole {
    #[serde(flatten)]
    issue: Issue,
    /// Description, in Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Identifier of the parent issue.
    #[serde(
        default,
        deserialize_with = "name",
        skip_serializing_if = "Option::is_none"
    )]
    parent: Option<String>,
    /// Identifiers of the sub-issues.
    #[serde(deserialize_with = "names", skip_serializing_if = "Vec::is_empty")]
    children: Vec<String>,
    /// Relations to other issues.
    #[serde(deserialize_with = "nodes", skip_serializing_if = "Vec::is_empty")]
    relations: Vec<Relation>,
    /// Links: pull requests, designs, conversations.
    #[serde(deserialize_with = "nodes", skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<Attachment>,
    /// Name of the branch for the issue.
    branch_name: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Relation {
    /// Id of the relation, for `LINEAR_DELETE_RELATION`.
    id: String,
    /// `blocks`, `duplicate`, `related` or `similar`.
    #[serde(rename = "type")]
    kind: String,
    /// Identifier of the other issue.
    #[serde(rename(deserialize = "relatedIssue"), deserialize_with = "identifier")]
    issue: String,
}

fn named(text: &str) -> Value {
    names::filter(text, &["name"])
}

fn identifier<'de, D: Deserializer<'de>>(json: D) -> Result<String, D::Error> {
    Ok(name(json)?.unwrap_or_default())
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Attachment {
    /// Id of the attachment, for `LINEAR_DELETE_ATTACHMENT`.
    id: String,
    title: String,
    url: String,
}

/// Gets an issue: description, state, sub-issues, relations and links. Its comments are listed by
/// `LINEAR_LIST_COMMENTS`.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("read"),
    egress("POST api.linear.app/graphql"),
    example = r#"{"issue": "ENG-123"}"#
)]
pub(crate) fn get_issue(input: OfIssue) -> Result<Whole> {
    let query = format!(
        "query($id: String!) {{ issue(id: $id) {{ {ISSUE_FIELDS} description branchName parent {{ name: identifier }} \
         children {{ nodes {{ name: identifier }} }} relations {{ nodes {{ id type relatedIssue {{ name: identifier }} }} }} \
         attachments {{ nodes {{ id title url }} }} }} }}"
    );
    ask(&query, &json!({ "id": input.issue }), "/issue")
}

/// Priority of an issue.
#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Priority {
    None,
    Urgent,
    High,
    Medium,
    Low,
}

/// Fields for creating and changing an issue.
#[derive(Deserialize, JsonSchema)]
struct Details {
    /// Description, in Markdown.
    description: Option<String>,
    /// Assignee: `me`, an email address, a name, or `none`.
    assignee: Option<String>,
    /// Name of the state: `Todo`, `In Progress`. `LINEAR_GET_TEAM` lists those of the team.
    state: Option<String>,
    priority: Option<Priority>,
    /// Name of the project, or `none`.
    project: Option<String>,
    /// Due date: `2026-01-31`.
    due_date: Option<String>,
    /// Estimate in points.
    #[schemars(range(min = 0))]
    estimate: Option<u32>,
    /// Identifier of the parent issue, or `none`.
    parent: Option<String>,
}

impl Details {
    /// Adds the fields to the input of a mutation. `team` is the id of the issue's team, used only
    /// if a state is given.
    fn fill(&self, input: &mut Value, team: &str) -> Result<()> {
        let found = [
            (
                "description",
                self.description
                    .as_ref()
                    .map(|text| Ok(text.as_str().into())),
            ),
            (
                "assigneeId",
                self.assignee
                    .as_deref()
                    .map(|text| or_none(text, names::person)),
            ),
            (
                "stateId",
                self.state
                    .as_deref()
                    .map(|text| Ok(names::state(text, team)?.into())),
            ),
            (
                "priority",
                self.priority.map(|priority| Ok((priority as u32).into())),
            ),
            (
                "projectId",
                self.project
                    .as_deref()
                    .map(|text| or_none(text, names::project)),
            ),
            (
                "dueDate",
                self.due_date.as_ref().map(|day| Ok(day.as_str().into())),
            ),
            ("estimate", self.estimate.map(|points| Ok(points.into()))),
            (
                "parentId",
                self.parent
                    .as_deref()
                    .map(|text| or_none(text, |text| Ok(text.to_owned()))),
            ),
        ];
        for (member, value) in found
            .into_iter()
            .filter_map(|(member, value): (_, Option<Result<Value>>)| Some((member, value?)))
        {
            input[member] = value?;
        }
        Ok(())
    }
}

/// Resolves a name, or returns null for `none`.
fn or_none(text: &str, find: fn(&str) -> Result<String>) -> Result<Value> {
    if text == "none" {
        Ok(Value::Null)
    } else {
        find(text).map(Value::from)
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewIssue {
    /// Key or name of the team: `ENG`.
    #[schemars(length(min = 1))]
    team: String,
    #[schemars(length(min = 1))]
    title: String,
    /// Names of labels.
    #[serde(default)]
    labels: Vec<String>,
    #[serde(flatten)]
    details: Details,
}

/// Creates an issue in a team. Team, assignee, state, labels and project can be given by name.
#[tool(
    important,
    scopes("write"),
    example = r#"{"team": "ENG", "title": "Login fails on Safari", "description": "Since **2.4**", "labels": ["Bug"], "priority": "high"}"#
)]
pub(crate) fn create_issue(input: NewIssue) -> Result<Issue> {
    let team = names::team(&input.team)?;
    let mut body = json!({ "teamId": team, "title": input.title });
    input.details.fill(&mut body, &team)?;
    if !input.labels.is_empty() {
        body["labelIds"] = names::labels(&input.labels, &team)?.into();
    }
    let query = format!(
        "mutation($input: IssueCreateInput!) {{ issueCreate(input: $input) {{ success issue {{ {ISSUE_FIELDS} }} }} }}"
    );
    ask(&query, &json!({ "input": body }), "/issueCreate/issue")
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Changes {
    #[serde(flatten)]
    of: OfIssue,
    title: Option<String>,
    /// Names of labels to add.
    #[serde(default)]
    add_labels: Vec<String>,
    /// Names of labels to remove.
    #[serde(default)]
    remove_labels: Vec<String>,
    #[serde(flatten)]
    details: Details,
}

/// Changes an issue: state, assignee, title, description, priority, labels and so on. Fields that
/// are left out stay unchanged.
#[tool(
    destructive,
    idempotent,
    important,
    scopes("write"),
    example = r#"{"issue": "ENG-123", "state": "In Progress", "assignee": "me"}"#
)]
pub(crate) fn update_issue(input: Changes) -> Result<Issue> {
    let issue = &input.of.issue;
    let labels = !input.add_labels.is_empty() || !input.remove_labels.is_empty();
    let team: String = match labels || input.details.state.is_some() {
        true => ask(
            "query($id: String!) { issue(id: $id) { team { id } } }",
            &json!({ "id": issue }),
            "/issue/team/id",
        )?,
        false => String::new(),
    };
    let mut body = json!({});
    if let Some(title) = &input.title {
        body["title"] = title.as_str().into();
    }
    input.details.fill(&mut body, &team)?;
    if labels {
        body["addedLabelIds"] = names::labels(&input.add_labels, &team)?.into();
        body["removedLabelIds"] = names::labels(&input.remove_labels, &team)?.into();
    }
    if body.as_object().is_some_and(|members| members.is_empty()) {
        return Err(ToolError::invalid_input(
            "no change is given; give at least one of the other arguments",
        ));
    }
    let query = format!(
        "mutation($id: String!, $input: IssueUpdateInput!) {{ issueUpdate(id: $id, input: $input) {{ success issue {{ {ISSUE_FIELDS} }} }} }}"
    );
    ask(
        &query,
        &json!({ "id": issue, "input": body }),
        "/issueUpdate/issue",
    )
}

fn run(mutation: &str, input: &OfIssue) -> Result<Done> {
    let query = format!("mutation($id: String!) {{ {mutation}(id: $id) {{ success }} }}");
    done(
        &query,
        &json!({ "id": input.issue }),
        &format!("/{mutation}"),
    )
}

/// Archives an issue: it disappears from all lists and can be restored by `LINEAR_UNARCHIVE_ISSUE`.
#[tool(
    destructive,
    idempotent,
    scopes("write"),
    example = r#"{"issue": "ENG-123"}"#
)]
pub(crate) fn archive_issue(input: OfIssue) -> Result<Done> {
    run("issueArchive", &input)
}

/// Restores an issue that was archived, or that was deleted recently.
#[tool(idempotent, scopes("write"), example = r#"{"issue": "ENG-123"}"#)]
pub(crate) fn unarchive_issue(input: OfIssue) -> Result<Done> {
    run("issueUnarchive", &input)
}

/// Moves an issue to the trash, where Linear deletes it permanently after 30 days.
#[tool(
    destructive,
    idempotent,
    scopes("write"),
    example = r#"{"issue": "ENG-123"}"#
)]
pub(crate) fn delete_issue(input: OfIssue) -> Result<Done> {
    run("issueDelete", &input)
}
