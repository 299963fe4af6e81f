//! Returns the schemas of tools. A slug that the session does not know gets suggestions: permitted
//! tools with a similar slug. A tool that the session does not permit counts as unknown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};

use super::{MetaResult, MetaTool, meta_result, parse};
use crate::{
    App, Result,
    agents::{SessionCaller, errors, scope, tools::permitted_tool},
    catalog::ResolvedTool,
    core::shown_slug,
};

/// Maximum number of slugs of one call.
pub const MAX_SLUGS: usize = 50;
/// Maximum number of suggestions for an unknown slug.
const MAX_SUGGESTIONS: usize = 3;
/// Maximum number of characters of an unknown slug that are searched for.
const MAX_SEARCHED_CHARS: usize = 128;

#[derive(Deserialize)]
struct Arguments {
    tool_slugs: Vec<String>,
    #[serde(default = "input_only")]
    include: Vec<Include>,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Include {
    InputSchema,
    OutputSchema,
}

fn input_only() -> Vec<Include> {
    vec![Include::InputSchema]
}

#[derive(Serialize)]
struct ToolSchemas {
    toolkit: String,
    tool_slug: String,
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_schema: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<Value>,
}

pub(super) async fn run(app: &App, caller: &SessionCaller, arguments: Value) -> Result<MetaResult> {
    let request: Arguments = parse(MetaTool::GetToolSchemas, arguments)?;
    if request.tool_slugs.len() > MAX_SLUGS {
        let tool = MetaTool::GetToolSchemas.slug();
        let problem = format!("tool_slugs: at most {MAX_SLUGS} slugs");
        return Err(errors::arguments_invalid(tool, problem));
    }
    let catalog = app.catalog.snapshot();
    let mut schemas = BTreeMap::new();
    let mut not_found: Vec<String> = Vec::new();
    for slug in &request.tool_slugs {
        match permitted_tool(&catalog, caller.config(), slug.trim()) {
            Some(found) => {
                let slug = found.tool.slug.to_string();
                schemas.insert(slug, ToolSchemas::new(&found, &request.include)?);
            }
            None => not_found.push(slug.chars().take(MAX_SEARCHED_CHARS).collect()),
        }
    }
    let mut data = json!({ "success": not_found.is_empty(), "tool_schemas": schemas });
    if !not_found.is_empty() {
        let shown: Vec<_> = not_found.iter().map(|slug| shown_slug(slug)).collect();
        data["suggestions"] = json!(suggestions(app, caller, &not_found).await?);
        let search = if MetaTool::SearchTools.is_enabled(caller.config()) {
            ", or find tools with SERVICE_SEARCH_TOOLS"
        } else {
            ""
        };
        data["not_found_message"] = json!(format!(
            "The session has no tools with these slugs: {}. Use a suggestion{search}.",
            shown.join(", ")
        ));
        data["not_found"] = json!(shown);
    }
    meta_result(&data, None)
}

impl ToolSchemas {
    fn new(found: &ResolvedTool, include: &[Include]) -> Result<Self> {
        let tool = &found.tool;
        let input = include.contains(&Include::InputSchema);
        let output = include.contains(&Include::OutputSchema);
        Ok(Self {
            toolkit: found.release.slug.to_string(),
            tool_slug: tool.slug.to_string(),
            description: tool.description.clone(),
            input_schema: input.then(|| tool.input.text()).transpose()?,
            output_schema: output.then(|| tool.response_schema()).transpose()?,
        })
    }
}

/// Returns permitted tools for each unknown slug, the most similar first.
async fn suggestions(
    app: &App,
    caller: &SessionCaller,
    slugs: &[String],
) -> Result<BTreeMap<String, Vec<String>>> {
    let index = app.catalog.tool_index().await?;
    let size = index.search_cost(slugs.len());
    let config = caller.config().clone();
    let slugs = slugs.to_vec();
    app.large_work
        .run(&caller.project.tenant, size, move || {
            let suggestions = slugs.into_iter().map(|slug| {
                let ranked = index.search(&slug, MAX_SUGGESTIONS, |tool: &ResolvedTool| {
                    scope::permits(&config, tool)
                });
                let similar = ranked.iter().map(|one| one.found.tool.slug.to_string());
                (shown_slug(&slug).to_owned(), similar.collect())
            });
            suggestions.collect()
        })
        .await
}
