//! Configuration of a session: what a request changes, and the view of it.

mod parts;
mod selections;
mod view;

use std::collections::BTreeMap;

use app::{
    Error,
    agents::Config,
    core::{
        ids::{AccountId, AuthConfigId},
        truncate,
    },
};

use self::selections::into_filters;
pub(crate) use self::{
    parts::{
        ConnectionsBody, MultiAccountBody, MultiExecuteBody, OneOrMany, PreloadBody, SwitchBody,
        WorkbenchBody,
    },
    selections::{Selection, TagsBody, ToolSelection},
    view::ConfigView,
};
use http::errors;

use super::approval::{DefaultPermission, PermissionsBody};

/// Part of a body that changes a session: absent, null, or a value.
pub(super) type Sent<T> = Option<Option<T>>;

/// Parts of the configuration of a session that a body may have.
pub(super) struct Parts {
    pub toolkits: Sent<Selection>,
    pub tools: Sent<BTreeMap<String, ToolSelection>>,
    pub tags: Sent<TagsBody>,
    pub auth_configs: Sent<BTreeMap<String, String>>,
    pub connected_accounts: Sent<BTreeMap<String, OneOrMany>>,
    pub manage_connections: Sent<ConnectionsBody>,
    pub workbench: Sent<WorkbenchBody>,
    pub multi_account: Sent<MultiAccountBody>,
    pub preload: Sent<PreloadBody>,
    pub search: Sent<SwitchBody>,
    pub execute: Sent<MultiExecuteBody>,
    pub proxy_execute: Sent<SwitchBody>,
    pub permissions: Sent<PermissionsBody>,
}

type Step = Box<dyn Fn(&mut Config) + Send + Sync>;

/// A change of a configuration.
#[derive(Default)]
pub(crate) struct Change {
    /// A step for each part that a request sends.
    steps: Vec<Step>,
    /// True if the request sends that scripts may send proxy requests.
    asks_for_proxy: bool,
}

impl Change {
    /// Changes a configuration. Fails if the request permits scripts the proxy requests that the
    /// configuration refuses.
    pub(crate) fn apply(&self, config: &mut Config) -> Result<(), Error> {
        for step in &self.steps {
            step(config);
        }
        if self.asks_for_proxy && config.proxy_execute == Some(false) {
            return Err(errors::session_invalid(
                "workbench.enable_proxy_execution: cannot be true while proxy_execute.enable is false",
            ));
        }
        Ok(())
    }

    fn add(&mut self, step: impl Fn(&mut Config) + Send + Sync + 'static) {
        self.steps.push(Box::new(step));
    }

    /// Adds the change of a block of settings: what the block does not send stays, and null restores
    /// the defaults.
    fn add_block<B: Send + Sync + 'static, T: Default + 'static>(
        &mut self,
        sent: Sent<B>,
        of: fn(&mut Config) -> &mut T,
        apply: fn(&B, &mut T),
    ) {
        if let Some(block) = sent {
            self.add(move |config| match &block {
                Some(block) => apply(block, of(config)),
                None => *of(config) = T::default(),
            });
        }
    }

    fn add_toolkits(&mut self, toolkits: Selection) -> Result<(), Error> {
        let approval = toolkits.require_approval.clone().unwrap_or_default();
        let filter = toolkits.into_filter()?;
        self.add(move |config| {
            config.toolkits.clone_from(&filter);
            config.approval_toolkits.clone_from(&approval);
        });
        Ok(())
    }

    fn add_tools(&mut self, tools: BTreeMap<String, ToolSelection>) -> Result<(), Error> {
        let required = approval(&tools, |selection| selection.require_approval.clone());
        let tags = approval(&tools, |selection| selection.tags.as_ref()?.approval());
        let filters = into_filters(tools)?;
        self.add(move |config| {
            config.tools.clone_from(&filters);
            config.approval_tools.clone_from(&required);
            config.approval_toolkit_tags.clone_from(&tags);
            config.toolkit_overrides_tags = true;
        });
        Ok(())
    }

    fn add_auth_configs(&mut self, ids: BTreeMap<String, String>) -> Result<(), Error> {
        let ids = auth_configs(ids)?;
        self.add(move |config| config.auth_configs.clone_from(&ids));
        Ok(())
    }

    fn add_accounts(&mut self, ids: BTreeMap<String, OneOrMany>) -> Result<(), Error> {
        let ids = accounts(ids)?;
        self.add(move |config| config.connected_accounts.clone_from(&ids));
        Ok(())
    }

    fn add_tags(&mut self, selection: Option<TagsBody>) {
        let approval = selection.as_ref().and_then(TagsBody::approval);
        let approval = approval.unwrap_or_default();
        let tags = selection.and_then(TagsBody::into_tags).unwrap_or_default();
        self.add(move |config| {
            config.tags.clone_from(&tags);
            config.approval_tags.clone_from(&approval);
            config.toolkit_overrides_tags = true;
        });
    }

