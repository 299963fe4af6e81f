//! Tests of every guarantee of the API, over HTTP.
//!
//! One file per resource, then one per cross-cutting guarantee: refusals at publishing, containment
//! of hostile guests, destinations of credentials, isolation of projects, and survival of killed
//! processes and damaged data directories.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on ends where it stands"
)]

mod description;
mod given;
mod hostile;

mod account_events;
mod auth_configs;
mod bash_tool;
mod changes;
mod clients;
mod connected_accounts;
mod connecting;
mod files;
mod keys;
mod link;
mod logs;
mod mcp_changes;
mod mcp_conformance;
mod mcp_connecting;
mod mcp_endpoints;
mod mcp_oauth;
mod mcp_pinning;
mod mcp_resources;
mod mcp_servers;
mod members;
mod mounts;
mod oauth;
mod polling;
mod project_config;
mod projects;
mod prompts;
mod provider;
mod proxy;
mod recipes;
mod session;
mod tool_router_execution;
mod tool_router_scope;
mod tool_router_sessions;
mod tool_search;
mod toolkits;
mod tools;
mod trigger_actions;
mod trigger_instances;
mod trigger_logs;
mod triggers_types;
mod usage;
mod webhook_deliveries;
mod webhook_endpoints;
mod webhook_ingress;

mod abi;
mod abuse;
mod approvals;
mod blobs;
mod branding;
mod browser;
mod budget;
mod callbacks;
mod cancellation;
mod cassettes;
mod catalogue;
mod certificates;
mod contract;
mod coverage;
mod crash;
mod credentials;
mod damage;
mod database;
mod dev;
mod disk;
mod distribution;
mod doctor;
mod documents;
mod elsewhere;
mod event_stream;
mod events_command;
mod examples;
mod faults;
mod generated;
mod home;
mod hostile_answers;
mod idempotency;
mod imports;
mod instructions;
mod isolation;
mod jobs;
mod kept;
mod languages;
mod large_results;
mod legacy;
mod limits;
mod log_lists;
mod manage_connections;
mod manual;
mod metrics;
mod moving;
mod multi_execute;
mod nodes;
mod operator_log;
mod overload;
mod packaging;
mod proxies;
mod refresh;
mod refused;
mod renewals;
mod rotation;
mod sandbox;
mod schemes;
mod seals;
mod secrets;
mod settings;
mod shares;
mod sharing;
mod signing;
mod sink;
mod stopping;
mod telemetry;
mod unknown;
mod wait_for_connections;
mod walks;
mod ways_out;
mod webhook_ordering;
mod webhook_replays;
mod webhook_signatures;
mod webhook_subscribing;
mod webhooks;
mod workbench;
