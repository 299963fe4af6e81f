//! Execution of tools. [`execute`] is the only way to run a tool.
pub mod log;
pub mod prompt;
mod proxy;
mod verify;

use std::collections::BTreeMap;

use bytes::Bytes;
use sandbox::{
    Action, Call, Context, Digest, Failure, Outcome, Output, Refusal, cassette::Cassette, kind,
};
use serde::Serialize;
use serde_json::value::RawValue;

pub use proxy::{
    MAX_BODY_BYTES as MAX_PROXY_BODY_BYTES, Proxy, ProxyBody, ProxyResponse, ResponseBody, proxy,
};
pub(crate) use verify::verify_credential;

use crate::{
    App, Error, Result,
    accounts::{self, CredentialChoice, CustomCredential},
    catalog::{self, Release, ResolvedTool},
    core::ids::{AccountId, LogId},
    files,
    projects::{Project, SharedProject},
};

/// Maximum size of a result in a response, in bytes. A larger result becomes a file, and the
/// response contains a link to it.
pub const MAX_INLINE_RESULT_BYTES: usize = 4 << 20;

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

/// The details of a failure that callers receive.
#[derive(Serialize)]
struct FailureData<'a> {
    kind: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream_status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a RawValue>,
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
                return Err(Error::ArgumentsInvalid {
                    tool: resolved.tool.slug.to_string(),
                    problems,
                });
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

/// Calls the sandbox. If this node does not have the component yet, prepares it first.
async fn run_in_sandbox(
    app: &App,
    release: &Release,
    call: impl Fn() -> Call,
    max_cassette_bytes: Option<usize>,
) -> Result<(Outcome, Option<Cassette>)> {
    let call_once = async || match max_cassette_bytes {
        None => Ok((app.sandbox.call(call()).await?, None)),
        Some(max_bytes) => app.sandbox.record(call(), max_bytes).await,
    };
    let ran = match call_once().await {
        Err(Refusal::NotInstalled) => {
            install_component(app, release.digest).await?;
            call_once().await
        }
        other => other,
    };
    ran.map_err(|refusal| refusal_error(refusal, release))
}

async fn install_component(app: &App, component: Digest) -> Result<()> {
    let bytes = app.store.blobs().get(&catalog::blob(component)).await?;
    let bytes = bytes.ok_or_else(|| {
        tracing::error!(%component, "a component is missing: servers that share a database must also share a bucket");
        Error::Unavailable("the blob storage of this server does not have the toolkit's component".into())
    })?;
    match app.sandbox.install(bytes).await {
        Ok(_) => Ok(()),
        Err(sandbox::InstallError::Unavailable(why)) => Err(Error::Unavailable(why)),
        Err(other) => Err(Error::Internal(format!(
            "component {component} cannot be installed: {other}"
        ))),
    }
}

fn refusal_error(refusal: Refusal, release: &Release) -> Error {
    match refusal {
        Refusal::TenantBusy => Error::ProjectBusy,
        Refusal::NodeBusy => Error::NodeBusy,
        Refusal::NotInstalled => {
            Error::Unavailable("the toolkit cannot be installed on this node".into())
        }
        Refusal::Quarantined => Error::Quarantined {
            slug: release.slug.to_string(),
            version: release.version.to_string(),
        },
        Refusal::Unavailable(why) => Error::Unavailable(why),
    }
}

/// The data and the error as callers receive them.
struct ToolResult {
    data: Bytes,
    error: Option<String>,
}

/// Returns true if a tool returned a result that is too large for a response.
fn is_large(outcome: &Outcome) -> bool {
    matches!(&outcome.output, Ok(Output::Data(data)) if data.len() > MAX_INLINE_RESULT_BYTES)
}

/// Stores a result as a file. Returns the result for the caller, and the data for the log record,
/// which contains no link.
async fn result_as_file(
    app: &App,
    project: &SharedProject,
    resolved: &ResolvedTool,
    data: Bytes,
) -> (ToolResult, Bytes) {
    let (size, max_bytes) = (data.len(), app.files.settings.size);
    if size as u64 > max_bytes {
        let message = format!(
            "the result of the tool has {size} bytes; a result above {MAX_INLINE_RESULT_BYTES} bytes becomes a file, which may have at most {max_bytes} bytes"
        );
        let result = failure_result(kind::OUTPUT_TOO_LARGE, &message, None);
        let data = result.data.clone();
        return (result, data);
    }
    match files::result_as_file(app, project, resolved, data).await {
        Ok([data, record]) => (ToolResult { data, error: None }, record),
        Err(cause) => {
            let result = failure_result(
                kind::FILE_NOT_KEPT,
                &format!("the tool ran, but its result could not be stored: {cause}"),
                None,
            );
            let data = result.data.clone();
            (result, data)
        }
    }
}

