//! GraphQL over POST.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::{Client, Response, failure};
use crate::{Result, ToolError, mismatch};

#[derive(Deserialize)]
struct ResponseBody {
    #[serde(default)]
    data: Value,
    /// Some servers send null instead of leaving it out.
    #[serde(default, deserialize_with = "null_as_empty")]
    errors: Vec<Value>,
}

fn null_as_empty<'de, D: Deserializer<'de>>(
    errors: D,
) -> std::result::Result<Vec<Value>, D::Error> {
    Option::deserialize(errors).map(Option::unwrap_or_default)
}

impl Client {
    /// Runs a GraphQL query or mutation and returns its `data`.
    ///
    /// # Errors
    /// Any error of `send`. If the response has `errors`, the first of them, with all of them as
    /// details.
    pub fn graphql<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &str,
        variables: &impl Serialize,
    ) -> Result<T> {
        let body = json!({ "query": query, "variables": serde_json::to_value(variables)? });
        let response = self.post(path).json(&body).send()?;
        serde_json::from_value(data(&response)?).map_err(|error| {
            let reason = mismatch::reason(&error);
            ToolError::upstream(format!(
                "the provider's response has unexpected data: {reason}"
            ))
        })
    }
}

/// Returns the data of a GraphQL response.
pub(crate) fn data(response: &Response) -> Result<Value> {
    // With errors the data is often null or partial, so it is read only without them.
    let answer: ResponseBody = response.json()?;
    if answer.errors.is_empty() {
        Ok(answer.data)
    } else {
        Err(refusal(answer.errors))
    }
}

/// Returns the part of a GraphQL response's data at a JSON pointer. If the part is an object, the
/// errors are added to its members: they are about values further inside, which are null in that
/// case.
pub(crate) fn part(response: &Response, place: &str) -> Result<Value> {
    let mut answer: ResponseBody = response.json()?;
    let mut part = answer
        .data
        .pointer_mut(place)
        .map(Value::take)
        .unwrap_or_default();
    match &mut part {
        _ if answer.errors.is_empty() => {}
        Value::Null => return Err(refusal(answer.errors)),
        Value::Object(members) => {
            members
                .entry("errors")
                .or_insert(Value::Array(answer.errors));
        }
        _ => {}
    }
    Ok(part)
}

fn refusal(errors: Vec<Value>) -> ToolError {
    let first = &errors[0];
    let message = failure::message(first)
        .unwrap_or("the provider refused the query")
        .to_owned();
    let code = ["/extensions/code", "/type", "/extensions/type"]
        .iter()
        .find_map(|place| first.pointer(place)?.as_str())
        .unwrap_or_default()
        .to_ascii_lowercase();
    let kind = match code.as_str() {
        "unauthenticated" | "authentication_error" | "authentication error" => "unauthorized",
        "forbidden" | "access_denied" => "forbidden",
        "not_found" => "not_found",
        "rate_limited" | "ratelimited" | "throttled" => "rate_limited",
        "bad_user_input" | "graphql_validation_failed" | "invalid_input" | "unprocessable" => {
            "invalid_input"
        }
        _ => "upstream_error",
    };
    ToolError::new(kind, message).details(Value::Array(errors))
}
