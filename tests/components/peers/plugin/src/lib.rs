//! The echo tool as a plugin of hyper-mcp.

use extism_pdk::{FnResult, Json, plugin_fn};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};

#[derive(Deserialize)]
struct Call {
    request: Request,
}

#[derive(Deserialize)]
struct Request {
    arguments: Box<RawValue>,
}

#[derive(Serialize)]
struct CallResult {
    content: [Text; 1],
}

#[derive(Serialize)]
struct Text {
    r#type: &'static str,
    text: Box<str>,
}

/// Lists the one tool.
#[plugin_fn]
pub fn list_tools() -> FnResult<Json<Value>> {
    Ok(Json(json!({ "tools": [{
        "name": "say",
        "description": "Says what it is told.",
        "inputSchema": {
            "type": "object",
            "properties": { "text": { "type": "string", "description": "What to say." } },
        },
    }] })))
}

/// Answers the arguments.
#[plugin_fn]
pub fn call_tool(call: Json<Call>) -> FnResult<Json<CallResult>> {
    Ok(Json(CallResult {
        content: [Text {
            r#type: "text",
            text: call.into_inner().request.arguments.into(),
        }],
    }))
}
