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

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::{
    Result,
    core::{errors, keyed_limit::KeyedLimit},
};

/// Maximum size of a body whose work is done by the thread of its request, in bytes.
pub const MAX_INLINE_BYTES: usize = 64 << 10;
/// Number of bytes that are copied or hashed in about the time in which one byte is parsed and checked.
const SCANNED_PER_PARSED_BYTE: usize = 8;
/// Maximum size of a body that the thread of its request copies or hashes, in bytes.
pub const MAX_INLINE_SCAN_BYTES: usize = SCANNED_PER_PARSED_BYTE * MAX_INLINE_BYTES;
/// Maximum number of larger bodies that are worked on at the same time: the number of threads.
pub const MAX_LARGE_BODIES: usize = 4;
/// Maximum number of larger bodies of one project that are worked on at the same time.
pub const MAX_LARGE_BODIES_PER_PROJECT: usize = 2;
/// Niceness of the threads, which lowers their priority when processors are scarce.
const THREAD_NICENESS: i32 = 10;
/// Time without work after which a thread is tidied.
const IDLE_TIME: Duration = Duration::from_secs(1);

type Job = Box<dyn FnOnce() + Send>;

/// The threads for work on large bodies, and the turns on them.
pub struct LargeWork {
    jobs: mpsc::Sender<Job>,
    all: Arc<Semaphore>,
    projects: KeyedLimit<Arc<str>>,
}

impl LargeWork {
    /// Starts the threads. Each runs `tidy` when it has had no work for a second. Fails if the system
    /// refuses a thread.
    pub fn start(tidy: fn()) -> io::Result<Self> {
        let (jobs, waiting) = mpsc::channel::<Job>();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..MAX_LARGE_BODIES {
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
            all: Arc::new(Semaphore::new(MAX_LARGE_BODIES)),
            projects: KeyedLimit::new(MAX_LARGE_BODIES_PER_PROJECT),
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
        let turn = self.turn(project).await.ok_or_else(ended)?;
        let (done, result) = oneshot::channel::<thread::Result<T>>();
        // The thread releases the permit, because the request may be gone before the work is done.
        let job: Job = Box::new(move || {
            let outcome = catch_unwind(AssertUnwindSafe(work));
            drop(turn);
            // The receiver is gone if the request has ended.
            let _ = done.send(outcome);
        });
        self.jobs.send(job).map_err(|_| ended())?;
        let outcome = result.await.map_err(|_| ended())?;
        outcome.map_err(|_| errors::internal("the work on a large body panicked"))
    }

    /// Waits for a permit of the project and one of all projects. Permits are granted in the order
    /// of arrival, and no project waits with more bodies than it may work on, so a project waits
    /// for few turns of each other.
    async fn turn(&self, project: &Arc<str>) -> Option<[OwnedSemaphorePermit; 2]> {
        let of_project = self.projects.acquire(project).await?;
        let of_all = self.all.clone().acquire_owned().await.ok()?;
        Some([of_project, of_all])
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
