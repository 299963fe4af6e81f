//! The limits by the table in which they stand.

use std::{fmt::Display, time::Duration};

use app::{
    agents::{self, session_files},
    catalog,
    core::{json, mapping},
    events::{self, triggers},
    files,
    projects::{MAX_KEYS_PER_OWNER, idempotency},
    runs,
};

use super::{Row, Set, row, size, time};
use crate::{
    api::{tool_router::MAX_INLINE_TOOLS, webhook_ingress},
    config::{
        BODIES_PER_ADDRESS, BODIES_PER_PROJECT, Connections, DELIVERIES_PER_ENDPOINT,
        IN_FLIGHT_WAIT, Limits, MAX_BODY_BYTES, MAX_BUSY_CALLS_PER_PROJECT, MAX_CASSETTE_BYTES,
        MAX_COMPLETION_TOKENS, MAX_EXECUTE_BODY_BYTES, MAX_PAYLOAD_BYTES, QUEUE_TIMEOUT,
        SCRIPT_MEMORY_BYTES, SCRIPTS_PER_PROJECT, Sandbox, Workbench,
    },
    http::{
        answer::{MAX_HEADER_BYTES, MAX_HEADERS, MAX_REQUEST_LINE_BYTES},
        operation::MAX_JSON_BYTES,
        page::MAX_LIMIT,
        query::{MAX_LIST_ENTRIES, MAX_TEXT_CHARS},
    },
    mcp::oauth::token::MAX_TOKEN_REQUEST_BYTES,
    mcp::{
        MAX_BATCH_MESSAGES, MAX_PAGE_BYTES, MAX_RESOURCE_BYTES, MAX_RESULT_BYTES,
        RESOURCES_PER_PAGE,
    },
    web::consent::MAX_CONSENT_FORM_BYTES,
};

const TOO_LARGE: &str = "413 `HTTP_PayloadTooLarge`";
/// Effect of an invalid request to a session.
const SESSION_INVALID: &str = "400 `ToolRouterV2_BadRequest`";
/// Effect of too many files in a session, or too large ones.
const FILES_FULL: &str = "400 `ToolRouterV2_FilesFull`";
const RECIPE_INVALID: &str = "400 `ToolRouterV2_RecipeInvalid`";
const REQUEST_INVALID: &str = "400 `Request_Invalid`";
const NODE_BUSY: &str = "503 `Server_Busy`";
const PROJECT_BUSY: &str = "429 `Server_ProjectBusy`";
/// Effect of too many records of a project. Records that exist stay.
const TOO_MANY_RECORDS: &str = "507 `Project_TooManyRecords`";
const TOO_MANY: &str = "429 `HTTP_TooManyRequests`";
const COMPONENT_TOO_COSTLY: &str = "422 `Toolkit_ComponentLimit`";
/// Effect of an invalid component or manifest.
pub(super) const COMPONENT_INVALID: &str = "400 `Toolkit_ComponentInvalid`";
const TOOL_GETS_LIMIT: &str = "the tool gets an error of kind `limit`";
const TOOL_GETS_TOO_LARGE: &str = "the tool gets an error of kind `too_large`";
const TOOL_GETS_TIMEOUT: &str = "the tool gets an error of kind `timeout`";
const SHARED_SECTION: &str = "see [Shared among projects](#shared-among-projects)";
const REST_LEFT_OUT: &str = "the rest is left out, and one more line says so";

/// Describes a default value that follows from a setting.
fn part(value: impl Display, relation: &str) -> String {
    format!("{value}, {relation}")
}

/// Describes a quota that follows from `limits.records_mib`.
fn quota(bytes: Option<u64>, relation: &str) -> String {
    part(
        bytes.map(size).unwrap_or_default(),
        &format!("{relation} `limits.records_mib`"),
    )
}

