//! Calls of triggers.
use std::{collections::BTreeMap, sync::Arc};

use sandbox::{
    Action, Cause, Failure, HandedOverSecret, LogLine, Outcome, Output, RequestRecord, kind,
};
use serde_json::{Value, json};
use tracing::Level;

use super::run::{self, Guest, Run};
use crate::{
    App, Result,
    accounts::Granted,
    catalog::{ResolvedTrigger, TriggerType},
    projects::Project,
};

/// Log target of calls of triggers. Each is one line at `trace`, the only level
/// with data of users, because its requests and errors may have some. `toolkit dev` shows it.
const LOG_TARGET: &str = "toolhost::trigger_call";

pub(crate) struct TriggerCall<'a> {
    pub project: &'a Project,
    pub found: &'a ResolvedTrigger,
    pub action: Action,
    /// The state that the previous call left.
    pub state: BTreeMap<String, Vec<u8>>,
    pub user_id: String,
    pub granted: Granted,
    /// Signing secret that the call hands to the provider.
    pub webhook_secret: Option<HandedOverSecret>,
}

pub(crate) struct TriggerResult {
    pub output: std::result::Result<Output, Failure>,
    /// The state that the call leaves. After a failure it is the state before the call.
    pub state: BTreeMap<String, Vec<u8>>,
}

/// Calls a trigger. An error means that nothing ran.
pub(crate) async fn call_trigger(app: &App, call: TriggerCall<'_>) -> Result<TriggerResult> {
    let TriggerType { policy, limits, .. } = &*call.found.trigger;
    let kind = match call.action {
        Action::Poll { .. } => "poll",
        Action::Receive { .. } => "webhook",
        // A trigger is executed only to subscribe at the provider, or to end a subscription.
        Action::Execute { .. } => "subscription",
    };
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
    if tracing::enabled!(target: LOG_TARGET, Level::TRACE) {
        let trigger = &*call.found.trigger.slug;
        let call = logged(&outcome);
        tracing::trace!(target: LOG_TARGET, trigger, kind, %call, "a trigger was called");
    }
    Ok(TriggerResult {
        output: outcome.output,
        state: outcome.state,
    })
}

/// Returns a call as the log shows it, with the names that the execution log has. Secrets were removed
/// in the sandbox.
fn logged(outcome: &Outcome) -> Value {
    let events = match &outcome.output {
        Ok(Output::Polled { events, .. } | Output::Received { events, .. }) => events.len(),
        Ok(Output::Data(_)) | Err(_) => 0,
    };
    json!({
        "events": events,
        "error": outcome.output.as_ref().err().map(ToString::to_string),
        "wall_us": outcome.usage.wall.as_micros() as u64,
        "cpu_us": outcome.usage.cpu.as_micros() as u64,
        "peak_memory_bytes": outcome.usage.peak_memory,
        "requests": outcome.requests.iter().map(logged_request).collect::<Vec<_>>(),
        "log": outcome.log.iter().map(logged_line).collect::<Vec<_>>(),
    })
}

fn logged_request(request: &RequestRecord) -> Value {
    json!({
        "method": request.method,
        "url": request.url,
        "status": request.status,
        "error": request.error,
        "elapsed_ms": request.elapsed.as_millis() as u64,
    })
}

fn logged_line(line: &LogLine) -> Value {
    json!({ "level": line.level.as_str(), "message": line.message })
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
