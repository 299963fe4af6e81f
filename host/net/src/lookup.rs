//! Name look-ups, on threads of their own.
//!
//! The system's resolver blocks a thread until it answers, which takes tens of seconds when a name server is silent. On the runtime's
//! own blocking threads such look-ups would hold up everything else that blocks. One name is looked up once at a time, for all
//! who ask for it, and one domain has a part of the threads, so that a silent one leaves the others alone.

use std::{
    collections::{HashMap, VecDeque},
    net::{SocketAddr, ToSocketAddrs},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use tokio::{sync::oneshot, time::timeout};

use crate::guard::Unresolved;

/// Names that are looked up at once, each on a thread of its own.
pub const MAX_LOOKUPS: usize = 64;
/// Names that wait to be looked up.
pub const MAX_WAITING_LOOKUPS: usize = 256;
/// Part of both that the names below one registered domain may use.
pub const DOMAIN_PART: usize = 4;
/// How long a caller waits for the addresses of a name. Shorter than the time for a whole connection, so that the reason is told.
pub const LOOKUP_TIMEOUT: Duration = Duration::from_secs(4);
/// Bytes of a thread's stack.
const STACK_BYTES: usize = 512 << 10;

/// Addresses of a name, or why there are none.
type Found = Result<Vec<SocketAddr>, String>;

/// Looks names up.
pub(crate) struct Lookups {
    look_up: Box<dyn Fn(&str) -> Found + Send + Sync>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Callers of each name that is looked up or waits for it.
    callers: HashMap<String, Vec<oneshot::Sender<Found>>>,
    waiting: VecDeque<String>,
    running: usize,
    running_of_domain: HashMap<String, usize>,
}

impl Lookups {
    /// Look-ups by the system's resolver.
    pub(crate) fn new() -> Arc<Self> {
        Self::by(|name| {
            let found = (name, 0).to_socket_addrs();
            found.map(Iterator::collect).map_err(|cause| cause.to_string())
        })
    }

    fn by(look_up: impl Fn(&str) -> Found + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { look_up: Box::new(look_up), state: Mutex::default() })
    }

    /// Finds the addresses of a name.
    ///
    /// # Errors
    /// When there are none, they do not come in time, or too many names are waited for.
    pub(crate) async fn find(self: &Arc<Self>, name: &str) -> Result<Vec<SocketAddr>, Unresolved> {
        let found = self.ask(name)?;
        match timeout(LOOKUP_TIMEOUT, found).await {
            Ok(Ok(found)) => found.map_err(Unresolved::Failed),
            Ok(Err(_)) => Err(Unresolved::Failed("the look-up was broken off".to_owned())),
            Err(_) => Err(Unresolved::TooSlow),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(self: &Arc<Self>, name: &str) -> Result<oneshot::Receiver<Found>, Unresolved> {
        let (caller, found) = oneshot::channel();
        let mut state = self.state();
        if let Some(callers) = state.callers.get_mut(name) {
            callers.retain(|caller| !caller.is_closed());
            callers.push(caller);
            return Ok(found);
        }
        state.drop_unwanted();
        let of_domain = state.waiting.iter().filter(|waiting| domain(waiting) == domain(name)).count();
        if state.waiting.len() >= MAX_WAITING_LOOKUPS || of_domain >= MAX_WAITING_LOOKUPS / DOMAIN_PART {
            return Err(Unresolved::TooMany);
        }
        state.callers.insert(name.to_owned(), vec![caller]);
        state.waiting.push_back(name.to_owned());
        let next = state.next();
        drop(state);
        self.start(next);
        Ok(found)
    }

    /// Looks a name up on a new thread, which goes on with what waits.
    fn start(self: &Arc<Self>, mut next: Option<String>) {
        while let Some(name) = next {
            let (own, first) = (self.clone(), name.clone());
            let run = move || {
                let mut next = Some(first);
                while let Some(name) = next {
                    let found = (own.look_up)(&name);
                    next = own.end(&name, &found);
                }
            };
            match thread::Builder::new().name("dns".to_owned()).stack_size(STACK_BYTES).spawn(run) {
                Ok(_) => return,
                Err(cause) => next = self.end(&name, &Err(format!("no thread can be started: {cause}"))),
            }
        }
    }

    /// Tells the callers of a name, and returns the next to be looked up.
    fn end(&self, name: &str, found: &Found) -> Option<String> {
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
            // A caller that has given up needs nothing.
            let _ = caller.send(found.clone());
        }
        next
    }
}

impl State {
    /// Drops waiting names that have no caller any more.
    fn drop_unwanted(&mut self) {
        let Self { callers, waiting, .. } = self;
        waiting.retain(|name| {
            let is_wanted = callers.get(name).is_some_and(|callers| callers.iter().any(|caller| !caller.is_closed()));
            if !is_wanted {
                callers.remove(name);
            }
            is_wanted
        });
    }

    /// Begins with the first waiting name whose domain has a thread left.
    fn next(&mut self) -> Option<String> {
        if self.running >= MAX_LOOKUPS {
            return None;
        }
        self.drop_unwanted();
        let most = MAX_LOOKUPS / DOMAIN_PART;
        let running = |name: &String| self.running_of_domain.get(domain(name)).copied().unwrap_or_default();
        let place = self.waiting.iter().position(|name| running(name) < most)?;
        let name = self.waiting.remove(place)?;
        self.running += 1;
        *self.running_of_domain.entry(domain(&name).to_owned()).or_default() += 1;
        Some(name)
    }
}

/// The registered domain that a name belongs to.
fn domain(name: &str) -> &str {
    psl::domain_str(name).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, atomic::AtomicUsize, atomic::Ordering};

    use super::*;

    /// A resolver that answers nothing about `silent.example` until it is told to, and counts what it is asked.
    #[derive(Default)]
    struct Silent {
        asked: AtomicUsize,
        speaks: (Mutex<bool>, Condvar),
    }

    impl Silent {
        fn lookups(self: &Arc<Self>) -> Arc<Lookups> {
            let own = self.clone();
            Lookups::by(move |name| {
                own.asked.fetch_add(1, Ordering::SeqCst);
                if name.ends_with("silent.com") {
                    let speaks = own.speaks.0.lock().unwrap();
                    drop(own.speaks.1.wait_while(speaks, |speaks| !*speaks).unwrap());
                }
                Ok(vec![([192, 0, 2, 1], 0).into()])
            })
        }

        fn speak(&self) {
            *self.speaks.0.lock().unwrap() = true;
            self.speaks.1.notify_all();
        }
    }

    #[tokio::test]
    async fn silent_domain_leaves_threads_to_others() {
        let silent = Arc::new(Silent::default());
        let lookups = silent.lookups();
        let (running, waiting) = (MAX_LOOKUPS / DOMAIN_PART, MAX_WAITING_LOOKUPS / DOMAIN_PART);
        let held: Vec<_> = (0..running + waiting).map(|n| lookups.ask(&format!("x{n}.silent.com")).unwrap()).collect();
        assert!(matches!(lookups.ask("more.silent.com"), Err(Unresolved::TooMany)));
        assert_eq!(lookups.state().running, running);
        assert_eq!(lookups.find("www.good.com").await.unwrap().len(), 1);
        // What nobody waits for any more is not looked up.
        drop(held);
        silent.speak();
        while lookups.state().running > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(silent.asked.load(Ordering::SeqCst), running + 1);
        let state = lookups.state();
        assert!(state.callers.is_empty() && state.waiting.is_empty() && state.running_of_domain.is_empty());
    }

    #[tokio::test]
    async fn one_name_is_looked_up_once_for_all() {
        let silent = Arc::new(Silent::default());
        let lookups = silent.lookups();
        let callers: Vec<_> = (0..500).map(|_| lookups.ask("www.silent.com").unwrap()).collect();
        silent.speak();
        for caller in callers {
            assert_eq!(caller.await.unwrap().unwrap().len(), 1);
        }
        assert_eq!(silent.asked.load(Ordering::SeqCst), 1);
    }
}
