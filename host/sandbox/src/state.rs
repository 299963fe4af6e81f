//! What belongs to one call: the data of its store.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use wasmtime::component::ResourceTable;

use crate::{
    Clock,
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
    /// Where the time of day comes from.
    pub(crate) clock: Clock,
    /// When the call must have ended.
    pub(crate) deadline: Instant,
    /// What the guest is doing, to tell whose fault an error is.
    pub(crate) phase: Phase,
    /// The guest made more host calls than it may.
    pub(crate) flooded: bool,
    pub(crate) table: ResourceTable,
    /// Made when a guest first uses WASI.
    pub(crate) wasi: Option<Box<Wasi>>,
}

/// Where the thread of a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// In the guest, or on the way into it.
    Guest,
    /// In a host function, its arguments included.
    Host,
    /// Back from the guest's function: reading what it answered.
    Answer,
}

impl State {
    /// An empty table of handles that cannot grow without end.
    pub(crate) fn table() -> ResourceTable {
        let mut table = ResourceTable::new();
        table.set_max_capacity(RESOURCES);
        table
    }

    /// Wall-clock time the call has left.
    pub(crate) fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}
