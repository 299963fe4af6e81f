//! Views of MCP servers.

use std::collections::BTreeMap;

use app::{
    Record,
    accounts::DEFAULT_USER,
    agents::mcp_servers::{self, McpServer},
    catalog::Snapshot,
    core::clock::iso,
};
use http::{Page, ProjectKey, branding::Branding};

use super::{commands::Added, requests::Generate};
use crate::toolkits::logo_url;

/// Parameter of an address that adds the tools that connect accounts.
const HELPER_TOOLS_PARAMETER: &str = "include_service_helper_actions";

view! {
    /// Addresses of an MCP server, in the order of the request.
    #[schema(as = McpUrls)]
    pub(crate) struct GeneratedView from (
        url: String,
        wanted: &Generate,
        with_helper_tools: bool,
        branding: &Branding,
    ) where {
        let each = |parameter: &str, values: &[String]| -> Vec<String> {
            let values = values.iter();
            values
                .map(|value| address(&url, parameter, value, with_helper_tools, branding))
                .collect()
        };
        let connected_account_urls = each("connected_account_id", &wanted.connected_account_ids);
        let user_ids_url = each("user_id", &wanted.user_ids);
    } {
        /// Address without a user.
        mcp_url: String = url,
        connected_account_urls: Vec<String> = connected_account_urls,
        user_ids_url: Vec<String> = user_ids_url,
    }
}

/// Returns the address of a server for a user or an account.
fn address(
    url: &str,
    parameter: &str,
    value: &str,
    with_helper_tools: bool,
    branding: &Branding,
) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair(parameter, value);
    if with_helper_tools {
        query.append_pair(&branding.rename(HELPER_TOOLS_PARAMETER), "true");
    }
    format!("{url}?{}", query.finish())
}

view! {
    /// A page of MCP servers.
    #[schema(as = McpServers)]
    pub(crate) struct ListView from (items: Vec<View>, page: &Page, total: u64) {
        items: Vec<View> = items,
        /// At least one, even if the list is empty.
        total_pages: u64 = total.div_ceil(page.limit).max(1),
        /// Number of this page, from one.
        current_page: u64 = page.number,
    }
}

view! {
    /// An MCP server.
    #[schema(as = McpServer)]
    pub(crate) struct View from (
        key: &ProjectKey,
        catalog: &Snapshot,
        instances: Option<u64>,
        record: Record<McpServer>,
        changed_tools: Vec<String>,
    ) where {
        let body = record.body;
        let url = mcp_servers::url(key.app(), &record.id);
        let with_helper_tools = body.with_helper_tools;
        let branding = &key.server.branding;
        let mcp_url = address(&url, "user_id", DEFAULT_USER, with_helper_tools, branding);
        let needs_key = key.project.stored.config.require_mcp_key;
        let commands = Added::new(&body.name, mcp_url.clone(), needs_key);
        let toolkit_icons = body
            .toolkits
            .iter()
            .map(|slug| {
                let toolkit = catalog.toolkit(slug);
                let logo = toolkit.map_or_else(String::new, |toolkit| logo_url(toolkit.current()));
                (slug.clone(), logo)
            })
            .collect();
    } {
        id: String = record.id,
        name: String = body.name,
        auth_config_ids: Vec<String> = body.auth_configs.iter().map(ToString::to_string).collect(),
        /// Empty for every tool of the toolkits.
        allowed_tools: Vec<String> = body.allowed_tools,
        /// Address of the default user. `POST /mcp/servers/generate` returns those of other users.
        mcp_url: String = mcp_url,
        toolkits: Vec<String> = body.toolkits,
        /// Logos by toolkit.
        toolkit_icons: BTreeMap<String, String> = toolkit_icons,
        commands: CommandsView = commands.into(),
        #[schema(format = DateTime)] updated_at: String = iso(body.changed_at),
        #[schema(format = DateTime)] created_at: String = iso(record.created_at),
        server_instance_count: u64 = instances.unwrap_or_default(),
        managed_auth_via_service: bool = with_helper_tools,
        /// Time to which the tools are pinned; null if the latest versions are used.
        #[schema(format = DateTime)] tools_pinned_at: Option<String> = body.tools_as_of.map(iso),
        /// Tools that are new, changed or gone since the pin. `pin_tools` accepts the changes.
        changed_tools: Vec<String> = changed_tools,
        /// Always false.
        deleted: bool = false,
    }
}

view! {
    /// Lines for a shell that add the server to an assistant, for the default user. If the project
    /// requires its key, they read it from the variable `TOOLHOST_API_KEY`.
    #[schema(as = McpCommands)]
    struct CommandsView from added: Added {
        cursor: String = added.cursor(),
        claude: String = added.claude(),
        windsurf: String = added.windsurf(),
    }
}

view! {
    /// Success of a deletion.
    #[schema(as = RemovedMcpServer)]
    pub(crate) struct RemovedView from (id: String) {
        id: String = id,
        /// Always true.
        deleted: bool = true,
    }
}
