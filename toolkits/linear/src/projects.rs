//! Projects, their documents and their updates.

use toolkit_sdk::prelude::*;

use crate::api::{Page, Part, ask, list, name, names, nodes};
use crate::names::{self as known, of_person, of_team};

const PROJECT_FIELDS: &str = "id name description url progress health startDate targetDate updatedAt \
    status { name } lead { name } teams { nodes { name: key } }";

/// A project.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all(deserialize = "camelCase"))]
pub(crate) struct Project {
    id: String,
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    /// Name of its status.
    #[serde(deserialize_with = "name")]
    status: Option<String>,
    /// Name of the lead.
    #[serde(deserialize_with = "name", skip_serializing_if = "Option::is_none")]
    lead: Option<String>,
    /// Keys of its teams.
    #[serde(deserialize_with = "names")]
    teams: Vec<String>,
    /// Completed share, 0 to 1.
    progress: f64,
    /// Health from the last update: `onTrack`, `atRisk` or `offTrack`.
    #[serde(skip_serializing_if = "Option::is_none")]
    health: Option<String>,
    /// Start date.
    #[serde(skip_serializing_if = "Option::is_none")]
    start_date: Option<String>,
    /// Target date.
    #[serde(skip_serializing_if = "Option::is_none")]
    target_date: Option<String>,
    updated_at: String,
    /// URL of the web page.
    url: String,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListProjects {
    /// Key or name of a team.
    team: Option<String>,
    /// Lead: `me`, an email address or a name.
    lead: Option<String>,
    /// Part of the name.
    name: Option<String>,
    #[serde(flatten)]
    part: Part,
}

/// Lists projects: status, lead, progress, target date.
#[tool(
    read_only,
    idempotent,
    scopes("read"),
    egress("POST api.linear.app/graphql"),
    example = r#"{"team": "ENG"}"#
)]
pub(crate) fn list_projects(input: ListProjects) -> Result<Page<Project>> {
    let mut filter = json!({});
    if let Some(team) = &input.team {
        filter["accessibleTeams"] = json!({ "some": of_team(team) });
    }
    if let Some(lead) = &input.lead {
        filter["lead"] = of_person(lead);
    }
    if let Some(name) = &input.name {
        filter["name"] = json!({ "containsIgnoreCase": name });
    }
    list(
        "projects",
        "ProjectFilter",
        PROJECT_FIELDS,
        filter,
        &input.part,
    )
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct OfProject {
    /// Name or id of the project.
    #[schemars(length(min = 1))]
    project: String,
}

/// A project with its content.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Whole {
    #[serde(flatten)]
    project: Project,
    /// Content, in Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    /// Documents of the project; `LINEAR_GET_DOCUMENT` reads one.
    #[serde(deserialize_with = "nodes", skip_serializing_if = "Vec::is_empty")]
    documents: Vec<Listed>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Listed {
    id: String,
    title: String,
}

/// Gets a project: content, status, lead, dates, progress, documents.
#[tool(
    read_only,
    idempotent,
    scopes("read"),
    egress("POST api.linear.app/graphql"),
    example = r#"{"project": "Passkeys"}"#
)]
pub(crate) fn get_project(input: OfProject) -> Result<Whole> {
    let query = format!(
        "query($id: String!) {{ project(id: $id) {{ {PROJECT_FIELDS} content documents {{ nodes {{ id title }} }} }} }}"
    );
    ask(
        &query,
        &json!({ "id": known::project(&input.project)? }),
        "/project",
    )
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct OfDocument {
    /// Id of the document.
    #[schemars(length(min = 1))]
    document: String,
}

/// A document.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all(deserialize = "camelCase"))]
pub(crate) struct Document {
    id: String,
    title: String,
    /// Content, in Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    /// Name of its project.
    #[serde(deserialize_with = "name", skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    updated_at: String,
    /// URL of the web page.
    url: String,
}

/// Gets a document, with its content in Markdown.
#[tool(
    read_only,
    idempotent,
    scopes("read"),
    egress("POST api.linear.app/graphql"),
    example = r#"{"document": "2b1c5f0f-11aa-4a1a-9f6e-8a4b0c556b1c"}"#
)]
pub(crate) fn get_document(input: OfDocument) -> Result<Document> {
    let query = "query($id: String!) { document(id: $id) { id title content url updatedAt project { name } } }";
    ask(query, &json!({ "id": input.document }), "/document")
}

