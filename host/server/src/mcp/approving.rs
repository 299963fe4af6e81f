//! Approval of a call by its user.
//!
//! A client that shows forms to its user is asked to show one without fields. The question is a result of
//! the call, which exists since protocol version 2026-07-28. The client repeats the call with the answer
//! and with the state that came with the question, so that nothing is remembered between the calls. Other
//! clients get a failure: before, a client sends its answer in a request of its own, which another server
//! may get.

use std::collections::BTreeMap;

use app::{
    App, Error,
    agents::{self, Approvable, Approval, ApprovalDecision, SessionCaller, SessionExecute},
};
use rmcp::{
    RoleServer,
    model::{
        CallToolRequestParams, ClientCapabilities, ElicitRequest, ElicitRequestParams,
        ElicitationSchema, InputRequest, InputRequiredResult, ProtocolVersion,
    },
    service::RequestContext,
};

use super::results::{Outcome, Source, executed, visible};
use crate::api::tool_router::approval::{APPROVAL_REQUEST_NAME, DECLINED_MESSAGE};

/// Maximum number of characters of the arguments in a question.
const MAX_SHOWN_CHARS: usize = 4_000;

/// The way in which the user of a client approves a call. By default the user cannot be asked.
#[derive(Default)]
pub(super) struct CallApproval {
    /// True if the client asks its user.
    can_ask: bool,
    /// The answer that a repeated call brings.
    given: Option<Approval>,
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
            given: given.map(|(state, response)| Approval {
                state,
                decision: if response["action"] == "accept" {
                    ApprovalDecision::Approved
                } else {
                    ApprovalDecision::Declined
                },
            }),
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
            return Ok(Outcome::Untrusted(executed(execution), source));
        }
        let arguments = request.arguments.clone();
        let given = self.given.clone();
        let outcome = agents::execute_with_approval(app, caller, request, given).await?;
        Ok(match outcome {
            Approvable::Executed(execution) => Outcome::Untrusted(executed(execution), source),
            Approvable::Declined => Outcome::Own(Err(DECLINED_MESSAGE.to_owned())),
            Approvable::ApprovalRequired { message, state } => {
                Outcome::Asked(question(&message, &arguments, state))
            }
        })
    }
}

/// Returns true if a client shows forms to its user. One that names no mode of elicitation does.
fn shows_forms(capabilities: &ClientCapabilities) -> bool {
    let elicitation = capabilities.elicitation.as_ref();
    elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// Returns the question whether the user approves a call with these arguments.
fn question(message: &str, arguments: &[u8], state: String) -> InputRequiredResult {
    let arguments = String::from_utf8_lossy(arguments);
    let arguments = visible(&arguments);
    let shown = match arguments.char_indices().nth(MAX_SHOWN_CHARS) {
        None => arguments.into_owned(),
        Some((end, _)) => format!("{}… (cut)", &arguments[..end]),
    };
    let params = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: format!("{message}\n{shown}"),
        requested_schema: ElicitationSchema::new(BTreeMap::new()),
    };
    let request = InputRequest::Elicitation(ElicitRequest::new(params));
    let requests = BTreeMap::from([(APPROVAL_REQUEST_NAME.to_owned(), request)]);
    InputRequiredResult::new(Some(requests), Some(state))
}

#[cfg(test)]
mod tests {
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
    fn question_shows_arguments_up_to_a_length() {
        let shown = |arguments: String| {
            let asked = question("Run?", arguments.as_bytes(), "state".to_owned());
            let asked = serde_json::to_value(asked).unwrap();
            assert_eq!(asked["requestState"], "state");
            let params = &asked["inputRequests"]["approval"]["params"];
            assert_eq!(params["mode"], "form");
            params["message"].as_str().unwrap().to_owned()
        };
        assert_eq!(shown("\u{202e}".to_owned()), "Run?\n\\u202e");
        let long = shown("é".repeat(MAX_SHOWN_CHARS + 1));
        assert!(long.ends_with("é… (cut)"));
        assert!(!shown("é".repeat(MAX_SHOWN_CHARS)).ends_with("(cut)"));
    }
}
