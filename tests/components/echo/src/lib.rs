//! Answers what it is given, and does as little as a tool can: the floor that benchmarks stand on.

use std::borrow::Cow;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::value::RawValue;
use toolkit_sdk::prelude::*;

/// Any JSON object, never taken apart.
#[derive(Deserialize, Serialize)]
#[serde(transparent)]
struct Anything(Box<RawValue>);

impl JsonSchema for Anything {
    fn schema_name() -> Cow<'static, str> {
        "Anything".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "properties": { "text": { "type": "string", "description": "What to say." } },
        })
    }
}

/// Says what it is told.
#[tool(read_only, idempotent, example = r#"{"text": "hello"}"#)]
fn say(input: Anything) -> Result<Anything> {
    Ok(input)
}

toolkit! {
    slug: "echo",
    name: "Echo",
    description: "Answers what it is given.",
    categories: ["testing"],
    version: "20261121_00",
    tools: [say],
}

cases!();
