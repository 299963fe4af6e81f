//! Table of every limit: its value, its setting, and the effect of exceeding it.
//!
//! The values are defined where they are enforced and are read from there. `docs/limits.md` is this
//! table, printed; a test exercises every row of it.

use std::time::Duration;

use app::{
    agents::{self, session_files},
    catalog,
    core::{json, large_work, mapping, shares, trace},
    events::{self, triggers},
    files, lifecycle,
    projects::{MAX_KEYS_PER_OWNER, idempotency},
    runs,
};

use sandbox::ProgramLimits;

use crate::{
    api::tool_router::MAX_INLINE_TOOLS,
    config::{self, Setting},
    http::{
        answer::{MAX_HEADER_BYTES, MAX_HEADERS, MAX_REQUEST_LINE_BYTES},
        body::MAX_JSON_BYTES,
        limiter,
        page::MAX_LIMIT,
        query::{MAX_LIST_ENTRIES, MAX_TEXT_CHARS},
    },
    mcp::{MAX_DESCRIPTION_BYTES, MAX_RESOURCE_BYTES, RESOURCES_PER_PAGE, TOOLS_PER_PAGE},
    web::{
        ingress,
        mcp_oauth::{authorize::MAX_CONSENT_FORM_BYTES, token::MAX_TOKEN_REQUEST_BYTES},
    },
};

const PAGE_INTRODUCTION: &str = "# Limits

Everything has a limit. A request or a value that exceeds a limit is refused or cut, as the column *Past the limit* says. A refused
request changes nothing. Every refusal uses the error envelope, with its slug and a `suggested_fix`. Responses with status 429 or 503 say
in `Retry-After` when to retry. A failed execution is a response with status 200 and `successful: false`; its kind is in `data.kind`.
If a limit has a setting, the value in the table is the default of the setting.

Each server counts requests, executions and rates for itself: several servers on one database allow a multiple of these limits.
Files are counted for all servers together. The bytes that a project writes in a day are also counted for all servers together,
except for those of the last minute of each server.
";

const WORK_SECTION: &str = "
## Work and memory

These limits bound the work and the memory that one request can cause. They do not depend on settings, except where the value names one.

| Limit | Value | Past the limit | Test |
|---|---|---|---|
";

/// One row of the table.
struct Row {
    name: &'static str,
    value: String,
    /// Name of the setting; empty if the limit has none.
    setting: &'static str,
    /// Allowed values of the setting; empty if it has none or takes any value.
    range: String,
    past: &'static str,
}

/// Limit on the work or the memory that one request can cause.
struct Bound {
    name: &'static str,
    value: String,
    past: &'static str,
    /// Source file and function of the test for this limit.
    test: &'static str,
}

impl Row {
    /// Marks a minimum.
    fn at_least(mut self) -> Self {
        self.value.insert_str(0, "at least ");
        self
    }
}

fn row(name: &'static str, value: impl ToString, past: &'static str) -> Row {
    Row {
        name,
        value: value.to_string(),
        setting: "",
        range: String::new(),
        past,
    }
}

/// Makes the row of a limit that a setting changes, from the declaration of the setting.
fn setting_row(
    settings: &[Setting],
    name: &'static str,
    key: &'static str,
    past: &'static str,
) -> Row {
    let setting = settings.iter().find(|setting| setting.key == key);
    Row {
        setting: key,
        range: setting.map(Setting::range_text).unwrap_or_default(),
        ..row(name, setting.map(amount).unwrap_or_default(), past)
    }
}

/// Formats the default of a setting as an amount.
fn amount(setting: &Setting) -> String {
    let Some(number) = setting.default.as_u64() else {
        return setting.default_text();
    };
    match (number, setting.zero, setting.unit) {
        (0, Some(meaning), _) => meaning.to_owned(),
        (kib, _, Some("KiB")) => size(kib << 10),
        (mib, _, Some("MiB")) => size(mib << 20),
        (number, _, Some(unit)) => format!("{number} {unit}"),
        (number, _, None) => number.to_string(),
    }
}

/// Returns the whole page.
pub(crate) fn page() -> String {
    let settings = config::all();
    let groups = [
        ("Requests", requests(&settings)),
        ("Callers", callers(&settings)),
        ("Executions", executions(&settings)),
        (
            "Resources of one execution",
            execution_resources(sandbox::Limits::default(), sandbox::Limits::CEILING),
        ),
        ("Components", components(&settings)),
        ("Files, records and accounts", storage(&settings)),
        ("Prompts", prompts(&settings)),
        ("Webhooks", webhooks(&settings)),
    ];
    let mut page = PAGE_INTRODUCTION.to_owned();
    for (group, rows) in groups {
        page.push_str(&format!(
            "\n## {group}\n\n| Limit | Value | Setting | Range | Past the limit |\n|---|---|---|---|---|\n"
        ));
        for Row {
            name,
            value,
            setting,
            range,
            past,
        } in rows
        {
            let setting = if setting.is_empty() {
                String::new()
            } else {
                format!("`{setting}`")
            };
            page.push_str(&format!(
                "| {name} | {value} | {setting} | {range} | {past} |\n"
            ));
        }
    }
    page.push_str(WORK_SECTION);
    for Bound {
        name,
        value,
        past,
        test,
    } in work()
    {
        page.push_str(&format!("| {name} | {value} | {past} | `{test}` |\n"));
    }
    page
}

