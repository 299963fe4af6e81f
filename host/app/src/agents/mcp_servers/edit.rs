//! Creation, change and deletion of MCP servers.

use std::collections::BTreeSet;

use store::{Batch, Query, Record};
use uuid::Uuid;

use super::{COLLECTION, INSTANCES, McpServer, cache, get, toolkit_of_config};
use crate::{
    App, Error, Result,
    accounts::auth_configs,
    agents::errors,
    catalog::LATEST,
    core::{ids::AuthConfigId, shown_slug},
    projects::{
        self, Project,
        record_limits::{self, RecordKind},
    },
    work::erase_list,
};

/// Number of instances of a deleted server that are erased in one batch.
const REMOVAL_BATCH_SIZE: u64 = 100;
/// Minimum and maximum characters of a name.
const NAME_CHARS: std::ops::RangeInclusive<usize> = 4..=30;

/// Changes of an MCP server, or the content of a new one. Absent fields stay as they are.
#[derive(Debug, Default)]
pub struct Changes {
    /// Display name: 4 to 30 letters, digits, blanks and hyphens.
    pub name: Option<String>,
    /// Slugs of toolkits, in any case.
    pub toolkits: Option<Vec<String>>,
    /// Ids of auth configs.
    pub auth_configs: Option<Vec<String>>,
    /// Slugs of tools, in any case.
    pub allowed_tools: Option<Vec<String>>,
    /// True if assistants get the tools that connect accounts.
    pub with_helper_tools: Option<bool>,
    /// True to pin the tools to the versions that are published now, which accepts those that were
    /// published since an earlier pin; false to follow the latest versions.
    pub pin_tools: Option<bool>,
}

/// Creates an MCP server. Fails if the name is invalid, if a toolkit, tool or auth config does not
/// exist, or if two auth configs are of one toolkit.
pub async fn create(app: &App, project: &Project, new: &Changes) -> Result<Record<McpServer>> {
    let id = Uuid::new_v4().to_string();
    let empty = McpServer::default();
    let server = with_changes(app, project, empty, new).await?;
    record_limits::admit(app, &project.id, RecordKind::McpServer, &COLLECTION).await?;
    Ok(projects::insert(app, project, &id, server).await?)
}

/// Changes an MCP server. Fails as [`create`], and if the server does not exist.
pub async fn change(
    app: &App,
    project: &Project,
    id: &str,
    changes: &Changes,
) -> Result<Record<McpServer>> {
    let changed = app.store.change(&COLLECTION, id, || async {
        let mut server = get(app, project, id).await?;
        server.body = with_changes(app, project, server.body, changes).await?;
        let now = app.clock.now();
        Ok::<_, Error>((Batch::at(now).update(&server), server.updated(now)))
    });
    Ok(cache::invalidate(app, id, changed).await?)
}

async fn with_changes(
    app: &App,
    project: &Project,
    mut server: McpServer,
    changes: &Changes,
) -> Result<McpServer> {
    let mut problems = Vec::new();
    if let Some(name) = &changes.name {
        (server.name, server.folded_name) = checked_name(name, &mut problems);
    }
    let mut toolkits = named_toolkits(app, project, &server).await?;
    if let Some(slugs) = &changes.toolkits {
        let catalog = app.catalog.snapshot();
        toolkits = checked_slugs(
            "toolkits",
            slugs,
            |slug| Some(catalog.toolkit(slug)?.slug.to_string()),
            |slug| catalog.similar_toolkit(slug),
            &mut problems,
        );
    }
    if let Some(slugs) = &changes.allowed_tools {
        let catalog = app.catalog.snapshot();
        let tools = checked_slugs(
            "allowed_tools",
            slugs,
            |slug| Some(catalog.find_tool(slug, LATEST)?.tool.slug.to_string()),
            |slug| catalog.similar_tool(slug),
            &mut problems,
        );
        server.allowed_tools = tools.into_iter().collect();
    }
    if let Some(ids) = &changes.auth_configs {
        server.auth_configs = checked_auth_configs(app, project, ids, &mut problems).await?;
    }
    errors::refuse_problems(problems, errors::mcp_server_invalid)?;
    server.named_toolkits = Some(toolkits.clone());
    toolkits.extend(derived_toolkits(app, project, &server).await?);
    server.toolkits = toolkits.into_iter().collect();
    if let Some(with_helper_tools) = changes.with_helper_tools {
        server.with_helper_tools = with_helper_tools;
    }
    if let Some(is_pinned) = changes.pin_tools {
        // The newest version that this server knows; its own clock may differ from the publisher's.
        server.tools_as_of = is_pinned.then(|| app.catalog.snapshot().as_of());
    }
    server.changed_at = app.clock.now();
    Ok(server)
}

