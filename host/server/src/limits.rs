//! Table of every limit: its value, its setting, and what a client gets beyond it.
//!
//! The values are defined where they are enforced and are read from there. `docs/limits.md` is this
//! table, printed; a test exercises every row of it.

use std::time::Duration;

use app::{catalog, files, idempotency, json, large_work, projects, tools};

use crate::{
    config::{self, Setting},
    http::{
        answer::{MAX_HEADER_BYTES, MAX_REQUEST_LINE_BYTES},
        body::MAX_JSON_BYTES,
        limiter, listen,
        page::MAX_LIMIT,
        query::{MAX_LIST_ENTRIES, MAX_LONG_LIST_ENTRIES, MAX_TEXT_CHARS},
    },
};

const INTRODUCTION: &str = "# Limits

Everything has a number. What is over one is refused or cut as the last column says, and changes nothing; every refusal comes in the error
envelope with its slug and a `suggested_fix`, and 429 and 503 say with `Retry-After` when to try again. A failure of a run is an answer with
status 200 and `successful: false`, and its kind stands in `data.kind`. Numbers with a setting are its default.
Requests, runs and rates are counted by each server for itself: several servers on one database give as many times as much.
Files are counted for all servers together; what a project writes in a day is, too, but for the last minute of each server.
";

const WORK: &str = "
## Work and memory

Bounds of the work and the memory that one request can cause. They do not depend on settings unless one is named.

| Bound | At most | Past it | Held by |
|---|---|---|---|
";

/// One row of the table.
struct Row {
    what: &'static str,
    most: String,
    /// Name of the setting; empty if the limit has none.
    setting: &'static str,
    /// Allowed values of the setting; empty if it has none or takes any value.
    range: String,
    past: &'static str,
}

/// Limit on the work or the memory that one request can cause.
struct Bound {
    what: &'static str,
    most: String,
    past: &'static str,
    /// Source file and function of the test for this limit.
    test: &'static str,
}

impl Row {
    /// Marks a minimum.
    fn at_least(mut self) -> Self {
        self.most.push_str(" at least");
        self
    }
}

fn row(what: &'static str, most: impl ToString, past: &'static str) -> Row {
    Row {
        what,
        most: most.to_string(),
        setting: "",
        range: String::new(),
        past,
    }
}

/// Makes the row of a limit that a setting changes, from the declaration of the setting.
fn setting_row(
    settings: &[Setting],
    what: &'static str,
    key: &'static str,
    past: &'static str,
) -> Row {
    let setting = settings.iter().find(|setting| setting.key == key);
    Row {
        setting: key,
        range: setting.map(Setting::range_text).unwrap_or_default(),
        ..row(what, setting.map(amount).unwrap_or_default(), past)
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
        ("Runs", runs(&settings)),
        (
            "What one run may use",
            guests(sandbox::Limits::default(), sandbox::Limits::CEILING),
        ),
        ("Components", components(&settings)),
        ("Files, records and accounts", kept(&settings)),
        ("Sentences", sentences(&settings)),
    ];
    let mut page = INTRODUCTION.to_owned();
    for (name, rows) in groups {
        page.push_str(&format!(
            "\n## {name}\n\n| Limit | At most | Setting | Range | Past it |\n|---|---|---|---|---|\n"
        ));
        for Row {
            what,
            most,
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
                "| {what} | {most} | {setting} | {range} | {past} |\n"
            ));
        }
    }
    page.push_str(WORK);
    for Bound {
        what,
        most,
        past,
        test,
    } in work()
    {
        page.push_str(&format!("| {what} | {most} | {past} | `{test}` |\n"));
    }
    page
}

