//! The least that a fresh instance for each call costs: a page of axum and wasmtime with the engine of
//! the server, compared with the bare handler and with the server.

use std::{num::NonZeroUsize, sync::Arc};

use anyhow::{Context as _, Result};
use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::IntoResponse,
    routing::post,
};
use contract::toolhost::toolkit::types::{Context, ToolError};
use serde::Deserialize;
use serde_json::value::RawValue;
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store,
    WasmFeatures,
    component::{Component, ComponentExportIndex, InstancePre, Linker},
};

use crate::{
    Bench, LIVE_CALLS, ROUND_DURATION,
    bare::{Bare, this_program},
    call, echo, echo_component,
    load::Target,
    peers::ensure_text,
    report::{Line, Verdict},
    serving_echo, setup, small,
};

mod contract {
    wasmtime::component::bindgen!({ path: "../toolkit-sdk/wit/v1", world: "toolkit" });
}

/// Hidden argument that makes this program the page.
pub(crate) const PAGE_ARGUMENT: &str = "floor-page";
const CONNECTION_COUNTS: [usize; 3] = [1, 8, 64];
const ENTRY_INTERFACE: &str = "toolhost:toolkit/entry@1.0.0";
/// Memory of unused slots together, in bytes: half of the default of `sandbox.memory_mib`.
const WARM_BYTES: u32 = 512 << 20;

type Parameters<'a> = (&'a str, &'a [u8], &'a Context);
type Returned = (Result<Vec<u8>, ToolError>,);

impl Bench {
    /// Measures a small call on the bare handler, on the page and on the server.
    pub(crate) async fn floor(&mut self) -> Result<()> {
        let host = serving_echo(setup()).await?;
        let page = Bare::run(this_program(PAGE_ARGUMENT)?)?;
        let body = call(&small());
        let bare = self.bare(&body)?;
        let floor = Target::post(&page.url, "/call", &[], &body, page.pid())?;
        let server = echo(&host, &small())?;
        for target in [&floor, &server] {
            ensure_text(target).await?;
            target.times(8, 5_000).await?;
        }
        for connections in CONNECTION_COUNTS {
            let sides = [&bare, &floor, &server].map(|target| vec![target.clone(); connections]);
            let [bare, floor, server] = self.best_rounds(&sides, ROUND_DURATION).await?;
            let floor_ratio = floor.per_second / bare.per_second;
            let server_ratio = server.per_second / floor.per_second;
            for (what, round, ratio) in [
                ("bare axum, parse and echo", bare, None),
                (
                    "axum, a fresh instance",
                    floor,
                    Some(("of bare axum", floor_ratio)),
                ),
                (
                    "execute: key, schema, sandbox, log",
                    server,
                    Some(("of the floor", server_ratio)),
                ),
            ] {
                let line = Line::new("floor", what, connections, &round);
                self.tell(Line {
                    result: ratio.map(|(name, value)| Verdict::at_least(name, value, None::<f64>)),
                    ..line
                });
            }
        }
        Ok(())
    }
}

/// A component whose imports are resolved, and its function.
struct Floor {
    engine: Engine,
    component: InstancePre<()>,
    execute: ComponentExportIndex,
}

/// Body of a call; the page ignores other fields.
#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    arguments: &'a RawValue,
}

/// Returns the page, which calls the echo tool in a fresh instance for each request. It checks no key
/// and no schema, limits nothing and writes no log.
pub(crate) fn page() -> Result<Router> {
    let engine = engine()?;
    let component = Component::new(&engine, echo_component()?)?;
    let mut linker = Linker::new(&engine);
    linker.define_unknown_imports_as_traps(&component)?;
    let entry = component.get_export_index(None, ENTRY_INTERFACE);
    let entry = entry.context("the component is no toolkit")?;
    let execute = component.get_export_index(Some(&entry), "execute");
    let floor = Floor {
        component: linker.instantiate_pre(&component)?,
        execute: execute.context("the component has no tools")?,
        engine,
    };
    let router = Router::new().route("/call", post(respond));
    Ok(router.with_state(Arc::new(floor)))
}