/// Lists the limits on the work and the memory that one request can cause, each with its test.
#[rustfmt::skip]
fn work() -> Vec<Bound> {
    let bound = |name, value: &dyn ToString, past, test| Bound { name, value: value.to_string(), past, test };
    let per = |all: usize, part: usize| format!("{all}; for one registered domain: {}", all / part);
    vec![
        bound("Body that the thread of its request parses, checks or hashes", &size(large_work::MAX_INLINE_BYTES as u64), "a thread of low priority does the work", "host/app/src/core/large_work.rs large_bodies_leave_their_thread_to_others"),
        bound("Larger bodies that are parsed, checked or hashed concurrently", &format!("{}; for one project: {}", large_work::MAX_LARGE_BODIES, large_work::MAX_LARGE_BODIES_PER_PROJECT), "projects take turns", "host/app/src/core/large_work.rs large_bodies_wait_for_their_project"),
        bound("Use of the processors by one project at the threads of all projects, while others are active", &"an equal share, measured over 20 ms", "its tasks run on threads of busy projects, one fewer than there are processors, but at least one", "host/app/src/core/shares.rs project_beyond_equal_share_is_busy"),
        bound("Threads for blocking work of busy projects, such as reads of the store", &shares::MAX_BLOCKING_THREADS, "further work waits", "host/app/src/core/shares.rs blocking_work_of_busy_projects_is_limited"),
        bound("Steps of the validation of a value", &format!("{}, and {} more for each byte", catalog::MAX_STEPS, catalog::MAX_STEPS_PER_BYTE), "400 `ActionExecute_ArgumentsInvalid`; for the result of a tool `tool_output_invalid`", "tests/e2e/abuse/values.rs value_with_too_many_steps_is_refused"),
        bound("Deadline for the validation of a larger value, including its wait", &time(catalog::LARGE_CHECK_DEADLINE), "503 `Server_DeadlineExceeded`; for the result of a tool `tool_host_error`", "host/app/src/core/large_work.rs large_bodies_wait_for_their_project"),
        bound("Schemas that check one value, references followed", &manifest::MAX_SCHEMAS_PER_VALUE, COMPONENT_INVALID, "tests/e2e/abuse/values.rs references_that_double_are_refused_at_publish"),
        bound("Schemas that follow from one another for the same value, references followed", &manifest::MAX_SCHEMA_CHAIN, COMPONENT_INVALID, "tests/e2e/abuse/values.rs recursive_schema_is_refused_at_publish"),
        bound("Different regular expressions in a schema", &manifest::MAX_PATTERNS_PER_SCHEMA, COMPONENT_INVALID, "tests/e2e/abuse/values.rs too_many_patterns_are_refused_at_publish"),
        bound("Estimated memory of the validator of one schema", &size(catalog::MAX_SCHEMA_BYTES as u64), COMPONENT_INVALID, "tests/e2e/abuse/values.rs too_many_patterns_are_refused_at_publish"),
        bound("Estimated memory of all cached validators", &size(catalog::MAX_VALIDATOR_BYTES as u64), "a validator that was not used lately is dropped", "host/app/src/catalog/validators.rs validators_used_longest_ago_are_let_go"),
        bound("Cached validators", &catalog::MAX_VALIDATORS, "a validator that was not used lately is dropped", "host/app/src/catalog/validators.rs validators_of_dropped_schemas_take_no_room"),
        bound("Descriptions of tools that are kept for MCP clients", &size(MAX_DESCRIPTION_BYTES as u64), "those that no client listed lately are dropped", "host/server/src/mcp/descriptions.rs unused_descriptions_are_dropped"),
        bound("Pairs of a value and a schema that are searched for files", &files::MAX_SEARCH_STEPS, "400 `ActionExecute_ArgumentsInvalid`", "host/app/src/files/arguments.rs alternatives_that_meet_are_visited_once"),
        bound("Concurrent lookups of host names, each on its own thread", &per(net::MAX_LOOKUPS, net::DOMAIN_SHARE_DIVISOR), "further lookups wait", "host/net/src/lookup.rs silent_domain_leaves_threads_to_others"),
        bound("Host names that wait for a lookup", &per(net::MAX_WAITING_LOOKUPS, net::DOMAIN_SHARE_DIVISOR), "the request fails with an error of kind `dns`", "host/net/src/lookup.rs silent_domain_leaves_threads_to_others"),
        bound("Timeout for the lookup of a host name", &time(net::LOOKUP_TIMEOUT), "the request fails with an error of kind `dns`", "tests/e2e/abuse/edge.rs silent_name_server_holds_up_nobody_else"),
        bound("Concurrent checks of keys, of links or of callbacks from addresses past `limits.failed_auth`", &limiter::SUSPECTS_AT_ONCE, "further checks wait; a valid secret still works", "tests/e2e/abuse/edge.rs guesses_do_not_lock_out_a_valid_key"),
        bound("Memory of a body that arrives in chunks", &"the size of the body", "chunks are copied together", "tests/e2e/abuse/edge.rs body_of_tiny_chunks_takes_little_memory"),
        bound("Seconds for which a change of one record is retried while other writers commit first", &store::CHANGE_TIMEOUT_S, "503 `Server_Unavailable`", "tests/e2e/abuse/records.rs all_writers_of_one_record_succeed"),
        bound("Records of a deleted project that are erased in one batch", &lifecycle::remove_project::RECORDS_PER_BATCH, "the next batch follows; after the end of the request a queue continues within 8 s", "tests/e2e/abuse/records.rs deleted_project_is_refused_and_then_erased"),
        bound("Secrets of one call, in `custom_auth_params` at any depth or of an account", &sandbox::MAX_SECRETS,
            "400 `Request_Invalid`; for an account 400 `ConnectedAccount_MissingRequiredFields`", "tests/e2e/abuse/runs.rs call_secrets_are_counted_at_any_depth"),
        bound("Size of all secrets of one call", &size(sandbox::MAX_SECRET_BYTES as u64),
            "400 `Request_Invalid`; for an account 400 `ConnectedAccount_MissingRequiredFields`", "tests/e2e/abuse/runs.rs stored_accounts_bring_no_more_secrets_than_calls"),
        bound("Steps of the search for secrets, for each byte of a response", &sandbox::STEPS_PER_BYTE,
            "the response is withheld, and the tool gets an error of kind `protocol`", "tests/e2e/abuse/runs.rs answers_costly_to_search_are_withheld"),
        bound("Size of a message whose signature a toolkit lets the server verify", &format!("{}; all messages of a call {}", size(sandbox::MAX_SIGNED_MESSAGE_BYTES as u64), size(sandbox::MAX_SIGNED_BYTES_PER_CALL as u64)),
            "the toolkit gets an error of kind `too_large` or `limit`", "host/sandbox/src/toolkit/imports/webhook.rs verification_is_refused_with_reason"),
        bound("Arriving response bodies of all executions and proxy requests", &"three quarters of `sandbox.memory_mib`, together with the memory of guests",
            "the tool gets an error of kind `limit`, and a proxy request 502 `ActionProxy_UpstreamFailed`", "tests/e2e/abuse/runs.rs response_bytes_count_toward_shared_run_memory"),
        bound("Provider responses of more than 1 MiB whose next part waits for a thread", &net::MAX_LARGE_READS, "the responses take turns, 256 KiB each", "host/net/src/body.rs large_bodies_are_read_in_turns"),
        bound("Size of all parts of one request", &"the size of one file; parts of the same file take no memory of their own",
            "the tool gets an error of kind `too_large`", "tests/e2e/abuse/runs.rs parts_of_one_file_share_its_bytes"),
        bound("Concurrent requests of one list", &sandbox::Limits::default().concurrent_requests,
            "the other requests wait", "tests/e2e/abuse/runs.rs request_list_memory_is_bounded"),
        bound("Memory reserved for a record in addition to arguments and result", &size(runs::log::RECORD_OVERHEAD_BYTES as u64), "log lines and requests of the execution are left out if no more memory is free, and the record says so", "host/app/src/runs/log/pending.rs long_trace_takes_room_or_is_omitted"),
        bound("Spans that wait to be exported", &trace::MAX_WAITING_SPANS, "further spans are dropped, and counted in `toolhost_spans_total`", "host/app/src/core/trace.rs spans_beyond_the_buffer_are_counted"),
        bound("Size of the records that are written to the store together", &size(runs::log::MAX_GROUP_BYTES as u64), "the other records are written afterwards", "host/app/src/runs/log/write.rs large_records_are_written_in_small_groups"),
        bound("Calls of `run_tool`, `search_tools`, `proxy` and `upload_file` in one script", &PROGRAM_LIMITS.requests, "the script gets `ToolError`", "host/workbench/tests/python.rs calls_of_host_are_limited"),
        bound("Size of the arguments or the result of such a call", &size(PROGRAM_LIMITS.message), "the script gets an error", "host/workbench/tests/python.rs large_call_of_host_is_refused"),
        bound("Each standard output of a script", &size(PROGRAM_LIMITS.output), "the script gets `OSError`: no space left", "host/workbench/tests/python.rs endless_output_ends"),
        bound("Each standard output and the result of a script in the response", &size(workbench::MAX_EXCERPT_BYTES as u64), "the whole is a file in `outputs`", "host/workbench/tests/python.rs long_output_becomes_file"),
        bound("Result of a script, the value of its last expression", &format!("{} characters", workbench::MAX_RESULT_CHARS), "it is cut", "host/workbench/tests/python.rs long_result_is_cut"),
        bound("Files and folders of a session, with those of the interpreter", &PROGRAM_LIMITS.files, "the script gets `OSError`: no space left", "host/workbench/tests/python.rs files_are_limited_in_size_and_number"),
        bound("Size of all files of a session", &size(PROGRAM_LIMITS.file_bytes), "the script gets `OSError`: no space left", "host/workbench/tests/python.rs files_are_limited_in_size_and_number"),
        bound("Size of the variables that a script leaves to the next", &size(workbench::MAX_VARIABLES_BYTES as u64), "the largest are not kept, and the result names them", "host/workbench/tests/python.rs variables_that_cannot_be_kept_are_named"),
        bound("Size of the source text of a script", &size(workbench::MAX_CODE_BYTES as u64), "the script is refused", "host/workbench/tests/python.rs long_script_is_refused"),
        bound("Shell commands that run at the same time on a server", &format!("{}; of one project {}", workbench::MAX_CONCURRENT_COMMANDS, workbench::MAX_COMMANDS_PER_TENANT), "the others wait", "tests/e2e/bash_tool.rs commands_of_a_session_take_turns"),
        bound("Time and processor time of a shell command", &"as of a script, `workbench.time_s` and `workbench.cpu_s`", "the command is ended and changes no file", "tests/e2e/bash_tool.rs commands_are_ended_at_their_limits"),
        bound("Memory of the process of a shell command", &size(workbench::MAX_SHELL_MEMORY_BYTES), "the command is ended and changes no file", "tests/e2e/bash_tool.rs commands_are_ended_at_their_limits"),
        bound("Simple commands and turns of loops of a shell command", &workbench::MAX_SHELL_STEPS, "the command is ended and changes no file", "tests/e2e/bash_tool.rs endless_loop_changes_no_file"),
        bound("Each standard output of a shell command", &size(workbench::MAX_SHELL_OUTPUT_BYTES as u64), "the rest is dropped, and standard error says so", "tests/e2e/bash_tool.rs fork_bombs_memory_and_output_are_contained"),
        bound("Size of all files of a shell command, with those outside of the session's folder", &size(workbench::MAX_SHELL_FILE_BYTES), "the write fails", "tests/e2e/bash_tool.rs fork_bombs_memory_and_output_are_contained"),
        bound("Size of a shell command", &size(workbench::MAX_COMMAND_BYTES as u64), "400 `ActionExecute_ArgumentsInvalid`", "tests/e2e/bash_tool.rs shell_needs_the_workbench"),
        bound("Processes and threads that a script starts", &0, "the script gets an error", "host/workbench/tests/python.rs fork_bomb_is_refused"),
    ]
}

