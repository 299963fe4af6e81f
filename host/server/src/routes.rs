//! Every route, in reading order. Each one is served under both prefixes.

use std::sync::Arc;

use axum::{
    Router,
    http::{HeaderValue, header},
    middleware::map_response,
    response::Response,
    routing::{MethodFilter, get, on},
};
use utoipa::openapi::Deprecated;
use utoipa_axum::{router::UtoipaMethodRouter, routes};

use crate::{
    Server,
    api::{
        action_logs, auth_configs, connected_accounts, files, keys, logs, members, migration,
        oauth_apps, project_config, projects, session, toolkits, tools, usage,
    },
    openapi,
    respond::{self, Failure, Wire},
    web::{self, docs, health, link},
};

/// Path prefixes: older clients use the first, newer ones the second. They differ only in the
/// default tool version.
pub(crate) const PREFIXES: [&str; 2] = ["/api/v3", "/api/v3.1"];

/// Date since which replaced operations are deprecated, as a Unix time: 21 November 2026.
const DEPRECATED: &str = "@1795219200";
/// Date until which replaced operations are served at least.
const SUNSET: &str = "Sun, 21 Nov 2027 00:00:00 GMT";

/// Path with its handlers. The `#[utoipa::path]` attribute of each handler has its method and
/// description.
pub(crate) type Row = (&'static str, UtoipaMethodRouter<Arc<Server>>);

/// Returns the route table. Exactly these routes are served, described in `docs/openapi.json` and
/// probed by the tests.
pub(crate) fn table() -> Vec<Row> {
    vec![
        ("/auth/session/info", routes!(session::info)),
        (
            "/org/project/config",
            routes!(project_config::read, project_config::update),
        ),
        // with the key of the organization
        ("/org/owner/project/new", routes!(projects::create)),
        ("/org/owner/project/list", routes!(projects::list)),
        (
            "/org/owner/project/{nano_id}",
            routes!(projects::read, projects::remove),
        ),
        (
            "/org/owner/project/{nano_id}/regenerate_api_key",
            routes!(projects::regenerate_key),
        ),
        (
            "/org/owner/project/{nano_id}/api_keys",
            routes!(keys::list, keys::create),
        ),
        (
            "/org/owner/project/{nano_id}/api_keys/{key_id}",
            routes!(keys::remove),
        ),
        ("/org/members", routes!(members::list, members::create)),
        ("/org/members/{member_id}", routes!(members::remove)),
        ("/org/oauth_apps", routes!(oauth_apps::list)),
        (
            "/org/oauth_apps/{slug}",
            routes!(oauth_apps::set, oauth_apps::remove),
        ),
        ("/org/toolkits", routes!(toolkits::published)),
        (
            "/toolkits/{slug}/versions/{version}",
            routes!(
                toolkits::read_version,
                toolkits::publish,
                toolkits::deprecate
            ),
        ),
        ("/org/usage/summary", routes!(usage::organisation_summary)),
        (
            "/org/usage/{entity_type}",
            routes!(usage::organisation_groups),
        ),
        // with the key of a user
        ("/org/list", routes!(members::organisations)),
        ("/org/project/list", routes!(members::projects)),
        // without a key: the body has the keys to revoke
        ("/api_key_revocation", routes!(keys::revoke)),
        // catalog
        ("/toolkits", routes!(toolkits::list)),
        ("/toolkits/categories", routes!(toolkits::categories)),
        ("/toolkits/changelog", routes!(toolkits::changelog)),
        ("/toolkits/multi", routes!(toolkits::several)),
        ("/toolkits/{slug}", routes!(toolkits::read)),
        (
            "/toolkits/{slug}/scopes/grant_context",
            routes!(toolkits::grant_context),
        ),
        (
            "/toolkits/{slug}/scopes/recommended",
            routes!(toolkits::recommend),
        ),
        ("/tools", routes!(tools::list)),
        ("/tools/enum", routes!(tools::slugs)),
        ("/tools/scopes/required", routes!(tools::scopes)),
        ("/tools/{tool_slug}", routes!(tools::read)),
        // executions
        ("/tools/execute/proxy", routes!(tools::proxy)),
        ("/tools/execute/{tool_slug}", routes!(tools::execute)),
        ("/tools/execute/{tool_slug}/input", routes!(tools::input)),
        ("/logs/tool_execution", routes!(logs::list)),
        ("/logs/tool_execution/{id}", routes!(logs::read)),
        (
            "/logs/tool_execution/{id}/cassette",
            routes!(logs::cassette),
        ),
        (
            "/internal/action_execution/fields",
            replaced(routes!(action_logs::fields), "/logs/tool_execution"),
        ),
        (
            "/internal/action_execution/logs",
            replaced(routes!(action_logs::list), "/logs/tool_execution"),
        ),
        (
            "/internal/action_execution/log/{id}",
            replaced(routes!(action_logs::read), "/logs/tool_execution"),
        ),
        ("/files/list", routes!(files::list)),
        ("/files/upload/request", routes!(files::request)),
        ("/project/usage/summary", routes!(usage::project_summary)),
        (
            "/project/usage/{entity_type}",
            routes!(usage::project_groups),
        ),
        // connections
        (
            "/auth_configs",
            routes!(auth_configs::list, auth_configs::create),
        ),
        (
            "/auth_configs/{nanoid}",
            routes!(
                auth_configs::read,
                auth_configs::update,
                auth_configs::remove
            ),
        ),
        (
            "/auth_configs/{nanoid}/{status}",
            routes!(auth_configs::set_status),
        ),
        (
            "/connected_accounts",
            routes!(connected_accounts::list, connected_accounts::create),
        ),
        (
            "/connected_accounts/link",
            routes!(connected_accounts::link),
        ),
        (
            "/connected_accounts/complete_auth",
            routes!(connected_accounts::complete),
        ),
        (
            "/connected_accounts/{nanoid}",
            routes!(
                connected_accounts::read,
                connected_accounts::update,
                connected_accounts::remove
            ),
        ),
        (
            "/connected_accounts/{nanoid}/refresh",
            routes!(connected_accounts::refresh),
        ),
        (
            "/connected_accounts/{nanoid}/revoke",
            routes!(connected_accounts::revoke),
        ),
        (
            "/connected_accounts/{nanoid}/status",
            routes!(connected_accounts::set_status),
        ),
        // called by a browser that returns from a provider
        ("/toolkits/auth/callback", routes!(link::callback::handle)),
        ("/migration/get-nanoid", routes!(migration::nanoid)),
    ]
}

/// Marks an operation as deprecated and kept for older clients. Its responses carry the
/// deprecation, the sunset date and the replacement (RFC 9745, RFC 8594, RFC 5829).
fn replaced(
    row: UtoipaMethodRouter<Arc<Server>>,
    by: &'static str,
) -> UtoipaMethodRouter<Arc<Server>> {
    let (schemas, mut described, methods) = row;
    for item in described.paths.values_mut() {
        for operation in [&mut item.get, &mut item.post].into_iter().flatten() {
            operation.deprecated = Some(Deprecated::True);
        }
    }
    let methods = methods.layer(map_response(move |mut response: Response| async move {
        let headers = response.headers_mut();
        headers.insert("deprecation", HeaderValue::from_static(DEPRECATED));
        headers.insert("sunset", HeaderValue::from_static(SUNSET));
        let link = format!("<{}{by}>; rel=\"successor-version\"", PREFIXES[1]);
        headers.extend(
            HeaderValue::try_from(link)
                .ok()
                .map(|link| (header::LINK, link)),
        );
        response
    }));
    (schemas, described, methods)
}

/// Operations of the public API that do not apply to a self-hosted server: they answer 501 and name
/// the alternative.
#[rustfmt::skip]
const ELSEWHERE: [Elsewhere; 14] = [
    Elsewhere { method: MethodFilter::GET, path: "/cli/get-session", what: "signing in by a vendor's command line", instead: CLI },
    Elsewhere { method: MethodFilter::POST, path: "/cli/create-session", what: "signing in by a vendor's command line", instead: CLI },
    Elsewhere { method: MethodFilter::GET, path: "/cli/realtime/credentials", what: "a vendor's push service", instead: PUSH },
    Elsewhere { method: MethodFilter::POST, path: "/cli/realtime/auth", what: "a vendor's push service", instead: PUSH },
    Elsewhere { method: MethodFilter::POST, path: "/cli/codact_failures", what: "telling a vendor about failed calls", instead: "leave it out; the execution log has what failed, see `POST /logs/tool_execution`" },
    Elsewhere { method: MethodFilter::POST, path: "/org/clanker/create_claim", what: "handing an organization over to a person by mail", instead: "add the person with `POST /org/members`" },
    Elsewhere { method: MethodFilter::POST, path: "/org/consumer/project/resolve", what: "a consumer's project", instead: "make a project with `POST /org/owner/project/new`" },
    Elsewhere { method: MethodFilter::GET, path: "/org/consumer/connected_toolkits", what: "a consumer's project", instead: "list what a user has connected with `GET /connected_accounts?user_ids=…`" },
    Elsewhere { method: MethodFilter::GET, path: "/keyring/transfer_keys", what: "moving secrets between hosted services", instead: "move the whole installation with `toolhost export` and `toolhost import`" },
    Elsewhere { method: MethodFilter::GET, path: "/session_configs", what: "session templates of a vendor's console", instead: "give the settings when a session is made" },
    Elsewhere { method: MethodFilter::GET, path: "/session_configs/{session_config_id}", what: "session templates of a vendor's console", instead: "give the settings when a session is made" },
    Elsewhere { method: MethodFilter::POST, path: "/custom/toolkits/upsert", what: "making toolkits by a vendor's console", instead: TOOLKITS },
    Elsewhere { method: MethodFilter::POST, path: "/custom/toolkits/sync", what: "making toolkits by a vendor's console", instead: TOOLKITS },
    Elsewhere { method: MethodFilter::DELETE, path: "/custom/toolkits/{slug}", what: "making toolkits by a vendor's console", instead: TOOLKITS },
];
const CLI: &str = "use a key: the first start writes them beside the data directory, and `POST /org/members` makes more";
const PUSH: &str = "subscribe a webhook, or read the execution log";
const TOOLKITS: &str =
    "write it with `toolkit new` or `toolkit import`, and publish it with `toolkit publish`";

/// Operation that answers 501.
#[derive(Debug, Clone, Copy)]
struct Elsewhere {
    method: MethodFilter,
    path: &'static str,
    what: &'static str,
    instead: &'static str,
}

/// Builds the router from the tables.
pub(crate) fn router(server: Arc<Server>) -> Router {
    let mut router = Router::new()
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .route(
            "/files/{project}/{id}",
            get(web::files::get).put(web::files::put),
        )
        .route("/oauth/clients/{id}", get(link::client_metadata::read))
        .route("/link/done", get(link::page::done))
        .route(
            "/link/{token}",
            get(link::page::show).post(link::page::submit),
        );
    let table = table();
    let description = docs::description(openapi::text(&table, &server.words));
    for prefix in PREFIXES {
        router = router.route(&format!("{prefix}/openapi.json"), description.clone());
        for (path, (_, _, methods)) in &table {
            router = router.route(&format!("{prefix}{path}"), methods.clone());
        }
        for Elsewhere {
            method,
            path,
            what,
            instead,
        } in ELSEWHERE
        {
            let refuse = async move || Failure::Wire(Wire::Elsewhere { what, instead });
            router = router.route(&format!("{prefix}{path}"), on(method, refuse));
        }
    }
    router = router
        .route("/docs", get(docs::page))
        .route("/docs/{asset}", get(docs::asset));
    router
        .fallback(respond::unknown_route)
        .method_not_allowed_fallback(respond::wrong_method)
        .with_state(server)
}
