//! Configuration of a session in requests.

use std::collections::BTreeMap;

use app::{
    agents::{
        Config, Filter, ManageConnections, MultiAccount, Permission, Preload, Tags, ToolFilter,
        Workbench,
    },
    core::ids::{AccountId, AuthConfigId},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::approval::{DefaultPermission, PermissionsBody};
use crate::{
    api::auth_configs::types::present_or_null,
    http::{ApiResult, errors},
};

/// Selection of toolkits: those to enable, or those to disable.
// An unknown member is refused, because a misspelled one would permit everything.
#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SessionToolkitsRequest)]
pub(crate) struct Selection {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    enable: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    disable: Option<Vec<String>>,
    /// Toolkits whose calls the user must approve.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    require_approval: Option<Vec<String>>,
}

/// Selection of the tools of a toolkit: those to enable, those to disable, or by tags.
#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SessionToolsFilterRequest)]
pub(crate) struct ToolSelection {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    enable: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    disable: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    tags: Option<TagsBody>,
    /// Tools whose calls the user must approve.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    require_approval: Option<Vec<String>>,
}

/// Tags that tools must have; a list, or those to enable and those to disable.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = SessionTagsRequest)]
pub(crate) enum TagsBody {
    List(Vec<String>),
    Selection(TagSelection),
}

#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SessionTagSelection)]
pub(crate) struct TagSelection {
    /// A tool needs at least one of them.
    #[serde(default)]
    enable: Vec<String>,
    /// A tool may have none of them.
    #[serde(default)]
    disable: Vec<String>,
    /// Calls of tools with one of them need the approval of the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    require_approval: Vec<String>,
}

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
    /// True without it.
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
    enable: Option<bool>,
}

#[derive(Debug, Clone, Deserialize, ToSchema)]
#[schema(as = SessionExecuteSwitchRequest)]
pub(crate) struct MultiExecuteBody {
    /// True without it.
    enable_multi_execute: Option<bool>,
}

/// Parts of the configuration of a session. Each part that is sent replaces the one before; null
/// restores its default.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = SessionConfigRequest)]
pub(crate) struct Blocks {
    /// The toolkits of the session; all of them without it.
    #[serde(default, deserialize_with = "present_or_null")]
    #[schema(value_type = Option<Selection>)]
    toolkits: Option<Option<Selection>>,
    /// Tools by toolkit.
    #[serde(default, deserialize_with = "present_or_null")]
    #[schema(value_type = Option<BTreeMap<String, ToolSelection>>)]
    tools: Option<Option<BTreeMap<String, ToolSelection>>>,
    /// Tags that tools of all toolkits must have.
    #[serde(default, deserialize_with = "present_or_null")]
    #[schema(value_type = Option<TagsBody>)]
    tags: Option<Option<TagsBody>>,
    /// Auth configs with which accounts are connected, by toolkit.
    #[serde(default, deserialize_with = "present_or_null")]
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    auth_configs: Option<Option<BTreeMap<String, String>>>,
    /// Accounts to which the session is restricted, by toolkit.
    #[serde(default, deserialize_with = "present_or_null")]
    #[schema(value_type = Option<BTreeMap<String, OneOrMany>>)]
    connected_accounts: Option<Option<BTreeMap<String, OneOrMany>>>,
    #[serde(default, deserialize_with = "present_or_null")]
    #[schema(value_type = Option<ConnectionsBody>)]
    manage_connections: Option<Option<ConnectionsBody>>,
    #[serde(default, deserialize_with = "present_or_null")]
    #[schema(value_type = Option<WorkbenchBody>)]
    workbench: Option<Option<WorkbenchBody>>,
    #[serde(default, deserialize_with = "present_or_null")]
    #[schema(value_type = Option<MultiAccountBody>)]
    multi_account: Option<Option<MultiAccountBody>>,
    /// Tools that are shown beside the meta tools.
    #[serde(default, deserialize_with = "present_or_null")]
    #[schema(value_type = Option<PreloadBody>)]
    preload: Option<Option<PreloadBody>>,
    #[serde(default, deserialize_with = "present_or_null")]
    #[schema(value_type = Option<SwitchBody>)]
    search: Option<Option<SwitchBody>>,
    #[serde(default, deserialize_with = "present_or_null")]
    #[schema(value_type = Option<MultiExecuteBody>)]
    execute: Option<Option<MultiExecuteBody>>,
    #[serde(default, deserialize_with = "present_or_null")]
    #[schema(value_type = Option<SwitchBody>)]
    proxy_execute: Option<Option<SwitchBody>>,
}

