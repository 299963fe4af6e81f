//! Code shared by all requests: base URL, errors, pages.

use serde::de::DeserializeOwned;
use toolkit_sdk::prelude::*;

pub(crate) const API: Client = Client::new("https://api.resend.com").errors(refusal);

#[derive(Deserialize)]
struct Refusal {
    name: String,
    message: String,
}

/// Maps three errors whose status is misleading. The default rules handle the others by their
/// status.
fn refusal(response: &Response) -> Option<ToolError> {
    if response.is_success() {
        return None;
    }
    let Refusal { name, message } = response.json().ok()?;
    let error = match name.as_str() {
        "invalid_api_key" | "missing_api_key" => {
            ToolError::unauthorized(format!("Resend does not accept the key: {message}"))
        }
        "restricted_api_key" => ToolError::forbidden(format!(
            "the key may only send mail: {message}; connect a key with full access"
        )),
        _ => return None,
    };
    Some(error.upstream_status(response.status()))
}

/// Id of an object that was created or changed.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Id {
    pub(crate) id: String,
}

/// Page of a list to return.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Part {
    /// Max number of items to return.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
    /// Id of the last item of the previous page; the next page starts after it.
    after: Option<String>,
}

/// One page of a list.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Page<T> {
    data: Vec<T>,
    /// True if more items follow; pass the last id as `after`.
    #[serde(default)]
    has_more: bool,
}

pub(crate) fn read<T: DeserializeOwned>(request: Request, part: &Part) -> Result<Page<T>> {
    request
        .query("limit", part.limit.clamp(1, 100))
        .query_opt("after", part.after.as_ref())
        .send()?
        .json()
}

fn twenty() -> u32 {
    20
}
