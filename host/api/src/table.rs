//! Every operation of the API, one row each; the callback of connections, which answers with a page, has
//! its row in `web`. A row says what its handler's code does not: the path, the permission, and where
//! they differ from the usual, the deadline, the largest body and the replacement. Each operation is
//! served under both prefixes.

use app::projects::permissions::{
    Access::{Read, Write},
    Area::*,
};
use http::{
    operation::MaxBody,
    row::{Row, row},
};

use crate::{
    auth_configs,
    compat::{action_logs, legacy_ids, trigger_logs},
    connected_accounts, event_stream, files, keys, logs, mcp_servers, members, oauth_apps,
    project_config, projects, session, tool_router, toolkits, tools, trigger_instances,
    triggers_types, usage, webhook_endpoints, webhook_ingress, webhook_subscriptions,
};

/// Returns the table. Exactly these operations are served, described in `docs/openapi.json` and
/// probed by the tests. A row without a permission needs an unrestricted key.
#[rustfmt::skip]
pub fn rows() -> Vec<Row> {
    vec![
        row!("/auth/session/info", session::info).any_key(),
        row!("/org/project/config", project_config::read).any_key(),
        row!("/org/project/config", project_config::update),

        // with the key of the organization
        row!("/org/owner/project/new", projects::create),
        row!("/org/owner/project/list", projects::list),
        row!("/org/owner/project/{nano_id}", projects::read),
        row!("/org/owner/project/{nano_id}", projects::remove),
        row!("/org/owner/project/{nano_id}/regenerate_api_key", projects::regenerate_key),
        row!("/org/owner/project/{nano_id}/api_keys", keys::list),
        row!("/org/owner/project/{nano_id}/api_keys", keys::create),
        row!("/org/owner/project/{nano_id}/api_keys/{key_id}", keys::remove),
        row!("/org/members", members::list),
        row!("/org/members", members::create),
        row!("/org/members/{member_id}", members::remove),
        row!("/org/oauth_apps", oauth_apps::list),
        row!("/org/oauth_apps/{slug}", oauth_apps::set),
        row!("/org/oauth_apps/{slug}", oauth_apps::remove),
        row!("/org/toolkits", toolkits::publication::published),
        row!("/toolkits/{slug}/versions/{version}", toolkits::publication::read_version).needs(Read, &[Toolkits]).own_deadline(),
        row!("/toolkits/{slug}/versions/{version}", toolkits::publication::publish).own_deadline(),
        row!("/toolkits/{slug}/versions/{version}", toolkits::publication::deprecate).own_deadline(),
        row!("/org/usage/summary", usage::organization_summary),
        row!("/org/usage/{entity_type}", usage::organization_groups),

        // with the key of a user
        row!("/org/list", members::organizations),
        row!("/org/project/list", members::projects),

        // without a key: the body has the keys to revoke
        row!("/api_key_revocation", keys::revoke),

        // catalog
        row!("/toolkits", toolkits::list).needs(Read, &[Toolkits]),
        row!("/toolkits/categories", toolkits::categories).needs(Read, &[Toolkits]),
        row!("/toolkits/changelog", toolkits::changelog::changelog).needs(Read, &[Toolkits]),
        row!("/toolkits/multi", toolkits::several).needs(Read, &[Toolkits]),
        row!("/toolkits/{slug}", toolkits::read).needs(Read, &[Toolkits]),
        row!("/toolkits/{slug}/versions", toolkits::changelog::versions).needs(Read, &[Toolkits]),
        row!("/toolkits/{slug}/scopes/grant_context", toolkits::scopes::grant_context).needs(Read, &[Toolkits]),
        row!("/toolkits/{slug}/scopes/recommended", toolkits::scopes::recommend).needs(Read, &[Toolkits]),
        row!("/tools", tools::list).needs(Read, &[Tools]),
        row!("/tools/enum", tools::slugs).needs(Read, &[Tools]),
        row!("/tools/scopes/required", tools::scopes::required).needs(Read, &[Tools]),
        row!("/tools/{tool_slug}", tools::read).needs(Read, &[Tools]),
        row!("/triggers_types", triggers_types::list).needs(Read, &[Triggers]),
        row!("/triggers_types/list/enum", triggers_types::slugs).needs(Read, &[Triggers]),
        row!("/triggers_types/{slug}", triggers_types::read).needs(Read, &[Triggers]),

        // executions
        row!("/tools/execute/proxy", tools::proxy::send).needs(Write, &[ProxyExecute]).own_deadline().max_body(MaxBody::Proxy).tool_data(),
        row!("/tools/execute/{tool_slug}", tools::execution::execute).needs(Write, &[ToolExecution]).own_deadline().max_body(MaxBody::Execute).tool_data(),
        row!("/tools/execute/{tool_slug}/input", tools::arguments::generate).needs(Read, &[ToolExecution]).own_deadline().tool_data(),
        row!("/logs/tool_execution", logs::list).needs(Read, &[Observability]),
        row!("/logs/tool_execution/{id}", logs::read).needs(Read, &[Observability]),
        row!("/logs/tool_execution/{id}/cassette", logs::cassette).needs(Read, &[Observability]),
        row!("/internal/action_execution/fields", action_logs::fields).needs(Read, &[Observability]).replaced_by("/logs/tool_execution"),
        row!("/internal/action_execution/logs", action_logs::list).needs(Read, &[Observability]).replaced_by("/logs/tool_execution"),
        row!("/internal/action_execution/log/{id}", action_logs::read).needs(Read, &[Observability]).replaced_by("/logs/tool_execution"),
        row!("/files/list", files::list).needs(Read, &[ToolExecution]),
        row!("/files/upload/request", files::request).needs(Write, &[ToolExecution]),
        row!("/project/usage/summary", usage::project_summary).needs(Read, &[Observability]),
        row!("/project/usage/{entity_type}", usage::project_groups).needs(Read, &[Observability]),

        // connections
        row!("/auth_configs", auth_configs::list).needs(Read, &[AuthConfigs]),
        row!("/auth_configs", auth_configs::create).needs(Write, &[AuthConfigs]),
        row!("/auth_configs/{nanoid}", auth_configs::read).needs(Read, &[AuthConfigs]),
        row!("/auth_configs/{nanoid}", auth_configs::update).needs(Write, &[AuthConfigs]),
        row!("/auth_configs/{nanoid}", auth_configs::remove).needs(Write, &[AuthConfigs]),
        row!("/auth_configs/{nanoid}/{status}", auth_configs::set_status).needs(Write, &[AuthConfigs]),
        row!("/connected_accounts", connected_accounts::list).needs(Read, &[ConnectedAccounts]),
        row!("/connected_accounts", connected_accounts::create).needs(Write, &[ConnectedAccounts]),
        row!("/connected_accounts/link", connected_accounts::link).needs(Write, &[ConnectedAccounts]),
        row!("/connected_accounts/complete_auth", connected_accounts::complete).needs(Write, &[ConnectedAccounts]),
        row!("/connected_accounts/{nanoid}", connected_accounts::read).needs(Read, &[ConnectedAccounts]),
        row!("/connected_accounts/{nanoid}", connected_accounts::update).needs(Write, &[ConnectedAccounts]),
        row!("/connected_accounts/{nanoid}", connected_accounts::remove).needs(Write, &[ConnectedAccounts]),
        row!("/connected_accounts/{nanoid}/refresh", connected_accounts::refresh).needs(Write, &[ConnectedAccounts]),
        row!("/connected_accounts/{nanoid}/revoke", connected_accounts::revoke).needs(Write, &[ConnectedAccounts]),
        row!("/connected_accounts/{nanoid}/status", connected_accounts::set_status).needs(Write, &[ConnectedAccounts]),

        // triggers
        row!("/trigger_instances/active", trigger_instances::list).needs(Read, &[Triggers]),
        row!("/trigger_instances/{slug}/upsert", trigger_instances::upsert).needs(Write, &[Triggers]),
        row!("/trigger_instances/manage/{triggerId}", trigger_instances::change).needs(Write, &[Triggers]),
        row!("/trigger_instances/manage/{triggerId}", trigger_instances::remove).needs(Write, &[Triggers]),
        row!("/trigger_instances/manage/{triggerId}/poll", trigger_instances::poll).needs(Write, &[Triggers]).own_deadline(),
        row!("/trigger_instances/manage/{triggerId}/actions", trigger_instances::actions::list).needs(Read, &[Triggers]),

        row!("/internal/trigger/logs", trigger_logs::list).needs(Read, &[Observability]),
        row!("/internal/trigger/log/{id}", trigger_logs::read).needs(Read, &[Observability]),

        // webhooks
        row!("/webhook_subscriptions", webhook_subscriptions::list).needs(Read, &[Webhooks]),
        row!("/webhook_subscriptions", webhook_subscriptions::create).needs(Write, &[Webhooks]),
        row!("/webhook_subscriptions/event_types", webhook_subscriptions::event_types).needs(Read, &[Webhooks]),
        row!("/webhook_subscriptions/{id}", webhook_subscriptions::read).needs(Read, &[Webhooks]),
        row!("/webhook_subscriptions/{id}", webhook_subscriptions::update).needs(Write, &[Webhooks]),
        row!("/webhook_subscriptions/{id}", webhook_subscriptions::remove).needs(Write, &[Webhooks]),
        row!("/webhook_subscriptions/{id}/rotate_secret", webhook_subscriptions::rotate_secret).needs(Write, &[Webhooks]),
        row!("/webhook_subscriptions/{id}/test", webhook_subscriptions::deliveries::send_test).needs(Write, &[Webhooks]),
        row!("/webhook_subscriptions/{id}/deliveries", webhook_subscriptions::deliveries::list).needs(Read, &[Webhooks]),
        row!("/webhook_subscriptions/{id}/deliveries/replay", webhook_subscriptions::deliveries::replay_range).needs(Write, &[Webhooks]).own_deadline(),
        row!("/webhook_subscriptions/{id}/deliveries/{delivery_id}", webhook_subscriptions::deliveries::read).needs(Read, &[Webhooks]),
        row!("/webhook_subscriptions/{id}/deliveries/{delivery_id}/replay", webhook_subscriptions::deliveries::replay).needs(Write, &[Webhooks]),
        row!("/webhook_endpoints", webhook_endpoints::list).needs(Read, &[Webhooks]),
        row!("/webhook_endpoints", webhook_endpoints::create).needs(Write, &[Webhooks]),
        row!("/webhook_endpoints/schema", webhook_endpoints::setup).needs(Read, &[Webhooks]),
        row!("/webhook_endpoints/{nano_id}", webhook_endpoints::read).needs(Read, &[Webhooks]),
        row!("/webhook_endpoints/{nano_id}", webhook_endpoints::update).needs(Write, &[Webhooks]),
        row!("/webhook_endpoints/{nano_id}", webhook_endpoints::replace).needs(Write, &[Webhooks]),
        row!("/webhook_endpoints/{nano_id}", webhook_endpoints::remove).needs(Write, &[Webhooks]),
        row!("/trigger_instances/stream", event_stream::open).needs(Read, &[Triggers]).own_deadline(),

        // MCP servers
        row!("/mcp/servers", mcp_servers::list).needs(Read, &[McpServers]),
        row!("/mcp/servers", mcp_servers::create).needs(Write, &[McpServers]),
        row!("/mcp/servers/custom", mcp_servers::create_custom).needs(Write, &[McpServers]),
        row!("/mcp/servers/generate", mcp_servers::generate).needs(Read, &[McpServers]),
        row!("/mcp/servers/{serverId}/instances", mcp_servers::instances::list_instances).needs(Read, &[McpServers]),
        row!("/mcp/servers/{serverId}/instances", mcp_servers::instances::create_instance).needs(Write, &[McpServers]),
        row!("/mcp/servers/{serverId}/instances/{instanceId}", mcp_servers::instances::remove_instance).needs(Write, &[McpServers]),
        row!("/mcp/app/{appKey}", mcp_servers::list_of_toolkit).needs(Read, &[McpServers]),
        row!("/mcp/{id}", mcp_servers::read).needs(Read, &[McpServers]),
        row!("/mcp/{id}", mcp_servers::update).needs(Write, &[McpServers]),
        row!("/mcp/{id}", mcp_servers::remove).needs(Write, &[McpServers]),

        // tool router sessions
        row!("/tool_router/session", tool_router::create).strict().needs(Write, &[Sessions]),
        row!("/tool_router/session/{session_id}", tool_router::read).needs(Read, &[Sessions]),
        row!("/tool_router/session/{session_id}", tool_router::update).strict().needs(Write, &[Sessions]),
        row!("/tool_router/session/{session_id}", tool_router::remove).needs(Write, &[Sessions]),
        row!("/tool_router/session/{session_id}/attach", tool_router::attach).strict().needs(Read, &[Sessions]),
        row!("/tool_router/session/{session_id}/config_history", tool_router::config_history).needs(Read, &[Sessions]),
        row!("/tool_router/session/{session_id}/tools", tool_router::tools).needs(Read, &[Sessions]),
        row!("/tool_router/session/{session_id}/toolkits", tool_router::list_toolkits).needs(Read, &[Sessions]),
        row!("/tool_router/session/{session_id}/link", tool_router::link).strict().needs(Write, &[Sessions, ConnectedAccounts]),
        row!("/tool_router/session/{session_id}/execute", tool_router::execution::execute).strict().needs(Write, &[SessionToolExecution, Sessions, ToolExecution]).own_deadline().max_body(MaxBody::Execute).tool_data(),
        row!("/tool_router/session/{session_id}/execute_meta", tool_router::execution::execute_meta).strict().needs(Write, &[SessionToolExecution, Sessions, ToolExecution]).own_deadline().max_body(MaxBody::Execute).tool_data(),
        row!("/tool_router/session/{session_id}/proxy_execute", tool_router::proxy::proxy_execute).strict().needs(Write, &[ProxyExecute]).own_deadline().max_body(MaxBody::Proxy).tool_data(),
        row!("/tool_router/session/{session_id}/search", tool_router::search::search).strict().needs(Write, &[SessionToolExecution, Sessions, ToolExecution]),
        row!("/tool_router/session/{session_id}/mounts/{mount_id}/items", tool_router::mounts::items).needs(Read, &[Sessions]),
        row!("/tool_router/session/{session_id}/mounts/{mount_id}/upload_url", tool_router::mounts::upload_url).needs(Write, &[Sessions]),
        row!("/tool_router/session/{session_id}/mounts/{mount_id}/download_url", tool_router::mounts::download_url).needs(Read, &[Sessions]),
        row!("/tool_router/session/{session_id}/mounts/{mount_id}/delete", tool_router::mounts::delete).needs(Write, &[Sessions]),
        row!("/labs/tool_router/session", tool_router::labs::create).strict().needs(Write, &[Sessions]),

        // called by providers
        row!("/webhook_ingress/{toolkit_slug}/{webhook_endpoint_id}/trigger_event", webhook_ingress::receive).by_provider(),
        row!("/webhook_ingress/{toolkit_slug}/{webhook_endpoint_id}/trigger_event", webhook_ingress::verify).by_provider(),
        row!("/trigger_instances/{toolkit_slug}/{project_id}/handle", webhook_ingress::receive).by_provider(),
        row!("/trigger_instances/{toolkit_slug}/{project_id}/handle", webhook_ingress::verify).by_provider(),

        // translation of a legacy id, which may belong to any of these areas
        row!("/migration/get-nanoid", legacy_ids::translate).needs(Read, &[AuthConfigs, ConnectedAccounts, Triggers]),
    ]
}
