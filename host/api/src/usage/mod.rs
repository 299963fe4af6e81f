//! Usage statistics: the number of executions of one project and of the whole organization.

mod types;

use std::collections::BTreeMap;

use app::{
    App, Listed, Window,
    core::shown_slug,
    projects::{self, Project},
    runs::log::{Field, Filter, usage},
};
use http::{ApiResult, IN_TABLE, Json, OptionalJson, OrganizationKey, Path, ProjectKey, errors};

use self::types::{COUNTED_ENTITY, Direction, GroupsView, OrderBy, SummaryView, UsageRequest};

/// Number of groups in a response to a request without a limit.
const DEFAULT_GROUPS: usize = 100;
/// Maximum number of groups in a response.
const MAX_GROUPS: usize = 1_000;
/// Number of projects that are read in one query.
const PROJECTS_PER_QUERY: u64 = 500;

/// Returns the usage totals of a project.
#[utoipa::path(post, path = IN_TABLE)]
pub(crate) async fn project_summary(
    key: ProjectKey,
    OptionalJson(request): OptionalJson<UsageRequest>,
) -> ApiResult<Json<SummaryView>> {
    let counts = count_project(key.app(), &key.project, &request).await?;
    Ok(Json(summary(&request, &counts)))
}

/// Returns the usage totals of the organization.
#[utoipa::path(post, path = IN_TABLE, operation_id = "organisation_summary")]
pub(crate) async fn organization_summary(
    key: OrganizationKey,
    OptionalJson(request): OptionalJson<UsageRequest>,
) -> ApiResult<Json<SummaryView>> {
    let counts = count_organization(&key, &request).await?;
    Ok(Json(summary(&request, &counts)))
}

/// Returns a project's usage in groups.
#[utoipa::path(post, path = IN_TABLE)]
pub(crate) async fn project_groups(
    key: ProjectKey,
    Path(entity): Path<String>,
    OptionalJson(request): OptionalJson<UsageRequest>,
) -> ApiResult<Json<GroupsView>> {
    check_entity(&entity)?;
    let counts = count_project(key.app(), &key.project, &request).await?;
    Ok(Json(groups(&request, counts)))
}

/// Returns the organization's usage in groups.
#[utoipa::path(post, path = IN_TABLE, operation_id = "organisation_groups")]
pub(crate) async fn organization_groups(
    key: OrganizationKey,
    Path(entity): Path<String>,
    OptionalJson(request): OptionalJson<UsageRequest>,
) -> ApiResult<Json<GroupsView>> {
    check_entity(&entity)?;
    let counts = count_organization(&key, &request).await?;
    Ok(Json(groups(&request, counts)))
}

fn check_entity(entity: &str) -> ApiResult<()> {
    if entity == COUNTED_ENTITY {
        Ok(())
    } else {
        Err(errors::usage_not_found(shown_slug(entity)).into())
    }
}

async fn count_project(
    app: &App,
    project: &Project,
    request: &UsageRequest,
) -> ApiResult<BTreeMap<String, u64>> {
    let mut counts = BTreeMap::new();
    count(app, project, request, &mut counts).await?;
    Ok(counts)
}

async fn count_organization(
    key: &OrganizationKey,
    request: &UsageRequest,
) -> ApiResult<BTreeMap<String, u64>> {
    let filters = request.filters.as_ref();
    let only = filters.and_then(|filters| filters.project_id.as_ref());
    let mut counts = BTreeMap::new();
    let mut window = Window::first(PROJECTS_PER_QUERY);
    loop {
        let Listed { items, next, .. } =
            projects::list(key.app(), &key.organization, window.clone()).await?;
        for project in &items {
            if only.is_none_or(|only| only.iter().any(|id| id == project.id.as_str())) {
                count(key.app(), project, request, &mut counts).await?;
            }
        }
        let Some(last) = next else { return Ok(counts) };
        window = window.after(last);
    }
}

async fn count(
    app: &App,
    project: &Project,
    request: &UsageRequest,
    counts: &mut BTreeMap<String, u64>,
) -> ApiResult<()> {
    let grouping = grouping(request.group_by.as_deref())?;
    let filter = Filter {
        from: request.from.map(|time| time as i64),
        to: request.to.map(|time| time as i64),
        ..Filter::default()
    };
    let filters = request.filters.as_ref();
    let users = filters.and_then(|filters| filters.user_id.as_deref());
    let sessions = filters.and_then(|filters| filters.session_id.as_deref());
    let selected = [
        (Field::User, users.unwrap_or_default()),
        (Field::Session, sessions.unwrap_or_default()),
    ];
    Ok(usage::count(app, project, &filter, &selected, grouping, counts).await?)
}

fn grouping(name: Option<&str>) -> ApiResult<usage::Grouping> {
    Ok(match name {
        None | Some("tool" | "tool_slug") => usage::Grouping::Tool,
        Some("toolkit" | "toolkit_slug") => usage::Grouping::Toolkit,
        Some("user_id") => usage::Grouping::User,
        Some("status") => usage::Grouping::Status,
        Some("project_id") => usage::Grouping::Project,
        Some(_) => {
            return Err(errors::invalid(
                "group_by: must be tool_slug, toolkit_slug, user_id, status or project_id",
            )
            .into());
        }
    })
}

fn summary(request: &UsageRequest, counts: &BTreeMap<String, u64>) -> SummaryView {
    let types = request.entity_types.as_ref();
    let is_selected = types.is_none_or(|types| types.iter().any(|name| name == COUNTED_ENTITY));
    SummaryView::new(is_selected.then(|| counts.values().sum()))
}

fn groups(request: &UsageRequest, counts: BTreeMap<String, u64>) -> GroupsView {
    let total = counts.values().sum();
    let mut groups: Vec<_> = counts.into_iter().collect();
    // Groups arrive in ascending order of their key. By number, the greatest comes first unless the
    // request says otherwise.
    let by_key = request.order_by == Some(OrderBy::Key);
    if !by_key {
        groups.sort_by_key(|(_, count)| *count);
    }
    let direction = request.order_direction.unwrap_or(if by_key {
        Direction::Asc
    } else {
        Direction::Desc
    });
    if direction == Direction::Desc {
        groups.reverse();
    }
    let limit = request.limit.map_or(DEFAULT_GROUPS, |limit| {
        (limit as usize).clamp(1, MAX_GROUPS)
    });
    GroupsView::new(groups.into_iter().take(limit), total)
}
