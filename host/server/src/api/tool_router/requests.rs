//! Requests of tool router sessions.

use app::agents::Config;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{
    approval::PermissionsBody,
    config::{Blocks, Change},
    inline_tools::{InlineTool, InlineToolkit, InlineTools},
};
use crate::{
    api::connected_accounts::sharing::Share,
    http::{ApiResult, errors},
};

/// A session to create.
#[derive(Deserialize, ToSchema)]
#[schema(as = SessionCreateRequest)]
pub(crate) struct CreateBody {
    /// The project's own identifier for the user.
    #[schema(required, nullable = false)]
    user_id: Option<String>,
    #[serde(flatten)]
    blocks: Blocks,
    pub experimental: Option<Experiment>,
}

/// A change of a session.
#[derive(Deserialize, ToSchema)]
#[schema(as = SessionPatchRequest)]
pub(crate) struct PatchBody {
    #[serde(flatten)]
    blocks: Blocks,
    experimental: Option<PatchedExperiment>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = SessionPatchExperiment)]
struct PatchedExperiment {
    permissions: Option<PermissionsBody>,
}

impl PatchBody {
    /// Returns the change that the request asks for.
    pub(crate) fn into_change(self) -> ApiResult<Change> {
        let permissions = self.experimental.and_then(|given| given.permissions);
        self.blocks.into_change(permissions)
    }
}

/// Tools that the client itself runs.
#[derive(Deserialize, ToSchema)]
#[schema(as = AttachSession)]
pub(crate) struct AttachBody {
    pub experimental: Option<Experiment>,
}

#[derive(Default, Deserialize, ToSchema)]
#[schema(as = SessionExperiment)]
pub(crate) struct Experiment {
    custom_toolkits: Option<Vec<InlineToolkit>>,
    custom_tools: Option<Vec<InlineTool>>,
    permissions: Option<PermissionsBody>,
}

impl Experiment {
    /// Returns the client's own tools, if the request has any.
    pub(crate) fn inline_tools(experiment: Option<&Self>) -> ApiResult<Option<InlineTools>> {
        let Some(own) = experiment else {
            return Ok(None);
        };
        let toolkits = own.custom_toolkits.clone().unwrap_or_default();
        let tools = own.custom_tools.clone().unwrap_or_default();
        InlineTools::new(toolkits, tools)
    }
}

impl CreateBody {
    /// Returns the configuration of the session.
    pub(crate) fn into_config(self) -> ApiResult<Config> {
        let user = self.user_id.unwrap_or_default().trim().to_owned();
        if user.is_empty() || user.contains('\0') {
            return Err(errors::session_invalid("user_id: must be a text").into());
        }
        let permissions = self.experimental.and_then(|given| given.permissions);
        let mut config = Config {
            user_id: app::accounts::parse_user_id(Some(&user))?,
            ..Config::default()
        };
        self.blocks.into_change(permissions)?.apply(&mut config);
        Ok(config)
    }
}

/// Filters of the toolkits of a session.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ToolkitQuery {
    /// These toolkits, whether the session permits them or not.
    #[serde(default)]
    pub toolkits: Vec<String>,
    /// Only those for which the user has an active account.
    pub is_connected: Option<bool>,
    /// Part of slug, name or description.
    pub search: Option<String>,
}

/// Toolkit to connect.
#[derive(Deserialize, ToSchema)]
#[schema(as = LinkInSession)]
pub(crate) struct LinkBody {
    pub toolkit: String,
    /// URL to which the user's browser is redirected at the end; that of the session without it.
    pub callback_url: Option<String>,
    pub alias: Option<String>,
    pub experimental: Option<Share>,
}
