//! Answer of a user to the question about one call, which requests over REST and MCP contain in the
//! same form.

use app::{Error, agents::ApprovalDecision};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::errors;

/// Key of the question and of its answer.
pub const APPROVAL_REQUEST_NAME: &str = "approval";
/// Failure of a call that the user has declined.
pub const DECLINED_MESSAGE: &str = "declined: the user has declined the call";

/// Answer to a question of the result before, in the form of MCP's `ElicitResult`.
#[derive(Deserialize, ToSchema)]
#[schema(as = SessionInputResponse)]
pub struct InputResponse {
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
pub const DECISION_FIELD: &str = "decision";
/// Values of the field.
pub const DECISION_VALUES: [&str; 3] = ["approve", "always_approve", "deny"];

impl InputResponse {
    /// Returns the decision of the user. An accepted form approves nothing by itself.
    ///
    /// # Errors
    /// `4300` if the form is accepted without a decision.
    pub fn decision(&self) -> Result<ApprovalDecision, Error> {
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
