//! Usage statistics: the number of executions of one project and of the whole organization.

use std::{collections::BTreeMap, sync::Arc};

use app::{
    Error, Listed, Window,
    projects::{self, Project},
    tools::log::{Filter, usage},
};
use axum::{extract::State, response::Response};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    Server,
    http::{
        auth::{OrganizationKey, ProjectKey},
        error::ApiResult,
        path::Path,
        reply::Json,
        scaffold::ok,
    },
    shapes,
};

/// The only counted entity, and the unit of its quantity.
const ENTITY: &str = "tool_execution";
const UNIT: &str = "execution";
/// Number of groups returned by default; below, its maximum.
const GROUPS: usize = 100;
const MOST: usize = 1_000;

#[derive(Deserialize, ToSchema)]
#[schema(as = UsageAsked)]
pub(crate) struct Asked {
    from: Option<f64>,
    to: Option<f64>,
    entity_types: Option<Vec<String>>,
    group_by: Option<String>,
    order_by: Option<OrderBy>,
    order_direction: Option<Direction>,
    limit: Option<f64>,
    filters: Option<Filters>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = UsageFilters)]
struct Filters {
    user_id: Option<Vec<String>>,
    session_id: Option<Vec<String>>,
    project_id: Option<Vec<String>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = UsageOrder)]
enum OrderBy {
    Key,
    TotalQuantity,
    EventCount,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = UsageDirection)]
enum Direction {
    Asc,
    Desc,
}

/// Returns the usage totals of a project.
#[utoipa::path(
    post,
    path = "/project/usage/summary",
    request_body = Option<Asked>,
    responses((status = 200, description = "The sums", body = shapes::UsageSummary)),
)]
pub(crate) async fn project_summary(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Json(asked): Json<Asked>,
) -> ApiResult<Response> {
    let counts = of_project(&server, &key.project, &asked).await?;
    ok(&summary(&asked, &counts))
}

/// Returns the usage totals of the organization.
#[utoipa::path(
    post,
    path = "/org/usage/summary",
    operation_id = "organisation_summary",
    request_body = Option<Asked>,
    responses((status = 200, description = "The sums", body = shapes::UsageSummary)),
    security(("organization" = [])),
)]
pub(crate) async fn organization_summary(
    key: OrganizationKey,
    State(server): State<Arc<Server>>,
    Json(asked): Json<Asked>,
) -> ApiResult<Response> {
    let counts = of_organization(&server, &key, &asked).await?;
    ok(&summary(&asked, &counts))
}

/// Returns a project's usage in groups.
#[utoipa::path(
    post,
    path = "/project/usage/{entity_type}",
    request_body = Option<Asked>,
    responses((status = 200, description = "The groups", body = shapes::UsageGroups)),
)]
pub(crate) async fn project_groups(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(entity): Path<String>,
    Json(asked): Json<Asked>,
) -> ApiResult<Response> {
    is_counted(&entity)?;
    let counts = of_project(&server, &key.project, &asked).await?;
    ok(&groups(&asked, counts))
}

/// Returns the organization's usage in groups.
#[utoipa::path(
    post,
    path = "/org/usage/{entity_type}",
    operation_id = "organisation_groups",
    request_body = Option<Asked>,
    responses((status = 200, description = "The groups", body = shapes::UsageGroups)),
    security(("organization" = [])),
)]
pub(crate) async fn organization_groups(
    key: OrganizationKey,
    State(server): State<Arc<Server>>,
    Path(entity): Path<String>,
    Json(asked): Json<Asked>,
) -> ApiResult<Response> {
    is_counted(&entity)?;
    let counts = of_organization(&server, &key, &asked).await?;
    ok(&groups(&asked, counts))
}

fn is_counted(entity: &str) -> ApiResult<()> {
    if entity == ENTITY {
        Ok(())
    } else {
        Err(Error::UsageNotFound(entity.chars().take(80).collect()).into())
    }
}

