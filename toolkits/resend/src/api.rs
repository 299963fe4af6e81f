//! What all requests share: the address, the way errors are told, pages.

use serde::de::DeserializeOwned;
use toolkit_sdk::prelude::*;

pub(crate) const API: Client = Client::new("https://api.resend.com").errors(refusal);

#[derive(Deserialize)]
struct Refusal {
    name: String,
    message: String,
}

/// Three refusals whose status says something else than what is wrong; the others follow their status.
fn refusal(response: &Response) -> Option<ToolError> {
    if response.is_success() {
        return None;
    }
    let Refusal { name, message } = response.json().ok()?;
    let error = match name.as_str() {
        "invalid_api_key" | "missing_api_key" => {
            ToolError::unauthorized(format!("Resend does not accept the key: {message}"))
        }
        "restricted_api_key" => {
            ToolError::forbidden(format!("the key may only send mail: {message}; connect a key with full access"))
        }
        _ => return None,
    };
    Some(error.upstream_status(response.status()))
}

/// The number of something that was made or changed.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Id {
    pub(crate) id: String,
}

/// Which part of a list to read.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Part {
    /// How many to answer.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
    /// Read on after the one with this id, the last of the page before.
    after: Option<String>,
}

/// A part of a list.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Page<T> {
    data: Vec<T>,
    /// Whether there are more; pass the last id as `after`.
    #[serde(default)]
    has_more: bool,
}

pub(crate) fn read<T: DeserializeOwned>(request: Request, part: &Part) -> Result<Page<T>> {
    request.query("limit", part.limit.clamp(1, 100)).query_opt("after", part.after.as_ref()).send()?.json()
}

fn twenty() -> u32 {
    20
}
