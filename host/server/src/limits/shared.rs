//! Capacity that projects share, with the numbers of each.

use std::fmt::Display;

use app::{
    accounts,
    agents::recipes,
    core::large_work,
    events::{self, sending, triggers},
    files,
    runs::prompt,
};
use gate::Shares;
use http::limiter;
use settings::{IN_FLIGHT_WAIT, Limits, QUEUE_TIMEOUT, Sandbox};

use super::{size, time};

const SHARED_SECTION: &str = "
## Shared among projects

A project gets its *base* whenever that much is free. It gets more only while the *reserve* stays free, and never more than *of one
project*. Example, requests: one project alone gets 384; while it holds them, eight others get 16 each from the reserve of 128. Two that
grow together get 192 each. Where *all* follows from a setting, the base is a part of *all*, at least 1: 1/32 for requests and executions,
1/16 for transfers, deliveries, prompts and memory (at least 64 MiB), 1/128 for streams. The reserve is eight bases, at most half of *all*.
*Of one project* is three quarters of the requests and executions, half of the memory, the transfers and the prompts, or a quarter of the
streams.
A project that is refused while no other holds anything is at its own number.

| Capacity | All | Reserve | Base | Of one project | Past the limit | Test |
|---|---|---|---|---|---|---|
";

/// Test of the rule, for capacity that requests of a project cannot fill at will.
const QUEUE_TEST: &str = "host/gate/src/permits.rs waiting_newcomer_is_served_before_larger_keys";

/// Refusal of requests for which no capacity is free.
const BUSY_RESPONSE: &str =
    "503 `Server_Busy`, or 429 `Server_ProjectBusy` for a project at its own number";

fn number(number: u64) -> String {
    number.to_string()
}

/// Returns a row of the table.
fn row(
    name: &str,
    shares: Shares,
    amount: fn(u64) -> String,
    past: impl Display,
    test: &str,
) -> String {
    let [all, reserve, base, cap] =
        [shares.total, shares.reserve, shares.base, shares.cap].map(amount);
    format!("| {name} | {all} | {reserve} | {base} | {cap} | {past} | `{test}` |\n")
}

/// Returns the effect of exceeding capacity for which requests wait.
fn wait(time: &str) -> String {
    format!("after {time} {BUSY_RESPONSE}")
}

/// Adds the section to the page.
pub(super) fn write(page: &mut String) {
    page.push_str(SHARED_SECTION);
    page.extend(rows());
}

