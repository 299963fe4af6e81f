//! Finds the tools that fit use cases, with a plan for each, their schemas, and the state of the
//! connections that they need.
//!
//! Only tools that the session permits are ranked. A use case that cannot be searched for fails on
//! its own; the others are answered.

mod result;
mod use_case;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, SecondsFormat};
use serde::Deserialize;
use serde_json::Value;

pub use self::result::{ConnectionStatus, FoundTool, SearchResult, SearchWorkflow, TimeInfo};
pub use self::use_case::{MAX_KNOWN_FIELDS_CHARS, MAX_USE_CASE_CHARS, UseCase, UseCaseResult};
use super::{MetaResult, MetaTool, Workflow, meta_result, parse};
use crate::{
    App, Result,
    agents::{Config, SessionCaller, errors, scope, toolkits::accounts_by_toolkit},
    catalog::RankedTool,
};

/// Maximum number of use cases of one search.
pub const MAX_QUERIES: usize = 7;
/// Maximum size of the input schemas in a result, in bytes. Further ones are left out, and the
/// assistant asks for them.
pub const MAX_SCHEMAS_BYTES: usize = 256 << 10;
/// Maximum number of tools that a use case gets.
const MAX_TOOLS: usize = 10;

/// A request to find tools.
#[derive(Debug, Deserialize)]
pub struct ToolSearch {
    /// The use cases.
    pub queries: Vec<UseCase>,
    /// The workflow that the search belongs to.
    pub session: Option<GivenWorkflow>,
}

/// The workflow that an assistant names, or the wish for a new one.
#[derive(Debug, Deserialize)]
pub struct GivenWorkflow {
    /// Id of the workflow.
    pub id: Option<String>,
    /// True to start a new workflow.
    pub generate_id: Option<bool>,
}

pub(super) async fn run(app: &App, caller: &SessionCaller, arguments: Value) -> Result<MetaResult> {
    let request: ToolSearch = parse(MetaTool::SearchTools, arguments)?;
    let result = search(app, caller, request).await?;
    meta_result(&result, result.error.clone())
}

/// Finds tools for use cases. Fails if the session does not offer the search, or if there are no use
/// cases or too many.
pub async fn search(
    app: &App,
    caller: &SessionCaller,
    request: ToolSearch,
) -> Result<SearchResult> {
    let config = caller.config();
    MetaTool::SearchTools.check_switched_on(config)?;
    if request.queries.is_empty() || request.queries.len() > MAX_QUERIES {
        let problem = format!("queries: 1 to {MAX_QUERIES} use cases");
        let tool = MetaTool::SearchTools.slug();
        return Err(errors::arguments_invalid(tool, problem));
    }
    let ranked = ranked(app, caller, &request.queries).await?;
    let accounts = accounts_by_toolkit(app, caller).await?;
    let mut toolkits = BTreeMap::new();
    for tool in ranked.iter().flatten().flatten() {
        let release = &tool.found.release;
        toolkits.insert(release.slug.to_string(), release.clone());
    }
    let statuses: Vec<_> = toolkits
        .values()
        .map(|release| {
            let account = accounts.get(&*release.slug).map(AsRef::as_ref);
            ConnectionStatus::new(release, account, config)
        })
        .collect();
    let unconnected: BTreeSet<_> = statuses
        .iter()
        .filter(|status| !status.has_active_connection)
        .map(|status| status.toolkit.clone())
        .collect();
    let queries = request.queries.iter().enumerate().zip(&ranked);
    let results: Vec<_> = queries
        .map(|((index, query), ranked)| match ranked {
            Ok(tools) => UseCaseResult::new(index, query, tools, &unconnected, config),
            Err(problem) => UseCaseResult::failed(index, query, problem),
        })
        .collect();
    Ok(SearchResult {
        tool_schemas: schemas(&ranked, &results)?,
        error: summary(&results),
        next_steps_guidance: next_steps(&results, &unconnected, config),
        results,
        toolkit_connection_statuses: statuses,
        time_info: time_info(app),
        session: workflow(request.session.as_ref()),
    })
}

/// The ranked tools of a use case, or the reason why it cannot be searched for.
type Ranked = std::result::Result<Vec<RankedTool>, String>;

