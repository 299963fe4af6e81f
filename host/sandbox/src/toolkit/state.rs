//! Data of one call, held by its store.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use wasmtime::{Result, component::ResourceTable};
use wasmtime_wasi::WasiCtx;

use super::{imports::http::LazyOutgoing, webhook_secrets::WebhookSecrets};
use crate::{
    Clock, Limits,
    cassette::CassetteSession,
    contract::v1::HttpResult,
    files::Files,
    schedule::{host_work::HostWork, limiter::Limiter, meter::Meter},
    trace::Trace,
};

/// Maximum number of handles to host resources. Only guests with WASI imports have any.
const MAX_RESOURCES: usize = 512;

/// Data of the host functions of one call. It is dropped with its store, which is never reused.
pub(crate) struct State {
    pub(crate) limiter: Limiter,
    pub(crate) meter: Arc<Meter>,
    /// Requests of the guest while it is not a long-running one.
    pub(crate) host_work: Arc<HostWork<HttpResult>>,
    pub(crate) trace: Arc<Trace>,
    pub(crate) outgoing: LazyOutgoing,
    pub(crate) files: Files,
    /// Key-value store of the guest.
    pub(crate) guest_state: BTreeMap<String, Vec<u8>>,
    /// Secrets of the trigger's configuration.
    pub(crate) webhook_secrets: WebhookSecrets,
    /// Recorder or player for imports.
    pub(crate) session: Option<Arc<CassetteSession>>,
    /// Source of the wall-clock time.
    pub(crate) clock: Clock,
    /// Deadline of the call, extended by the time it is held up.
    pub(crate) deadline: Instant,
    /// True after the guest's instances were created; its own code runs from here on.
    pub(crate) instantiated: bool,
    pub(crate) table: ResourceTable,
    /// WASI context, created on first use.
    pub(crate) wasi: Option<Box<WasiCtx>>,
}

impl State {
    /// Creates an empty handle table with limited capacity.
    pub(crate) fn new_table() -> ResourceTable {
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_RESOURCES);
        table
    }

    /// Returns the limits of the call.
    pub(crate) fn limits(&self) -> &Limits {
        self.outgoing.limits()
    }

    /// Counts a host function call. Returns an error past the limit.
    pub(crate) fn count_host_call(&self) -> Result<()> {
        let max_calls = self.limits().host_calls;
        if self.meter.count_host_call() > max_calls {
            wasmtime::bail!("more than {max_calls} host calls");
        }
        Ok(())
    }

    /// Returns the remaining wall-clock time of the call.
    pub(crate) fn remaining_time(&self) -> Duration {
        self.meter
            .extended_deadline(self.deadline)
            .saturating_duration_since(Instant::now())
    }
}
