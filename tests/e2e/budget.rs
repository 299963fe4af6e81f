//! Tests of every row of `docs/limits.md`: a request at the limit passes, and a request just over
//! it gets the response that the row describes.
//!
//! The server prints the table from the numbers that it enforces. A new limit without a row here
//! fails a test, and so does a new setting in a group of limits.

use std::{collections::BTreeSet, fs, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use harness::{
    Answer, Client, Guest, Host, client::Body, guest, guest::imports, host::Setup, unique,
    wait_until,
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    task::JoinSet,
};

use crate::given;

/// Reads the committed page.
fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/limits.md")).unwrap()
}

/// Test of each row: one in this file, or an existing test elsewhere if the test here would be
/// slow.
const TESTS_OF_ROWS: &str = "\
Request line | tests/e2e/budget.rs request_limits_are_enforced
Size of all headers | tests/e2e/budget.rs request_head_limits_are_enforced
Number of headers | tests/e2e/budget.rs request_head_limits_are_enforced
JSON body of an execution | tests/e2e/budget.rs request_limits_are_enforced
JSON body of a proxy request | tests/e2e/budget.rs request_limits_are_enforced
Body that a proxy request sends to the provider | tests/e2e/proxy.rs invalid_proxy_body_is_refused
Any other JSON body | tests/e2e/budget.rs request_limits_are_enforced
Nesting depth of a JSON body | tests/e2e/budget.rs request_limits_are_enforced
Characters in a query parameter | tests/e2e/budget.rs request_limits_are_enforced
Entries of a list in the query | tests/e2e/budget.rs request_limits_are_enforced
Entries of a page | tests/e2e/budget.rs request_limits_are_enforced
Characters in an `Idempotency-Key` | tests/e2e/budget.rs request_limits_are_enforced
Response stored for an `Idempotency-Key` | tests/e2e/budget.rs replayed_response_size_is_limited
Responses stored for one project in a day | tests/e2e/abuse/quotas.rs answers_past_a_projects_quota_are_not_kept
Timeout for the arrival of a body | tests/e2e/budget.rs request_timeouts_are_enforced
Speed at which a body arrives and a response is read, over five seconds | tests/e2e/abuse/edge.rs trickling_body_is_cut
Deadline of an operation | tests/e2e/budget.rs request_timeouts_are_enforced
Timeout of a connection for the next request, or for the whole head of one | tests/e2e/budget.rs request_timeouts_are_enforced
Open connections | tests/e2e/budget.rs connection_limits_are_enforced
Open connections from one address | tests/e2e/budget.rs connection_limits_are_enforced
Concurrent requests | tests/e2e/budget.rs concurrent_request_limits_are_enforced
Concurrent requests of one project | tests/e2e/budget.rs concurrent_request_limits_are_enforced
Arriving bodies from one address | tests/e2e/abuse/edge.rs slow_bodies_hold_no_place
Arriving bodies of one project | tests/e2e/abuse/edge.rs slow_bodies_hold_no_place
Memory of all arriving bodies | tests/e2e/abuse/edge.rs arriving_bodies_share_their_memory
Timeout of a request that waits because of a concurrency limit | tests/e2e/budget.rs concurrent_request_limits_are_enforced
Requests in ten minutes with keys of the organization, and of projects without a rate of their own | tests/e2e/limits.rs organization_rate_limit_gives_retry_after
Requests of one project in ten minutes; without a key half as many in addition, of which one address has a quarter | tests/e2e/limits.rs project_rate_limit_protects_other_projects
Requests with one key in ten minutes | tests/e2e/limits.rs each_key_has_its_own_rate_limit
Keys of a project | tests/e2e/keys.rs names_restrictions_and_number_of_keys_are_checked
Failed authentications from one address in a minute | tests/e2e/limits.rs key_guessing_is_rate_limited
Time that a stopping server waits for running requests | tests/e2e/stopping.rs endless_call_does_not_prevent_stopping
Concurrent executions | tests/e2e/budget.rs concurrent_run_limits_are_enforced
Concurrent executions of one project | tests/e2e/budget.rs concurrent_run_limits_are_enforced
Executions of one project that need much processor time | tests/e2e/sandbox.rs other_projects_are_served_beside_spinning_guests
Executions in the queue | tests/e2e/overload.rs excess_runs_wait_or_are_refused
Executions of one project in the queue | tests/e2e/overload.rs excess_runs_wait_or_are_refused
Timeout of an execution in the queue | host/gate/src/permits.rs key_at_its_limit_waits_then_is_refused
Result in a response | tests/e2e/large_results.rs large_result_is_a_file_with_expiring_link
Memory of all executions | host/sandbox/tests/sandbox.rs memory_is_limited_per_guest_and_node
Scripts of one project that run concurrently in the workbench | tests/e2e/workbench.rs scripts_wait_for_others_for_a_limited_time
Time for which a script waits for others of its project | tests/e2e/workbench.rs scripts_wait_for_others_for_a_limited_time
Time for which a script waits for others of its session, which run sequentially | tests/e2e/workbench.rs scripts_wait_for_others_for_a_limited_time
Processor time of a script of the workbench | tests/e2e/workbench.rs scripts_are_ended_at_their_limits
Time of a script of the workbench, with the tools that it runs | tests/e2e/workbench.rs scripts_are_ended_at_their_limits
Memory of a script of the workbench | tests/e2e/workbench.rs scripts_are_ended_at_their_limits
Memory | tests/e2e/budget.rs run_resource_limits_are_enforced
Processor time | tests/e2e/sandbox.rs each_hostile_guest_is_contained
Wall-clock time | tests/e2e/sandbox.rs each_hostile_guest_is_contained
Host function calls | tests/e2e/budget.rs run_resource_limits_are_enforced
Result | tests/e2e/budget.rs run_resource_limits_are_enforced
Log lines | tests/e2e/budget.rs log_line_limit_is_enforced
Size of all log lines | tests/e2e/sandbox.rs log_flood_is_truncated_with_a_marker
Outgoing requests | tests/e2e/budget.rs run_resource_limits_are_enforced
Body of an outgoing request | tests/e2e/budget.rs run_resource_limits_are_enforced
Body of a response | tests/e2e/budget.rs run_resource_limits_are_enforced
Bodies of all responses | tests/e2e/budget.rs run_resource_limits_are_enforced
Timeout for opening an outgoing connection | host/net/tests/client.rs what_does_not_answer_is_named
Timeout for the headers of a response | host/net/tests/client.rs an_exchange_is_bounded_in_time
Timeout of an outgoing request | host/net/tests/client.rs an_exchange_is_bounded_in_time
Files that an execution creates | host/sandbox/src/files.rs files_are_limited_in_number_and_size
Component | tests/e2e/refused.rs component_just_over_the_limit_is_refused
Functions | tests/e2e/refused.rs compile_bombs_cost_the_server_little
Body of a function | tests/e2e/refused.rs compile_bombs_cost_the_server_little
Module instances | host/sandbox/src/engine/check/tests.rs counts_past_their_limit_are_refused_quickly
Memories | tests/e2e/sandbox.rs each_hostile_guest_is_contained
Tables | host/sandbox/src/engine/check/tests.rs counts_past_their_limit_are_refused_quickly
Elements of a table | host/sandbox/src/schedule/limiter.rs tables_are_bounded_one_by_one_and_together
Processor time for compiling | tests/e2e/refused.rs compile_limits_stop_expensive_components
Wall-clock time for compiling | tests/e2e/refused.rs compile_limits_stop_expensive_components
Memory for compiling | tests/e2e/refused.rs compile_limits_stop_expensive_components
Manifest | toolkit-sdk/manifest/src/problems/tests.rs a_manifest_is_at_most_eight_mebibytes
Tools | toolkit-sdk/manifest/src/problems/tests.rs slugs_are_unique_and_counted
Description | tests/e2e/budget.rs manifest_limits_are_enforced
Schema | tests/e2e/budget.rs manifest_limits_are_enforced
Nesting depth of a schema | tests/e2e/budget.rs manifest_limits_are_enforced
Size of a file | tests/e2e/files.rs file_size_limit_covers_a_whole_call
Concurrent uploads and downloads by links | tests/e2e/abuse/edge.rs one_project_leaves_transfers_to_others
Concurrent uploads and downloads of one project by links | tests/e2e/abuse/edge.rs one_project_leaves_transfers_to_others
Timeout for the upload or download of a file | tests/e2e/abuse/edge.rs one_project_leaves_transfers_to_others
Size of all files of one call | tests/e2e/budget.rs call_file_limits_are_enforced
Number of files of one call | tests/e2e/budget.rs call_file_limits_are_enforced
Characters in a file name | tests/e2e/budget.rs request_limits_are_enforced
Size of all files of one project | tests/e2e/abuse/quotas.rs files_past_a_projects_quota_are_refused
Arguments or result in a record | tests/e2e/log_lists.rs oversized_payloads_are_omitted_from_records
Execution log of one project in a day | tests/e2e/abuse/quotas.rs records_past_a_projects_quota_keep_no_payload
Connected accounts of one project | tests/e2e/abuse/quotas.rs records_of_a_project_are_limited_in_number
Auth configs of one project | tests/e2e/abuse/quotas.rs records_of_a_project_are_limited_in_number
Sessions of one project | tests/e2e/abuse/quotas.rs records_of_a_project_are_limited_in_number
MCP servers of one project | tests/e2e/abuse/quotas.rs records_of_a_project_are_limited_in_number
Instances of MCP servers of one project | tests/e2e/abuse/quotas.rs records_of_a_project_are_limited_in_number
Recipes of one project | tests/e2e/abuse/quotas.rs records_of_a_project_are_limited_in_number
Runs of recipes of one project in a day | tests/e2e/recipes.rs runs_past_a_projects_quota_are_refused
Other records that one project adds in a day, with 512 bytes for each one | tests/e2e/abuse/quotas.rs records_past_a_projects_daily_quota_are_refused
Credentials and lists of tools of an auth config as JSON | tests/e2e/abuse/quotas.rs credentials_and_values_are_limited_in_size
Values of a connected account as JSON | tests/e2e/abuse/quotas.rs credentials_and_values_are_limited_in_size
Time for which an account that was never connected is kept after it has expired or failed | host/app/src/accounts/attempt.rs accounts_never_connected_are_erased
Records that wait to be written | tests/e2e/abuse/quotas.rs records_that_wait_are_bounded_in_bytes
Content of a cassette | tests/e2e/cassettes.rs cassette_is_sealed_bounded_and_respects_log_setting
Time that an account waits for its user to connect it | tests/e2e/oauth.rs late_callback_connects_an_expired_account
Time that a user may take at the provider | tests/e2e/callbacks.rs expired_state_is_rejected
Users in a list of a shared account | tests/e2e/budget.rs request_limits_are_enforced
Lease for refreshing a token | tests/e2e/refresh.rs interrupted_refresh_is_tried_once_more
Configuration of a session as JSON | tests/e2e/tool_router_sessions.rs unusable_configurations_are_refused
Accounts of one toolkit that a session pins | tests/e2e/tool_router_sessions.rs unusable_configurations_are_refused
Versions of a session's configuration | tests/e2e/tool_router_sessions.rs history_keeps_a_hundred_versions
Tools of the client in a request to a session | tests/e2e/tool_router_sessions.rs attach_repeats_tools_of_the_client
Page of the tools of an MCP endpoint | tests/e2e/mcp_endpoints.rs lists_over_two_mebibytes_have_pages
Result of a tool for an MCP client | tests/e2e/mcp_messages.rs large_results_are_a_beginning_and_a_file
Messages of a batch at an MCP endpoint | tests/e2e/mcp_messages.rs batches_of_their_version_are_answered
Resources on a page of an MCP endpoint | tests/e2e/mcp_resources.rs long_lists_of_files_have_pages
Size of a resource that an MCP client reads | tests/e2e/mcp_resources.rs other_and_large_files_are_refused
Characters in the name of an assistant that registers | tests/e2e/mcp_oauth.rs registration_is_checked
Redirect URIs of an assistant that registers, together | tests/e2e/mcp_oauth.rs registration_is_checked
Form in which a member gives an assistant access | tests/e2e/mcp_oauth.rs large_requests_are_refused
Request of an assistant for tokens | tests/e2e/mcp_oauth.rs large_requests_are_refused
Validity of the authorization code of an assistant | host/app/src/agents/mcp_oauth/consent/tests.rs codes_end_after_their_validity
Validity of the access token of an assistant | host/app/src/agents/mcp_oauth/consent/tests.rs access_tokens_end_after_their_validity
Validity of the refresh token of an assistant | host/app/src/agents/mcp_oauth/consent/tests.rs refresh_tokens_end_after_their_validity
Time in which a refresh token of an assistant gives the same tokens again | tests/e2e/mcp_oauth.rs refresh_token_used_twice_gives_the_same_tokens
Use cases of a search for tools in a session | tests/e2e/tool_search.rs too_many_use_cases_or_slugs_are_refused
Characters in a use case of a search for tools | tests/e2e/tool_search.rs failed_use_case_leaves_others_answered
Characters in the known fields of a use case | tests/e2e/tool_search.rs failed_use_case_leaves_others_answered
Input schemas in the result of a search for tools | tests/e2e/tool_search.rs result_has_schemas_up_to_a_size
Tools of a request for schemas in a session | tests/e2e/tool_search.rs too_many_use_cases_or_slugs_are_refused
Toolkits of a call that manages the connections of a session | tests/e2e/manage_connections.rs toolkits_are_connected_by_links
Calls of one project that wait for connections on one server | tests/e2e/wait_for_connections.rs connection_made_meanwhile_ends_waits
Time that a call waits for connections | tests/e2e/wait_for_connections.rs wait_ends_at_its_time_limit
Calls of a parallel execution in a session | tests/e2e/tool_router_execution.rs multi_execute_keeps_order_and_partial_failures
Data of a call of a parallel execution in a session | tests/e2e/tool_router_execution.rs multi_execute_keeps_order_and_partial_failures
Time of the calls of a parallel execution in a session | tests/e2e/multi_execute.rs hanging_call_withholds_no_other_result
Files of a session | tests/e2e/mounts.rs number_of_files_is_limited
Size of all files of a session that are stored | tests/e2e/mounts.rs size_of_all_files_is_limited
Length of the path of a file of a session | tests/e2e/mounts.rs paths_outside_the_mount_are_refused
Approvals of tools that a session remembers | host/app/src/agents/sessions.rs oldest_approval_is_forgotten
Recipes of one user | tests/e2e/recipes.rs recipes_past_the_limit_are_refused
Versions of a recipe | tests/e2e/recipes/versions.rs older_versions_of_recipe_are_kept
Recipe as JSON | tests/e2e/recipes.rs wrong_recipe_is_refused_with_reasons
Characters in the slug of a recipe | tests/e2e/recipes.rs wrong_recipe_is_refused_with_reasons
Steps of a recipe | tests/e2e/recipes.rs wrong_recipe_is_refused_with_reasons
Depth of groups of steps in a recipe | tests/e2e/recipes.rs wrong_recipe_is_refused_with_reasons
Items of a loop of a recipe | tests/e2e/recipes.rs runs_past_a_limit_fail
Items of all loops of a run of a recipe | tests/e2e/recipes.rs runs_past_a_limit_fail
Calls of tools in a run of a recipe | tests/e2e/recipes.rs runs_past_a_limit_fail
Data of all steps of a run of a recipe | tests/e2e/recipes.rs runs_past_a_limit_fail
Runs of recipes of one project that have not ended | tests/e2e/recipes.rs runs_past_the_limit_are_refused
Trigger instances of one project | tests/e2e/trigger_instances.rs instances_past_the_limit_are_refused
Configuration of a trigger instance as JSON | tests/e2e/trigger_instances.rs upsert_refuses_unusable_accounts_and_configurations
Interval between two polls of a trigger instance | tests/e2e/trigger_instances.rs upsert_refuses_unusable_accounts_and_configurations
Characters in a cron expression | tests/e2e/polling.rs cron_expression_sets_the_next_poll
Polls that follow one another without an interval | tests/e2e/polling.rs polls_without_interval_are_limited
Events of one poll | tests/e2e/polling.rs poll_past_a_limit_stores_nothing
Cursor and state that a poll leaves, as base64 | tests/e2e/polling.rs poll_past_a_limit_stores_nothing
Events that a trigger instance remembers | host/app/src/events/triggers/seen.rs newest_events_are_remembered
Payloads of the events of one project in a day, with 1 KiB for each event | tests/e2e/abuse/quotas.rs events_past_a_projects_quota_are_refused
Events that are read for one page of the log of triggers | tests/e2e/trigger_logs.rs pages_have_every_entry_once
Payloads and responses of endpoints on one page of the log of triggers | tests/e2e/trigger_logs.rs large_payloads_end_a_page_early
Events that a read of a trigger instance shows | host/app/src/events/triggers/recent.rs newest_ten_events_are_kept
Actions of one project that wait or run | tests/e2e/trigger_actions.rs actions_past_the_limit_fail
Arguments of an action as JSON | tests/e2e/trigger_actions.rs action_that_may_not_run_is_refused
Values of an event in the arguments of an action | host/app/src/core/mapping/tests.rs filled_values_are_limited
Attempts of an action | host/app/src/events/triggers/actions/running.rs attempts_and_delays_are_bounded
Time in which every poll, or every attempt to subscribe at a provider, has failed | tests/e2e/polling.rs instance_that_only_fails_is_disabled
Attempts to end a subscription at a provider | tests/e2e/webhook_subscribing.rs end_is_tried_five_times
Timeout of a call that waits for a token | tests/e2e/renewals.rs slow_refresh_returns_retry_after
Characters in a prompt | tests/e2e/budget.rs prompt_limits_are_enforced
Timeout for making arguments | tests/e2e/budget.rs prompt_limits_are_enforced
Tokens of a completion | tests/e2e/budget.rs prompt_limits_are_enforced
Concurrent prompts | tests/e2e/budget.rs prompt_limits_are_enforced
Concurrent prompts of one project | tests/e2e/abuse/quotas.rs one_project_cannot_hold_the_whole_model
Webhook subscriptions of one project | tests/e2e/webhooks.rs second_subscription_is_refused
Webhook endpoints of one project | tests/e2e/webhook_endpoints.rs endpoints_of_a_project_are_limited
Characters in the client id of a webhook endpoint | tests/e2e/webhook_endpoints.rs unusable_endpoints_are_not_created
Value of a webhook endpoint | tests/e2e/webhook_endpoints.rs unusable_values_change_nothing
Body of a webhook of a provider | tests/e2e/webhook_ingress.rs unusable_requests_are_refused
Webhooks of providers to one address in a minute | tests/e2e/webhook_ingress.rs rate_of_an_address_is_limited
Time in which trigger instances receive a webhook of a provider | tests/e2e/webhook_ingress.rs failed_reception_is_to_be_repeated
Events of one webhook of a provider for one trigger instance | tests/e2e/webhook_ingress.rs failed_reception_is_to_be_repeated
Characters of a handshake that are returned to a provider | host/app/src/events/ingress.rs only_short_plain_texts_are_returned
Characters in the URL of a webhook | tests/e2e/webhooks.rs urls_that_must_not_be_reached_are_refused
Attempts of a delivery after the first | tests/e2e/webhooks.rs last_failure_ends_a_delivery
Timeout of an attempt | tests/e2e/webhooks.rs failed_message_is_retried_until_accepted
Time that an endpoint may ask to wait in `Retry-After` | tests/e2e/webhooks.rs endpoint_may_ask_to_wait
Size of an endpoint's response that is read | tests/e2e/webhooks.rs large_response_is_cut_and_dripping_one_ends
Size of an endpoint's response that is kept | tests/e2e/webhooks.rs large_response_is_cut_and_dripping_one_ends
Attempts of a delivery that are kept | host/app/src/events/delivery.rs oldest_attempts_are_left_out
Events in the range of a replay | tests/e2e/webhooks.rs replay_of_too_many_events_is_refused
Concurrent deliveries | tests/e2e/webhooks.rs concurrency_limits_of_deliveries_hold
Concurrent messages to one endpoint | tests/e2e/webhooks.rs concurrency_limits_of_deliveries_hold
Time for which an endpoint may accept nothing | tests/e2e/webhooks.rs endpoint_that_keeps_failing_is_disabled";

