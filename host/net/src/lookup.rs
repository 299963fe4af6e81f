//! Looks up names on dedicated threads.
//!
//! Problem: the system's resolver blocks a thread until it answers, which takes tens of seconds if
//! a name server is silent. On the blocking threads of the runtime such lookups would delay all
//! other blocking work.
//!
//! Guarantee: concurrent lookups of one name share one query. Registered domains, and tenants, leave
//! threads and waiting places to each other ([`Shares`]). A silent domain therefore does not block
//! others, and a tenant that names many silent domains does not block other tenants.
//!
//! A lookup counts toward the share of one tenant that waits for it until the resolver answers, even
//! if the tenant gave up before. A name that several tenants wait for is looked up when one of them
//! has a share left. Lookups without a tenant, which are those of hosts that the operator named, are
//! limited by their domain alone.

use std::{
    collections::HashMap,
    net::{SocketAddr, ToSocketAddrs},
    sync::Arc,
    thread,
    time::Duration,
};

use gate::Shares;
use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::oneshot, time::timeout};

/// Shares of tenants, and of registered domains, in simultaneous lookups, each on its own thread.
pub const LOOKUP_SHARES: Shares = Shares {
    total: 64,
    reserve: 16,
    base: 2,
    cap: 16,
};
/// Shares of tenants, and of registered domains, in the names that wait for a lookup.
pub const WAITING_LOOKUP_SHARES: Shares = Shares {
    total: 256,
    reserve: 64,
    base: 8,
    cap: 64,
};
/// Timeout for the addresses of a name. It is shorter than the connect timeout, so that the error
/// names the reason.
pub const LOOKUP_TIMEOUT: Duration = Duration::from_secs(4);
/// Stack size of a lookup thread, in bytes.
const STACK_BYTES: usize = 512 << 10;

/// Addresses of a name or the reason why it lacks them.
type LookupResult = Result<Vec<SocketAddr>, String>;

/// Reason why a name lacks addresses. The HTTP client returns it as the source of its error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unresolved {
    #[error("the name cannot be resolved: {0}")]
    Failed(String),
    #[error("no name server responded within {LOOKUP_TIMEOUT:?}; try again later")]
    TooSlow,
    #[error("too many name lookups are waiting; try again later")]
    TooMany,
}

/// Scheduler of name lookups.
pub(crate) struct Lookups {
    look_up: Box<dyn Fn(&str) -> LookupResult + Send + Sync>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Callers of each name in or waiting for a lookup.
    callers: HashMap<String, Vec<Caller>>,
    /// Names that wait, the oldest first.
    waiting: Vec<String>,
    running: u64,
    running_of_domain: Owners,
    running_of_tenant: Owners,
}

/// Caller that waits for the addresses of a name.
struct Caller {
    tenant: Option<Arc<str>>,
    sender: oneshot::Sender<LookupResult>,
}

/// Lookup that runs on a thread.
#[derive(Clone)]
struct Lookup {
    name: String,
    /// Tenant whose share is used.
    tenant: Option<Arc<str>>,
}

/// Numbers of running lookups by their owner: a domain or a tenant.
#[derive(Default)]
struct Owners(HashMap<String, u64>);

impl Lookups {
    /// Creates a scheduler that uses the system's resolver.
    pub(crate) fn new() -> Arc<Self> {
        Self::with_resolver(|name| {
            let found = (name, 0).to_socket_addrs();
            found
                .map(Iterator::collect)
                .map_err(|cause| cause.to_string())
        })
    }

