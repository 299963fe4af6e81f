//! Outgoing requests of one call: what they share, and the limits that count them together.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
};

use tokio::{
    runtime::Handle,
    sync::{Mutex, Semaphore},
};

use super::error;
use crate::{
    Grant, Limits, Policy, RunTrace, Secret,
    contract::v1::http::Error,
    schedule::limiter::{NodeMemory, Reservation},
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
    /// Maximum size of a textual body to decode although it becomes a file, in bytes.
    pub(super) max_decoded_file_bytes: usize,
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

/// Parts of the sandbox that all calls share.
pub(crate) struct Node {
    pub(crate) net: net::Client,
    pub(crate) memory: NodeMemory,
    /// Runtime of the guest threads.
    pub(crate) threads: Handle,
}

/// Parts of one call from which its [`Outgoing`] is made.
pub(crate) struct OutgoingParts {
    pub(crate) node: Arc<Node>,
    pub(crate) tenant: Arc<str>,
    pub(crate) cpu_permits: Arc<Semaphore>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) grant: Option<Arc<dyn Grant>>,
    pub(crate) limits: Limits,
    /// Trace of the call, if it is traced.
    pub(crate) run_trace: Option<RunTrace>,
    /// Runtime of the caller. A long call is on another one when it sends its first request.
    pub(crate) caller_runtime: Handle,
    /// Maximum size of a textual body to decode although it becomes a file, in bytes: 0 for a
    /// guest, which gets files unchanged; more for a proxy request, whose every response is a file.
    pub(crate) max_decoded_file_bytes: usize,
}

/// [`Outgoing`] of a call, made at its first request. Most calls send no request.
pub(crate) struct LazyOutgoing {
    parts: OutgoingParts,
    made: OnceLock<Arc<Outgoing>>,
}

impl LazyOutgoing {
    pub(crate) fn new(parts: OutgoingParts) -> Self {
        Self {
            parts,
            made: OnceLock::new(),
        }
    }

    pub(super) fn get(&self, trace: &Arc<Trace>) -> &Arc<Outgoing> {
        self.made
            .get_or_init(|| Arc::new(Outgoing::new(&self.parts, trace.clone())))
    }

    /// Returns the limits of the call.
    pub(crate) fn limits(&self) -> &Limits {
        &self.parts.limits
    }

    /// Releases the memory of responses that the guest has received by now.
    pub(super) fn release_delivered(&self) {
        if let Some(outgoing) = self.made.get() {
            outgoing.delivered.release();
        }
    }
}

impl Outgoing {
    pub(super) fn new(parts: &OutgoingParts, trace: Arc<Trace>) -> Self {
        let limits = parts.limits;
        let node = &*parts.node;
        let memory = node.memory.reserve(&parts.tenant);
        let net = node.net.clone().for_tenant(parts.tenant.clone());
        Self {
            net: net.with_proxy(parts.grant.as_ref().and_then(|grant| grant.proxy())),
            policy: parts.policy.clone(),
            grant: parts.grant.clone(),
            limits,
            trace,
            run_trace: parts.run_trace,
            caller_runtime: parts.caller_runtime.clone(),
            threads: node.threads.clone(),
            cpu_permits: parts.cpu_permits.clone(),
            max_decoded_file_bytes: parts.max_decoded_file_bytes,
            concurrency: Semaphore::new(limits.concurrent_requests.max(1) as usize),
            requests: AtomicU32::new(0),
            response_bytes: AtomicU64::new(0),
            secrets: Mutex::default(),
            delivered: memory.empty(),
            redactor_memory: memory,
        }
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
        if into_blob
            || self
                .response_bytes
                .fetch_update(Relaxed, Relaxed, |response_bytes| {
                    response_bytes
                        .checked_add(bytes)
                        .filter(|sum| *sum <= limit)
                })
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