/// A change of a configuration: the parts that a request replaces.
#[derive(Debug, Default)]
pub(crate) struct Change {
    toolkits: Option<Option<Filter>>,
    tools: Option<BTreeMap<String, ToolFilter>>,
    tags: Option<Tags>,
    approval_toolkits: Option<Vec<String>>,
    approval_tools: Option<BTreeMap<String, Vec<String>>>,
    approval_tags: Option<Vec<String>>,
    approval_of_all: Option<bool>,
    approval_once: Option<bool>,
    permissions: Option<BTreeMap<String, Permission>>,
    auth_configs: Option<BTreeMap<String, AuthConfigId>>,
    connected_accounts: Option<BTreeMap<String, Vec<AccountId>>>,
    manage_connections: Option<ManageConnections>,
    workbench: Option<Workbench>,
    multi_account: Option<Option<MultiAccount>>,
    preload: Option<Option<Preload>>,
    search_disabled: Option<bool>,
    multi_execute_disabled: Option<bool>,
    proxy_execute: Option<Option<bool>>,
}

impl Change {
    /// Replaces the parts in a configuration.
    pub(crate) fn apply(&self, config: &mut Config) {
        macro_rules! replace {
            ($($part:ident),+) => {
                $(if let Some(part) = &self.$part {
                    config.$part = part.clone();
                })+
            };
        }
        replace!(
            toolkits,
            tools,
            tags,
            approval_toolkits,
            approval_tools,
            approval_tags,
            approval_of_all,
            approval_once,
            permissions,
            auth_configs,
            connected_accounts,
            manage_connections,
            workbench,
            multi_account,
            preload,
            search_disabled,
            multi_execute_disabled,
            proxy_execute
        );
    }
}

impl Blocks {
    /// Returns the change that the request asks for, with its permissions.
    pub(crate) fn into_change(self, permissions: Option<PermissionsBody>) -> ApiResult<Change> {
        let Self {
            toolkits,
            tools,
            tags,
            ..
        } = &self;
        let default = permissions.as_ref().map(|given| given.default);
        Ok(Change {
            approval_toolkits: approval(toolkits, |body| body.require_approval.clone()),
            approval_tools: approval(tools, |body| Some(approval_tools(body))),
            approval_tags: approval(tags, |body| Some(body.approval())),
            approval_of_all: default.map(|default| default != DefaultPermission::AllowAll),
            approval_once: default.map(|default| default == DefaultPermission::AskOncePerSession),
            permissions: permissions.map(|given| given.overrides.unwrap_or_default()),
            toolkits: replaced(self.toolkits, Selection::into_filter)?,
            tools: replaced(self.tools, into_filters)?,
            tags: replaced(self.tags, |body| Ok(body.into_tags()))?,
            auth_configs: replaced(self.auth_configs, auth_configs)?,
            connected_accounts: replaced(self.connected_accounts, accounts)?,
            manage_connections: replaced(self.manage_connections, |body| Ok(body.into()))?,
            workbench: replaced(self.workbench, |body| Ok(body.into()))?,
            multi_account: replaced(self.multi_account, |body| Ok(Some(body.into())))?,
            preload: replaced(self.preload, |body| Ok(body.into_preload()))?,
            search_disabled: replaced(self.search, |body| Ok(body.enable == Some(false)))?,
            multi_execute_disabled: replaced(self.execute, |body| {
                Ok(body.enable_multi_execute == Some(false))
            })?,
            proxy_execute: replaced(self.proxy_execute, |body| Ok(body.enable))?,
        })
    }
}

/// Returns the new value of a part: none if it was not sent, and the default for null.
fn replaced<B, T: Default>(
    part: Option<Option<B>>,
    into: impl Fn(B) -> ApiResult<T>,
) -> ApiResult<Option<T>> {
    match part {
        None => Ok(None),
        Some(None) => Ok(Some(T::default())),
        Some(Some(body)) => into(body).map(Some),
    }
}

/// Returns what a part requires approval for: nothing if the part was not sent, and an empty list for
/// null.
fn approval<B, T: Default>(
    part: &Option<Option<B>>,
    required: impl Fn(&B) -> Option<T>,
) -> Option<T> {
    let body = part.as_ref()?.as_ref();
    Some(body.and_then(required).unwrap_or_default())
}

fn approval_tools(body: &BTreeMap<String, ToolSelection>) -> BTreeMap<String, Vec<String>> {
    let with_approval = body.iter().filter_map(|(toolkit, selection)| {
        let tools = selection.require_approval.clone()?;
        Some((toolkit.clone(), tools))
    });
    with_approval.collect()
}