/// Lists the limits on the work and the memory that one request can cause, each with its test.
#[rustfmt::skip]
fn work() -> Vec<Bound> {
    let bound = |what, most: &dyn ToString, past, test| Bound { what, most: most.to_string(), past, test };
    let per = |all: usize, part: usize| format!("{all}; a registered domain: {}", all / part);
    vec![
        bound("Body that is parsed, checked or hashed by the thread of its request", &size(large_work::MAX_INLINE_BYTES as u64), "it is done on a thread of low priority", "host/app/src/large_work.rs large_bodies_leave_their_thread_to_others"),
        bound("Larger bodies that are parsed, checked or hashed at once", &format!("{}; of a project: {}", large_work::MAX_LARGE_BODIES, large_work::MAX_LARGE_BODIES_PER_PROJECT), "projects take turns", "host/app/src/large_work.rs large_bodies_wait_for_their_project"),
        bound("Steps of checking a value", &format!("{}, and {} for each byte", catalog::MAX_STEPS, catalog::MAX_STEPS_PER_BYTE), "400 `ActionExecute_ArgumentsInvalid`; of an answer `tool_output_invalid`", "tests/e2e/abuse/values.rs value_with_too_many_steps_is_refused"),
        bound("Checking a larger value, with its wait", &time(catalog::LARGE_CHECK_DEADLINE), "503 `Server_DeadlineExceeded`; of an answer `tool_host_error`", "host/app/src/large_work.rs large_bodies_wait_for_their_project"),
        bound("Schemas that look at one value, references followed", &manifest::MAX_SCHEMAS_PER_VALUE, BROKEN, "tests/e2e/abuse/values.rs references_that_double_are_refused_at_publish"),
        bound("Schemas that follow from one another for one value", &manifest::MAX_SCHEMA_CHAIN, BROKEN, "tests/e2e/abuse/values.rs recursive_schema_is_refused_at_publish"),
        bound("Patterns of a schema", &manifest::MAX_PATTERNS_PER_SCHEMA, BROKEN, "tests/e2e/abuse/values.rs too_many_patterns_are_refused_at_publish"),
        bound("Memory of the validator of a schema, estimated", &size(catalog::MAX_SCHEMA_BYTES as u64), BROKEN, "tests/e2e/abuse/values.rs too_many_patterns_are_refused_at_publish"),
        bound("Memory of all validators, estimated", &size(catalog::MAX_VALIDATOR_BYTES as u64), "the one used longest ago is let go", "host/app/src/catalog/validators.rs validators_used_longest_ago_are_let_go"),
        bound("Validators", &catalog::MAX_VALIDATORS, "the one used longest ago is let go", "host/app/src/catalog/validators.rs validators_of_dropped_schemas_take_no_room"),
        bound("Pairs of a value and a schema that are searched for files", &files::MAX_SEARCH_STEPS, "400 `ActionExecute_ArgumentsInvalid`", "host/app/src/files/arguments.rs alternatives_that_meet_are_visited_once"),
        bound("Names looked up at once, each on a thread", &per(net::MAX_LOOKUPS, net::DOMAIN_SHARE_DIVISOR), "they wait", "host/net/src/lookup.rs silent_domain_leaves_threads_to_others"),
        bound("Names that wait to be looked up", &per(net::MAX_WAITING_LOOKUPS, net::DOMAIN_SHARE_DIVISOR), "the request fails with an error of kind `dns`", "host/net/src/lookup.rs silent_domain_leaves_threads_to_others"),
        bound("Looking a name up", &time(net::LOOKUP_TIMEOUT), "the request fails with an error of kind `dns`", "tests/e2e/abuse/edge.rs silent_name_server_holds_up_nobody_else"),
        bound("Wrong keys, links or callbacks judged at once for addresses past `limits.failed_auth`", &limiter::SUSPECTS_AT_ONCE, "they wait; a right one still works", "tests/e2e/abuse/edge.rs guesses_do_not_lock_out_a_valid_key"),
        bound("Memory of a body that arrives in pieces", &"its bytes", "pieces are copied together", "tests/e2e/abuse/edge.rs body_of_tiny_chunks_takes_little_memory"),
        bound("Seconds for which a change of one record is tried again while others change it", &store::CHANGE_TIMEOUT_S, "503 `Server_Unavailable`", "tests/e2e/abuse/records.rs all_writers_of_one_record_succeed"),
        bound("Records of a deleted project that are erased in one batch", &projects::RECORDS_PER_BATCH, "the next batch follows; when the request has ended, a job goes on within 5 s", "tests/e2e/abuse/records.rs deleted_project_is_refused_and_then_erased"),
        bound("Secrets of a call, in `custom_auth_params` at any depth or of an account", &sandbox::MAX_SECRETS,
            "400 `Request_Invalid`, of an account 400 `ConnectedAccount_MissingRequiredFields`", "tests/e2e/abuse/runs.rs call_secrets_are_counted_at_any_depth"),
        bound("These secrets together", &size(sandbox::MAX_SECRET_BYTES as u64),
            "the same", "tests/e2e/abuse/runs.rs stored_accounts_bring_no_more_secrets_than_calls"),
        bound("Steps of the search for secrets for each byte of an answer", &sandbox::STEPS_PER_BYTE,
            "the answer is withheld: the tool gets an error of kind `protocol`", "tests/e2e/abuse/runs.rs answers_costly_to_search_are_withheld"),
        bound("Bodies of answers while they arrive, of all runs and proxy requests", &"three quarters of `sandbox.memory_mib`, with the memory of guests",
            "the tool gets an error of kind `limit`, a proxy request 502 `ActionProxy_UpstreamFailed`", "tests/e2e/abuse/runs.rs response_bytes_count_toward_shared_run_memory"),
        bound("Larger answers of providers, past 1 MiB each, whose next part waits for a thread", &net::MAX_LARGE_READS, "they take turns for each 256 KiB", "host/net/src/body.rs large_bodies_are_read_in_turns"),
        bound("Parts of a request, all together", &"the size of one file, and no memory for the parts of one file",
            "the tool gets an error of kind `too_large`", "tests/e2e/abuse/runs.rs parts_of_one_file_share_its_bytes"),
        bound("Requests of one list that are begun at once", &sandbox::Limits::default().concurrent_requests,
            "the others wait for their turn", "tests/e2e/abuse/runs.rs request_list_memory_is_bounded"),
        bound("Room for a record, besides arguments and result", &size(tools::log::RECORD_OVERHEAD_BYTES as u64), "lines and requests of the run are left out when there is no more room, and said to be", "host/app/src/tools/log/pending.rs long_trace_takes_room_or_is_omitted"),
        bound("Records written to the store together", &size(tools::log::MAX_GROUP_BYTES as u64), "the rest is written after them", "host/app/src/tools/log/write.rs large_records_are_written_in_small_groups"),
    ]
}

