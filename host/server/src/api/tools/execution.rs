//! Executions of tools.

use std::sync::Arc;

use app::{
    core::ids::{AccountId, LogId},
    runs::{self, Execute, Execution, Input, prompt::Prompt},
};
use axum::{extract::State, http::HeaderMap};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};
use utoipa::ToSchema;

use super::{
    arguments::gateway_headers,
    custom_credential::{AuthParameters, ConnectionData, custom_credential, refuse_nul},
    not_blank,
};
use crate::{
    Server,
    http::{
        auth::ProjectKey,
        body::UnparsedJson,
        context::request_id,
        error::ApiResult,
        errors,
        path::{Path, Prefix},
        reply::{RawJson, SerializedJson},
        signature::IN_TABLE,
    },
};

/// The body of an execution.
// It borrows from the received bytes, so that arguments are not copied.
#[derive(Deserialize, ToSchema)]
#[schema(as = Execute)]
pub(crate) struct ExecuteRequest<'a> {
    #[serde(default)]
    connected_account_id: Option<String>,
    #[serde(default)]
    user_id: Option<String>,
    #[serde(default)]
    entity_id: Option<String>,
    #[serde(default)]
    version: Option<String>,
    #[serde(borrow, default)]
    #[schema(value_type = Option<Object>)]
    arguments: Option<&'a RawValue>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    custom_auth_params: Option<AuthParameters>,
    #[serde(default)]
    custom_connection_data: Option<ConnectionData>,
}

/// The result of an execution.
#[derive(Serialize, ToSchema)]
#[schema(as = Execution)]
pub(crate) struct ExecutionView {
    /// The response of the tool. Beyond 4 MiB it is `result_file` alone, with a link to it in
    /// `s3url`, `name`, `mimetype`, `size` and `expires_at`. If the execution failed, details of
    /// the failure.
    #[schema(value_type = Map<String, Value>)]
    data: RawJson,
    /// Null if the execution succeeded.
    #[schema(required)]
    error: Option<String>,
    successful: bool,
    /// Always null.
    #[schema(required)]
    session_info: Option<Map<String, Value>>,
    #[schema(value_type = String)]
    log_id: LogId,
}

impl From<Execution> for ExecutionView {
    fn from(execution: Execution) -> Self {
        Self {
            data: RawJson(execution.data),
            successful: execution.error.is_none(),
            error: execution.error,
            session_info: None,
            log_id: execution.log_id,
        }
    }
}

/// Executes a tool.
#[utoipa::path(
    post,
    path = IN_TABLE,
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
    State(server): State<Arc<Server>>,
    prefix: Prefix,
    Path(slug): Path<String>,
    headers: HeaderMap,
    UnparsedJson { bytes, .. }: UnparsedJson<ExecuteRequest<'static>>,
) -> ApiResult<SerializedJson<ExecutionView>> {
    let headers = gateway_headers(&headers)?;
    let size = bytes.len();
    // A large body is parsed on another thread, which does not know the request.
    let request_id = request_id();
    let turns = &server.app.large_work;
    let project = &key.project.tenant;
    let parsed = turns.run(project, size, move || {
        request(slug, prefix, &bytes, headers, request_id)
    });
    let execution = runs::execute(&server.app, &key.project, parsed.await??).await?;
    let size = execution.data.len();
    let serialize = move || SerializedJson::new(&execution.into());
    Ok(turns.run(project, size, serialize).await?)
}

fn request(
    tool: String,
    prefix: Prefix,
    bytes: &Bytes,
    headers: Vec<(String, String)>,
    request_id: String,
) -> ApiResult<Execute> {
    let text: &[u8] = if bytes.is_empty() { b"{}" } else { bytes };
    // serde would deserialize a struct from an array of its members in order.
    if text.trim_ascii_start().first() != Some(&b'{') {
        return Err(errors::invalid("body: must be a JSON object").into());
    }
    let body: ExecuteRequest<'_> =
        serde_json::from_slice(text).map_err(|cause| errors::invalid(format!("body: {cause}")))?;
    let input = input(bytes, body.text, body.arguments, headers)?;
    let user_id = not_blank(body.user_id).or(not_blank(body.entity_id));
    refuse_nul("user_id", user_id.as_deref())?;
    let account = not_blank(body.connected_account_id);
    Ok(Execute {
        tool,
        version: not_blank(body.version).unwrap_or_else(|| prefix.tool_version().to_owned()),
        user_id,
        account: account.map(|id| AccountId::parse(id.trim())).transpose()?,
        custom: custom_credential(body.custom_auth_params, body.custom_connection_data)?,
        session: None,
        input,
        request_id,
    })
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
        (Some(text), None) => Ok(Input::Prompt(Prompt {
            text,
            headers,
            ..Prompt::default()
        })),
        (None, Some(arguments)) => Ok(Input::Arguments(bytes.slice_ref(arguments.as_bytes()))),
        (None, None) => Ok(Input::Arguments(Bytes::from_static(b"{}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::error::ApiError;

    fn read(body: &str) -> app::Result<Execute> {
        request(
            "T".into(),
            Prefix::V3_1,
            &Bytes::from(body.to_owned()),
            Vec::new(),
            String::new(),
        )
        .map_err(|failure| match failure {
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
        assert_eq!(
            read(r#"{"entity_id":"e"}"#).unwrap().user_id.as_deref(),
            Some("e")
        );
        assert_eq!(
            read(r#"{"entity_id":"e","user_id":"u"}"#)
                .unwrap()
                .user_id
                .as_deref(),
            Some("u")
        );
    }

    #[test]
    fn text_excludes_arguments() {
        assert!(matches!(
            read(r#"{"text":"do it","arguments":null}"#).unwrap().input,
            Input::Prompt(_)
        ));
        assert!(
            read(r#"{"text":"do it","arguments":{}}"#)
                .is_err_and(|error| error.is(&errors::INVALID))
        );
    }

    #[test]
    fn prefix_sets_default_tool_version() {
        let of = |prefix| {
            let body = Bytes::from_static(b"{}");
            request("T".into(), prefix, &body, Vec::new(), String::new()).unwrap()
        };
        assert_eq!(of(Prefix::V3).version, app::catalog::BASE);
        assert_eq!(of(Prefix::V3_1).version, app::catalog::LATEST);
        assert_eq!(
            read(r#"{"version":"20261121_00"}"#).unwrap().version,
            "20261121_00"
        );
    }
}
