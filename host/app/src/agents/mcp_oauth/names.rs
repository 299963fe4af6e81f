//! Names of an MCP endpoint, which a project member reads before consenting.

use super::{McpServer, Resource, Session};
use crate::{
    App, Result,
    agents::{Filter, errors},
    core::ids::ProjectId,
    projects,
};

/// Names of an MCP endpoint.
#[derive(Debug)]
pub struct EndpointNames {
    /// Display name of the MCP server, or `None` for a session.
    pub server: Option<String>,
    /// User of the address or of the session, if there is one.
    pub user: Option<String>,
    /// Name of the project.
    pub project: String,
    /// Toolkits whose tools the endpoint has.
    pub toolkits: NamedToolkits,
}

/// Toolkits by their display names.
#[derive(Debug)]
pub enum NamedToolkits {
    /// Only these.
    Only(Vec<String>),
    /// All but these.
    AllBut(Vec<String>),
}

/// Returns the names of an endpoint, or `None` if it does not exist.
pub async fn endpoint_names(app: &App, resource: &Resource) -> Result<Option<EndpointNames>> {
    let (project, server, user, toolkits) = match resource {
        Resource::Server { id, selection } => {
            let Some(found) = app.store.lookup::<McpServer>(id).await? else {
                return Ok(None);
            };
            let toolkits = NamedToolkits::Only(names(app, &found.body.toolkits));
            let user = selection.user_id.clone();
            (found.project, Some(found.body.name), user, toolkits)
        }
        Resource::Session(id) => {
            let Some(found) = app.store.lookup::<Session>(id.as_str()).await? else {
                return Ok(None);
            };
            let config = found.body.config;
            let toolkits = match &config.toolkits {
                Some(Filter::Enable(enabled)) => NamedToolkits::Only(names(app, enabled)),
                Some(Filter::Disable(disabled)) => NamedToolkits::AllBut(names(app, disabled)),
                None => NamedToolkits::AllBut(Vec::new()),
            };
            (found.project, None, Some(config.user_id), toolkits)
        }
    };
    match projects::lookup_cached(app, &ProjectId::parse(&project)?).await {
        Ok(project) => Ok(Some(EndpointNames {
            server,
            user,
            project: project.stored.name.clone(),
            toolkits,
        })),
        Err(cause) if cause.is(&errors::PROJECT_NOT_FOUND) => Ok(None),
        Err(cause) => Err(cause),
    }
}

/// Returns the display names of toolkits, or the slug of a toolkit that is not in the catalog.
fn names(app: &App, slugs: &[String]) -> Vec<String> {
    let catalog = app.catalog.snapshot();
    slugs
        .iter()
        .map(|slug| {
            let toolkit = catalog.toolkit(slug);
            toolkit.map_or_else(|| slug.clone(), |toolkit| toolkit.current().name.clone())
        })
        .collect()
}
