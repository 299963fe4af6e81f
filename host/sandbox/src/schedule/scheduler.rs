//! Distributes guests over threads.
//!
//! Problem: moving a call to another thread costs as much as a whole short call. A guest that
//! computes for seconds would starve everything else on its thread.
//!
//! Guarantee: short calls never pay for a move, and a long call never holds a thread of the caller
//! for more than about two ticks.
//!
//! A call starts on the caller's thread. After more than a tick of processor time the tick callback
//! requests a move. The rest runs on the guest threads, which have a lower priority, and takes
//! turns of one tick with other long calls. Turns are fair between tenants, because only a few
//! guests of one tenant compete for a thread at any time.
//!
//! A ready guest that waits for its turn or for the machine is delayed by others. That time does
//! not count as its own, up to a limit; otherwise a few busy neighbors would make each other fail.

use std::{
    any::Any,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::Semaphore,
    task::JoinHandle,
    time::{sleep_until, timeout_at},
};

use super::{
    meter::{MAX_HELD_UP, Meter},
    ticker::TICK_INTERVAL,
};

/// Niceness of the guest threads, which lowers their priority when processors are scarce.
const GUEST_NICENESS: i32 = 10;

/// Future of a guest and everything it owns.
pub(crate) type Guest<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Reason that a guest did not finish.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// The wall-clock time is over.
    Timeout,
    /// The maximum time for which the guest may be held up is over, too.
    HeldUp,
    /// Host code panicked.
    Panicked(String),
}

/// Threads for long-running guests.
pub(crate) struct GuestThreads {
    handle: Handle,
    runtime: Option<Runtime>,
}

impl GuestThreads {
    /// Starts this number of threads; 0 means one per processor.
    pub(crate) fn start(threads: usize) -> std::io::Result<Self> {
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            some => some,
        };
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("sandbox-guest")
            // On Linux this is the priority of the calling thread. If the process may not change
            // it, guests keep the normal priority.
            .on_thread_start(|| {
                let _ = rustix::process::setpriority_process(None, GUEST_NICENESS);
            })
            .enable_all()
            .build()?;
        Ok(Self {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for GuestThreads {
    /// Shuts down without waiting, because the last owner may be a task, which must not block.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runs a guest to its end or to `deadline`. The guest is dropped when this returns or is itself
/// dropped.
pub(crate) async fn run<T: Send + 'static>(
    guest: Guest<T>,
    meter: Arc<Meter>,
    threads: &Handle,
    cpu_permits: Arc<Semaphore>,
    deadline: Instant,
) -> Result<T, Stopped> {
    let mut guest = Caught(Some(guest));
    // The caller's thread, too, may lose its processor in the middle of a poll.
    let short = poll_fn(
        |cx| match meter.measure_turn(|| Pin::new(&mut guest).poll(cx)) {
            Poll::Ready(ended) => Poll::Ready(Some(ended)),
            Poll::Pending if meter.is_long() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        },
    );
    let ended = run_until(deadline, short).await;
    match ended {
        Some(Some(ended)) => ended,
        None => Err(Stopped::Timeout),
        // On the heap, so that the futures of short calls are small.
        Some(None) => Box::pin(run_long(guest, meter, threads, cpu_permits, deadline)).await,
    }
}

/// Runs the rest of a long-running guest on the guest threads.
async fn run_long<T: Send + 'static>(
    guest: Caught<T>,
    meter: Arc<Meter>,
    threads: &Handle,
    cpu_permits: Arc<Semaphore>,
    deadline: Instant,
) -> Result<T, Stopped> {
    meter.set_ready();
    let mut task = AbortOnDrop(threads.spawn(run_in_turns(guest, meter.clone(), cpu_permits)));
    let joined = loop {
        let wake_at = meter
            .extended_deadline(deadline)
            .max(Instant::now() + TICK_INTERVAL);
        if let Ok(joined) = timeout_at(wake_at.into(), &mut task.0).await {
            break joined;
        }
        if meter.extended_deadline(deadline) <= Instant::now() {
            break abort_guest(&mut task.0, &meter).await;
        }
    };
    joined.unwrap_or_else(|failed| Err(Stopped::Panicked(failed.to_string())))
}

/// Ends a guest whose time is over, unless it has finished meanwhile.
async fn abort_guest<T>(
    task: &mut JoinHandle<Result<T, Stopped>>,
    meter: &Meter,
) -> Result<Result<T, Stopped>, tokio::task::JoinError> {
    task.abort();
    // The abort takes at most one turn; until then the guest holds its memory.
    match task.await {
        Err(cancelled) if cancelled.is_cancelled() => Ok(Err(if meter.held_up() < MAX_HELD_UP {
            Stopped::Timeout
        } else {
            Stopped::HeldUp
        })),
        joined => joined,
    }
}

/// Returns the output of `future`, or `None` at `deadline`. It sets no timer if the future is ready
/// immediately.
async fn run_until<F: Future>(deadline: Instant, future: F) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    let mut timer = None;
    poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(deadline.into())));
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(None)
    })
    .await
}

/// Polls a long-running guest, each time with one of its tenant's permits, which are issued in the
/// order of the requests.
async fn run_in_turns<T>(
    mut guest: Caught<T>,
    meter: Arc<Meter>,
    cpu_permits: Arc<Semaphore>,
) -> Result<T, Stopped> {
    loop {
        meter.set_ready();
        let permit = cpu_permits.clone().acquire_owned().await;
        // One poll runs until the guest ends, waits for something, or its turn is over.
        let ended =
            poll_fn(|cx| Poll::Ready(meter.measure_turn(|| Pin::new(&mut guest).poll(cx)))).await;
        drop(permit);
        if let Poll::Ready(ended) = ended {
            return ended;
        }
        if meter.has_yielded() {
            meter.set_ready();
        }
        // The guest's own waker, registered in the poll above, wakes this task.
        woken().await;
    }
}

/// Waits until this task is polled again.
async fn woken() {
    let mut woken = false;
    poll_fn(|_| {
        if std::mem::replace(&mut woken, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

/// Guest whose panics are caught.
struct Caught<T>(Option<Guest<T>>);

impl<T> Future for Caught<T> {
    type Output = Result<T, Stopped>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let slot = &mut self.0;
        let Some(guest) = slot else {
            return Poll::Ready(Err(Stopped::Panicked("polled after its end".to_owned())));
        };
        match catch_unwind(AssertUnwindSafe(|| guest.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(ended)) => {
                *slot = None;
                Poll::Ready(Ok(ended))
            }
            Err(panic) => {
                *slot = None;
                Poll::Ready(Err(Stopped::Panicked(panic_message(panic.as_ref()))))
            }
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

/// Task, aborted when its owner is dropped.
pub(crate) struct AbortOnDrop<T>(pub(crate) JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