/// Returns the rows of [`TESTS_OF_ROWS`] with their tests.
fn tests_of_rows() -> Vec<(&'static str, &'static str)> {
    let lines = TESTS_OF_ROWS.lines();
    lines.map(|line| line.split_once(" | ").unwrap()).collect()
}

/// Settings in groups of limits that do not limit requests of clients.
const NO_LIMITS: [&str; 16] = [
    "sandbox.allocator",
    "sandbox.cancel_on_disconnect",
    "sandbox.threads",
    "sandbox.resident_mib",
    "logs.wait",
    "logs.buffer",
    "logs.keep_days",
    "logs.keep_count",
    "logs.cassettes",
    "files.keep_days",
    "connections.refresh_margin_s",
    "connections.idle_refresh_s",
    "llm.base_url",
    "llm.model",
    "llm.key",
    "llm.headers",
];

/// First section whose rows name their tests themselves.
const NAMED_TESTS_HEADING: &str = "## Shared among projects";

/// Returns the first cells of the page's rows, before [`NAMED_TESTS_HEADING`].
fn listed(page: &str) -> Vec<&str> {
    let (page, _) = page.split_once(NAMED_TESTS_HEADING).unwrap();
    let rows = page
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| Limit |"));
    rows.filter_map(|line| line.split(" | ").next()?.strip_prefix("| "))
        .collect()
}

