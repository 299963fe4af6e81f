//! Operations of the public API that this server does not have. They answer 501 and name
//! the alternative.

use std::sync::Arc;

use axum::routing::{MethodFilter, MethodRouter, on};
use http::{ApiError, HttpError, Server};

#[rustfmt::skip]
const NOT_OFFERED: [NotOffered; 16] = [
    NotOffered { method: MethodFilter::GET, path: "/cli/get-session", what: "signing in from a command line", instead: INSTEAD_OF_LOGIN },
    NotOffered { method: MethodFilter::POST, path: "/cli/create-session", what: "signing in from a command line", instead: INSTEAD_OF_LOGIN },
    NotOffered { method: MethodFilter::GET, path: "/cli/realtime/credentials", what: "a push service", instead: INSTEAD_OF_PUSH },
    NotOffered { method: MethodFilter::POST, path: "/cli/realtime/auth", what: "a push service", instead: INSTEAD_OF_PUSH },
    NotOffered { method: MethodFilter::GET, path: "/internal/sdk/realtime/credentials", what: "a push service", instead: INSTEAD_OF_PUSH },
    NotOffered { method: MethodFilter::POST, path: "/internal/sdk/realtime/auth", what: "a push service", instead: INSTEAD_OF_PUSH },
    NotOffered { method: MethodFilter::POST, path: "/cli/codact_failures", what: "reports of failed calls", instead: "remove the request: the execution log contains failed calls, see `POST /logs/tool_execution`" },
    NotOffered { method: MethodFilter::POST, path: "/org/clanker/create_claim", what: "transferring an organization by mail", instead: "add the person as a member with `POST /org/members`" },
    NotOffered { method: MethodFilter::POST, path: "/org/consumer/project/resolve", what: "consumer projects", instead: "create a project with `POST /org/owner/project/new`" },
    NotOffered { method: MethodFilter::GET, path: "/org/consumer/connected_toolkits", what: "consumer projects", instead: "list the connected accounts of a user with `GET /connected_accounts?user_ids=…`" },
    NotOffered { method: MethodFilter::GET, path: "/keyring/transfer_keys", what: "transferring single secrets to another service", instead: "move the whole installation with `toolhost export` and `toolhost import`" },
    NotOffered { method: MethodFilter::GET, path: "/session_configs", what: SAVED_CONFIGS, instead: INSTEAD_OF_SAVED_CONFIG },
    NotOffered { method: MethodFilter::GET, path: "/session_configs/{session_config_id}", what: SAVED_CONFIGS, instead: INSTEAD_OF_SAVED_CONFIG },
    NotOffered { method: MethodFilter::POST, path: "/custom/toolkits/upsert", what: "defining toolkits in requests", instead: INSTEAD_OF_UPSERT },
    NotOffered { method: MethodFilter::POST, path: "/custom/toolkits/sync", what: "defining toolkits in requests", instead: INSTEAD_OF_UPSERT },
    NotOffered { method: MethodFilter::DELETE, path: "/custom/toolkits/{slug}", what: "deleting toolkits", instead: "deprecate each version of the toolkit with `DELETE /toolkits/{slug}/versions/{version}` or `toolhost toolkits remove`" },
];
const INSTEAD_OF_LOGIN: &str = "send an API key with each request: the first start of the server writes keys to a file beside the data directory, and `POST /org/members` creates keys of members";
const INSTEAD_OF_PUSH: &str = "read the stream of server-sent events at `GET /api/v3/trigger_instances/stream`, or create a webhook subscription with `POST /webhook_subscriptions`";
const SAVED_CONFIGS: &str = "saved configurations of sessions";
const INSTEAD_OF_SAVED_CONFIG: &str = "send `toolkits`, `tools` and `tags` with each session; `GET /tool_router/session/{session_id}` returns the configuration of a session";
const INSTEAD_OF_UPSERT: &str = "create the toolkit with `toolkit new` or `toolkit import`, and publish it with `toolkit publish`";

/// Operation that answers 501.
#[derive(Debug, Clone, Copy)]
struct NotOffered {
    method: MethodFilter,
    path: &'static str,
    what: &'static str,
    instead: &'static str,
}

/// Returns the paths below the prefixes, and their handlers.
pub fn routes() -> impl Iterator<Item = (&'static str, MethodRouter<Arc<Server>>)> {
    NOT_OFFERED.into_iter().map(|operation| {
        let error = HttpError::NotOffered {
            what: operation.what,
            instead: operation.instead,
        };
        let handler = on(operation.method, async move || ApiError::Http(error));
        (operation.path, handler)
    })
}