impl Selection {
    fn into_filter(self) -> ApiResult<Option<Filter>> {
        match (self.enable, self.disable) {
            (None, None) => Ok(None),
            (Some(enable), None) => Ok(Some(Filter::Enable(enable))),
            (None, Some(disable)) => Ok(Some(Filter::Disable(disable))),
            (Some(_), Some(_)) => Err(errors::session_invalid(
                "toolkits: cannot have both `enable` and `disable`",
            )
            .into()),
        }
    }

    /// Returns the selection of a configuration, if it has one.
    pub(crate) fn from_config(config: &Config) -> Option<Self> {
        let (enable, disable) = match &config.toolkits {
            Some(Filter::Enable(slugs)) => (Some(slugs.clone()), None),
            Some(Filter::Disable(slugs)) => (None, Some(slugs.clone())),
            None => (None, None),
        };
        let approval = &config.approval_toolkits;
        let require_approval = (!approval.is_empty()).then(|| approval.clone());
        let is_selected = config.toolkits.is_some() || require_approval.is_some();
        is_selected.then_some(Self {
            enable,
            disable,
            require_approval,
        })
    }
}

fn into_filters(body: BTreeMap<String, ToolSelection>) -> ApiResult<BTreeMap<String, ToolFilter>> {
    let mut filters = BTreeMap::new();
    for (toolkit, selection) in body {
        let filter = match (selection.enable, selection.disable, selection.tags) {
            (None, None, None) => continue,
            (Some(enable), None, None) => ToolFilter::Enable(enable),
            (None, Some(disable), None) => ToolFilter::Disable(disable),
            (None, None, Some(tags)) if tags.approval().is_empty() => {
                ToolFilter::Tags(tags.into_tags())
            }
            (None, None, Some(_)) => {
                let problem = "tags.require_approval: name the tools in `require_approval`";
                return Err(errors::session_invalid(format!("tools.{toolkit}.{problem}")).into());
            }
            _ => {
                let problem = "must have one of `enable`, `disable` and `tags`";
                return Err(errors::session_invalid(format!("tools.{toolkit}: {problem}")).into());
            }
        };
        filters.insert(toolkit, filter);
    }
    Ok(filters)
}

impl ToolSelection {
    /// Returns the selections of a configuration, by toolkit.
    pub(crate) fn from_config(config: &Config) -> BTreeMap<String, Self> {
        let mut selections = BTreeMap::<_, Self>::new();
        for (toolkit, filter) in &config.tools {
            let selection = selections.entry(toolkit.clone()).or_default();
            match filter {
                ToolFilter::Enable(slugs) => selection.enable = Some(slugs.clone()),
                ToolFilter::Disable(slugs) => selection.disable = Some(slugs.clone()),
                ToolFilter::Tags(tags) => selection.tags = Some(TagsBody::from_tags(tags, &[])),
            }
        }
        for (toolkit, tools) in &config.approval_tools {
            let selection = selections.entry(toolkit.clone()).or_default();
            selection.require_approval = Some(tools.clone());
        }
        selections
    }
}

impl TagsBody {
    /// Returns the tags of tools whose calls need approval.
    fn approval(&self) -> Vec<String> {
        match self {
            Self::List(_) => Vec::new(),
            Self::Selection(selection) => selection.require_approval.clone(),
        }
    }

    fn into_tags(self) -> Tags {
        match self {
            Self::List(enable) => Tags {
                enable,
                disable: Vec::new(),
            },
            Self::Selection(selection) => Tags {
                enable: selection.enable,
                disable: selection.disable,
            },
        }
    }

    /// Returns the tags of a configuration.
    pub(crate) fn from_tags(tags: &Tags, approval: &[String]) -> Self {
        Self::Selection(TagSelection {
            enable: tags.enable.clone(),
            disable: tags.disable.clone(),
            require_approval: approval.to_vec(),
        })
    }
}

fn auth_configs(body: BTreeMap<String, String>) -> ApiResult<BTreeMap<String, AuthConfigId>> {
    let parse = |(toolkit, id): (String, String)| Ok((toolkit, AuthConfigId::parse(&id)?));
    body.into_iter().map(parse).collect()
}

fn accounts(body: BTreeMap<String, OneOrMany>) -> ApiResult<BTreeMap<String, Vec<AccountId>>> {
    let parse = |(toolkit, ids): (String, OneOrMany)| {
        let ids = ids.into_vec();
        let ids = ids.iter().map(|id| AccountId::parse(id));
        Ok((toolkit, ids.collect::<Result<_, _>>()?))
    };
    body.into_iter().map(parse).collect()
}

impl OneOrMany {
    fn into_vec(self) -> Vec<String> {
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
    fn into_preload(self) -> Option<Preload> {
        match self.tools? {
            OneOrMany::One(all) if all.eq_ignore_ascii_case("all") => Some(Preload::All),
            tools => Some(Preload::Tools(tools.into_vec())),
        }
    }
}