#[rustfmt::skip]
pub(super) fn requests(set: Set<'_>) -> Vec<Row> {
    let limits = Limits::default();
    vec![
        row("Request line", size(MAX_REQUEST_LINE_BYTES as u64), "414 `HTTP_UriTooLong`"),
        row("Size of all headers", size(MAX_HEADER_BYTES as u64), "431 `HTTP_HeadersTooLarge`"),
        row("Number of headers", MAX_HEADERS, "431 without a body, and the connection is closed"),
        row("JSON body of an execution", size(MAX_EXECUTE_BODY_BYTES as u64), TOO_LARGE),
        row("JSON body of a proxy request", size(MAX_JSON_BYTES as u64), TOO_LARGE),
        row("Body that a proxy request sends to the provider", size(runs::MAX_PROXY_BODY_BYTES as u64), REQUEST_INVALID),
        row("Any other JSON body", size(MAX_BODY_BYTES as u64), TOO_LARGE),
        row("Nesting depth of a JSON body", json::MAX_DEPTH, REQUEST_INVALID),
        row("Characters in a query parameter", MAX_TEXT_CHARS, REQUEST_INVALID),
        row("Entries of a list in the query", MAX_LIST_ENTRIES, REQUEST_INVALID),
        row("Entries of a page", MAX_LIMIT, "a larger `limit` is lowered to this number; a cursor with a larger one gets 400 `Request_CursorInvalid`"),
        row("Characters in an `Idempotency-Key`", crate::http::idempotency::MAX_KEY_CHARS, REQUEST_INVALID),
        row("Response stored for an `Idempotency-Key`", size(idempotency::MAX_RESPONSE_BYTES as u64), "the response is not stored; a repeated request gets 409 `Idempotency_AnswerGone`"),
        row("Responses stored for one project in a day", quota(limits.quotas().responses, "an eighth of"), "the request is performed, but its response is not stored; a repeated request gets 409 `Idempotency_AnswerGone`"),
        row("Timeout for the arrival of a body", part(time(limits.wait()), "two thirds of `limits.deadline_s`"), "408 `HTTP_RequestTimeout`, and the connection is closed"),
        set("Speed at which a body arrives and a response is read, over five seconds", "limits.min_rate_kib", "408 `HTTP_RequestTimeout`, or the connection is closed").at_least(),
        set("Deadline of an operation", "limits.deadline_s", "503 `Server_DeadlineExceeded`"),
        set("Timeout of a connection for the next request, or for the whole head of one", "limits.idle_s", "the connection is closed"),
    ]
}

#[rustfmt::skip]
pub(super) fn callers(set: Set<'_>) -> Vec<Row> {
    let limits = Limits::default();
    vec![
        set("Open connections", "limits.connections", "a further connection waits until another one ends"),
        row("Open connections from one address", part(limits.connections_per_address(), "a sixteenth of `limits.connections`"), "a further connection is closed immediately"),
        set("Concurrent requests", "limits.in_flight", SHARED_SECTION),
        row("Concurrent requests of one project", part(limits.in_flight_per_project(), "three quarters of `limits.in_flight`"), SHARED_SECTION),
        row("Arriving bodies from one address", BODIES_PER_ADDRESS, "429 `Server_AddressBusy`"),
        row("Arriving bodies of one project", BODIES_PER_PROJECT, PROJECT_BUSY),
        row("Memory of all arriving bodies", part(size(Sandbox::default().buffer_bytes()), "a quarter of `sandbox.memory_mib`"), SHARED_SECTION),
        row("Timeout of a request that waits because of a concurrency limit", format!("{} ms", IN_FLIGHT_WAIT.as_millis()), "503 `Server_Busy` or 429 `Server_ProjectBusy`"),
        row("Requests in ten minutes with keys of the organization, and of projects without a rate of their own", part(limits.rate(), "twice `limits.rate_per_project`"), TOO_MANY),
        set("Requests of one project in ten minutes; without a key half as many in addition, of which one address has a quarter", "limits.rate_per_project", TOO_MANY),
        set("Requests with one key in ten minutes", "limits.rate_per_key", TOO_MANY),
        row("Keys of a project", MAX_KEYS_PER_OWNER, REQUEST_INVALID),
        set("Failed authentications from one address in a minute", "limits.failed_auth", "429 `HTTP_TooManyFailedAuthentications`"),
        set("Time that a stopping server waits for running requests", "limits.drain_s", "their connections are closed"),
    ]
}

