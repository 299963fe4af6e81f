//! Admits calls to the sandbox.
//!
//! A call needs a permit before any part of it starts. Permits are limited for the node and for
//! each tenant. If no permit is free, a call waits for a limited time in a limited queue. Free
//! permits go to the waiting tenants in turn, so that a tenant with many calls does not delay a
//! tenant with a single call.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};
use quick_cache::DefaultHashBuilder;
use tokio::{
    sync::{Semaphore, oneshot},
    time::timeout,
};

use crate::{Refusal, Settings};

/// Number of tenants above which those without calls are forgotten.
const MAX_IDLE_TENANTS: usize = 1_000;

/// Issues permits to calls.
#[derive(Clone)]
pub(crate) struct CallScheduler(Arc<Shared>);

struct Shared {
    live: usize,
    live_per_tenant: usize,
    busy_per_tenant: usize,
    queue: usize,
    queue_per_tenant: usize,
    queue_wait: std::time::Duration,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    live: usize,
    queued: usize,
    /// Tenants with calls, and idle ones. The hasher is faster than that of the standard library.
    tenants: HashMap<Arc<str>, Tenant, DefaultHashBuilder>,
    /// Number of tenants at which idle ones are forgotten next. It grows with the tenants that have
    /// calls, so that many of them do not cause a scan for each new one.
    cleanup_at: usize,
    /// Tenants with waiting calls, in the order in which they are served.
    order: VecDeque<Arc<str>>,
}

struct Tenant {
    live: usize,
    waiting: VecDeque<(u64, oneshot::Sender<Permit>)>,
    next_ticket: u64,
    cpu_permits: Arc<Semaphore>,
}

/// Right to run one call. It is released when dropped.
pub(crate) struct Permit {
    shared: Arc<Shared>,
    tenant: Arc<str>,
    /// Concurrency limit for the tenant's long-running computations.
    pub(crate) cpu_permits: Arc<Semaphore>,
}

impl CallScheduler {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self(Arc::new(Shared {
            live: settings.live.max(1),
            live_per_tenant: settings.live_per_tenant.max(1),
            busy_per_tenant: settings.busy_per_tenant.max(1),
            queue: settings.queue,
            queue_per_tenant: settings.queue_per_tenant,
            queue_wait: settings.queue_wait,
            inner: Mutex::default(),
        }))
    }

    /// Returns the number of running calls and the number of waiting calls.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let inner = self.0.lock();
        (inner.live, inner.queued)
    }

    /// Returns a permit for a call of `tenant`, immediately or within the maximum wait time.
    pub(crate) async fn acquire(&self, tenant: &Arc<str>) -> Result<Permit, Refusal> {
        let (ticket, receiver) = match self.0.try_acquire(tenant)? {
            Entry::Permit(permit) => return Ok(permit),
            Entry::Queued(ticket, receiver) => (ticket, receiver),
        };
        let _leaves = QueuedCall {
            shared: &self.0,
            tenant,
            ticket,
        };
        match timeout(self.0.queue_wait, receiver).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(self.0.refusal(tenant)),
        }
    }
}

