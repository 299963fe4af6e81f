//! Looks up names on dedicated threads.
//!
//! Problem: the system's resolver blocks a thread until it answers, which takes tens of seconds if
//! a name server is silent. On the blocking threads of the runtime such lookups would delay all
//! other blocking work.
//!
//! Guarantee: concurrent lookups of one name share one query, and each domain may use only a part
//! of the threads, so that a silent domain does not block others.

use std::{
    collections::{HashMap, VecDeque},
    net::{SocketAddr, ToSocketAddrs},
    sync::Arc,
    thread,
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::oneshot, time::timeout};

use crate::guard::Unresolved;

/// Maximum number of simultaneous lookups, each on its own thread.
pub const MAX_LOOKUPS: usize = 64;
/// Maximum number of names that wait for a lookup.
pub const MAX_WAITING_LOOKUPS: usize = 256;
/// Divisor of both limits for the names below one registered domain.
pub const DOMAIN_SHARE_DIVISOR: usize = 4;
/// Timeout for the addresses of a name. It is shorter than the connect timeout, so that the error
/// names the reason.
pub const LOOKUP_TIMEOUT: Duration = Duration::from_secs(4);
/// Stack size of a lookup thread, in bytes.
const STACK_BYTES: usize = 512 << 10;

/// Addresses of a name or the reason that there are none.
type LookupResult = Result<Vec<SocketAddr>, String>;

/// Scheduler of name lookups.
pub(crate) struct Lookups {
    look_up: Box<dyn Fn(&str) -> LookupResult + Send + Sync>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Callers of each name that is being looked up or waits for a lookup.
    callers: HashMap<String, Vec<oneshot::Sender<LookupResult>>>,
    waiting: VecDeque<String>,
    running: usize,
    running_of_domain: HashMap<String, usize>,
}

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

    /// Finds the addresses of a name.
    ///
    /// # Errors
    /// Returns an error if the name has no addresses, if they do not arrive in time, or if too many
    /// names wait.
    pub(crate) async fn find(self: &Arc<Self>, name: &str) -> Result<Vec<SocketAddr>, Unresolved> {
        let found = self.request(name)?;
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
    ) -> Result<oneshot::Receiver<LookupResult>, Unresolved> {
        let (caller, found) = oneshot::channel();
        let mut state = self.state();
        if let Some(callers) = state.callers.get_mut(name) {
            callers.retain(|caller| !caller.is_closed());
            callers.push(caller);
            return Ok(found);
        }
        state.drop_unwanted();
        let of_domain = state
            .waiting
            .iter()
            .filter(|waiting| domain(waiting) == domain(name))
            .count();
        if state.waiting.len() >= MAX_WAITING_LOOKUPS
            || of_domain >= MAX_WAITING_LOOKUPS / DOMAIN_SHARE_DIVISOR
        {
            return Err(Unresolved::TooMany);
        }
        state.callers.insert(name.to_owned(), vec![caller]);
        state.waiting.push_back(name.to_owned());
        let next = state.next();
        drop(state);
        self.start(next);
        Ok(found)
    }

    /// Looks up a name on a new thread, which then continues with the waiting names.
    fn start(self: &Arc<Self>, mut next: Option<String>) {
        while let Some(name) = next {
            let own = self.clone();
            let first = name.clone();
            let run = move || {
                let mut next = Some(first);
                while let Some(name) = next {
                    let found = (own.look_up)(&name);
                    next = own.finish(&name, &found);
                }
            };
            match thread::Builder::new()
                .name("dns".to_owned())
                .stack_size(STACK_BYTES)
                .spawn(run)
            {
                Ok(_) => return,
                Err(cause) => {
                    next = self.finish(&name, &Err(format!("no thread can be started: {cause}")))
                }
            }
        }
    }

    /// Sends the result to the callers of a name and returns the next name to look up.
    fn finish(&self, name: &str, found: &LookupResult) -> Option<String> {
        let mut state = self.state();
        state.running -= 1;
        if let Some(running) = state.running_of_domain.get_mut(domain(name)) {
            *running -= 1;
            if *running == 0 {
                state.running_of_domain.remove(domain(name));
            }
        }
        let callers = state.callers.remove(name).unwrap_or_default();
        let next = state.next();
        drop(state);
        for caller in callers {
            // The receiver is gone if the caller gave up.
            let _ = caller.send(found.clone());
        }
        next
    }
}

impl State {
    /// Removes waiting names without a caller.
    fn drop_unwanted(&mut self) {
        let Self {
            callers, waiting, ..
        } = self;
        waiting.retain(|name| {
            let is_wanted = callers
                .get(name)
                .is_some_and(|callers| callers.iter().any(|caller| !caller.is_closed()));
            if !is_wanted {
                callers.remove(name);
            }
            is_wanted
        });
    }

    /// Takes the first waiting name whose domain has a free thread.
    fn next(&mut self) -> Option<String> {
        if self.running >= MAX_LOOKUPS {
            return None;
        }
        self.drop_unwanted();
        let max_running = MAX_LOOKUPS / DOMAIN_SHARE_DIVISOR;
        let running = |name: &String| {
            self.running_of_domain
                .get(domain(name))
                .copied()
                .unwrap_or_default()
        };
        let index = self
            .waiting
            .iter()
            .position(|name| running(name) < max_running)?;
        let name = self.waiting.remove(index)?;
        self.running += 1;
        *self
            .running_of_domain
            .entry(domain(&name).to_owned())
            .or_default() += 1;
        Some(name)
    }
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

    /// Resolver that does not answer for `silent.com` until it is released, and counts its queries.
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

    #[tokio::test]
    async fn silent_domain_leaves_threads_to_others() {
        let silent = Arc::new(Silent::default());
        let lookups = silent.lookups();
        let running = MAX_LOOKUPS / DOMAIN_SHARE_DIVISOR;
        let waiting = MAX_WAITING_LOOKUPS / DOMAIN_SHARE_DIVISOR;
        let held: Vec<_> = (0..running + waiting)
            .map(|n| lookups.request(&format!("x{n}.silent.com")).unwrap())
            .collect();
        assert!(matches!(
            lookups.request("more.silent.com"),
            Err(Unresolved::TooMany)
        ));
        assert_eq!(lookups.state().running, running);
        assert_eq!(lookups.find("www.good.com").await.unwrap().len(), 1);
        // Names without a waiting caller are not looked up.
        drop(held);
        silent.speak();
        while lookups.state().running > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(silent.asked.load(Ordering::SeqCst), running + 1);
        let state = lookups.state();
        assert!(
            state.callers.is_empty()
                && state.waiting.is_empty()
                && state.running_of_domain.is_empty()
        );
    }

    #[tokio::test]
    async fn one_name_is_looked_up_once_for_all() {
        let silent = Arc::new(Silent::default());
        let lookups = silent.lookups();
        let callers: Vec<_> = (0..500)
            .map(|_| lookups.request("www.silent.com").unwrap())
            .collect();
        silent.speak();
        for caller in callers {
            assert_eq!(caller.await.unwrap().unwrap().len(), 1);
        }
        assert_eq!(silent.asked.load(Ordering::SeqCst), 1);
    }
}
