//! Configuration of a session: what a request changes, and the view of it.

mod parts;
mod selections;
mod view;

use std::collections::BTreeMap;

use app::{
    agents::{
        Config, Filter, ManageConnections, MultiAccount, Permission, Preload, Tags, ToolFilter,
        Workbench,
    },
    core::ids::{AccountId, AuthConfigId},
};
use serde::Deserialize;
use utoipa::ToSchema;

use self::{
    parts::{
        ConnectionsBody, MultiAccountBody, MultiExecuteBody, OneOrMany, PreloadBody, SwitchBody,
        WorkbenchBody,
    },
    selections::into_filters,
};
pub(crate) use self::{
    selections::{Selection, TagsBody, ToolSelection},
    view::ConfigView,
};
use super::approval::{DefaultPermission, PermissionsBody};
use crate::{api::auth_configs::present, http::ApiResult};

/// Parts of the configuration of a session. Each part that is sent replaces the one before; null
/// restores its default.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = SessionConfigRequest)]
pub(crate) struct Blocks {
    /// The toolkits of the session; all of them without it.
    #[serde(default, deserialize_with = "present")]
    toolkits: Option<Option<Selection>>,
    /// Tools by toolkit.
    #[serde(default, deserialize_with = "present")]
    tools: Option<Option<BTreeMap<String, ToolSelection>>>,
    /// Tags that tools of all toolkits must have.
    #[serde(default, deserialize_with = "present")]
    tags: Option<Option<TagsBody>>,
    /// Auth configs with which accounts are connected, by toolkit.
    #[serde(default, deserialize_with = "present")]
    auth_configs: Option<Option<BTreeMap<String, String>>>,
    /// Accounts to which the session is restricted, by toolkit.
    #[serde(default, deserialize_with = "present")]
    connected_accounts: Option<Option<BTreeMap<String, OneOrMany>>>,
    #[serde(default, deserialize_with = "present")]
    manage_connections: Option<Option<ConnectionsBody>>,
    #[serde(default, deserialize_with = "present")]
    workbench: Option<Option<WorkbenchBody>>,
    #[serde(default, deserialize_with = "present")]
    multi_account: Option<Option<MultiAccountBody>>,
    /// Tools that are shown beside the meta tools.
    #[serde(default, deserialize_with = "present")]
    preload: Option<Option<PreloadBody>>,
    #[serde(default, deserialize_with = "present")]
    search: Option<Option<SwitchBody>>,
    #[serde(default, deserialize_with = "present")]
    execute: Option<Option<MultiExecuteBody>>,
    #[serde(default, deserialize_with = "present")]
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
            ($($part:ident)+) => {
                $(if let Some(part) = &self.$part {
                    config.$part = part.clone();
                })+
            };
        }
        replace! {
            toolkits tools tags approval_toolkits approval_tools approval_tags approval_of_all
            approval_once permissions auth_configs connected_accounts manage_connections workbench
            multi_account preload search_disabled multi_execute_disabled proxy_execute
        }
    }
}

impl Blocks {
    /// Returns the change that the request asks for, with its permissions.
    pub(crate) fn into_change(self, permissions: Option<PermissionsBody>) -> ApiResult<Change> {
        let default = permissions.as_ref().map(|given| given.default);
        Ok(Change {
            approval_toolkits: approval(&self.toolkits, |body| body.require_approval.clone()),
            approval_tools: approval(&self.tools, |body| Some(approval_tools(body))),
            approval_tags: approval(&self.tags, |body| Some(body.approval())),
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