enum Entry {
    Permit(Permit),
    Queued(u64, oneshot::Receiver<Permit>),
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    fn try_acquire(self: &Arc<Self>, name: &Arc<str>) -> Result<Entry, Refusal> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let tenant = match inner.tenants.get_mut(name) {
            Some(tenant) => tenant,
            None => {
                inner.forget_idle_tenants();
                let new = Tenant::new(self.busy_per_tenant);
                inner.tenants.entry(name.clone()).or_insert(new)
            }
        };
        // Free permits are issued as soon as they are free, so a permit that is left belongs to no
        // waiting call.
        if inner.live < self.live && tenant.live < self.live_per_tenant {
            inner.live += 1;
            tenant.live += 1;
            return Ok(Entry::Permit(self.permit(name, tenant)));
        }
        let refused = if tenant.waiting.len() >= self.queue_per_tenant {
            Some(if tenant.live >= self.live_per_tenant {
                Refusal::TenantBusy
            } else {
                Refusal::NodeBusy
            })
        } else {
            (inner.queued >= self.queue).then_some(Refusal::NodeBusy)
        };
        if let Some(refused) = refused {
            return Err(refused);
        }
        let (sender, receiver) = oneshot::channel();
        let ticket = tenant.next_ticket;
        tenant.next_ticket += 1;
        if tenant.waiting.is_empty() {
            inner.order.push_back(name.clone());
        }
        tenant.waiting.push_back((ticket, sender));
        inner.queued += 1;
        Ok(Entry::Queued(ticket, receiver))
    }

    fn permit(self: &Arc<Self>, name: &Arc<str>, tenant: &Tenant) -> Permit {
        Permit {
            shared: self.clone(),
            tenant: name.clone(),
            cpu_permits: tenant.cpu_permits.clone(),
        }
    }

    /// Issues free permits to waiting calls, one tenant after the other. Returns the permits whose
    /// callers are gone.
    fn issue_permits(self: &Arc<Self>, inner: &mut Inner) -> Vec<Permit> {
        let mut unwanted = Vec::new();
        let mut passed = 0;
        while inner.live < self.live && passed < inner.order.len() {
            let Some(name) = inner.order.pop_front() else {
                break;
            };
            let Some(tenant) = inner.tenants.get_mut(&name) else {
                continue;
            };
            if tenant.live >= self.live_per_tenant {
                inner.order.push_back(name);
                passed += 1;
                continue;
            }
            if let Some((_, sender)) = tenant.waiting.pop_front() {
                inner.queued -= 1;
                inner.live += 1;
                tenant.live += 1;
                passed = 0;
                let permit = self.permit(&name, tenant);
                unwanted.extend(sender.send(permit).err());
            }
            if !tenant.waiting.is_empty() {
                inner.order.push_back(name);
            }
        }
        unwanted
    }

    fn refusal(&self, name: &Arc<str>) -> Refusal {
        let full = self
            .lock()
            .tenants
            .get(name)
            .is_some_and(|tenant| tenant.live >= self.live_per_tenant);
        if full {
            Refusal::TenantBusy
        } else {
            Refusal::NodeBusy
        }
    }
}

impl Inner {
    /// Removes the tenants that have neither running nor waiting calls if there are many tenants.
    fn forget_idle_tenants(&mut self) {
        if self.tenants.len() < MAX_IDLE_TENANTS.max(self.cleanup_at) {
            return;
        }
        self.tenants
            .retain(|_, tenant| tenant.live > 0 || !tenant.waiting.is_empty());
        self.cleanup_at = 2 * self.tenants.len();
    }
}

impl Tenant {
    fn new(max_busy: usize) -> Self {
        Self {
            live: 0,
            waiting: VecDeque::new(),
            next_ticket: 0,
            cpu_permits: Arc::new(Semaphore::new(max_busy)),
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let unwanted = {
            let mut inner = self.shared.lock();
            inner.live -= 1;
            if let Some(tenant) = inner.tenants.get_mut(&self.tenant) {
                tenant.live -= 1;
            }
            if inner.queued > 0 {
                self.shared.issue_permits(&mut inner)
            } else {
                Vec::new()
            }
        };
        // The callers of these permits are gone. Releasing them takes the lock again.
        drop(unwanted);
    }
}

/// Entry of a waiting call. Dropping it removes the call from the queue.
struct QueuedCall<'w> {
    shared: &'w Shared,
    tenant: &'w Arc<str>,
    ticket: u64,
}

