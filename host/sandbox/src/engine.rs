//! How WebAssembly runs here: every setting with its reason.
//!
//! One engine for the process. The compile child makes its engine from the same [`config`], without an allocator; the
//! allocator is not part of what compiled code depends on.

use std::{fmt::Write as _, hash::Hash, num::NonZeroUsize};

use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Result, WasmFeatures,
    component::Linker,
};

use crate::{Allocator, Settings, abi, host, limits::Limits, state::State};

/// Core instances, memories and tables that one component may bring to life. Components of interpreters need some; a
/// component that needs more is an attack.
pub const CORE_INSTANCES: u32 = 32;
/// See [`CORE_INSTANCES`].
pub const MEMORIES: u32 = 4;
/// See [`CORE_INSTANCES`].
pub const TABLES: u32 = 20;
/// Elements of one table.
pub const TABLE_ELEMENTS: usize = 20_000;

/// What wasm code may use of the native stack.
const WASM_STACK: usize = 512 << 10;
/// The whole stack of a guest; the rest is for host functions.
const ASYNC_STACK: usize = 1 << 20;
/// Address space for each memory. With 4 GiB and a guard behind it, 32-bit addresses need no bounds checks, which is a
/// third of the time of data-heavy guests. It is address space only.
const MEMORY_RESERVATION: u64 = 4 << 30;
const MEMORY_GUARD: u64 = 32 << 20;

/// Memory kept in a slot for its next guest, when only the pages that were written have to be cleared.
const KEEP_WITH_SCAN: usize = 2 << 20;
/// The same when all of it has to be cleared: guests made with the SDK are smaller than this.
const KEEP_WITHOUT_SCAN: usize = 512 << 10;
/// Table bytes kept in a slot.
const KEEP_TABLE: usize = 64 << 10;
/// Bytes of stack cleared in place; what a guest used beyond goes back to the kernel.
const KEEP_STACK: usize = 32 << 10;

/// The engine and what is built once with it.
pub(crate) struct Runtime {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<State>,
    /// Names the compiler and its settings; part of the name of a compiled component.
    pub(crate) hash: String,
    /// The allocator in use.
    pub(crate) allocator: Allocator,
}

impl Runtime {
    /// Starts the engine with the allocator that the settings name, or on demand when there is no room for a pool.
    pub(crate) fn start(settings: &Settings) -> Result<Self> {
        let (engine, allocator) = match settings.allocator {
            Allocator::OnDemand => (Engine::new(&config())?, Allocator::OnDemand),
            Allocator::Pooling => match pooled(settings.live) {
                Ok(engine) => (engine, Allocator::Pooling),
                Err(cause) => {
                    tracing::warn!(%cause, "no address space for a pool of guests: memory is taken on demand, calls are slower");
                    (Engine::new(&config())?, Allocator::OnDemand)
                }
            },
        };
        let mut linker = Linker::new(&engine);
        abi::v1::add_to_linker(&mut linker)?;
        host::wasi::add_to_linker(&mut linker)?;
        Ok(Self { hash: hash(&engine), engine, linker, allocator })
    }
}

/// Everything but the allocator.
pub(crate) fn config() -> Config {
    let mut config = Config::new();
    config
        // Processor time is bounded by ticks that compiled code looks at; fuel would cost three times as much.
        .epoch_interruption(true)
        .max_wasm_stack(WASM_STACK)
        .async_stack_size(ASYNC_STACK)
        // The next guest on this stack may be another tenant's.
        .async_stack_zeroing(true)
        // No concurrent tasks inside one guest: a guest that waits is a parked stack.
        .concurrency_support(false)
        .memory_reservation(MEMORY_RESERVATION)
        .memory_guard_size(MEMORY_GUARD)
        // A sign error in an address lands in a guard, too.
        .guard_before_linear_memory(true)
        // Data segments are mapped, not copied.
        .memory_init_cow(true)
        // For the log, never for clients.
        .wasm_backtrace_max_frames(NonZeroUsize::new(16))
        // The compile child is limited to one thread's worth of memory.
        .parallel_compilation(false);
    features(&mut config);
    config
}

/// Turns off what no supported toolchain emits. Each is code in the engine that a guest could attack.
///
/// What stays on is what compilers for Rust, C, JavaScript and Python guests emit: bulk memory, sign extension, mutable
/// globals, reference types, multi-value, fixed-width SIMD, extended constants.
fn features(config: &mut Config) {
    config
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
}

fn pooled(live: usize) -> Result<Engine> {
    let live = u32::try_from(live)?.max(1);
    let scan = may_scan_pages();
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(live)
        // Counters, not memory: no guest is refused because its neighbours are complicated.
        .total_core_instances(live.saturating_mul(CORE_INSTANCES))
        // Nearly every component has one memory and two tables.
        .total_memories(live + live / 4 + MEMORIES)
        .total_tables(live.saturating_mul(4) + TABLES)
        .total_stacks(live)
        .max_core_instances_per_component(CORE_INSTANCES)
        .max_memories_per_component(MEMORIES)
        .max_tables_per_component(TABLES)
        .max_memories_per_module(1)
        .max_tables_per_module(4)
        .max_memory_size(usize::try_from(Limits::CEILING.memory)?)
        .table_elements(TABLE_ELEMENTS)
        // As many warm slots as there are busy toolkits on a node: a slot that held the same component is quickest.
        .max_unused_warm_slots(live.min(128))
        .linear_memory_keep_resident(if scan { KEEP_WITH_SCAN } else { KEEP_WITHOUT_SCAN })
        .table_keep_resident(KEEP_TABLE)
        .async_stack_keep_resident(KEEP_STACK)
        .pagemap_scan(if scan { Enabled::Auto } else { Enabled::No });
    let mut config = config();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Engine::new(&config)
}

/// Whether the kernel may be asked which pages were written. A page that was swapped out would not be reported, and the
/// next guest in the slot could read it; so only where nothing can be swapped.
fn may_scan_pages() -> bool {
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_else(|_| "unknown\nunknown".to_owned());
    let none = swaps.lines().count() <= 1;
    if none {
        tracing::info!(
            "no swap on this node: written pages are found by asking the kernel. Do not add swap while running"
        );
    } else {
        tracing::info!("this node can swap: memory of guests is cleared as a whole. Calls are faster without swap");
    }
    none
}

/// A name for everything that compiled code depends on.
fn hash(engine: &Engine) -> String {
    struct Fnv(u64);
    impl std::hash::Hasher for Fnv {
        fn finish(&self) -> u64 {
            self.0
        }
        fn write(&mut self, bytes: &[u8]) {
            for byte in bytes {
                self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
    let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
    engine.precompile_compatibility_hash().hash(&mut hasher);
    let mut text = String::new();
    let _ = write!(text, "{:016x}", hasher.0);
    text
}
