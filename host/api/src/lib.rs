//! One file per resource: requests, responses, handlers and views. Only this module knows
//! deprecated names.

#[macro_use]
mod macros;

pub mod auth_configs;
pub mod compat;
pub mod connected_accounts;
pub mod description;
pub(crate) mod event_stream;
pub(crate) mod files;
pub mod keys;
pub mod logs;
pub(crate) mod mcp_servers;
pub(crate) mod members;
pub(crate) mod oauth_apps;
pub(crate) mod project_config;
pub(crate) mod projects;
pub(crate) mod session;
pub mod table;
pub mod tool_router;
pub mod toolkits;
pub mod tools;
pub(crate) mod trigger_instances;
pub(crate) mod triggers_types;
pub(crate) mod usage;
pub(crate) mod webhook_endpoints;
pub mod webhook_ingress;
pub(crate) mod webhook_subscriptions;

use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

// The description of a query contains these enums, and says at each parameter what they mean.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum OrderBy {
    CreatedAt,
    UpdatedAt,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Direction {
    Asc,
    Desc,
}

/// Reads a property that may be absent, null, or a list of strings.
fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