const TOO_LARGE: &str = "413 `HTTP_PayloadTooLarge`";
const INVALID: &str = "400 `Request_Invalid`";
const NODE_BUSY: &str = "503 `Server_Busy`";
const PROJECT_BUSY: &str = "429 `Server_ProjectBusy`";
const TOO_MANY: &str = "429 `HTTP_TooManyRequests`";
const COSTLY: &str = "422 `Toolkit_ComponentLimit`";
const BROKEN: &str = "400 `Toolkit_ComponentInvalid`";
const REFUSED: &str = "the tool gets an error of kind `limit`";
const LARGE: &str = "the tool gets an error of kind `too_large`";
const SLOW: &str = "the tool gets an error of kind `timeout`";
const CUT: &str = "one more line says that the rest is left out";

#[rustfmt::skip]
fn requests(settings: &[Setting]) -> Vec<Row> {
    let set = |what, key, past| setting_row(settings, what, key, past);
    vec![
        row("Request line", size(MAX_REQUEST_LINE_BYTES as u64), "414 `HTTP_UriTooLong`"),
        row("Headers together", size(MAX_HEADER_BYTES as u64), "431 `HTTP_HeadersTooLarge`"),
        row("Headers", listen::HEADERS, "431 without a body"),
        set("JSON body of an execution", "limits.execute_body_kib", TOO_LARGE),
        row("JSON body of a request of one's own", size(MAX_JSON_BYTES as u64), TOO_LARGE),
        row("Bytes that it sends", size(tools::MAX_PROXY_BODY_BYTES as u64), INVALID),
        set("Any other JSON body", "limits.body_kib", TOO_LARGE),
        row("Levels of a JSON body", json::MAX_DEPTH, INVALID),
        row("Characters of a query parameter", MAX_TEXT_CHARS, INVALID),
        row("Entries of a list in the query", MAX_LIST_ENTRIES, INVALID),
        row("Tool slugs in the query", MAX_LONG_LIST_ENTRIES, INVALID),
        row("Entries of a page", MAX_LIMIT, "a larger `limit` is taken for this one; in a cursor 400 `Request_CursorInvalid`"),
        row("Characters of an `Idempotency-Key`", idempotency::MAX_KEY_CHARS, INVALID),
        row("Answer kept for an `Idempotency-Key`", size(idempotency::MAX_RESPONSE_BYTES as u64), "409 `Idempotency_AnswerGone` when it is sent again"),
        set("Answers kept of a project in a day", "limits.answers_mib", "done, and not kept: 409 `Idempotency_AnswerGone` when it is sent again"),
        set("Arrival of a body", "limits.body_s", "408 `HTTP_RequestTimeout`, and the connection ends"),
        set("Speed of a body, and of reading an answer, over five seconds", "limits.min_rate_kib", "408 `HTTP_RequestTimeout`, or the connection ends").at_least(),
        set("An operation", "limits.deadline_s", "503 `Server_DeadlineExceeded`"),
        set("Waiting for a request, or for its head", "limits.idle_s", "the connection ends"),
    ]
}

