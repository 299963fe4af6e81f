//! The limits by the table in which they stand.

use std::{fmt::Display, time::Duration};

use api::{
    tool_router::MAX_INLINE_TOOLS, tools::custom_credential::MAX_CREDENTIAL_PARTS, webhook_ingress,
};
use app::{
    accounts::{self, oauth_apps},
    agents::{self, session_files},
    catalog,
    core::{json, mapping},
    events::{self, triggers},
    files,
    projects::{MAX_KEYS_PER_OWNER, idempotency, permissions::MAX_RANGES},
    runs,
};
use http::{
    answer::{MAX_HEADER_BYTES, MAX_HEADERS, MAX_REQUEST_LINE_BYTES},
    operation::MAX_JSON_BYTES,
    page::MAX_LIMIT,
    query::{MAX_LIST_ENTRIES, MAX_TEXT_CHARS},
};
use mcp::oauth::token::MAX_TOKEN_REQUEST_BYTES;
use mcp::{
    MAX_BATCH_MESSAGES, MAX_PAGE_BYTES, MAX_RESOURCE_BYTES, MAX_RESULT_BYTES, RESOURCES_PER_PAGE,
};
use settings::{
    BODIES_PER_ADDRESS, BODIES_PER_PROJECT, Connections, DELIVERIES_PER_ENDPOINT, IN_FLIGHT_WAIT,
    Limits, MAX_BODY_BYTES, MAX_BUSY_CALLS_PER_PROJECT, MAX_CASSETTE_BYTES, MAX_COMPLETION_TOKENS,
    MAX_EXECUTE_BODY_BYTES, MAX_PAYLOAD_BYTES, QUEUE_TIMEOUT, SCRIPT_MEMORY_BYTES,
    SCRIPTS_PER_PROJECT, Sandbox, Workbench,
};
use web::consent::MAX_CONSENT_FORM_BYTES;

use super::{Row, Set, row, size, time};

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
        row("Request line", size(MAX_REQUEST_LINE_BYTES as u64), "414 `HTTP_UriTooLong`", "tests/e2e/budget.rs request_limits_are_enforced"),
        row("Size of all headers", size(MAX_HEADER_BYTES as u64), "431 `HTTP_HeadersTooLarge`", "tests/e2e/budget.rs request_head_limits_are_enforced"),
        row("Number of headers", MAX_HEADERS, "431 without a body, and the connection is closed", "tests/e2e/budget.rs request_head_limits_are_enforced"),
        row("JSON body of an execution", size(MAX_EXECUTE_BODY_BYTES as u64), TOO_LARGE, "tests/e2e/budget.rs request_limits_are_enforced"),
        row("JSON body of a proxy request", size(MAX_JSON_BYTES as u64), TOO_LARGE, "tests/e2e/budget.rs request_limits_are_enforced"),
        row("Body that a proxy request sends to the provider", size(runs::MAX_PROXY_BODY_BYTES as u64), REQUEST_INVALID, "tests/e2e/proxy.rs invalid_proxy_body_is_refused"),
        row("Any other JSON body", size(MAX_BODY_BYTES as u64), TOO_LARGE, "tests/e2e/budget.rs request_limits_are_enforced"),
        row("Nesting depth of a JSON body", json::MAX_DEPTH, REQUEST_INVALID, "tests/e2e/budget.rs request_limits_are_enforced"),
        row("Characters in a query parameter", MAX_TEXT_CHARS, REQUEST_INVALID, "tests/e2e/budget.rs request_limits_are_enforced"),
        row("Entries of a list in the query", MAX_LIST_ENTRIES, REQUEST_INVALID, "tests/e2e/budget.rs request_limits_are_enforced"),
        row("Entries of a page", MAX_LIMIT, "a larger `limit` is lowered to this number; a cursor with a larger one gets 400 `Request_CursorInvalid`", "tests/e2e/budget.rs request_limits_are_enforced"),
        row("Conditions of a search in a log", api::logs::MAX_CONDITIONS, REQUEST_INVALID, "host/api/src/logs/mod.rs searches_are_limited_in_conditions_and_characters"),
        row("Characters in the value of a condition of a search in a log", api::logs::MAX_VALUE_CHARS, REQUEST_INVALID, "host/api/src/logs/mod.rs searches_are_limited_in_conditions_and_characters"),
        row("Parameters of `custom_auth_params`, and properties of its body", MAX_CREDENTIAL_PARTS, REQUEST_INVALID, "host/api/src/tools/custom_credential.rs parts_of_a_credential_are_limited"),
        row("Characters in a user id", accounts::MAX_USER_ID_CHARS, REQUEST_INVALID, "host/app/src/accounts/user_id.rs user_ids_are_limited_in_characters"),
        row("Characters in an `Idempotency-Key`", http::idempotency::MAX_KEY_CHARS, REQUEST_INVALID, "tests/e2e/budget.rs request_limits_are_enforced"),
        row("Response stored for an `Idempotency-Key`", size(idempotency::MAX_RESPONSE_BYTES as u64), "the response is not stored; a repeated request gets 409 `Idempotency_AnswerGone`", "tests/e2e/budget.rs replayed_response_size_is_limited"),
        row("Responses stored for one project in a day", quota(limits.quotas().responses, "an eighth of"), "the request is performed, but its response is not stored; a repeated request gets 409 `Idempotency_AnswerGone`", "tests/e2e/abuse/quotas.rs answers_past_a_projects_quota_are_not_kept"),
        row("Timeout for the arrival of a body", part(time(limits.wait()), "two thirds of `limits.deadline_s`"), "408 `HTTP_RequestTimeout`, and the connection is closed", "tests/e2e/budget.rs request_timeouts_are_enforced"),
        row("Rest of the body of a refused request that is read to keep its connection", format!("{} in {}", size(http::listen::MAX_DISCARDED_BYTES as u64), time(http::listen::DISCARD_TIMEOUT)), "the response says `Connection: close`", "tests/e2e/abuse/edge.rs refused_request_keeps_or_ends_its_connection"),
        set("Speed at which a body arrives and a response is read, over five seconds", "limits.min_rate_kib", "408 `HTTP_RequestTimeout`, or the connection is closed", "tests/e2e/abuse/edge.rs trickling_body_is_cut").at_least(),
        set("Deadline of an operation", "limits.deadline_s", "503 `Server_DeadlineExceeded`", "tests/e2e/idempotency.rs deadline_ends_work_with_idempotency_key"),
        set("Timeout of a connection for the next request, or for the whole head of one", "limits.idle_s", "the connection is closed", "tests/e2e/budget.rs request_timeouts_are_enforced"),
    ]
}

