//! Errors of tool router sessions, their meta tools, and MCP servers.

use std::fmt::Display;

use crate::core::error::{Problems, SHORT_WAIT};
pub use crate::events::errors::*;

crate::error_table! { pub table:
    /// The configuration of a session, or a request to a session, is invalid.
    SESSION_INVALID = session_invalid(problems: impl Into<Problems>): Invalid, 4300, "ToolRouterV2_BadRequest",
        "the request to the session is invalid",
        "correct the problems that `errors` lists", with_problems(problems);
    /// The session does not exist in the project.
    SESSION_NOT_FOUND = tool_router_session_not_found(id: impl Display): NotFound, 4301, "ToolRouterV2_SessionNotFound",
        "tool router session {id} not found",
        "create a session with POST /tool_router/session";
    /// The user of the session has no usable account for the toolkit.
    NO_ACTIVE_CONNECTION = no_active_connection(user: impl Display, toolkit: impl Display): Invalid, 4302, "ToolRouterV2_NoActiveConnection",
        "user `{user}` has no active connection to toolkit {toolkit} that the session may use",
        "connect an account with POST /tool_router/session/{{session_id}}/link";
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
    /// The project has no auth config for the toolkit, and the operator no OAuth app.
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
        "use a permitted tool, or change `tools` or `tags` of the session with PATCH";
    /// The session asks for the approval of calls.
    APPROVAL_UNSUPPORTED = approval_unsupported(member: &str): Invalid, 4315, "ToolRouterV2_ApprovalNotSupported",
        "{member}: this server does not ask for the approval of calls",
        "leave the member out, and exclude tools with `toolkits`, `tools` or `tags`";
    /// The meta tool is switched off in the session.
    META_TOOL_OFF = meta_tool_off(slug: impl Display): Forbidden, 4312, "ToolRouterV2_MetaToolDisabled",
        "the session does not offer the meta tool {slug}",
        "use a tool of `tool_router_tools`, or change the session with PATCH";
    /// The server does not have the meta tool.
    META_TOOL_UNAVAILABLE = meta_tool_unavailable(slug: impl Display): NotSupported, 4314, "ToolRouterV2_MetaToolNotAvailable",
        "the meta tool {slug} is not available yet",
        "use another tool of the session";
    /// The recipe cannot be stored.
    RECIPE_INVALID = recipe_invalid(slug: impl Display, problems: impl Into<Problems>): Invalid, 4320, "ToolRouterV2_RecipeInvalid",
        "recipe {slug} is invalid",
        "correct the problems that `errors` lists, and store the recipe again", with_problems(problems);
    /// The user of the session has no such recipe.
    RECIPE_NOT_FOUND = recipe_not_found(slug: impl Display): NotFound, 4321, "ToolRouterV2_RecipeNotFound",
        "the user has no recipe {slug}",
        "list the recipes with the meta tool GET_RECIPE, or store one with UPSERT_RECIPE";
    /// The arguments of a recipe do not match its input schema.
    RECIPE_INPUT_INVALID = recipe_input_invalid(slug: impl Display, problems: impl Into<Problems>): Invalid, 4322, "ToolRouterV2_RecipeInputInvalid",
        "the arguments do not match the input schema of recipe {slug}",
        "correct the problems that `errors` lists; the meta tool GET_RECIPE shows the schema", with_problems(problems);
    /// The user of the session has no such run of a recipe.
    RECIPE_RUN_NOT_FOUND = recipe_run_not_found(id: impl Display): NotFound, 4323, "ToolRouterV2_RecipeRunNotFound",
        "the user has no run {id} of a recipe, or it is older than a day",
        "execute the recipe again";
    /// The user has too many recipes.
    TOO_MANY_RECIPES = too_many_recipes(most: u64): Unprocessable, 4324, "ToolRouterV2_TooManyRecipes",
        "the user has {most} recipes, which is the most",
        "delete recipes with the meta tool UPSERT_RECIPE and `delete`";
    /// The project has too many recipes that run.
    TOO_MANY_RECIPE_RUNS = too_many_recipe_runs(most: u64): LimitReached, 4325, "ToolRouterV2_TooManyRecipeRuns",
        "{most} recipes of the project are running, which is the most",
        "retry when one of them has ended", with_retry_after(SHORT_WAIT);

    /// The MCP server does not exist in the project.
    MCP_SERVER_NOT_FOUND = mcp_server_not_found(id: impl Display): NotFound, 4401, "McpServer_NotFound",
        "MCP server {id} not found",
        "list the MCP servers of the project";
    /// The content of an MCP server is invalid, or names what does not exist.
    MCP_SERVER_INVALID = mcp_server_invalid(problems: impl Into<Problems>): Invalid, 4402, "McpServer_BadRequest",
        "the MCP server is invalid",
        "correct the problems that `errors` lists", with_problems(problems);
    /// The user has an instance of the MCP server.
    MCP_INSTANCE_EXISTS = mcp_instance_exists(user: impl Display): Conflict, 4403, "McpInstance_Exists",
        "user `{user}` has an instance of the MCP server already",
        "use the instance, or delete it first";
    /// The user has no active account of an auth config of the MCP server.
    MCP_INSTANCE_NOT_CONNECTED = mcp_instance_not_connected(user: impl Display, configs: impl Display): Forbidden, 4404, "McpInstance_NotConnected",
        "user `{user}` has no active connected account of these auth configs: {configs}",
        "connect an account of each auth config for the user first";
    /// The user has no instance of the MCP server.
    MCP_INSTANCE_NOT_FOUND = mcp_instance_not_found(id: impl Display): NotFound, 4405, "McpInstance_NotFound",
        "instance {id} of the MCP server not found",
        "list the instances of the MCP server";
    /// The MCP server has no tool of this name.
    MCP_TOOL_NOT_FOUND = mcp_tool_not_found(name: impl Display): NotFound, 4406, "McpServer_ToolNotFound",
        "the MCP server has no tool {name}",
        "call a tool of `tools/list`";
    /// The user has to connect an account first.
    MCP_NOT_CONNECTED = mcp_not_connected(user: impl Display, toolkit: impl Display, url: impl Display): Invalid, 4407, "McpServer_NotConnected",
        "user `{user}` has no active connected account for toolkit {toolkit}: connect one at {url}",
        "open the link, connect the account, and call the tool again";
}
