//! Parts of the configuration of a session that are no selections. A change of a block of settings
//! keeps what it does not send.

use app::agents::{ManageConnections, MultiAccount, Preload, Workbench};
use http::members::present;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One value, or several.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(untagged, expecting = "expected a string or a list of strings")]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[schema(as = SessionConnectionsRequest)]
pub(crate) struct ConnectionsBody {
    /// True without it.
    enable: Option<bool>,
    /// URL to which browsers are redirected after a connection; null removes it.
    #[serde(default, deserialize_with = "present")]
    callback_url: Option<Option<String>>,
    /// False without it.
    enable_wait_for_connections: Option<bool>,
    /// True without it. It has no effect, because no tool of a session removes connections.
    enable_connection_removal: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
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
    /// 2 to 10; null removes it. Accounts that wait for their user count.
    #[serde(default, deserialize_with = "present")]
    max_accounts_per_toolkit: Option<Option<f64>>,
    require_explicit_selection: Option<bool>,
}

#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(expecting = "an object such as {\"tools\": [\"GITHUB_GET_ME\"]}")]
#[schema(as = SessionPreloadRequest)]
pub(crate) struct PreloadBody {
    /// Slugs of tools, or `all`.
    tools: Option<OneOrMany>,
}

/// A switch, which is on without a value.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[schema(as = SessionSwitchRequest)]
pub(crate) struct SwitchBody {
    enable: Option<bool>,
}

#[derive(Debug, Clone, Deserialize, ToSchema)]
#[schema(as = SessionExecuteSwitchRequest)]
pub(crate) struct MultiExecuteBody {
    /// True without it.
    enable_multi_execute: Option<bool>,
}

impl OneOrMany {
    pub(super) fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(one) => vec![one],
            Self::Many(many) => many,
        }
    }
}

/// Replaces a setting if a change sends it.
fn set<T>(setting: &mut T, sent: Option<T>) {
    if let Some(sent) = sent {
        *setting = sent;
    }
}

impl ConnectionsBody {
    pub(super) fn apply(&self, connections: &mut ManageConnections) {
        set(&mut connections.enabled, self.enable);
        if let Some(url) = &self.callback_url {
            connections.callback_url = url.clone().filter(|url| !url.is_empty());
        }
        let wait = self.enable_wait_for_connections;
        set(&mut connections.wait_for_connections, wait);
        let removal = self.enable_connection_removal;
        set(&mut connections.connection_removal, removal);
    }
}

impl WorkbenchBody {
    /// Returns true if the request sends that scripts may send proxy requests.
    pub(super) fn asks_for_proxy(&self) -> bool {
        self.enable_proxy_execution == Some(true)
    }

    pub(super) fn apply(&self, workbench: &mut Workbench) {
        set(&mut workbench.enabled, self.enable);
        set(&mut workbench.proxy_execution, self.enable_proxy_execution);
        set(&mut workbench.tool_execution, self.enable_tool_execution);
        let threshold = self.auto_offload_threshold.map(Some);
        set(&mut workbench.auto_offload_threshold, threshold);
        let size = self.sandbox_size.clone().map(Some);
        set(&mut workbench.sandbox_size, size);
    }
}

impl MultiAccountBody {
    pub(super) fn apply(&self, accounts: &mut Option<MultiAccount>) {
        let most = self.max_accounts_per_toolkit;
        let has_value = self.enable.or(self.require_explicit_selection).is_some();
        if accounts.is_none() && !has_value && most.flatten().is_none() {
            return;
        }
        let accounts = accounts.get_or_insert_default();
        set(&mut accounts.enabled, self.enable);
        if let Some(most) = most {
            accounts.max_accounts = most.map(|most| most as u32);
        }
        let explicit = self.require_explicit_selection;
        set(&mut accounts.explicit_selection, explicit);
    }
}

impl SwitchBody {
    pub(super) fn apply_inverted(&self, disabled: &mut bool) {
        set(disabled, self.enable.map(|enable| !enable));
    }

    pub(super) fn apply(&self, enabled: &mut Option<bool>) {
        set(enabled, self.enable.map(Some));
    }
}

impl MultiExecuteBody {
    pub(super) fn apply_inverted(&self, disabled: &mut bool) {
        set(disabled, self.enable_multi_execute.map(|enable| !enable));
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