#[rustfmt::skip]
pub(super) fn callers(set: Set<'_>) -> Vec<Row> {
    let limits = Limits::default();
    vec![
        set("Open connections", "limits.connections", "a further connection waits until another one ends", "tests/e2e/budget.rs connection_limits_are_enforced"),
        row("Open connections from one address", part(limits.connections_per_address(), "a sixteenth of `limits.connections`"), "a further connection is closed immediately", "tests/e2e/budget.rs connection_limits_are_enforced"),
        row("Arriving bodies from one address", BODIES_PER_ADDRESS, "429 `Server_AddressBusy`", "tests/e2e/abuse/edge.rs slow_bodies_hold_no_place"),
        row("Arriving bodies of one project", BODIES_PER_PROJECT, PROJECT_BUSY, "tests/e2e/abuse/edge.rs slow_bodies_hold_no_place"),
        row("Timeout of a request that waits because of a concurrency limit", format!("{} ms", IN_FLIGHT_WAIT.as_millis()), "503 `Server_Busy` or 429 `Server_ProjectBusy`", "tests/e2e/budget.rs concurrent_request_limits_are_enforced"),
        set("Requests in ten minutes with keys of the organization itself; twice the setting", "limits.rate_per_project", TOO_MANY, "tests/e2e/limits.rs organization_rate_limit_gives_retry_after"),
        set("Requests of one project in ten minutes", "limits.rate_per_project", TOO_MANY, "tests/e2e/limits.rs project_rate_limit_protects_other_projects"),
        row("Requests without a key to one project in ten minutes", part(limits.stranger_rate(), "or half of `limits.rate_per_project` if that is set"), TOO_MANY, "host/http/src/limiter/rates.rs only_keyless_requests_are_limited_by_default"),
        row("Requests without a key from one address to one project in ten minutes", part(limits.stranger_address_rate(), "or an eighth of `limits.rate_per_project` if that is set"), TOO_MANY, "tests/e2e/limits.rs address_without_key_has_part_of_rate"),
        set("Requests with one key in ten minutes", "limits.rate_per_key", TOO_MANY, "tests/e2e/limits.rs each_key_has_its_own_rate_limit"),
        row("Addresses and networks from which a key may be used", MAX_RANGES, REQUEST_INVALID, "host/app/src/projects/permissions.rs ranges_of_a_key_are_limited"),
        row("Keys that one request revokes", api::keys::MAX_REVOKED, REQUEST_INVALID, "tests/e2e/keys.rs leaked_key_can_be_revoked_without_disclosure"),
        row("Keys of a project", MAX_KEYS_PER_OWNER, REQUEST_INVALID, "tests/e2e/keys.rs names_restrictions_and_number_of_keys_are_checked"),
        set("Failed authentications from one address in a minute", "limits.failed_auth", "429 `HTTP_TooManyFailedAuthentications`", "tests/e2e/abuse/edge.rs guesses_do_not_lock_out_a_valid_key"),
        set("Time that a stopping server waits for running requests", "limits.drain_s", "their connections are closed", "tests/e2e/stopping.rs endless_call_does_not_prevent_stopping"),
    ]
}