#[rustfmt::skip]
pub(super) fn executions(set: Set<'_>) -> Vec<Row> {
    let sandbox = Sandbox::default();
    vec![
        set("Concurrent executions", "sandbox.live", "further executions wait in the queue"),
        row("Concurrent executions of one project", part(sandbox.live_per_project(), "three quarters of `sandbox.live`"), "further executions wait in the queue"),
        row("Executions of one project that need much processor time", MAX_BUSY_CALLS_PER_PROJECT, "the executions take turns"),
        row("Executions in the queue", part(sandbox.queue(), "a quarter of `sandbox.live`"), NODE_BUSY),
        row("Executions of one project in the queue", part(sandbox.queue_per_project(), "a 32nd of `sandbox.live`"), PROJECT_BUSY),
        row("Timeout of an execution in the queue", time(QUEUE_TIMEOUT), "429 `Server_ProjectBusy` or 503 `Server_Busy`"),
        row("Result in a response", size(runs::MAX_INLINE_RESULT_BYTES as u64), "the result is stored as a file, and `data.result_file` links to it"),
        set("Memory of all executions", "sandbox.memory_mib", SHARED_SECTION),
        row("Scripts of one project that run concurrently in the workbench", SCRIPTS_PER_PROJECT, "further scripts wait"),
        row("Time for which a script waits for others of its project", time(runs::MAX_SCRIPT_WAIT), PROJECT_BUSY),
        row("Time for which a script waits for others of its session, which run sequentially", time(session_files::MAX_TURN_WAIT), "409 `ToolRouterV2_SessionBusy`"),
        row("Processor time of a script of the workbench", part(time(Duration::from_secs(Workbench::default().cpu_seconds())), "a third of `workbench.time_s`, at most 60 s"), "the script is ended with kind `tool_cpu_limit` and changes nothing"),
        set("Time of a script of the workbench, with the tools that it runs", "workbench.time_s", "the script is ended with kind `tool_timeout` and changes nothing"),
        row("Memory of a script of the workbench", size(SCRIPT_MEMORY_BYTES), "the script gets `MemoryError`"),
    ]
}

/// Destructured without `..`, so that the compiler reports a limit of the sandbox missing here.
#[rustfmt::skip]
pub(super) fn execution_resources(limits: sandbox::Limits, ceiling: sandbox::Limits) -> Vec<Row> {
    let sandbox::Limits {
        memory, cpu, wall, host_calls, requests, request_body, response_body, responses, result, log_lines, log_bytes, files,
        connect, first_byte, exchange,
        // Rows of other tables: the size of a file, and the concurrent requests of one list.
        file: _, concurrent_requests: _,
    } = limits;
    let requestable = |own: String, maximum: String| format!("{own}; a toolkit may request {maximum}");
    vec![
        row("Memory", requestable(size(memory), size(ceiling.memory)), "memory does not grow; a tool that cannot continue without more fails with `tool_memory_limit`"),
        row("Processor time", requestable(time(cpu), time(ceiling.cpu)), "`tool_cpu_limit`"),
        row("Wall-clock time", requestable(time(wall), time(ceiling.wall)), "`tool_timeout`"),
        row("Host function calls", host_calls, "`tool_host_call_limit`"),
        row("Result", size(result), "`tool_output_too_large`"),
        row("Log lines", log_lines, REST_LEFT_OUT),
        row("Size of all log lines", size(log_bytes), REST_LEFT_OUT),
        row("Outgoing requests", requests, TOOL_GETS_LIMIT),
        row("Body of an outgoing request", size(request_body), TOOL_GETS_TOO_LARGE),
        row("Body of a response", size(response_body), TOOL_GETS_TOO_LARGE),
        row("Bodies of all responses", size(responses), TOOL_GETS_LIMIT),
        row("Timeout for opening an outgoing connection", time(connect), TOOL_GETS_TIMEOUT),
        row("Timeout for the headers of a response", time(first_byte), TOOL_GETS_TIMEOUT),
        row("Timeout of an outgoing request", time(exchange), TOOL_GETS_TIMEOUT),
        row("Files that an execution creates", files, TOOL_GETS_LIMIT),
    ]
}

