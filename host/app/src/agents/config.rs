//! Configuration of a session, as stored.
//!
//! Slugs of toolkits are in lower case and those of tools in upper case, as in the catalog.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::core::ids::{AccountId, AuthConfigId};

/// Maximum size of a configuration as JSON, in bytes.
pub const MAX_CONFIG_BYTES: usize = 128 << 10;

/// The hints by which a session filters tools.
pub const KNOWN_TOOL_HINTS: [&str; 6] = [
    "readOnlyHint",
    "destructiveHint",
    "idempotentHint",
    "openWorldHint",
    "createHint",
    "updateHint",
];

/// Configuration of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// The project's own identifier for the user.
    pub user_id: String,
    /// Toolkits of the session; all of them without it.
    pub toolkits: Option<Filter>,
    /// Tools of single toolkits.
    pub tools: BTreeMap<String, ToolFilter>,
    /// Hints that tools must and must not have.
    pub tags: Tags,
    /// Toolkits whose tools run only after the user has approved the call.
    pub approval_toolkits: Vec<String>,
    /// Tools that run only after the user has approved the call, by toolkit.
    pub approval_tools: BTreeMap<String, Vec<String>>,
    /// Hints of tools that run only after the user has approved the call.
    pub approval_tags: Vec<String>,
    /// As `approval_tags`, for the tools of single toolkits.
    pub approval_toolkit_tags: BTreeMap<String, Vec<String>>,
    /// True if the tags and approvals of a toolkit override `tags` and `approval_tags`. False in a
    /// configuration whose `tools` and `tags` an earlier version stored: both apply there.
    pub toolkit_overrides_tags: bool,
    /// True if every tool without a permission of its own runs only after the user has approved the
    /// call.
    pub approval_of_all: bool,
    /// True if such an approval holds for the later calls of the tool in the session.
    pub approval_once: bool,
    /// Permissions of single tools and toolkits, by slug. That of a tool goes first.
    pub permissions: BTreeMap<String, Permission>,
    /// Auth configs with which accounts are connected, by toolkit.
    pub auth_configs: BTreeMap<String, AuthConfigId>,
    /// Accounts to which the session is restricted, by toolkit. The first is the default one.
    pub connected_accounts: BTreeMap<String, Vec<AccountId>>,
    /// Management of connections by the assistant.
    pub manage_connections: ManageConnections,
    /// The workbench.
    pub workbench: Workbench,
    /// Use of several accounts of one toolkit.
    pub multi_account: Option<MultiAccount>,
    /// Tools that are listed next to the meta tools.
    pub preload: Option<Preload>,
    /// True if the session does not offer the search for tools.
    pub search_disabled: bool,
    /// True if the session does not offer the parallel execution of several tools.
    pub multi_execute_disabled: bool,
    /// False if proxy requests are refused; they are permitted without it.
    pub proxy_execute: Option<bool>,
    /// True if the client asked that scripts reach no other server. It is only shown: no workbench has
    /// a network.
    pub restrict_egress: bool,
}

impl Config {
    /// Returns the form that all configurations with the same effect and the same view have.
    pub(super) fn normalized(mut self) -> Self {
        self.preload = self
            .preload
            .filter(|preload| *preload != Preload::Tools(Vec::new()));
        self.tags.is_list = false;
        for filter in self.tools.values_mut() {
            if let ToolFilter::Tags(tags) = filter {
                tags.is_list = false;
            }
        }
        // Without tags of the session, there is nothing that those of a toolkit could override.
        if self.tags == Tags::default() && self.approval_tags.is_empty() {
            self.toolkit_overrides_tags = !self.tools.is_empty()
                || !self.approval_tools.is_empty()
                || !self.approval_toolkit_tags.is_empty();
        }
        self
    }

    /// Returns true if another configuration asks for the approval of the same calls.
    pub(super) fn asks_as(&self, other: &Self) -> bool {
        self.approval_toolkits == other.approval_toolkits
            && self.approval_tools == other.approval_tools
            && self.approval_tags == other.approval_tags
            && self.approval_toolkit_tags == other.approval_toolkit_tags
            && self.toolkit_overrides_tags == other.toolkit_overrides_tags
            && self.approval_of_all == other.approval_of_all
            && self.approval_once == other.approval_once
            && self.permissions == other.permissions
    }
}

/// Permission of the calls of a tool. A later one is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// They run.
    AlwaysAllow,
    /// They run after the user has approved one of them.
    AskOnce,
    /// Each one runs after the user has approved it.
    AskAlways,
    /// The session does not permit them.
    AlwaysDeny,
}

/// Selection from a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    /// Only these.
    Enable(Vec<String>),
    /// All but these.
    Disable(Vec<String>),
}

/// Selection from the tools of a toolkit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolFilter {
    /// Only these tools, whatever their hints are.
    Enable(Vec<String>),
    /// All but these tools.
    Disable(Vec<String>),
    /// Tools with certain hints.
    Tags(Tags),
}

/// Hints that a tool must and must not have.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tags {
    /// Hints of which a tool needs at least one; no restriction if empty.
    pub enable: Vec<String>,
    /// Hints that exclude a tool.
    pub disable: Vec<String>,
    /// True if a request lists the hints of `enable` alone, without an object around them. Decides their
    /// path in errors.
    #[serde(skip)]
    pub is_list: bool,
}

/// Management of connections by the assistant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ManageConnections {
    /// True if the session has the meta tool that connects accounts.
    pub enabled: bool,
    /// Address to which browsers are redirected after a connection.
    pub callback_url: Option<String>,
    /// True if the session has the meta tool that waits for connections.
    pub wait_for_connections: bool,
    /// Setting of the client, shown but without effect: no tool of a session removes connections.
    pub connection_removal: bool,
}

impl Default for ManageConnections {
    fn default() -> Self {
        Self {
            enabled: true,
            callback_url: None,
            wait_for_connections: false,
            connection_removal: true,
        }
    }
}

/// The workbench of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Workbench {
    /// True if the session has the meta tools of the workbench.
    pub enabled: bool,
    /// True if scripts may send proxy requests.
    pub proxy_execution: bool,
    /// True if scripts may execute tools.
    pub tool_execution: bool,
    /// Number of characters from which the result of a tool becomes a file of the workbench.
    pub auto_offload_threshold: Option<f64>,
    /// Size that the client asked for: `standard`, `medium`, `large` or `xlarge`.
    pub sandbox_size: Option<String>,
}

impl Default for Workbench {
    fn default() -> Self {
        Self {
            enabled: true,
            proxy_execution: true,
            tool_execution: true,
            auto_offload_threshold: None,
            sandbox_size: None,
        }
    }
}

/// Use of several accounts of one toolkit in a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MultiAccount {
    /// True if calls may name one of several accounts.
    pub enabled: bool,
    /// Maximum number of accounts of a toolkit, 2 to 10.
    pub max_accounts: Option<u32>,
    /// True if a call must name its account where the toolkit has several.
    pub explicit_selection: bool,
}

/// Tools that are listed next to the meta tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preload {
    /// Every permitted tool.
    All,
    /// These tools, as far as they are permitted.
    Tools(Vec<String>),
}
