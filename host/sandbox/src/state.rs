//! Data of one call, held by its store.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use wasmtime::{Result, component::ResourceTable};

use crate::{
    Clock,
    cassette::Tape,
    host::{blob::Files, http::Outgoing, wasi::Wasi},
    limiter::Limiter,
    meter::Meter,
    trace::Trace,
};

/// Maximum number of handles to host resources. Only guests with WASI imports have any.
const RESOURCES: usize = 512;

/// Data of the host functions of one call. It is dropped with its store, which is never reused.
pub(crate) struct State {
    pub(crate) limiter: Limiter,
    pub(crate) meter: Arc<Meter>,
    pub(crate) trace: Arc<Trace>,
    pub(crate) outgoing: Arc<Outgoing>,
    pub(crate) files: Files,
    /// Key-value store of the guest.
    pub(crate) kept: BTreeMap<String, Vec<u8>>,
    /// Recorder or player for imports.
    pub(crate) tape: Option<Arc<Tape>>,
    /// Source of the wall-clock time.
    pub(crate) clock: Clock,
    /// Deadline of the call, extended by the time it is held up.
    pub(crate) deadline: Instant,
    /// Maximum number of host function calls.
    pub(crate) host_calls: u32,
    /// True after the guest's instances were created; its own code runs from here on.
    pub(crate) instantiated: bool,
    pub(crate) table: ResourceTable,
    /// WASI context, created on first use.
    pub(crate) wasi: Option<Box<Wasi>>,
}

impl State {
    /// Creates an empty handle table with limited capacity.
    pub(crate) fn table() -> ResourceTable {
        let mut table = ResourceTable::new();
        table.set_max_capacity(RESOURCES);
        table
    }

    /// Counts a host function call. Returns an error past the limit.
    pub(crate) fn count(&self) -> Result<()> {
        if self.meter.host_call() > self.host_calls {
            wasmtime::bail!("more than {} host calls", self.host_calls);
        }
        Ok(())
    }

    /// Returns true if the guest exceeded its limit of host calls.
    pub(crate) fn flooded(&self) -> bool {
        self.meter.host_calls() > self.host_calls
    }

    /// Returns the remaining wall-clock time of the call.
    pub(crate) fn left(&self) -> Duration {
        self.meter
            .end_of(self.deadline)
            .saturating_duration_since(Instant::now())
    }
}