#[rustfmt::skip]
fn callers(settings: &[Setting]) -> Vec<Row> {
    let set = |what, key, past| setting_row(settings, what, key, past);
    vec![
        set("Connections", "limits.connections", "one more waits until another ends"),
        set("Connections from one address", "limits.connections_per_address", "one more is closed at once"),
        set("Requests at once", "limits.in_flight", NODE_BUSY),
        set("Requests of a project at once", "limits.in_flight_per_project", PROJECT_BUSY),
        set("Bodies of one address that are on their way", "limits.bodies_per_address", "429 `Server_AddressBusy`"),
        set("Bodies of one project that are on their way", "limits.bodies_per_project", PROJECT_BUSY),
        set("Memory of bodies that are on their way", "limits.bodies_mib", "503 `Server_Busy`; 429 past a quarter of it for a project, a sixteenth for an address without a key"),
        set("Waiting for a turn", "limits.in_flight_wait_ms", "either of these"),
        set("Requests of the organization in ten minutes", "limits.rate", TOO_MANY),
        set("Requests of a project in ten minutes", "limits.rate_per_project", TOO_MANY),
        set("Requests with one key in ten minutes", "limits.rate_per_key", TOO_MANY),
        set("Wrong keys from one address in a minute", "limits.failed_auth", "429 `HTTP_TooManyFailedAuthentications`"),
        set("Finishing what runs when the server stops", "limits.drain_s", "it is cut"),
    ]
}

#[rustfmt::skip]
fn runs(settings: &[Setting]) -> Vec<Row> {
    let set = |what, key, past| setting_row(settings, what, key, past);
    vec![
        set("Runs at once", "sandbox.live", NODE_BUSY),
        set("Runs of a project at once", "sandbox.live_per_project", PROJECT_BUSY),
        set("Runs of a project that compute for long", "sandbox.busy_per_project", "they take turns"),
        set("Runs that wait for a place", "sandbox.queue", NODE_BUSY),
        set("Runs of a project that wait", "sandbox.queue_per_project", PROJECT_BUSY),
        set("Waiting for a place", "sandbox.queue_wait_ms", "429 `Server_ProjectBusy` or 503 `Server_Busy`"),
        row("Result in an answer", size(tools::MAX_INLINE_RESULT_BYTES as u64), "it is kept as a file, and `data.result_file` links to it"),
        set("Memory of all runs", "sandbox.memory_mib", "memory does not grow; new runs get 503 `Server_Busy`"),
    ]
}

/// Destructured without `..`, so that the compiler reports a limit of the sandbox that is missing
/// here.
#[rustfmt::skip]
fn guests(limits: sandbox::Limits, ceiling: sandbox::Limits) -> Vec<Row> {
    let sandbox::Limits {
        memory, cpu, wall, host_calls, requests, request_body, response_body, responses, result, log_lines, log_bytes, files,
        connect, first_byte, exchange,
        // The operator's setting limits files, and a guest of the current ABI waits for each of its
        // requests.
        file: _, concurrent_requests: _,
    } = limits;
    let asked = |own: String, most: String| format!("{own}; a toolkit may ask for {most}");
    vec![
        row("Memory", asked(size(memory), size(ceiling.memory)), "it does not grow: `tool_memory_limit` when the tool cannot go on without"),
        row("Processor time", asked(time(cpu), time(ceiling.cpu)), "`tool_cpu_limit`"),
        row("Time", asked(time(wall), time(ceiling.wall)), "`tool_timeout`"),
        row("Calls of host functions", host_calls, "`tool_host_call_limit`"),
        row("Result", size(result), "`tool_output_too_large`"),
        row("Lines of log", log_lines, CUT),
        row("Log", size(log_bytes), CUT),
        row("Outgoing requests", requests, REFUSED),
        row("Body of an outgoing request", size(request_body), LARGE),
        row("Body of an answer", size(response_body), LARGE),
        row("Bodies of all answers", size(responses), REFUSED),
        row("Until a connection stands", time(connect), SLOW),
        row("Until an answer begins", time(first_byte), SLOW),
        row("An outgoing request", time(exchange), SLOW),
        row("Files that a run makes", files, REFUSED),
    ]
}

