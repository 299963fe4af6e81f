//! Requests and views of tool router sessions.

use std::collections::BTreeMap;

use app::{
    Record,
    accounts::LinkCreated,
    agents::{self, Config, Filter, Preload, Session, Tags, ToolFilter, meta::MetaTool, sessions},
    core::{clock::iso, ids::SessionId},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    approval::PermissionsBody,
    config::{Blocks, Change, OneOrMany},
    inline_tools::{ExtrasView, InlineTool, InlineToolkit, InlineTools},
};
use crate::{
    api::connected_accounts::sharing::{Share, SharingView},
    http::{ApiResult, Prefix, ProjectKey, errors},
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
    experimental: Option<Experiment>,
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
    experimental: Option<Experiment>,
}

#[derive(Default, Deserialize, ToSchema)]
#[schema(as = SessionExperiment)]
struct Experiment {
    custom_toolkits: Option<Vec<InlineToolkit>>,
    custom_tools: Option<Vec<InlineTool>>,
    permissions: Option<PermissionsBody>,
}

impl Experiment {
    fn inline_tools(&self) -> ApiResult<Option<InlineTools>> {
        let toolkits = self.custom_toolkits.clone().unwrap_or_default();
        let tools = self.custom_tools.clone().unwrap_or_default();
        InlineTools::new(toolkits, tools)
    }
}

impl CreateBody {
    /// Returns the client's own tools, if the request has any.
    pub(crate) fn inline_tools(&self) -> ApiResult<Option<InlineTools>> {
        let experiment = self.experimental.as_ref();
        experiment.map_or(Ok(None), Experiment::inline_tools)
    }

    /// Returns the configuration of the session.
    pub(crate) fn into_config(self) -> ApiResult<Config> {
        let user = self.user_id.unwrap_or_default().trim().to_owned();
        if user.is_empty() || user.contains('\0') {
            return Err(errors::session_invalid("user_id: must be a text").into());
        }
        let permissions = self.experimental.and_then(|given| given.permissions);
        let mut config = Config {
            user_id: app::accounts::parse_user_id(Some(user))?,
            ..Config::default()
        };
        self.blocks.into_change(permissions)?.apply(&mut config);
        Ok(config)
    }
}

impl AttachBody {
    /// Returns the client's own tools, if the request has any.
    pub(crate) fn inline_tools(&self) -> ApiResult<Option<InlineTools>> {
        let experiment = self.experimental.as_ref();
        experiment.map_or(Ok(None), Experiment::inline_tools)
    }
}

/// Filters of the toolkits of a session.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ToolkitQuery {
    /// These toolkits, whether the session permits them or not.
    #[serde(default)]
    #[param(explode = false)]
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

view! {
    /// The page on which the user connects an account.
    #[schema(as = LinkedInSession)]
    pub(crate) struct LinkedView from link: LinkCreated {
        link_token: String = link.token,
        redirect_url: String = link.url,
        connected_account_id: String = link.account.to_string(),
        experimental: SharingView = link.sharing.into(),
    }
}

view! {
    /// A deleted session.
    #[schema(as = DeletedSession)]
    pub(crate) struct RemovedView from (id: &SessionId) {
        session_id: String = id.to_string(),
        deleted: bool = true,
    }
}

/// A session.
#[derive(Serialize, ToSchema)]
#[schema(as = ToolRouterSession)]
pub(crate) struct SessionView {
    session_id: String,
    mcp: McpView,
    /// Slugs of the tools that the session shows directly.
    tool_router_tools: Vec<String>,
    config: ConfigView,
    config_version: u32,
    experimental: ExtrasView,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    warnings: Vec<WarningView>,
}

/// MCP endpoint of a session.
#[derive(Serialize, ToSchema)]
#[schema(as = SessionMcp)]
struct McpView {
    /// Always `http`.
    r#type: &'static str,
    url: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SessionWarning)]
struct WarningView {
    code: &'static str,
    message: String,
}

/// Number of preloaded tools from which a session warns of their size in the context of a model.
const MANY_PRELOADED_TOOLS: usize = 100;

