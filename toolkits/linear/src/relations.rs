//! Relations between issues, and links of issues.

use toolkit_sdk::prelude::*;

use crate::api::{Done, ask, done};
use crate::issues::{Attachment, OfIssue};

/// Type of a relation.
#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// The first issue must be done before the second.
    Blocks,
    /// The first issue is a duplicate of the second.
    Duplicate,
    Related,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Relate {
    /// Identifier of the first issue.
    #[schemars(length(min = 1))]
    issue: String,
    #[serde(rename = "type")]
    kind: Kind,
    /// Identifier of the second issue.
    #[schemars(length(min = 1))]
    related_issue: String,
}

/// Relates an issue to another: as blocking it, as a duplicate of it, or as related.
#[tool(
    idempotent,
    scopes("write"),
    example = r#"{"issue": "ENG-123", "type": "blocks", "related_issue": "ENG-124"}"#
)]
pub(crate) fn relate_issues(input: Relate) -> Result<Done> {
    let query = "mutation($input: IssueRelationCreateInput!) { issueRelationCreate(input: $input) { success } }";
    let body = json!({ "issueId": input.issue, "type": input.kind, "relatedIssueId": input.related_issue });
    done(query, &json!({ "input": body }), "/issueRelationCreate")
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewLink {
    #[serde(flatten)]
    of: OfIssue,
    #[schemars(length(min = 1), extend("format" = "uri"))]
    url: String,
    /// Title shown instead of the URL.
    title: Option<String>,
}

/// Attaches a link to an issue: a pull request, a design, a document, a conversation.
#[tool(
    idempotent,
    scopes("write"),
    example = r#"{"issue": "ENG-123", "url": "https://example.com/design", "title": "Design"}"#
)]
pub(crate) fn link_url(input: NewLink) -> Result<Attachment> {
    let query = "mutation($issue: String!, $url: String!, $title: String) { attachmentLinkURL(issueId: $issue, url: $url, title: $title) \
        { success attachment { id title url } } }";
    let variables = json!({ "issue": input.of.issue, "url": input.url, "title": input.title });
    ask(query, &variables, "/attachmentLinkURL/attachment")
}