#[rustfmt::skip]
pub(super) fn components(set: Set<'_>) -> Vec<Row> {
    let compiling = Sandbox::default().compile_limits();
    vec![
        row("Component", size(catalog::MAX_COMPONENT_BYTES as u64), "413 `HTTP_PayloadTooLarge`"),
        row("Functions", sandbox::MAX_FUNCTIONS, COMPONENT_TOO_COSTLY),
        row("Body of a function", size(sandbox::MAX_FUNCTION_BYTES as u64), COMPONENT_TOO_COSTLY),
        row("Module instances", sandbox::MAX_CORE_INSTANCES, COMPONENT_TOO_COSTLY),
        row("Memories", sandbox::MAX_MEMORIES, COMPONENT_TOO_COSTLY),
        row("Tables", sandbox::MAX_TABLES, COMPONENT_TOO_COSTLY),
        row("Elements of a table", sandbox::MAX_TABLE_ELEMENTS, "the table does not grow"),
        set("Processor time for compiling", "sandbox.compile_cpu_s", COMPONENT_TOO_COSTLY),
        row("Wall-clock time for compiling", part(time(compiling.wall), "twice `sandbox.compile_cpu_s`"), COMPONENT_TOO_COSTLY),
        row("Memory for compiling", part(size(compiling.memory), "twice `sandbox.memory_mib`, at least 128 MiB"), COMPONENT_TOO_COSTLY),
        row("Manifest", size(manifest::MAX_MANIFEST_BYTES as u64), COMPONENT_INVALID),
        row("Tools", manifest::MAX_TOOLS, COMPONENT_INVALID),
        row("Description", size(manifest::MAX_DESCRIPTION_BYTES as u64), COMPONENT_INVALID),
        row("Schema", size(manifest::MAX_SCHEMA_BYTES as u64), COMPONENT_INVALID),
        row("Nesting depth of a schema", manifest::MAX_SCHEMA_DEPTH, COMPONENT_INVALID),
    ]
}

