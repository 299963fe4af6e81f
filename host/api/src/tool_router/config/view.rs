//! View of the configuration of a session.

use std::collections::BTreeMap;

use app::agents::{self, Config, Filter, Preload, Tags, ToolFilter};
use http::Prefix;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::OneOrMany;

view! {
    /// Configuration of a session.
    #[schema(as = SessionConfig)]
    pub(crate) struct ConfigView from (prefix: Prefix, config: &Config) where {
        let accounts = config.connected_accounts.iter();
        let all: BTreeMap<String, Vec<String>> = accounts
            .map(|(toolkit, ids)| (toolkit.clone(), ids.iter().map(ToString::to_string).collect()))
            .collect();
        let is_older = prefix == Prefix::V3;
        let shown = all.iter().map(|(toolkit, ids)| {
            let shown = match &ids[..] {
                [first, ..] if is_older => OneOrMany::One(first.clone()),
                ids => OneOrMany::Many(ids.to_vec()),
            };
            (toolkit.clone(), shown)
        });
        let auth_configs = config.auth_configs.iter();
        let selects_toolkits = config.toolkits.is_some() || !config.approval_toolkits.is_empty();
    } {
        user_id: String = config.user_id.clone(),
        toolkits?: Option<SelectionView> = selects_toolkits.then(|| config.into()),
        auth_configs: BTreeMap<String, String> =
            auth_configs.map(|(toolkit, id)| (toolkit.clone(), id.to_string())).collect(),
        /// One account by toolkit under `/api/v3`, all of them under `/api/v3.1`.
        connected_accounts: BTreeMap<String, OneOrMany> = shown.collect(),
        /// All accounts by toolkit; only under `/api/v3`.
        all_connected_accounts?: Option<BTreeMap<String, Vec<String>>> =
            (is_older && !all.is_empty()).then_some(all),
        manage_connections: ConnectionsView = (&config.manage_connections).into(),
        tools: BTreeMap<String, ToolSelectionView> = selected_tools(config),
        tags: TagsView = TagsView {
            require_approval: not_empty(&config.approval_tags),
            ..TagsView::from(&config.tags)
        },
        workbench: WorkbenchView = (&config.workbench).into(),
        multi_account?: Option<MultiAccountView> = config.multi_account.as_ref().map(Into::into),
        preload: PreloadView = config.preload.as_ref().into(),
        search: SwitchView = SwitchView { enable: !config.search_disabled },
        execute: MultiExecuteView = MultiExecuteView {
            enable_multi_execute: !config.multi_execute_disabled,
        },
        proxy_execute?: Option<SwitchView> = config.proxy_execute.map(|enable| SwitchView { enable }),
        /// Always false: this server does not offer billed accounts of its own.
        instant: bool = false,
    }
}

view! {
    /// Selected toolkits.
    #[schema(as = SessionToolkits)]
    struct SelectionView from config: &Config where {
        let (enabled, disabled) = match config.toolkits.clone() {
            Some(Filter::Enable(slugs)) => (Some(slugs), None),
            Some(Filter::Disable(slugs)) => (None, Some(slugs)),
            None => (None, None),
        };
    } {
        enabled?: Option<Vec<String>> = enabled,
        disabled?: Option<Vec<String>> = disabled,
        /// Toolkits whose calls the user must approve.
        require_approval?: Option<Vec<String>> = not_empty(&config.approval_toolkits),
    }
}

view! {
    /// Selected tools of a toolkit.
    #[derive(Default)]
    #[schema(as = SessionTools)]
    struct ToolSelectionView {
        enabled?: Option<Vec<String>>,
        disabled?: Option<Vec<String>>,
        tags?: Option<TagsView>,
        /// Tools whose calls the user must approve.
        require_approval?: Option<Vec<String>>,
    }
}

view! {
    #[derive(Default)]
    #[schema(as = SessionConfigTags)]
    struct TagsView from tags: &Tags {
        enabled: Vec<String> = tags.enable.clone(),
        disabled: Vec<String> = tags.disable.clone(),
        /// Calls of tools with one of them need the approval of the user.
        require_approval?: Option<Vec<String>> = None,
    }
}

fn not_empty(names: &[String]) -> Option<Vec<String>> {
    (!names.is_empty()).then(|| names.to_vec())
}

/// Returns the selected tools of a configuration, by toolkit.
fn selected_tools(config: &Config) -> BTreeMap<String, ToolSelectionView> {
    let mut views = BTreeMap::<_, ToolSelectionView>::new();
    for (toolkit, filter) in &config.tools {
        let view = views.entry(toolkit.clone()).or_default();
        match filter {
            ToolFilter::Enable(slugs) => view.enabled = Some(slugs.clone()),
            ToolFilter::Disable(slugs) => view.disabled = Some(slugs.clone()),
            ToolFilter::Tags(tags) => view.tags = Some(tags.into()),
        }
    }
    for (toolkit, tools) in &config.approval_tools {
        let view = views.entry(toolkit.clone()).or_default();
        view.require_approval = Some(tools.clone());
    }
    for (toolkit, approval) in &config.approval_toolkit_tags {
        let view = views.entry(toolkit.clone()).or_default();
        let tags = view.tags.get_or_insert_default();
        tags.require_approval = Some(approval.clone());
    }
    views
}

view! {
    #[schema(as = SessionConnections)]
    struct ConnectionsView from connections: &agents::ManageConnections {
        enabled: bool = connections.enabled,
        callback_url?: Option<String> = connections.callback_url.clone(),
        enable_wait_for_connections: bool = connections.wait_for_connections,
        enable_connection_removal: bool = connections.connection_removal,
    }
}

/// Largest number up to which an `f64` represents every integer.
const MAX_EXACT_INTEGER: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;

/// Serializes an integer as clients send it, without a fraction.
fn whole_without_fraction<S: Serializer>(
    number: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match *number {
        Some(number) if number.fract() == 0.0 && number.abs() <= MAX_EXACT_INTEGER => {
            serializer.serialize_i64(number as i64)
        }
        number => number.serialize(serializer),
    }
}

view! {
    #[schema(as = SessionWorkbench)]
    struct WorkbenchView from workbench: &agents::Workbench {
        enable: bool = workbench.enabled,
        proxy_execution_enabled: bool = workbench.proxy_execution,
        tool_execution_enabled: bool = workbench.tool_execution,
        #[serde(serialize_with = "whole_without_fraction")]
        auto_offload_threshold?: Option<f64> = workbench.auto_offload_threshold,
        sandbox_size?: Option<String> = workbench.sandbox_size.clone(),
    }
}

view! {
    #[schema(as = SessionMultiAccount)]
    struct MultiAccountView from accounts: &agents::MultiAccount {
        enable: bool = accounts.enabled,
        max_accounts_per_toolkit?: Option<u32> = accounts.max_accounts,
        require_explicit_selection: bool = accounts.explicit_selection,
    }
}

view! {
    #[schema(as = SessionPreload)]
    struct PreloadView from preload: Option<&Preload> {
        /// Slugs of tools, or `all`.
        tools: OneOrMany = match preload {
            Some(Preload::All) => OneOrMany::One("all".to_owned()),
            Some(Preload::Tools(slugs)) => OneOrMany::Many(slugs.clone()),
            None => OneOrMany::Many(Vec::new()),
        },
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = SessionSwitch)]
struct SwitchView {
    enable: bool,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SessionExecuteSwitch)]
struct MultiExecuteView {
    enable_multi_execute: bool,
}