#[rustfmt::skip]
fn rows() -> Vec<String> {
    let (limits, sandbox) = (Limits::default(), Sandbox::default());
    let requests_wait = format!("{} ms", IN_FLIGHT_WAIT.as_millis());
    let address_busy = "503 `Server_Busy`; 429 `Server_ProjectBusy` for a project at its own number, and 429 `Server_AddressBusy` for such an address";
    let stays = "the others wait in the store";
    vec![
        row("Requests (`limits.in_flight`)", limiter::request_shares(&limits), number, wait(&requests_wait), "tests/e2e/shares.rs newcomer_calls_while_others_hold_all"),
        row("Requests without a key, in addition to those; of one address a quarter of those of one project", limiter::stranger_shares(&limits), number, wait(&requests_wait), "host/http/src/limiter/mod.rs strangers_take_no_permit_of_keys"),
        row("Memory of arriving bodies (a quarter of `sandbox.memory_mib`)", limiter::body_shares(&sandbox), size, address_busy, "tests/e2e/abuse/edge.rs arriving_bodies_share_their_memory"),
        row("Memory of bodies that arrive without a key, in addition to that, by address", limiter::stranger_body_shares(&sandbox), size, address_busy, "host/http/src/limiter/arrivals.rs arriving_bodies_are_bounded_by_number_and_bytes"),
        row("Streams of events and of MCP announcements (twice `limits.in_flight`)", limiter::stream_shares(&limits), number, BUSY_RESPONSE, "tests/e2e/shares.rs newcomer_calls_while_others_hold_all"),
        row("Streams without a key, in addition to those; of one address a quarter of those of one project", limiter::stranger_stream_shares(&limits), number, address_busy, "host/http/src/limiter/streams.rs streams_are_limited_and_released"),
        row("Executions (`sandbox.live`)", sandbox::call_shares(sandbox.live, sandbox.live_per_project()), number, wait(&time(QUEUE_TIMEOUT)), "tests/e2e/shares.rs newcomer_calls_while_others_hold_all"),
        row("Memory of executions, their files, bodies and messages, of shell commands and of transfers (`sandbox.memory_mib`)", sandbox::memory_shares(sandbox.memory_bytes()), size, format!("memory does not grow, and a tool that cannot continue fails with `tool_memory_busy`; a new execution gets {BUSY_RESPONSE}"), "tests/e2e/shares.rs scripts_leave_memory_to_other_projects"),
        row("Uploads and downloads by links (a 32nd of `sandbox.live`)", files::transfer_shares(sandbox.transfers(), sandbox.transfers_per_project()), number, wait("30 s"), "tests/e2e/shares/transfers.rs newcomer_uploads_while_others_hold_all"),
        row("Large results of tools that are checked and stored", files::LARGE_RESULT_SHARES, number, format!("after {} the execution fails with `file_not_kept`", time(files::MAX_LARGE_RESULT_WAIT)), QUEUE_TEST),
        row("Pages of lists that are built", limiter::PAGE_SHARES, number, wait(&time(limiter::MAX_PAGE_WAIT)), QUEUE_TEST),
        row("Larger bodies that are parsed, checked or hashed", large_work::LARGE_BODY_SHARES, number, "further bodies wait", "host/app/src/core/large_work/tests.rs large_bodies_wait_for_their_project"),
        row("Prompts (a 32nd of `sandbox.live`)", prompt::prompt_shares(sandbox.prompts(), sandbox.prompts_per_project()), number, BUSY_RESPONSE, "tests/e2e/abuse/quotas.rs one_project_cannot_hold_the_whole_model"),
        row("Shell commands", workbench::COMMAND_SHARES, number, wait(&time(workbench::MAX_COMMAND_WAIT)), "tests/e2e/shares.rs newcomer_runs_shell_while_others_hold_all"),
        row("Lookups of host names, each on its own thread; of one registered domain as of one project", net::LOOKUP_SHARES, number, "further lookups wait", "host/net/src/lookup.rs newcomer_is_found_while_tenants_hold_all"),
        row("Host names that wait for a lookup; of one registered domain as of one project", net::WAITING_LOOKUP_SHARES, number, "the request fails with an error of kind `dns`", "host/net/src/lookup.rs newcomer_is_found_while_tenants_hold_all"),
        row("Deliveries (half of `sandbox.live`)", sending::delivery_shares(sandbox.deliveries()), number, stays, "tests/e2e/shares/due_work.rs newcomers_event_is_delivered_while_others_hold_all"),
        row("Polls", triggers::POLL_SHARES, number, stays, "tests/e2e/shares/due_work.rs newcomer_is_polled_while_others_hold_all"),
        row("Actions", triggers::actions::ACTION_SHARES, number, stays, "tests/e2e/shares/due_work.rs newcomers_action_runs_while_others_hold_all"),
        row("Subscriptions at providers", triggers::SUBSCRIPTION_SHARES, number, stays, "tests/e2e/shares/due_work.rs newcomer_subscribes_while_others_hold_all"),
        row("Runs of recipes", recipes::RUN_SHARES, number, stays, "tests/e2e/shares/due_work.rs newcomers_recipe_runs_while_others_hold_all"),
        row("Refreshes of tokens of idle accounts", accounts::IDLE_REFRESH_SHARES, number, stays, "tests/e2e/shares/due_work.rs newcomers_token_is_refreshed_while_others_hold_all"),
        row("Messages for the sink", events::SINK_SHARES, number, stays, QUEUE_TEST),
    ]
}
