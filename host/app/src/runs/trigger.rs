//! Calls of triggers.
use std::{collections::BTreeMap, sync::Arc};

use sandbox::{Action, Cause, Failure, Output, WebhookSecret, kind};

use super::run::{self, Guest, Run};
use crate::{
    App, Result,
    accounts::Granted,
    catalog::{ResolvedTrigger, TriggerType},
    projects::Project,
};

/// A call of a trigger.
pub(crate) struct TriggerCall<'a> {
    pub project: &'a Project,
    pub found: &'a ResolvedTrigger,
    pub action: Action,
    /// The state that the previous call left.
    pub state: BTreeMap<String, Vec<u8>>,
    pub user_id: String,
    pub granted: Granted,
    /// Signing secret that the call hands to the provider.
    pub webhook_secret: Option<WebhookSecret>,
}

/// The result of a call.
pub(crate) struct TriggerResult {
    pub output: std::result::Result<Output, Failure>,
    /// The state that the call leaves. After a failure it is the state before the call.
    pub state: BTreeMap<String, Vec<u8>>,
}

/// Calls a trigger. An error means that nothing ran.
pub(crate) async fn call_trigger(app: &App, call: TriggerCall<'_>) -> Result<TriggerResult> {
    let TriggerType { policy, limits, .. } = &*call.found.trigger;
    let mut policy = policy.clone();
    if call.webhook_secret.is_some() {
        Arc::make_mut(&mut policy).webhook_secret = call.webhook_secret;
    }
    let run = Run {
        project: call.project,
        release: &call.found.release,
        what: Guest {
            action: call.action,
            user_id: call.user_id,
            fields: call.granted.fields,
            files: Vec::new(),
            files_memory: None,
            state: call.state,
        },
        policy,
        credential: call.granted.grant,
        limits: *limits,
        record: None,
    };
    let outcome = run::call(app, run).await?;
    Ok(TriggerResult {
        output: outcome.output,
        state: outcome.state,
    })
}

/// Returns the failure of a trigger that returned the result of another kind of call.
pub(crate) fn wrong_output() -> Failure {
    Failure {
        cause: Cause::Limit,
        kind: kind::OUTPUT_INVALID.to_owned(),
        message: "the trigger returned the result of another call".to_owned(),
        retry_after: None,
        upstream_status: None,
        details: None,
    }
}
