//! Outgoing requests of one call: what they share, and the limits that count them together.

use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
};

use tokio::{
    runtime::Handle,
    sync::{Mutex, Semaphore},
};

use super::error;
use crate::{
    Grant, Limits, Policy, RunTrace, Secret,
    schedule::limiter::{NodeMemory, Reservation},
    toolkit::abi::v1::http::Error,
    trace::Trace,
};

/// Outgoing requests of one call.
pub(crate) struct Outgoing {
    pub(super) net: net::Client,
    pub(super) policy: Arc<Policy>,
    pub(super) grant: Option<Arc<dyn Grant>>,
    pub(super) limits: Limits,
    pub(super) trace: Arc<Trace>,
    /// Trace of the call, if it is traced.
    pub(super) run_trace: Option<RunTrace>,
    /// Runtime of the caller.
    pub(super) caller_runtime: Handle,
    /// Runtime of the guest threads; `cpu_permits` limits the tenant's turns on it.
    pub(super) threads: Handle,
    pub(super) cpu_permits: Arc<Semaphore>,
    pub(super) concurrency: Semaphore,
    requests: AtomicU32,
    /// Response bytes delivered to the guest's memory so far.
    response_bytes: AtomicU64,
    /// Every secret put into a request so far.
    pub(super) secrets: Mutex<Vec<Secret>>,
    /// Memory of the redactor.
    pub(super) redactor_memory: Reservation,
    /// Memory of responses on their way into the guest's memory.
    pub(super) delivered: Reservation,
}

/// Parts of the node and of the tenant's permit that the requests of a call use.
pub(crate) struct Node<'n> {
    pub(crate) net: &'n net::Client,
    pub(crate) memory: &'n Arc<NodeMemory>,
    pub(crate) threads: &'n Handle,
    pub(crate) cpu_permits: &'n Arc<Semaphore>,
}

impl Outgoing {
    pub(crate) fn new(
        node: Node<'_>,
        policy: Arc<Policy>,
        grant: Option<Arc<dyn Grant>>,
        limits: Limits,
        trace: Arc<Trace>,
    ) -> Self {
        let Node {
            net,
            memory,
            threads,
            cpu_permits,
        } = node;
        let memory = memory.reserve();
        Self {
            net: net.with_proxy(grant.as_ref().and_then(|grant| grant.proxy())),
            policy,
            grant,
            limits,
            trace,
            run_trace: None,
            caller_runtime: Handle::current(),
            threads: threads.clone(),
            cpu_permits: cpu_permits.clone(),
            concurrency: Semaphore::new(limits.concurrent_requests.max(1) as usize),
            requests: AtomicU32::new(0),
            response_bytes: AtomicU64::new(0),
            secrets: Mutex::default(),
            delivered: memory.empty(),
            redactor_memory: memory,
        }
    }

    /// Makes each request a span of a trace.
    pub(crate) fn with_trace(self, run_trace: Option<RunTrace>) -> Self {
        Self { run_trace, ..self }
    }

    /// Releases the memory of responses that the guest has received by now.
    pub(super) fn release_delivered(&self) {
        self.delivered.release();
    }

    /// Counts a request before any part of it runs.
    pub(super) fn count(&self) -> Result<(), Error> {
        let limit = self.limits.requests;
        let counted = self
            .requests
            .fetch_update(Relaxed, Relaxed, |sent| (sent < limit).then_some(sent + 1));
        counted
            .map(drop)
            .map_err(|_| error("limit", format!("a call sends at most {limit} requests")))
    }

    /// Returns the maximum size of the next response, in bytes.
    pub(super) fn response_limit(&self, into_blob: bool) -> Result<u64, Error> {
        if into_blob {
            return Ok(self.limits.file);
        }
        match self
            .limits
            .responses
            .saturating_sub(self.response_bytes.load(Relaxed))
        {
            0 => Err(self.responses_too_large()),
            left => Ok(left.min(self.limits.response_body)),
        }
    }

    /// Counts a received response. Concurrent responses may together exceed the limit.
    pub(super) fn count_response(&self, into_blob: bool, bytes: u64) -> Result<(), Error> {
        let limit = self.limits.responses;
        let fits = |response_bytes: u64| {
            response_bytes
                .checked_add(bytes)
                .filter(|sum| *sum <= limit)
        };
        if into_blob
            || self
                .response_bytes
                .fetch_update(Relaxed, Relaxed, fits)
                .is_ok()
        {
            Ok(())
        } else {
            Err(self.responses_too_large())
        }
    }

    fn responses_too_large(&self) -> Error {
        let limit = self.limits.responses;
        error(
            "limit",
            format!(
                "the responses of a call have at most {limit} bytes together; receive large ones as files"
            ),
        )
    }
}