#[rustfmt::skip]
pub(super) fn storage(set: Set<'_>) -> Vec<Row> {
    let (limits, sandbox) = (Limits::default(), Sandbox::default());
    let records = limits.record_limits();
    vec![
        set("Size of a file", "files.size_mib", "413 `HTTP_PayloadTooLarge`; the tool that creates it gets an error of kind `too_large`"),
        row("Concurrent uploads and downloads by links", part(sandbox.transfers(), "a 32nd of `sandbox.live`"), SHARED_SECTION),
        row("Concurrent uploads and downloads of one project by links", part(sandbox.transfers_per_project(), "a 64th of `sandbox.live`"), SHARED_SECTION),
        set("Timeout for the upload or download of a file", "files.transfer_s", "408 `HTTP_RequestTimeout`, or the connection is closed"),
        set("Size of all files of one call", "files.size_mib", "400 `ActionExecute_ArgumentsInvalid`"),
        row("Number of files of one call", files::MAX_FILES_PER_CALL, "400 `ActionExecute_ArgumentsInvalid`"),
        row("Characters in a file name", files::MAX_NAME_CHARS, REQUEST_INVALID),
        set("Size of all files of one project", "files.quota_mib", "507 `File_QuotaExceeded`; for a file of a tool `file_not_kept`"),
        row("Arguments or result in a record", size(MAX_PAYLOAD_BYTES as u64), "left out, and the record says so"),
        row("Execution log of one project in a day", quota(limits.quotas().log, "as much as"), "arguments, result, log lines and requests are left out, and the record says so; at twice as much, no tool runs: 507 `Log_QuotaExceeded`"),
        set("Connected accounts of one project", "limits.accounts_per_project", TOO_MANY_RECORDS),
        row("Auth configs of one project", records.auth_configs, TOO_MANY_RECORDS),
        row("Sessions of one project", part(records.sessions, "half of `limits.accounts_per_project`"), TOO_MANY_RECORDS),
        row("MCP servers of one project", records.mcp_servers, TOO_MANY_RECORDS),
        row("Instances of MCP servers of one project", part(records.mcp_instances, "as many as `limits.accounts_per_project`"), TOO_MANY_RECORDS),
        row("Recipes of one project", part(records.recipes, "a twentieth of `limits.accounts_per_project`"), TOO_MANY_RECORDS),
        row("Runs of recipes of one project in a day", quota(limits.quotas().runs, "half of"), "507 `ToolRouterV2_RecipeRunsFull`"),
        set("Other records that one project adds in a day, with 512 bytes for each one", "limits.records_mib", "507 `Project_RecordQuotaExceeded`"),
        row("Credentials and lists of tools of an auth config as JSON", size(app::accounts::auth_configs::MAX_AUTH_CONFIG_BYTES as u64), REQUEST_INVALID),
        row("Values of a connected account as JSON", size(app::accounts::MAX_VALUES_BYTES as u64), REQUEST_INVALID),
        row("Time for which an account that was never connected is kept after it has expired or failed", time(app::accounts::NEVER_CONNECTED_TTL), "the account is erased"),
        row("Records that wait to be written", part(size(sandbox.buffer_bytes()), "a quarter of `sandbox.memory_mib`"), "new executions wait for two seconds, then get 503 `Server_Unavailable`"),
        row("Content of a cassette", size(MAX_CASSETTE_BYTES as u64), "the execution leaves no cassette: 404 `Log_NoCassette`"),
        set("Time that an account waits for its user to connect it", "connections.pending_s", "the account becomes `EXPIRED`"),
        row("Time that a user may take at the provider", part(time(Connections::default().authorization_ttl()), "six times `connections.pending_s`, at most an hour"), "the callback is refused with 400"),
        row("Users in a list of a shared account", app::accounts::MAX_LISTED_USERS, REQUEST_INVALID),
        row("Lease for refreshing a token", part(time(limits.refresh_lease()), "three times `limits.deadline_s`"), "another server may refresh the token"),
        row("Configuration of a session as JSON", size(agents::MAX_CONFIG_BYTES as u64), SESSION_INVALID),
        row("Accounts of one toolkit that a session pins", agents::MAX_PINNED_ACCOUNTS, SESSION_INVALID),
        row("Versions of a session's configuration", agents::MAX_VERSIONS, "the oldest version is erased"),
        row("Tools of the client in a request to a session", MAX_INLINE_TOOLS, SESSION_INVALID),
        row("Page of the tools of an MCP endpoint", size(MAX_PAGE_BYTES as u64), "`nextCursor` continues the list"),
        row("Result of a tool for an MCP client", size(MAX_RESULT_BYTES as u64), "the client gets its beginning and a link to a file"),
        row("Messages of a batch at an MCP endpoint", MAX_BATCH_MESSAGES, "error -32600"),
        row("Resources on a page of an MCP endpoint", RESOURCES_PER_PAGE, "`nextCursor` continues the list"),
        row("Size of a resource that an MCP client reads", size(MAX_RESOURCE_BYTES), "error -32602, which names the operation that gives a link to the file"),
        row("Characters in the name of an assistant that registers", agents::mcp_oauth::MAX_CLIENT_NAME_CHARS, "400 `invalid_client_metadata`"),
        row("Redirect URIs of an assistant that registers, together", size(agents::mcp_oauth::MAX_REDIRECT_URIS_BYTES as u64), "400 `invalid_redirect_uri`"),
        row("Form in which a member gives an assistant access", size(MAX_CONSENT_FORM_BYTES as u64), "413, as a page"),
        row("Request of an assistant for tokens", size(MAX_TOKEN_REQUEST_BYTES as u64), TOO_LARGE),
        row("Validity of the authorization code of an assistant", time(agents::mcp_oauth::CODE_TTL), "400 `invalid_grant`"),
        row("Validity of the access token of an assistant", time(agents::mcp_oauth::ACCESS_TOKEN_TTL), "401 `McpAuthorization_TokenInvalid`"),
        row("Validity of the refresh token of an assistant", time(agents::mcp_oauth::REFRESH_TOKEN_TTL), "400 `invalid_grant`"),
        row("Time in which a refresh token of an assistant gives the same tokens again", time(agents::mcp_oauth::REUSE_GRACE), "all tokens that followed from it end"),
        row("Use cases of a search for tools in a session", agents::meta::MAX_QUERIES, "400 `ActionExecute_ArgumentsInvalid`"),
        row("Characters in a use case of a search for tools", agents::meta::MAX_USE_CASE_CHARS, "the use case fails, and the others are answered"),
        row("Characters in the known fields of a use case", agents::meta::MAX_KNOWN_FIELDS_CHARS, "the use case fails, and the others are answered"),
        row("Input schemas in the result of a search for tools", size(agents::meta::MAX_SCHEMAS_BYTES as u64), "further ones are left out; `SERVICE_GET_TOOL_SCHEMAS` returns them"),
        row("Tools of a request for schemas in a session", agents::meta::MAX_SLUGS, "400 `ActionExecute_ArgumentsInvalid`"),
        row("Toolkits of a call that manages the connections of a session", agents::meta::MAX_TOOLKITS, "400 `ActionExecute_ArgumentsInvalid`"),
        row("Calls of one project that wait for connections on one server", agents::meta::MAX_WAITS_PER_PROJECT, "429 `ToolRouterV2_TooManyWaits`"),
        set("Time that a call waits for connections", "sessions.connection_wait_s", "the result has the connections as they are"),
        row("Calls of a parallel execution in a session", agents::meta::MAX_CALLS, "400 `ActionExecute_ArgumentsInvalid`"),
        row("Data of a call of a parallel execution in a session", size(agents::meta::MAX_INLINE_BYTES as u64), "the data becomes a file, and the result has a link to it"),
        row("Time of the calls of a parallel execution in a session", part(time(Workbench::default().time()), "as `workbench.time_s`"), "calls that still run are cancelled, and the others have their results"),
        row("Files of a session", session_files::MAX_FILES, FILES_FULL),
        row("Size of all files of a session that are stored", size(session_files::MAX_TOTAL_BYTES), FILES_FULL),
        row("Length of the path of a file of a session", format!("{} bytes", session_files::MAX_PATH_BYTES), SESSION_INVALID),
        row("Approvals of tools that a session remembers", agents::MAX_APPROVALS, "the oldest is forgotten, and the user is asked again"),
        row("Recipes of one user", agents::recipes::MAX_RECIPES, "422 `ToolRouterV2_TooManyRecipes`"),
        row("Versions of a recipe", agents::recipes::MAX_VERSIONS, "the oldest version is erased"),
        row("Recipe as JSON", size(agents::recipes::MAX_DEFINITION_BYTES as u64), RECIPE_INVALID),
        row("Characters in the slug of a recipe", agents::recipes::MAX_SLUG_CHARS, RECIPE_INVALID),
        row("Steps of a recipe", agents::recipes::MAX_STEPS, RECIPE_INVALID),
        row("Depth of groups of steps in a recipe", agents::recipes::MAX_NESTING, RECIPE_INVALID),
        row("Items of a loop of a recipe", agents::recipes::MAX_LOOP_ITEMS, "the run fails"),
        row("Items of all loops of a run of a recipe", agents::recipes::MAX_RUN_ITEMS, "the run fails"),
        row("Calls of tools in a run of a recipe", agents::recipes::MAX_CALLS, "the run fails"),
        row("Data of all steps of a run of a recipe", size(agents::recipes::MAX_RUN_DATA_BYTES as u64), "the run fails"),
        row("Runs of recipes of one project that have not ended", agents::recipes::MAX_PENDING_RUNS, "429 `ToolRouterV2_TooManyRecipeRuns`"),
        row("Trigger instances of one project", part(limits.trigger_instances(), "a tenth of `limits.accounts_per_project`"), "422 `TriggerInstance_TooMany`"),
        row("Configuration of a trigger instance as JSON", size(triggers::MAX_CONFIG_BYTES as u64), "400 `TriggerInstance_ConfigInvalid`"),
        set("Interval between two polls of a trigger instance", "triggers.poll_interval_s", REQUEST_INVALID).at_least(),
        row("Characters in a cron expression", triggers::MAX_CRON_CHARS, REQUEST_INVALID),
        row("Polls that follow one another without an interval", triggers::MAX_ROUNDS, "the next poll follows after the interval"),
        row("Events of one poll", triggers::MAX_EVENTS, "the poll fails, and nothing of it is stored"),
        row("Cursor and state that a poll leaves, as base64", size(triggers::MAX_MEMORY_BYTES as u64), "the poll fails, and nothing of it is stored"),
        row("Events that a trigger instance remembers", triggers::MAX_SEEN_EVENTS, "an older event that a toolkit reports again is recognized while it is stored"),
        row("Payloads of the events of one project in a day, with 1 KiB for each event", quota(limits.quotas().events, "half of"), "a test event gets 507 `Event_QuotaExceeded`, a webhook of a provider gets 503 `Webhook_Failed`, and a poll that finds events fails and is repeated; events of the server are stored"),
        row("Events that are read for one page of the log of triggers", events::trigger_log::MAX_READ_EVENTS, "the page has fewer entries, and its cursor continues"),
        row("Payloads and responses of endpoints on one page of the log of triggers", size(events::trigger_log::MAX_PAGE_BYTES as u64), "the page ends with the entry that reaches it, and its cursor continues"),
        row("Events that a read of a trigger instance shows", triggers::MAX_RECENT_EVENTS, "only the newest are shown"),
        row("Actions of one project that wait or run", part(limits.pending_actions(), "a twentieth of `limits.accounts_per_project`"), "the actions of further events fail"),
        row("Arguments of an action as JSON", size(triggers::actions::MAX_ARGUMENTS_BYTES as u64), REQUEST_INVALID),
        row("Values of an event in the arguments of an action", size(mapping::MAX_FILLED_BYTES as u64), "the action fails"),
        row("Attempts of an action", triggers::actions::MAX_ATTEMPTS, "the action fails"),
        set("Time in which every poll, or every attempt to subscribe at a provider, has failed", "events.disable_after_s", "the trigger instance is disabled"),
        row("Attempts to end a subscription at a provider", triggers::MAX_UNSUBSCRIBE_ATTEMPTS, "the provider may still send events, which are refused"),
        row("Timeout of a call that waits for a token", part(time(limits.wait()), "two thirds of `limits.deadline_s`"), "503 `ConnectedAccount_RefreshInProgress`"),
    ]
}

