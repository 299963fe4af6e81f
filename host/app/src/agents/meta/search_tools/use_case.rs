//! A use case and the plan for it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::executor;
use crate::{
    agents::{Config, meta::MetaTool},
    catalog::RankedTool,
};

/// Maximum length of a use case, in characters.
pub const MAX_USE_CASE_CHARS: usize = 1_024;
/// Maximum length of the known fields of a use case, in characters.
pub const MAX_KNOWN_FIELDS_CHARS: usize = 500;
/// Maximum number of tools that are recommended for a use case.
const MAX_MAIN_TOOLS: usize = 3;
/// Share of the best score from which a tool is recommended.
const MAIN_SHARE: f32 = 0.7;
/// Share of the best score from which a tool is related.
const RELATED_SHARE: f32 = 0.25;
/// Share of a use case that one tool matches, from which a task is easy.
const EASY_COVERAGE: f32 = 0.5;

/// Task that a tool shall do.
#[derive(Debug, Deserialize)]
pub struct UseCase {
    /// The use case, in one sentence.
    pub use_case: String,
    /// Values that are known already.
    pub known_fields: Option<String>,
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
    /// `easy`, `medium`, or `hard` if no tool was found.
    pub task_difficulty: &'static str,
    /// Steps of the task.
    pub recommended_plan_steps: Vec<String>,
    /// Effects to beware of.
    pub known_pitfalls: Vec<String>,
    /// Reason of a failed search.
    pub error: Option<String>,
}

impl UseCase {
    /// Returns the reason why the use case cannot be searched for.
    pub(super) fn problem(&self) -> Option<String> {
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
    pub(super) fn failed(index: usize, query: &UseCase, problem: &str) -> Self {
        Self {
            index,
            use_case: query.shown(),
            reasoning: problem.to_owned(),
            task_difficulty: "hard",
            error: Some(problem.to_owned()),
            ..Self::default()
        }
    }

    pub(super) fn new(
        index: usize,
        query: &UseCase,
        tools: &[RankedTool],
        unconnected: &BTreeSet<String>,
        config: &Config,
    ) -> Self {
        let best = tools.first().map_or(0.0, |tool| tool.score);
        let near = tools
            .iter()
            .filter(|tool| tool.score >= best * RELATED_SHARE);
        let (main, related): (Vec<_>, Vec<_>) = near
            .enumerate()
            .partition(|(index, tool)| *index < MAX_MAIN_TOOLS && tool.score >= best * MAIN_SHARE);
        let mut toolkits: Vec<String> = Vec::new();
        for (_, tool) in main.iter().chain(&related) {
            let toolkit = tool.found.release.slug.to_string();
            if !toolkits.contains(&toolkit) {
                toolkits.push(toolkit);
            }
        }
        Self {
            index,
            use_case: query.shown(),
            primary_tool_slugs: slugs(&main),
            related_tool_slugs: slugs(&related),
            toolkits,
            reasoning: reasoning(&main),
            task_difficulty: difficulty(tools.first()),
            recommended_plan_steps: tools
                .first()
                .map_or_else(Vec::new, |best| plan(best, query, unconnected, config)),
            known_pitfalls: pitfalls(&main),
            error: None,
        }
    }
}

/// Says for each tool which words of the use case it matches, and in which fields.
fn slugs(tools: &[(usize, &RankedTool)]) -> Vec<String> {
    tools
        .iter()
        .map(|(_, tool)| tool.found.tool.slug.to_string())
        .collect()
}

fn reasoning(main: &[(usize, &RankedTool)]) -> String {
    if main.is_empty() {
        return "No tool that the session permits has the words of the use case: say it in other \
                words, or name the toolkit."
            .to_owned();
    }
    let reasons = main.iter().map(|(_, tool)| {
        let words: Vec<_> = tool
            .matches
            .iter()
            .map(|one| {
                let mut fields: Vec<_> = one.fields.iter().map(|field| field.as_str()).collect();
                // Two fields of the index have one name, and others may lie between them.
                fields.sort_unstable();
                fields.dedup();
                format!("`{}` ({})", one.word, fields.join(", "))
            })
            .collect();
        format!("{} matches {}.", tool.found.tool.slug, words.join(", "))
    });
    reasons.collect::<Vec<_>>().join(" ")
}

fn difficulty(best: Option<&RankedTool>) -> &'static str {
    match best {
        Some(best) if best.coverage >= EASY_COVERAGE => "easy",
        Some(_) => "medium",
        None => "hard",
    }
}

fn plan(
    best: &RankedTool,
    query: &UseCase,
    unconnected: &BTreeSet<String>,
    config: &Config,
) -> Vec<String> {
    let (slug, toolkit) = (&best.found.tool.slug, &best.found.release.slug);
    let mut steps = Vec::new();
    if unconnected.contains(&**toolkit) && !best.found.tool.no_auth {
        steps.push(if MetaTool::ManageConnections.is_enabled(config) {
            format!(
                "Connect {toolkit} with SERVICE_MANAGE_CONNECTIONS, and wait until the user has done it."
            )
        } else {
            format!("Wait until the user has connected {toolkit}.")
        });
    }
    let known = query.known_fields.as_deref().map(str::trim);
    steps.push(match known.filter(|known| !known.is_empty()) {
        Some(known) => format!("Fill the arguments of {slug} from its schema and from: {known}."),
        None => format!("Fill the arguments of {slug} from its schema."),
    });
    steps.push(format!("Execute {slug}{}.", executor(config)));
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
