//! Approval of calls: the permissions in the configuration of a session, the question for the user in a
//! result, and the answer in the next call.

use std::collections::BTreeMap;

use app::agents::{Approval, Config, Permission};
use http::{
    ApiResult,
    approval::{APPROVAL_REQUEST_NAME, DECISION_FIELD, DECISION_VALUES, InputResponse},
    errors,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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

view! {
    /// Permissions of calls in a configuration.
    #[schema(as = SessionPermissionsInForce)]
    pub(super) struct PermissionsView from config: &Config {
        default: DefaultPermission = match (config.approval_of_all, config.approval_once) {
            (false, _) => DefaultPermission::AllowAll,
            (true, false) => DefaultPermission::AskEveryCall,
            (true, true) => DefaultPermission::AskOncePerSession,
        },
        /// `always_allow`, `always_deny`, `ask_once` or `ask_always`, by the slug of a tool or a toolkit as
        /// the catalog spells it.
        #[schema(value_type = BTreeMap<String, String>)]
        overrides: BTreeMap<String, Permission> = config.permissions.clone(),
    }
}

/// Permission of the tools that no override names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SessionDefaultPermission)]
pub(crate) enum DefaultPermission {
    AllowAll,
    AskEveryCall,
    AskOncePerSession,
}

/// The answers to the questions of a call, by their names. A name that is there twice is refused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InputResponses {
    approval: Option<InputResponse>,
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