#[test]
fn documented_limits_and_tests_match() {
    let rows = tests_of_rows();
    let driven: Vec<_> = rows.iter().map(|(row, _)| *row).collect();
    assert_eq!(
        listed(&page()),
        driven,
        "a row of the page, in its order, has a row here"
    );
    assert_eq!(
        driven.iter().collect::<BTreeSet<_>>().len(),
        driven.len(),
        "a name stands once"
    );
    let page = page();
    let (_, shared) = page.split_once(NAMED_TESTS_HEADING).unwrap();
    let (shared, _) = shared.split_once("\n## Records of one project").unwrap();
    let bounds = shared
        .lines()
        .filter_map(|line| Some((line, line.strip_suffix("` |")?.rsplit_once("| `")?.1)));
    for (row, test) in rows.into_iter().chain(bounds) {
        let (file, name) = test.split_once(' ').unwrap();
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file))
            .unwrap();
        assert!(
            text.contains(&format!("fn {name}()")),
            "{row}: there is no test `{name}` in {file}"
        );
    }
}

#[tokio::test]
async fn limits_page_matches_the_server() {
    let setup = Setup::embedded();
    let (page, printed) = (page(), setup.command(&["limits"]).succeeded());
    assert_eq!(
        printed, page,
        "the limits have changed: `toolhost limits > docs/limits.md`, and drive what is new here"
    );
    let help = setup.command(&["serve", "--help"]).succeeded();
    let settings = help
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    let groups = [
        "limits.",
        "sandbox.",
        "logs.",
        "files.",
        "connections.",
        "events.",
        "llm.",
    ];
    let ours: Vec<_> = settings
        .filter(|key| groups.iter().any(|group| key.starts_with(group)))
        .collect();
    assert!(ours.len() > 30, "{ours:?}");
    for key in ours.into_iter().filter(|key| !NO_LIMITS.contains(key)) {
        assert!(page.contains(&format!("| `{key}` |")), "`{key}` has no row");
    }
}

