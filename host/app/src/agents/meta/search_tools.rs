//! Finds the tools that fit use cases, with a plan for each, their schemas, and the state of the
//! connections that they need.
//!
//! Only tools that the session permits are ranked. A use case that cannot be searched for fails on
//! its own; the others are answered.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, SecondsFormat};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};

use super::{MetaResult, MetaTool, Workflow, get_tool_schemas::permits, parse};
use crate::{
    App, Result,
    accounts::SessionAccount,
    agents::{SessionCaller, errors, toolkits::accounts_by_toolkit},
    catalog::{RankedTool, Release},
};

/// Maximum number of use cases of one search.
pub const MAX_QUERIES: usize = 7;
/// Maximum length of a use case, in characters.
pub const MAX_USE_CASE_CHARS: usize = 1_024;
/// Maximum length of the known fields of a use case, in characters.
pub const MAX_KNOWN_FIELDS_CHARS: usize = 500;
/// Maximum size of the input schemas in a result, in bytes. Further ones are left out, and the
/// assistant asks for them.
pub const MAX_SCHEMAS_BYTES: usize = 256 << 10;
/// Maximum number of tools that a use case gets.
const MAX_TOOLS: usize = 10;
/// Maximum number of tools that are recommended for a use case.
const MAX_MAIN_TOOLS: usize = 3;
/// Share of the best score from which a tool is recommended.
const MAIN_SHARE: f32 = 0.7;
/// Share of the best score from which a tool is related.
const RELATED_SHARE: f32 = 0.25;
/// Share of a use case from which a task is easy, and from which it is of medium difficulty.
const EASY_COVERAGE: f32 = 0.8;
const MEDIUM_COVERAGE: f32 = 0.5;

/// A request to find tools.
#[derive(Debug, Deserialize)]
pub struct ToolSearch {
    /// The use cases.
    pub queries: Vec<UseCase>,
    /// The workflow that the search belongs to.
    pub session: Option<GivenWorkflow>,
}

/// Task that a tool shall do.
#[derive(Debug, Deserialize)]
pub struct UseCase {
    /// The use case, in one sentence.
    pub use_case: String,
    /// Values that are known already.
    pub known_fields: Option<String>,
}

/// The workflow that an assistant names, or the wish for a new one.
#[derive(Debug, Deserialize)]
pub struct GivenWorkflow {
    /// Id of the workflow.
    pub id: Option<String>,
    /// True to begin a new workflow.
    pub generate_id: Option<bool>,
}

/// The result of a search.
#[derive(Debug, Serialize)]
pub struct SearchResult {
    /// The results, in the order of the use cases.
    pub results: Vec<UseCaseResult>,
    /// The schemas of the tools that were found, by slug.
    pub tool_schemas: BTreeMap<String, FoundTool>,
    /// The state of the connections, one entry for each toolkit that was found.
    pub toolkit_connection_statuses: Vec<ConnectionStatus>,
    /// The current time.
    pub time_info: TimeInfo,
    /// The workflow of the search.
    pub session: SearchWorkflow,
    /// Next steps for the assistant.
    pub next_steps_guidance: Vec<String>,
    /// The summary of the use cases that failed.
    #[serde(skip)]
    pub error: Option<String>,
}

/// The time of a search, from which an assistant computes other times.
#[derive(Debug, Serialize)]
pub struct TimeInfo {
    /// The time as a sentence.
    pub message: String,
    /// The time by RFC 3339, in UTC.
    pub current_time_utc: String,
    /// Seconds since the epoch.
    pub current_time_utc_epoch_seconds: i64,
}

/// The workflow of a search.
#[derive(Debug, Serialize)]
pub struct SearchWorkflow {
    /// Id and instructions.
    #[serde(flatten)]
    pub workflow: Workflow,
    /// True if the id is new.
    pub generate_id: bool,
}

