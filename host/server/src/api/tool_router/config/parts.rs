//! Parts of the configuration of a session that are no selections.

use app::agents::{ManageConnections, MultiAccount, Preload, Workbench};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One value, or several.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SessionConnectionsRequest)]
pub(crate) struct ConnectionsBody {
    /// True without it.
    enable: Option<bool>,
    /// URL to which browsers are redirected after a connection.
    callback_url: Option<String>,
    /// False without it.
    enable_wait_for_connections: Option<bool>,
    /// True without it. It has no effect, because no tool of a session removes connections.
    enable_connection_removal: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SessionWorkbenchRequest)]
pub(crate) struct WorkbenchBody {
    /// True without it.
    enable: Option<bool>,
    /// True without it.
    enable_proxy_execution: Option<bool>,
    /// True without it.
    enable_tool_execution: Option<bool>,
    /// Number of characters from which a result becomes a file.
    auto_offload_threshold: Option<f64>,
    /// `standard`, `medium`, `large` or `xlarge`; every workbench has the same limits.
    sandbox_size: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[schema(as = SessionMultiAccountRequest)]
pub(crate) struct MultiAccountBody {
    enable: Option<bool>,
    max_accounts_per_toolkit: Option<f64>,
    require_explicit_selection: Option<bool>,
}

#[derive(Debug, Clone, Deserialize, ToSchema)]
#[schema(as = SessionPreloadRequest)]
pub(crate) struct PreloadBody {
    /// Slugs of tools, or `all`.
    tools: Option<OneOrMany>,
}

/// A switch, which is on without a value.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[schema(as = SessionSwitchRequest)]
pub(crate) struct SwitchBody {
    pub(super) enable: Option<bool>,
}

#[derive(Debug, Clone, Deserialize, ToSchema)]
#[schema(as = SessionExecuteSwitchRequest)]
pub(crate) struct MultiExecuteBody {
    /// True without it.
    pub(super) enable_multi_execute: Option<bool>,
}

impl OneOrMany {
    pub(super) fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(one) => vec![one],
            Self::Many(many) => many,
        }
    }
}

impl From<ConnectionsBody> for ManageConnections {
    fn from(body: ConnectionsBody) -> Self {
        Self {
            enabled: body.enable.unwrap_or(true),
            callback_url: body.callback_url.filter(|url| !url.is_empty()),
            wait_for_connections: body.enable_wait_for_connections.unwrap_or(false),
            connection_removal: body.enable_connection_removal.unwrap_or(true),
        }
    }
}

impl From<WorkbenchBody> for Workbench {
    fn from(body: WorkbenchBody) -> Self {
        Self {
            enabled: body.enable.unwrap_or(true),
            proxy_execution: body.enable_proxy_execution.unwrap_or(true),
            tool_execution: body.enable_tool_execution.unwrap_or(true),
            auto_offload_threshold: body.auto_offload_threshold,
            sandbox_size: body.sandbox_size,
        }
    }
}

impl From<MultiAccountBody> for MultiAccount {
    fn from(body: MultiAccountBody) -> Self {
        Self {
            enabled: body.enable.unwrap_or(false),
            max_accounts: body.max_accounts_per_toolkit.map(|most| most as u32),
            explicit_selection: body.require_explicit_selection.unwrap_or(false),
        }
    }
}

impl PreloadBody {
    pub(super) fn into_preload(self) -> Option<Preload> {
        match self.tools? {
            OneOrMany::One(all) if all.eq_ignore_ascii_case("all") => Some(Preload::All),
            tools => Some(Preload::Tools(tools.into_vec())),
        }
    }
}