    fn with_resolver(look_up: impl Fn(&str) -> LookupResult + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            look_up: Box::new(look_up),
            state: Mutex::default(),
        })
    }

    /// Finds the addresses of a name for a tenant.
    ///
    /// # Errors
    /// Returns an error if the name lacks addresses, if they do not arrive in time, or if too many
    /// names wait.
    pub(crate) async fn find(
        self: &Arc<Self>,
        name: &str,
        tenant: Option<Arc<str>>,
    ) -> Result<Vec<SocketAddr>, Unresolved> {
        let found = self.request(name, tenant)?;
        match timeout(LOOKUP_TIMEOUT, found).await {
            Ok(Ok(found)) => found.map_err(Unresolved::Failed),
            Ok(Err(_)) => Err(Unresolved::Failed("the lookup was interrupted".to_owned())),
            Err(_) => Err(Unresolved::TooSlow),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn request(
        self: &Arc<Self>,
        name: &str,
        tenant: Option<Arc<str>>,
    ) -> Result<oneshot::Receiver<LookupResult>, Unresolved> {
        let (sender, found) = oneshot::channel();
        let mut state = self.state();
        if let Some(callers) = state.callers.get_mut(name) {
            callers.retain(|caller| !caller.sender.is_closed());
            callers.push(Caller { tenant, sender });
        } else {
            state.drop_unwanted();
            if state.is_queue_full(name, tenant.as_deref()) {
                return Err(Unresolved::TooMany);
            }
            let callers = vec![Caller { tenant, sender }];
            state.callers.insert(name.to_owned(), callers);
            state.waiting.push(name.to_owned());
        }
        let startable = state.take_startable();
        drop(state);
        self.start(startable);
        Ok(found)
    }

    /// Starts a thread for each lookup.
    fn start(self: &Arc<Self>, mut lookups: Vec<Lookup>) {
        while let Some(lookup) = lookups.pop() {
            let lookups_of_thread = self.clone();
            let running = lookup.clone();
            let thread = thread::Builder::new()
                .name("dns".to_owned())
                .stack_size(STACK_BYTES);
            let spawned = thread.spawn(move || {
                let result = (lookups_of_thread.look_up)(&running.name);
                lookups_of_thread.start(lookups_of_thread.finish(&running, &result));
            });
            if let Err(cause) = spawned {
                let failed = Err(format!("no thread can be started: {cause}"));
                lookups.extend(self.finish(&lookup, &failed));
            }
        }
    }

    /// Sends the result to the callers of a name and returns the lookups that can start now.
    fn finish(&self, lookup: &Lookup, found: &LookupResult) -> Vec<Lookup> {
        let mut state = self.state();
        state.running -= 1;
        state.running_of_domain.release(domain(&lookup.name));
        if let Some(tenant) = &lookup.tenant {
            state.running_of_tenant.release(tenant);
        }
        let callers = state.callers.remove(&lookup.name).unwrap_or_default();
        let startable = state.take_startable();
        drop(state);
        for caller in callers {
            // The receiver is gone if the caller gave up.
            let _ = caller.sender.send(found.clone());
        }
        startable
    }
}

impl State {
    /// Removes callers that gave up, and waiting names without a caller.
    fn drop_unwanted(&mut self) {
        let Self {
            callers, waiting, ..
        } = self;
        waiting.retain(|name| {
            let Some(of_name) = callers.get_mut(name) else {
                return false;
            };
            of_name.retain(|caller| !caller.sender.is_closed());
            let is_wanted = !of_name.is_empty();
            if !is_wanted {
                callers.remove(name);
            }
            is_wanted
        });
    }

    /// Returns true if too many lookups wait for a name, its domain or its tenant.
    fn is_queue_full(&self, name: &str, tenant: Option<&str>) -> bool {
        let waiting = self.waiting.iter();
        let of_domain = waiting
            .clone()
            .filter(|waiting| domain(waiting) == domain(name));
        let of_tenant = waiting.filter(|waiting| {
            let mut callers = self.callers.get(*waiting).into_iter().flatten();
            tenant.is_some() && callers.any(|caller| caller.tenant.as_deref() == tenant)
        });
        let all = self.waiting.len() as u64;
        exceeds_share(of_domain.count(), all) || exceeds_share(of_tenant.count(), all)
    }

    /// Takes the waiting names whose lookups can start.
    fn take_startable(&mut self) -> Vec<Lookup> {
        self.drop_unwanted();
        let mut startable = Vec::new();
        for name in std::mem::take(&mut self.waiting) {
            let Some(lookup) = self.startable(&name) else {
                self.waiting.push(name);
                continue;
            };
            self.running += 1;
            self.running_of_domain.take(domain(&name));
            if let Some(tenant) = &lookup.tenant {
                self.running_of_tenant.take(tenant);
            }
            startable.push(lookup);
        }
        startable
    }

    fn has_free_share(&self, owners: &Owners, owner: &str) -> bool {
        let refusal = LOOKUP_SHARES.refusal(owners.running(owner), self.running, 1);
        refusal.is_none()
    }

    /// Returns the lookup of a waiting name, if a thread is free, and a share of its domain and of
    /// one of its callers.
    fn startable(&self, name: &str) -> Option<Lookup> {
        if !self.has_free_share(&self.running_of_domain, domain(name)) {
            return None;
        }
        let mut callers = self.callers.get(name)?.iter();
        let caller = callers.find(|caller| {
            let tenant = caller.tenant.as_deref();
            tenant.is_none_or(|tenant| self.has_free_share(&self.running_of_tenant, tenant))
        })?;
        Some(Lookup {
            name: name.to_owned(),
            tenant: caller.tenant.clone(),
        })
    }
}

impl Owners {
    fn running(&self, owner: &str) -> u64 {
        self.0.get(owner).copied().unwrap_or_default()
    }

    fn take(&mut self, owner: &str) {
        *self.0.entry(owner.to_owned()).or_default() += 1;
    }

    fn release(&mut self, owner: &str) {
        if let Some(running) = self.0.get_mut(owner) {
            *running -= 1;
            if *running == 0 {
                self.0.remove(owner);
            }
        }
    }
}

/// Returns true if no lookup may wait in addition to `held` of `all` waiting ones.
fn exceeds_share(held: usize, all: u64) -> bool {
    let refusal = WAITING_LOOKUP_SHARES.refusal(held as u64, all, 1);
    refusal.is_some()
}

/// Returns the registered domain of a name.
fn domain(name: &str) -> &str {
    psl::domain_str(name).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use parking_lot::Condvar;

    use super::*;
    use crate::{Body, Client, HeaderMap, Limits, Method, Request, Settings, Url};

    /// Resolver that does not answer for names that end in `silent.com` until it is released, and
    /// counts its queries.
    #[derive(Default)]
    struct Silent {
        asked: AtomicUsize,
        speaks: (Mutex<bool>, Condvar),
    }

    impl Silent {
        fn lookups(self: &Arc<Self>) -> Arc<Lookups> {
            let own = self.clone();
            Lookups::with_resolver(move |name| {
                own.asked.fetch_add(1, Ordering::SeqCst);
                if name.ends_with("silent.com") {
                    let mut speaks = own.speaks.0.lock();
                    own.speaks.1.wait_while(&mut speaks, |speaks| !*speaks);
                }
                Ok(vec![([192, 0, 2, 1], 0).into()])
            })
        }

        fn speak(&self) {
            *self.speaks.0.lock() = true;
            self.speaks.1.notify_all();
        }
    }

    fn silent() -> (Arc<Silent>, Arc<Lookups>) {
        let silent = Arc::new(Silent::default());
        let lookups = silent.lookups();
        (silent, lookups)
    }

    async fn wait_for(lookups: &Lookups, is_reached: impl Fn(&State) -> bool) {
        while !is_reached(&lookups.state()) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn silent_domain_leaves_threads_to_others() {
        let (silent, lookups) = silent();
        let (running, waiting) = (LOOKUP_SHARES.cap, WAITING_LOOKUP_SHARES.cap);
        let held: Vec<_> = (0..running + waiting)
            .map(|n| {
                let name = format!("x{n}.silent.com");
                lookups.request(&name, None).unwrap()
            })
            .collect();
        let refused = lookups.request("more.silent.com", None);
        assert!(matches!(refused, Err(Unresolved::TooMany)));
        assert_eq!(lookups.state().running, running);
        let found = lookups.find("www.good.com", None).await.unwrap();
        assert_eq!(found.len(), 1);
        // Names without a waiting caller are not looked up.
        drop(held);
        silent.speak();
        wait_for(&lookups, |state| state.running == 0).await;
        assert_eq!(silent.asked.load(Ordering::SeqCst) as u64, running + 1);
        let state = lookups.state();
        assert!(
            state.callers.is_empty()
                && state.waiting.is_empty()
                && state.running_of_domain.0.is_empty()
        );
    }

    #[tokio::test]
    async fn silent_domains_of_tenant_leave_threads_to_others() {
        let (silent, lookups) = silent();
        let (running, waiting) = (LOOKUP_SHARES.cap, WAITING_LOOKUP_SHARES.cap);
        // Each name is a registered domain of its own.
        let request = |number: u64, tenant: &str| {
            let name = format!("x{number}-silent.com");
            lookups.request(&name, Some(tenant.into()))
        };
        let held: Vec<_> = (0..running + waiting)
            .map(|number| request(number, "greedy").unwrap())
            .collect();
        let refused = request(running + waiting, "greedy");
        assert!(matches!(refused, Err(Unresolved::TooMany)));
        assert_eq!(lookups.state().running, running);
        let found = lookups.find("www.good.com", Some("other".into()));
        assert_eq!(found.await.unwrap().len(), 1);
        // The first waiting name starts when a tenant with a share waits for it, too.
        let shared = request(running, "other").unwrap();
        assert_eq!(lookups.state().running, running + 1);
        drop(held);
        silent.speak();
        assert_eq!(shared.await.unwrap().unwrap().len(), 1);
        wait_for(&lookups, |state| state.running == 0).await;
        assert!(lookups.state().running_of_tenant.0.is_empty());
    }

    #[tokio::test]
    async fn newcomer_is_found_while_tenants_hold_all() {
        const HOSTILE_TENANTS: usize = 8;
        let (silent, lookups) = silent();
        let mut held = Vec::new();
        for tenant in 0..HOSTILE_TENANTS {
            let mut number = 0;
            // A tenant continues until it may not even wait.
            while let Ok(waits) = lookups.request(
                &format!("x{tenant}x{number}-silent.com"),
                Some(format!("greedy {tenant}").into()),
            ) {
                held.push(waits);
                number += 1;
            }
        }
        let found = lookups.find("www.good.com", Some("other".into()));
        assert_eq!(found.await.unwrap().len(), 1);
        silent.speak();
    }

    #[tokio::test]
    async fn request_uses_the_share_of_its_tenant() {
        let (silent, lookups) = silent();
        let client = Client::with_lookups(Settings::default(), lookups.clone()).unwrap();
        let client = client.for_tenant("one".into());
        let request = Request {
            method: Method::GET,
            url: Url::parse("http://www.silent.com/").unwrap(),
            headers: HeaderMap::new(),
            body: Body::Empty,
            limits: Limits::default(),
        };
        tokio::select! {
            sent = client.send(request) => panic!("{sent:?}"),
            () = wait_for(&lookups, |state| state.running > 0) => {}
        }
        assert!(lookups.state().running_of_tenant.0.contains_key("one"));
        silent.speak();
    }

    #[tokio::test]
    async fn one_name_is_looked_up_once_for_all() {
        let (silent, lookups) = silent();
        let callers: Vec<_> = (0..500)
            .map(|_| lookups.request("www.silent.com", None).unwrap())
            .collect();
        silent.speak();
        for caller in callers {
            assert_eq!(caller.await.unwrap().unwrap().len(), 1);
        }
        assert_eq!(silent.asked.load(Ordering::SeqCst), 1);
    }
}