/// Fields for creating and changing a project.
#[derive(Deserialize, JsonSchema)]
struct Details {
    /// Short description, one line.
    #[schemars(length(max = 255))]
    description: Option<String>,
    /// Content, in Markdown.
    content: Option<String>,
    /// Lead: `me`, an email address or a name.
    lead: Option<String>,
    /// Start date: `2026-01-31`.
    start_date: Option<String>,
    /// Target date: `2026-01-31`.
    target_date: Option<String>,
}

impl Details {
    fn fill(self, input: &mut Value) -> Result<()> {
        let lead = self.lead.as_deref().map(known::person).transpose()?;
        let members = [
            ("description", self.description),
            ("content", self.content),
            ("leadId", lead),
            ("startDate", self.start_date),
            ("targetDate", self.target_date),
        ];
        for (member, value) in members
            .into_iter()
            .filter_map(|(member, value)| Some((member, value?)))
        {
            input[member] = value.into();
        }
        Ok(())
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewProject {
    #[schemars(length(min = 1, max = 80))]
    name: String,
    /// Keys or names of its teams.
    #[schemars(length(min = 1))]
    teams: Vec<String>,
    #[serde(flatten)]
    details: Details,
}

/// Creates a project of one or more teams.
#[tool(
    scopes("write"),
    example = r#"{"name": "Passkeys", "teams": ["ENG"], "lead": "me", "target_date": "2026-12-31"}"#
)]
pub(crate) fn create_project(input: NewProject) -> Result<Project> {
    let teams: Vec<String> = input
        .teams
        .iter()
        .map(|team| known::team(team))
        .collect::<Result<_>>()?;
    let mut body = json!({ "name": input.name, "teamIds": teams });
    input.details.fill(&mut body)?;
    let query = format!(
        "mutation($input: ProjectCreateInput!) {{ projectCreate(input: $input) {{ success project {{ {PROJECT_FIELDS} }} }} }}"
    );
    ask(&query, &json!({ "input": body }), "/projectCreate/project")
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Changes {
    #[serde(flatten)]
    of: OfProject,
    /// New name.
    #[schemars(length(min = 1, max = 80))]
    name: Option<String>,
    #[serde(flatten)]
    details: Details,
}

/// Changes a project: name, description, content, lead, dates. Fields that are left out stay
/// unchanged.
#[tool(
    destructive,
    idempotent,
    scopes("write"),
    example = r#"{"project": "Passkeys", "target_date": "2027-01-31"}"#
)]
pub(crate) fn update_project(input: Changes) -> Result<Project> {
    let project = known::project(&input.of.project)?;
    let mut body = json!({});
    if let Some(name) = input.name {
        body["name"] = name.into();
    }
    input.details.fill(&mut body)?;
    let query = format!(
        "mutation($id: String!, $input: ProjectUpdateInput!) {{ projectUpdate(id: $id, input: $input) \
         {{ success project {{ {PROJECT_FIELDS} }} }} }}"
    );
    ask(
        &query,
        &json!({ "id": project, "input": body }),
        "/projectUpdate/project",
    )
}

/// Health of a project.
#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all(deserialize = "snake_case", serialize = "camelCase"))]
enum Health {
    OnTrack,
    AtRisk,
    OffTrack,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Report {
    #[serde(flatten)]
    of: OfProject,
    /// Text, in Markdown.
    #[schemars(length(min = 1))]
    body: String,
    health: Option<Health>,
}

/// A project update that was posted.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Posted {
    id: String,
    /// URL of the web page.
    url: String,
}

/// Posts an update on a project's health, which all its followers receive.
#[tool(
    scopes("write"),
    example = r#"{"project": "Passkeys", "body": "Sign-up works, **sign-in** next", "health": "on_track"}"#
)]
pub(crate) fn post_project_update(input: Report) -> Result<Posted> {
    let mut body = json!({ "projectId": known::project(&input.of.project)?, "body": input.body });
    if let Some(health) = input.health {
        body["health"] = json!(health);
    }
    let query = "mutation($input: ProjectUpdateCreateInput!) { projectUpdateCreate(input: $input) { success projectUpdate { id url } } }";
    ask(
        query,
        &json!({ "input": body }),
        "/projectUpdateCreate/projectUpdate",
    )
}
