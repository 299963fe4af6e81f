//! Errors of tool router sessions, their meta tools, and MCP servers.

use std::fmt::Display;

use crate::core::error::{Problems, SHORT_WAIT};
pub use crate::events::errors::*;

crate::error_table! { pub table:
    /// The configuration of a session, or a request to a session, is invalid.
    SESSION_INVALID = session_invalid(problems: impl Into<Problems>): Invalid, 4300, "ToolRouterV2_BadRequest",
        "the request to the session is invalid",
        "correct the problems that the error lists", with_problems(problems);
    /// The session does not exist in the project.
    SESSION_NOT_FOUND = tool_router_session_not_found(id: impl Display): NotFound, 4301, "ToolRouterV2_SessionNotFound",
        "tool router session {id} not found",
        "create a session with POST /tool_router/session";
    /// The user of the session lacks a usable account for the toolkit. The note names one that is not
    /// active, or is empty.
    NO_ACTIVE_CONNECTION = no_active_connection(user: impl Display, toolkit: impl Display, note: &str): Invalid, 4302, "ToolRouterV2_NoActiveConnection",
        "user `{user}` has no active connection to toolkit {toolkit} that the session may use{note}",
        "connect an account with the operation `link` of the session, or with the meta tool SERVICE_MANAGE_CONNECTIONS";
    /// The session names toolkits that do not exist.
    INVALID_TOOLKIT_SLUGS = invalid_toolkit_slugs(slugs: impl Display): Invalid, 4305, "ToolRouterV2_InvalidToolkitSlugs",
        "these toolkits do not exist: {slugs}",
        "list the toolkits to see the slugs";
    /// The session names tools that do not exist in their toolkit.
    INVALID_TOOL_SLUGS = invalid_tool_slugs(slugs: impl Display): Invalid, 4306, "ToolRouterV2_InvalidToolSlugs",
        "these tools do not exist: {slugs}",
        "list the tools of the toolkit to see the slugs";
    /// An auth config of the session does not exist, or cannot be used for its toolkit in sessions.
    INVALID_AUTH_CONFIGS = invalid_auth_configs(problems: impl Display): Invalid, 4307, "ToolRouterV2_InvalidAuthConfigIds",
        "these auth configs cannot be used: {problems}",
        "name enabled auth configs of the toolkits with `is_enabled_for_tool_router`";
    /// A pinned account does not exist, cannot be used, or does not belong to the session's user.
    INVALID_ACCOUNTS = invalid_accounts(problems: impl Display): Invalid, 4309, "ToolRouterV2_InvalidConnectedAccountIds",
        "these connected accounts cannot be used: {problems}",
        "name active accounts of the toolkits that belong to the session's user or are shared with it";
    /// The project lacks an auth config for the toolkit, and the operator an OAuth app.
    NO_AUTH_CONFIG = no_auth_config(toolkit: impl Display): Invalid, 4308, "ToolRouterV2_NoManagedAuth",
        "toolkit {toolkit} has no managed auth and no auth config that sessions may use",
        "create an auth config for the toolkit, or ask the operator to configure an OAuth app";
    /// The toolkit needs no account.
    TOOLKIT_NO_AUTH = toolkit_no_auth(toolkit: impl Display): Invalid, 4326, "ToolRouterV2_ToolkitsIsNoAuth",
        "toolkit {toolkit} needs no account",
        "execute its tools without a connection";
    /// The session does not permit the toolkit.
    TOOLKIT_NOT_PERMITTED = toolkit_not_permitted(toolkit: impl Display, reason: impl Display): Forbidden, 4310, "ToolRouterV2_ToolkitNotPermitted",
        "the session does not permit toolkit {toolkit}: {reason}",
        "change `toolkits` of the session with PATCH";
    /// The session does not permit the tool.
    TOOL_NOT_PERMITTED = tool_not_permitted(tool: impl Display, reason: impl Display): Forbidden, 4311, "ToolRouterV2_ToolNotPermitted",
        "the session does not permit tool {tool}: {reason}",
        "use a permitted tool, or change the restriction of the session with PATCH";
    /// The user must approve the call, and the caller cannot ask for it.
    APPROVAL_REQUIRED = approval_required(tool: impl Display): Forbidden, 4321, "ToolRouterV2_ApprovalRequired",
        "the session runs {tool} only after its user has approved the call",
        "call the tool alone with the operation `execute` of the session, or over MCP with a client that asks its user; both ask for the approval";
    /// The state is not one of this call, or has expired. Nothing ran.
    APPROVAL_INVALID = approval_invalid(tool: impl Display): Invalid, 4322, "ToolRouterV2_ApprovalInvalid",
        "it belongs to no request for the approval of this call of {tool}, has expired, or the session was changed meanwhile",
        "call the tool with the same arguments and without `request_state`, to ask for approval again", at("request_state");
    /// The state has been answered before. Nothing ran.
    APPROVAL_ANSWERED = approval_answered(tool: impl Display): Invalid, 4323, "ToolRouterV2_ApprovalAnswered",
        "the request for the approval of this call of {tool} has been answered",
        "call the tool without `request_state`, to ask for approval again; repeat a request whose answer was lost with its idempotency key", at("request_state");
    /// The meta tool is switched off in the session.
    META_TOOL_OFF = meta_tool_off(slug: impl Display): Forbidden, 4312, "ToolRouterV2_MetaToolDisabled",
        "the session does not offer the meta tool {slug}",
        "use a tool of `tool_router_tools`, or switch the meta tool on with PATCH of the session";
    /// The slug of a called tool is, or resembles, that of a meta tool.
    META_TOOL_MEANT = meta_tool_meant(reason: impl Display): NotFound, 2401, "Tool_ToolNotFound",
        "no tool of a toolkit has this slug: {reason}",
        "run meta tools with the operation `execute_meta` of the session, or over MCP; `tool_router_tools` of the session lists its meta tools";
    /// The session permits the user no further account of the toolkit. No link was created.
    TOO_MANY_SESSION_ACCOUNTS = too_many_session_accounts(user: impl Display, toolkit: impl Display, most: u32): Forbidden, 4313, "ToolRouterV2_TooManyAccounts",
        "user `{user}` has {most} accounts of toolkit {toolkit}, connected or waiting for the user, which is the most that the session permits (`multi_account.max_accounts_per_toolkit`)",
        "use one of these accounts, delete one that is not needed, or raise `multi_account.max_accounts_per_toolkit` of the session with PATCH";
    /// The project waits for connections in too many calls. Nothing was started.
    TOO_MANY_WAITS = too_many_waits(max: usize): LimitReached, 4320, "ToolRouterV2_TooManyWaits",
        "the project waits for connections in {max} calls already",
        "wait for all toolkits in one call, or retry after a moment", with_retry_after(SHORT_WAIT);
    /// The mount does not exist in the session.
    MOUNT_NOT_FOUND = mount_not_found(id: impl Display): NotFound, 4330, "ToolRouterV2_MountNotFound",
        "the session has no mount `{id}`",
        "use the mount `files`";
    /// The file does not exist in the session.
    SESSION_FILE_NOT_FOUND = session_file_not_found(path: impl Display): NotFound, 4331, "ToolRouterV2_FileNotFound",
        "the session has no file `{path}`",
        "list the files of the mount `files` of the session";
    /// The files of the session would exceed a limit. Nothing was changed.
    SESSION_FILES_FULL = session_files_full(files: usize, mib: u64): Invalid, 4332, "ToolRouterV2_FilesFull",
        "the session would have more than {files} files, or more than {mib} MiB in files",
        "delete files of the session that are not needed any more";
    /// The session has another version of its configuration than the change was made for. Nothing was
    /// changed.
    SESSION_VERSION_CHANGED = session_version_changed(stored: u32, expected: u32): Conflict, 4335, "ToolRouterV2_ConfigVersionChanged",
        "the session has version {stored} of its configuration, not {expected}",
        "read the session, and send the change again with its `config_version`", at("expected_config_version");
    /// Other scripts or commands of the session run.
    SESSION_BUSY = session_busy(): Conflict, 4333, "ToolRouterV2_SessionBusy",
        "other scripts or commands of the session are running",
        "wait until they have ended, and try again", with_retry_after(SHORT_WAIT);
    /// A script or command has lost its turn while it ran, because the store did not answer in time.
    /// It was ended, and may have had an effect.
    TURN_LOST = turn_lost(reason: impl Display): UpstreamTimeout, 4334, "ToolRouterV2_TurnLost",
        "the script or command was ended while it ran, and may have had an effect: {reason}",
        "check what it has done before you run it again";
    /// The session does not permit the request of a script.
    SCRIPT_REQUEST_REFUSED = script_request_refused(function: &str, reason: &str): Forbidden, 4341, "ToolRouterV2_ScriptRequestRefused",
        "the session does not permit {function}: {reason}",
        "do without it, or change the session with PATCH";
    /// The recipe cannot be stored.
    RECIPE_INVALID = recipe_invalid(slug: impl Display, problems: impl Into<Problems>): Invalid, 4350, "ToolRouterV2_RecipeInvalid",
        "recipe {slug} is invalid",
        "correct the problems that the error lists, and store the recipe again", with_problems(problems);
    /// The recipe does not exist for the user of the session.
    RECIPE_NOT_FOUND = recipe_not_found(slug: impl Display): NotFound, 4351, "ToolRouterV2_RecipeNotFound",
        "the user has no recipe {slug}",
        "list the recipes with the meta tool SERVICE_GET_RECIPE, or store one with SERVICE_UPSERT_RECIPE";
    /// The arguments of a recipe do not match its input schema.
    RECIPE_INPUT_INVALID = recipe_input_invalid(slug: impl Display, problems: impl Into<Problems>): Invalid, 4352, "ToolRouterV2_RecipeInputInvalid",
        "the arguments do not match the input schema of recipe {slug}",
        "correct the problems that the error lists; the meta tool SERVICE_GET_RECIPE shows the schema", with_problems(problems);
    /// The run of a recipe does not exist for the user of the session.
    RECIPE_RUN_NOT_FOUND = recipe_run_not_found(id: impl Display): NotFound, 4353, "ToolRouterV2_RecipeRunNotFound",
        "the user has no run {id} of a recipe, or it is older than a day",
        "execute the recipe again";
    /// The user has too many recipes.
    TOO_MANY_RECIPES = too_many_recipes(most: u64): Unprocessable, 4354, "ToolRouterV2_TooManyRecipes",
        "the user has {most} recipes, which is the most",
        "delete recipes with the meta tool SERVICE_UPSERT_RECIPE and `delete`";
    /// The project has too many recipes that run.
    TOO_MANY_RECIPE_RUNS = too_many_recipe_runs(most: u64): LimitReached, 4355, "ToolRouterV2_TooManyRecipeRuns",
        "{most} recipes of the project are running, which is the most",
        "retry when one of them has ended", with_retry_after(SHORT_WAIT);
    /// The project has kept too many bytes of runs of recipes in a day.
    RECIPE_RUNS_FULL = recipe_runs_full(): StorageFull, 4356, "ToolRouterV2_RecipeRunsFull",
        "the runs of recipes of the project have kept as many bytes as they may in a day",
        "retry in some hours, return less as the output of recipes, or ask the operator to raise `limits.records_mib`";
    /// The session could not run the stored steps without asking, or another one with other limits has stored the
    /// script, and it may not replace or delete them.
    RECIPE_PROTECTED = recipe_protected(slug: impl Display, problems: impl Into<Problems>): Forbidden, 4357, "ToolRouterV2_RecipeProtected",
        "recipe {slug} has steps, perhaps in an older version, that the session may not run, so that it may not change or delete the recipe",
        "store the recipe under another slug, or change it in a session that may run its steps without asking", with_problems(problems);
    /// The scripts of the recipe were stored by a session with other limits. Nothing ran.
    RECIPE_SCRIPT_REFUSED = recipe_script_refused(slug: impl Display): Forbidden, 4358, "ToolRouterV2_RecipeScriptRefused",
        "recipe {slug} has a script that a session with other limits has stored",
        "execute the recipe in a session with the same toolkits, tools, permissions and accounts, or store it again in a session without limits";

    /// The MCP server does not exist in the project.
    MCP_SERVER_NOT_FOUND = mcp_server_not_found(id: impl Display): NotFound, 4401, "McpServer_NotFound",
        "MCP server {id} not found",
        "list the MCP servers of the project";
    /// The content of an MCP server is invalid, or names what does not exist.
    MCP_SERVER_INVALID = mcp_server_invalid(problems: impl Into<Problems>): Invalid, 4402, "McpServer_BadRequest",
        "the MCP server is invalid",
        "correct the problems that the error lists", with_problems(problems);
    /// The user has an instance of the MCP server.
    MCP_INSTANCE_EXISTS = mcp_instance_exists(user: impl Display): Conflict, 4403, "McpInstance_Exists",
        "user `{user}` has an instance of the MCP server already",
        "use the instance, or delete it first";
    /// The user lacks an active account of an auth config of the MCP server.
    MCP_INSTANCE_NOT_CONNECTED = mcp_instance_not_connected(user: impl Display, configs: impl Display): Forbidden, 4404, "McpInstance_NotConnected",
        "user `{user}` has no active connected account of these auth configs: {configs}",
        "connect an account of each auth config for the user first";
    /// The instance of the MCP server does not exist for the user.
    MCP_INSTANCE_NOT_FOUND = mcp_instance_not_found(id: impl Display): NotFound, 4405, "McpInstance_NotFound",
        "instance {id} of the MCP server not found",
        "list the instances of the MCP server";
    /// The MCP server lacks a tool of this name.
    MCP_TOOL_NOT_FOUND = mcp_tool_not_found(name: impl Display, similar: &str): NotFound, 4406, "McpServer_ToolNotFound",
        "the MCP server has no tool {name}{similar}",
        "call a tool of `tools/list`";
    /// The session has no tool of this name over MCP, and has the meta tools that find and run others.
    MCP_TOOL_NOT_IN_SESSION = mcp_tool_not_in_session(name: impl Display, similar: &str): NotFound, 4406, "McpServer_ToolNotFound",
        "the MCP server has no tool {name}{similar}",
        "call a tool of `tools/list`, or find a tool with SERVICE_SEARCH_TOOLS and run it with SERVICE_MULTI_EXECUTE_TOOL";
    /// The session permits the tool, and lists only others over MCP.
    MCP_TOOL_NOT_LISTED = mcp_tool_not_listed(name: impl Display): NotFound, 4406, "McpServer_ToolNotFound",
        "the session permits the tool {name}, but does not list it",
        "run it with SERVICE_MULTI_EXECUTE_TOOL, or have the session list it with `preload`";
    /// The user has to connect an account first.
    MCP_NOT_CONNECTED = mcp_not_connected(user: impl Display, toolkit: impl Display, url: impl Display): Invalid, 4407, "McpServer_NotConnected",
        "user `{user}` has no active connected account for toolkit {toolkit}: connect one at {url}",
        "open the link, connect the account, and call the tool again";

    /// The metadata of an assistant that registers as an OAuth client is invalid.
    MCP_CLIENT_INVALID = mcp_client_invalid(problem: impl Display): Invalid, 4410, "McpAuthorization_ClientInvalid",
        "the client cannot be registered: {problem}",
        "correct the metadata and register again";
    /// A redirect URI of an assistant is not permitted.
    MCP_REDIRECT_URI_INVALID = mcp_redirect_uri_invalid(problem: impl Display): Invalid, 4411, "McpAuthorization_RedirectUriInvalid",
        "redirect_uris cannot be registered: {problem}",
        "register addresses with https, with http on 127.0.0.1, or with a scheme of your program";
    /// This installation did not issue the client id.
    MCP_CLIENT_UNKNOWN = mcp_client_unknown(): Invalid, 4412, "McpAuthorization_ClientUnknown",
        "client_id was not issued by this server",
        "register the client with POST /oauth/register";
    /// An authorization code or a refresh token is not valid.
    MCP_GRANT_INVALID = mcp_grant_invalid(problem: impl Display): Invalid, 4413, "McpAuthorization_GrantInvalid",
        "the code or refresh token is not valid: {problem}",
        "start a new authorization at /oauth/authorize";
    /// A token is requested for something other than an MCP endpoint, or for another endpoint than
    /// was consented to.
    MCP_TARGET_INVALID = mcp_target_invalid(problem: impl Display): Invalid, 4414, "McpAuthorization_TargetInvalid",
        "resource is not valid: {problem}",
        "send the `resource` of the metadata of the MCP endpoint";
    /// The access token is not valid at the MCP endpoint.
    MCP_TOKEN_INVALID = mcp_token_invalid(): Unauthenticated, 4415, "McpAuthorization_TokenInvalid",
        "the access token has ended, was revoked, or is for another endpoint",
        "refresh the token, or start a new authorization at /oauth/authorize";
    /// The key gives no access to the MCP endpoint, or the endpoint does not exist.
    MCP_KEY_WITHOUT_ACCESS = mcp_key_without_access(): Forbidden, 4416, "McpAuthorization_KeyWithoutAccess",
        "the key gives no access to the MCP endpoint, or there is no such endpoint",
        "use a key of the project, or the user key of a member";
}