    /// Adds the parts that select neither tools nor accounts.
    fn add_settings(&mut self, parts: Parts) {
        if let Some(preload) = parts.preload {
            let preload = preload.and_then(PreloadBody::into_preload);
            self.add(move |config| config.preload.clone_from(&preload));
        }
        if let Some(permissions) = parts.permissions {
            self.add(move |config| set_permissions(config, permissions.as_ref()));
        }
        self.add_block(
            parts.manage_connections,
            |config| &mut config.manage_connections,
            ConnectionsBody::apply,
        );
        self.add_block(
            parts.workbench,
            |config| &mut config.workbench,
            WorkbenchBody::apply,
        );
        self.add_block(
            parts.multi_account,
            |config| &mut config.multi_account,
            MultiAccountBody::apply,
        );
        self.add_block(
            parts.search,
            |config| &mut config.search_disabled,
            SwitchBody::apply_inverted,
        );
        self.add_block(
            parts.execute,
            |config| &mut config.multi_execute_disabled,
            MultiExecuteBody::apply_inverted,
        );
        self.add_block(
            parts.proxy_execute,
            |config| &mut config.proxy_execute,
            SwitchBody::apply,
        );
    }
}

impl TryFrom<Parts> for Change {
    type Error = Error;

    fn try_from(mut parts: Parts) -> Result<Self, Error> {
        let workbench = parts.workbench.as_ref().and_then(Option::as_ref);
        let mut change = Self {
            asks_for_proxy: workbench.is_some_and(WorkbenchBody::asks_for_proxy),
            ..Self::default()
        };
        let toolkits = parts.toolkits.take();
        let tools = parts.tools.take();
        let configs = parts.auth_configs.take();
        let accounts = parts.connected_accounts.take();
        let added = [
            toolkits.map_or(Ok(()), |sent| change.add_toolkits(sent.unwrap_or_default())),
            tools.map_or(Ok(()), |sent| change.add_tools(sent.unwrap_or_default())),
            configs.map_or(Ok(()), |sent| {
                change.add_auth_configs(sent.unwrap_or_default())
            }),
            accounts.map_or(Ok(()), |sent| change.add_accounts(sent.unwrap_or_default())),
        ];
        let () = errors::collect_all(added)?;
        if let Some(tags) = parts.tags.take() {
            change.add_tags(tags);
        }
        change.add_settings(parts);
        Ok(change)
    }
}

/// Replaces the permissions of a configuration, or removes them.
fn set_permissions(config: &mut Config, permissions: Option<&PermissionsBody>) {
    let default = permissions.map_or(DefaultPermission::AllowAll, |given| given.default);
    let overrides = permissions.and_then(|given| given.overrides.clone());
    config.approval_of_all = default != DefaultPermission::AllowAll;
    config.approval_once = default == DefaultPermission::AskOncePerSession;
    config.permissions = overrides.unwrap_or_default();
}

fn approval(
    tools: &BTreeMap<String, ToolSelection>,
    required: impl Fn(&ToolSelection) -> Option<Vec<String>>,
) -> BTreeMap<String, Vec<String>> {
    let with_approval = tools
        .iter()
        .filter_map(|(toolkit, selection)| Some((toolkit.clone(), required(selection)?)));
    with_approval.collect()
}

fn auth_configs(body: BTreeMap<String, String>) -> Result<BTreeMap<String, AuthConfigId>, Error> {
    errors::collect_all(body.into_iter().map(|(toolkit, id)| {
        let path = format!("auth_configs.{}", truncate(&toolkit));
        let id = AuthConfigId::parse(&id).map_err(|error| error.at(path))?;
        Ok((toolkit, id))
    }))
}

fn accounts(body: BTreeMap<String, OneOrMany>) -> Result<BTreeMap<String, Vec<AccountId>>, Error> {
    errors::collect_all(body.into_iter().map(|(toolkit, ids)| {
        let path = format!("connected_accounts.{}", truncate(&toolkit));
        Ok((toolkit, account_ids(&path, ids)?))
    }))
}

fn account_ids(path: &str, ids: OneOrMany) -> Result<Vec<AccountId>, Error> {
    match ids {
        OneOrMany::One(id) => {
            let id = AccountId::parse(&id).map_err(|error| error.at(path))?;
            Ok(vec![id])
        }
        OneOrMany::Many(ids) => {
            let given = ids.iter().enumerate();
            errors::collect_all(given.map(|(index, id)| {
                AccountId::parse(id).map_err(|error| error.at(format!("{path}[{index}]")))
            }))
        }
    }
}