#[rustfmt::skip]
pub(super) fn executions(set: Set<'_>) -> Vec<Row> {
    let sandbox = Sandbox::default();
    vec![
        row("Executions of one project that need much processor time", MAX_BUSY_CALLS_PER_PROJECT, "the executions take turns", "tests/e2e/sandbox.rs other_projects_are_served_beside_spinning_guests"),
        row("Executions in the queue", part(sandbox.queue(), "a quarter of `sandbox.live`"), NODE_BUSY, "tests/e2e/overload.rs excess_runs_wait_or_are_refused"),
        row("Executions of one project in the queue", part(sandbox.queue_per_project(), "a 32nd of `sandbox.live`"), PROJECT_BUSY, "tests/e2e/overload.rs excess_runs_wait_or_are_refused"),
        row("Timeout of an execution in the queue", time(QUEUE_TIMEOUT), "429 `Server_ProjectBusy` or 503 `Server_Busy`", "host/gate/src/permits.rs key_at_its_limit_waits_then_is_refused"),
        row("Result in a response", size(runs::MAX_INLINE_RESULT_BYTES as u64), "the result is stored as a file, and `data.result_file` links to it", "tests/e2e/large_results.rs large_result_is_a_file_with_expiring_link"),
        row("Scripts of one project that run concurrently in the workbench", SCRIPTS_PER_PROJECT, "further scripts wait", "tests/e2e/workbench.rs scripts_wait_for_others_for_a_limited_time"),
        row("Time for which a script waits for others of its project", time(runs::MAX_SCRIPT_WAIT), PROJECT_BUSY, "tests/e2e/workbench.rs scripts_wait_for_others_for_a_limited_time"),
        row("Time for which a script waits for others of its session, which run sequentially", time(session_files::MAX_TURN_WAIT), "409 `ToolRouterV2_SessionBusy`", "tests/e2e/workbench.rs scripts_wait_for_others_for_a_limited_time"),
        row("Processor time of a script of the workbench", part(time(Duration::from_secs(Workbench::default().cpu_seconds())), "a third of `workbench.time_s`, at most 60 s"), "the script is ended with kind `tool_cpu_limit` and changes nothing", "tests/e2e/workbench.rs scripts_are_ended_at_their_limits"),
        set("Time of a script of the workbench, with the tools that it runs", "workbench.time_s", "the script is ended with kind `tool_timeout` and changes nothing", "tests/e2e/workbench.rs scripts_are_ended_at_their_limits"),
        row("Memory of a script of the workbench", size(SCRIPT_MEMORY_BYTES), "the script gets `MemoryError`", "tests/e2e/workbench.rs scripts_are_ended_at_their_limits"),
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
        row("Memory", requestable(size(memory), size(ceiling.memory)), "memory does not grow; a tool that cannot continue without more fails with `tool_memory_limit`", "tests/e2e/budget.rs run_resource_limits_are_enforced"),
        row("Processor time", requestable(time(cpu), time(ceiling.cpu)), "`tool_cpu_limit`", "tests/e2e/sandbox.rs each_hostile_guest_is_contained"),
        row("Wall-clock time", requestable(time(wall), time(ceiling.wall)), "`tool_timeout`", "tests/e2e/sandbox.rs each_hostile_guest_is_contained"),
        row("Host function calls", host_calls, "`tool_host_call_limit`", "tests/e2e/budget.rs run_resource_limits_are_enforced"),
        row("Result", size(result), "`tool_output_too_large`", "tests/e2e/budget.rs run_resource_limits_are_enforced"),
        row("Log lines", log_lines, REST_LEFT_OUT, "tests/e2e/budget.rs log_line_limit_is_enforced"),
        row("Size of all log lines", size(log_bytes), REST_LEFT_OUT, "tests/e2e/sandbox.rs log_flood_is_truncated_with_a_marker"),
        row("Outgoing requests", requests, TOOL_GETS_LIMIT, "tests/e2e/budget.rs run_resource_limits_are_enforced"),
        row("Body of an outgoing request", size(request_body), TOOL_GETS_TOO_LARGE, "tests/e2e/budget.rs run_resource_limits_are_enforced"),
        row("Body of a response", size(response_body), TOOL_GETS_TOO_LARGE, "tests/e2e/budget.rs run_resource_limits_are_enforced"),
        row("Bodies of all responses", size(responses), TOOL_GETS_LIMIT, "tests/e2e/budget.rs run_resource_limits_are_enforced"),
        row("Timeout for opening an outgoing connection", time(connect), TOOL_GETS_TIMEOUT, "host/net/tests/client.rs what_does_not_answer_is_named"),
        row("Timeout for the headers of a response", time(first_byte), TOOL_GETS_TIMEOUT, "host/net/tests/client.rs an_exchange_is_bounded_in_time"),
        row("Timeout of an outgoing request", time(exchange), TOOL_GETS_TIMEOUT, "host/net/tests/client.rs an_exchange_is_bounded_in_time"),
        row("Files that an execution creates", files, TOOL_GETS_LIMIT, "host/sandbox/src/files.rs files_are_limited_in_number_and_size"),
    ]
}

