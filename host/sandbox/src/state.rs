//! What belongs to one call: the data of its store.

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

/// Handles to host resources that a guest may hold; only guests with WASI imports have any.
const RESOURCES: usize = 512;

/// Everything the host functions of one call work on. Dropped with its store, which is never used again.
pub(crate) struct State {
    pub(crate) limiter: Limiter,
    pub(crate) meter: Arc<Meter>,
    pub(crate) trace: Arc<Trace>,
    pub(crate) outgoing: Arc<Outgoing>,
    pub(crate) files: Files,
    /// The guest's small memory.
    pub(crate) kept: BTreeMap<String, Vec<u8>>,
    /// Records what comes from outside, or plays it.
    pub(crate) tape: Option<Arc<Tape>>,
    /// Where the time of day comes from.
    pub(crate) clock: Clock,
    /// When the call must have ended, unless it is held up.
    pub(crate) deadline: Instant,
    /// Calls of host functions that the guest may make.
    pub(crate) host_calls: u32,
    /// The guest's instances exist: what it does from here on it does itself.
    pub(crate) instantiated: bool,
    pub(crate) table: ResourceTable,
    /// Made when a guest first uses WASI.
    pub(crate) wasi: Option<Box<Wasi>>,
}

impl State {
    /// An empty table of handles that cannot grow without end.
    pub(crate) fn table() -> ResourceTable {
        let mut table = ResourceTable::new();
        table.set_max_capacity(RESOURCES);
        table
    }

    /// Counts a call of a host function; an error past the limit.
    pub(crate) fn count(&self) -> Result<()> {
        if self.meter.host_call() > self.host_calls {
            wasmtime::bail!("more than {} host calls", self.host_calls);
        }
        Ok(())
    }

    /// Whether the guest made more host calls than it may.
    pub(crate) fn flooded(&self) -> bool {
        self.meter.host_calls() > self.host_calls
    }

    /// Wall-clock time the call has left.
    pub(crate) fn left(&self) -> Duration {
        self.meter.end_of(self.deadline).saturating_duration_since(Instant::now())
    }
}
