//! Errors that the server finds itself: keys that are missing or may not be used here, limits of
//! requests, and cursors.

use std::{fmt::Display, time::Duration};

use app::SHORT_WAIT;
pub use app::errors::*;
use gate::Capacity;

app::error_table! { pub table:
    /// The request has no API key. The keys that the operation takes are named with their headers.
    KEY_MISSING = key_missing(wanted: &str): Unauthenticated, 10401, "HTTP_Unauthorized",
        "the request has no API key: the operation needs {wanted}",
        "send a key of this kind in this header; on the server, `toolhost keys show` prints its keys";
    /// The request has more than one credential.
    KEY_AMBIGUOUS = key_ambiguous(): Unauthenticated, 10401, "HTTP_Unauthorized",
        "the request has more than one API key",
        "send exactly one key";
    /// The key is of another kind than the operation needs, or in another header. Both are named with
    /// their article.
    KEY_OF_OTHER_KIND = key_of_other_kind(wanted: &str, given: &str): Unauthenticated, 10401, "HTTP_Unauthorized",
        "the operation needs {wanted}, and the request has {given}",
        "send a key of this kind in this header; on the server, `toolhost keys show` prints its keys";
    /// The operation is open only to keys without restricted permissions.
    KEY_RESTRICTED = key_restricted(): Forbidden, 10403, "HTTP_Forbidden",
        "the operation needs a key without restrictions, and the permissions of this key are restricted",
        "use a key of the project that was created without `permissions`, or the key of a member with the role `admin`";
    /// The key may not be used from the caller's address.
    KEY_ADDRESS = key_address(): Forbidden, 10433, "HTTP_AddressNotAllowed",
        "the key may not be used from the address of the request",
        "send the request from an address in `allowed_ips` of the key, or use another key";
    /// An MCP endpoint is not reached under this host name.
    HOST_NOT_ALLOWED = host_not_allowed(host: impl Display): Forbidden, 10438, "HTTP_HostNotAllowed",
        "MCP endpoints of this server are not reached under the host `{host}`",
        "use the host of `public_url`, an IP address, or a host in the setting `mcp.allowed_hosts`";
    /// A web page of another host sent the request.
    ORIGIN_NOT_ALLOWED = origin_not_allowed(origin: impl Display): Forbidden, 10439, "HTTP_OriginNotAllowed",
        "web pages of `{origin}` may not use the MCP endpoints of this server",
        "add the host of the page to the setting `mcp.allowed_hosts`";

    /// A request to the authorization server for assistants is invalid.
    MCP_AUTHORIZATION_INVALID = mcp_authorization_invalid(problem: impl Display): Invalid, 4417, "McpAuthorization_RequestInvalid",
        "the authorization request is invalid: {problem}",
        "start the authorization again in the application";
    /// A client requests tokens by another grant than the server has.
    MCP_GRANT_TYPE_UNKNOWN = mcp_grant_type_unknown(): Invalid, 4418, "McpAuthorization_GrantTypeUnknown",
        "grant_type is not supported",
        "use authorization_code or refresh_token";
    /// A client requests a scope that the server does not grant.
    MCP_SCOPE_INVALID = mcp_scope_invalid(scope: &str): Invalid, 4419, "McpAuthorization_ScopeInvalid",
        "scope names `{scope}`, but the only scope of this server is `mcp`",
        "send `scope=mcp`, or no scope";

    /// Too many wrong keys came from one address.
    TOO_MANY_FAILURES = too_many_failures(retry_after: Duration): LimitReached, 10430, "HTTP_TooManyFailedAuthentications",
        "too many failed authentications from this address",
        "wait, then send a valid key", with_retry_after(retry_after);
    /// A rate limit is exceeded. The owner of the limit is named with its article.
    RATE_EXCEEDED = rate_exceeded(owner: &str, retry_after: Duration): LimitReached, 10429, "HTTP_TooManyRequests",
        "{owner} has exceeded its rate limit for ten minutes",
        "wait, or ask the operator to raise `limits.rate_per_project` or `limits.rate_per_key`", with_retry_after(retry_after);
    /// Too many webhooks were sent to one address.
    WEBHOOK_RATE_EXCEEDED = webhook_rate_exceeded(retry_after: Duration): LimitReached, 2827, "Webhook_TooManyRequests",
        "the address has received too many webhooks in a minute",
        "send it again later, or ask the operator to raise `limits.rate_per_project`", with_retry_after(retry_after);
    /// The address has as much as one address may have at the same time. Nothing was started.
    ADDRESS_BUSY = address_busy(capacity: Capacity): LimitReached, 10435, "Server_AddressBusy",
        "the address has reached its limit of {capacity}",
        "nothing was started: retry when other requests of the address have ended", with_retry_after(SHORT_WAIT);

    /// The cursor was not made by this server.
    CURSOR_INVALID = cursor_invalid(): Invalid, 10423, "Request_CursorInvalid",
        "is not a cursor that the server returned for this list",
        "send `next_cursor` exactly as the server returned it, or omit the cursor", at("cursor");
    /// Usage of this name is not counted.
    USAGE_NOT_FOUND = usage_not_found(name: impl Display): NotFound, 803, "Usage_NotFound",
        "usage of `{name}` is not counted",
        "request the usage of `tool_execution`";
}
