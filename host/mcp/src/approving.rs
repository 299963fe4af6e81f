//! Approval of a call by its user.
//!
//! A client that shows forms to its user is asked to show one with the decision. The question is a result of
//! the call, which exists since protocol version 2026-07-28. The client repeats the call with the answer
//! and with the state that came with the question, so that nothing is remembered between the calls. Other
//! clients get a failure: before, a client sends its answer in a request of its own, which another server
//! may get.

use std::collections::BTreeMap;

use app::{
    App, Error,
    agents::{self, Approvable, Approval, SessionCaller, SessionExecute},
    core::json::Reader,
};
use http::{
    approval::{
        APPROVAL_REQUEST_NAME, DECISION_FIELD, DECISION_VALUES, DECLINED_MESSAGE, InputResponse,
    },
    errors,
};
use rmcp::{
    RoleServer,
    model::{
        CallToolRequestParams, ClientCapabilities, ElicitRequest, ElicitRequestParams,
        ElicitationSchema, EnumSchema, InputRequest, InputRequiredResult, ProtocolVersion,
    },
    service::RequestContext,
};
use serde::Deserialize;
use serde_json::Value;

use super::results::{Outcome, Source, untrusted};

/// The way in which the user of a client approves a call. By default the user cannot be asked.
#[derive(Default)]
pub(super) struct CallApproval {
    /// True if the client asks its user.
    can_ask: bool,
    /// The state and the answer that a repeated call brings.
    given: Option<(String, Value)>,
}

impl CallApproval {
    pub(super) fn new(
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Self {
        let version = context.protocol_version();
        let has_results = version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        let capabilities = context.client_capabilities();
        let responses = request.input_responses.as_ref();
        let response = responses.and_then(|responses| responses.get(APPROVAL_REQUEST_NAME));
        let given = request.request_state.clone().zip(response);
        Self {
            can_ask: has_results && capabilities.as_ref().is_some_and(shows_forms),
            given: given.map(|(state, response)| (state, response.clone())),
        }
    }

    /// Executes a tool or a recipe, once its user has approved the call if the session requires that.
    pub(super) async fn execute(
        &self,
        app: &App,
        caller: &SessionCaller,
        request: SessionExecute,
        source: Source,
    ) -> Result<Outcome, Error> {
        if !self.can_ask {
            let execution = agents::execute(app, caller, request).await?;
            return Ok(untrusted(execution, source));
        }
        let given = self
            .given
            .as_ref()
            .map(|(state, response)| approval(state, response))
            .transpose()?;
        let outcome = agents::execute_with_approval(app, caller, request, given).await?;
        Ok(match outcome {
            Approvable::Executed(execution) => untrusted(execution, source),
            Approvable::Declined => Outcome::Own(Err(DECLINED_MESSAGE.to_owned())),
            Approvable::ApprovalRequired { message, state } => {
                Outcome::Asked(question(message, state))
            }
        })
    }
}

/// Returns true if a client shows forms to its user. One that names no mode of elicitation does.
fn shows_forms(capabilities: &ClientCapabilities) -> bool {
    let elicitation = capabilities.elicitation.as_ref();
    elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// Reads the answer of the user as the API does.
fn approval(state: &str, response: &Value) -> Result<Approval, Error> {
    let path = format!("inputResponses.{APPROVAL_REQUEST_NAME}");
    let response = InputResponse::deserialize(Reader::new(response.clone()))
        .map_err(|problem| errors::session_invalid(problem.inside(&path).line(&path)))?;
    Ok(Approval {
        state: state.to_owned(),
        decision: response.decision()?,
    })
}

/// Returns the question whether the user approves a call.
fn question(message: String, state: String) -> InputRequiredResult {
    let decisions = DECISION_VALUES.map(str::to_owned).to_vec();
    let decision = EnumSchema::builder(decisions).build();
    let form = ElicitationSchema::builder().required_enum_schema(DECISION_FIELD, decision);
    let params = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema: form.build_unchecked(),
    };
    let request = InputRequest::Elicitation(ElicitRequest::new(params));
    let requests = BTreeMap::from([(APPROVAL_REQUEST_NAME.to_owned(), request)]);
    InputRequiredResult::new(Some(requests), Some(state))
}

#[cfg(test)]
mod tests {
    use app::agents::ApprovalDecision;
    use serde_json::json;

    use super::*;

    #[test]
    fn forms_are_shown_by_default() {
        for (capabilities, expected) in [
            (json!({}), false),
            (json!({ "elicitation": {} }), true),
            (json!({ "elicitation": { "form": {} } }), true),
            (json!({ "elicitation": { "form": {}, "url": {} } }), true),
            (json!({ "elicitation": { "url": {} } }), false),
        ] {
            let parsed = serde_json::from_value(capabilities.clone()).unwrap();
            assert_eq!(shows_forms(&parsed), expected, "{capabilities}");
        }
    }

    #[test]
    fn accepted_form_alone_approves_nothing() {
        let decided = |response| approval("state", &response).map(|given| given.decision);
        let form =
            |decision: Value| json!({ "action": "accept", "content": { "decision": decision } });
        for (approves, expected) in [
            ("approve", ApprovalDecision::Approved),
            ("always_approve", ApprovalDecision::AlwaysApproved),
        ] {
            assert_eq!(decided(form(approves.into())).unwrap(), expected);
        }
        for declines in [
            form("deny".into()),
            json!({ "action": "decline" }),
            json!({ "action": "cancel", "content": {} }),
        ] {
            assert_eq!(decided(declines).unwrap(), ApprovalDecision::Declined);
        }
        for refused in [
            json!({ "action": "accept" }),
            json!({ "action": "accept", "content": {} }),
            form("maybe".into()),
            form(json!(["approve", "deny"])),
            json!({ "content": { "decision": "approve" } }),
        ] {
            assert!(decided(refused.clone()).is_err(), "{refused}");
        }
    }
}