async fn to_result(
    app: &App,
    project: &Project,
    resolved: &ResolvedTool,
    outcome: &Outcome,
) -> ToolResult {
    let (large, tenant) = (&app.large_work, &project.tenant);
    let invalid = |message: String| failure_result(kind::OUTPUT_INVALID, &message, None);
    match &outcome.output {
        Ok(Output::Data(data)) => match resolved.tool.output.problems(large, tenant, data).await {
            Ok(problems) if problems.is_empty() => ToolResult {
                data: as_object(data),
                error: None,
            },
            Ok(problems) => invalid(format!(
                "the result of the tool does not match its schema: {}",
                problems.join("; ")
            )),
            Err(cause) => failure_result(
                kind::HOST,
                &format!("the tool ran, but its result cannot be validated: {cause}"),
                None,
            ),
        },
        Ok(_) => invalid("the tool returned the result of a trigger".into()),
        Err(failure) => failure_result(&failure.kind, &failure.message, Some(failure)),
    }
}

fn failure_result(kind: &str, message: &str, failure: Option<&Failure>) -> ToolResult {
    let details = failure.and_then(|failure| failure.details.as_ref());
    let data = FailureData {
        kind,
        message,
        upstream_status: failure.and_then(|failure| failure.upstream_status),
        retry_after_ms: failure
            .and_then(|failure| failure.retry_after)
            .map(|after| after.as_millis() as u64),
        details: details.and_then(|details| serde_json::from_slice(details).ok()),
    };
    let data = serde_json::to_vec(&data).map_or_else(|_| Bytes::from_static(b"{}"), Bytes::from);
    ToolResult {
        data,
        error: Some(format!("{kind}: {message}")),
    }
}

/// Returns the data as an object, because clients expect one in `data`. Any other value becomes its
/// member `result`.
fn as_object(data: &Bytes) -> Bytes {
    let start = data
        .iter()
        .position(|byte| !byte.is_ascii_whitespace())
        .unwrap_or(0);
    if data.get(start) == Some(&b'{') {
        return data.clone();
    }
    [b"{\"result\":", &data[..], b"}"].concat().into()
}

#[cfg(test)]
mod tests {
    use sandbox::Cause;

    use super::*;
    use crate::catalog::SchemaFile;
    use store::Time;

    /// Tests the refusal directly, because no client request can make the host panic. The tests of
    /// the sandbox check that the refusal follows the third panic, and other tests check how errors
    /// of the table are sent.
    #[test]
    fn quarantined_component_is_refused() {
        let manifest = serde_json::json!({ "abi": "1.0.0", "sdk": "s", "slug": "acme", "name": "n", "description": "d", "version": "20260101_00", "tools": [], });
        let mut schema_file = SchemaFile::create_in(&tempfile::env::temp_dir()).unwrap();
        let manifest = manifest.to_string();
        let manifest = serde_json::from_str(&manifest).unwrap();
        let release =
            Release::new(manifest, Digest::compute(b""), 0, Time(0), &mut schema_file).unwrap();
        let error = refusal_error(Refusal::Quarantined, &release);
        let (slug, status) = (error.info().slug, error.info().status);
        assert_eq!((slug, status), ("Toolkit_Quarantined", 503));
        assert!(
            error.to_string().contains("20260101_00 of toolkit acme"),
            "{error}"
        );
    }

    #[test]
    fn data_is_always_an_object() {
        for (given, expected) in [
            ("{\"a\":1}", "{\"a\":1}"),
            (" {}", " {}"),
            ("[1]", "{\"result\":[1]}"),
            ("null", "{\"result\":null}"),
        ] {
            assert_eq!(as_object(&Bytes::from(given)), Bytes::from(expected));
        }
    }

    #[test]
    fn failure_has_kind_message_and_provider_details() {
        let failure = Failure {
            cause: Cause::Tool,
            kind: "rate_limited".into(),
            message: "slow down".into(),
            retry_after: Some(std::time::Duration::from_secs(2)),
            upstream_status: Some(429),
            details: Some(Bytes::from_static(b"{\"x\":1}")),
        };
        let result = failure_result(&failure.kind, &failure.message, Some(&failure));
        assert_eq!(result.error.as_deref(), Some("rate_limited: slow down"));
        assert_eq!(
            result.data,
            r#"{"kind":"rate_limited","message":"slow down","upstream_status":429,"retry_after_ms":2000,"details":{"x":1}}"#
        );
    }

    #[test]
    fn details_that_are_not_json_are_left_out() {
        let failure = Failure {
            cause: Cause::Tool,
            kind: "internal".into(),
            message: "m".into(),
            retry_after: None,
            upstream_status: None,
            details: Some(Bytes::from_static(b"<html>")),
        };
        assert_eq!(
            failure_result("internal", "m", Some(&failure)).data,
            r#"{"kind":"internal","message":"m"}"#
        );
    }
}
