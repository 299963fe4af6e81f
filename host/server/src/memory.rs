//! The allocator, the return of freed memory to the system when the server is idle, and the memory
//! in use.
//!
//! The allocator returns freed memory only while it serves further allocations. An idle server
//! would keep the memory that loading the catalog or receiving a publication took. Therefore a
//! timer asks the allocator periodically.

use std::time::Duration;

/// A call makes many small allocations on several threads. This allocator makes a whole request
/// about a tenth faster.
#[global_allocator]
static GLOBAL_ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Interval at which freed memory is returned.
const COLLECT_INTERVAL: Duration = Duration::from_secs(5);

/// Periodically returns memory to the system that has been free for a while. Runs until it is
/// dropped.
pub(crate) async fn return_free_memory() {
    loop {
        tokio::time::sleep(COLLECT_INTERVAL).await;
        collect(false);
    }
}

/// Returns the memory that this thread has freed to the system immediately. A thread that reads
/// much data and then waits would otherwise keep the memory that it freed.
pub(crate) fn return_free_memory_now() {
    collect(true);
}

/// Returns the resident memory of the process, or `None` where the system does not report it.
pub(crate) fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = resident.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[expect(unsafe_code, reason = "the allocator's own interface, which is C")]
fn collect(force: bool) {
    // SAFETY: any thread may call this at any time, and memory in use is neither moved nor freed.
    unsafe { libmimalloc_sys::mi_collect(force) }
}
