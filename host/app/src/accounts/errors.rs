//! Errors of auth configs, connected accounts, connection attempts and tokens.

use std::{fmt::Display, time::Duration};

use crate::core::error::{Problems, SHORT_WAIT};
pub use crate::files::errors::*;

crate::error_table! { pub table:
    /// The auth config does not exist in the project.
    AUTH_CONFIG_NOT_FOUND = auth_config_not_found(id: impl Display): NotFound, 301, "Auth_Config_NotFound",
        "auth config {id} not found",
        "list the auth configs of the project";
    /// The server lacks managed credentials for the toolkit.
    NO_MANAGED_AUTH = no_managed_auth(toolkit: impl Display): Invalid, 306, "Auth_Config_DefaultAuthConfigNotFound",
        "toolkit {toolkit} has no managed credentials on this server",
        "create the auth config with type `use_custom_auth` and an `authScheme`, or ask the operator to configure an OAuth app for the toolkit";
    /// The operator has not set an OAuth app for the toolkit.
    OAUTH_APP_NOT_FOUND = oauth_app_not_found(toolkit: impl Display): NotFound, 308, "Oauth_App_NotFound",
        "no OAuth app is configured for toolkit {toolkit}",
        "list the OAuth apps, or configure one with `toolhost oauth-apps set`";

    /// The connected account does not exist in the project.
    ACCOUNT_NOT_FOUND = account_not_found(id: impl Display): NotFound, 601, "ConnectedAccount_NotFound",
        "connected account {id} not found",
        "list the connected accounts of the project";
    /// The connected account is deleted.
    ACCOUNT_DELETED = account_deleted(id: impl Display): Gone, 617, "ConnectedAccount_Deleted",
        "connected account {id} is deleted",
        "connect the account again, or use another account";
    /// The credential of the account was revoked before.
    ACCOUNT_REVOKED = account_revoked(id: impl Display): Conflict, 618, "ConnectedAccount_Revoked",
        "the credential of connected account {id} was revoked before",
        "connect the account again with POST /connected_accounts/{nanoid}/refresh, or delete it";
    /// The request was refused for another reason.
    ACCOUNT_REFUSED = account_refused(reason: impl Display): Invalid, 600, "ConnectedAccount_BadRequest",
        "{reason}",
        "correct the request";
    /// Fields of the auth scheme are missing or invalid.
    ACCOUNT_FIELDS = account_fields(problems: impl Into<Problems>): Invalid, 612, "ConnectedAccount_MissingRequiredFields",
        "required fields of the connection are missing or invalid",
        "send the fields that the error lists in `connection.state.val`", with_problems(problems);

    /// The secret that a browser sent is unknown, used or expired. The error does not say which.
    ATTEMPT_UNKNOWN = attempt_unknown(): Invalid, 610, "ConnectedAccount_FlowInvalid",
        "the link of this connection attempt is not valid: it was used, has expired, or was opened in another browser",
        "start a new connection with POST /connected_accounts/link, and open its link once, in one browser";
    /// No account with this `session_uri` waits to be completed by the project.
    SESSION_NOT_FOUND = session_not_found(): NotFound, 611, "ConnectedAccount_SessionNotFound",
        "no connected account with this `session_uri` waits for completion",
        "complete each `session_uri` once, within ten minutes";

    /// The provider rejects the credential.
    CREDENTIAL_REJECTED = credential_rejected(reason: impl Display): Invalid, 613, "ConnectedAccount_CredentialRejected",
        "the provider rejects the credential: {reason}",
        "correct the credential, or create a new one at the provider";
    /// The toolkit declares no request that verifies a credential.
    CHECK_UNSUPPORTED = check_unsupported(toolkit: impl Display): NotSupported, 614, "ConnectedAccount_CheckUnsupported",
        "toolkit {toolkit} declares no request that verifies a credential",
        "omit `validate_credentials`, and execute a tool to verify the credential";
    /// Another call is refreshing the token, and the refresh takes long.
    REFRESH_IN_PROGRESS = refresh_in_progress(account: impl Display): Unavailable, 615, "ConnectedAccount_RefreshInProgress",
        "the token of connected account {account} is being refreshed",
        "nothing was sent: retry after a moment", with_retry_after(SHORT_WAIT);
    /// The token has expired, and the provider did not refresh it. The refresh is tried again
    /// later.
    REFRESH_UNAVAILABLE = refresh_unavailable(account: impl Display, reason: impl Display, retry_after: Duration): Unavailable, 616, "ConnectedAccount_RefreshUnavailable",
        "the token of connected account {account} has expired, and it was not refreshed: {reason}",
        "nothing was sent: retry later; the account stays connected", with_retry_after(retry_after);

    /// The user has no usable connected account. The note names one that is not active, or is empty.
    NO_ACCOUNT = no_account(user: impl Display, toolkit: impl Display, note: &str): NotFound, 1810, "ActionExecute_ConnectedAccountNotFound",
        "user `{user}` has no active connected account for toolkit {toolkit}{note}",
        "connect an account for this user first, or name an account that is shared with the user in `connected_account_id`";
    /// The account that the request names does not exist.
    NAMED_ACCOUNT_NOT_FOUND = named_account_not_found(id: impl Display): NotFound, 1810, "ActionExecute_ConnectedAccountNotFound",
        "connected account {id} not found",
        "connect an account for this user first, or name an account that is shared with the user in `connected_account_id`";
    /// An account was named without its user.
    ACCOUNT_USER_MISSING = account_user_missing(account: impl Display): Invalid, 1811, "ActionExecute_ConnectedAccountEntityIdRequired",
        "the request names connected account {account} without its user",
        "send `user_id` with `connected_account_id`";
    /// The account belongs to another user.
    ACCOUNT_USER_MISMATCH = account_user_mismatch(account: impl Display, user: impl Display): Invalid, 1812, "ActionExecute_ConnectedAccountEntityIdMismatch",
        "connected account {account} does not belong to user `{user}`",
        "send the `user_id` that the account was connected for";
    /// The account is shared, but not with this user.
    ACCOUNT_NOT_SHARED = account_not_shared(account: impl Display, user: impl Display): Forbidden, 1815, "ActionExecute_ConnectedAccountNotShared",
        "connected account {account} is not shared with user `{user}`",
        "change `experimental.acl_config_for_shared` of the account, or use an account of the user";
    /// The account exists but cannot be used, because of its status or for another reason.
    ACCOUNT_NOT_ACTIVE = account_not_active(account: impl Display, state: impl Display): Unprocessable, 1813, "ActionExecute_ConnectedAccountExpired",
        "connected account {account} is {state}",
        "enable or reconnect the account, or use another account";
    /// The auth config does not allow the tool.
    TOOL_NOT_ALLOWED = tool_not_allowed(config: impl Display, tool: impl Display): Forbidden, 1814, "ActionExecute_ToolNotAllowed",
        "auth config {config} does not allow tool {tool}",
        "use a tool that the auth config allows, or change its `tool_access_config`";
    /// The request names neither an account nor a credential.
    AUTH_CONTEXT_MISSING = auth_context_missing(): Invalid, 1830, "MissingAuthContext",
        "the request names neither a connected account nor a credential",
        "send `connected_account_id` or `custom_connection_data`";
}
