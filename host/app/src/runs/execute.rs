//! Execution of tools.
use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use sandbox::{Action, Cause, Failure, kind};

use super::{
    arguments::{self, Arguments, CheckedInput, Input},
    log::Subject,
    present::{Presented, present},
    record::{OpenRecord, reserve_slot},
    run::{self, Guest, Run},
};
use crate::{
    App, Result,
    accounts::{self, CredentialChoice, CustomCredential},
    catalog::{Release, ResolvedTool},
    core::{
        ids::{AccountId, LogId, SessionId},
        request_id::RequestId,
    },
    projects::SharedProject,
};

/// A call of a tool by a user.
#[derive(Debug)]
pub struct ToolCall {
    /// The user, or `None` for the default user.
    pub user_id: Option<String>,
    /// The connected account to use, or `None` for the user's newest one.
    pub account: Option<AccountId>,
    /// A credential sent with the request.
    pub custom: Option<Box<CustomCredential>>,
    /// The tool router session in which the tool runs.
    pub session: Option<SessionId>,
    /// The input of the tool.
    pub input: Input,
    /// The id of the request, for the log.
    pub request_id: RequestId,
}

/// The result of an execution. A failure of the tool is also a result.
#[derive(Debug)]
pub struct Execution {
    /// The id of the log record.
    pub log_id: LogId,
    /// The data that the tool returned, as JSON, or the details of a failure.
    pub data: Bytes,
    /// The failure, as `kind: message`.
    pub error: Option<String>,
    /// The release whose tool ran, or `None` for a tool of the host.
    pub release: Option<Arc<Release>>,
    /// The start of a result stored as a file, because it is too large for a response.
    pub beginning: Option<Bytes>,
    /// The names of arguments that the schema of the tool does not describe.
    pub unknown_arguments: Vec<String>,
}

/// Executes a tool for a user of a project and records the execution. Fails only before the tool
/// runs: if the account is unknown, the arguments do not match the schema or cannot be made from the
/// prompt, or no capacity is free. After that, every outcome is an [`Execution`].
pub async fn execute(
    app: &App,
    project: &SharedProject,
    resolved: &ResolvedTool,
    request: ToolCall,
) -> Result<Execution> {
    let (release, tool) = (&resolved.release, &resolved.tool);
    let input = arguments::check(app, project, tool, request.input).await?;
    let user = accounts::parse_user_id(request.user_id.as_deref())?;
    let choice = CredentialChoice {
        user_id: request.user_id,
        account: request.account,
        custom: request.custom,
    };
    let granted = accounts::grant(app, project, resolved, &user, choice).await?;
    // The language model is called after all other checks of the call, because it costs money.
    let arguments = match input {
        CheckedInput::Arguments(arguments) => arguments,
        CheckedInput::Prompt(prompt) => {
            Box::pin(Arguments::from_prompt(app, project, tool, &prompt)).await?
        }
    };
    let given: Vec<_> = arguments.files.iter().map(|file| file.id.clone()).collect();
    let slot = reserve_slot(app, project).await?;
    let subject = Subject {
        project: project.clone(),
        tool: tool.slug.clone(),
        release: Some(release.clone()),
        user: user.clone(),
        account: granted.account,
        auth_config: granted.auth_config,
        source: granted.source,
        session: request.session,
        request_id: request.request_id,
        arguments: arguments.json.clone(),
        tokens: arguments.tokens.map(Box::new),
    };
    let mut record = OpenRecord::open(app, slot, subject);
    let run = Run {
        project,
        release,
        what: Guest {
            action: Action::Execute {
                tool: tool.slug.clone(),
                arguments: arguments.json,
            },
            user_id: user,
            fields: granted.fields,
            files: arguments.files,
            files_memory: arguments.files_memory,
            state: BTreeMap::new(),
        },
        policy: tool.policy.clone(),
        credential: granted.grant,
        limits: tool.limits,
        record: Some(&mut record),
    };
    let mut outcome = run::call(app, run).await?;
    if let (Err(failure), Some(scopes)) = (&mut outcome.output, &granted.scopes) {
        explain_missing_scopes(failure, record.last_status(), scopes, &tool.scopes);
    }
    let presented = present(app, project, resolved, outcome, &given).await;
    let mut execution = conclude(release, record, presented).await;
    execution.unknown_arguments = arguments.unknown;
    Ok(execution)
}

/// Closes the record of a run with the result that the caller receives.
async fn conclude(
    release: &Arc<Release>,
    record: OpenRecord<'_>,
    presented: Presented,
) -> Execution {
    let log_id = record.id().clone();
    let is_written = record.close(presented.kept, presented.error.clone());
    let error = match is_written.await {
        true => presented.error,
        false => Some(format!(
            "{}: the tool ran, but its record could not be written",
            kind::LOG_NOT_WRITTEN
        )),
    };
    Execution {
        log_id,
        data: presented.data,
        error,
        release: Some(release.clone()),
        beginning: presented.beginning,
        unknown_arguments: Vec::new(),
    }
}

/// Adds to the failure of a tool that the account lacks scopes, if the provider refused the request.
/// A call is never refused for it beforehand, because one scope may include another. Providers separate
/// the granted scopes with blanks (RFC 6749, section 3.3) or commas.
fn explain_missing_scopes(
    failure: &mut Failure,
    last_status: Option<u16>,
    granted: &str,
    needed: &[String],
) {
    let status = failure.upstream_status.or(last_status);
    if failure.cause != Cause::Tool || !matches!(status, Some(401 | 403)) {
        return;
    }
    let granted: Vec<_> = granted
        .split([' ', ','])
        .filter(|scope| !scope.is_empty())
        .collect();
    let missing: Vec<_> = needed
        .iter()
        .map(String::as_str)
        .filter(|scope| !granted.contains(scope))
        .collect();
    // Without a granted scope, the provider did not say which ones it granted.
    if granted.is_empty() || missing.is_empty() {
        return;
    }
    let names = missing.join("`, `");
    failure.message.push_str(&format!(
        "; the account was connected without `{names}`, which this tool needs: connect it again"
    ));
}