/// A request of a given size.
struct Ask {
    method: Method,
    path: String,
    body: Body,
    key: Option<String>,
}

/// A limit of requests: a request of any size, and the expected responses at the limit and just
/// over it.
struct Case {
    row: &'static str,
    most: usize,
    passes: u16,
    refused: (u16, &'static str),
    ask: Box<dyn Fn(usize) -> Ask>,
}

fn get(path: String) -> Ask {
    Ask {
        method: Method::GET,
        path,
        body: Body::None,
        key: None,
    }
}

fn post(path: &str, body: String) -> Ask {
    Ask {
        method: Method::POST,
        path: path.to_owned(),
        body: Body::Raw("application/json", body.into_bytes()),
        key: None,
    }
}

/// Returns JSON text of `bytes` bytes, with `…` replaced by filler.
fn filled(text: &str, bytes: usize) -> String {
    text.replace('…', &"x".repeat(bytes + '…'.len_utf8() - text.len()))
}

#[rustfmt::skip]
fn cases(slug: &str, tool: &str, config: String) -> Vec<Case> {
    let case = |row, most, passes, status, slug, ask: Box<dyn Fn(usize) -> Ask>| Case { row, most, passes, refused: (status, slug), ask };
    let (run, file) = (format!("/tools/execute/{tool}"), format!(r#""toolkit_slug":"{slug}","tool_slug":"{tool}""#));
    let nothing = r#""toolkit":{"slug":"nothing"}"#;
    vec![
        case("Request line", 8 << 10, 200, 414, "HTTP_UriTooLong",
            Box::new(|n| get(format!("/toolkits?x={}", "x".repeat(n - "GET /api/v3/toolkits?x= HTTP/1.1".len()))))),
        case("JSON body of an execution", 4 << 20, 200, 413, "HTTP_PayloadTooLarge",
            Box::new(move |n| post(&run, filled(r#"{"version":"latest","arguments":{"a":"…"}}"#, n)))),
        case("JSON body of a proxy request", 6 << 20, 400, 413, "HTTP_PayloadTooLarge",
            Box::new(|n| post("/tools/execute/proxy", filled(r#"{"endpoint":"/x","method":"GET","a":"…"}"#, n)))),
        case("Any other JSON body", 1 << 20, 404, 413, "HTTP_PayloadTooLarge",
            Box::new(move |n| post("/auth_configs", filled(&format!(r#"{{{nothing},"a":"…"}}"#), n)))),
        case("Nesting depth of a JSON body", 64, 404, 400, "Request_Invalid",
            Box::new(move |n| post("/auth_configs", format!(r#"{{{nothing},"a":{}{}}}"#, "[".repeat(n - 1), "]".repeat(n - 1))))),
        case("Characters in a query parameter", 256, 200, 400, "Request_Invalid",
            Box::new(|n| get(format!("/toolkits?search={}", "x".repeat(n))))),
        case("Entries of a list in the query", 1_000, 200, 400, "Request_Invalid",
            Box::new(|n| get(format!("/connected_accounts?user_ids={}", "x,".repeat(n))))),
        case("Entries of a page", 1_000, 200, 400, "Request_CursorInvalid",
            Box::new(|n| get(format!("/toolkits?cursor={}", BASE64.encode(format!("1-{n}")))))),
        case("Characters in an `Idempotency-Key`", 255, 404, 400, "Request_Invalid",
            Box::new(move |n| Ask { key: Some("k".repeat(n)), ..post("/auth_configs", format!("{{{nothing}}}")) })),
        case("Characters in a file name", 255, 200, 400, "Request_Invalid",
            Box::new(move |n| post("/files/upload/request", format!(
                r#"{{{file},"filename":"{}","mimetype":"text/plain","md5":"{}"}}"#, "n".repeat(n), "0".repeat(32))))),
        case("Users in a list of a shared account", 1_000, 201, 400, "Request_Invalid",
            Box::new(move |n| post("/connected_accounts/link", format!(
                r#"{{"auth_config_id":"{config}","user_id":"amy","experimental":{{"account_type":"SHARED",
                "acl_config_for_shared":{{"allowed_user_ids":["x"{}]}}}}}}"#, r#","x""#.repeat(n - 1))))),
    ]
}

async fn send(client: &Client, ask: Ask) -> Answer {
    let headers: Vec<_> = ask
        .key
        .iter()
        .map(|key| ("idempotency-key", key.as_str()))
        .collect();
    client.send(ask.method, &ask.path, ask.body, &headers).await
}

#[track_caller]
pub(crate) fn assert_refused(row: &str, answer: &Answer, status: u16, slug: &str) {
    assert_eq!(
        (answer.status, &answer["error"]["slug"]),
        (status, &slug.into()),
        "{row}: {answer:#?}"
    );
    answer.assert_envelope();
    let retried = matches!(status, 429 | 503);
    assert_eq!(
        retried,
        !answer.header("retry-after").is_empty(),
        "{row}: {answer:#?}"
    );
}

#[tokio::test]
async fn request_limits_are_enforced() {
    let project = Host::shared().await.new_project().await;
    let tool = given::shared_echo().await;
    let slug = tool.trim_end_matches("_RUN").to_lowercase();
    for Case {
        row,
        most,
        passes,
        refused: (status, slug),
        ask,
    } in cases(&slug, tool, given::auth_config(&project).await)
    {
        let at = send(&project, ask(most)).await;
        assert_eq!(
            at.status,
            passes,
            "{row}: {}",
            &at.text[..at.text.len().min(500)]
        );
        assert_refused(row, &send(&project, ask(most + 1)).await, status, slug);
    }
}

/// Builds a request with `headers` headers of `bytes` bytes in total. The server counts names,
/// values and four bytes per header.
fn head(key: &str, headers: usize, bytes: usize) -> Vec<u8> {
    let own = [
        ("host", "localhost"),
        ("connection", "close"),
        ("x-api-key", key),
    ];
    let mut lines: Vec<_> = own
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    lines.extend((lines.len()..headers - 1).map(|number| format!("x-{number:03}: x\r\n")));
    let used: usize = lines.iter().map(String::len).sum();
    lines.push(format!(
        "x-fill: {}\r\n",
        "x".repeat(bytes - used - "x-fill: \r\n".len())
    ));
    format!("GET /api/v3/toolkits HTTP/1.1\r\n{}\r\n", lines.concat()).into_bytes()
}

#[tokio::test]
async fn request_head_limits_are_enforced() {
    let project = Host::shared().await.new_project().await;
    for (headers, bytes, passes) in [
        (5, 16 << 10, true),
        (5, (16 << 10) + 1, false),
        (100, 4 << 10, true),
        (101, 4 << 10, false),
    ] {
        let answer = project.raw(&head(project.key(), headers, bytes)).await;
        let expected = if passes {
            "HTTP/1.1 200"
        } else {
            "HTTP/1.1 431"
        };
        assert!(
            answer.starts_with(expected),
            "{headers} headers, {bytes} bytes: {}",
            &answer[..answer.len().min(300)]
        );
        // A head with more headers is not read.
        let is_read_and_refused = !passes && headers <= 100;
        assert_eq!(answer.contains("HTTP_HeadersTooLarge"), is_read_and_refused);
    }
}

#[tokio::test]
async fn replayed_response_size_is_limited() {
    let project = Host::shared().await.new_project().await;
    let path = format!("/tools/execute/{}", given::shared_echo().await);
    let ask = async |key: &str, filler: usize| {
        let body =
            Body::Json(json!({ "version": "latest", "arguments": { "a": "x".repeat(filler) } }));
        project
            .send(Method::POST, &path, body, &[("idempotency-key", key)])
            .await
    };
    let (first, second, third) = (unique(8), unique(8), unique(8));
    let rest = ask(&first, 0).await.expect(200).text.len();
    let most = (1 << 20) - rest;
    let answer = ask(&second, most).await.expect(200);
    assert_eq!(answer.text.len(), 1 << 20);
    let again = ask(&second, most).await.expect(200);
    assert_eq!(
        (again.header("idempotency-replayed"), &again.text),
        ("true", &answer.text)
    );
    ask(&third, most + 1).await.expect(200);
    let gone = ask(&third, most + 1).await;
    assert_eq!(
        (gone.status, &gone["error"]["slug"]),
        (409, &"Idempotency_AnswerGone".into()),
        "{gone:#?}"
    );
}

/// Connects to the server from the address `127.0.0.{last}`.
pub(crate) async fn from(host: &Host, last: u8) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, last], 0).into()).unwrap();
    socket
        .connect(host.url.trim_start_matches("http://").parse().unwrap())
        .await
        .unwrap()
}

/// Connects to the server from the address `127.0.0.{last}` and sends this text.
pub(crate) async fn sent_from(host: &Host, last: u8, text: &str) -> TcpStream {
    let mut socket = from(host, last).await;
    socket.write_all(text.as_bytes()).await.unwrap();
    socket
}

/// Opens a connection and sends a request whose body remains incomplete.
pub(crate) async fn unfinished(host: &Host, key: &str, path: &str) -> TcpStream {
    let request = format!(
        "POST /api/v3{path} HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\ncontent-type: application/json\r\n\
         content-length: 1000\r\n\r\n{{"
    );
    sent_from(host, 1, &request).await
}

/// Reads until the server closes the connection.
pub(crate) async fn to_the_end(mut socket: TcpStream) -> String {
    let mut answer = Vec::new();
    let read = socket.read_to_end(&mut answer);
    // Closing a connection with unread bytes resets it. The response has arrived nevertheless.
    tokio::time::timeout(harness::CONDITION_TIMEOUT, read)
        .await
        .expect("the server closes the connection")
        .ok();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn request_timeouts_are_enforced() {
    let host = Setup::new()
        .with("limits.body_s", "2")
        .with("limits.deadline_s", "1")
        .with("limits.idle_s", "2")
        .start()
        .await;
    let project = host.as_project();
    wait_until("a request is answered in time", async || {
        project.get("/auth/session/info").await.status == 200
    })
    .await;
    // A run has only the deadlines of its body and of the sandbox.
    let body = unfinished(&host, project.key(), "/tools/execute/NOTHING").await;
    let operation = unfinished(&host, project.key(), "/auth_configs").await;
    let head = "GET /api/v3/toolkits HTTP/1.1\r\nhost: x\r\nx-filler: ";
    let sockets = [
        body,
        operation,
        sent_from(&host, 1, head).await,
        from(&host, 1).await,
        sent_from(&host, 1, LIVE_REQUEST).await,
    ];
    let ends = futures::future::join_all(sockets.map(to_the_end)).await;
    let [body, operation, head, silent, used] = <[String; 5]>::try_from(ends).unwrap();
    assert!(used.starts_with("HTTP/1.1 200"), "{used}");
    assert!(
        body.starts_with("HTTP/1.1 408") && body.contains("HTTP_RequestTimeout"),
        "{body}"
    );
    assert!(
        operation.starts_with("HTTP/1.1 503") && operation.contains("Server_DeadlineExceeded"),
        "{operation}"
    );
    assert!(operation.contains("retry-after: 1"), "{operation}");
    for none in [head, silent] {
        assert!(
            none.is_empty() || none.starts_with("HTTP/1.1 408"),
            "{none}"
        );
    }
}

const LIVE_REQUEST: &str = "GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n";

/// Returns true if a connection is served. The connection stays open.
async fn is_served(socket: &mut TcpStream) -> bool {
    let mut answer = Vec::new();
    if socket.write_all(LIVE_REQUEST.as_bytes()).await.is_err() {
        return false;
    }
    // The body of the response is an object.
    while !answer.ends_with(b"}") {
        let Ok(byte) = socket.read_u8().await else {
            return false;
        };
        answer.push(byte);
    }
    answer.starts_with(b"HTTP/1.1 200")
}

#[tokio::test]
async fn connection_limits_are_enforced() {
    let host = Setup::new()
        .with("limits.connections", "3")
        .with("limits.connections_per_address", "2")
        .start()
        .await;
    let (mut first, mut second) = (from(&host, 2).await, from(&host, 2).await);
    assert!(is_served(&mut first).await && is_served(&mut second).await);
    assert!(
        !is_served(&mut from(&host, 2).await).await,
        "a third one is closed"
    );
    let mut of_another = from(&host, 3).await;
    assert!(
        is_served(&mut of_another).await,
        "another address has its own"
    );
    let mut waiting = from(&host, 4).await;
    let served = is_served(&mut waiting);
    tokio::pin!(served);
    // Without the limit, it would be served no later than these.
    for _ in 0..20 {
        assert!(futures::poll!(served.as_mut()).is_pending());
        assert!(is_served(&mut first).await);
    }
    drop(of_another);
    assert!(served.await, "one that ends makes place for one that waits");
}

async fn is_busy(client: &Client) -> bool {
    client.get("/auth/session/info").await.status == 429
}

#[tokio::test]
async fn concurrent_request_limits_are_enforced() {
    let host = Setup::new()
        .with("limits.in_flight", "8")
        .with("limits.in_flight_per_project", "2")
        .with("limits.in_flight_wait_ms", "1")
        .start()
        .await;
    let (one, other, third) = (
        host.new_project().await,
        host.new_project().await,
        host.as_project(),
    );
    let sleeps = sleeper(&host, 250_000).await;
    let mut held = JoinSet::new();
    let mut hold = |project: &Client| {
        let (project, sleeps) = (project.clone(), sleeps.clone());
        held.spawn(async move { sleeping(&project, &sleeps).await });
    };
    hold(&one);
    one.get("/auth/session/info").await.expect(200);
    hold(&one);
    wait_until("the project has two requests under way", || is_busy(&one)).await;
    assert_refused(
        "of a project",
        &one.get("/auth/session/info").await,
        429,
        "Server_ProjectBusy",
    );
    for _ in 0..2 {
        hold(&other);
    }
    wait_until("the other one, too", || is_busy(&other)).await;
    third.get("/auth/session/info").await.expect(200);
    hold(&third);
    wait_until("five are under way", async || {
        third.get("/auth/session/info").await.status == 503
    })
    .await;
    assert_refused(
        "of all",
        &third.get("/auth/session/info").await,
        503,
        "Server_Busy",
    );
    drop(held);
    wait_until("the places are free again", async || {
        one.get("/auth/session/info").await.status == 200
    })
    .await;
}

/// Publishes a tool that sleeps for `millis` milliseconds.
pub(crate) async fn sleeper(host: &Host, millis: u32) -> String {
    let execute = format!("(call $sleep (i32.const {millis})) {ANSWER_ARGUMENTS}");
    let guest = Guest {
        imports: imports::SLEEP,
        execute: &execute,
        ..Guest::default()
    };
    let mut manifest = guest::manifest(&given::slug());
    manifest["limits"] = json!({ "wall_ms": 300_000 });
    host.publish(guest.component(), &manifest).await;
    guest::tool(manifest["slug"].as_str().unwrap())
}

/// Runs a sleeping tool. A refused run is repeated.
pub(crate) async fn sleeping(project: &Client, tool: &str) -> Answer {
    loop {
        let answer = project.execute(tool, json!({})).await;
        if !matches!(answer.status, 429 | 503) {
            return answer;
        }
    }
}

#[tokio::test]
async fn concurrent_run_limits_are_enforced() {
    let host = Setup::new()
        .with("sandbox.live", "2")
        .with("sandbox.live_per_project", "1")
        .with("sandbox.queue", "0")
        .with("sandbox.queue_per_project", "0")
        .start()
        .await;
    let echo = given::echo(&host).await;
    let sleeps = sleeper(&host, 250_000).await;
    let projects = [
        host.new_project().await,
        host.new_project().await,
        host.new_project().await,
    ];
    let run = |project: &Client| {
        let (project, echo) = (project.clone(), echo.clone());
        async move { project.execute(&echo, json!({})).await }
    };
    let one = sleeping(&projects[0], &sleeps);
    let other = sleeping(&projects[1], &sleeps);
    let asked = async {
        wait_until("one project runs its one", async || {
            run(&projects[0]).await.status == 429
        })
        .await;
        assert_refused(
            "of a project",
            &run(&projects[0]).await,
            429,
            "Server_ProjectBusy",
        );
    };
    tokio::pin!(one);
    tokio::select! {
        ended = &mut one => panic!("it sleeps: {ended:#?}"),
        () = asked => {}
    }
    // One of two runs is active, so another project may run one.
    tokio::select! {
        ended = &mut one => panic!("it sleeps: {ended:#?}"),
        ran = run(&projects[2]) => drop(ran.data()),
    }
    let asked = async {
        wait_until("both places are taken", async || {
            run(&projects[2]).await.status == 503
        })
        .await;
        assert_refused("of all", &run(&projects[2]).await, 503, "Server_Busy");
    };
    tokio::select! {
        ended = &mut one => panic!("it sleeps: {ended:#?}"),
        ended = other => panic!("it sleeps: {ended:#?}"),
        () = asked => {}
    }
}

/// WebAssembly text shared by the guests of these tests.
const READ_COUNT: &str = "(local.set $i (call $number (local.get $args) (local.get $args_len)))";
const ANSWER_ARGUMENTS: &str = "(call $ok (local.get $args) (local.get $args_len))";
const COUNT_DOWN: &str =
    "(local.set $i (i32.sub (local.get $i) (i32.const 1))) (br_if $again (local.get $i))";

/// A tool that consumes a resource to the extent given by the number in its arguments.
struct Greedy {
    tool: String,
}

impl Greedy {
    /// Publishes the tool. `execute` finds the number in `$i`; `items` adds definitions that it
    /// needs.
    async fn new(imports: &str, items: &str, execute: &str) -> Self {
        let (items, execute) = (
            format!("{}{items}", guest::PARSE_NUMBER),
            format!("{READ_COUNT} {execute}"),
        );
        Self::of(&Guest {
            imports,
            items: &items,
            execute: &execute,
            ..Guest::default()
        })
        .await
    }

    async fn of(guest: &Guest<'_>) -> Self {
        let mut manifest = guest::manifest(&given::slug());
        manifest["egress"] = json!([{ "host": "api.example.com" }]);
        manifest["limits"] = json!({ "cpu_ms": 30_000 });
        Host::shared()
            .await
            .publish(guest.component(), &manifest)
            .await;
        Self {
            tool: guest::tool(manifest["slug"].as_str().unwrap()),
        }
    }

    async fn run(&self, project: &Client, number: usize) -> Answer {
        project.execute(&self.tool, json!({ "n": number })).await
    }
}

/// Returns a data segment with this text, in which only quotes need escaping.
fn data(at: u32, text: &str) -> String {
    format!(r#"(data (i32.const {at}) "{}")"#, text.replace('"', "\\22"))
}

/// Publishes a tool that sends requests to this address. The number is the count of requests, or
/// the size of the body if `with_body` is set.
async fn sender(address: &str, with_body: bool) -> Greedy {
    let items = [data(2048, "POST"), data(2064, address)].concat();
    let (length, refused) = (
        address.len(),
        "(if (i32.load8_u (i32.const 1280)) (then (return (call $fail
            (i32.load (i32.const 1284)) (i32.load (i32.const 1288)) (i32.load (i32.const 1292)) (i32.load (i32.const 1296))))))",
    );
    let send = |content: &str| {
        format!(
            "(call $send (i32.const 2048) (i32.const 4) (i32.const 2064) (i32.const {length}) (i32.const 0) (i32.const 0)
                {content} (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 1280)) {refused}"
        )
    };
    let execute = if with_body {
        let content = "(i32.const 1) (i32.const 0) (local.get $j) (local.get $i)";
        format!(
            "(local.set $j (call $realloc (i32.const 0) (i32.const 0) (i32.const 1) (local.get $i))) {} {ANSWER_ARGUMENTS}",
            send(content)
        )
    } else {
        // Each response overwrites the previous one, so the guest does not keep any.
        let nothing = "(i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)";
        format!(
            "(local.set $j (global.get $top))
            (loop $again (global.set $top (local.get $j)) {} {COUNT_DOWN}) {ANSWER_ARGUMENTS}",
            send(nothing)
        )
    };
    Greedy::new(imports::SEND, &items, &execute).await
}

#[tokio::test]
async fn run_resource_limits_are_enforced() {
    let project = Host::shared().await.new_project().await;
    let grow = "(if (i32.eq (i32.const -1) (memory.grow (i32.sub (local.get $i) (memory.size)))) (then unreachable))";
    let memory = Greedy::new("", "", &format!("{grow} {ANSWER_ARGUMENTS}")).await;
    let calls = format!("(loop $again (drop (call $now)) {COUNT_DOWN}) {ANSWER_ARGUMENTS}");
    let calls = Greedy::new(imports::NOW, "", &calls).await;
    let result = Greedy::of(&Guest::filler()).await;
    let requests = sender("https://api.example.com/echo/budget", false).await;
    let body = sender("https://api.example.com/status/budget/200", true).await;
    // The provider adds 13 bytes to the requested size.
    let answers = sender(
        &format!("https://api.example.com/big/budget/{}", (8 << 20) - 13),
        false,
    )
    .await;
    let answer = sender(
        &format!("https://api.example.com/big/budget/{}", (10 << 20) - 13),
        false,
    )
    .await;
    let larger = sender(
        &format!("https://api.example.com/big/budget/{}", (10 << 20) - 12),
        false,
    )
    .await;
    for (row, at, over, kind) in [
        (
            "Memory",
            (&memory, 1024),
            (&memory, 1025),
            "tool_memory_limit",
        ),
        (
            "Host function calls",
            (&calls, 10_000),
            (&calls, 10_001),
            "tool_host_call_limit",
        ),
        (
            "Result",
            (&result, MAX_RESULT_BYTES),
            (&result, MAX_RESULT_BYTES + 1),
            "tool_output_too_large",
        ),
        (
            "Outgoing requests",
            (&requests, 50),
            (&requests, 51),
            "limit",
        ),
        (
            "Body of an outgoing request",
            (&body, 4 << 20),
            (&body, (4 << 20) + 1),
            "too_large",
        ),
        (
            "Body of a response",
            (&answer, 1),
            (&larger, 1),
            "too_large",
        ),
        (
            "Bodies of all responses",
            (&answers, 4),
            (&answers, 5),
            "limit",
        ),
    ] {
        let ran = at.0.run(&project, at.1).await.expect(200);
        assert_eq!(
            ran["successful"],
            true,
            "{row}: {}",
            &ran.text[..ran.text.len().min(500)]
        );
        let ran = over.0.run(&project, over.1).await.expect(200);
        assert_eq!(
            ran.failure(),
            kind,
            "{row}: {}",
            &ran.text[..ran.text.len().min(500)]
        );
    }
}

/// Size limit of a tool's result, in bytes.
const MAX_RESULT_BYTES: usize = 16 << 20;

#[tokio::test]
async fn log_line_limit_is_enforced() {
    let project = Host::shared().await.new_project().await;
    let write = format!(
        "(loop $again (call $log (i32.const 1) (i32.const 2048) (i32.const 1)) {COUNT_DOWN}) {ANSWER_ARGUMENTS}"
    );
    let writes = Greedy::new(imports::LOG, &data(2048, "x"), &write).await;
    for (lines, kept, last) in [
        (1_000, 1_000, "x"),
        (1_001, 1_001, "dropped"),
        (2_000, 1_001, "dropped"),
    ] {
        let ran = writes.run(&project, lines).await.expect(200);
        let log = project.log(&ran["log_id"]).await["data"]["log"]
            .as_array()
            .unwrap()
            .clone();
        assert_eq!(log.len(), kept);
        assert!(
            log[kept - 1]["message"].as_str().unwrap().contains(last),
            "{}",
            log[kept - 1]
        );
    }
}

/// Returns a manifest whose input schema has `bytes` bytes of JSON.
fn schema(bytes: usize) -> Value {
    let with = |text: String| json!({ "type": "object", "description": text });
    with("x".repeat(bytes - with(String::new()).to_string().len()))
}

/// Returns a schema with `levels` levels.
fn nested(levels: usize) -> Value {
    (1..levels).fold(
        json!({ "type": "object" }),
        |inner, _| json!({ "type": "object", "properties": { "a": inner } }),
    )
}

#[tokio::test]
async fn manifest_limits_are_enforced() {
    let host = Host::shared().await;
    let component = Guest::echo().component();
    let publish = async |change: (&str, Value)| {
        let mut manifest = guest::manifest(&given::slug());
        manifest["tools"][0][change.0] = change.1;
        host.as_org()
            .put(
                &guest::address(&manifest),
                guest::with_manifest(component.clone(), &manifest),
            )
            .await
    };
    for (row, at, over) in [
        (
            "Description",
            ("description", json!("x".repeat(4096))),
            ("description", json!("x".repeat(4097))),
        ),
        (
            "Schema",
            ("input", schema(64 << 10)),
            ("input", schema((64 << 10) + 1)),
        ),
        (
            "Nesting depth of a schema",
            ("input", nested(16)),
            ("input", nested(17)),
        ),
    ] {
        let made = publish(at).await;
        assert_eq!(made.status, 201, "{row}: {made:#?}");
        assert_refused(row, &publish(over).await, 400, "Toolkit_ComponentInvalid");
    }
}

#[tokio::test]
async fn call_file_limits_are_enforced() {
    let host = Setup::new().with("files.size_mib", "1").start().await;
    let project = host.as_project();
    let slug = given::slug();
    let mut manifest = guest::manifest(&slug);
    let file = json!({ "type": "object", "file_uploadable": true });
    manifest["tools"][0]["input"] =
        json!({ "type": "object", "properties": { "files": { "type": "array", "items": file } } });
    host.publish(Guest::echo().component(), &manifest).await;
    let tool = guest::tool(&slug);
    let run = async |keys: Vec<String>| {
        let files: Vec<_> = keys
            .iter()
            .map(|key| json!({ "name": "n", "mimetype": "text/plain", "s3key": key }))
            .collect();
        project.execute(&tool, json!({ "files": files })).await
    };
    // The number of files is checked before the files are looked up.
    let keys = |count: usize| {
        (0..count)
            .map(|number| format!("file_{number:012}"))
            .collect::<Vec<_>>()
    };
    let at = run(keys(32)).await;
    assert_eq!(
        (at.status, &at["error"]["slug"]),
        (404, &"File_NotFound".into()),
        "{at:#?}"
    );
    assert_refused(
        "Number of files of one call",
        &run(keys(33)).await,
        400,
        "ActionExecute_ArgumentsInvalid",
    );

    let upload = async |bytes: Vec<u8>| {
        use md5::{Digest, Md5};
        let digest = hex::encode(Md5::digest(&bytes));
        let body = json!({
            "toolkit_slug": slug, "tool_slug": tool, "filename": "n", "mimetype": "text/plain", "md5": digest,
        });
        let asked = project
            .post("/files/upload/request", &body)
            .await
            .expect(200);
        let url = asked["new_presigned_url"].as_str().unwrap().to_owned();
        assert_eq!(
            project.exchange(Method::PUT, &url, &[], bytes).await.status,
            200
        );
        asked["key"].as_str().unwrap().to_owned()
    };
    let half = upload(vec![1; 512 << 10]).await;
    let other_half = upload(vec![2; 512 << 10]).await;
    let more = upload(vec![3; (512 << 10) + 1]).await;
    run(vec![half.clone(), other_half]).await.data();
    assert_refused(
        "Size of all files of one call",
        &run(vec![half, more]).await,
        400,
        "ActionExecute_ArgumentsInvalid",
    );
}

#[tokio::test]
async fn prompt_limits_are_enforced() {
    let tag = unique(8);
    let host = Setup::new()
        .with(
            "llm.base_url",
            format!("{}/hang/{tag}", Host::application().origin),
        )
        .with("llm.model", "small-one")
        .with("llm.timeout_s", "1")
        .with("llm.max_tokens", "77")
        .with("llm.at_once", "1")
        .start()
        .await;
    let project = host.as_project().with_newer_prefix();
    let path = format!("/tools/execute/{}", given::echo(&host).await);
    let say = |characters: usize| {
        let (project, path) = (project.clone(), path.clone());
        async move {
            project
                .post(&path, &json!({ "text": "é".repeat(characters) }))
                .await
        }
    };
    assert_refused(
        "Characters in a prompt",
        &say(16_385).await,
        400,
        "Request_Invalid",
    );
    let late = say(16_384).await;
    assert_refused(
        "Timeout for making arguments",
        &late,
        502,
        "ActionExecute_ModelFailed",
    );
    let asked: Value = serde_json::from_slice(&Host::application().seen(&tag)[0].body).unwrap();
    assert_eq!(asked["max_tokens"], 77);
    let at_once = futures::future::join_all((0..3).map(|_| say(3))).await;
    let statuses: Vec<_> = at_once.iter().map(|answer| answer.status).collect();
    assert_eq!(
        statuses.iter().filter(|status| **status == 502).count(),
        1,
        "{statuses:?}"
    );
    for busy in at_once.iter().filter(|answer| answer.status != 502) {
        assert_refused("Concurrent prompts", busy, 503, "Server_Busy");
    }
}
