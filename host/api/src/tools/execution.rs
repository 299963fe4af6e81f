//! Executions of tools.

use app::{
    Error,
    catalog::Snapshot,
    core::{ids::LogId, request_id::RequestId},
    runs::{self, Execution, Input, ToolCall, prompt::Prompt},
};
use axum::http::HeaderName;
use bytes::Bytes;
use http::{
    ApiResult, CURRENT_REQUEST, IN_TABLE, Path, Prefix, ProjectKey, RawJson, SerializedJson,
    UnparsedJson, body::borrowed_object, errors, request_id, unknown::Warnings,
};
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use utoipa::ToSchema;

use super::{
    arguments::GatewayHeaders,
    custom_credential::{AuthParameters, ConnectionData, custom_credential, refuse_nul},
    named_account, not_blank,
};

/// Header with the version that was executed, if an older client did not name one.
const EXECUTED_VERSION: HeaderName = HeaderName::from_static("x-toolhost-tool-version");
/// Header with the latest version of the toolkit, in addition to [`EXECUTED_VERSION`].
const LATEST_VERSION: HeaderName = HeaderName::from_static("x-toolhost-latest-tool-version");

/// The body of an execution.
// It borrows from the received bytes, so that arguments are not copied.
#[derive(Deserialize, ToSchema)]
#[schema(as = Execute)]
pub(crate) struct ExecuteRequest<'a> {
    connected_account_id: Option<String>,
    user_id: Option<String>,
    entity_id: Option<String>,
    version: Option<String>,
    #[serde(borrow, default)]
    #[schema(value_type = Option<Object>)]
    arguments: Option<&'a RawValue>,
    text: Option<String>,
    custom_auth_params: Option<AuthParameters>,
    custom_connection_data: Option<ConnectionData>,
}

view! {
    /// The result of an execution.
    #[schema(as = Execution)]
    pub(crate) struct ExecutionView from execution: Execution where {
        let successful = execution.error.is_none();
    } {
        /// The response of the tool. Beyond 4 MiB it is `result_file` alone, with a link to it in
        /// `s3url`, `name`, `mimetype`, `size` and `expires_at`. If the execution failed, details of
        /// the failure.
        #[schema(value_type = Map<String, Value>)] data: RawJson = RawJson(execution.data),
        /// Null if the execution succeeded.
        error!: Option<String> = execution.error,
        successful: bool = successful,
        /// Always null.
        session_info!: Option<Map<String, Value>> = None,
        #[schema(value_type = String)] log_id: LogId = execution.log_id,
    }
}

/// Executes a tool.
#[utoipa::path(
    post, path = IN_TABLE,
    params(("x-llm-gateway-headers" = Option<String>, Header, description = "A JSON object of texts: headers for the language model")),
    responses(
        (status = 403, description = "The auth config does not allow the tool, or the account is not shared with the user"),
        (status = 410, description = "The tool is deprecated in every version"),
        (status = 422, description = "The account cannot be used in its current status, or the language model generated no valid arguments"),
        (status = 501, description = "The server has no language model"),
        (status = 502, description = "The language model failed"),
    ),
)]
pub(crate) async fn execute(
    key: ProjectKey,
    prefix: Prefix,
    Path(slug): Path<String>,
    GatewayHeaders(headers): GatewayHeaders,
    UnparsedJson { bytes, .. }: UnparsedJson<ExecuteRequest<'static>>,
) -> ApiResult<SerializedJson<ExecutionView>> {
    let size = bytes.len();
    // A large body is parsed on another thread, which does not know the request.
    let request_id = request_id();
    let turns = &key.app().large_work;
    let project = &key.project.tenant;
    let parsed = turns.scan(project, size, move || request(&bytes, headers, request_id));
    let (call, notes) = parsed.await??;
    CURRENT_REQUEST.with(|context| context.warnings.lock().extend(notes.warnings));
    let version = notes.version.as_deref();
    let version = version.unwrap_or_else(|| prefix.tool_version());
    let tool = key.app().catalog.tool(&slug, version)?;
    let execution = runs::execute(key.app(), &key.project, &tool, call)
        .await
        .map_err(|cause| match notes.misplaces_arguments {
            true => with_wrapper_named(cause),
            false => cause,
        })?;
    let unknown = &execution.unknown_arguments;
    CURRENT_REQUEST.with(|context| context.warnings.lock().add_arguments(unknown));
    let tells_versions = prefix == Prefix::V3 && notes.version.is_none();
    let versions = tells_versions.then(|| versions(&key.app().catalog.snapshot(), &execution));
    let size = execution.data.len();
    let reply = turns
        .scan(project, size, move || {
            SerializedJson::new(&ExecutionView::from(execution), size)
        })
        .await?;
    Ok(match versions.flatten() {
        Some((executed, latest)) => reply
            .with_header(EXECUTED_VERSION, &executed)
            .with_header(LATEST_VERSION, &latest),
        None => reply,
    })
}

/// Returns the version of the tool that was executed, and the latest one of its toolkit.
fn versions(catalog: &Snapshot, execution: &Execution) -> Option<(String, String)> {
    let executed = execution.release.as_ref()?;
    let latest = catalog.toolkit(&executed.slug)?.current();
    Some((
        executed.version.as_str().to_owned(),
        latest.version.as_str().to_owned(),
    ))
}

