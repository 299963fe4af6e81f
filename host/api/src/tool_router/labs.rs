//! The first form of sessions, which older clients create.

use app::{
    agents::{Config, Filter, ManageConnections, sessions},
    core::ids::AuthConfigId,
};
use http::{ApiResult, Created, IN_TABLE, Json, ProjectKey, errors};
use serde::Deserialize;
use utoipa::ToSchema;

use super::requests::session_user;

/// A session to create.
#[derive(Deserialize, ToSchema)]
#[schema(as = LabsSession)]
pub(crate) struct LabsBody {
    user_id: String,
    #[serde(default)]
    config: LabsConfig,
}

#[derive(Default, Deserialize, ToSchema)]
struct LabsConfig {
    /// True if the assistant does not manage connections.
    manually_manage_connections: Option<bool>,
    /// All of them if it is absent, none if it is empty.
    toolkits: Option<Vec<LabsToolkit>>,
}

#[derive(Deserialize, ToSchema)]
struct LabsToolkit {
    toolkit: String,
    auth_config_id: Option<String>,
}

view! {
    #[schema(as = LabsSessionCreated)]
    pub(crate) struct LabsView from (id: String, url: String) {
        session_id: String = id,
        chat_session_mcp_url: String = url.clone(),
        tool_router_instance_mcp_url: String = url,
    }
}

impl TryFrom<LabsBody> for Config {
    type Error = http::ApiError;

    fn try_from(body: LabsBody) -> ApiResult<Self> {
        let has_toolkits = body.config.toolkits.is_some();
        let toolkits = body.config.toolkits.unwrap_or_default();
        let mut config = Self {
            user_id: session_user(&body.user_id)?,
            manage_connections: ManageConnections {
                enabled: body.config.manually_manage_connections != Some(true),
                ..ManageConnections::default()
            },
            ..Self::default()
        };
        let slugs: Vec<_> = toolkits.iter().map(|entry| entry.toolkit.clone()).collect();
        config.toolkits = has_toolkits.then_some(Filter::Enable(slugs));
        let with_config = toolkits
            .into_iter()
            .enumerate()
            .filter_map(|(index, entry)| {
                let id = AuthConfigId::parse(&entry.auth_config_id?);
                let path = format!("config.toolkits[{index}].auth_config_id");
                let id = id.map_err(|error| error.at(path));
                Some(id.map(|id| (entry.toolkit, id)))
            });
        config.auth_configs = errors::collect_all(with_config)?;
        Ok(config)
    }
}

/// Creates a session of a user, as older clients do.
#[utoipa::path(post, path = IN_TABLE)]
pub(crate) async fn create(
    key: ProjectKey,
    Json(body): Json<LabsBody>,
) -> ApiResult<Created<LabsView>> {
    let session = sessions::create(key.app(), &key.project, body.try_into()?).await?;
    let url = sessions::mcp_url(key.app(), &session.id);
    Ok(Created(LabsView::new(session.id, url)))
}