#[rustfmt::skip]
pub(super) fn prompts(set: Set<'_>) -> Vec<Row> {
    let sandbox = Sandbox::default();
    vec![
        row("Characters in a prompt", runs::prompt::MAX_PROMPT_CHARS, REQUEST_INVALID),
        set("Timeout for making arguments", "llm.timeout_s", "502 `ActionExecute_ModelFailed`"),
        row("Tokens of a completion", MAX_COMPLETION_TOKENS, "the completion is cut off"),
        row("Concurrent prompts", part(sandbox.prompts(), "a 32nd of `sandbox.live`"), NODE_BUSY),
        row("Concurrent prompts of one project", part(sandbox.prompts_per_project(), "a 64th of `sandbox.live`"), PROJECT_BUSY),
    ]
}

#[rustfmt::skip]
pub(super) fn webhooks(set: Set<'_>) -> Vec<Row> {
    let (limits, sandbox) = (Limits::default(), Sandbox::default());
    vec![
        row("Webhook subscriptions of one project", 1, "409 `Webhook_SubscriptionExists`"),
        row("Webhook endpoints of one project", events::endpoints::MAX_ENDPOINTS, "422 `Webhook_TooManyEndpoints`"),
        row("Characters in the client id of a webhook endpoint", events::endpoints::MAX_CLIENT_ID_CHARS, REQUEST_INVALID),
        row("Value of a webhook endpoint", size(events::endpoints::MAX_VALUE_BYTES as u64), REQUEST_INVALID),
        row("Body of a webhook of a provider", size(webhook_ingress::MAX_WEBHOOK_BYTES as u64), TOO_LARGE),
        row("Webhooks of providers to one address in a minute", part(limits.webhook_rate(), "two fifths of `limits.rate_per_project`"), "429 `Webhook_TooManyRequests`"),
        row("Time in which trigger instances receive a webhook of a provider", time(events::ingress::RECEPTION_TIMEOUT), "503 `Webhook_Failed`; the provider sends it again"),
        row("Events of one webhook of a provider for one trigger instance", triggers::MAX_EVENTS, "503 `Webhook_Failed`, and nothing of it is stored"),
        row("Characters of a handshake that are returned to a provider", events::ingress::MAX_ANSWER_CHARS, "nothing is returned"),
        row("Characters in the URL of a webhook", events::subscriptions::MAX_URL_CHARS, REQUEST_INVALID),
        set("Attempts of a delivery after the first", "webhooks.retry_delays_s", "the delivery has failed"),
        set("Timeout of an attempt", "webhooks.timeout_s", "the attempt has failed"),
        row("Time that an endpoint may ask to wait in `Retry-After`", time(events::sending::MAX_RETRY_AFTER), "the next attempt starts then"),
        row("Size of an endpoint's response that is read", size(events::sending::MAX_RESPONSE_BYTES), "the rest is not read"),
        row("Size of an endpoint's response that is kept", size(events::sending::MAX_KEPT_BYTES as u64), "the rest is left out"),
        row("Attempts of a delivery that are kept", events::delivery::MAX_KEPT_ATTEMPTS, "the oldest ones are left out"),
        row("Events in the range of a replay", part(limits.replayed_events(), "a twentieth of `limits.accounts_per_project`"), REQUEST_INVALID),
        row("Concurrent deliveries", part(sandbox.deliveries(), "half of `sandbox.live`"), "the other deliveries wait in the store"),
        row("Concurrent messages to one endpoint", DELIVERIES_PER_ENDPOINT, "the other deliveries wait in the store"),
        set("Time for which an endpoint may accept nothing", "events.disable_after_s", "the subscription is disabled"),
    ]
}