/// The tools for a use case.
#[derive(Debug, Default, Serialize)]
pub struct UseCaseResult {
    /// Position of the use case, from 0.
    pub index: usize,
    /// The use case.
    pub use_case: String,
    /// The tools that fit best.
    pub primary_tool_slugs: Vec<String>,
    /// Other tools that fit.
    pub related_tool_slugs: Vec<String>,
    /// The toolkits of the tools.
    pub toolkits: Vec<String>,
    /// Reasons for which the tools were found.
    pub reasoning: String,
    /// `easy`, `medium` or `hard`.
    pub task_difficulty: &'static str,
    /// Steps of the task.
    pub recommended_plan_steps: Vec<String>,
    /// Effects to beware of.
    pub known_pitfalls: Vec<String>,
    /// Reason of a failed search.
    pub error: Option<String>,
}

/// A tool that was found.
#[derive(Debug, Serialize)]
pub struct FoundTool {
    /// Slug of the tool.
    pub tool_slug: String,
    /// Slug of the toolkit.
    pub toolkit: String,
    /// The description.
    pub description: String,
    /// The schema of the arguments; none for related tools.
    pub input_schema: Option<Box<RawValue>>,
}

/// The state of the connection of a user to a toolkit.
#[derive(Debug, Serialize)]
pub struct ConnectionStatus {
    /// Slug of the toolkit.
    pub toolkit: String,
    /// Description of the toolkit.
    pub description: String,
    /// True if its tools can be executed now.
    pub has_active_connection: bool,
    /// The account in use.
    pub connection_details: Value,
    /// `PRIVATE` or `SHARED`; none without an account.
    pub account_type: Option<&'static str>,
    /// The state as a sentence.
    pub status_message: String,
}

pub(super) async fn run(app: &App, caller: &SessionCaller, arguments: Value) -> Result<MetaResult> {
    let request: ToolSearch = parse(MetaTool::SearchTools, arguments)?;
    let found = search(app, caller, request).await?;
    Ok(MetaResult {
        error: found.error.clone(),
        data: serde_json::to_value(found).map_err(errors::internal)?,
    })
}

