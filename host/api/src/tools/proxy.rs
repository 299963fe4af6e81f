//! Proxy requests: requests to a provider with the credential of a connected account.

use std::collections::BTreeMap;

use app::{
    core::{clock::iso, ids::LogId},
    files::Link,
    runs::{self, Proxy, ProxyBody, ProxyResponse, ResponseBody},
};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use http::{
    ApiError, ApiResult, IN_TABLE, Json, JsonWithText, ProjectKey, RawJson, context::request_id,
    errors,
};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    custom_credential::{ConnectionData, ParameterPlace, custom_credential, refuse_nul},
    named_account,
};

/// Methods that a proxy request may have.
const PROXY_METHODS: [&str; 6] = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD"];
/// Maximum number of parameters of a proxy request.
const MAX_PARAMETERS: usize = 100;

/// A proxy request: a request to a provider with the credential of an account.
#[derive(Deserialize, ToSchema)]
#[schema(as = Proxy)]
pub(crate) struct ProxyRequest {
    /// A path below the account's base URL, or an absolute https URL of the same domain or of a host
    /// in the toolkit's `egress`.
    pub endpoint: String,
    /// GET, POST, PUT, DELETE, PATCH or HEAD.
    pub method: String,
    pub connected_account_id: Option<String>,
    /// The user on whose behalf the request is sent; the account's own user without it.
    pub user_id: Option<String>,
    #[expect(dead_code, reason = "the text of the body is sent, see `into_proxy`")]
    pub body: Option<Value>,
    pub binary_body: Option<BinaryBody>,
    pub parameters: Option<Vec<ProxyParameter>>,
    pub custom_connection_data: Option<ConnectionData>,
}

/// Bytes to send: loaded from a URL, or given here as base64, at most 4 MiB.
#[derive(Deserialize, ToSchema)]
pub(crate) struct BinaryBody {
    url: Option<String>,
    base64: Option<String>,
    #[serde(alias = "contentType")]
    content_type: Option<String>,
}

#[derive(Deserialize, ToSchema)]
pub(crate) struct ProxyParameter {
    name: String,
    value: String,
    r#type: ParameterPlace,
}

view! {
    /// A provider's response to a proxy request.
    #[schema(as = Proxied)]
    pub(crate) struct ProxyView from response: ProxyResponse where {
        let (data, file) = match response.body {
            ResponseBody::Json(data) => (data, None),
            ResponseBody::File(link) => (RawJson::EMPTY_OBJECT, Some(link)),
        };
    } {
        /// HTTP status of the provider's response.
        status: u16 = response.status,
        /// Headers with names in lower case, without cookies.
        headers: BTreeMap<String, String> = response.headers,
        /// Parsed JSON, else text; null if there was no body, and empty if the body is a file.
        #[schema(value_type = Value)] data: RawJson = data,
        binary_data?: Option<FileView> = file.map(FileView::from),
        #[schema(value_type = String)] log_id: LogId = response.log_id,
    }
}

view! {
    /// A non-text body, stored as a file.
    #[schema(as = ProxiedFile)]
    struct FileView from link: Link {
        /// Link to download the file.
        url: String = link.url,
        content_type: String = link.media_type,
        #[schema(required, value_type = u64)] size: Option<u64> = link.size,
        /// Time when the link expires.
        expires_at: String = iso(link.expires_at),
    }
}

/// Sends a request with the credential of an account.
///
/// Every response of the provider counts as a success, whatever its status.
#[utoipa::path(post, path = IN_TABLE, operation_id = "proxy", responses(
    (status = 403, description = "The auth config restricts its tools, the account is not shared with the user, or the target is not allowed"),
    (status = 404, description = "The project has no such account, or the toolkit does not exist"),
    (status = 422, description = "The account cannot be used in its current status"),
    (status = 502, description = "The provider sent no response"),
    (status = 504, description = "The provider sent no response in time"),
))]
pub(crate) async fn send(
    key: ProjectKey,
    JsonWithText { body, text }: JsonWithText<ProxyRequest>,
) -> ApiResult<Json<ProxyView>> {
    let request = body.into_proxy(&key, text).await?;
    let response = runs::proxy(key.app(), &key.project, request).await?;
    Ok(Json(response.into()))
}

impl ProxyRequest {
    /// Returns the request to send, with the body as it is written in `text`, the JSON of this request.
    pub(crate) async fn into_proxy(self, key: &ProjectKey, text: Bytes) -> ApiResult<Proxy> {
        let method = self.method.to_ascii_uppercase();
        if !PROXY_METHODS.contains(&method.as_str()) {
            let methods = PROXY_METHODS.join(", ");
            return Err(errors::invalid(format!("method: must be one of {methods}")).into());
        }
        let parameters = self.parameters.unwrap_or_default();
        if parameters.len() > MAX_PARAMETERS {
            return Err(errors::invalid(format!("parameters: at most {MAX_PARAMETERS}")).into());
        }
        let mut headers = Vec::new();
        let mut query = Vec::new();
        for parameter in parameters {
            match parameter.r#type {
                ParameterPlace::Header => headers.push((parameter.name, parameter.value)),
                ParameterPlace::Query => query.push((parameter.name, parameter.value)),
            }
        }
        refuse_nul("user_id", self.user_id.as_deref())?;
        let body = ProxyBody::find_in(key.app(), &key.project.tenant, text).await?;
        let body = body.map_err(|cause| errors::invalid(format!("body: {cause}")))?;
        Ok(Proxy {
            user_id: self.user_id,
            account: named_account(self.connected_account_id)?,
            custom: custom_credential(None, self.custom_connection_data)?,
            endpoint: self.endpoint.trim().to_owned(),
            method,
            headers,
            query,
            body: content(body, self.binary_body)?,
            session: None,
            request_id: request_id(),
        })
    }
}

/// Returns the body to send.
fn content(body: Option<ProxyBody>, binary: Option<BinaryBody>) -> ApiResult<Option<ProxyBody>> {
    match (body, binary) {
        (body, None) => Ok(body),
        (None, Some(binary)) => binary.try_into().map(Some),
        (Some(_), Some(_)) => {
            Err(errors::invalid("binary_body: cannot be combined with `body`").into())
        }
    }
}

impl TryFrom<BinaryBody> for ProxyBody {
    type Error = ApiError;

    fn try_from(body: BinaryBody) -> ApiResult<Self> {
        match (body.url, body.base64) {
            (Some(url), None) => Ok(Self::Url(url, body.content_type)),
            (None, Some(text)) => {
                let bytes = BASE64
                    .decode(text)
                    .map_err(|_| errors::invalid("binary_body.base64: is not base64"))?;
                let media_type = body.content_type;
                let media_type =
                    media_type.unwrap_or_else(|| "application/octet-stream".to_owned());
                Ok(Self::Bytes(bytes.into(), Some(media_type)))
            }
            (Some(_), Some(_)) | (None, None) => {
                Err(errors::invalid("binary_body: must have either `url` or `base64`").into())
            }
        }
    }
}
