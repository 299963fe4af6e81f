//! Approval of calls: a session may require that its user approves calls of certain tools.
//!
//! Problem: an approval must hold for what the user was asked, and for no other call.
//!
//! Guarantee: a tool that needs approval runs only with a state that this installation issued for the
//! same session and version of its configuration, tool, account and arguments at most [`APPROVAL_TTL`]
//! ago. A state is answered once ([`answers`]). Every other way in which a session runs a tool refuses such
//! a tool. Where one approval is enough for a tool, or the user approves all of its calls, the session
//! remembers it for the account of the call, and every way to run the tool with that account is open.
//!
//! This rests on a keyed hash whose key is derived from the vault. The state grants nothing without
//! the key of the project.

mod answers;

use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Map, Value};
use sha2::Sha256;

use self::answers::Answer;
pub(super) use self::answers::erase_session;
pub(crate) use self::answers::{COLLECTION, SWEEP_INTERVAL, erase_expired};
use super::{
    Permission, SessionCaller, SessionExecute, errors, execute, recipes, resolve, scope, sessions,
};
use crate::{
    App, Result,
    catalog::ResolvedTool,
    core::{
        ids::{AccountId, random_text},
        json, shown_slug,
        visible::visible,
    },
    runs::{self, Execution},
};

/// Maximum number of characters of the arguments in a question, with their names.
const MAX_SHOWN_CHARS: usize = 4_000;
/// Number of characters of a value that a question shows at least, if the value has as many.
const MIN_VALUE_CHARS: usize = 40;
/// Number of random characters in a state, so that equal calls have different ones.
const NONCE_CHARS: usize = 16;

/// Time in which a user may approve a call.
pub const APPROVAL_TTL: Duration = Duration::from_secs(600);

/// The decision of a user on a request for approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalDecision {
    /// The user approves the call.
    Approved,
    /// The user approves this call and all later ones of the tool with the account in the session, unless
    /// the permission of the tool asks always.
    AlwaysApproved,
    /// The user does not approve it.
    Declined,
}

