//! Approval of calls: the permissions in the configuration of a session, the question for the user in a
//! result, and the answer in the next call.

use std::collections::BTreeMap;

use app::{
    Error,
    agents::{Approval, ApprovalDecision, Permission},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::{ApiResult, errors};

/// Key of the question and of its answer.
pub(crate) const APPROVAL_REQUEST_NAME: &str = "approval";
/// Failure of a call that the user has declined.
pub(crate) const DECLINED_MESSAGE: &str = "declined: the user has declined the call";

/// Permissions of calls, by which the user has to approve them or the session does not permit them.
// An unknown field is refused, because a misspelled one would permit everything.
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
    /// The fields of the form; required with the action `accept`.
    content: Option<Content>,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = SessionInputAction)]
enum Action {
    Accept,
    Decline,
    Cancel,
}

/// The fields of an answered form.
#[derive(Deserialize, ToSchema)]
#[schema(as = SessionInputContent)]
struct Content {
    /// The decision of the user on the call.
    decision: Option<Decision>,
}

/// The decision of the user on a call.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SessionDecision)]
enum Decision {
    Approve,
    /// As `approve`, for this call and all later ones of the tool with the account in the session, unless its
    /// permission is `ask_always` or `ask_every_call`. A session that asks once remembers `approve`, too.
    AlwaysApprove,
    Deny,
}

/// Name of the only field of the form.
pub(crate) const DECISION_FIELD: &str = "decision";
/// Values of the field.
pub(crate) const DECISION_VALUES: [&str; 3] = ["approve", "always_approve", "deny"];

/// The answers to the questions of a call, by their names. A duplicate name is refused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InputResponses {
    approval: Option<InputResponse>,
}

impl InputResponse {
    /// Returns the decision of the user. An accepted form approves nothing by itself.
    ///
    /// # Errors
    /// `4300` if the form is accepted without a decision.
    pub(crate) fn decision(&self) -> Result<ApprovalDecision, Error> {
        let decision = self.content.as_ref().and_then(|content| content.decision);
        match (&self.action, decision) {
            (Action::Decline | Action::Cancel, _) | (_, Some(Decision::Deny)) => {
                Ok(ApprovalDecision::Declined)
            }
            (Action::Accept, Some(Decision::Approve)) => Ok(ApprovalDecision::Approved),
            (Action::Accept, Some(Decision::AlwaysApprove)) => Ok(ApprovalDecision::AlwaysApproved),
            (Action::Accept, None) => {
                let values = DECISION_VALUES.join("`, `");
                Err(errors::session_invalid(format!(
                    "input_responses.{APPROVAL_REQUEST_NAME}.content.{DECISION_FIELD}: is required with the action `accept`: `{values}`"
                )))
            }
        }
    }
}

/// Returns the answer of a call to a question before, if it has one.
pub(super) fn approval(
    state: Option<String>,
    responses: Option<InputResponses>,
) -> ApiResult<Option<Approval>> {
    let Some(state) = state else {
        if responses.is_some_and(|responses| responses.approval.is_some()) {
            let problem =
                "request_state: is required with `input_responses`: the one of the question";
            return Err(errors::session_invalid(problem).into());
        }
        return Ok(None);
    };
    let response = responses.and_then(|responses| responses.approval);
    let response = response.ok_or_else(|| {
        let problem = format!("input_responses: must have the answer `{APPROVAL_REQUEST_NAME}`");
        errors::session_invalid(problem)
    })?;
    let decision = response.decision()?;
    Ok(Some(Approval { state, decision }))
}

view! {
    /// A question for the user, with the form that takes the answer.
    #[schema(as = SessionInputRequest)]
    pub(super) struct InputRequest from message: String {
        /// Always `elicitation`.
        r#type: &'static str = "elicitation",
        /// Always `form`.
        mode: &'static str = "form",
        /// The tool, the account and each argument by name.
        message: String = message,
        /// JSON Schema of the form, for `content` of the answer.
        requested_schema: DecisionForm = DecisionForm::default(),
    }
}

/// JSON Schema of the form.
#[derive(Serialize, ToSchema)]
#[schema(as = SessionQuestionSchema)]
struct DecisionForm {
    /// Always `object`.
    r#type: &'static str,
    /// Fields of the form.
    properties: DecisionFormFields,
    /// Always `decision`.
    required: [&'static str; 1],
}

/// Fields of the form.
#[derive(Serialize, ToSchema)]
#[schema(as = SessionQuestionFields)]
struct DecisionFormFields {
    /// The decision of the user on the call.
    decision: DecisionFieldSchema,
}

/// JSON Schema of the field.
#[derive(Serialize, ToSchema)]
#[schema(as = SessionQuestionField)]
struct DecisionFieldSchema {
    /// Always `string`.
    r#type: &'static str,
    /// Values of the field.
    r#enum: [&'static str; 3],
}

impl Default for DecisionForm {
    fn default() -> Self {
        Self {
            r#type: "object",
            properties: DecisionFormFields {
                decision: DecisionFieldSchema {
                    r#type: "string",
                    r#enum: DECISION_VALUES,
                },
            },
            required: [DECISION_FIELD],
        }
    }
}

/// Returns the question whether the user approves a call.
pub(super) fn questions(message: String) -> BTreeMap<&'static str, InputRequest> {
    BTreeMap::from([(APPROVAL_REQUEST_NAME, message.into())])
}
