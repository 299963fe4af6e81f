//! Configurations of sessions. Each session of a project has one, under the id of the session and
//! named by its user.

use app::{
    Record,
    agents::{Session, sessions},
    core::{clock::iso, ids::SessionId},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

use super::tool_router::config::{Selection, TagsBody, ToolSelection};
use crate::http::{ApiResult, IN_TABLE, Json, Page, Path, ProjectKey, Query};

/// Filters of the list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Part of the name.
    search: Option<String>,
    /// Archived ones, of which there are none: a configuration is deleted with its session.
    archived: Option<bool>,
}

view! {
    #[schema(as = SessionConfigItem)]
    struct ItemView from session: &Record<Session> {
        id: String = session.id.clone(),
        /// The user of the session.
        name: String = session.body.config.user_id.clone(),
        archived: bool = false,
        #[schema(format = DateTime)] created_at: String = iso(session.created_at),
        #[schema(format = DateTime)] updated_at: String = iso(session.updated_at),
    }
}

/// A page of configurations.
#[derive(Serialize, ToSchema)]
#[schema(as = SessionConfigItems)]
pub(crate) struct ListView {
    items: Vec<ItemView>,
    /// Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next_cursor: Option<String>,
}

view! {
    /// A configuration, in the form in which a session is created with it.
    #[schema(as = SessionConfigDetail)]
    pub(crate) struct DetailView from session: &Record<Session> {
        #[serde(flatten)] item: ItemView = session.into(),
        description: String = format!("session of user {}", session.body.config.user_id),
        config: FiltersView = session.into(),
    }
}

view! {
    #[schema(as = SessionConfigFilters)]
    struct FiltersView from session: &Record<Session> where {
        let config = &session.body.config;
    } {
        toolkits?: Option<Selection> = Selection::from_config(config),
        tools: BTreeMap<String, ToolSelection> = ToolSelection::from_config(config),
        tags: TagsBody = TagsBody::from_config(config),
    }
}

/// Lists the configurations of sessions, newest first.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn list(
    key: ProjectKey,
    Query(query): Query<ListQuery>,
    page: Page,
) -> ApiResult<Json<ListView>> {
    if query.archived == Some(true) {
        return Ok(Json(ListView {
            items: Vec::new(),
            next_cursor: None,
        }));
    }
    let search = query.search.unwrap_or_default();
    let window = page.window(false)?;
    let found = sessions::list(key.app(), &key.project, &search, window).await?;
    Ok(Json(ListView {
        items: found.items.iter().map(ItemView::from).collect(),
        next_cursor: found.next.map(|next| page.next_after(next)),
    }))
}

/// Reads the configuration of a session.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn read(
    key: ProjectKey,
    Path(id): Path<SessionId>,
) -> ApiResult<Json<DetailView>> {
    let session = sessions::get(key.app(), &key.project, &id).await?;
    Ok(Json((&session).into()))
}