/// Returns the toolkits that were named. An older record does not tell them apart from the others:
/// those of its auth configs and of its allowed tools are taken as not named.
async fn named_toolkits(
    app: &App,
    project: &Project,
    server: &McpServer,
) -> Result<BTreeSet<String>> {
    if let Some(named) = &server.named_toolkits {
        return Ok(named.clone());
    }
    let derived = derived_toolkits(app, project, server).await?;
    let toolkits = server.toolkits.iter();
    let named = toolkits.filter(|slug| !derived.contains(*slug));
    Ok(named.cloned().collect())
}

/// Returns the toolkits of the auth configs and of the allowed tools.
async fn derived_toolkits(
    app: &App,
    project: &Project,
    server: &McpServer,
) -> Result<BTreeSet<String>> {
    let mut toolkits = BTreeSet::new();
    // A stored tool may be gone by now, and adds no toolkit then.
    for tool in &server.allowed_tools {
        let toolkit = app.catalog.snapshot().toolkit_of(tool).cloned();
        toolkits.extend(toolkit.map(|toolkit| toolkit.slug.to_string()));
    }
    for id in &server.auth_configs {
        toolkits.extend(toolkit_of_config(app, project, id).await?);
    }
    Ok(toolkits)
}

/// Returns a name, and the name in lower case.
fn checked_name(name: &str, problems: &mut Vec<String>) -> (String, String) {
    let name = name.trim();
    let is_plain = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == ' ' || c == '-');
    if !NAME_CHARS.contains(&name.len()) || !is_plain {
        problems.push("name: must have 4 to 30 letters, digits, blanks and hyphens".to_owned());
    }
    (name.to_owned(), name.to_lowercase())
}

/// Returns the slugs of a field as the catalog spells them. `find` returns `None` for an unknown slug, and
/// `similar` the question whether another was meant.
fn checked_slugs(
    field: &str,
    given: &[String],
    find: impl Fn(&str) -> Option<String>,
    similar: impl Fn(&str) -> String,
    problems: &mut Vec<String>,
) -> BTreeSet<String> {
    let mut slugs = BTreeSet::new();
    for (index, slug) in given.iter().enumerate() {
        match find(slug.trim()) {
            Some(found) => drop(slugs.insert(found)),
            None => {
                let similar = similar(slug);
                problems.push(format!(
                    "{field}[{index}]: {} does not exist{similar}",
                    shown_slug(slug)
                ));
            }
        }
    }
    slugs
}

/// Returns the ids of auth configs, each of another toolkit.
async fn checked_auth_configs(
    app: &App,
    project: &Project,
    given: &[String],
    problems: &mut Vec<String>,
) -> Result<Vec<AuthConfigId>> {
    let mut ids = Vec::new();
    let mut toolkits = BTreeSet::new();
    for (index, text) in given.iter().enumerate() {
        let Ok(id) = AuthConfigId::parse(text.trim()) else {
            problems.push(format!(
                "auth_config_ids[{index}]: is not the id of an auth config"
            ));
            continue;
        };
        if ids.contains(&id) {
            continue;
        }
        match auth_configs::find(&app.store, &project.id, &id).await? {
            None => problems.push(format!("auth_config_ids[{index}]: {id} does not exist")),
            Some(config) if !toolkits.insert(config.body.toolkit.clone()) => {
                let toolkit = config.body.toolkit;
                let problem = format!("{id} is the second auth config of toolkit {toolkit}");
                problems.push(format!("auth_config_ids[{index}]: {problem}"));
            }
            Some(_) => ids.push(id),
        }
    }
    Ok(ids)
}

/// Deletes an MCP server and its instances. The accounts of its users stay. Fails if the server
/// does not exist.
pub async fn remove(app: &App, project: &Project, id: &str) -> Result<()> {
    let removed = app.store.change(&COLLECTION, id, || async {
        let batch = Batch::at(app.clock.now()).purge(&get(app, project, id).await?);
        Ok::<_, Error>((batch, ()))
    });
    cache::invalidate(app, id, removed).await?;
    // No instance of it can be created anymore.
    let instances = Query::for_project(project.id.as_str()).is("server", id);
    erase_list(app, &INSTANCES, instances, REMOVAL_BATCH_SIZE).await
}
