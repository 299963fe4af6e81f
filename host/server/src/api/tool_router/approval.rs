//! Approval of calls: the permissions in the configuration of a session, the question for the user in a
//! result, and the answer in the next call.

use std::collections::BTreeMap;

use app::agents::{Approval, ApprovalDecision, Permission};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::http::{ApiResult, errors};

/// Key of the question and of its answer.
pub(crate) const APPROVAL_REQUEST_NAME: &str = "approval";
/// Failure of a call that the user has declined.
pub(crate) const DECLINED_MESSAGE: &str = "declined: the user has declined the call";

/// Permissions of calls, by which the user has to approve them or the session does not permit them.
// An unknown member is refused, because a misspelled one would permit everything.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SessionPermissions)]
pub(crate) struct PermissionsBody {
    pub default: DefaultPermission,
    /// `always_allow`, `always_deny`, `ask_once` or `ask_always`, by the slug of a tool or a toolkit. That
    /// of a tool goes first.
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    pub overrides: Option<BTreeMap<String, Permission>>,
}

/// Permission of the tools that no override names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SessionDefaultPermission)]
pub(crate) enum DefaultPermission {
    AllowAll,
    AskEveryCall,
    AskOncePerSession,
}

/// Answer to a question of the result before, in the form of MCP's `ElicitResult`.
#[derive(Deserialize, ToSchema)]
#[schema(as = SessionInputResponse)]
pub(crate) struct InputResponse {
    action: Action,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = SessionInputAction)]
enum Action {
    Accept,
    Decline,
    Cancel,
}

/// Returns the answer of a call to a question before, if it has one.
pub(super) fn approval(
    state: Option<String>,
    responses: Option<BTreeMap<String, InputResponse>>,
) -> ApiResult<Option<Approval>> {
    let Some(state) = state else {
        return Ok(None);
    };
    let response = responses.and_then(|mut responses| responses.remove(APPROVAL_REQUEST_NAME));
    let response = response.ok_or_else(|| {
        let problem = format!("input_responses: must have the answer `{APPROVAL_REQUEST_NAME}`");
        errors::session_invalid(problem)
    })?;
    let decision = match response.action {
        Action::Accept => ApprovalDecision::Approved,
        Action::Decline | Action::Cancel => ApprovalDecision::Declined,
    };
    Ok(Some(Approval { state, decision }))
}

view! {
    /// A question for the user, in the form of MCP's request `elicitation/create`.
    #[schema(as = SessionInputRequest)]
    pub(super) struct InputRequest from message: String {
        /// Always `elicitation/create`.
        method: &'static str = "elicitation/create",
        params: QuestionView = message.into(),
    }
}

view! {
    #[serde(rename_all = "camelCase")]
    #[schema(as = SessionQuestion)]
    struct QuestionView from message: String {
        /// Always `form`.
        mode: &'static str = "form",
        message: String = message,
        requested_schema: NoFields = NoFields { r#type: "object", properties: Map::new() },
    }
}

/// A form without fields.
#[derive(Serialize, ToSchema)]
#[schema(as = SessionQuestionSchema)]
struct NoFields {
    /// Always `object`.
    r#type: &'static str,
    #[schema(value_type = Object)]
    properties: Map<String, Value>,
}

/// Returns the question whether the user approves a call.
pub(super) fn questions(message: String) -> BTreeMap<&'static str, InputRequest> {
    BTreeMap::from([(APPROVAL_REQUEST_NAME, message.into())])
}
