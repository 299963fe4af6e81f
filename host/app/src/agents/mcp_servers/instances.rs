//! Instances of MCP servers: users who have connected an account for every auth config of a server.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use store::{
    Batch, Collection, CommitError, Document, EditError, Erasure, Field, Kind, Listed, Query,
    Record, Time, Window,
};
use uuid::Uuid;

use super::{McpServer, Order, get};
use crate::{
    App, Error, Result,
    accounts::{self, Status},
    agents::errors,
    core::truncate,
    projects::{
        Project, count_record,
        record_limits::{self, RecordKind},
    },
    work::erase_list,
};

pub(crate) static COLLECTION: Collection = Collection {
    name: "mcp_instances",
    erasure: Erasure::Project,
    fields: &[
        Field::new("server", Kind::Text),
        Field::new("folded_user", Kind::Text),
        Field::new("changed_at", Kind::Time),
        Field::unique("identity", Kind::Text),
    ],
};

/// An instance, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Instance {
    /// Id of the server.
    pub server: String,
    /// User id, which also identifies the instance in its server.
    pub user_id: String,
    /// User id in lower case, for search.
    folded_user: String,
    /// Server and user.
    identity: String,
    /// Time of the creation, by which lists are sorted as those of servers are.
    pub changed_at: Time,
}

impl Document for Instance {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// Creates the instance of a user. Fails if the server does not exist, the user lacks an active
/// account of one of its auth configs, or the user already has an instance.
pub async fn create_instance(
    app: &App,
    project: &Project,
    server: &str,
    user_id: &str,
) -> Result<Record<Instance>> {
    let user = accounts::parse_user_id(Some(user_id))?;
    let id = Uuid::new_v4().to_string();
    record_limits::admit(app, &project.id, RecordKind::McpInstance, &COLLECTION).await?;
    let created = app.store.change(&COLLECTION, &id, || async {
        let server = get(app, project, server).await?;
        check_connected(app, project, &server, &user).await?;
        let now = app.clock.now();
        let instance = Instance {
            server: server.id.clone(),
            folded_user: user.to_lowercase(),
            identity: identity(&server.id, &user),
            user_id: user.clone(),
            changed_at: now,
        };
        count_record(app, project, &instance)?;
        let batch = Batch::at(now)
            .check(&server)
            .insert(project.id.as_str(), &id, &instance);
        Ok::<_, Error>((batch, ()))
    });
    created.await.map_err(|cause| match cause {
        EditError::Commit(CommitError::Taken {
            field: "identity", ..
        }) => errors::mcp_instance_exists(truncate(&user)),
        other => other.into(),
    })?;
    find_instance(app, project, server, &id).await
}

fn identity(server: &str, user: &str) -> String {
    format!("{server} {user}")
}

/// Checks that a user has an active account of each auth config of a server.
async fn check_connected(
    app: &App,
    project: &Project,
    server: &Record<McpServer>,
    user: &str,
) -> Result<()> {
    let mut missing = Vec::new();
    for config in &server.body.auth_configs {
        let filter = accounts::Filter {
            users: vec![user.to_owned()],
            statuses: vec![Status::Active],
            auth_configs: vec![config.to_string()],
            ..accounts::Filter::default()
        };
        let active = accounts::list(app, project, &filter, Window::first(1)).await?;
        if active.items.is_empty() {
            missing.push(config.to_string());
        }
    }
    errors::refuse_problems(missing, |missing| {
        errors::mcp_instance_not_connected(truncate(user), missing.join(", "))
    })
}

/// Returns a page of the instances of a server, and their total number.
pub async fn list_instances(
    app: &App,
    project: &Project,
    server: &str,
    search: &str,
    order: Order,
    window: Window,
) -> Result<Listed<Record<Instance>>> {
    let mut query = Query::for_project(project.id.as_str())
        .is("server", server)
        .window(window);
    if !search.is_empty() {
        query = query.contains("folded_user", &search.to_lowercase());
    }
    Ok(app.store.list(&order.apply(query)).await?)
}

/// Returns the number of instances of each of these servers.
pub async fn count_instances(
    app: &App,
    project: &Project,
    servers: &[&str],
) -> Result<HashMap<String, u64>> {
    let all = Query::for_project(project.id.as_str());
    let counts = app.store.count_by::<Instance>(&all, "server", servers);
    Ok(counts.await?)
}

/// Returns an instance of a server by its id or by its user. Fails if the instance does not exist.
pub(crate) async fn find_instance(
    app: &App,
    project: &Project,
    server: &str,
    id_or_user: &str,
) -> Result<Record<Instance>> {
    let owner = project.id.as_str();
    let by_user = Query::for_project(owner).is("identity", identity(server, id_or_user));
    let instance = match app.store.first::<Instance>(by_user).await? {
        Some(instance) => Some(instance),
        None => app.store.get::<Instance>(owner, id_or_user).await?,
    };
    instance
        .filter(|instance| instance.body.server == server)
        .ok_or_else(|| errors::mcp_instance_not_found(truncate(id_or_user)))
}

/// Erases an instance, unless it is erased already.
pub(crate) async fn remove_instance(app: &App, project: &Project, id: &str) -> Result<()> {
    let instance = Query::for_project(project.id.as_str()).is("id", id);
    erase_list(app, &COLLECTION, instance, 1).await
}
