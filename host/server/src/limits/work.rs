//! Limits on the work and the memory that one request can cause, each with its test.

use app::{
    catalog,
    core::{large_work, shares, trace},
    files, lifecycle, runs,
};
use http::{limiter, unknown::MAX_WARNINGS};
use mcp::MAX_DESCRIPTION_BYTES;
use sandbox::ProgramLimits;

use super::{Row, add_table, row, rows::COMPONENT_INVALID, size, time};

const WORK_SECTION: &str = "
## Work and memory

These limits bound the work and the memory that one request can cause. They do not depend on settings, except where the value names one.
";

const PROGRAM_LIMITS: ProgramLimits = ProgramLimits::DEFAULT;

/// Adds the section to the page.
pub(super) fn write(page: &mut String) {
    page.push_str(WORK_SECTION);
    add_table(page, &work());
}

#[rustfmt::skip]
fn work() -> Vec<Row> {
    vec![
        row("Body that the thread of its request parses, checks or hashes", size(large_work::MAX_INLINE_BYTES as u64), "a thread of low priority does the work", "host/app/src/core/large_work/tests.rs large_bodies_leave_their_thread_to_others"),
        row("Body that the thread of its request copies, whose properties it finds, or which it hashes for an `Idempotency-Key`", size(large_work::MAX_INLINE_SCAN_BYTES as u64), "a thread of low priority does the work", "host/app/src/core/large_work/tests.rs large_copies_leave_their_thread_to_others"),
        row("Warnings about unknown properties and parameters of one request", MAX_WARNINGS, "further properties are counted; a request with further parameters is 400 `Request_Invalid`", "host/http/src/unknown.rs warnings_of_one_request_are_limited"),
        row("Use of the processors by one project at the threads of all projects, while others are active", "an equal share, measured over 20 ms", "its tasks run on threads of busy projects, one fewer than there are processors, but at least one", "host/app/src/core/shares.rs project_beyond_equal_share_is_busy"),
        row("Threads for blocking work of busy projects, such as reads of the store", shares::MAX_BLOCKING_THREADS, "further work waits", "host/app/src/core/shares.rs blocking_work_of_busy_projects_is_limited"),
        row("Steps of the validation of a value", format!("{}, and {} more for each byte", catalog::MAX_STEPS, catalog::MAX_STEPS_PER_BYTE), "400 `ActionExecute_ArgumentsInvalid`; for the result of a tool `tool_output_invalid`", "tests/e2e/abuse/values.rs value_with_too_many_steps_is_refused"),
        row("Deadline for the validation of a larger value, including its wait", time(catalog::LARGE_CHECK_DEADLINE), "503 `Server_DeadlineExceeded`; for the result of a tool `tool_host_error`", "host/app/src/core/large_work/tests.rs large_bodies_wait_for_their_project"),
        row("Schemas that check one value, references followed", manifest::MAX_SCHEMAS_PER_VALUE, COMPONENT_INVALID, "tests/e2e/abuse/values.rs references_that_double_are_refused_at_publish"),
        row("Schemas that follow from one another for the same value, references followed", manifest::MAX_SCHEMA_CHAIN, COMPONENT_INVALID, "tests/e2e/abuse/values.rs recursive_schema_is_refused_at_publish"),
        row("Different regular expressions in a schema", manifest::MAX_PATTERNS_PER_SCHEMA, COMPONENT_INVALID, "tests/e2e/abuse/values.rs too_many_patterns_are_refused_at_publish"),
        row("Estimated memory of the validator of one schema", size(catalog::MAX_SCHEMA_BYTES as u64), COMPONENT_INVALID, "tests/e2e/abuse/values.rs too_many_patterns_are_refused_at_publish"),
        row("Estimated memory of all cached validators", size(catalog::MAX_VALIDATOR_BYTES as u64), "a validator that was not used lately is dropped", "host/app/src/catalog/validators.rs validators_used_longest_ago_are_let_go"),
        row("Cached validators", catalog::MAX_VALIDATORS, "a validator that was not used lately is dropped", "host/app/src/catalog/validators.rs validators_of_dropped_schemas_take_no_room"),
        row("Descriptions of tools that are kept for MCP clients", size(MAX_DESCRIPTION_BYTES as u64), "those that no client listed lately are dropped", "host/mcp/src/descriptions.rs unused_descriptions_are_dropped"),
        row("Pairs of a value and a schema that are searched for files", files::MAX_SEARCH_STEPS, "400 `ActionExecute_ArgumentsInvalid`", "host/app/src/files/arguments/tests.rs alternatives_that_meet_are_visited_once"),
        row("Timeout for the lookup of a host name", time(net::LOOKUP_TIMEOUT), "the request fails with an error of kind `dns`", "tests/e2e/abuse/edge.rs silent_name_server_holds_up_nobody_else"),
        row("Concurrent checks of keys, of links or of callbacks from addresses past `limits.failed_auth`", limiter::SUSPECTS_AT_ONCE, "further checks wait; a valid secret still works", "tests/e2e/abuse/edge.rs guesses_do_not_lock_out_a_valid_key"),
        row("Memory of a body that arrives in chunks", "the size of the body", "chunks are copied together", "tests/e2e/abuse/edge.rs body_of_tiny_chunks_takes_little_memory"),
        row("Seconds for which a change of one record is retried while other writers commit first", store::CHANGE_TIMEOUT_S, "503 `Server_Unavailable`", "tests/e2e/abuse/records.rs all_writers_of_one_record_succeed"),
        row("Records of a deleted project that are erased in one batch", lifecycle::remove_project::RECORDS_PER_BATCH, "the next batch follows; after the end of the request a queue continues within 8 s", "tests/e2e/abuse/records.rs deleted_project_is_refused_and_then_erased"),
        row("Secrets of one call, in `custom_auth_params` at any depth or of an account", sandbox::MAX_SECRETS,
            "400 `Request_Invalid`; for an account 400 `ConnectedAccount_MissingRequiredFields`", "tests/e2e/abuse/runs.rs call_secrets_are_counted_at_any_depth"),
        row("Size of all secrets of one call", size(sandbox::MAX_SECRET_BYTES as u64),
            "400 `Request_Invalid`; for an account 400 `ConnectedAccount_MissingRequiredFields`", "tests/e2e/abuse/runs.rs stored_accounts_bring_no_more_secrets_than_calls"),
        row("Steps of the search for secrets, for each byte of a response", sandbox::STEPS_PER_BYTE,
            "the response is withheld, and the tool gets an error of kind `protocol`", "tests/e2e/abuse/runs.rs answers_costly_to_search_are_withheld"),
        row("Size of a message whose signature a toolkit lets the server verify", format!("{}; all messages of a call {}", size(sandbox::MAX_SIGNED_MESSAGE_BYTES as u64), size(sandbox::MAX_SIGNED_BYTES_PER_CALL as u64)),
            "the toolkit gets an error of kind `too_large` or `limit`", "host/sandbox/src/toolkit/webhook_secrets.rs verification_is_refused_with_reason"),
        row("Arriving response bodies of all executions and proxy requests", "three quarters of `sandbox.memory_mib`, together with the memory of guests",
            "the tool gets an error of kind `limit`, and a proxy request 502 `ActionProxy_UpstreamFailed`", "tests/e2e/abuse/runs.rs response_bytes_count_toward_shared_run_memory"),
        row("Files in the arguments of all executions, and objects of a bucket that are checked", "three quarters of `sandbox.memory_mib`, together with the memory of guests and of responses",
            "503 `Server_Busy`, before a byte is read", "tests/e2e/abuse/runs.rs files_of_calls_count_toward_shared_run_memory"),
        row("Object that a client puts into the bucket by a link of the bucket", "`files.size_mib`",
            "the object is removed without being read: 400 `File_NotUploaded`", "tests/e2e/files.rs large_object_in_bucket_is_removed_unread"),
        row("Provider responses of more than 1 MiB whose next part waits for a thread", net::MAX_LARGE_READS, "the responses take turns, 256 KiB each", "host/net/src/body.rs large_bodies_are_read_in_turns"),
        row("Size of all parts of one request", "the size of one file; parts of the same file take no memory of their own",
            "the tool gets an error of kind `too_large`", "tests/e2e/abuse/runs.rs parts_of_one_file_share_its_bytes"),
        row("Content encodings of a response to a request with a credential", "gzip",
            "the response is withheld, and the tool gets an error of kind `protocol`; `Range` is not sent with a credential", "tests/e2e/abuse/runs.rs answers_in_unknown_encodings_are_withheld"),
        row("Parts of one request with a multipart body", sandbox::MAX_PARTS,
            "the tool gets an error of kind `invalid_request`", "host/sandbox/src/toolkit/imports/http/payload.rs parts_of_a_body_are_limited"),
        row("Concurrent requests of one list", sandbox::Limits::default().concurrent_requests,
            "the other requests wait", "tests/e2e/abuse/runs.rs request_list_memory_is_bounded"),
        row("Memory reserved for a record in addition to arguments and result", size(runs::log::RECORD_OVERHEAD_BYTES as u64), "log lines and requests of the execution are left out if no more memory is free, and the record says so", "host/app/src/runs/log/pending/tests.rs long_trace_takes_room_or_is_omitted"),
        row("Spans that wait to be exported", trace::MAX_WAITING_SPANS, "further spans are dropped, and counted in `toolhost_spans_total`", "host/app/src/core/trace/tests.rs spans_beyond_the_buffer_are_counted"),
        row("Size of the records that are written to the store together", size(runs::log::MAX_GROUP_BYTES as u64), "the other records are written afterwards", "host/app/src/runs/log/write.rs large_records_are_written_in_small_groups"),
        row("Calls of `run_tool`, `search_tools`, `proxy` and `upload_file` in one script", PROGRAM_LIMITS.requests, "the script gets `ToolError`", "host/workbench/tests/python.rs calls_of_host_are_limited"),
        row("Size of the arguments or the result of such a call", size(PROGRAM_LIMITS.message), "the script gets an error", "host/workbench/tests/python.rs large_call_of_host_is_refused"),
        row("Each standard output of a script", size(PROGRAM_LIMITS.output), "the script gets `OSError`: no space left", "host/workbench/tests/python.rs endless_output_ends"),
        row("Each standard output and the result of a script in the response", size(workbench::MAX_EXCERPT_BYTES as u64), "the whole is a file in `outputs`", "host/workbench/tests/python.rs long_output_becomes_file"),
        row("Result of a script, the value of its last expression", format!("{} characters", workbench::MAX_RESULT_CHARS), "it is cut", "host/workbench/tests/python.rs long_result_is_cut"),
        row("Files and folders of a session, with those of the interpreter", PROGRAM_LIMITS.files, "the script gets `OSError`: no space left", "host/workbench/tests/python.rs files_are_limited_in_size_and_number"),
        row("Size of all files of a session", size(PROGRAM_LIMITS.file_bytes), "the script gets `OSError`: no space left", "host/workbench/tests/python.rs files_are_limited_in_size_and_number"),
        row("Size of the variables that a script leaves to the next", size(workbench::MAX_VARIABLES_BYTES as u64), "the largest are not kept, and the result names them", "host/workbench/tests/python.rs variables_that_cannot_be_kept_are_named"),
        row("Processor time for reading the variables of earlier scripts", format!("{} s", workbench::MAX_READING_TIME.as_secs()), "the variables are dropped, and the script runs without them", "host/workbench/tests/python.rs variables_that_end_their_reading_are_dropped"),
        row("Size of the source text of a script", size(workbench::MAX_CODE_BYTES as u64), "the script is refused", "host/workbench/tests/python.rs long_script_is_refused"),
        row("Time and processor time of a shell command", "as of a script", "the command is ended and changes no file", "tests/e2e/bash_tool.rs commands_are_ended_at_their_limits"),
        row("Memory of the process of a shell command", size(workbench::MAX_SHELL_MEMORY_BYTES), "the command is ended and changes no file", "tests/e2e/bash_tool.rs commands_are_ended_at_their_limits"),
        row("Simple commands and turns of loops of a shell command", workbench::MAX_SHELL_STEPS, "the command is ended and changes no file", "tests/e2e/bash_tool.rs endless_loop_changes_no_file"),
        row("Each standard output of a shell command", size(workbench::MAX_SHELL_OUTPUT_BYTES as u64), "the rest is dropped, and standard error says so", "tests/e2e/bash_tool.rs fork_bombs_memory_and_output_are_contained"),
        row("Size of all files of a shell command, with those outside of the session's folder", size(workbench::MAX_SHELL_FILE_BYTES), "the write fails", "tests/e2e/bash_tool.rs fork_bombs_memory_and_output_are_contained"),
        row("Size of a shell command", size(workbench::MAX_COMMAND_BYTES as u64), "400 `ActionExecute_ArgumentsInvalid`", "tests/e2e/bash_tool.rs shell_needs_the_workbench"),
        row("Processes and threads that a script starts", 0, "the script gets an error", "host/workbench/tests/python.rs fork_bomb_is_refused"),
    ]
}
