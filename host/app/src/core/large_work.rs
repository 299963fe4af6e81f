//! Work that grows with the size of a body, such as parsing, checking and hashing it.
//!
//! Problem: a few large bodies of one project would keep all processors busy, and take many times
//! their size in memory.
//!
//! Guarantee: such work leaves the threads of requests to others. It runs on a few threads of lower
//! priority, and projects take turns.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use gate::{Capacity, Gate, Permit, Queue, Shares};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::{Result, core::errors};

/// Maximum size of a body whose work is done by the thread of its request, in bytes.
pub const MAX_INLINE_BYTES: usize = 64 << 10;
/// Number of bytes that are copied or hashed in about the time in which one byte is parsed and checked.
const SCANNED_PER_PARSED_BYTE: usize = 8;
/// Maximum size of a body that the thread of its request copies or hashes, in bytes.
pub const MAX_INLINE_SCAN_BYTES: usize = SCANNED_PER_PARSED_BYTE * MAX_INLINE_BYTES;
/// Shares of projects in the larger bodies that are worked on at the same time. The total is the
/// number of threads.
pub const LARGE_BODY_SHARES: Shares = Shares {
    total: 4,
    reserve: 0,
    base: 1,
    cap: 2,
};
/// Niceness of the threads, which lowers their priority when processors are scarce.
const THREAD_NICENESS: i32 = 10;
/// Time without work after which a thread is tidied.
const IDLE_TIME: Duration = Duration::from_secs(1);

type Job = Box<dyn FnOnce() + Send>;

/// The threads for work on large bodies, and the permits to use them.
pub struct LargeWork {
    jobs: mpsc::Sender<Job>,
    permits: Gate<Arc<str>>,
}

impl LargeWork {
    /// Starts the threads. Each runs `tidy` when it has had no work for a second. Fails if the system
    /// refuses a thread.
    pub fn start(tidy: fn()) -> io::Result<Self> {
        let (jobs, waiting) = mpsc::channel::<Job>();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..LARGE_BODY_SHARES.total {
            let waiting = waiting.clone();
            thread::Builder::new()
                .name("large-work".to_owned())
                .spawn(move || {
                    // On Linux this is the priority of the calling thread. If the process may not
                    // change it, the work keeps the normal priority.
                    let _ = rustix::process::setpriority_process(None, THREAD_NICENESS);
                    do_jobs(&waiting, tidy);
                })?;
        }
        Ok(Self {
            jobs,
            permits: Gate::new(LARGE_BODY_SHARES),
        })
    }

    /// Does work that grows with the size of a body: directly for a small body, on a separate
    /// thread for a larger one. Fails if the work panics.
    pub async fn run<T: Send + 'static>(
        &self,
        project: &Arc<str>,
        size: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        if size <= MAX_INLINE_BYTES {
            return Ok(work());
        }
        Box::pin(self.run_in_turn(project, work)).await
    }

    /// Does work as [`LargeWork::run`] does that passes over a body once and builds nothing of its values,
    /// such as copying it, hashing it or finding its members.
    pub async fn scan<T: Send + 'static>(
        &self,
        project: &Arc<str>,
        size: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let parsed_bytes = size.div_ceil(SCANNED_PER_PARSED_BYTE);
        self.run(project, parsed_bytes, work).await
    }

    /// Does work whose cost does not follow from the size of a body, on a separate thread, under a
    /// permit of the project. Fails if the work panics.
    pub async fn run_in_turn<T: Send + 'static>(
        &self,
        project: &Arc<str>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let permit = self.permit(project).await?;
        let (done, result) = oneshot::channel::<thread::Result<T>>();
        // The thread releases the permit, because the request may be gone before the work is done.
        let job: Job = Box::new(move || {
            let outcome = catch_unwind(AssertUnwindSafe(work));
            drop(permit);
            // The receiver is gone if the request has ended.
            let _ = done.send(outcome);
        });
        self.jobs.send(job).map_err(|_| ended())?;
        let outcome = result.await.map_err(|_| ended())?;
        outcome.map_err(|_| errors::internal("the work on a large body panicked"))
    }

    /// Waits for a permit, for as long as the caller does.
    async fn permit(&self, project: &Arc<str>) -> Result<Permit<Arc<str>>> {
        let permit = self.permits.acquire(project, Queue::time(Duration::MAX));
        permit
            .await
            .map_err(|busy| errors::busy(Capacity::Calls, busy))
    }
}

fn ended() -> crate::Error {
    errors::unavailable("the threads for large bodies have ended")
}

/// Does jobs until no more can come. Runs `tidy` once whenever no job has arrived for a while.
fn do_jobs(waiting: &Mutex<mpsc::Receiver<Job>>, tidy: fn()) {
    while let Some(job) = next_job(waiting, tidy) {
        job();
    }
}

fn next_job(waiting: &Mutex<mpsc::Receiver<Job>>, tidy: fn()) -> Option<Job> {
    next_job_soon(waiting).or_else(|| {
        tidy();
        waiting.lock().recv().ok()
    })
}

fn next_job_soon(waiting: &Mutex<mpsc::Receiver<Job>>) -> Option<Job> {
    let waiting = waiting.try_lock_for(IDLE_TIME)?;
    waiting.recv_timeout(IDLE_TIME).ok()
}

#[cfg(test)]
mod tests;
