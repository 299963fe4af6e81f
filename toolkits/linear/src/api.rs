//! Code shared by all queries: base URL, lists, and Linear's errors, which come with any status.

use std::time::Duration;

use serde::Deserializer;
use serde::de::DeserializeOwned;
use toolkit_sdk::mismatch;
use toolkit_sdk::prelude::*;

pub(crate) const API: Client = Client::new("https://api.linear.app").errors(refusal);

/// Sends a query and returns the part of the data at a JSON pointer.
pub(crate) fn ask<T: DeserializeOwned>(query: &str, variables: &Value, place: &str) -> Result<T> {
    let mut data: Value = API.graphql("/graphql", query, variables)?;
    let part = data.pointer_mut(place).map(Value::take).unwrap_or_default();
    T::deserialize(part).map_err(|error| {
        let reason = mismatch::reason(&error);
        ToolError::upstream(format!("Linear's response has unexpected data: {reason}"))
    })
}

/// Page of a list to return.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Part {
    /// Max number of items to return.
    #[serde(default = "thirty")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
    /// Cursor of the next page: `next_cursor` of the previous response.
    cursor: Option<String>,
}

fn thirty() -> u32 {
    30
}

/// One page of a list.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Page<T> {
    items: Vec<T>,
    /// `cursor` of the next request; missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// One page of a list in Linear's format.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Connection<T> {
    nodes: Vec<T>,
    page_info: PageInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageInfo {
    has_next_page: bool,
    end_cursor: Option<String>,
}

/// Fetches one page of a list: the query's field `field` with a filter of type `kind`, and these
/// fields of each item.
pub(crate) fn list<T: DeserializeOwned>(
    field: &str,
    kind: &str,
    fields: &str,
    filter: Value,
    part: &Part,
) -> Result<Page<T>> {
    let query = format!(
        "query($filter: {kind}, $first: Int, $after: String) {{ {field}(filter: $filter, first: $first, after: $after) \
         {{ nodes {{ {fields} }} pageInfo {{ hasNextPage endCursor }} }} }}"
    );
    let variables =
        json!({ "filter": filter, "first": part.limit.clamp(1, 100), "after": part.cursor });
    page(&query, &variables, &format!("/{field}"))
}

/// Fetches one page of a list with a custom query.
pub(crate) fn page<T: DeserializeOwned>(
    query: &str,
    variables: &Value,
    place: &str,
) -> Result<Page<T>> {
    let Connection {
        nodes: items,
        page_info: PageInfo {
            has_next_page,
            end_cursor,
        },
    } = ask(query, variables, place)?;
    Ok(Page {
        items,
        next_cursor: end_cursor.filter(|_| has_next_page),
    })
}

impl Part {
    /// Adds the page arguments to the variables of a query.
    pub(crate) fn fill(&self, variables: &mut Value) {
        variables["first"] = self.limit.clamp(1, 100).into();
        variables["after"] = json!(self.cursor);
    }
}

/// Confirmation of a request that returns no data.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Done {
    done: bool,
}

/// Runs a mutation whose response has only a success flag.
pub(crate) fn done(query: &str, variables: &Value, place: &str) -> Result<Done> {
    Ok(Done {
        done: ask(query, variables, &format!("{place}/success"))?,
    })
}

/// An object with a name, or with another field under the alias `name`.
#[derive(Deserialize)]
struct Named {
    name: String,
}

/// Deserializes an object to its name, or null to `None`.
pub(crate) fn name<'de, D: Deserializer<'de>>(json: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<Named>::deserialize(json)?.map(|named| named.name))
}

/// A list inside an object.
#[derive(Deserialize)]
struct Nodes<T> {
    nodes: Vec<T>,
}

/// Deserializes an object with a list to the list.
pub(crate) fn nodes<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    json: D,
) -> Result<Vec<T>, D::Error> {
    Ok(Nodes::deserialize(json)?.nodes)
}

/// Deserializes an object with a list to the names of its items.
pub(crate) fn names<'de, D: Deserializer<'de>>(json: D) -> Result<Vec<String>, D::Error> {
    Ok(Nodes::<Named>::deserialize(json)?
        .nodes
        .into_iter()
        .map(|named| named.name)
        .collect())
}

#[derive(Default, Deserialize)]
struct ResponseBody {
    #[serde(default)]
    data: Value,
    #[serde(default)]
    errors: Vec<Problem>,
}

#[derive(Deserialize)]
struct Problem {
    #[serde(default)]
    message: String,
    #[serde(default)]
    extensions: Extensions,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Extensions {
    code: String,
    /// Message with more detail than the plain message.
    user_presentable_message: Option<String>,
}

/// Maps Linear's errors. A response with `errors` is an error if it has no data or no success
/// status: Linear sends 200, or 400 for all kinds of errors.
fn refusal(response: &Response) -> Option<ToolError> {
    let ResponseBody { data, errors } = response.json().ok()?;
    let first = errors
        .first()
        .filter(|_| data.is_null() || !response.is_success())?;
    let Extensions {
        code,
        user_presentable_message,
    } = &first.extensions;
    let mut message = format!("Linear refused it: {}", first.message);
    if let Some(more) = user_presentable_message
        .as_ref()
        .filter(|more| **more != first.message)
    {
        message.push_str(&format!("; {more}"));
    }
    let missing = ["not found", "Could not find"]
        .iter()
        .any(|words| message.contains(words));
    let kind = match code.as_str() {
        _ if missing => "not_found",
        "AUTHENTICATION_ERROR" => "unauthorized",
        "FORBIDDEN" | "FEATURE_NOT_ACCESSIBLE" => "forbidden",
        "RATELIMITED" => "rate_limited",
        "INPUT_ERROR" | "INVALID_INPUT" | "USER_ERROR" | "GRAPHQL_VALIDATION_FAILED" => {
            "invalid_input"
        }
        "INTERNAL_SERVER_ERROR" | "LOCK_TIMEOUT" => "upstream_unavailable",
        // The default rules map the status, but 200 carries no information.
        _ if response.is_success() => "upstream_error",
        _ => return None,
    };
    let error = ToolError::new(kind, message).upstream_status(response.status());
    Some(match (kind, wait(response)) {
        ("rate_limited", Some(wait)) => error.retry_after(wait),
        _ => error,
    })
}

/// Returns the time until the exhausted limit is reset. Linear sends the reset time in milliseconds
/// since 1970.
fn wait(response: &Response) -> Option<Duration> {
    let name = ["requests", "complexity"]
        .into_iter()
        .find(|name| {
            response
                .header(&format!("x-ratelimit-{name}-remaining"))
                .is_some_and(|left| left.trim() == "0")
        })
        .unwrap_or("requests");
    let reset: u64 = response
        .header(&format!("x-ratelimit-{name}-reset"))?
        .trim()
        .parse()
        .ok()?;
    Some(Duration::from_millis(reset.saturating_sub(clock::now())))
}