/// Adds to the problems of missing arguments that the body has them in the wrong place.
fn with_wrapper_named(cause: Error) -> Error {
    if !cause.is(&errors::ARGUMENTS_INVALID) {
        return cause;
    }
    let problems = cause.problems().iter();
    let problems: Vec<_> = problems
        .map(|line| format!("{line}; send the arguments inside `arguments`, which the body lacks"))
        .collect();
    cause.with_problems(problems)
}

/// Facts about the body of an execution, in addition to the call itself.
struct BodyNotes {
    /// The version selector that the body names.
    version: Option<String>,
    /// True if the body has unknown members instead of arguments.
    misplaces_arguments: bool,
    warnings: Warnings,
}

fn request(
    bytes: &Bytes,
    headers: Vec<(String, String)>,
    request_id: RequestId,
) -> ApiResult<(ToolCall, BodyNotes)> {
    let (body, warnings) = borrowed_object::<ExecuteRequest<'_>>(bytes)?;
    let misplaces_arguments =
        body.arguments.is_none() && body.text.is_none() && !warnings.is_empty();
    let input = input(bytes, body.text, body.arguments, headers)?;
    let user_id = body.user_id.or(body.entity_id);
    refuse_nul("user_id", user_id.as_deref())?;
    let account = named_account(body.connected_account_id)?;
    let notes = BodyNotes {
        version: not_blank(body.version),
        misplaces_arguments,
        warnings,
    };
    let call = ToolCall {
        user_id,
        account,
        custom: custom_credential(body.custom_auth_params, body.custom_connection_data)?,
        session: None,
        input,
        request_id,
    };
    Ok((call, notes))
}

/// Returns the arguments as a part of the received bytes, or the prompt.
fn input(
    bytes: &Bytes,
    text: Option<String>,
    arguments: Option<&RawValue>,
    headers: Vec<(String, String)>,
) -> ApiResult<Input> {
    let arguments = arguments
        .map(RawValue::get)
        .filter(|arguments| *arguments != "null");
    match (text, arguments) {
        (Some(_), Some(_)) => {
            Err(errors::invalid("text: cannot be combined with `arguments`").into())
        }
        (Some(text), None) => Ok(Input::Prompt(Box::new(Prompt {
            text,
            headers,
            ..Prompt::default()
        }))),
        (None, Some(arguments)) => Ok(Input::Arguments(bytes.slice_ref(arguments.as_bytes()))),
        (None, None) => Ok(Input::Arguments(Bytes::from_static(b"{}"))),
    }
}

#[cfg(test)]
mod tests {
    use http::error::ApiError;

    use super::*;

    fn read(body: &str) -> app::Result<ToolCall> {
        let bytes = Bytes::from(body.to_owned());
        let read = request(&bytes, Vec::new(), RequestId::default());
        read.map(|(call, _)| call).map_err(|failure| match failure {
            ApiError::App(error) => error,
            ApiError::Http(error) => panic!("{error:?}"),
        })
    }

    #[test]
    fn arguments_pass_as_they_came() {
        for (body, expected) in [
            (
                r#"{"user_id":"u","arguments": {"b":1, "a":[ 2 ]} }"#,
                r#"{"b":1, "a":[ 2 ]}"#,
            ),
            ("", "{}"),
            (r#"{"arguments":null}"#, "{}"),
        ] {
            let Input::Arguments(arguments) = read(body).unwrap().input else {
                panic!("{body}")
            };
            assert_eq!(arguments, expected);
        }
    }

    #[test]
    fn entity_id_is_used_without_user_id() {
        for (body, user) in [
            (r#"{"entity_id":"e"}"#, "e"),
            (r#"{"entity_id":"e","user_id":"u"}"#, "u"),
        ] {
            let read = read(body).unwrap();
            assert_eq!(read.user_id.as_deref(), Some(user), "{body}");
        }
    }

    #[test]
    fn credentials_of_a_call_are_read_strictly() {
        for (credential, problem) in [
            (
                r#""custom_auth_params":{"Parameters":[]}"#,
                "custom_auth_params.Parameters: is unknown; the nearest known name is `parameters`",
            ),
            (
                r#""custom_auth_params":{"parameters":[{"name":"k","in":"query","value":"v","type":"x"}]}"#,
                "custom_auth_params.parameters[0].type: is unknown",
            ),
            (
                r#""custom_auth_params":{"parameters":[{"name":"k","in":"query","value":1e22}]}"#,
                "custom_auth_params.parameters[0].value: must be a string, or a number of at most 15 digits",
            ),
            (
                r#""custom_auth_params":{"parameters":[]}"#,
                "custom_auth_params: must have",
            ),
            (
                r#""custom_connection_data":{"authScheme":"API_KEY","toolkitSlug":"t","vals":{}}"#,
                "custom_connection_data.vals: is unknown; the nearest known name is `val`",
            ),
        ] {
            let refused = read(&format!("{{{credential}}}")).unwrap_err().to_string();
            assert!(refused.contains(problem), "{credential}: {refused}");
        }
    }

    #[test]
    fn parameters_of_a_credential_are_limited() {
        for (count, is_accepted) in [(20, true), (21, false)] {
            let parameters = [r#"{"name":"k","in":"query","value":"v"}"#].repeat(count);
            let parameters = parameters.join(",");
            let body = format!(r#"{{"custom_auth_params":{{"parameters":[{parameters}]}}}}"#);
            assert_eq!(read(&body).is_ok(), is_accepted, "{count}");
        }
    }

    #[test]
    fn null_arguments_leave_the_text() {
        let read = read(r#"{"text":"do it","arguments":null}"#).unwrap();
        assert!(matches!(read.input, Input::Prompt(_)));
    }
}