#[rustfmt::skip]
pub(super) fn components(set: Set<'_>) -> Vec<Row> {
    let compiling = Sandbox::default().compile_limits();
    vec![
        row("Component", size(catalog::MAX_COMPONENT_BYTES as u64), "413 `HTTP_PayloadTooLarge`", "tests/e2e/refused.rs component_just_over_the_limit_is_refused"),
        row("Functions", sandbox::MAX_FUNCTIONS, COMPONENT_TOO_COSTLY, "tests/e2e/refused.rs compile_bombs_cost_the_server_little"),
        row("Body of a function", size(sandbox::MAX_FUNCTION_BYTES as u64), COMPONENT_TOO_COSTLY, "tests/e2e/refused.rs compile_bombs_cost_the_server_little"),
        row("Module instances", sandbox::MAX_CORE_INSTANCES, COMPONENT_TOO_COSTLY, "host/sandbox/src/engine/check/tests.rs counts_past_their_limit_are_refused_quickly"),
        row("Memories", sandbox::MAX_MEMORIES, COMPONENT_TOO_COSTLY, "tests/e2e/sandbox.rs each_hostile_guest_is_contained"),
        row("Tables", sandbox::MAX_TABLES, COMPONENT_TOO_COSTLY, "host/sandbox/src/engine/check/tests.rs counts_past_their_limit_are_refused_quickly"),
        row("Elements of a table", sandbox::MAX_TABLE_ELEMENTS, "the table does not grow", "host/sandbox/src/schedule/limiter.rs tables_are_bounded_one_by_one_and_together"),
        set("Processor time for compiling", "sandbox.compile_cpu_s", COMPONENT_TOO_COSTLY, "tests/e2e/refused.rs compile_limits_stop_expensive_components"),
        row("Wall-clock time for compiling", part(time(compiling.wall), "twice `sandbox.compile_cpu_s`"), COMPONENT_TOO_COSTLY, "tests/e2e/refused.rs compile_limits_stop_expensive_components"),
        row("Memory for compiling", part(size(compiling.memory), "twice `sandbox.memory_mib`, at least 128 MiB"), COMPONENT_TOO_COSTLY, "tests/e2e/refused.rs compile_limits_stop_expensive_components"),
        row("Manifest", size(manifest::MAX_MANIFEST_BYTES as u64), COMPONENT_INVALID, "toolkit-sdk/manifest/src/problems/tests.rs a_manifest_is_at_most_eight_mebibytes"),
        row("Tools", manifest::MAX_TOOLS, COMPONENT_INVALID, "toolkit-sdk/manifest/src/problems/tests.rs slugs_are_unique_and_counted"),
        row("Description", size(manifest::MAX_DESCRIPTION_BYTES as u64), COMPONENT_INVALID, "tests/e2e/budget.rs manifest_limits_are_enforced"),
        row("Schema", size(manifest::MAX_SCHEMA_BYTES as u64), COMPONENT_INVALID, "tests/e2e/budget.rs manifest_limits_are_enforced"),
        row("Nesting depth of a schema", manifest::MAX_SCHEMA_DEPTH, COMPONENT_INVALID, "tests/e2e/budget.rs manifest_limits_are_enforced"),
    ]
}