/// A state and the decision of the user on the request for approval that came with it.
#[derive(Debug, Clone)]
pub struct Approval {
    /// The state.
    pub state: String,
    /// The decision.
    pub decision: ApprovalDecision,
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
/// that. Fails as [`execute`], and if the state is not one of this call, has expired or has been answered.
pub async fn execute_with_approval(
    app: &App,
    caller: &SessionCaller,
    request: SessionExecute,
    approval: Option<Approval>,
) -> Result<Approvable> {
    // A step of a recipe that needs approval is refused.
    if recipes::is_recipe(app, &request.tool) {
        if approval.is_some() {
            return Err(errors::approval_invalid(shown_slug(&request.tool)));
        }
        let executed = execute::execute(app, caller, request).await?;
        return Ok(Approvable::Executed(executed));
    }
    let found = resolve(app, caller, &request.tool)?;
    let Some(Approval { state, decision }) = approval else {
        return execute_or_ask(app, caller, &found, request, None).await;
    };
    let tool = &*found.tool.slug;
    let asked = verify(app, caller, tool, &request, &state)?;
    let answer = Answer::record(app, caller, tool, &asked.hash).await?;
    if decision == ApprovalDecision::Declined {
        return Ok(Approvable::Declined);
    }
    let given = Some((&*asked.account, decision));
    let outcome = execute_or_ask(app, caller, &found, request, given).await;
    if !matches!(outcome, Ok(Approvable::Executed(_))) {
        answer.give_back(app).await;
    }
    outcome
}

/// Executes a tool, or returns the question whether the call may run. `given` is the decision of the
/// user, with the account for which it was made: empty if the call does not need an account.
async fn execute_or_ask(
    app: &App,
    caller: &SessionCaller,
    found: &ResolvedTool,
    request: SessionExecute,
    given: Option<(&str, ApprovalDecision)>,
) -> Result<Approvable> {
    let tool = &*found.tool.slug;
    let permission = scope::permission(caller.config(), &found.into());
    let account = resolve::account(app, caller, found, request.account.as_deref()).await?;
    let account_id = account.as_ref().map_or("", AccountId::as_str);
    // The default account may be another one by now.
    let given = given.filter(|(asked, _)| *asked == account_id);
    match given {
        Some((_, decision)) => {
            let is_for_session = permission == Permission::AskOnce
                || decision == ApprovalDecision::AlwaysApproved
                    && scope::honors_approvals(caller.config(), found);
            if is_for_session {
                sessions::approve(app, &caller.session, tool, account.as_ref()).await?;
            }
        }
        None if resolve::is_approval_missing(caller, found, account.as_ref()) => {
            // A user is not asked about a call that would fail.
            let arguments = request.arguments.clone();
            runs::check_arguments(app, &caller.project, &found.tool, arguments).await?;
            return question(app, caller, found, &request, account_id, permission);
        }
        None => {}
    }
    let executed = execute::run(app, caller, found, account, request.arguments).await?;
    Ok(Approvable::Executed(executed))
}

fn question(
    app: &App,
    caller: &SessionCaller,
    found: &ResolvedTool,
    request: &SessionExecute,
    account: &str,
    permission: Permission,
) -> Result<Approvable> {
    let tool = &*found.tool.slug;
    let note = match permission {
        Permission::AskOnce => " The approval holds for all its calls in this session.",
        _ if scope::honors_approvals(caller.config(), found) => {
            " The decision `always_approve` holds for all its calls in this session."
        }
        _ => "",
    };
    let message = question_text(tool, request, account, note)?;
    let now = app.clock.now().0;
    let expires_at = now.saturating_add(APPROVAL_TTL.as_millis() as i64);
    let nonce = random_text(NONCE_CHARS);
    let asked = [&*nonce, account];
    let mac = hash(app, caller, tool, request, asked, expires_at)?;
    let hash = hex::encode(mac.finalize().into_bytes());
    Ok(Approvable::ApprovalRequired {
        message,
        state: format!("{expires_at}.{nonce}.{account}.{hash}"),
    })
}

/// Returns the question whether a call may run. It names the tool, the account and every argument. Values
/// that are not shown whole are named before the arguments, so that a long one hides no other.
fn question_text(
    tool: &str,
    request: &SessionExecute,
    account: &str,
    note: &str,
) -> Result<String> {
    let parsed: Map<String, Value> = json::parse_leniently(&request.arguments)
        .and_then(json::read)
        .map_err(|problem| errors::arguments_invalid(tool, problem.line("arguments")))?;
    let arguments: Vec<(String, String)> = parsed
        .iter()
        .map(|(name, value)| {
            (
                shown(&Value::from(&**name).to_string()),
                shown(&value.to_string()),
            )
        })
        .collect();
    let limit = max_value_chars(&arguments).ok_or_else(|| {
        let count = arguments.len();
        let problem = format!(
            "the {count} arguments are too many to be shown to the user, who has to approve the call"
        );
        errors::arguments_invalid(tool, problem)
    })?;
    let of_account = if account.is_empty() {
        String::new()
    } else {
        format!(" with the account {account}")
    };
    let mut text = format!("Execute {tool}{of_account} with these arguments?{note}");
    let cut: Vec<String> = arguments
        .iter()
        .filter(|(_, value)| char_count(value) > limit)
        .map(|(name, value)| format!("{name} ({limit} of {} characters)", char_count(value)))
        .collect();
    if !cut.is_empty() {
        text.push_str("\nNot shown whole: ");
        text.push_str(&cut.join(", "));
    }
    for (name, value) in &arguments {
        let (end, more) = match value.char_indices().nth(limit) {
            Some((end, _)) => (end, "…"),
            None => (value.len(), ""),
        };
        text.push_str(&format!("\n{name}: {}{more}", &value[..end]));
    }
    Ok(text)
}

/// Returns the number of characters that are shown of each argument's value; `None` if the arguments are
/// too many.
fn max_value_chars(arguments: &[(String, String)]) -> Option<usize> {
    let names: usize = arguments.iter().map(|(name, _)| char_count(name)).sum();
    let values: usize = arguments.iter().map(|(_, value)| char_count(value)).sum();
    if names.saturating_add(MIN_VALUE_CHARS.saturating_mul(arguments.len())) > MAX_SHOWN_CHARS {
        None
    } else if names + values <= MAX_SHOWN_CHARS {
        Some(MAX_SHOWN_CHARS)
    } else {
        Some((MAX_SHOWN_CHARS - names) / arguments.len().max(1))
    }
}

fn shown(text: &str) -> String {
    visible(text).into_owned()
}

fn char_count(text: &str) -> usize {
    text.chars().count()
}

/// Call for which a state was issued.
struct Asked {
    /// Id of the account with which the call would have run; empty if it does not need one.
    account: String,
    /// The hash in the state, in lower case.
    hash: String,
}

/// Checks that a state was issued for a call and has not expired.
fn verify(
    app: &App,
    caller: &SessionCaller,
    tool: &str,
    request: &SessionExecute,
    state: &str,
) -> Result<Asked> {
    let parts: Vec<&str> = state.split('.').collect();
    let [expires_at, nonce, account, sent_hash] = parts[..] else {
        return Err(errors::approval_invalid(tool));
    };
    let expires_at = expires_at
        .parse()
        .map_err(|_| errors::approval_invalid(tool))?;
    let sent_bytes = hex::decode(sent_hash).map_err(|_| errors::approval_invalid(tool))?;
    let hash = hash(app, caller, tool, request, [nonce, account], expires_at)?;
    // The comparison takes constant time.
    if hash.verify_slice(&sent_bytes).is_err() || app.clock.now().0 > expires_at {
        return Err(errors::approval_invalid(tool));
    }
    Ok(Asked {
        account: account.to_owned(),
        hash: hex::encode(sent_bytes),
    })
}

/// Returns the keyed hash over a call, the nonce of the state, the id of the account, and the time at which
/// the approval expires. Parsed arguments are hashed with sorted names, so that a client may write the same ones
/// in another way.
fn hash(
    app: &App,
    caller: &SessionCaller,
    tool: &str,
    request: &SessionExecute,
    [nonce, account]: [&str; 2],
    expires_at: i64,
) -> Result<Hmac<Sha256>> {
    let mut arguments = json::parse_leniently(&request.arguments)
        .map_err(|problem| errors::arguments_invalid(tool, problem.line("arguments")))?;
    arguments.sort_all_objects();
    let key = app.vault.derive("approvals of calls");
    let mut hash = Hmac::<Sha256>::new_from_slice(&*key).expect("it takes keys of every length");
    let project = caller.project.id.as_str();
    let named = request.account.as_deref().unwrap_or_default();
    let session = caller.session_id();
    // What the user was asked depends on the configuration.
    let version = caller.session.body.version.to_string();
    let expires_at = expires_at.to_string();
    for part in [
        project,
        session,
        &version,
        tool,
        named,
        nonce,
        account,
        &expires_at,
    ] {
        hash.update(&(part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.update(arguments.to_string().as_bytes());
    Ok(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(arguments: &str) -> Result<String> {
        let request = SessionExecute {
            tool: "KIT_DROP".to_owned(),
            arguments: arguments.to_owned().into(),
            account: None,
        };
        question_text("KIT_DROP", &request, "ca_1", " Once.")
    }

    #[test]
    fn question_names_tool_account_and_arguments() {
        let text = asked("{\"to\": \"bob\\nn: 2\", \"n\": 1, \"x\": \"\u{202e}\"}").unwrap();
        let expected = "Execute KIT_DROP with the account ca_1 with these arguments? Once.\n\
            \"to\": \"bob\\nn: 2\"\n\"n\": 1\n\"x\": \"\\u202e\"";
        assert_eq!(text, expected);
    }

    #[test]
    fn long_value_hides_no_other_argument() {
        let long = "é".repeat(MAX_SHOWN_CHARS);
        let text = asked(&format!(r#"{{"a": "{long}", "z": "delete everything"}}"#)).unwrap();
        assert!(text.ends_with("\n\"z\": \"delete everything\""), "{text}");
        let (before, _) = text.split_once("\n\"a\": ").unwrap();
        assert!(
            before.contains("Not shown whole: \"a\" (1997 of 4002 characters)"),
            "{text}"
        );
    }

    #[test]
    fn more_arguments_than_shown_are_refused() {
        let many: Map<String, Value> = (0..1_000).map(|n| (n.to_string(), n.into())).collect();
        assert!(asked(&Value::from(many).to_string()).is_err());
    }
}
