//! Tools of a Model Context Protocol server: the response to `tools/list`, optionally with the
//! server's information about itself.
//!
//! ```json
//! {
//!   "server": "https://example.com/mcp",
//!   "serverInfo": { "name": "example" },
//!   "instructions": "…",
//!   "tools": []
//! }
//! ```
//!
//! All members except `tools` are optional. A server says nothing about accounts. Without an
//! overlay an account is a bearer token.

mod schema;

use manifest::Hints;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::{
    Answer, Api, Body, Error, Media, Operation, Result, Server, Unsupported, graphql, parse,
    schema::merged, text,
};

/// Largest number of tools of one server.
const MAX_TOOLS: usize = 5_000;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Listing {
    #[serde(deserialize_with = "null_as_absent")]
    server: String,
    #[serde(deserialize_with = "null_as_absent")]
    server_info: Info,
    #[serde(deserialize_with = "null_as_absent")]
    instructions: String,
    tools: Vec<Tool>,
    next_cursor: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Info {
    #[serde(deserialize_with = "null_as_absent")]
    name: String,
    title: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Tool {
    #[serde(deserialize_with = "null_as_absent")]
    name: String,
    title: Option<String>,
    description: Option<String>,
    input_schema: Value,
    output_schema: Option<Value>,
    annotations: Option<Annotations>,
}

/// Annotations of a tool; the defaults are those of the protocol.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Annotations {
    title: Option<String>,
    read_only_hint: Option<bool>,
    destructive_hint: Option<bool>,
    idempotent_hint: Option<bool>,
    open_world_hint: Option<bool>,
}

/// Reads a property for which some servers write null.
fn null_as_absent<'de, D, T>(given: D) -> std::result::Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(given)?.unwrap_or_default())
}

/// Reads a list of tools.
///
/// # Errors
/// The input is not JSON, is not a list of tools, or is too large.
pub fn mcp(bytes: &[u8]) -> Result<Api> {
    let root = parse::document(bytes)?;
    let places = ["/result", ""];
    let result = places
        .iter()
        .find_map(|place| root.pointer(place).filter(|it| it["tools"].is_array()))
        .ok_or_else(|| Error::new("this is not the response to `tools/list`: it has no `tools`"))?;
    let listing = Listing::deserialize(result)
        .map_err(|cause| Error::new(format!("the list of tools is not valid: {cause}")))?;
    if listing.tools.len() > MAX_TOOLS {
        return Err(Error::new(format!(
            "the server has more than {MAX_TOOLS} tools"
        )));
    }
    let name = listing
        .server_info
        .title
        .unwrap_or(listing.server_info.name);
    let mut api = Api {
        name: text::line(&name, 100),
        description: text::block(&listing.instructions, 1000),
        servers: Some(listing.server)
            .filter(|url| !url.is_empty())
            .map(|url| Server {
                url,
                variables: Vec::new(),
            })
            .into_iter()
            .collect(),
        auth: vec![graphql::bearer()],
        ..Api::default()
    };
    if listing.next_cursor.is_some_and(|cursor| !cursor.is_empty()) {
        api.unsupported.push(Unsupported::whole(
            "the list has further pages; save all of them in one file",
        ));
    }
    for tool in listing.tools {
        operation(tool, &mut api);
    }
    Ok(api)
}

fn operation(tool: Tool, api: &mut Api) {
    let id = manifest::cleaned(&tool.name);
    if id.is_empty() || api.operations.iter().any(|operation| operation.id == id) {
        api.unsupported.push(Unsupported::whole(format!(
            "a tool with a repeated or missing name: `{}`",
            text::line(&id, 80)
        )));
        return;
    }
    let annotations = tool.annotations.unwrap_or_default();
    let read_only = annotations.read_only_hint.unwrap_or(false);
    let hints = Hints {
        read_only,
        destructive: !read_only && annotations.destructive_hint.unwrap_or(true),
        idempotent: read_only || annotations.idempotent_hint.unwrap_or(false),
        open_world: annotations.open_world_hint.unwrap_or(true),
    };
    let mut input = schema::import(&tool.input_schema, &format!("{id}.in"), api);
    input["type"] = "object".into();
    let whole = merged(&input, &api.schemas).schema;
    // A schema without members accepts any.
    if !whole.contains_key("properties") && !whole.contains_key("additionalProperties") {
        input["additionalProperties"] = true.into();
    }
    let output = match &tool.output_schema {
        Some(output) => schema::import(output, &format!("{id}.out"), api),
        None => json!({ "type": "object", "properties": { "text": { "type": "string" } } }),
    };
    api.operations.push(Operation {
        method: "POST".to_owned(),
        title: text::line(&tool.title.or(annotations.title).unwrap_or_default(), 100),
        description: text::block(&tool.description.unwrap_or_default(), 4000),
        hints,
        body: Some(Body {
            media: Media::Mcp { tool: tool.name },
            schema: input,
            required: true,
            defaults: [].into(),
        }),
        answer: Answer {
            schema: Some(output),
            ..Answer::default()
        },
        id,
        ..Operation::default()
    });
}

#[cfg(test)]
pub(crate) mod tests;
