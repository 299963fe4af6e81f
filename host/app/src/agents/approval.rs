//! Approval of calls: a session may require the consent of its user before it runs certain tools.
//!
//! Problem: a consent must hold for the call that the user has seen, and for no other one.
//!
//! Guarantee: a tool that needs approval runs only with a state that this installation issued for the
//! same session, tool, account and arguments at most [`APPROVAL_TTL`] ago. Every other way in which a
//! session runs a tool refuses such a tool.
//!
//! This rests on a keyed hash whose key is derived from the vault. The state grants nothing without
//! the key of the project, and can be used again until it expires.

use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;

use super::{SessionCaller, SessionExecute, errors, execute, recipes, scope};
use crate::{App, Result, runs::Execution};

/// Time in which a user may approve a call.
pub const APPROVAL_TTL: Duration = Duration::from_secs(600);

/// The answer of a user to a request for approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// The user approves the call.
    Accepted,
    /// The user does not approve it.
    Declined,
}

/// A state and the answer of the user to the request for approval that came with it.
#[derive(Debug)]
pub struct Approval {
    /// The state.
    pub state: String,
    /// The answer.
    pub consent: Consent,
}

/// The outcome of a call that may need approval.
#[derive(Debug)]
pub enum Approvable {
    /// The tool ran.
    Executed(Execution),
    /// The user has to approve the call first.
    ApprovalRequired {
        /// Question for the user.
        message: String,
        /// State with which the call is repeated.
        state: String,
    },
    /// The user has declined the call. Nothing ran.
    Declined,
}

/// Executes a tool as [`execute`] does, once its user has approved the call if the session requires
/// that.
///
/// # Errors
/// As [`execute`], and if the state is not one of this call or has expired.
pub async fn execute_with_approval(
    app: &App,
    caller: &SessionCaller,
    request: SessionExecute,
    approval: Option<Approval>,
) -> Result<Approvable> {
    // A step of a recipe that requires approval is refused.
    if recipes::is_recipe(app, &request.tool) {
        let executed = execute::execute(app, caller, request).await?;
        return Ok(Approvable::Executed(executed));
    }
    let found = execute::resolve(app, caller, &request.tool)?;
    if !scope::requires_approval(caller.config(), &found) {
        let executed = execute::execute(app, caller, request).await?;
        return Ok(Approvable::Executed(executed));
    }
    let tool = found.tool.slug.to_string();
    // Parsed arguments are hashed, so that a client may write the same ones in another way.
    let arguments: Value = serde_json::from_slice(&request.arguments)
        .map_err(|cause| errors::arguments_invalid(&tool, cause.to_string()))?;
    let call = (request.account.as_deref().unwrap_or_default(), &arguments);
    let now = app.clock.now().0;
    let Some(approval) = approval else {
        let expires_at = now.saturating_add(APPROVAL_TTL.as_millis() as i64);
        let hash = hash(app, caller, &tool, call, expires_at);
        return Ok(Approvable::ApprovalRequired {
            message: format!("Execute {tool} with the arguments of the call?"),
            state: format!("{expires_at}.{}", hex::encode(hash.finalize().into_bytes())),
        });
    };
    let invalid = || errors::approval_invalid(&tool);
    let (expires_at, given) = approval.state.split_once('.').ok_or_else(invalid)?;
    let expires_at = expires_at.parse().map_err(|_| invalid())?;
    let given = hex::decode(given).map_err(|_| invalid())?;
    // The comparison takes constant time.
    let verified = hash(app, caller, &tool, call, expires_at).verify_slice(&given);
    if verified.is_err() || now > expires_at {
        return Err(invalid());
    }
    match approval.consent {
        Consent::Accepted => {
            let executed = execute::run(app, caller, &found, request).await?;
            Ok(Approvable::Executed(executed))
        }
        Consent::Declined => Ok(Approvable::Declined),
    }
}

/// Returns the keyed hash over a call and the time at which its approval expires.
fn hash(
    app: &App,
    caller: &SessionCaller,
    tool: &str,
    (account, arguments): (&str, &Value),
    expires_at: i64,
) -> Hmac<Sha256> {
    let key = app.vault.derive("approvals of calls");
    let mut hash = Hmac::<Sha256>::new_from_slice(&*key).expect("it takes keys of every length");
    let project = caller.project.id.as_str();
    let expires_at = expires_at.to_string();
    for part in [project, caller.session_id(), tool, account, &expires_at] {
        hash.update(&(part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.update(arguments.to_string().as_bytes());
    hash
}
