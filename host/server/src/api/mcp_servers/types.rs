//! Requests and views of MCP servers and their instances.

use std::collections::BTreeMap;

use app::{
    Listed, Record,
    accounts::DEFAULT_USER,
    agents::mcp_servers::{self, Changes, Filter, Instance, McpServer, Order},
    catalog::Snapshot,
    core::clock::iso,
    projects::Project,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::commands::Added;
use crate::{
    Server,
    api::{Direction, OrderBy, texts, toolkits::logo_url},
    http::{ApiResult, Page, branding::Branding, errors, page::MAX_LIMIT, query::number_or_null},
};

/// Servers on a page of a request that names no limit.
const DEFAULT_LIMIT: u64 = 10;
/// Instances on a page of a request that names no limit.
const DEFAULT_INSTANCE_LIMIT: u64 = 20;
/// Toolkits of the operator. They are no toolkits of the catalog: as a toolkit of an MCP server,
/// they stand for the tools that connect accounts.
const OPERATOR_TOOLKITS: [&str; 2] = ["service", "service_search"];
/// Parameter of an address that adds the tools that connect accounts.
pub(crate) const HELPER_TOOLS_PARAMETER: &str = "include_service_helper_actions";

/// Content of an MCP server.
#[derive(Deserialize, ToSchema)]
#[schema(as = CreateMcpServer)]
pub(crate) struct Create {
    /// 4 to 30 letters, digits, blanks and hyphens.
    name: String,
    /// Auth configs, each of another toolkit. Tools use accounts of these.
    #[serde(default, deserialize_with = "texts")]
    #[schema(value_type = Vec<String>, required)]
    auth_config_ids: Vec<String>,
    /// Toolkits that need no account.
    #[serde(default, deserialize_with = "texts")]
    no_auth_apps: Vec<String>,
    /// Tools; empty for every tool of the toolkits.
    #[serde(default, deserialize_with = "texts")]
    allowed_tools: Vec<String>,
    /// Adds the tools that connect accounts.
    managed_auth_via_service: Option<bool>,
    /// Pins the tools to the versions of their toolkits that are published now. Later versions are not
    /// used until a change of the server sends `true` again.
    pin_tools: Option<bool>,
}

impl Create {
    /// Returns the content of the new server.
    pub(crate) fn into_changes(self, branding: &Branding) -> Changes {
        let operator: Vec<_> = OPERATOR_TOOLKITS.map(|slug| branding.rename(slug)).into();
        let is_operator = |slug: &String| operator.iter().any(|own| own.eq_ignore_ascii_case(slug));
        let (helpers, toolkits): (Vec<_>, Vec<_>) =
            self.no_auth_apps.into_iter().partition(is_operator);
        let with_helper_tools = self.managed_auth_via_service == Some(true) || !helpers.is_empty();
        Changes {
            name: Some(self.name),
            toolkits: Some(toolkits),
            auth_configs: Some(self.auth_config_ids),
            allowed_tools: Some(self.allowed_tools),
            with_helper_tools: Some(with_helper_tools),
            pin_tools: self.pin_tools,
        }
    }
}

/// Content of an MCP server.
#[derive(Deserialize, ToSchema)]
#[schema(as = CreateCustomMcpServer)]
pub(crate) struct CreateCustom {
    /// 4 to 30 letters, digits, blanks and hyphens.
    name: String,
    /// Toolkits, besides those of the auth configs and of the tools.
    toolkits: Option<Vec<String>>,
    /// Auth configs, each of another toolkit. Tools use accounts of these.
    auth_config_ids: Option<Vec<String>>,
    /// Tools; empty for every tool of the toolkits.
    allowed_tools: Option<Vec<String>>,
    /// Older spelling of `allowed_tools`.
    custom_tools: Option<Vec<String>>,
    /// Adds the tools that connect accounts.
    managed_auth_via_service: Option<bool>,
    /// Pins the tools to the versions of their toolkits that are published now. Later versions are not
    /// used until a change of the server sends `true` again.
    pin_tools: Option<bool>,
}

impl From<CreateCustom> for Changes {
    fn from(body: CreateCustom) -> Self {
        Self {
            name: Some(body.name),
            toolkits: body.toolkits,
            auth_configs: body.auth_config_ids,
            allowed_tools: body.allowed_tools.or(body.custom_tools),
            with_helper_tools: body.managed_auth_via_service,
            pin_tools: body.pin_tools,
        }
    }
}

/// Changes of an MCP server. Absent fields stay as they are.
#[derive(Deserialize, ToSchema)]
#[schema(as = UpdateMcpServer)]
pub(crate) struct Update {
    name: Option<String>,
    toolkits: Option<Vec<String>>,
    auth_config_ids: Option<Vec<String>>,
    allowed_tools: Option<Vec<String>>,
    managed_auth_via_service: Option<bool>,
    /// True pins the tools to the versions of their toolkits that are published now, and so accepts
    /// what changed since an earlier pin. False uses the latest versions.
    pin_tools: Option<bool>,
}

impl From<Update> for Changes {
    fn from(body: Update) -> Self {
        Self {
            name: body.name,
            toolkits: body.toolkits,
            auth_configs: body.auth_config_ids,
            allowed_tools: body.allowed_tools,
            with_helper_tools: body.managed_auth_via_service,
            pin_tools: body.pin_tools,
        }
    }
}

/// Users and accounts whose addresses are wanted.
#[derive(Deserialize, ToSchema)]
#[schema(as = GenerateMcpUrls)]
pub(crate) struct Generate {
    pub mcp_server_id: String,
    #[serde(default, deserialize_with = "texts")]
    user_ids: Vec<String>,
    #[serde(default, deserialize_with = "texts")]
    connected_account_ids: Vec<String>,
    /// Adds the tools that connect accounts.
    managed_auth_by_service: Option<bool>,
}

impl Generate {
    /// Returns true if the addresses add the tools that connect accounts.
    pub(crate) fn with_helper_tools(&self) -> bool {
        self.managed_auth_by_service == Some(true)
    }
}

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

/// Filters and order of the list.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Part of the name.
    name: Option<String>,
    /// With tools of one of these toolkits.
    #[serde(default)]
    #[param(explode = false)]
    toolkits: Vec<String>,
    /// With one of these auth configs.
    #[serde(default)]
    #[param(explode = false)]
    auth_config_ids: Vec<String>,
    /// Time by which the list is ordered; `updated_at` without it.
    #[param(inline)]
    order_by: Option<OrderBy>,
    /// `desc` without it.
    #[param(inline)]
    order_direction: Option<Direction>,
    /// Number of the page, from 1.
    page_no: Option<f64>,
    /// Servers on a page, 10 without it and at most 1000.
    #[serde(default, deserialize_with = "number_or_null")]
    limit: Option<f64>,
}

