//! Credentials that a caller sends with a request instead of naming a connected account.

use app::accounts::{CustomCredential, CustomParameter};
use http::{ApiError, ApiResult, errors};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Map, Number, Value};
use utoipa::ToSchema;

/// Maximum number of parameters, and of body members, of a credential.
pub const MAX_CREDENTIAL_PARTS: usize = 20;
/// Problem of a credential that authenticates nothing.
const NOTHING_GIVEN: &str = "custom_auth_params: must have `parameters`, `body` or `base_url`; leave it out to use a connected account";

/// Parameters that authenticate the requests of one execution.
// An unknown field is refused, because without a misspelled one another credential would be sent.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AuthParameters)]
pub(super) struct AuthParameters {
    base_url: Option<String>,
    parameters: Option<Vec<AuthParameter>>,
    body: Option<Map<String, Value>>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AuthParameter {
    name: String,
    r#in: ParameterPlace,
    #[serde(deserialize_with = "exact_text")]
    #[schema(value_type = Value)]
    value: String,
}

/// Reads a string, or a number that has the digits that were written. Others would be sent as another value.
fn exact_text<'de, D: Deserializer<'de>>(value: D) -> Result<String, D::Error> {
    match Value::deserialize(value)? {
        Value::String(text) => Ok(text),
        Value::Number(number) if has_all_digits(&number) => Ok(number.to_string()),
        _ => Err(D::Error::custom(
            "must be a string, or a number of at most 15 digits",
        )),
    }
}

/// Returns true if a number surely has the digits that were written. A floating-point number keeps
/// [`f64::DIGITS`] of them, an integer of 64 bits all.
fn has_all_digits(number: &Number) -> bool {
    let text = number.to_string();
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    !number.is_f64() || (digits <= f64::DIGITS as usize && !text.contains('e'))
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
#[serde(deny_unknown_fields)]
pub(crate) struct ConnectionData {
    #[serde(rename = "authScheme")]
    auth_scheme: String,
    #[serde(rename = "toolkitSlug")]
    toolkit_slug: String,
    #[schema(value_type = Option<Object>)]
    val: Option<Map<String, Value>>,
}

impl TryFrom<AuthParameters> for CustomCredential {
    type Error = ApiError;

    fn try_from(given: AuthParameters) -> ApiResult<Self> {
        let parameters = given.parameters.unwrap_or_default();
        let body = given.body.unwrap_or_default();
        let base_url = given.base_url.filter(|url| !url.is_empty());
        if parameters.is_empty() && body.is_empty() && base_url.is_none() {
            return Err(errors::invalid(NOTHING_GIVEN).into());
        }
        if parameters.len().max(body.len()) > MAX_CREDENTIAL_PARTS {
            return Err(errors::invalid(format!(
                "custom_auth_params: at most {MAX_CREDENTIAL_PARTS} of each kind"
            ))
            .into());
        }
        for (index, parameter) in parameters.iter().enumerate() {
            let path = format!("custom_auth_params.parameters[{index}].value");
            refuse_nul(&path, Some(&parameter.value))?;
        }
        let parameters = parameters.into_iter().map(CustomParameter::from).collect();
        Ok(Self::from_parts(parameters, body, base_url)?)
    }
}

impl From<AuthParameter> for CustomParameter {
    fn from(parameter: AuthParameter) -> Self {
        match parameter.r#in {
            ParameterPlace::Header => Self::Header(parameter.name, parameter.value),
            ParameterPlace::Query => Self::Query(parameter.name, parameter.value),
        }
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
        (None, Some(parameters)) => Ok(Some(Box::new(CustomCredential::try_from(parameters)?))),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_credential_are_limited() {
        for (parts, is_accepted) in [
            (MAX_CREDENTIAL_PARTS, true),
            (MAX_CREDENTIAL_PARTS + 1, false),
        ] {
            let body = (0..parts).map(|number| (number.to_string(), Value::Null));
            let given = AuthParameters {
                base_url: None,
                parameters: None,
                body: Some(body.collect()),
            };
            assert_eq!(CustomCredential::try_from(given).is_ok(), is_accepted);
        }
    }
}
