//! Settings of earlier versions, which have no effect. A warning names them for one version, so that
//! a start does not fail.

use manifest::is_same;

/// Key and replacement of each removed setting.
#[rustfmt::skip]
const REMOVED_SETTINGS: &[(&str, &str)] = &[
    ("plain", "set the environment variable NO_COLOR instead"),
    ("sandbox.live_per_project", "it is now three quarters of `sandbox.live`"),
    ("sandbox.busy_per_project", "it is now fixed at 8"),
    ("sandbox.queue", "it is now a quarter of `sandbox.live`"),
    ("sandbox.queue_per_project", "it is now a 32nd of `sandbox.live`"),
    ("sandbox.queue_wait_ms", "it is now fixed at 2 s"),
    ("sandbox.cancel_on_disconnect", "it is now always true: send an `Idempotency-Key` with calls that must go on"),
    ("sandbox.threads", "it is now one per core"),
    ("sandbox.resident_mib", "it is now `sandbox.memory_mib`"),
    ("sandbox.compile_wall_s", "it is now twice `sandbox.compile_cpu_s`"),
    ("sandbox.compile_memory_mib", "it is now twice `sandbox.memory_mib`"),
    ("limits.execute_body_kib", "it is now fixed at 4 MiB"),
    ("limits.body_kib", "it is now fixed at 1 MiB"),
    ("limits.in_flight_per_project", "it is now three quarters of `limits.in_flight`"),
    ("limits.in_flight_wait_ms", "it is now fixed at 250 ms"),
    ("limits.body_s", "it is now two thirds of `limits.deadline_s`"),
    ("limits.bodies_per_address", "it is now fixed at 128"),
    ("limits.bodies_per_project", "it is now fixed at 64"),
    ("limits.bodies_mib", "it is now a quarter of `sandbox.memory_mib`"),
    ("limits.rate", "it is now twice `limits.rate_per_project`, by default no limit"),
    ("limits.webhook_rate", "it is now two fifths of `limits.rate_per_project`, or 4000 if that is 0"),
    ("limits.connections_per_address", "it is now a sixteenth of `limits.connections`"),
    ("limits.answers_mib", "it is now an eighth of `limits.records_mib`"),
    ("limits.auth_configs_per_project", "it is now fixed at 1000"),
    ("limits.sessions_per_project", "it is now half of `limits.accounts_per_project`"),
    ("limits.mcp_servers_per_project", "it is now fixed at 1000"),
    ("limits.mcp_instances_per_project", "it is now `limits.accounts_per_project`"),
    ("limits.recipes_per_project", "it is now a twentieth of `limits.accounts_per_project`"),
    ("limits.recipe_runs_mib", "it is now half of `limits.records_mib`"),
    ("logs.buffer", "it is now fixed at 4096"),
    ("logs.payload_kib", "it is now fixed at 64 KiB"),
    ("logs.keep_count", "executions are now erased by `logs.keep_days` alone"),
    ("logs.cassette_kib", "it is now fixed at 256 KiB"),
    ("logs.buffer_mib", "it is now a quarter of `sandbox.memory_mib`"),
    ("logs.quota_mib", "it is now `limits.records_mib`"),
    ("telemetry.service_name", "it is now fixed at `toolhost`"),
    ("telemetry.metrics_interval_s", "it is now fixed at 60 s"),
    ("files.transfers", "it is now a 32nd of `sandbox.live`"),
    ("files.transfers_per_project", "it is now a 64th of `sandbox.live`"),
    ("connections.away_s", "it is now six times `connections.pending_s`, at most an hour"),
    ("connections.refresh_margin_s", "it is now fixed at 300 s"),
    ("connections.refresh_lease_s", "it is now three times `limits.deadline_s`"),
    ("connections.refresh_wait_s", "it is now two thirds of `limits.deadline_s`"),
    ("events.quota_mib", "it is now half of `limits.records_mib`"),
    ("webhooks.loopback_http", "`net.allow` now permits `http` URLs of loopback addresses"),
    ("webhooks.concurrency", "it is now half of `sandbox.live`"),
    ("webhooks.concurrency_per_endpoint", "it is now fixed at 16"),
    ("webhooks.pause_s", "it is now three times `webhooks.timeout_s`"),
    ("webhooks.disable_after_s", "it is now `events.disable_after_s`"),
    ("webhooks.replay_events", "it is now a twentieth of `limits.accounts_per_project`"),
    ("sink.events", "the sink now gets every kind of event: select by subject"),
    ("triggers.max_per_project", "it is now a tenth of `limits.accounts_per_project`"),
    ("triggers.disable_after_s", "it is now `events.disable_after_s`"),
    ("triggers.pending_actions", "it is now a twentieth of `limits.accounts_per_project`"),
    ("mcp.output_schemas", "it is now always by version"),
    ("sessions.multi_execute_s", "it is now `workbench.time_s`"),
    ("workbench.cpu_s", "it is now a third of `workbench.time_s`, at most 60 s"),
    ("workbench.memory_mib", "it is now fixed at 256 MiB"),
    ("workbench.scripts_per_project", "it is now fixed at 4"),
    ("llm.max_tokens", "it is now fixed at 2048"),
    ("llm.at_once", "it is now a 32nd of `sandbox.live`"),
    ("llm.at_once_per_project", "it is now a 64th of `sandbox.live`"),
];

/// Returns the key of the removed setting from which a key differs at most in its separators, and what
/// holds instead of the setting.
pub(super) fn similar(key: &str) -> Option<(&'static str, &'static str)> {
    let mut settings = REMOVED_SETTINGS.iter();
    let found = settings.find(|(removed, _)| is_same(removed, key));
    found.copied()
}

/// Returns what holds instead of a removed setting; `None` if no setting had this key.
pub(super) fn replacement(key: &str) -> Option<&'static str> {
    let mut settings = REMOVED_SETTINGS.iter();
    let (_, replacement) = settings.find(|(removed, _)| *removed == key)?;
    Some(replacement)
}
