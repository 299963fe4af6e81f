//! Execution of tools.
use std::collections::BTreeMap;

use bytes::Bytes;
use sandbox::{Action, Call, Context, kind};

use super::{
    log,
    present::{
        MAX_INLINE_RESULT_BYTES, ToolResult, failure_result, is_large, result_as_file, to_result,
    },
    prompt,
    run::run_in_sandbox,
};
use crate::{
    App, Result,
    accounts::{self, CredentialChoice, CustomCredential},
    core::ids::{AccountId, LogId},
    files,
    projects::{Project, SharedProject},
    runs::errors,
};

/// A request to execute a tool.
#[derive(Debug)]
pub struct Execute {
    /// The slug, in upper or lower case.
    pub tool: String,
    /// The version selector: `latest`, an exact version, or the base version.
    pub version: String,
    /// The user, or `None` for the default user.
    pub user_id: Option<String>,
    /// The connected account to use, or `None` for the user's newest one.
    pub account: Option<AccountId>,
    /// A credential sent with the request.
    pub custom: Option<CustomCredential>,
    /// The input of the tool.
    pub input: Input,
    /// The id of the request, for the log.
    pub request_id: String,
}

/// The input of an execution.
#[derive(Debug)]
pub enum Input {
    /// The arguments, a JSON object as received.
    Arguments(Bytes),
    /// A prompt that a language model turns into arguments.
    Prompt(prompt::Prompt),
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
}

/// Executes a tool for a user of a project and records the execution.
///
/// # Errors
/// Returns an error only before the tool runs: if the tool or account is unknown, the arguments do
/// not match the schema or cannot be made from the prompt, or no capacity is free. After that,
/// every outcome is an [`Execution`].
pub async fn execute(app: &App, project: &SharedProject, request: Execute) -> Result<Execution> {
    let resolved = app.catalog.tool(&request.tool, &request.version)?;
    let mut files = Vec::new();
    let input = match request.input {
        Input::Arguments(mut arguments) => {
            if resolved.tool.takes_files {
                (arguments, files) =
                    files::resolve_files(app, project, &resolved.tool, arguments).await?;
            }
            let problems = resolved
                .tool
                .input
                .problems_strictly(&app.large_work, &project.tenant, &arguments)
                .await?;
            if !problems.is_empty() {
                return Err(errors::arguments_invalid(&resolved.tool.slug, problems));
            }
            Input::Arguments(arguments)
        }
        prompt @ Input::Prompt(_) => prompt,
    };
    let user = accounts::parse_user_id(request.user_id.clone())?;
    let choice = CredentialChoice {
        user_id: request.user_id,
        account: request.account,
        custom: request.custom,
    };
    let granted = accounts::grant(app, project, &resolved, &user, choice).await?;
    // The language model is called after all other checks of the call, because it costs money.
    let (arguments, tokens) = match input {
        Input::Arguments(arguments) => (arguments, None),
        Input::Prompt(prompt) => {
            let (mut arguments, tokens) =
                prompt::to_arguments(app, project, &resolved.tool, &prompt).await?;
            if resolved.tool.takes_files {
                (arguments, files) =
                    files::resolve_files(app, project, &resolved.tool, arguments).await?;
            }
            (arguments, Some(tokens))
        }
    };
    let slot = app.log.reserve().await?;

    let started_at = app.clock.now();
    let log_id = app.sequence.log(started_at);
    let call = || Call {
        component: resolved.release.digest,
        tenant: project.tenant.clone(),
        action: Action::Execute {
            tool: resolved.tool.slug.clone(),
            arguments: arguments.clone(),
        },
        context: Context {
            run_id: log_id.to_string(),
            user_id: user.clone(),
            fields: granted.fields.clone(),
        },
        policy: resolved.tool.policy.clone(),
        grant: granted.grant.clone(),
        limits: resolved.tool.limits,
        files: files.clone(),
        state: BTreeMap::new(),
    };
    let max_cassette_bytes = app.log.recorder.max_bytes(project);
    let (mut outcome, cassette) =
        run_in_sandbox(app, &resolved.release, call, max_cassette_bytes).await?;
    // The permit is held until a large result is checked and stored, to limit the number of results
    // that are in memory twice.
    let _permit = if is_large(&outcome) {
        app.files.acquire_large_result().await
    } else {
        None
    };
    let mut result = to_result(app, project, &resolved, &outcome).await;
    // The record keeps the names of files. Links in it would open the files for every reader of the
    // log.
    let mut data = result.data.clone();
    let made_files = std::mem::take(&mut outcome.files);
    let memory = outcome.memory.take();
    if result.error.is_none() && !(made_files.is_empty() && files.is_empty()) {
        let given: Vec<_> = files.into_iter().map(|file| file.id).collect();
        result = match files::link_files(app, project, &resolved, &result.data, made_files, &given)
            .await
        {
            Ok(data) => ToolResult { data, error: None },
            Err(cause) => failure_result(
                kind::FILE_NOT_KEPT,
                &format!("the tool ran, but a file of its result could not be stored: {cause}"),
                None,
            ),
        };
    }
    drop(memory);
    if result.error.is_none() && result.data.len() > MAX_INLINE_RESULT_BYTES {
        (result, data) = result_as_file(app, project, &resolved, result.data).await;
    }
    let written = slot.submit(log::Entry {
        id: log_id.clone(),
        project: project.clone(),
        user,
        account: granted.account,
        auth_config: granted.auth_config,
        source: granted.source,
        request_id: request.request_id,
        started_at,
        ended_at: app.clock.now(),
        arguments,
        tokens,
        data: if result.error.is_none() {
            data
        } else {
            result.data.clone()
        },
        error: result.error.clone(),
        cassette: cassette
            .and_then(|cassette| app.log.recorder.reserve(cassette, result.error.is_some())),
        tool: resolved.tool.slug.clone(),
        release: resolved.release,
        outcome,
    });
    let error = if written.await {
        result.error
    } else {
        Some(format!(
            "{}: the tool ran, but its record could not be written",
            kind::LOG_NOT_WRITTEN
        ))
    };
    Ok(Execution {
        log_id,
        data: result.data,
        error,
    })
}

/// Turns a prompt into arguments for a tool without executing the tool.
///
/// # Errors
/// Returns an error if the tool does not exist, no model is configured, or the model finds no valid
/// arguments.
pub async fn arguments_for_prompt(
    app: &App,
    project: &Project,
    tool: &str,
    version: &str,
    prompt: &prompt::Prompt,
) -> Result<Bytes> {
    let resolved = app.catalog.tool(tool, version)?;
    Ok(prompt::to_arguments(app, project, &resolved.tool, prompt)
        .await?
        .0)
}
