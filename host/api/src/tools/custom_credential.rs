//! Credentials that a caller sends with a request instead of naming a connected account.

use app::accounts::{CustomCredential, CustomParameter};
use http::{ApiError, ApiResult, errors};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Maximum number of parameters, and of body members, of a credential.
const MAX_CREDENTIAL_PARTS: usize = 20;

/// Parameters that authenticate the requests of one execution.
#[derive(Deserialize, ToSchema)]
#[schema(as = AuthParameters)]
pub(super) struct AuthParameters {
    base_url: Option<String>,
    parameters: Option<Vec<AuthParameter>>,
    body: Option<Map<String, Value>>,
}

#[derive(Deserialize, ToSchema)]
struct AuthParameter {
    name: String,
    r#in: ParameterPlace,
    value: Value,
}

/// Position of a parameter in a request to the provider.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = AuthPlace)]
pub(super) enum ParameterPlace {
    Query,
    Header,
}

/// Values of a connection that is not stored.
#[derive(Deserialize, ToSchema)]
pub(crate) struct ConnectionData {
    #[serde(rename = "authScheme")]
    auth_scheme: String,
    #[serde(rename = "toolkitSlug")]
    toolkit_slug: String,
    #[schema(value_type = Option<Object>)]
    val: Option<Map<String, Value>>,
}

impl AuthParameters {
    /// Returns the credential, or `None` if nothing is given.
    fn credential(self) -> ApiResult<Option<Box<CustomCredential>>> {
        let parameters = self.parameters.unwrap_or_default();
        let body = self.body.unwrap_or_default();
        if parameters.len().max(body.len()) > MAX_CREDENTIAL_PARTS {
            return Err(errors::invalid(format!(
                "custom_auth_params: at most {MAX_CREDENTIAL_PARTS} of each kind"
            ))
            .into());
        }
        let parameters = parameters
            .into_iter()
            .map(CustomParameter::try_from)
            .collect::<ApiResult<Vec<_>>>()?;
        if parameters.is_empty() && body.is_empty() && self.base_url.is_none() {
            return Ok(None);
        }
        let credential = CustomCredential::from_parts(parameters, body, self.base_url)?;
        Ok(Some(Box::new(credential)))
    }
}

impl TryFrom<AuthParameter> for CustomParameter {
    type Error = ApiError;

    fn try_from(parameter: AuthParameter) -> ApiResult<Self> {
        let value = match parameter.value {
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            _ => {
                return Err(errors::invalid(
                    "custom_auth_params.parameters: `value` must be a string or a number",
                )
                .into());
            }
        };
        refuse_nul("custom_auth_params.parameters", Some(&value))?;
        Ok(match parameter.r#in {
            ParameterPlace::Header => Self::Header(parameter.name, value),
            ParameterPlace::Query => Self::Query(parameter.name, value),
        })
    }
}

/// Returns the credential that a request contains. Connection data takes precedence.
pub(super) fn custom_credential(
    parameters: Option<AuthParameters>,
    data: Option<ConnectionData>,
) -> ApiResult<Option<Box<CustomCredential>>> {
    match (data, parameters) {
        (Some(data), _) => Ok(Some(Box::new(CustomCredential::Connection {
            scheme: data.auth_scheme,
            toolkit: data.toolkit_slug,
            values: data.val.unwrap_or_default(),
        }))),
        (None, Some(parameters)) => parameters.credential(),
        (None, None) => Ok(None),
    }
}

/// Refuses a string with NUL, which not every store can hold.
pub(super) fn refuse_nul(name: &str, text: Option<&str>) -> ApiResult<()> {
    match text {
        Some(text) if text.contains('\0') => {
            Err(errors::invalid(format!("{name}: contains a NUL character")).into())
        }
        _ => Ok(()),
    }
}