#[rustfmt::skip]
fn components(settings: &[Setting]) -> Vec<Row> {
    let set = |what, key, past| setting_row(settings, what, key, past);
    vec![
        row("Component", size(catalog::MAX_COMPONENT_BYTES as u64), "413 `HTTP_PayloadTooLarge`"),
        row("Functions", sandbox::MAX_FUNCTIONS, COSTLY),
        row("Body of a function", size(sandbox::MAX_FUNCTION_BYTES as u64), COSTLY),
        row("Module instances", sandbox::MAX_CORE_INSTANCES, COSTLY),
        row("Memories", sandbox::MAX_MEMORIES, COSTLY),
        row("Tables", sandbox::MAX_TABLES, COSTLY),
        row("Elements of a table", sandbox::MAX_TABLE_ELEMENTS, "it does not grow"),
        set("Processor time for compiling", "sandbox.compile_cpu_s", COSTLY),
        set("Time for compiling", "sandbox.compile_wall_s", COSTLY),
        set("Memory for compiling", "sandbox.compile_memory_mib", COSTLY),
        row("Manifest", size(manifest::MAX_MANIFEST_BYTES as u64), BROKEN),
        row("Tools", manifest::MAX_TOOLS, BROKEN),
        row("Description", size(manifest::MAX_DESCRIPTION_BYTES as u64), BROKEN),
        row("Schema", size(manifest::MAX_SCHEMA_BYTES as u64), BROKEN),
        row("Levels of a schema", manifest::MAX_SCHEMA_DEPTH, BROKEN),
    ]
}

#[rustfmt::skip]
fn kept(settings: &[Setting]) -> Vec<Row> {
    let set = |what, key, past| setting_row(settings, what, key, past);
    vec![
        set("A file", "files.size_mib", TOO_LARGE),
        set("Files that links send or receive at once", "files.transfers", "503 `Server_Busy` after 30 s"),
        set("Of them, files of one project", "files.transfers_per_project", "429 `Server_ProjectBusy` after 30 s"),
        set("Arrival of a file, or its departure", "files.transfer_s", "408 `HTTP_RequestTimeout`, or the connection ends"),
        set("Files of a call together", "files.size_mib", "400 `ActionExecute_ArgumentsInvalid`"),
        row("Files of a call", files::MAX_FILES_PER_CALL, "400 `ActionExecute_ArgumentsInvalid`"),
        row("Characters of a file's name", files::MAX_NAME_CHARS, INVALID),
        set("Files of a project together", "files.quota_mib", "507 `File_QuotaExceeded`; a tool's file: `file_not_kept`"),
        set("Arguments or result in a record", "logs.payload_kib", "left out, and said to be"),
        set("Log of a project in a day", "logs.quota_mib", "arguments, result, lines and requests are left out, and said to be"),
        set("Records that wait to be written", "logs.buffer_mib", "new runs wait for two seconds: 503 `Server_Unavailable`"),
        set("Cassette", "logs.cassette_kib", "404 `Log_NoCassette`"),
        set("An account waits for its user", "connections.pending_s", "it is `EXPIRED`"),
        set("A user's time at an application", "connections.away_s", "coming back leads nowhere: 400"),
        row("Users in a list of a shared account", app::connections::MAX_LISTED_USERS, INVALID),
        set("Renewing a token", "connections.refresh_lease_s", "another server may try"),
        set("A call's wait for a token", "connections.refresh_wait_s", "503 `ConnectedAccount_RefreshInProgress`"),
    ]
}

#[rustfmt::skip]
fn sentences(settings: &[Setting]) -> Vec<Row> {
    let set = |what, key, past| setting_row(settings, what, key, past);
    vec![
        row("Characters of a sentence", tools::prompt::MAX_PROMPT_CHARS, INVALID),
        set("Making arguments", "llm.timeout_s", "502 `ActionExecute_ModelFailed`"),
        set("Tokens of a model's answer", "llm.max_tokens", "the model is cut"),
        set("Sentences at once", "llm.at_once", NODE_BUSY),
        set("Sentences of a project at once", "llm.at_once_per_project", PROJECT_BUSY),
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