impl Drop for QueuedCall<'_> {
    fn drop(&mut self) {
        let mut inner = self.shared.lock();
        let inner = &mut *inner;
        let Some(tenant) = inner.tenants.get_mut(self.tenant) else {
            return;
        };
        if let Some(at) = tenant
            .waiting
            .iter()
            .position(|(ticket, _)| *ticket == self.ticket)
        {
            tenant.waiting.remove(at);
            inner.queued -= 1;
            if tenant.waiting.is_empty() {
                inner.order.retain(|name| name != self.tenant);
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tasks of a test end with it")]
mod tests {
    use super::*;
    use std::time::Duration;

    fn scheduler(
        live: usize,
        live_per_tenant: usize,
        queue: usize,
        queue_per_tenant: usize,
        queue_wait: Duration,
    ) -> CallScheduler {
        let net = net::Client::new(net::Settings::default()).unwrap();
        let settings = Settings {
            live,
            live_per_tenant,
            queue,
            queue_per_tenant,
            queue_wait,
            ..Settings::new("unused".into(), [0; 32], net)
        };
        CallScheduler::new(&settings)
    }

    fn tenant(name: &str) -> Arc<str> {
        name.into()
    }

    #[tokio::test]
    async fn tenant_at_its_limit_waits_then_is_refused() {
        let scheduler = scheduler(10, 1, 10, 1, Duration::from_millis(50));
        let a = tenant("a");
        let b = tenant("b");
        let held = scheduler.acquire(&a).await.unwrap();
        let waits = tokio::spawn({
            let scheduler = scheduler.clone();
            let a = a.clone();
            async move { scheduler.acquire(&a).await.map(drop) }
        });
        while scheduler.counts().1 == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(scheduler.acquire(&a).await.err(), Some(Refusal::TenantBusy));
        assert!(scheduler.acquire(&b).await.is_ok());
        assert_eq!(waits.await.unwrap(), Err(Refusal::TenantBusy));
        drop(held);
        assert_eq!(scheduler.counts(), (0, 0));
    }

    #[tokio::test]
    async fn idle_tenants_are_forgotten() {
        let scheduler = scheduler(10, 1, 0, 0, Duration::ZERO);
        let busy = tenant("busy");
        let held = scheduler.acquire(&busy).await.unwrap();
        for number in 0..=MAX_IDLE_TENANTS {
            let name = tenant(&number.to_string());
            drop(scheduler.acquire(&name).await.unwrap());
        }
        assert!(scheduler.0.lock().tenants.len() < MAX_IDLE_TENANTS);
        let refused = scheduler.acquire(&busy).await.err();
        assert_eq!(refused, Some(Refusal::TenantBusy));
        drop(held);
    }

    #[tokio::test]
    async fn free_places_go_to_tenants_in_turn() {
        let scheduler = scheduler(1, 1, 10, 10, Duration::from_secs(10));
        let held = scheduler.acquire(&tenant("z")).await.unwrap();
        let (done, mut seen) = tokio::sync::mpsc::unbounded_channel();
        let mut tasks = Vec::new();
        for (position, name) in ["a", "a", "a", "b"].into_iter().enumerate() {
            let waiting = scheduler.clone();
            let done = done.clone();
            tasks.push(tokio::spawn(async move {
                let permit = waiting.acquire(&tenant(name)).await.unwrap();
                done.send(name).unwrap();
                drop(permit);
            }));
            while scheduler.counts().1 <= position {
                tokio::task::yield_now().await;
            }
        }
        drop((held, done));
        let mut order = Vec::new();
        while let Some(name) = seen.recv().await {
            order.push(name);
        }
        assert_eq!(order, ["a", "b", "a", "a"]);
        assert_eq!(scheduler.counts(), (0, 0));
    }

    #[tokio::test]
    async fn a_call_that_stops_waiting_leaves_no_trace() {
        let scheduler = scheduler(1, 1, 1, 1, Duration::from_secs(10));
        let held = scheduler.acquire(&tenant("a")).await.unwrap();
        let waits = tokio::spawn({
            let scheduler = scheduler.clone();
            async move { scheduler.acquire(&tenant("b")).await.map(drop) }
        });
        while scheduler.counts().1 == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            scheduler.acquire(&tenant("c")).await.err(),
            Some(Refusal::NodeBusy)
        );
        waits.abort();
        assert!(waits.await.unwrap_err().is_cancelled());
        assert_eq!(scheduler.counts(), (1, 0));
        drop(held);
        assert!(scheduler.acquire(&tenant("c")).await.is_ok());
    }
}