const PROGRAM_LIMITS: ProgramLimits = ProgramLimits::DEFAULT;
const TOO_LARGE: &str = "413 `HTTP_PayloadTooLarge`";
/// Effect of an invalid request to a session.
const SESSION_INVALID: &str = "400 `ToolRouterV2_BadRequest`";
/// Effect of too many files in a session, or too large ones.
const FILES_FULL: &str = "400 `ToolRouterV2_FilesFull`";
const RECIPE_INVALID: &str = "400 `ToolRouterV2_RecipeInvalid`";
const REQUEST_INVALID: &str = "400 `Request_Invalid`";
const NODE_BUSY: &str = "503 `Server_Busy`";
const PROJECT_BUSY: &str = "429 `Server_ProjectBusy`";
const TOO_MANY: &str = "429 `HTTP_TooManyRequests`";
const COMPONENT_TOO_COSTLY: &str = "422 `Toolkit_ComponentLimit`";
const COMPONENT_INVALID: &str = "400 `Toolkit_ComponentInvalid`";
const TOOL_GETS_LIMIT: &str = "the tool gets an error of kind `limit`";
const TOOL_GETS_TOO_LARGE: &str = "the tool gets an error of kind `too_large`";
const TOOL_GETS_TIMEOUT: &str = "the tool gets an error of kind `timeout`";
const REST_LEFT_OUT: &str = "the rest is left out, and one more line says so";