impl SessionView {
    /// Builds the view of a session.
    pub(crate) fn new(
        key: &ProjectKey,
        prefix: Prefix,
        session: Record<Session>,
        inline: Option<InlineTools>,
    ) -> Self {
        let config = &session.body.config;
        let meta = MetaTool::in_force(config);
        let branding = &key.server.branding;
        let mut tools: Vec<_> = meta
            .map(|tool| branding.rename(tool.slug()).into_owned())
            .collect();
        let catalog = key.app().catalog.snapshot();
        let preloaded = agents::preloaded(&catalog, config);
        tools.extend(preloaded.iter().map(|found| found.tool.slug.to_string()));
        tools.extend(inline.iter().flat_map(InlineTools::preloaded));
        let prompt = agents::assistive_prompt(config);
        let prompt = branding.rename_slugs(&prompt).into_owned();
        let many = preloaded.len() >= MANY_PRELOADED_TOOLS;
        let warnings = many.then(|| WarningView {
            code: "PRELOAD_TOOLS_HIGH_CONTEXT_USAGE",
            message: format!(
                "{} preloaded tools take much of a model's context: preload fewer, or let the assistant search for tools",
                preloaded.len()
            ),
        });
        Self {
            mcp: McpView {
                r#type: "http",
                url: sessions::mcp_url(key.app(), &session.id),
            },
            tool_router_tools: tools,
            config: ConfigView::new(prefix, config),
            config_version: session.body.version,
            experimental: ExtrasView::new(prompt, inline),
            warnings: warnings.into_iter().collect(),
            session_id: session.id,
        }
    }
}

view! {
    /// A version of a session's configuration.
    #[schema(as = SessionConfigVersion)]
    pub(crate) struct ConfigVersionView from (
        prefix: Prefix,
        version: Record<sessions::ConfigVersion>,
        current: u32,
    ) {
        version: u32 = version.body.version,
        #[schema(format = DateTime)]
        created_at: String = iso(version.created_at),
        config: ConfigView = ConfigView::new(prefix, &version.body.config),
        is_current: bool = version.body.version == current,
    }
}

/// Configuration of a session.
#[derive(Serialize, ToSchema)]
#[schema(as = SessionConfig)]
struct ConfigView {
    user_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    toolkits: Option<SelectionView>,
    auth_configs: BTreeMap<String, String>,
    /// One account by toolkit under `/api/v3`, all of them under `/api/v3.1`.
    connected_accounts: BTreeMap<String, OneOrMany>,
    /// All accounts by toolkit; only under `/api/v3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    all_connected_accounts: Option<BTreeMap<String, Vec<String>>>,
    manage_connections: ConnectionsView,
    tools: BTreeMap<String, ToolSelectionView>,
    tags: TagsView,
    workbench: WorkbenchView,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    multi_account: Option<MultiAccountView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    preload: Option<PreloadView>,
    search: SwitchView,
    execute: MultiExecuteView,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    proxy_execute: Option<SwitchView>,
}

/// Selected toolkits.
#[derive(Serialize, ToSchema)]
#[schema(as = SessionToolkits)]
struct SelectionView {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    enabled: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    disabled: Option<Vec<String>>,
    /// Toolkits whose calls the user must approve.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    require_approval: Option<Vec<String>>,
}

/// Selected tools of a toolkit.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = SessionTools)]
struct ToolSelectionView {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    enabled: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    disabled: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    tags: Option<TagsView>,
    /// Tools whose calls the user must approve.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    require_approval: Option<Vec<String>>,
}

view! {
    #[schema(as = SessionConfigTags)]
    struct TagsView from (tags: &Tags, approval: &[String]) {
        enabled: Vec<String> = tags.enable.clone(),
        disabled: Vec<String> = tags.disable.clone(),
        /// Calls of tools with one of them need the approval of the user.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[schema(required = false)]
        require_approval: Vec<String> = approval.to_vec(),
    }
}

view! {
    #[schema(as = SessionConnections)]
    struct ConnectionsView from connections: &agents::ManageConnections {
        enabled: bool = connections.enabled,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        callback_url: Option<String> = connections.callback_url.clone(),
        enable_wait_for_connections: bool = connections.wait_for_connections,
        enable_connection_removal: bool = connections.connection_removal,
    }
}

