//! Arguments that a language model generates from a prompt.

use std::{collections::BTreeMap, sync::Arc};

use app::runs::{self, prompt::Prompt};
use axum::{
    extract::FromRequestParts,
    http::{HeaderName, request::Parts},
};
use http::{
    ApiError, ApiResult, IN_TABLE, Json, Path, Prefix, ProjectKey, Server, errors, reply::RawJson,
    signature::Input,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::not_blank;

/// Header that contains headers for the language model.
const GATEWAY_HEADERS: HeaderName = HeaderName::from_static("x-llm-gateway-headers");

/// A prompt for the arguments of a tool.
#[derive(Deserialize, ToSchema)]
#[schema(as = MakeArguments)]
pub(crate) struct PromptRequest {
    text: String,
    custom_description: Option<String>,
    system_prompt: Option<String>,
    version: Option<String>,
}

/// Arguments for a tool.
#[derive(Serialize, ToSchema)]
#[schema(as = Arguments)]
pub(crate) struct ArgumentsView {
    #[schema(value_type = Map<String, Value>)]
    arguments: RawJson,
}

/// Generates arguments for a tool from a prompt, and runs nothing.
#[utoipa::path(
    post, path = IN_TABLE, operation_id = "input",
    params(("x-llm-gateway-headers" = Option<String>, Header, description = "A JSON object of texts: headers for the language model")),
    responses(
        (status = 410, description = "The tool is deprecated in every version"),
        (status = 422, description = "The language model generated no valid arguments"),
        (status = 501, description = "The server has no language model"),
        (status = 502, description = "The language model failed"),
    ),
)]
pub(crate) async fn generate(
    key: ProjectKey,
    prefix: Prefix,
    Path(slug): Path<String>,
    GatewayHeaders(headers): GatewayHeaders,
    Json(body): Json<PromptRequest>,
) -> ApiResult<Json<ArgumentsView>> {
    let version = not_blank(body.version).unwrap_or_else(|| prefix.tool_version().to_owned());
    let prompt = Prompt {
        text: body.text,
        description: not_blank(body.custom_description),
        system_prompt: not_blank(body.system_prompt),
        headers,
    };
    let arguments =
        runs::arguments_for_prompt(key.app(), &key.project, &slug, &version, &prompt).await?;
    Ok(Json(ArgumentsView {
        arguments: RawJson(arguments),
    }))
}

/// Headers for the language model.
pub(crate) struct GatewayHeaders(pub(super) Vec<(String, String)>);

impl Input for GatewayHeaders {}

impl FromRequestParts<Arc<Server>> for GatewayHeaders {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Server>) -> ApiResult<Self> {
        let Some(given) = parts.headers.get(GATEWAY_HEADERS) else {
            return Ok(Self(Vec::new()));
        };
        let object = serde_json::from_slice::<BTreeMap<String, Value>>(given.as_bytes())
            .map_err(|_| errors::invalid(format!("{GATEWAY_HEADERS}: must be a JSON object")))?;
        let headers = object.into_iter().map(|(name, value)| match value {
            Value::String(text) => (name, text),
            other => (name, other.to_string()),
        });
        Ok(Self(headers.collect()))
    }
}
