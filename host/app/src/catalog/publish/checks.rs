//! Checks of a component before it is published.

use std::sync::Arc;

use manifest::Manifest;
use sandbox::Installed;

use crate::{
    App, Result,
    catalog::{Snapshot, check, errors},
    core::truncate,
};

/// Maximum number of conflicting tools of another toolkit that an error names.
const MAX_NAMED_CONFLICTS: usize = 5;

/// Checks that the component declares the slug and the version it is published under.
pub(super) fn identity_problems(slug: &str, version: &str, component: &[u8]) -> Vec<String> {
    // The sandbox reports an unreadable manifest together with the other problems.
    let Ok(manifest) = manifest::extract(component) else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    if manifest.slug != slug {
        problems.push(format!(
            "slug: the component is `{}`, it cannot be published as `{slug}`",
            manifest.slug
        ));
    }
    if manifest.version.as_str() != version {
        let actual = manifest.version;
        problems.push(format!(
            "version: the component is {actual}, it cannot be published as {}",
            truncate(version)
        ));
    }
    problems
}

/// Refuses tools whose names belong to another toolkit.
///
/// A toolkit owns its tools and every name that starts with its slug. Of two toolkits `a` and `a_b`,
/// only the second can add new tools that start with `A_B_`, and it cannot be published after `a` has
/// such tools. A toolkit keeps the names that it already has.
pub(super) fn check_tool_names(snapshot: &Snapshot, manifest: &Manifest) -> Result<()> {
    let mut problems = Vec::new();
    for tool in &manifest.tools {
        if let Some(name_owner) = name_owner(snapshot, &manifest.slug, &tool.slug)
            .filter(|name_owner| ***name_owner != *manifest.slug)
        {
            problems.push(format!(
                "tools.{}: the name is used by toolkit {name_owner}",
                tool.slug
            ));
        }
    }
    if snapshot.toolkit(&manifest.slug).is_none() {
        problems.extend(slug_problems(snapshot, &manifest.slug));
    }
    errors::refuse_problems(problems, errors::component_invalid)
}

/// Lists tools of other toolkits whose names would belong to a new toolkit.
fn slug_problems(snapshot: &Snapshot, slug: &str) -> Vec<String> {
    let prefix = format!("{}_", slug.to_ascii_uppercase());
    // A longer slug that starts with this one owns its names.
    let mut used: Vec<_> = snapshot
        .tools
        .iter()
        .filter(|(tool, name_owner)| tool.starts_with(&prefix) && name_owner.len() < slug.len())
        .collect();
    used.sort();
    let problems = used
        .iter()
        .take(MAX_NAMED_CONFLICTS)
        .map(|(tool, name_owner)| {
            format!(
                "slug: toolkit {name_owner} has the tool {tool}, whose name begins with this slug"
            )
        });
    problems.collect()
}

/// Finds the toolkit that owns a tool name of a toolkit: the toolkit that has the tool, or another
/// one whose longer slug is a prefix of the name.
fn name_owner<'a>(snapshot: &'a Snapshot, toolkit: &str, tool: &str) -> Option<&'a Arc<str>> {
    let tool = tool.to_ascii_uppercase();
    let has = snapshot.tools.get(tool.as_str());
    has.or_else(|| {
        let longer = tool
            .rmatch_indices('_')
            .map(|(end, _)| end)
            .take_while(|end| *end > toolkit.len());
        let mut slugs = longer.map(|end| tool[..end].to_ascii_lowercase());
        slugs
            .find_map(|slug| snapshot.toolkits.get(slug.as_str()))
            .map(|toolkit| &toolkit.slug)
    })
}

/// Refuses schemas that cannot be used. The schemas of one toolkit at a time are compiled, on a
/// separate thread.
pub(super) async fn check_schemas(app: &App, installed: Installed) -> Result<Installed> {
    let permit = app.catalog.compiling.clone().acquire_owned().await;
    let compiled = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let problems = unusable_schemas(&installed.manifest);
        errors::refuse_problems(problems, errors::component_invalid)?;
        Ok(installed)
    });
    compiled.await.unwrap_or_else(|broken| {
        Err(errors::unavailable(format!(
            "the schemas cannot be compiled: {broken}"
        )))
    })
}

fn unusable_schemas(manifest: &Manifest) -> Vec<String> {
    let mut problems = Vec::new();
    for tool in &manifest.tools {
        let output = (!tool.loose_output).then_some(("output", &tool.output));
        for (name, schema) in [("input", &tool.input)].into_iter().chain(output) {
            if let Some(problem) = check::schema_problem(schema) {
                problems.push(format!("tools.{}.{name}: {problem}", tool.slug));
            }
        }
    }
    problems
}