async fn of_project(
    server: &Server,
    project: &Project,
    asked: &Asked,
) -> ApiResult<BTreeMap<String, u64>> {
    let mut counts = BTreeMap::new();
    count(server, project, asked, &mut counts).await?;
    Ok(counts)
}

async fn of_organization(
    server: &Server,
    key: &OrganizationKey,
    asked: &Asked,
) -> ApiResult<BTreeMap<String, u64>> {
    let only = asked
        .filters
        .as_ref()
        .and_then(|filters| filters.project_id.as_ref());
    let mut counts = BTreeMap::new();
    let mut window = Window::first(500);
    loop {
        let Listed { items, next, .. } =
            projects::list(&server.app, &key.organization, window.clone()).await?;
        for project in items
            .iter()
            .filter(|own| only.is_none_or(|only| only.iter().any(|id| id == own.id.as_str())))
        {
            count(server, project, asked, &mut counts).await?;
        }
        let Some(last) = next else { return Ok(counts) };
        window = window.after(last);
    }
}

async fn count(
    server: &Server,
    project: &Project,
    asked: &Asked,
    counts: &mut BTreeMap<String, u64>,
) -> ApiResult<()> {
    let by = match asked.group_by.as_deref() {
        None | Some("tool" | "tool_slug") => usage::Grouping::Tool,
        Some("toolkit" | "toolkit_slug") => usage::Grouping::Toolkit,
        Some("user_id") => usage::Grouping::User,
        Some("status") => usage::Grouping::Status,
        Some("project_id") => usage::Grouping::Project,
        Some(_) => {
            return Err(Error::invalid(
                "group_by: must be tool_slug, toolkit_slug, user_id, status or project_id",
            )
            .into());
        }
    };
    let filters = asked.filters.as_ref();
    // No execution belongs to a session yet, so a filter by session matches none.
    if filters.is_some_and(|filters| filters.session_id.is_some()) {
        return Ok(());
    }
    let whole = |time: f64| time as i64;
    let filter = Filter {
        from: asked.from.map(whole),
        to: asked.to.map(whole),
        ..Filter::default()
    };
    let users = filters
        .and_then(|filters| filters.user_id.as_deref())
        .unwrap_or_default();
    Ok(usage::count(&server.app, project, &filter, users, by, counts).await?)
}

fn summary(asked: &Asked, counts: &BTreeMap<String, u64>) -> Value {
    let wanted = asked
        .entity_types
        .as_ref()
        .is_none_or(|types| types.iter().any(|one| one == ENTITY));
    let total: u64 = counts.values().sum();
    let sums = json!({"unit": UNIT, "total_quantity": total.to_string(), "event_count": total});
    json!({"entities": if wanted { json!({ENTITY: sums}) } else { json!({}) }})
}

fn groups(asked: &Asked, counts: BTreeMap<String, u64>) -> Value {
    let total: u64 = counts.values().sum();
    let mut groups: Vec<_> = counts.into_iter().collect();
    // Groups arrive in ascending order of their key. By number, the greatest comes first unless the
    // request says otherwise.
    let by_key = asked.order_by == Some(OrderBy::Key);
    if !by_key {
        groups.sort_by_key(|(_, count)| *count);
    }
    let direction = asked.order_direction.unwrap_or(if by_key {
        Direction::Asc
    } else {
        Direction::Desc
    });
    if direction == Direction::Desc {
        groups.reverse();
    }
    let most = asked
        .limit
        .map_or(GROUPS, |limit| (limit as usize).clamp(1, MOST));
    let shown = groups.into_iter().take(most);
    let shown: Vec<_> = shown
        .map(|(key, count)| json!({"key": key, "total_quantity": count.to_string(), "event_count": count}))
        .collect();
    json!({
        "entity_type": ENTITY,
        "unit": UNIT,
        "total_quantity": total.to_string(),
        "event_count": total,
        "groups": shown,
    })
}