#[rustfmt::skip]
fn requests(settings: &[Setting]) -> Vec<Row> {
    let set = |name, key, past| setting_row(settings, name, key, past);
    vec![
        row("Request line", size(MAX_REQUEST_LINE_BYTES as u64), "414 `HTTP_UriTooLong`"),
        row("Size of all headers", size(MAX_HEADER_BYTES as u64), "431 `HTTP_HeadersTooLarge`"),
        row("Number of headers", MAX_HEADERS, "431 `HTTP_HeadersTooLarge`"),
        set("JSON body of an execution", "limits.execute_body_kib", TOO_LARGE),
        row("JSON body of a proxy request", size(MAX_JSON_BYTES as u64), TOO_LARGE),
        row("Body that a proxy request sends to the provider", size(runs::MAX_PROXY_BODY_BYTES as u64), REQUEST_INVALID),
        set("Any other JSON body", "limits.body_kib", TOO_LARGE),
        row("Nesting depth of a JSON body", json::MAX_DEPTH, REQUEST_INVALID),
        row("Characters in a query parameter", MAX_TEXT_CHARS, REQUEST_INVALID),
        row("Entries of a list in the query", MAX_LIST_ENTRIES, REQUEST_INVALID),
        row("Entries of a page", MAX_LIMIT, "a larger `limit` is lowered to this number; a cursor with a larger one gets 400 `Request_CursorInvalid`"),
        row("Characters in an `Idempotency-Key`", crate::http::idempotency::MAX_KEY_CHARS, REQUEST_INVALID),
        row("Response stored for an `Idempotency-Key`", size(idempotency::MAX_RESPONSE_BYTES as u64), "the response is not stored; a repeated request gets 409 `Idempotency_AnswerGone`"),
        set("Responses stored for one project in a day", "limits.answers_mib", "the request is performed, but its response is not stored; a repeated request gets 409 `Idempotency_AnswerGone`"),
        set("Timeout for the arrival of a body", "limits.body_s", "408 `HTTP_RequestTimeout`, and the connection is closed"),
        set("Speed at which a body arrives and a response is read, over five seconds", "limits.min_rate_kib", "408 `HTTP_RequestTimeout`, or the connection is closed").at_least(),
        set("Deadline of an operation", "limits.deadline_s", "503 `Server_DeadlineExceeded`"),
        set("Timeout of a connection for the next request, or for the whole head of one", "limits.idle_s", "the connection is closed"),
    ]
}

