//! Clock tick by which compiled code notices that time has passed.
//!
//! One thread raises the engine's epoch every two milliseconds while guests live, and sleeps
//! otherwise, so an idle service does not wake up. The thread waits a moment before it sleeps, so
//! that calls in quick succession do not wake it each time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread::{self, JoinHandle, Thread},
    time::Duration,
};

use wasmtime::Engine;

/// Interval between two ticks.
pub(crate) const TICK_INTERVAL: Duration = Duration::from_millis(2);
/// Number of ticks without a guest before the thread sleeps.
const IDLE_TICKS_BEFORE_SLEEP: u32 = 50;

/// Tick thread that runs until this value is dropped.
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    handle: Thread,
}

struct Shared {
    active: AtomicUsize,
    asleep: AtomicBool,
    stop: AtomicBool,
}

/// Guard that keeps the ticks running.
pub(crate) struct ActiveGuard(Arc<Shared>);

impl Ticker {
    pub(crate) fn start(engine: &Engine) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            active: AtomicUsize::new(0),
            asleep: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        });
        let engine = engine.clone();
        let seen = shared.clone();
        let thread = thread::Builder::new()
            .name("sandbox-ticker".to_owned())
            .spawn(move || run(&engine, &seen))?;
        Ok(Self {
            shared,
            handle: thread.thread().clone(),
            thread: Some(thread),
        })
    }

    /// Registers a guest and wakes the tick thread if it sleeps.
    pub(crate) fn enter(&self) -> ActiveGuard {
        self.shared.active.fetch_add(1, SeqCst);
        if self.shared.asleep.load(SeqCst) {
            self.handle.unpark();
        }
        ActiveGuard(self.shared.clone())
    }
}

impl Drop for ActiveGuard {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, SeqCst);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stop.store(true, SeqCst);
        self.handle.unpark();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(engine: &Engine, shared: &Shared) {
    let mut idle = 0;
    while !shared.stop.load(SeqCst) {
        if shared.active.load(SeqCst) > 0 {
            idle = 0;
        } else if idle < IDLE_TICKS_BEFORE_SLEEP {
            idle += 1;
        } else {
            // This is set before the second check, so that a guest that enters in between sees it
            // and wakes this thread.
            shared.asleep.store(true, SeqCst);
            if shared.active.load(SeqCst) == 0 && !shared.stop.load(SeqCst) {
                thread::park();
            }
            shared.asleep.store(false, SeqCst);
            idle = 0;
            continue;
        }
        thread::sleep(TICK_INTERVAL);
        engine.increment_epoch();
    }
}
