//! WebAssembly engine settings, each with its reason.
//!
//! The process has one engine. The compile child builds its engine from the same [`config`],
//! without an allocator, because compiled code does not depend on the allocator.

use std::{
    hash::{Hash, Hasher},
    num::NonZeroUsize,
};

use fnv::FnvHasher;
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Result,
    WasmFeatures, component::Linker,
};

use crate::{
    Allocator, Settings,
    limits::{Limits, MAX_CORE_INSTANCES, MAX_MEMORIES, MAX_TABLE_ELEMENTS, MAX_TABLES},
    toolkit::{State, abi, imports},
};

/// Native stack available to WebAssembly code, in bytes.
const WASM_STACK: usize = 512 << 10;
/// Total stack size of a guest, in bytes. The part beyond [`WASM_STACK`] is for host functions.
const ASYNC_STACK: usize = 1 << 20;
/// Address space reserved for each memory, in bytes. With 4 GiB and a guard region after it, 32-bit
/// addresses need no bounds checks. That saves a third of the time of data-heavy guests and uses
/// address space only.
const MEMORY_RESERVATION: u64 = 4 << 30;
const MEMORY_GUARD: u64 = 32 << 20;

/// Unused slots that keep the component of their last guest, for each live guest and processor. A
/// slot that held the same component is the fastest, and each processor has slots of its own.
const WARM_SLOTS: u32 = 2;
/// Maximum number of such slots. Each takes several of the mappings that a process may have.
const MAX_WARM_SLOTS: u32 = 4_096;
/// Part of the node's memory for guests that unused slots may keep, as a divisor.
const KEEP_DIVISOR: u64 = 2;
/// Maximum memory kept in a slot for its next guest if only the written pages have to be cleared,
/// in bytes.
const MAX_KEEP_WITH_SCAN: u64 = 2 << 20;
/// Minimum memory kept in a slot, in bytes. A small guest writes less.
const MIN_KEEP_WITH_SCAN: u64 = 128 << 10;
/// Memory kept in a slot for its next guest if all of it has to be cleared, in bytes. Guests built
/// with the SDK are smaller.
const KEEP_WITHOUT_SCAN: u64 = 512 << 10;
/// Table memory kept in a slot, in bytes.
const KEEP_TABLE: usize = 64 << 10;
/// Stack memory cleared in place, in bytes. Guests use a few KiB, because the host sends their requests
/// on other stacks. Memory that a guest used beyond it returns to the kernel.
const KEEP_STACK: usize = 16 << 10;
/// Stacks and memories whose pages are given back to the kernel in one system call.
const DECOMMIT_BATCH: usize = 16;
/// Extensions that compiled code does without. Guests gain nothing measurable from them, and a file
/// compiled on one processor stays valid on another that lacks them. Programs that count
/// instructions do not know them either.
#[cfg(target_arch = "x86_64")]
const UNUSED_EXTENSIONS: [&str; 7] = [
    "has_avx_vnni",
    "has_avx512bitalg",
    "has_avx512dq",
    "has_avx512f",
    "has_avx512vbmi",
    "has_avx512vl",
    "has_avx512vnni",
];

/// Engine and the objects that are built once with it.
pub(crate) struct Runtime {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<State>,
    /// Hash of the compiler and its settings; part of the file name of a compiled component.
    pub(crate) hash: String,
    /// Allocator in use.
    pub(crate) allocator: Allocator,
}

impl Runtime {
    /// Starts the engine with the configured allocator, or on demand if the address space is too
    /// small for a pool.
    pub(crate) fn start(settings: &Settings) -> Result<Self> {
        let (engine, allocator) = match settings.allocator {
            Allocator::OnDemand => (Engine::new(&config())?, Allocator::OnDemand),
            Allocator::Pooling => match pooled(settings) {
                Ok(engine) => (engine, Allocator::Pooling),
                Err(cause) => {
                    tracing::warn!(%cause, "no address space for a pool of guests: memory is taken on demand, calls are slower");
                    (Engine::new(&config())?, Allocator::OnDemand)
                }
            },
        };
        let mut linker = Linker::new(&engine);
        abi::v1::add_to_linker(&mut linker)?;
        imports::wasi::add_to_linker(&mut linker)?;
        Ok(Self {
            hash: hash(&engine),
            engine,
            linker,
            allocator,
        })
    }
}

/// Returns the configuration without the allocator.
pub(crate) fn config() -> Config {
    let mut config = Config::new();
    config
        // Ticks that compiled code checks bound the processor time; fuel would cost three times as
        // much.
        .epoch_interruption(true)
        .max_wasm_stack(WASM_STACK)
        .async_stack_size(ASYNC_STACK)
        // The next guest on this stack may belong to another tenant.
        .async_stack_zeroing(true)
        // A guest runs no concurrent tasks; a waiting guest is a parked stack.
        .concurrency_support(false)
        .memory_reservation(MEMORY_RESERVATION)
        .memory_guard_size(MEMORY_GUARD)
        // A sign error in an address also hits a guard region.
        .guard_before_linear_memory(true)
        // Data segments are mapped, not copied.
        .memory_init_cow(true)
        // Backtraces are for the log only; clients never see them.
        .wasm_backtrace_max_frames(NonZeroUsize::new(16))
        // The memory limit of the compile child fits a single compiler thread.
        .parallel_compilation(false);
    features(&mut config);
    #[cfg(target_arch = "x86_64")]
    without_extensions(&mut config);
    config
}

