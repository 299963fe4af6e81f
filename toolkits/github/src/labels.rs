//! Labels of a repository and of an issue.

use serde::Deserializer;
use toolkit_sdk::prelude::*;

use crate::api::{Done, Page, Part, Repo, done, list};
use crate::issues::IssueNumber;

/// A label.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Label {
    name: String,
    /// Six hexadecimal digits, without `#`.
    color: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

/// Deserializes labels to their names. In old responses a label is plain text.
pub(crate) fn label_names<'de, D: Deserializer<'de>>(json: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Named {
        Text(String),
        Label { name: Option<String> },
    }
    let labels = Vec::<Named>::deserialize(json)?.into_iter();
    Ok(labels
        .filter_map(|label| {
            if let Named::Text(name) | Named::Label { name: Some(name) } = label {
                Some(name)
            } else {
                None
            }
        })
        .collect())
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListLabels {
    #[serde(flatten)]
    repo: Repo,
    #[serde(flatten)]
    part: Part,
}

/// Lists the labels that a repository has for its issues and pull requests.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo"}"#
)]
pub(crate) fn list_labels(input: ListLabels) -> Result<Page<Label>> {
    list(input.repo.get("/labels"), &input.part)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CreateLabel {
    #[serde(flatten)]
    repo: Repo,
    #[serde(flatten)]
    label: NewLabel,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct NewLabel {
    #[schemars(length(min = 1, max = 50))]
    name: String,
    /// Six hexadecimal digits, without `#`. Omit it to let GitHub choose.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9a-fA-F]{6}$"))]
    color: Option<String>,
    /// Description, at most 100 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    description: Option<String>,
}

/// Creates a label in a repository.
#[tool(
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "name": "regression", "color": "d73a4a"}"#
)]
pub(crate) fn create_label(input: CreateLabel) -> Result<Label> {
    input.repo.post("/labels").json(&input.label).send()?.json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct LabelName {
    #[serde(flatten)]
    repo: Repo,
    #[schemars(length(min = 1))]
    name: String,
}

/// Deletes a label from a repository and from all its issues and pull requests.
#[tool(
    destructive,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "name": "regression"}"#
)]
pub(crate) fn delete_label(input: LabelName) -> Result<Done> {
    done(
        input
            .repo
            .delete("/labels/{name}")
            .path("name", &input.name),
    )
}

/// Labels of an issue after the change.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Labelled {
    labels: Vec<Label>,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct AddLabels {
    #[serde(flatten)]
    issue: IssueNumber,
    /// Names of labels; missing labels are created.
    #[schemars(length(min = 1))]
    labels: Vec<String>,
}

/// Adds labels to an issue or pull request and keeps its other labels. Returns all of them.
#[tool(
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "issue_number": 7, "labels": ["bug"]}"#
)]
pub(crate) fn add_issue_labels(input: AddLabels) -> Result<Labelled> {
    let request = input
        .issue
        .fill(input.issue.repo.post("/issues/{issue_number}/labels"));
    let labels = request
        .json(&json!({ "labels": input.labels }))
        .send()?
        .json()?;
    Ok(Labelled { labels })
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct RemoveLabel {
    #[serde(flatten)]
    issue: IssueNumber,
    /// Name of the label.
    #[schemars(length(min = 1))]
    label: String,
}

/// Removes a label from an issue or pull request. Returns the remaining labels.
#[tool(
    destructive,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "issue_number": 7, "label": "bug"}"#
)]
pub(crate) fn remove_issue_label(input: RemoveLabel) -> Result<Labelled> {
    let request = input.issue.fill(
        input
            .issue
            .repo
            .delete("/issues/{issue_number}/labels/{name}"),
    );
    let labels = request.path("name", &input.label).send()?.json()?;
    Ok(Labelled { labels })
}