/// Finds tools for use cases.
///
/// # Errors
/// Fails if the session has no search, if there are no use cases or too many, or if the store cannot
/// be read.
pub async fn search(
    app: &App,
    caller: &SessionCaller,
    request: ToolSearch,
) -> Result<SearchResult> {
    MetaTool::SearchTools.check_switched_on(caller.config())?;
    if request.queries.is_empty() || request.queries.len() > MAX_QUERIES {
        let problem = format!("queries: 1 to {MAX_QUERIES} use cases");
        let tool = MetaTool::SearchTools.short_slug();
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
            ConnectionStatus::new(release, account)
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
            Ok(tools) => UseCaseResult::new(index, query, tools, &unconnected),
            Err(problem) => UseCaseResult::failed(index, query, problem),
        })
        .collect();
    Ok(SearchResult {
        tool_schemas: schemas(&ranked, &results)?,
        error: summary(&results),
        next_steps_guidance: next_steps(&results, &unconnected),
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
    let texts: Vec<_> = queries
        .iter()
        .map(|query| {
            query
                .problem()
                .map_or_else(|| Ok(query.use_case.clone()), Err)
        })
        .collect();
    let work = move || {
        let ranked = texts.into_iter().map(|text| {
            text.map(|text| index.search(&text, MAX_TOOLS, |found| permits(&config, found)))
        });
        ranked.collect()
    };
    app.large_work.run(&caller.project.tenant, size, work).await
}

impl UseCase {
    /// Returns the reason why the use case cannot be searched for.
    fn problem(&self) -> Option<String> {
        let known = self.known_fields.as_deref().unwrap_or_default();
        if self.use_case.trim().is_empty() {
            Some("the use case is empty".to_owned())
        } else if self.use_case.chars().count() > MAX_USE_CASE_CHARS {
            Some(format!(
                "the use case is longer than {MAX_USE_CASE_CHARS} characters"
            ))
        } else if known.chars().count() > MAX_KNOWN_FIELDS_CHARS {
            Some(format!(
                "the known fields are longer than {MAX_KNOWN_FIELDS_CHARS} characters"
            ))
        } else {
            None
        }
    }

    /// Returns the use case as a result shows it.
    fn shown(&self) -> String {
        self.use_case.chars().take(MAX_USE_CASE_CHARS).collect()
    }
}

impl UseCaseResult {
    fn failed(index: usize, query: &UseCase, problem: &str) -> Self {
        Self {
            index,
            use_case: query.shown(),
            reasoning: problem.to_owned(),
            task_difficulty: "hard",
            error: Some(problem.to_owned()),
            ..Self::default()
        }
    }

    fn new(
        index: usize,
        query: &UseCase,
        tools: &[RankedTool],
        unconnected: &BTreeSet<String>,
    ) -> Self {
        let best = tools.first().map_or(0.0, |tool| tool.score);
        let is_main = |(place, tool): &(usize, &RankedTool)| {
            *place < MAX_MAIN_TOOLS && tool.score >= best * MAIN_SHARE
        };
        let near = tools
            .iter()
            .filter(|tool| tool.score >= best * RELATED_SHARE);
        let (main, related): (Vec<_>, Vec<_>) = near.enumerate().partition(is_main);
        let slug = |(_, tool): &(usize, &RankedTool)| tool.found.tool.slug.to_string();
        let mut toolkits: Vec<String> = Vec::new();
        for (_, tool) in main.iter().chain(&related) {
            if !toolkits
                .iter()
                .any(|known| *known == *tool.found.release.slug)
            {
                toolkits.push(tool.found.release.slug.to_string());
            }
        }
        Self {
            index,
            use_case: query.shown(),
            primary_tool_slugs: main.iter().map(slug).collect(),
            related_tool_slugs: related.iter().map(slug).collect(),
            toolkits,
            reasoning: reasoning(&main),
            task_difficulty: difficulty(tools.first()),
            recommended_plan_steps: tools
                .first()
                .map_or_else(Vec::new, |best| plan(best, query, unconnected)),
            known_pitfalls: pitfalls(&main),
            error: None,
        }
    }
}

/// Says for each tool which words of the use case it matches, and in which fields.
fn reasoning(main: &[(usize, &RankedTool)]) -> String {
    if main.is_empty() {
        return "No tool that the session permits has the words of the use case: say it in other \
                words, or name the toolkit."
            .to_owned();
    }
    let reasons = main.iter().map(|(_, tool)| {
        let words = tool.matches.iter().map(|one| {
            let mut fields: Vec<_> = one.fields.iter().map(|field| field.as_str()).collect();
            fields.dedup();
            format!("`{}` ({})", one.word, fields.join(", "))
        });
        let words: Vec<_> = words.collect();
        format!("{} matches {}.", tool.found.tool.slug, words.join(", "))
    });
    reasons.collect::<Vec<_>>().join(" ")
}

fn difficulty(best: Option<&RankedTool>) -> &'static str {
    match best.map(|best| best.coverage) {
        Some(coverage) if coverage >= EASY_COVERAGE => "easy",
        Some(coverage) if coverage >= MEDIUM_COVERAGE => "medium",
        _ => "hard",
    }
}

fn plan(best: &RankedTool, query: &UseCase, unconnected: &BTreeSet<String>) -> Vec<String> {
    let (slug, toolkit) = (&best.found.tool.slug, &best.found.release.slug);
    let mut steps = Vec::new();
    if unconnected.contains(&**toolkit) && !best.found.tool.no_auth {
        steps.push(format!(
            "Connect {toolkit} with SERVICE_MANAGE_CONNECTIONS, and wait until the user has done it."
        ));
    }
    let known = query.known_fields.as_deref().map(str::trim);
    steps.push(match known.filter(|known| !known.is_empty()) {
        Some(known) => format!("Fill the arguments of {slug} from its schema and from: {known}."),
        None => format!("Fill the arguments of {slug} from its schema."),
    });
    steps.push(format!("Execute {slug} with SERVICE_MULTI_EXECUTE_TOOL."));
    steps
}

