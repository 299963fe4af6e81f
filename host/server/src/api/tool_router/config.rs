//! Configuration of a session in requests.

use std::collections::BTreeMap;

use app::{
    agents::{
        Config, Filter, ManageConnections, MultiAccount, Preload, Tags, ToolFilter, Workbench,
    },
    core::ids::{AccountId, AuthConfigId},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

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
    #[serde(skip_serializing)]
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
    #[serde(skip_serializing)]
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
    #[serde(default, skip_serializing)]
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
    /// Returns the change that the request asks for.
    pub(crate) fn into_change(self) -> ApiResult<Change> {
        Ok(Change {
            toolkits: replaced(self.toolkits, Selection::into_filter)?,
            tools: replaced(self.tools, tools)?,
            tags: replaced(self.tags, TagsBody::into_tags)?,
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

/// Refuses permissions that ask for the approval of calls or forbid tools.
pub(super) fn refuse_approval(permissions: Option<&Value>) -> ApiResult<()> {
    let Some(permissions) = permissions.filter(|given| !given.is_null()) else {
        return Ok(());
    };
    let overrides = permissions["overrides"].as_object().into_iter().flatten();
    let allows = permissions["default"] == "allow_all";
    if allows
        && overrides
            .into_iter()
            .all(|(_, rule)| rule == "always_allow")
    {
        Ok(())
    } else {
        Err(errors::approval_unsupported("experimental.permissions").into())
    }
}

fn refuse_approval_list(member: &str, list: Option<&Vec<String>>) -> ApiResult<()> {
    if list.is_none_or(Vec::is_empty) {
        Ok(())
    } else {
        Err(errors::approval_unsupported(member).into())
    }
}

impl Selection {
    fn into_filter(self) -> ApiResult<Option<Filter>> {
        refuse_approval_list("toolkits.require_approval", self.require_approval.as_ref())?;
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

    /// Returns the selection of a configuration.
    pub(crate) fn from_filter(filter: &Filter) -> Self {
        let (enable, disable) = match filter {
            Filter::Enable(slugs) => (Some(slugs.clone()), None),
            Filter::Disable(slugs) => (None, Some(slugs.clone())),
        };
        Self {
            enable,
            disable,
            require_approval: None,
        }
    }
}

fn tools(body: BTreeMap<String, ToolSelection>) -> ApiResult<BTreeMap<String, ToolFilter>> {
    let mut filters = BTreeMap::new();
    for (toolkit, selection) in body {
        refuse_approval_list(
            "tools.require_approval",
            selection.require_approval.as_ref(),
        )?;
        let filter = match (selection.enable, selection.disable, selection.tags) {
            (None, None, None) => continue,
            (Some(enable), None, None) => ToolFilter::Enable(enable),
            (None, Some(disable), None) => ToolFilter::Disable(disable),
            (None, None, Some(tags)) => ToolFilter::Tags(tags.into_tags()?),
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
    /// Returns the selection of a configuration.
    pub(crate) fn from_filter(filter: &ToolFilter) -> Self {
        let mut selection = Self::default();
        match filter {
            ToolFilter::Enable(slugs) => selection.enable = Some(slugs.clone()),
            ToolFilter::Disable(slugs) => selection.disable = Some(slugs.clone()),
            ToolFilter::Tags(tags) => selection.tags = Some(TagsBody::from_tags(tags)),
        }
        selection
    }
}

impl TagsBody {
    fn into_tags(self) -> ApiResult<Tags> {
        match self {
            Self::List(enable) => Ok(Tags {
                enable,
                disable: Vec::new(),
            }),
            Self::Selection(selection) => {
                let approval = &selection.require_approval;
                refuse_approval_list("tags.require_approval", Some(approval))?;
                Ok(Tags {
                    enable: selection.enable,
                    disable: selection.disable,
                })
            }
        }
    }

    /// Returns the tags of a configuration.
    pub(crate) fn from_tags(tags: &Tags) -> Self {
        Self::Selection(TagSelection {
            enable: tags.enable.clone(),
            disable: tags.disable.clone(),
            require_approval: Vec::new(),
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
