//! Connection of the account that a call needs, by its user.
//!
//! A client that opens addresses for its user is asked to open the page on which the account is
//! connected (elicitation by URL). Since protocol version 2026-07-28 the request for it is a result of
//! the call, and the client repeats the call when the user has agreed. In 2025-11-25 it is the error
//! `URLElicitationRequired`. Other clients get a failure with the address, so that the assistant passes
//! it on. Nothing is remembered between the calls.

use std::{collections::BTreeMap, time::Duration};

use app::{
    Error,
    agents::ConnectionLink,
    core::{ids::random_text, truncate},
};
use http::errors;
use rmcp::{
    ErrorData, RoleServer,
    model::{
        ClientCapabilities, ElicitRequest, ElicitRequestParams, ErrorCode, InputRequest,
        InputRequiredResult, InputResponses, ProtocolVersion,
    },
    service::RequestContext,
};
use serde_json::{Value, json};

use super::results::{Outcome, refused};

/// Time for which a repeated call waits for the connection. Clients often give up after a minute.
pub(super) const CONNECTION_WAIT: Duration = Duration::from_secs(50);
/// Interval at which accounts that other servers connect are looked for.
pub(super) const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Error `URLElicitationRequired` of protocol version 2025-11-25.
const URL_ELICITATION_REQUIRED: ErrorCode = ErrorCode(-32042);
/// Characters of the id of a request in that error.
const ELICITATION_ID_CHARS: usize = 22;
/// Name of the request in a result.
const REQUEST_NAME: &str = "connect";

/// Answer of the user to the request for a connection, in a repeated call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consent {
    /// The call is not repeated.
    NotAsked,
    /// The user opens the page.
    Accepted,
    /// The user does not.
    Declined,
}

impl Consent {
    pub(super) fn new(responses: Option<&InputResponses>) -> Self {
        let response = responses.and_then(|responses| responses.get(REQUEST_NAME));
        match response.map(|response| &response["action"]) {
            None => Self::NotAsked,
            Some(Value::String(action)) if action == "accept" => Self::Accepted,
            Some(_) => Self::Declined,
        }
    }
}

/// Returns true if a call was refused because its user lacks an account.
pub(super) fn is_connection_missing(cause: &Error) -> bool {
    cause.is(&errors::NO_ACCOUNT) || cause.is(&errors::NO_ACTIVE_CONNECTION)
}

/// Returns true if a client opens addresses for its user.
pub(super) fn opens_urls(capabilities: &ClientCapabilities) -> bool {
    let elicitation = capabilities.elicitation.as_ref();
    elicitation.is_some_and(|elicitation| elicitation.url.is_some())
}

/// Way in which a client can be asked to open an address for its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UrlRequest {
    /// A result of the call, since protocol version 2026-07-28.
    Result,
    /// An error of the call, before it.
    Error,
    /// The client opens no addresses.
    Unsupported,
}

impl UrlRequest {
    /// Returns the way of a client of a protocol version before 2026-07-28. `is_declared` says that it
    /// opened its connection with the declaration that it opens addresses.
    pub(super) fn before_results(is_declared: bool) -> Self {
        if is_declared {
            Self::Error
        } else {
            Self::Unsupported
        }
    }

    /// Returns the way of the client of a request.
    pub(super) fn new(context: &RequestContext<RoleServer>, is_declared: bool) -> Self {
        let version = context.protocol_version();
        if version.is_none_or(|version| version < ProtocolVersion::V_2026_07_28) {
            return Self::before_results(is_declared);
        }
        let capabilities = context.client_capabilities();
        if capabilities.as_ref().is_some_and(opens_urls) {
            Self::Result
        } else {
            Self::Unsupported
        }
    }
}

fn question(message: String, url: String) -> InputRequiredResult {
    let params = ElicitRequestParams::UrlElicitationParams {
        meta: None,
        message,
        url,
        elicitation_id: String::new(),
    };
    let request = InputRequest::Elicitation(ElicitRequest::new(params));
    let requests = BTreeMap::from([(REQUEST_NAME.to_owned(), request)]);
    InputRequiredResult::from_input_requests(requests)
}

fn elicitation_error(message: String, url: &str) -> ErrorData {
    let id = random_text(ELICITATION_ID_CHARS);
    let elicitation = json!({ "mode": "url", "elicitationId": id, "url": url, "message": message });
    let data = json!({ "elicitations": [elicitation] });
    ErrorData::new(URL_ELICITATION_REQUIRED, message, Some(data))
}

/// Answers a call whose user has to connect an account first.
pub(super) fn ask(
    link: ConnectionLink,
    consent: Consent,
    way: UrlRequest,
) -> Result<Outcome, ErrorData> {
    let ConnectionLink {
        user_id,
        toolkit,
        url,
    } = link;
    let message = format!("Connect an account for {toolkit}, then the call can go on.");
    let is_first = consent == Consent::NotAsked;
    if is_first && way == UrlRequest::Result {
        return Ok(Outcome::Asked(question(message, url)));
    }
    if is_first && way == UrlRequest::Error {
        return Err(elicitation_error(message, &url));
    }
    let cause = errors::mcp_not_connected(truncate(&user_id), toolkit, url);
    Ok(refused(&cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consent_is_that_of_the_own_request() {
        let answered = |name: &str, response: Value| {
            Consent::new(Some(&BTreeMap::from([(name.to_owned(), response)])))
        };
        assert_eq!(Consent::new(None), Consent::NotAsked);
        let accepted = json!({ "action": "accept" });
        assert_eq!(answered("other", accepted.clone()), Consent::NotAsked);
        assert_eq!(answered("connect", accepted), Consent::Accepted);
        let declined = json!({ "action": "decline" });
        assert_eq!(answered("connect", declined), Consent::Declined);
        assert_eq!(answered("connect", json!(1)), Consent::Declined);
    }
}