fn order(by: Option<OrderBy>, direction: Option<Direction>) -> Order {
    Order {
        by_creation: by == Some(OrderBy::CreatedAt),
        ascending: direction == Some(Direction::Asc),
    }
}

fn page(number: Option<f64>, limit: Option<f64>, default_limit: u64) -> Page {
    let limit = limit.map_or(default_limit, |limit| {
        limit.clamp(1.0, MAX_LIMIT as f64) as u64
    });
    Page {
        number: number.map_or(1, |number| (number as u64).max(1)),
        limit,
        state: None,
    }
}

impl ListQuery {
    /// Returns the requested page.
    pub(crate) fn page(&self) -> Page {
        page(self.page_no, self.limit, DEFAULT_LIMIT)
    }

    /// Narrows the list to one toolkit.
    pub(crate) fn of_toolkit(self, toolkit: String) -> Self {
        Self {
            toolkits: vec![toolkit],
            ..self
        }
    }

    /// Returns the filter.
    pub(crate) fn into_filter(self) -> Filter {
        Filter {
            order: order(self.order_by, self.order_direction),
            name: self.name.unwrap_or_default(),
            toolkits: self.toolkits,
            auth_configs: self.auth_config_ids,
        }
    }
}

/// A page of MCP servers.
#[derive(Serialize, ToSchema)]
#[schema(as = McpServers)]
pub(crate) struct ListView {
    items: Vec<View>,
    /// At least one, even if the list is empty.
    total_pages: u64,
    /// Number of this page, from one.
    current_page: u64,
}

impl ListView {
    pub(crate) fn new(items: Vec<View>, page: &Page, total: u64) -> Self {
        Self {
            items,
            total_pages: total.div_ceil(page.limit).max(1),
            current_page: page.number,
        }
    }
}

/// Facts that the views of servers share.
pub(crate) struct ViewContext<'a> {
    server: &'a Server,
    catalog: std::sync::Arc<Snapshot>,
    needs_key: bool,
}

impl<'a> ViewContext<'a> {
    pub(crate) fn new(server: &'a Server, project: &Project) -> Self {
        Self {
            server,
            catalog: server.app.catalog.snapshot(),
            needs_key: project.stored.config.require_mcp_key,
        }
    }

    /// Returns the view of a server with a number of instances.
    pub(crate) fn view(
        &self,
        record: Record<McpServer>,
        instances: Option<u64>,
    ) -> ApiResult<View> {
        let changed_tools = mcp_servers::changed_tools(&self.catalog, &record.body)?;
        Ok(View::new(self, instances, record, changed_tools))
    }
}