#[rustfmt::skip]
pub(super) fn storage(set: Set<'_>) -> Vec<Row> {
    let (limits, sandbox) = (Limits::default(), Sandbox::default());
    let records = limits.record_limits();
    vec![
        set("Size of a file", "files.size_mib", "413 `HTTP_PayloadTooLarge`; the tool that creates it gets an error of kind `too_large`", "tests/e2e/files.rs file_size_limit_covers_a_whole_call"),
        set("Timeout for the upload or download of a file", "files.transfer_s", "408 `HTTP_RequestTimeout`, or the connection is closed", "tests/e2e/abuse/edge.rs one_project_leaves_transfers_to_others"),
        set("Size of all files of one call", "files.size_mib", "400 `ActionExecute_ArgumentsInvalid`", "tests/e2e/budget.rs call_file_limits_are_enforced"),
        row("Number of files of one call", files::MAX_FILES_PER_CALL, "400 `ActionExecute_ArgumentsInvalid`", "tests/e2e/budget.rs call_file_limits_are_enforced"),
        row("Characters in a file name", files::MAX_NAME_CHARS, REQUEST_INVALID, "tests/e2e/budget.rs request_limits_are_enforced"),
        set("Size of all files of one project", "files.quota_mib", "507 `File_QuotaExceeded`; for a file of a tool `file_not_kept`", "tests/e2e/abuse/quotas.rs files_past_a_projects_quota_are_refused"),
        row("Arguments or result in a record", size(MAX_PAYLOAD_BYTES as u64), "left out, and the record says so", "tests/e2e/log_lists.rs oversized_payloads_are_omitted_from_records"),
        row("Execution log of one project in a day", quota(limits.quotas().log, "as much as"), "arguments, result, log lines and requests are left out, and the record says so; at twice as much, no tool runs: 507 `Log_QuotaExceeded`", "tests/e2e/abuse/quotas.rs records_past_a_projects_quota_keep_no_payload"),
        set("Connected accounts of one project", "limits.accounts_per_project", TOO_MANY_RECORDS, "tests/e2e/abuse/quotas.rs records_of_a_project_are_limited_in_number"),
        row("Auth configs of one project", records.auth_configs, TOO_MANY_RECORDS, "tests/e2e/abuse/quotas.rs records_of_a_project_are_limited_in_number"),
        row("Sessions of one project", part(records.sessions, "half of `limits.accounts_per_project`"), TOO_MANY_RECORDS, "tests/e2e/abuse/quotas.rs records_of_a_project_are_limited_in_number"),
        row("MCP servers of one project", records.mcp_servers, TOO_MANY_RECORDS, "tests/e2e/abuse/quotas.rs records_of_a_project_are_limited_in_number"),
        row("Instances of MCP servers of one project", part(records.mcp_instances, "as many as `limits.accounts_per_project`"), TOO_MANY_RECORDS, "tests/e2e/abuse/quotas.rs records_of_a_project_are_limited_in_number"),
        row("Recipes of one project", part(records.recipes, "a twentieth of `limits.accounts_per_project`"), TOO_MANY_RECORDS, "tests/e2e/abuse/quotas.rs records_of_a_project_are_limited_in_number"),
        row("Runs of recipes of one project in a day", quota(limits.quotas().runs, "half of"), "507 `ToolRouterV2_RecipeRunsFull`", "tests/e2e/recipes.rs runs_past_a_projects_quota_are_refused"),
        set("Other records that one project adds in a day, with 512 bytes for each one", "limits.records_mib", "507 `Project_RecordQuotaExceeded`", "tests/e2e/abuse/quotas.rs records_past_a_projects_daily_quota_are_refused"),
        row("Credentials and lists of tools of an auth config as JSON", size(app::accounts::auth_configs::MAX_AUTH_CONFIG_BYTES as u64), REQUEST_INVALID, "tests/e2e/abuse/quotas.rs credentials_and_values_are_limited_in_size"),
        row("Values of a connected account as JSON", size(app::accounts::MAX_VALUES_BYTES as u64), REQUEST_INVALID, "tests/e2e/abuse/quotas.rs credentials_and_values_are_limited_in_size"),
        row("Client id, client secret, and each scope of an OAuth app", size(oauth_apps::MAX_TEXT_BYTES as u64), REQUEST_INVALID, "host/app/src/accounts/oauth_apps.rs values_of_an_app_are_limited"),
        row("Scopes of an OAuth app", oauth_apps::MAX_SCOPES, REQUEST_INVALID, "host/app/src/accounts/oauth_apps.rs values_of_an_app_are_limited"),
        row("Time for which an account that was never connected is kept after it has expired or failed", time(app::accounts::NEVER_CONNECTED_TTL), "the account is erased", "host/app/src/accounts/attempt.rs accounts_never_connected_are_erased"),
        row("Records that wait to be written", part(size(sandbox.buffer_bytes()), "a quarter of `sandbox.memory_mib`"), "new executions wait for two seconds, then get 503 `Server_Unavailable`", "tests/e2e/abuse/quotas.rs records_that_wait_are_bounded_in_bytes"),
        row("Content of a cassette", size(MAX_CASSETTE_BYTES as u64), "the execution leaves no cassette: 404 `Log_NoCassette`", "tests/e2e/cassettes.rs cassette_is_sealed_bounded_and_respects_log_setting"),
        set("Time that an account waits for its user to connect it", "connections.pending_s", "the account becomes `EXPIRED`", "tests/e2e/oauth.rs late_callback_connects_an_expired_account"),
        row("Time that a user may take at the provider", part(time(Connections::default().authorization_ttl()), "six times `connections.pending_s`, at most an hour"), "the callback is refused with 400", "tests/e2e/callbacks.rs expired_state_is_rejected"),
        row("Users in a list of a shared account", app::accounts::MAX_LISTED_USERS, REQUEST_INVALID, "tests/e2e/budget.rs request_limits_are_enforced"),
        row("Lease for refreshing a token", part(time(limits.refresh_lease()), "three times `limits.deadline_s`"), "a refresh whose server is lost is tried by another one", "tests/e2e/refresh.rs interrupted_refresh_is_tried_once_more"),
        row("Configuration of a session as JSON", size(agents::MAX_CONFIG_BYTES as u64), SESSION_INVALID, "tests/e2e/tool_router_sessions.rs unusable_configurations_are_refused"),
        row("Accounts of one toolkit that a session pins", agents::MAX_PINNED_ACCOUNTS, SESSION_INVALID, "tests/e2e/tool_router_sessions.rs unusable_configurations_are_refused"),
        row("Versions of a session's configuration", agents::MAX_VERSIONS, "the oldest version is erased", "tests/e2e/tool_router_sessions.rs history_keeps_a_hundred_versions"),
        row("Tools of the client in a request to a session", MAX_INLINE_TOOLS, SESSION_INVALID, "tests/e2e/tool_router_sessions.rs attach_repeats_tools_of_the_client"),
        row("Page of the tools of an MCP endpoint", size(MAX_PAGE_BYTES as u64), "`nextCursor` continues the list", "tests/e2e/mcp_endpoints.rs lists_over_two_mebibytes_have_pages"),
        row("Result of a tool for an MCP client", size(MAX_RESULT_BYTES as u64), "the client gets its beginning and a link to a file", "tests/e2e/mcp_messages.rs large_results_are_a_beginning_and_a_file"),
        row("Messages of a batch at an MCP endpoint", MAX_BATCH_MESSAGES, "error -32600", "tests/e2e/mcp_messages.rs batches_of_their_version_are_answered"),
        row("Resources on a page of an MCP endpoint", RESOURCES_PER_PAGE, "`nextCursor` continues the list", "tests/e2e/mcp_resources.rs long_lists_of_files_have_pages"),
        row("Size of a resource that an MCP client reads", size(MAX_RESOURCE_BYTES), "error -32602, which names the operation that gives a link to the file", "tests/e2e/mcp_resources.rs other_and_large_files_are_refused"),
        row("Characters in the name of an assistant that registers", agents::mcp_oauth::MAX_CLIENT_NAME_CHARS, "400 `invalid_client_metadata`", "tests/e2e/mcp_oauth.rs registration_is_checked"),
        row("Redirect URIs of an assistant that registers, together", size(agents::mcp_oauth::MAX_REDIRECT_URIS_BYTES as u64), "400 `invalid_redirect_uri`", "tests/e2e/mcp_oauth.rs registration_is_checked"),
        row("Form in which a member gives an assistant access", size(MAX_CONSENT_FORM_BYTES as u64), "413, as a page", "tests/e2e/mcp_oauth.rs large_requests_are_refused"),
        row("Request of an assistant for tokens", size(MAX_TOKEN_REQUEST_BYTES as u64), TOO_LARGE, "tests/e2e/mcp_oauth.rs large_requests_are_refused"),
        row("Validity of the authorization code of an assistant", time(agents::mcp_oauth::CODE_TTL), "400 `invalid_grant`", "host/app/src/agents/mcp_oauth/consent/tests.rs codes_end_after_their_validity"),
        row("Validity of the access token of an assistant", time(agents::mcp_oauth::ACCESS_TOKEN_TTL), "401 `McpAuthorization_TokenInvalid`", "host/app/src/agents/mcp_oauth/consent/tests.rs access_tokens_end_after_their_validity"),
        row("Validity of the refresh token of an assistant", time(agents::mcp_oauth::REFRESH_TOKEN_TTL), "400 `invalid_grant`", "host/app/src/agents/mcp_oauth/consent/tests.rs refresh_tokens_end_after_their_validity"),
        row("Time in which a refresh token of an assistant gives the same tokens again", time(agents::mcp_oauth::REUSE_GRACE), "all tokens that followed from it end", "tests/e2e/mcp_oauth.rs refresh_token_used_twice_gives_the_same_tokens"),
        row("Use cases of a search for tools in a session", agents::meta::MAX_QUERIES, "400 `ActionExecute_ArgumentsInvalid`", "tests/e2e/tool_search.rs too_many_use_cases_or_slugs_are_refused"),
        row("Characters in a use case of a search for tools", agents::meta::MAX_USE_CASE_CHARS, "the use case fails, and the others are answered", "tests/e2e/tool_search.rs failed_use_case_leaves_others_answered"),
        row("Characters in the known fields of a use case", agents::meta::MAX_KNOWN_FIELDS_CHARS, "the use case fails, and the others are answered", "tests/e2e/tool_search.rs failed_use_case_leaves_others_answered"),
        row("Input schemas in the result of a search for tools", size(agents::meta::MAX_SCHEMAS_BYTES as u64), "further ones are left out; `SERVICE_GET_TOOL_SCHEMAS` returns them", "tests/e2e/tool_search.rs result_has_schemas_up_to_a_size"),
        row("Tools of a request for schemas in a session", agents::meta::MAX_SLUGS, "400 `ActionExecute_ArgumentsInvalid`", "tests/e2e/tool_search.rs too_many_use_cases_or_slugs_are_refused"),
        row("Toolkits of a call that manages the connections of a session", agents::meta::MAX_TOOLKITS, "400 `ActionExecute_ArgumentsInvalid`", "tests/e2e/manage_connections.rs toolkits_are_connected_by_links"),
        row("Calls of one project that wait for connections on one server", agents::meta::MAX_WAITS_PER_PROJECT, "429 `ToolRouterV2_TooManyWaits`", "tests/e2e/wait_for_connections.rs connection_made_meanwhile_ends_waits"),
        set("Time that a call waits for connections", "sessions.connection_wait_s", "the result has the connections as they are", "tests/e2e/wait_for_connections.rs wait_ends_at_its_time_limit"),
        row("Calls of a parallel execution in a session", agents::meta::MAX_CALLS, "400 `ActionExecute_ArgumentsInvalid`", "tests/e2e/tool_router_execution.rs multi_execute_keeps_order_and_partial_failures"),
        row("Data of a call of a parallel execution in a session", size(agents::meta::MAX_INLINE_BYTES as u64), "the data becomes a file, and the result has a link to it", "tests/e2e/tool_router_execution.rs multi_execute_keeps_order_and_partial_failures"),
        row("Time of the calls of a parallel execution in a session", part(time(Workbench::default().time()), "as `workbench.time_s`"), "calls that still run are cancelled, and the others have their results", "tests/e2e/multi_execute.rs hanging_call_withholds_no_other_result"),
        row("Files of a session", session_files::MAX_FILES, FILES_FULL, "tests/e2e/mounts.rs number_of_files_is_limited"),
        row("Size of all files of a session that are stored", size(session_files::MAX_TOTAL_BYTES), FILES_FULL, "tests/e2e/mounts.rs size_of_all_files_is_limited"),
        row("Length of the path of a file of a session", format!("{} bytes", session_files::MAX_PATH_BYTES), SESSION_INVALID, "tests/e2e/mounts.rs paths_outside_the_mount_are_refused"),
        row("Approvals of tools that a session remembers", agents::MAX_APPROVALS, "the oldest is forgotten, and the user is asked again", "host/app/src/agents/sessions.rs oldest_approval_is_forgotten"),
        row("Recipes of one user", agents::recipes::MAX_RECIPES, "422 `ToolRouterV2_TooManyRecipes`", "tests/e2e/recipes.rs recipes_past_the_limit_are_refused"),
        row("Versions of a recipe", agents::recipes::MAX_VERSIONS, "the oldest version is erased", "tests/e2e/recipes/versions.rs older_versions_of_recipe_are_kept"),
        row("Recipe as JSON", size(agents::recipes::MAX_DEFINITION_BYTES as u64), RECIPE_INVALID, "tests/e2e/recipes.rs wrong_recipe_is_refused_with_reasons"),
        row("Characters in the slug of a recipe", agents::recipes::MAX_SLUG_CHARS, RECIPE_INVALID, "tests/e2e/recipes.rs wrong_recipe_is_refused_with_reasons"),
        row("Steps of a recipe", agents::recipes::MAX_STEPS, RECIPE_INVALID, "tests/e2e/recipes.rs wrong_recipe_is_refused_with_reasons"),
        row("Depth of groups of steps in a recipe", agents::recipes::MAX_NESTING, RECIPE_INVALID, "tests/e2e/recipes.rs wrong_recipe_is_refused_with_reasons"),
        row("Items of a loop of a recipe", agents::recipes::MAX_LOOP_ITEMS, "the run fails", "tests/e2e/recipes.rs runs_past_a_limit_fail"),
        row("Items of all loops of a run of a recipe", agents::recipes::MAX_RUN_ITEMS, "the run fails", "tests/e2e/recipes.rs runs_past_a_limit_fail"),
        row("Calls of tools in a run of a recipe", agents::recipes::MAX_CALLS, "the run fails", "tests/e2e/recipes.rs runs_past_a_limit_fail"),
        row("Data of all steps of a run of a recipe", size(agents::recipes::MAX_RUN_DATA_BYTES as u64), "the run fails", "tests/e2e/recipes.rs runs_past_a_limit_fail"),
        row("Time for which a run of a recipe is kept", time(agents::recipes::RUN_TTL), "the run is erased, also if it has not ended", "host/app/src/agents/recipes/record.rs runs_are_erased_after_a_day"),
        row("Runs of recipes of one project that have not ended", agents::recipes::MAX_PENDING_RUNS, "429 `ToolRouterV2_TooManyRecipeRuns`", "tests/e2e/recipes.rs runs_past_the_limit_are_refused"),
        row("Trigger instances of one project", part(limits.trigger_instances(), "a tenth of `limits.accounts_per_project`"), "422 `TriggerInstance_TooMany`", "tests/e2e/trigger_instances.rs instances_past_the_limit_are_refused"),
        row("Configuration of a trigger instance as JSON", size(triggers::MAX_CONFIG_BYTES as u64), "400 `TriggerInstance_ConfigInvalid`", "tests/e2e/trigger_instances.rs upsert_refuses_unusable_accounts_and_configurations"),
        set("Interval between two polls of a trigger instance", "triggers.poll_interval_s", REQUEST_INVALID, "tests/e2e/trigger_instances.rs upsert_refuses_unusable_accounts_and_configurations").at_least(),
        row("Characters in a cron expression", triggers::MAX_CRON_CHARS, REQUEST_INVALID, "tests/e2e/polling.rs cron_expression_sets_the_next_poll"),
        row("Polls that follow one another without an interval", triggers::MAX_ROUNDS, "the next poll follows after the interval", "tests/e2e/polling.rs polls_without_interval_are_limited"),
        row("Events of one poll", triggers::MAX_EVENTS, "the poll fails, and nothing of it is stored", "tests/e2e/polling.rs poll_past_a_limit_stores_nothing"),
        row("Cursor and state that a poll leaves, as base64", size(triggers::MAX_MEMORY_BYTES as u64), "the poll fails, and nothing of it is stored", "tests/e2e/polling.rs poll_past_a_limit_stores_nothing"),
        row("Events that a trigger instance remembers", triggers::MAX_SEEN_EVENTS, "an older event that a toolkit reports again is recognized while it is stored", "host/app/src/events/triggers/seen.rs newest_events_are_remembered"),
        row("Payloads of the events of one project in a day, with 1 KiB for each event", quota(limits.quotas().events, "half of"), "a test event gets 507 `Event_QuotaExceeded`, a webhook of a provider gets 503 `Webhook_Failed`, and a poll that finds events fails and is repeated; events of the server are stored", "tests/e2e/abuse/quotas.rs events_past_a_projects_quota_are_refused"),
        row("Events that are read for one page of the log of triggers", events::trigger_log::MAX_READ_EVENTS, "the page has fewer entries, and its cursor continues", "tests/e2e/trigger_logs.rs pages_have_every_entry_once"),
        row("Payloads and responses of endpoints on one page of the log of triggers", size(events::trigger_log::MAX_PAGE_BYTES as u64), "the page ends with the entry that reaches it, and its cursor continues", "tests/e2e/trigger_logs.rs large_payloads_end_a_page_early"),
        row("Events that a read of a trigger instance shows", triggers::MAX_RECENT_EVENTS, "only the newest are shown", "host/app/src/events/triggers/recent.rs newest_ten_events_are_kept"),
        row("Actions of one project that wait or run", part(limits.pending_actions(), "a twentieth of `limits.accounts_per_project`"), "the actions of further events fail", "tests/e2e/trigger_actions.rs actions_past_the_limit_fail"),
        row("Arguments of an action as JSON", size(triggers::actions::MAX_ARGUMENTS_BYTES as u64), REQUEST_INVALID, "tests/e2e/trigger_actions.rs action_that_may_not_run_is_refused"),
        row("Values of an event in the arguments of an action", size(mapping::MAX_FILLED_BYTES as u64), "the action fails", "host/app/src/core/mapping/tests.rs filled_values_are_limited"),
        row("Attempts of an action", triggers::actions::MAX_ATTEMPTS, "the action fails", "host/app/src/events/triggers/actions/running.rs attempts_and_delays_are_bounded"),
        set("Time in which every poll, or every attempt to subscribe at a provider, has failed", "events.disable_after_s", "the trigger instance is disabled", "tests/e2e/polling.rs instance_that_only_fails_is_disabled"),
        row("Attempts to end a subscription at a provider", triggers::MAX_UNSUBSCRIBE_ATTEMPTS, "the provider may still send events, which are refused", "tests/e2e/webhook_subscribing.rs end_is_tried_five_times"),
        row("Timeout of a call that waits for a token", part(time(limits.wait()), "two thirds of `limits.deadline_s`"), "503 `ConnectedAccount_RefreshInProgress`", "tests/e2e/renewals.rs slow_refresh_returns_retry_after"),
    ]
}