async fn respond(
    State(floor): State<Arc<Floor>>,
    body: Bytes,
) -> Result<impl IntoResponse, (StatusCode, String)> {
    let call = serde_json::from_slice::<Call<'_>>(&body);
    let call = call.map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    let result = floor.execute(call.arguments.get().as_bytes()).await;
    let json = result.map_err(|error| (StatusCode::BAD_GATEWAY, error.to_string()))?;
    Ok(([(CONTENT_TYPE, "application/json")], json))
}

impl Floor {
    async fn execute(&self, arguments: &[u8]) -> wasmtime::Result<Vec<u8>> {
        let mut store = Store::new(&self.engine, ());
        // Compiled code compares the epoch, as on the server. Here it never changes.
        store.set_epoch_deadline(1);
        let instance = self.component.instantiate_async(&mut store).await?;
        let execute =
            instance.get_typed_func::<Parameters<'_>, Returned>(&mut store, self.execute)?;
        let context = Context {
            run_id: "log_000000000000".to_owned(),
            user_id: "default".to_owned(),
            fields: Vec::new(),
            remaining_ms: 30_000,
        };
        let parameters = ("ECHO_SAY", arguments, &context);
        let (result,) = execute.call_async(&mut store, parameters).await?;
        result.map_err(|error| wasmtime::format_err!("{}", error.message))
    }
}

/// Starts an engine with the settings of the server for [`LIVE_CALLS`], as
/// `host/sandbox/src/engine/runtime.rs` computes them. The program may not use that crate.
fn engine() -> wasmtime::Result<Engine> {
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get) as u32;
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    let scan = swaps.lines().count() == 1 && PoolingAllocationConfig::is_pagemap_scan_available();
    let least = if scan { 128 << 10 } else { 512 << 10 };
    let warm = (2 * LIVE_CALLS * processors).min(4_096);
    let warm = warm.min(WARM_BYTES / least);
    let keep = (WARM_BYTES / warm).clamp(least, if scan { 2 << 20 } else { least });
    let mut config = config();
    let pool = pool(warm, keep as usize, scan);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Engine::new(&config)
}

fn pool(warm: u32, keep: usize, scan: bool) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(LIVE_CALLS)
        .total_core_instances(LIVE_CALLS * 32)
        .total_memories(LIVE_CALLS + LIVE_CALLS / 4 + 4 + warm)
        .total_tables(LIVE_CALLS * 4 + 20)
        .total_stacks(LIVE_CALLS)
        .max_core_instances_per_component(32)
        .max_memories_per_component(4)
        .max_tables_per_component(20)
        .max_memories_per_module(1)
        .max_tables_per_module(4)
        .max_memory_size(256 << 20)
        .table_elements(20_000)
        .max_unused_warm_slots(warm)
        .linear_memory_keep_resident(keep)
        .table_keep_resident(64 << 10)
        .async_stack_keep_resident(16 << 10)
        .pagemap_scan(if scan { Enabled::Auto } else { Enabled::No });
    pool
}

fn config() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .max_wasm_stack(512 << 10)
        .async_stack_size(1 << 20)
        .async_stack_zeroing(true)
        .concurrency_support(false)
        .memory_reservation(4 << 30)
        .memory_guard_size(32 << 20)
        .guard_before_linear_memory(true)
        .memory_init_cow(true)
        .wasm_backtrace_max_frames(NonZeroUsize::new(16))
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .wasm_relaxed_simd(false)
        .wasm_tail_call(false)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false)
        .gc_support(false);
    let absent = WasmFeatures::THREADS
        | WasmFeatures::SHARED_EVERYTHING_THREADS
        | WasmFeatures::GC
        | WasmFeatures::FUNCTION_REFERENCES
        | WasmFeatures::EXCEPTIONS
        | WasmFeatures::LEGACY_EXCEPTIONS
        | WasmFeatures::STACK_SWITCHING
        | WasmFeatures::MEMORY_CONTROL
        | WasmFeatures::CM_ASYNC
        | WasmFeatures::CM_THREADING
        | WasmFeatures::CM_ERROR_CONTEXT
        | WasmFeatures::CM_GC;
    config.wasm_features(absent, false);
    config
}