view! {
    #[schema(as = SessionWorkbench)]
    struct WorkbenchView from workbench: &agents::Workbench {
        enable: bool = workbench.enabled,
        proxy_execution_enabled: bool = workbench.proxy_execution,
        tool_execution_enabled: bool = workbench.tool_execution,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        auto_offload_threshold: Option<f64> = workbench.auto_offload_threshold,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        sandbox_size: Option<String> = workbench.sandbox_size.clone(),
    }
}

view! {
    #[schema(as = SessionMultiAccount)]
    struct MultiAccountView from accounts: &agents::MultiAccount {
        enable: bool = accounts.enabled,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        max_accounts_per_toolkit: Option<u32> = accounts.max_accounts,
        require_explicit_selection: bool = accounts.explicit_selection,
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = SessionPreload)]
struct PreloadView {
    /// Slugs of tools, or `all`.
    tools: OneOrMany,
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

impl ConfigView {
    fn new(prefix: Prefix, config: &Config) -> Self {
        let accounts = config.connected_accounts.iter();
        let all: BTreeMap<_, Vec<_>> = accounts
            .map(|(toolkit, ids)| {
                (
                    toolkit.clone(),
                    ids.iter().map(ToString::to_string).collect(),
                )
            })
            .collect();
        let is_older = prefix == Prefix::V3;
        let shown = all.iter().map(|(toolkit, ids)| {
            let first = ids.first().filter(|_| is_older);
            let shown = first.map_or_else(
                || OneOrMany::Many(ids.clone()),
                |first| OneOrMany::One(first.clone()),
            );
            (toolkit.clone(), shown)
        });
        let auth_configs = config.auth_configs.iter();
        Self {
            user_id: config.user_id.clone(),
            toolkits: SelectionView::from_config(config),
            auth_configs: auth_configs
                .map(|(toolkit, id)| (toolkit.clone(), id.to_string()))
                .collect(),
            connected_accounts: shown.collect(),
            all_connected_accounts: (is_older && !all.is_empty()).then(|| all.clone()),
            manage_connections: (&config.manage_connections).into(),
            tools: ToolSelectionView::from_config(config),
            tags: TagsView::new(&config.tags, &config.approval_tags),
            workbench: (&config.workbench).into(),
            multi_account: config.multi_account.as_ref().map(MultiAccountView::from),
            preload: config.preload.as_ref().map(PreloadView::from),
            search: SwitchView {
                enable: !config.search_disabled,
            },
            execute: MultiExecuteView {
                enable_multi_execute: !config.multi_execute_disabled,
            },
            proxy_execute: config.proxy_execute.map(|enable| SwitchView { enable }),
        }
    }
}

impl SelectionView {
    /// Returns the view of a configuration's selection, if it has one.
    fn from_config(config: &Config) -> Option<Self> {
        let (enabled, disabled) = match config.toolkits.clone() {
            Some(Filter::Enable(enabled)) => (Some(enabled), None),
            Some(Filter::Disable(disabled)) => (None, Some(disabled)),
            None => (None, None),
        };
        let approval = &config.approval_toolkits;
        let require_approval = (!approval.is_empty()).then(|| approval.clone());
        let is_selected = config.toolkits.is_some() || require_approval.is_some();
        is_selected.then_some(Self {
            enabled,
            disabled,
            require_approval,
        })
    }
}

impl ToolSelectionView {
    /// Returns the views of a configuration's selections, by toolkit.
    fn from_config(config: &Config) -> BTreeMap<String, Self> {
        let mut views = BTreeMap::<_, Self>::new();
        for (toolkit, filter) in config.tools.clone() {
            let view = views.entry(toolkit).or_default();
            match filter {
                ToolFilter::Enable(enabled) => view.enabled = Some(enabled),
                ToolFilter::Disable(disabled) => view.disabled = Some(disabled),
                ToolFilter::Tags(tags) => view.tags = Some(TagsView::new(&tags, &[])),
            }
        }
        for (toolkit, tools) in config.approval_tools.clone() {
            views.entry(toolkit).or_default().require_approval = Some(tools);
        }
        views
    }
}

impl From<&Preload> for PreloadView {
    fn from(preload: &Preload) -> Self {
        let tools = match preload {
            Preload::All => OneOrMany::One("all".to_owned()),
            Preload::Tools(slugs) => OneOrMany::Many(slugs.clone()),
        };
        Self { tools }
    }
}
