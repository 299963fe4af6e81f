//! Descriptions and schemas of the meta tools, as tool lists show them.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};

use super::MetaTool;

/// Description of a meta tool, with the default operator word.
#[derive(Debug, Deserialize)]
pub struct Definition {
    /// Display name.
    pub name: String,
    /// Description by which an assistant chooses the tool.
    pub description: String,
    /// Hints.
    pub tags: Vec<String>,
    /// Schema of the arguments.
    pub input: Value,
    /// Schema of the data of a result.
    pub output: Value,
}

static META_TOOL_DEFINITIONS: LazyLock<Vec<Definition>> = LazyLock::new(|| {
    MetaTool::all()
        .map(|tool| {
            serde_json::from_str(text(tool)).expect("the files of the definitions are tested")
        })
        .collect()
});

fn text(tool: MetaTool) -> &'static str {
    match tool {
        MetaTool::SearchTools => include_str!("schemas/search_tools.json"),
        MetaTool::GetToolSchemas => include_str!("schemas/get_tool_schemas.json"),
        MetaTool::MultiExecuteTool => include_str!("schemas/multi_execute_tool.json"),
        MetaTool::ManageConnections => include_str!("schemas/manage_connections.json"),
        MetaTool::WaitForConnections => include_str!("schemas/wait_for_connections.json"),
        MetaTool::RemoteWorkbench => include_str!("schemas/remote_workbench.json"),
        MetaTool::RemoteBashTool => include_str!("schemas/remote_bash_tool.json"),
        MetaTool::UpsertRecipe => include_str!("schemas/upsert_recipe.json"),
        MetaTool::GetRecipe => include_str!("schemas/get_recipe.json"),
        MetaTool::ProxyExecute => include_str!("schemas/proxy_execute.json"),
        MetaTool::SubmitFeedback => include_str!("schemas/submit_feedback.json"),
    }
}

impl MetaTool {
    /// Returns the description and the schemas.
    #[must_use]
    pub fn definition(self) -> &'static Definition {
        &META_TOOL_DEFINITIONS[self as usize]
    }
}

impl Definition {
    /// Returns the schema of a complete result, with the properties that every result has.
    #[must_use]
    pub fn response_schema(&self) -> Value {
        json!({
            "type": "object",
            "title": "Answer",
            "properties": {
                "data": self.output,
                "error": {"type": ["string", "null"], "description": "Why the tool failed."},
                "successful": {"type": "boolean", "description": "Whether the tool succeeded."},
            },
            "required": ["data", "successful"],
        })
    }
}
