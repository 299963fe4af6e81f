//! Maps the path of a request to the permission that its key needs.
//!
//! A path without a row needs an unrestricted key. Therefore a new route is closed to restricted
//! keys until it is assigned to an area.

use Need::{All, Anything, Of};
use app::projects::permissions::{
    Access,
    Area::{
        self, AuthConfigs, ConnectedAccounts, McpServers, Observability, ProxyExecute,
        SessionToolExecution, Sessions, ToolExecution, Toolkits, Tools, Triggers, Webhooks,
    },
};
use axum::http::Method;

use crate::routes::PREFIXES;

/// Permission that a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// No particular permission.
    Anything,
    /// The given access in one of the areas.
    Of(&'static [Area], Access),
    /// An unrestricted key.
    All,
}

/// Access that the requests of a path need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    /// GET needs read access, every other method write access.
    ByMethod,
    /// All methods need read access.
    Reads,
}

/// Paths and their areas. The first row that a path begins with applies. `*` matches any single
/// segment.
const ROWS: [(&str, &[Area], Does); 28] = [
    ("auth_configs", &[AuthConfigs], Does::ByMethod),
    ("connected_accounts", &[ConnectedAccounts], Does::ByMethod),
    ("tools/execute/proxy", &[ProxyExecute], Does::ByMethod),
    ("tools/execute/*/input", &[ToolExecution], Does::Reads),
    ("tools/execute", &[ToolExecution], Does::ByMethod),
    ("tools", &[Tools], Does::Reads),
    ("toolkits", &[Toolkits], Does::Reads),
    ("custom/toolkits", &[Toolkits], Does::ByMethod),
    ("files", &[ToolExecution], Does::ByMethod),
    ("logs", &[Observability], Does::Reads),
    ("project/usage", &[Observability], Does::Reads),
    ("internal/action_execution", &[Observability], Does::Reads),
    ("internal/trigger", &[Observability], Does::Reads),
    ("internal/sdk/realtime", &[Triggers], Does::Reads),
    ("trigger_instances", &[Triggers], Does::ByMethod),
    ("triggers_types", &[Triggers], Does::ByMethod),
    ("webhook_subscriptions", &[Webhooks], Does::ByMethod),
    ("webhook_endpoints", &[Webhooks], Does::ByMethod),
    (
        "tool_router/session/*/execute",
        &[ToolExecution, Sessions, SessionToolExecution],
        Does::ByMethod,
    ),
    (
        "tool_router/session/*/execute_meta",
        &[ToolExecution, Sessions, SessionToolExecution],
        Does::ByMethod,
    ),
    (
        "tool_router/session/*/search",
        &[ToolExecution, Sessions, SessionToolExecution],
        Does::ByMethod,
    ),
    (
        "tool_router/session/*/proxy_execute",
        &[ProxyExecute, Sessions],
        Does::ByMethod,
    ),
    ("tool_router", &[Sessions], Does::ByMethod),
    ("labs/tool_router", &[Sessions], Does::ByMethod),
    ("session_configs", &[Sessions], Does::ByMethod),
    ("mcp", &[McpServers], Does::ByMethod),
    // Translation of a legacy id, which may belong to any of these areas.
    (
        "migration",
        &[AuthConfigs, ConnectedAccounts, Triggers],
        Does::Reads,
    ),
    ("org/project/config", &[], Does::ByMethod),
];

/// Returns the permission that a request needs.
pub(crate) fn needed(method: &Method, path: &str) -> Need {
    let below = PREFIXES
        .iter()
        .rev()
        .find_map(|prefix| path.strip_prefix(prefix)?.strip_prefix('/'));
    let Some(below) = below else { return All };
    if below == "auth/session/info" {
        return Anything;
    }
    let Some((_, areas, does)) = ROWS.iter().find(|(row, ..)| begins(below, row)) else {
        return All;
    };
    let reads = *does == Does::Reads || matches!(*method, Method::GET | Method::HEAD);
    match (areas.is_empty(), reads) {
        (true, true) => Anything,
        (true, false) => All,
        (false, true) => Of(areas, Access::Read),
        (false, false) => Of(areas, Access::Write),
    }
}

fn begins(path: &str, row: &str) -> bool {
    let mut segments = path.split('/');
    row.split('/').all(|wanted| {
        segments
            .next()
            .is_some_and(|own| wanted == "*" || wanted == own)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::table;

    fn of(method: Method, path: &str) -> Need {
        let [older, newer] = PREFIXES.map(|prefix| needed(&method, &format!("{prefix}{path}")));
        assert_eq!(older, newer, "{path}");
        older
    }

    #[test]
    fn some_posts_read_and_the_longer_path_decides() {
        for (method, path, need) in [
            (Method::GET, "/tools", Of(&[Tools], Access::Read)),
            (
                Method::POST,
                "/tools/scopes/required",
                Of(&[Tools], Access::Read),
            ),
            (
                Method::POST,
                "/tools/execute/MAIL_SEND",
                Of(&[ToolExecution], Access::Write),
            ),
            (
                Method::POST,
                "/tools/execute/MAIL_SEND/input",
                Of(&[ToolExecution], Access::Read),
            ),
            (
                Method::POST,
                "/tools/execute/proxy",
                Of(&[ProxyExecute], Access::Write),
            ),
            (
                Method::POST,
                "/logs/tool_execution",
                Of(&[Observability], Access::Read),
            ),
            (
                Method::POST,
                "/toolkits/multi",
                Of(&[Toolkits], Access::Read),
            ),
            (
                Method::GET,
                "/files/list",
                Of(&[ToolExecution], Access::Read),
            ),
            (
                Method::DELETE,
                "/connected_accounts/ca_x",
                Of(&[ConnectedAccounts], Access::Write),
            ),
            (Method::GET, "/auth/session/info", Anything),
            (Method::GET, "/org/project/config", Anything),
            (Method::PATCH, "/org/project/config", All),
        ] {
            assert_eq!(of(method, path), need, "{path}");
        }
        let running: &[Area] = &[ToolExecution, Sessions, SessionToolExecution];
        assert_eq!(
            of(Method::POST, "/tool_router/session/trs_x/execute"),
            Of(running, Access::Write)
        );
        assert_eq!(
            of(Method::POST, "/tool_router/session/trs_x/link"),
            Of(&[Sessions], Access::Write)
        );
    }

    #[test]
    fn every_project_route_has_an_area() {
        let others = [
            "/org/owner",
            "/org/oauth_apps",
            "/org/toolkits",
            "/org/members",
            "/org/list",
            "/org/project/list",
            "/org/usage",
        ];
        for (path, _) in table() {
            let of_project = !others.iter().any(|other| path.starts_with(other))
                && path != "/api_key_revocation";
            assert_eq!(of(Method::GET, path) != All, of_project, "{path}");
        }
    }

    #[test]
    fn what_no_row_names_needs_an_unrestricted_key() {
        for path in ["/toolsets", "/newer/thing", "/", ""] {
            assert_eq!(of(Method::GET, path), All, "{path}");
        }
        assert_eq!(needed(&Method::GET, "/elsewhere"), All);
    }
}
