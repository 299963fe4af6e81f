//! Views of tool router sessions.

use app::{
    Record,
    accounts::LinkCreated,
    agents::{self, Session, meta::MetaTool, sessions},
    core::{clock::iso, ids::SessionId},
};
use http::{Prefix, ProjectKey};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    approval::PermissionsView,
    config::ConfigView,
    inline_tools::{ExtrasView, InlineTools},
};
use crate::connected_accounts::sharing::SharingView;

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

/// MCP endpoint of a session.
#[derive(Serialize, ToSchema)]
#[schema(as = SessionMcp)]
struct McpView {
    /// Always `http`.
    r#type: &'static str,
    url: String,
}

view! {
    #[schema(as = SessionWarning)]
    struct WarningView from preloaded: usize {
        code: &'static str = "PRELOAD_TOOLS_HIGH_CONTEXT_USAGE",
        message: String = format!(
            "{preloaded} preloaded tools take much of a model's context: preload fewer, or let the assistant search for tools"
        ),
    }
}

/// Number of preloaded tools from which a session warns of their size in the context of a model.
const MANY_PRELOADED_TOOLS: usize = 100;

view! {
    /// A session.
    #[schema(as = ToolRouterSession)]
    pub(crate) struct SessionView from (
        key: &ProjectKey,
        prefix: Prefix,
        session: Record<Session>,
        inline: Option<InlineTools>,
    ) where {
        let config = &session.body.config;
        let branding = &key.server.branding;
        let meta = MetaTool::in_force(config);
        let mut tools: Vec<_> = meta
            .map(|tool| branding.rename(tool.slug()).into_owned())
            .collect();
        let catalog = key.app().catalog.snapshot();
        let preloaded = agents::preloaded(&catalog, config);
        tools.extend(preloaded.iter().map(|found| found.tool.slug.to_string()));
        tools.extend(inline.iter().flat_map(InlineTools::preloaded));
        let prompt = agents::assistive_prompt(config);
        let prompt = branding.rename_slugs(&prompt).into_owned();
        let many = Some(preloaded.len()).filter(|tools| *tools >= MANY_PRELOADED_TOOLS);
        let url = sessions::mcp_url(key.app(), &session.id);
    } {
        session_id: String = session.id,
        mcp: McpView = McpView { r#type: "http", url },
        /// Slugs of the tools that the session shows directly.
        tool_router_tools: Vec<String> = tools,
        config: ConfigView = ConfigView::new(prefix, config),
        config_version: u32 = session.body.version,
        experimental: ExtrasView = ExtrasView::new(prompt, config, inline),
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[schema(required = false)]
        warnings: Vec<WarningView> = many.map(WarningView::from).into_iter().collect(),
    }
}

view! {
    /// Parts of a version that `config` does not have.
    #[schema(as = SessionVersionExtras)]
    struct VersionExtrasView from config: &agents::Config {
        /// Permissions of calls.
        permissions: PermissionsView = config.into(),
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
        #[schema(format = DateTime)] created_at: String = iso(version.created_at),
        config: ConfigView = ConfigView::new(prefix, &version.body.config),
        experimental: VersionExtrasView = (&version.body.config).into(),
        is_current: bool = version.body.version == current,
    }
}