view! {
    /// An MCP server.
    #[schema(as = McpServer)]
    pub(crate) struct View from (
        context: &ViewContext<'_>,
        instances: Option<u64>,
        record: Record<McpServer>,
        changed_tools: Vec<String>,
    ) where {
        let body = record.body;
        let url = mcp_servers::url(&context.server.app, &record.id);
        let with_helper_tools = body.with_helper_tools;
        let branding = &context.server.branding;
        let mcp_url = address(&url, "user_id", DEFAULT_USER, with_helper_tools, branding);
        let commands = Added::new(&body.name, mcp_url.clone(), context.needs_key);
        let logo = |slug: &String| {
            let toolkit = context.catalog.toolkit(slug);
            toolkit.map_or_else(String::new, |toolkit| logo_url(toolkit.current()))
        };
        let toolkit_icons = body.toolkits.iter().map(|slug| (slug.clone(), logo(slug)));
        let toolkit_icons = toolkit_icons.collect();
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
        #[schema(format = DateTime)]
        updated_at: String = iso(body.changed_at),
        #[schema(format = DateTime)]
        created_at: String = iso(record.created_at),
        server_instance_count: u64 = instances.unwrap_or_default(),
        managed_auth_via_service: bool = with_helper_tools,
        /// Time to which the tools are pinned; null if the latest versions are used.
        #[schema(format = DateTime)]
        tools_pinned_at: Option<String> = body.tools_as_of.map(iso),
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

/// Success of a deletion.
#[derive(Serialize, ToSchema)]
#[schema(as = RemovedMcpServer)]
pub(crate) struct RemovedView {
    id: String,
    /// Always true.
    deleted: bool,
}

impl RemovedView {
    pub(crate) fn new(id: String) -> Self {
        Self { id, deleted: true }
    }
}

/// Filter and order of the list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct InstancesQuery {
    /// Part of the user id.
    pub search: Option<String>,
    /// Time by which the list is ordered; `updated_at` without it.
    #[param(inline)]
    order_by: Option<OrderBy>,
    /// `desc` without it.
    #[param(inline)]
    order_direction: Option<Direction>,
    /// Number of the page, from 1.
    page_no: Option<f64>,
    /// Instances on a page, 20 without it and at most 1000.
    #[serde(default, deserialize_with = "number_or_null")]
    limit: Option<f64>,
}

impl InstancesQuery {
    /// Returns the requested page.
    pub(crate) fn page(&self) -> Page {
        page(self.page_no, self.limit, DEFAULT_INSTANCE_LIMIT)
    }

    /// Returns the order.
    pub(crate) fn order(&self) -> Order {
        order(self.order_by, self.order_direction)
    }
}

view! {
    /// A page of the instances of an MCP server.
    #[schema(as = McpInstances)]
    pub(crate) struct InstancesView from (
        server: Record<McpServer>,
        found: Listed<Record<Instance>>,
        page: &Page,
    ) {
        instances: Vec<InstanceView> = found.items.into_iter().map(Into::into).collect(),
        server_id: String = server.id,
        server_name: String = server.body.name,
        /// At least one, even if the list is empty.
        total_pages: u64 = found.total.div_ceil(page.limit).max(1),
        /// Number of this page, from one.
        current_page: u64 = page.number,
    }
}

view! {
    /// An instance of an MCP server.
    #[schema(as = McpInstance)]
    pub(crate) struct InstanceView from instance: Record<Instance> {
        id: String = instance.id,
        /// User of the instance.
        instance_id: String = instance.body.user_id,
        mcp_server_id: String = instance.body.server,
        #[schema(format = DateTime)]
        created_at: String = iso(instance.created_at),
        #[schema(format = DateTime)]
        updated_at: String = iso(instance.body.changed_at),
    }
}

#[derive(Deserialize, ToSchema)]
#[schema(as = CreateMcpInstance)]
pub(crate) struct CreateInstance {
    #[schema(min_length = 1)]
    user_id: String,
}

impl CreateInstance {
    /// Returns the user.
    ///
    /// # Errors
    /// If it is empty.
    pub(crate) fn user_id(&self) -> ApiResult<&str> {
        match self.user_id.trim() {
            "" => Err(errors::invalid("user_id: must not be empty").into()),
            user => Ok(user),
        }
    }
}

view! {
    /// Success of the deletion of an instance.
    #[schema(as = RemovedMcpInstance)]
    pub(crate) struct RemovedInstanceView from (removed: u64) {
        message: &'static str = "the instance is deleted",
        /// Number of accounts of the user that were deleted with it.
        deleted_connected_accounts: u64 = removed,
    }
}