fn pitfalls(main: &[(usize, &RankedTool)]) -> Vec<String> {
    let destructive = main
        .iter()
        .filter(|(_, tool)| tool.found.tool.hints.destructive);
    let warnings = destructive.map(|(_, tool)| {
        let slug = &tool.found.tool.slug;
        format!("{slug} deletes or overwrites data: ask the user before executing it.")
    });
    warnings.collect()
}

/// Returns the tools that were found. Recommended ones have their schemas.
fn schemas(ranked: &[Ranked], results: &[UseCaseResult]) -> Result<BTreeMap<String, FoundTool>> {
    let shown: BTreeSet<_> = results
        .iter()
        .flat_map(|result| {
            result
                .primary_tool_slugs
                .iter()
                .chain(&result.related_tool_slugs)
        })
        .collect();
    let main: BTreeSet<_> = results
        .iter()
        .flat_map(|result| &result.primary_tool_slugs)
        .collect();
    let mut schemas = BTreeMap::new();
    let mut left = MAX_SCHEMAS_BYTES;
    for RankedTool { found, .. } in ranked.iter().flatten().flatten() {
        let slug = found.tool.slug.to_string();
        if schemas.contains_key(&slug) || !shown.contains(&slug) {
            continue;
        }
        let schema = main
            .contains(&slug)
            .then(|| found.tool.input.text())
            .transpose()?;
        let schema = schema.filter(|schema| schema.get().len() <= left);
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
    let failed = results.iter().filter_map(|result| {
        let error = result.error.as_ref()?;
        Some(format!("query {}: {error}", result.index))
    });
    let failed: Vec<_> = failed.collect();
    (!failed.is_empty()).then(|| {
        format!(
            "{} out of {} searches failed, reasons: {}",
            failed.len(),
            results.len(),
            failed.join("; ")
        )
    })
}

fn next_steps(results: &[UseCaseResult], unconnected: &BTreeSet<String>) -> Vec<String> {
    let mut steps = Vec::new();
    if !unconnected.is_empty() {
        let toolkits: Vec<_> = unconnected.iter().map(String::as_str).collect();
        steps.push(format!(
            "Connect the toolkits that you use of these with SERVICE_MANAGE_CONNECTIONS: {}.",
            toolkits.join(", ")
        ));
    }
    if results
        .iter()
        .any(|result| !result.primary_tool_slugs.is_empty())
    {
        steps.push(
            "Get missing schemas with SERVICE_GET_TOOL_SCHEMAS, and execute tools with \
             SERVICE_MULTI_EXECUTE_TOOL."
                .to_owned(),
        );
    }
    if results
        .iter()
        .any(|result| result.primary_tool_slugs.is_empty())
    {
        steps.push("Search again for use cases without tools, in other words.".to_owned());
    }
    steps
}

impl ConnectionStatus {
    fn new(release: &Release, account: Option<&SessionAccount>) -> Self {
        let toolkit = release.slug.to_string();
        let is_active = account.is_some() || release.no_auth();
        let status_message = match account {
            Some(account) => format!("{toolkit} is connected with account {}", account.record.id),
            None if release.no_auth() => format!("{toolkit} needs no account"),
            None => format!("{toolkit} is not connected: use SERVICE_MANAGE_CONNECTIONS"),
        };
        Self {
            toolkit,
            description: release.description.clone(),
            has_active_connection: is_active,
            connection_details: account.map_or_else(
                || json!({}),
                |account| json!({ "connected_account_id": account.record.id, "status": "ACTIVE" }),
            ),
            account_type: account.map(|account| {
                if account.is_shared() {
                    "SHARED"
                } else {
                    "PRIVATE"
                }
            }),
            status_message,
        }
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
    let id = given.and_then(|given| given.id.as_deref());
    let id = id.filter(|id| !wants_new && !id.trim().is_empty());
    SearchWorkflow {
        workflow: Workflow::new(id),
        generate_id: id.is_none(),
    }
}
