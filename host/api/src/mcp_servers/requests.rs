//! Requests of MCP servers.

use app::agents::mcp_servers::{Changes, Filter, Order};
use http::{Page, branding::Branding, page::MAX_LIMIT, query::number_or_null};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::{Direction, OrderBy, texts};

/// Servers on a page of a request that names no limit.
pub(super) const DEFAULT_LIMIT: u64 = 10;
/// Toolkits of the operator. They are no toolkits of the catalog: as a toolkit of an MCP server,
/// they stand for the tools that connect accounts.
const OPERATOR_TOOLKITS: [&str; 2] = ["service", "service_search"];

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
    /// Always refused: the toolkits are those of the auth configs and of `no_auth_apps`.
    #[serde(default, deserialize_with = "refuse_toolkits")]
    #[schema(ignore)]
    #[expect(dead_code, reason = "refused while it is read")]
    toolkits: Option<bool>,
    /// Always refused: `allowed_tools` is meant.
    #[serde(default, deserialize_with = "refuse_tools")]
    #[schema(ignore)]
    #[expect(dead_code, reason = "refused while it is read")]
    tools: Option<bool>,
    /// Always refused: the address of an MCP server names its user.
    #[serde(default, deserialize_with = "refuse_user")]
    #[schema(ignore)]
    #[expect(dead_code, reason = "refused while it is read")]
    user_id: Option<bool>,
}

impl Create {
    /// Returns the content of the new server.
    pub(crate) fn into_changes(self, branding: &Branding) -> Changes {
        let operator: Vec<_> = OPERATOR_TOOLKITS.map(|slug| branding.rename(slug)).into();
        let (helpers, toolkits): (Vec<_>, Vec<_>) = self
            .no_auth_apps
            .into_iter()
            .partition(|slug| operator.iter().any(|own| own.eq_ignore_ascii_case(slug)));
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
    /// Toolkits, in addition to those of the auth configs and of the tools.
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
    /// Always refused: `allowed_tools` is meant.
    #[serde(default, deserialize_with = "refuse_tools")]
    #[schema(ignore)]
    #[expect(dead_code, reason = "refused while it is read")]
    tools: Option<bool>,
    /// Always refused: the address of an MCP server names its user.
    #[serde(default, deserialize_with = "refuse_user")]
    #[schema(ignore)]
    #[expect(dead_code, reason = "refused while it is read")]
    user_id: Option<bool>,
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
    /// Always refused: `allowed_tools` is meant.
    #[serde(default, deserialize_with = "refuse_tools")]
    #[schema(ignore)]
    #[expect(dead_code, reason = "refused while it is read")]
    tools: Option<bool>,
    /// Always refused: the address of an MCP server names its user.
    #[serde(default, deserialize_with = "refuse_user")]
    #[schema(ignore)]
    #[expect(dead_code, reason = "refused while it is read")]
    user_id: Option<bool>,
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

refusals! {
    refuse_toolkits: "does not belong here: use POST /mcp/servers/custom, or name toolkits without accounts in `no_auth_apps`";
    refuse_tools: "does not belong here: name the tools in `allowed_tools`";
    refuse_user: "restricts no MCP server: name the user in its address, with `?user_id=`";
}

/// Users and accounts whose addresses are wanted.
#[derive(Deserialize, ToSchema)]
#[schema(as = GenerateMcpUrls)]
pub(crate) struct Generate {
    pub mcp_server_id: String,
    #[serde(default, deserialize_with = "texts")]
    pub user_ids: Vec<String>,
    #[serde(default, deserialize_with = "texts")]
    pub connected_account_ids: Vec<String>,
    /// Adds the tools that connect accounts.
    pub managed_auth_by_service: Option<bool>,
}

/// Filters and order of the list.
#[derive(Default, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Part of the name.
    name: Option<String>,
    /// With tools of one of these toolkits.
    toolkits: Vec<String>,
    /// With one of these auth configs.
    auth_config_ids: Vec<String>,
    /// Time by which the list is ordered; `updated_at` without it.
    #[param(inline)]
    order_by: Option<OrderBy>,
    /// `desc` without it.
    #[param(inline)]
    order_direction: Option<Direction>,
    /// Number of the page, from 1.
    pub page_no: Option<f64>,
    /// Servers on a page, 10 without it and at most 1000.
    #[serde(deserialize_with = "number_or_null")]
    pub limit: Option<f64>,
}

/// Returns the order that a list asks for.
pub(super) fn order(by: Option<OrderBy>, direction: Option<Direction>) -> Order {
    Order {
        by_creation: by == Some(OrderBy::CreatedAt),
        ascending: direction == Some(Direction::Asc),
    }
}

/// Returns the page that a number and a limit select.
pub(super) fn page(number: Option<f64>, limit: Option<f64>, default_limit: u64) -> Page {
    let limit = limit.map_or(default_limit, |limit| {
        limit.clamp(1.0, MAX_LIMIT as f64) as u64
    });
    Page {
        number: number.map_or(1, |number| (number as u64).max(1)),
        limit,
        state: None,
    }
}

impl From<ListQuery> for Filter {
    fn from(query: ListQuery) -> Self {
        Self {
            order: order(query.order_by, query.order_direction),
            name: query.name.unwrap_or_default(),
            toolkits: query.toolkits,
            toolkit: None,
            auth_configs: query.auth_config_ids,
        }
    }
}