/// Compiles for processors that lack [`UNUSED_EXTENSIONS`].
#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "the engine marks every direct setting of its compiler as unsafe"
)]
fn without_extensions(config: &mut Config) {
    for extension in UNUSED_EXTENSIONS {
        // SAFETY: code that uses fewer instructions runs on every processor that has more.
        unsafe { config.cranelift_flag_set(extension, "false") };
    }
}

/// Returns the configuration for programs of the host, without the allocator.
///
/// The memory of an interpreter that was started before it was compiled is mapped as a whole,
/// although it has gaps. Copying it would cost more than the rest of a short run.
pub(crate) fn program_config() -> Config {
    let mut config = config();
    config.memory_guaranteed_dense_image_size(Limits::CEILING.memory);
    config
}

/// Disables features that no supported toolchain emits. Each one is engine code that a guest could
/// attack.
///
/// The enabled features are those that compilers for Rust, C, JavaScript and Python guests emit:
/// bulk memory, sign extension, mutable globals, reference types, multi-value, fixed-width SIMD,
/// extended constants.
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

/// Starts an engine with a pool, with fewer warm slots if the address space is too small for all.
fn pooled(settings: &Settings) -> Result<Engine> {
    let live = u32::try_from(settings.live)?.max(1);
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let scan = may_scan_pages();
    let budget = settings.node_memory / KEEP_DIVISOR;
    let least = if scan {
        MIN_KEEP_WITH_SCAN
    } else {
        KEEP_WITHOUT_SCAN
    };
    let warm = live
        .saturating_mul(WARM_SLOTS)
        .saturating_mul(u32::try_from(processors)?)
        .min(MAX_WARM_SLOTS)
        .min(u32::try_from(budget / least).unwrap_or(u32::MAX))
        .max(1);
    let keep_bytes = if scan {
        (budget / u64::from(warm)).clamp(MIN_KEEP_WITH_SCAN, MAX_KEEP_WITH_SCAN)
    } else {
        KEEP_WITHOUT_SCAN
    };
    let keep = usize::try_from(keep_bytes)?;
    pool(live, warm, keep, scan).or_else(|_| pool(live, live.min(warm), keep, scan))
}

/// Starts an engine with a pool for `live` guests and `warm` unused slots, each of which keeps
/// `keep` bytes.
fn pool(live: u32, warm: u32, keep: usize, scan: bool) -> Result<Engine> {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(live)
        // These are counters, not memory, so no guest is refused because of complex neighbors.
        .total_core_instances(live.saturating_mul(MAX_CORE_INSTANCES))
        // Nearly every component has one memory and two tables.
        .total_memories(live + live / 4 + MAX_MEMORIES + warm)
        .total_tables(live.saturating_mul(4) + MAX_TABLES)
        .total_stacks(live)
        .max_core_instances_per_component(MAX_CORE_INSTANCES)
        .max_memories_per_component(MAX_MEMORIES)
        .max_tables_per_component(MAX_TABLES)
        .max_memories_per_module(1)
        .max_tables_per_module(4)
        .max_memory_size(usize::try_from(Limits::CEILING.memory)?)
        .table_elements(MAX_TABLE_ELEMENTS)
        .max_unused_warm_slots(warm)
        .linear_memory_keep_resident(keep)
        .table_keep_resident(KEEP_TABLE)
        .async_stack_keep_resident(KEEP_STACK)
        // A slot is used again only after its pages were given back, and those that wait are taken first
        // when slots run out.
        .decommit_batch_size(DECOMMIT_BATCH)
        .pagemap_scan(if scan { Enabled::Auto } else { Enabled::No });
    let mut config = config();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Engine::new(&config)
}

/// Opens the page map of this process, which the engine keeps open until the process ends. The
/// engine finds the written pages of a guest in it. A non-dumpable process may not open it, so a
/// program calls this before it gives that up. Returns false if written pages cannot be found.
pub fn open_page_map() -> bool {
    PoolingAllocationConfig::is_pagemap_scan_available()
}

/// Returns true if the kernel may be asked which pages were written. The kernel does not report a
/// swapped-out page, so the next guest in the slot could read it. The scan is therefore used only
/// without swap.
fn may_scan_pages() -> bool {
    let swaps =
        std::fs::read_to_string("/proc/swaps").unwrap_or_else(|_| "unknown\nunknown".to_owned());
    if swaps.lines().count() > 1 {
        tracing::info!(
            "this node can swap: memory of guests is cleared as a whole. Calls are faster without swap"
        );
        return false;
    }
    if !open_page_map() {
        tracing::warn!(
            "the kernel does not report written pages: memory of guests is cleared as a whole. Calls are faster with Linux 6.7 or later"
        );
        return false;
    }
    tracing::info!(
        "no swap on this node: written pages are found by asking the kernel. Do not add swap while running"
    );
    true
}

/// Returns a hash of everything that compiled code depends on.
fn hash(engine: &Engine) -> String {
    let mut hasher = FnvHasher::default();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