async fn ranked(app: &App, caller: &SessionCaller, queries: &[UseCase]) -> Result<Vec<Ranked>> {
    let index = app.catalog.tool_index().await?;
    let size = index.search_cost(queries.len());
    let config = caller.config().clone();
    let checked: Vec<_> = queries
        .iter()
        .map(|query| match query.problem() {
            Some(problem) => Err(problem),
            None => Ok(query.use_case.clone()),
        })
        .collect();
    app.large_work
        .run(&caller.project.tenant, size, move || {
            let ranked = checked.into_iter().map(|use_case| {
                use_case.map(|text| {
                    index.search(&text, MAX_TOOLS, |tool| scope::permits(&config, tool))
                })
            });
            ranked.collect()
        })
        .await
}

/// Returns the tools that were found. Recommended ones have their schemas.
fn schemas(ranked: &[Ranked], results: &[UseCaseResult]) -> Result<BTreeMap<String, FoundTool>> {
    let main: BTreeSet<_> = results
        .iter()
        .flat_map(|result| &result.primary_tool_slugs)
        .collect();
    let related: BTreeSet<_> = results
        .iter()
        .flat_map(|result| &result.related_tool_slugs)
        .collect();
    let mut schemas = BTreeMap::new();
    let mut left = MAX_SCHEMAS_BYTES;
    for RankedTool { found, .. } in ranked.iter().flatten().flatten() {
        let slug = found.tool.slug.to_string();
        let is_main = main.contains(&slug);
        if schemas.contains_key(&slug) || !(is_main || related.contains(&slug)) {
            continue;
        }
        let schema = is_main
            .then(|| found.tool.input.text())
            .transpose()?
            .filter(|schema| schema.get().len() <= left);
        left -= schema.as_ref().map_or(0, |schema| schema.get().len());
        let tool = FoundTool {
            tool_slug: slug.clone(),
            toolkit: found.release.slug.to_string(),
            description: found.tool.description.clone(),
            input_schema: schema,
        };
        schemas.insert(slug, tool);
    }
    Ok(schemas)
}

fn summary(results: &[UseCaseResult]) -> Option<String> {
    let failed: Vec<_> = results
        .iter()
        .filter_map(|result| {
            let error = result.error.as_ref()?;
            Some(format!("query {}: {error}", result.index))
        })
        .collect();
    (!failed.is_empty()).then(|| {
        format!(
            "{} out of {} searches failed, reasons: {}",
            failed.len(),
            results.len(),
            failed.join("; ")
        )
    })
}

fn has_tools(result: &UseCaseResult) -> bool {
    !result.primary_tool_slugs.is_empty()
}

fn next_steps(
    results: &[UseCaseResult],
    unconnected: &BTreeSet<String>,
    config: &Config,
) -> Vec<String> {
    let mut steps = Vec::new();
    if !unconnected.is_empty() {
        let toolkits: Vec<_> = unconnected.iter().map(String::as_str).collect();
        let step = if MetaTool::ManageConnections.is_enabled(config) {
            "Connect the toolkits that you use of these with SERVICE_MANAGE_CONNECTIONS"
        } else {
            "The user has to connect the toolkits that you use of these"
        };
        steps.push(format!("{step}: {}.", toolkits.join(", ")));
    }
    if results.iter().any(has_tools) {
        let executor = executor(config);
        steps.push(format!(
            "Get missing schemas with SERVICE_GET_TOOL_SCHEMAS, and execute tools{executor}."
        ));
    }
    if !results.iter().all(has_tools) {
        steps.push("Search again for use cases without tools, in other words.".to_owned());
    }
    steps
}

/// Returns the part of a sentence that names the meta tool which executes tools; empty if the session
/// does not have it.
fn executor(config: &Config) -> &'static str {
    if MetaTool::MultiExecuteTool.is_enabled(config) {
        " with SERVICE_MULTI_EXECUTE_TOOL"
    } else {
        ""
    }
}

fn time_info(app: &App) -> TimeInfo {
    let seconds = app.clock.now().0.div_euclid(1_000);
    let time = DateTime::from_timestamp(seconds, 0).unwrap_or_default();
    let text = time.to_rfc3339_opts(SecondsFormat::Secs, true);
    TimeInfo {
        message: format!("It is {text}. Compute times that the user gives from it."),
        current_time_utc: text,
        current_time_utc_epoch_seconds: seconds,
    }
}

fn workflow(given: Option<&GivenWorkflow>) -> SearchWorkflow {
    let wants_new = given.and_then(|given| given.generate_id) == Some(true);
    let id = given
        .and_then(|given| given.id.as_deref())
        .filter(|id| !wants_new && !id.trim().is_empty());
    SearchWorkflow {
        workflow: Workflow::new(id),
        generate_id: id.is_none(),
    }
}
