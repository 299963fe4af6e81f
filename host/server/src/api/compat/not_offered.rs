//! Operations of the public API that do not apply to a self-hosted server. They answer 501 and name
//! the alternative.

use std::sync::Arc;

use axum::routing::{MethodFilter, MethodRouter, on};

use crate::{
    Server,
    http::{ApiError, HttpError},
};

#[rustfmt::skip]
const NOT_OFFERED: [NotOffered; 14] = [
    NotOffered { method: MethodFilter::GET, path: "/cli/get-session", what: "signing in by a vendor's command line", instead: INSTEAD_OF_LOGIN },
    NotOffered { method: MethodFilter::POST, path: "/cli/create-session", what: "signing in by a vendor's command line", instead: INSTEAD_OF_LOGIN },
    NotOffered { method: MethodFilter::GET, path: "/cli/realtime/credentials", what: "a vendor's push service", instead: INSTEAD_OF_PUSH },
    NotOffered { method: MethodFilter::POST, path: "/cli/realtime/auth", what: "a vendor's push service", instead: INSTEAD_OF_PUSH },
    NotOffered { method: MethodFilter::GET, path: "/internal/sdk/realtime/credentials", what: "a vendor's push service", instead: INSTEAD_OF_PUSH },
    NotOffered { method: MethodFilter::POST, path: "/internal/sdk/realtime/auth", what: "a vendor's push service", instead: INSTEAD_OF_PUSH },
    NotOffered { method: MethodFilter::POST, path: "/cli/codact_failures", what: "telling a vendor about failed calls", instead: "leave it out; the execution log has what failed, see `POST /logs/tool_execution`" },
    NotOffered { method: MethodFilter::POST, path: "/org/clanker/create_claim", what: "handing an organization over to a person by mail", instead: "add the person with `POST /org/members`" },
    NotOffered { method: MethodFilter::POST, path: "/org/consumer/project/resolve", what: "a consumer's project", instead: "make a project with `POST /org/owner/project/new`" },
    NotOffered { method: MethodFilter::GET, path: "/org/consumer/connected_toolkits", what: "a consumer's project", instead: "list what a user has connected with `GET /connected_accounts?user_ids=…`" },
    NotOffered { method: MethodFilter::GET, path: "/keyring/transfer_keys", what: "moving secrets between hosted services", instead: "move the whole installation with `toolhost export` and `toolhost import`" },
    NotOffered { method: MethodFilter::POST, path: "/custom/toolkits/upsert", what: "making toolkits by a vendor's console", instead: INSTEAD_OF_CONSOLE },
    NotOffered { method: MethodFilter::POST, path: "/custom/toolkits/sync", what: "making toolkits by a vendor's console", instead: INSTEAD_OF_CONSOLE },
    NotOffered { method: MethodFilter::DELETE, path: "/custom/toolkits/{slug}", what: "making toolkits by a vendor's console", instead: INSTEAD_OF_CONSOLE },
];
const INSTEAD_OF_LOGIN: &str = "use a key: the first start writes them beside the data directory, and `POST /org/members` makes more";
const INSTEAD_OF_PUSH: &str = "read the stream of server-sent events at `GET /api/v3/trigger_instances/stream`, or subscribe a webhook with `POST /webhook_subscriptions`";
const INSTEAD_OF_CONSOLE: &str =
    "write it with `toolkit new` or `toolkit import`, and publish it with `toolkit publish`";

/// Operation that answers 501.
#[derive(Debug, Clone, Copy)]
struct NotOffered {
    method: MethodFilter,
    path: &'static str,
    what: &'static str,
    instead: &'static str,
}

/// Returns the paths below the prefixes, and their handlers.
pub(crate) fn routes() -> impl Iterator<Item = (&'static str, MethodRouter<Arc<Server>>)> {
    NOT_OFFERED.into_iter().map(|operation| {
        let error = HttpError::NotOffered {
            what: operation.what,
            instead: operation.instead,
        };
        let refuse = async move || ApiError::Http(error);
        (operation.path, on(operation.method, refuse))
    })
}