#[rustfmt::skip]
pub(super) fn prompts(set: Set<'_>) -> Vec<Row> {
    vec![
        row("Characters in a prompt", runs::prompt::MAX_PROMPT_CHARS, REQUEST_INVALID, "tests/e2e/budget.rs prompt_limits_are_enforced"),
        set("Timeout for making arguments", "llm.timeout_s", "502 `ActionExecute_ModelFailed`", "tests/e2e/budget.rs prompt_limits_are_enforced"),
        row("Tokens of a completion", MAX_COMPLETION_TOKENS, "the completion is cut off", "tests/e2e/budget.rs prompt_limits_are_enforced"),
    ]
}

#[rustfmt::skip]
pub(super) fn webhooks(set: Set<'_>) -> Vec<Row> {
    let limits = Limits::default();
    vec![
        row("Webhook subscriptions of one project", 1, "409 `Webhook_SubscriptionExists`", "tests/e2e/webhooks.rs second_subscription_is_refused"),
        row("Webhook endpoints of one project", events::endpoints::MAX_ENDPOINTS, "422 `Webhook_TooManyEndpoints`", "tests/e2e/webhook_endpoints.rs endpoints_of_a_project_are_limited"),
        row("Characters in the client id of a webhook endpoint", events::endpoints::MAX_CLIENT_ID_CHARS, REQUEST_INVALID, "tests/e2e/webhook_endpoints.rs unusable_endpoints_are_not_created"),
        row("Value of a webhook endpoint", size(events::endpoints::MAX_VALUE_BYTES as u64), REQUEST_INVALID, "tests/e2e/webhook_endpoints.rs unusable_values_change_nothing"),
        row("Body of a webhook of a provider", size(webhook_ingress::MAX_WEBHOOK_BYTES as u64), TOO_LARGE, "tests/e2e/webhook_ingress.rs unusable_requests_are_refused"),
        row("Webhooks of providers to one address in a minute", part(limits.webhook_rate(), "or two fifths of `limits.rate_per_project` if that is set"), "429 `Webhook_TooManyRequests`", "tests/e2e/webhook_ingress.rs rate_of_an_address_is_limited"),
        row("Time in which trigger instances receive a webhook of a provider", time(events::ingress::RECEPTION_TIMEOUT), "503 `Webhook_Failed`; the provider sends it again", "tests/e2e/webhook_ingress.rs failed_reception_is_to_be_repeated"),
        row("Events of one webhook of a provider for one trigger instance", triggers::MAX_EVENTS, "503 `Webhook_Failed`, and nothing of it is stored", "tests/e2e/webhook_ingress.rs failed_reception_is_to_be_repeated"),
        row("Characters of a handshake that are returned to a provider", events::ingress::MAX_ANSWER_CHARS, "nothing is returned", "host/app/src/events/ingress.rs only_short_plain_texts_are_returned"),
        row("Characters in the URL of a webhook", events::subscriptions::MAX_URL_CHARS, REQUEST_INVALID, "tests/e2e/webhooks.rs urls_that_must_not_be_reached_are_refused"),
        set("Attempts of a delivery after the first", "webhooks.retry_delays_s", "the delivery has failed", "tests/e2e/webhooks.rs last_failure_ends_a_delivery"),
        set("Timeout of an attempt", "webhooks.timeout_s", "the attempt has failed", "tests/e2e/webhooks.rs failed_message_is_retried_until_accepted"),
        row("Time that an endpoint may ask to wait in `Retry-After`", time(net::MAX_RETRY_AFTER), "the next attempt starts then", "tests/e2e/webhooks.rs endpoint_may_ask_to_wait"),
        row("Size of an endpoint's response that is read", size(events::sending::MAX_RESPONSE_BYTES), "the rest is not read", "tests/e2e/webhooks.rs large_response_is_cut_and_dripping_one_ends"),
        row("Size of an endpoint's response that is kept", size(events::sending::MAX_KEPT_BYTES as u64), "the rest is left out", "tests/e2e/webhooks.rs large_response_is_cut_and_dripping_one_ends"),
        row("Attempts of a delivery that are kept", events::delivery::MAX_KEPT_ATTEMPTS, "the oldest ones are left out", "host/app/src/events/delivery.rs oldest_attempts_are_left_out"),
        row("Events in the range of a replay", part(limits.replayed_events(), "a twentieth of `limits.accounts_per_project`"), REQUEST_INVALID, "tests/e2e/webhooks.rs replay_of_too_many_events_is_refused"),
        row("Concurrent messages to one endpoint", DELIVERIES_PER_ENDPOINT, "the other deliveries wait in the store", "tests/e2e/webhooks.rs concurrency_limits_of_deliveries_hold"),
        set("Time for which an endpoint may accept nothing", "events.disable_after_s", "the subscription is disabled", "tests/e2e/webhooks.rs endpoint_that_keeps_failing_is_disabled"),
    ]
}