#[rustfmt::skip]
fn callers(settings: &[Setting]) -> Vec<Row> {
    let set = |name, key, past| setting_row(settings, name, key, past);
    vec![
        set("Open connections", "limits.connections", "a further connection waits until another one ends"),
        set("Open connections from one address", "limits.connections_per_address", "a further connection is closed immediately"),
        set("Concurrent requests", "limits.in_flight", NODE_BUSY),
        set("Concurrent requests of one project", "limits.in_flight_per_project", PROJECT_BUSY),
        set("Arriving bodies from one address", "limits.bodies_per_address", "429 `Server_AddressBusy`"),
        set("Arriving bodies of one project", "limits.bodies_per_project", PROJECT_BUSY),
        set("Memory of all arriving bodies", "limits.bodies_mib", "503 `Server_Busy`; 429 for a project past a quarter of it, and for an address without a key past a sixteenth"),
        set("Timeout of a request that waits because of a concurrency limit", "limits.in_flight_wait_ms", "503 `Server_Busy` or 429 `Server_ProjectBusy`"),
        set("Requests of the organization in ten minutes", "limits.rate", TOO_MANY),
        set("Requests of one project in ten minutes", "limits.rate_per_project", TOO_MANY),
        set("Requests with one key in ten minutes", "limits.rate_per_key", TOO_MANY),
        row("Keys of a project", MAX_KEYS_PER_OWNER, REQUEST_INVALID),
        set("Failed authentications from one address in a minute", "limits.failed_auth", "429 `HTTP_TooManyFailedAuthentications`"),
        set("Time that a stopping server waits for running requests", "limits.drain_s", "their connections are closed"),
    ]
}

#[rustfmt::skip]
fn executions(settings: &[Setting]) -> Vec<Row> {
    let set = |name, key, past| setting_row(settings, name, key, past);
    vec![
        set("Concurrent executions", "sandbox.live", NODE_BUSY),
        set("Concurrent executions of one project", "sandbox.live_per_project", PROJECT_BUSY),
        set("Executions of one project that need much processor time", "sandbox.busy_per_project", "the executions take turns"),
        set("Executions in the queue", "sandbox.queue", NODE_BUSY),
        set("Executions of one project in the queue", "sandbox.queue_per_project", PROJECT_BUSY),
        set("Timeout of an execution in the queue", "sandbox.queue_wait_ms", "429 `Server_ProjectBusy` or 503 `Server_Busy`"),
        row("Result in a response", size(runs::MAX_INLINE_RESULT_BYTES as u64), "the result is stored as a file, and `data.result_file` links to it"),
        set("Memory of all executions", "sandbox.memory_mib", "memory does not grow; new executions get 503 `Server_Busy`"),
        set("Scripts of one project that run at once in the workbench", "workbench.scripts_per_project", "further scripts wait"),
        row("Time for which a script waits for others of its project", time(runs::MAX_SCRIPT_WAIT), PROJECT_BUSY),
        row("Time for which a script waits for others of its session, which run one after the other", time(session_files::MAX_TURN_WAIT), "409 `ToolRouterV2_SessionBusy`"),
        set("Processor time of a script of the workbench", "workbench.cpu_s", "the script is ended with kind `tool_cpu_limit` and changes nothing"),
        set("Time of a script of the workbench, with the tools that it runs", "workbench.time_s", "the script is ended with kind `tool_timeout` and changes nothing"),
        set("Memory of a script of the workbench", "workbench.memory_mib", "the script gets `MemoryError`"),
    ]
}

/// Destructured without `..`, so that the compiler reports a limit of the sandbox that is missing
/// here.
#[rustfmt::skip]
fn execution_resources(limits: sandbox::Limits, ceiling: sandbox::Limits) -> Vec<Row> {
    let sandbox::Limits {
        memory, cpu, wall, host_calls, requests, request_body, response_body, responses, result, log_lines, log_bytes, files,
        connect, first_byte, exchange,
        // The operator's setting limits files, and a guest of the current ABI waits for each of its
        // requests.
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
fn components(settings: &[Setting]) -> Vec<Row> {
    let set = |name, key, past| setting_row(settings, name, key, past);
    vec![
        row("Component", size(catalog::MAX_COMPONENT_BYTES as u64), "413 `HTTP_PayloadTooLarge`"),
        row("Functions", sandbox::MAX_FUNCTIONS, COMPONENT_TOO_COSTLY),
        row("Body of a function", size(sandbox::MAX_FUNCTION_BYTES as u64), COMPONENT_TOO_COSTLY),
        row("Module instances", sandbox::MAX_CORE_INSTANCES, COMPONENT_TOO_COSTLY),
        row("Memories", sandbox::MAX_MEMORIES, COMPONENT_TOO_COSTLY),
        row("Tables", sandbox::MAX_TABLES, COMPONENT_TOO_COSTLY),
        row("Elements of a table", sandbox::MAX_TABLE_ELEMENTS, "the table does not grow"),
        set("Processor time for compiling", "sandbox.compile_cpu_s", COMPONENT_TOO_COSTLY),
        set("Wall-clock time for compiling", "sandbox.compile_wall_s", COMPONENT_TOO_COSTLY),
        set("Memory for compiling", "sandbox.compile_memory_mib", COMPONENT_TOO_COSTLY),
        row("Manifest", size(manifest::MAX_MANIFEST_BYTES as u64), COMPONENT_INVALID),
        row("Tools", manifest::MAX_TOOLS, COMPONENT_INVALID),
        row("Description", size(manifest::MAX_DESCRIPTION_BYTES as u64), COMPONENT_INVALID),
        row("Schema", size(manifest::MAX_SCHEMA_BYTES as u64), COMPONENT_INVALID),
        row("Nesting depth of a schema", manifest::MAX_SCHEMA_DEPTH, COMPONENT_INVALID),
    ]
}

#[rustfmt::skip]
fn storage(settings: &[Setting]) -> Vec<Row> {
    let set = |name, key, past| setting_row(settings, name, key, past);
    vec![
        set("Size of a file", "files.size_mib", TOO_LARGE),
        set("Concurrent uploads and downloads by links", "files.transfers", "503 `Server_Busy` after 30 s"),
        set("Concurrent uploads and downloads of one project by links", "files.transfers_per_project", "429 `Server_ProjectBusy` after 30 s"),
        set("Timeout for the upload or download of a file", "files.transfer_s", "408 `HTTP_RequestTimeout`, or the connection is closed"),
        set("Size of all files of one call", "files.size_mib", "400 `ActionExecute_ArgumentsInvalid`"),
        row("Number of files of one call", files::MAX_FILES_PER_CALL, "400 `ActionExecute_ArgumentsInvalid`"),
        row("Characters in a file name", files::MAX_NAME_CHARS, REQUEST_INVALID),
        set("Size of all files of one project", "files.quota_mib", "507 `File_QuotaExceeded`; for a file of a tool `file_not_kept`"),
        set("Arguments or result in a record", "logs.payload_kib", "left out, and the record says so"),
        set("Execution log of one project in a day", "logs.quota_mib", "arguments, result, log lines and requests are left out, and the record says so"),
        set("Records that wait to be written", "logs.buffer_mib", "new executions wait for two seconds, then get 503 `Server_Unavailable`"),
        set("Content of a cassette", "logs.cassette_kib", "the execution leaves no cassette: 404 `Log_NoCassette`"),
        set("Time that an account waits for its user to connect it", "connections.pending_s", "the account becomes `EXPIRED`"),
        set("Time that a user may take at the provider", "connections.away_s", "the callback is refused with 400"),
        row("Users in a list of a shared account", app::accounts::MAX_LISTED_USERS, REQUEST_INVALID),
        set("Lease for refreshing a token", "connections.refresh_lease_s", "another server may refresh the token"),
        row("Configuration of a session as JSON", size(agents::MAX_CONFIG_BYTES as u64), SESSION_INVALID),
        row("Accounts of one toolkit that a session pins", agents::MAX_PINNED_ACCOUNTS, SESSION_INVALID),
        row("Versions of a session's configuration", agents::MAX_VERSIONS, "the oldest version is erased"),
        row("Tools of the client in a request to a session", MAX_INLINE_TOOLS, SESSION_INVALID),
        row("Tools on a page of an MCP endpoint", TOOLS_PER_PAGE, "`nextCursor` continues the list"),
        row("Resources on a page of an MCP endpoint", RESOURCES_PER_PAGE, "`nextCursor` continues the list"),
        row("Size of a resource that an MCP client reads", size(MAX_RESOURCE_BYTES), "error -32602, which names the operation that gives a link to the file"),
        row("Characters in the name of an assistant that registers", agents::mcp_oauth::MAX_CLIENT_NAME_CHARS, "400 `invalid_client_metadata`"),
        row("Redirect URIs of an assistant that registers, together", size(agents::mcp_oauth::MAX_REDIRECT_URIS_BYTES as u64), "400 `invalid_redirect_uri`"),
        row("Form in which a member gives an assistant access", size(MAX_CONSENT_FORM_BYTES as u64), "413, as a page"),
        row("Request of an assistant for tokens", size(MAX_TOKEN_REQUEST_BYTES as u64), TOO_LARGE),
        row("Validity of the authorization code of an assistant", time(agents::mcp_oauth::CODE_TTL), "400 `invalid_grant`"),
        row("Validity of the access token of an assistant", time(agents::mcp_oauth::ACCESS_TOKEN_TTL), "401 `McpAuthorization_TokenInvalid`"),
        row("Validity of the refresh token of an assistant", time(agents::mcp_oauth::REFRESH_TOKEN_TTL), "400 `invalid_grant`"),
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
        set("Time of the calls of a parallel execution in a session", "sessions.multi_execute_s", "calls that still run are cancelled, and the others have their results"),
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
        row("Calls of tools in a run of a recipe", agents::recipes::MAX_CALLS, "the run fails"),
        row("Data of all steps of a run of a recipe", size(agents::recipes::MAX_RUN_DATA_BYTES as u64), "the run fails"),
        row("Runs of recipes of one project that have not ended", agents::recipes::MAX_PENDING_RUNS, "429 `ToolRouterV2_TooManyRecipeRuns`"),
        set("Trigger instances of one project", "triggers.max_per_project", "422 `TriggerInstance_TooMany`"),
        row("Configuration of a trigger instance as JSON", size(triggers::MAX_CONFIG_BYTES as u64), "400 `TriggerInstance_ConfigInvalid`"),
        set("Interval between two polls of a trigger instance", "triggers.poll_interval_s", REQUEST_INVALID).at_least(),
        row("Characters in a cron expression", triggers::MAX_CRON_CHARS, REQUEST_INVALID),
        row("Polls that follow one another without an interval", triggers::MAX_ROUNDS, "the next poll follows after the interval"),
        row("Events of one poll", triggers::MAX_EVENTS, "the poll fails, and nothing of it is stored"),
        row("Cursor and state that a poll leaves, as base64", size(triggers::MAX_MEMORY_BYTES as u64), "the poll fails, and nothing of it is stored"),
        row("Events that a trigger instance remembers", triggers::MAX_SEEN_EVENTS, "an older event that a toolkit reports again is recognized while it is stored"),
        row("Events that are read for one page of the log of triggers", events::trigger_log::MAX_READ_EVENTS, "the page has fewer entries, and its cursor continues"),
        row("Events that a read of a trigger instance shows", triggers::MAX_RECENT_EVENTS, "only the newest are shown"),
        set("Actions of one project that wait or run", "triggers.pending_actions", "the actions of further events fail"),
        row("Arguments of an action as JSON", size(triggers::actions::MAX_ARGUMENTS_BYTES as u64), REQUEST_INVALID),
        row("Values of an event in the arguments of an action", size(mapping::MAX_FILLED_BYTES as u64), "the action fails"),
        row("Attempts of an action", triggers::actions::MAX_ATTEMPTS, "the action fails"),
        set("Time in which every poll, or every attempt to subscribe at a provider, has failed", "triggers.disable_after_s", "the trigger instance is disabled"),
        row("Attempts to end a subscription at a provider", triggers::MAX_UNSUBSCRIBE_ATTEMPTS, "the provider may still send events, which are refused"),
        set("Timeout of a call that waits for a token", "connections.refresh_wait_s", "503 `ConnectedAccount_RefreshInProgress`"),
    ]
}

#[rustfmt::skip]
fn prompts(settings: &[Setting]) -> Vec<Row> {
    let set = |name, key, past| setting_row(settings, name, key, past);
    vec![
        row("Characters in a prompt", runs::prompt::MAX_PROMPT_CHARS, REQUEST_INVALID),
        set("Timeout for making arguments", "llm.timeout_s", "502 `ActionExecute_ModelFailed`"),
        set("Tokens of a completion", "llm.max_tokens", "the completion is cut off"),
        set("Concurrent prompts", "llm.at_once", NODE_BUSY),
        set("Concurrent prompts of one project", "llm.at_once_per_project", PROJECT_BUSY),
    ]
}

#[rustfmt::skip]
fn webhooks(settings: &[Setting]) -> Vec<Row> {
    let set = |name, key, past| setting_row(settings, name, key, past);
    vec![
        row("Webhook subscriptions of one project", 1, "409 `Webhook_SubscriptionExists`"),
        row("Webhook endpoints of one project", events::endpoints::MAX_ENDPOINTS, "422 `Webhook_TooManyEndpoints`"),
        row("Characters in the client id of a webhook endpoint", events::endpoints::MAX_CLIENT_ID_CHARS, REQUEST_INVALID),
        row("Value of a webhook endpoint", size(events::endpoints::MAX_VALUE_BYTES as u64), REQUEST_INVALID),
        row("Body of a webhook of a provider", size(ingress::MAX_WEBHOOK_BYTES as u64), TOO_LARGE),
        set("Webhooks of providers to one address in a minute", "limits.webhook_rate", "429 `Webhook_TooManyRequests`"),
        row("Time in which trigger instances receive a webhook of a provider", time(events::ingress::RECEPTION_TIMEOUT), "503 `Webhook_Failed`; the provider sends it again"),
        row("Events of one webhook of a provider for one trigger instance", triggers::MAX_EVENTS, "503 `Webhook_Failed`, and nothing of it is stored"),
        row("Characters of a handshake that are returned to a provider", events::ingress::MAX_ANSWER_CHARS, "nothing is returned"),
        row("Characters in the URL of a webhook", events::subscriptions::MAX_URL_CHARS, REQUEST_INVALID),
        set("Attempts of a delivery after the first", "webhooks.retry_delays_s", "the delivery has failed"),
        set("Timeout of an attempt", "webhooks.timeout_s", "the attempt has failed"),
        row("Time that an endpoint may ask to wait in `Retry-After`", time(events::sending::MAX_RETRY_AFTER), "the next attempt begins then"),
        row("Size of an endpoint's response that is read", size(events::sending::MAX_RESPONSE_BYTES), "the rest is not read"),
        row("Size of an endpoint's response that is kept", size(events::sending::MAX_KEPT_BYTES as u64), "the rest is left out"),
        row("Attempts of a delivery that are kept", events::delivery::MAX_KEPT_ATTEMPTS, "the oldest ones are left out"),
        set("Events in the range of a replay", "webhooks.replay_events", REQUEST_INVALID),
        set("Concurrent deliveries", "webhooks.concurrency", "the other deliveries wait in the store"),
        set("Concurrent messages to one endpoint", "webhooks.concurrency_per_endpoint", "the other deliveries wait in the store"),
        set("Time for which an endpoint may accept nothing", "webhooks.disable_after_s", "the subscription is disabled"),
    ]
}

fn size(bytes: u64) -> String {
    match bytes {
        whole if whole >= 1 << 20 && whole.is_multiple_of(1 << 20) => {
            format!("{} MiB", whole >> 20)
        }
        other => format!("{} KiB", other >> 10),
    }
}

fn time(duration: Duration) -> String {
    format!("{} s", duration.as_secs())
}
