//! Shares of projects in the processors.
//!
//! Problem: the runtime runs tasks in the order in which they become ready, without regard to their
//! projects. Hundreds of ready tasks of one project would run before a call of another.
//!
//! Guarantee: while several projects are active, the tasks of one that uses more than an equal
//! share of the processors, by more tasks than there are processors, run on threads of their own:
//! one fewer than there are processors, but at least one. They are never ahead of a task of another
//! project in a queue, and leave it a processor. A project that is alone uses all threads of
//! requests.
//!
//! The time of a project is that of the polls of its tasks. A task moves between two polls, with
//! everything that it has registered for, and what it starts belongs to the threads on which it runs.
//!
//! The threads have the normal priority. At a lower one, other processes could stop them for long
//! while they hold a lock that all projects need. Instead they offer their processor to others
//! after each poll, when they hold no such lock.
//!
//! Cost: with two processors, busy projects have one of them while another project is active.

use std::{
    collections::HashMap,
    future::{pending, poll_fn},
    io,
    panic::resume_unwind,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::Poll,
    thread::{self, available_parallelism},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{
    runtime::{Builder, Runtime},
    task::{JoinHandle, yield_now},
};

/// Time over which the use of processors is compared.
const SHARE_WINDOW: Duration = Duration::from_millis(20);
/// Time in a window up to which no project is busy.
const MAX_LIGHT_USE: Duration = Duration::from_millis(5);
/// Time for which a project stays busy after a window in which it was.
const BUSY_DURATION: Duration = Duration::from_millis(200);
/// Time for which a project counts as active after its last work.
const ACTIVE_DURATION: Duration = Duration::from_secs(10);
/// Maximum number of threads for blocking work of busy projects, such as reads of the store.
pub const MAX_BLOCKING_THREADS: usize = 8;
const THREAD_NAME: &str = "api-busy";

/// A task on the heap, which can be polled by several threads one after another.
type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The shares of all projects.
pub struct ProcessorShares {
    /// The threads of busy projects.
    threads: Option<Runtime>,
    processors: usize,
    began: Instant,
    /// End of the current window, in nanoseconds after `began`.
    window_end: AtomicU64,
    projects: Mutex<HashMap<Arc<str>, Arc<Share>>>,
}

/// The use of processors by a project. Times are in nanoseconds after the start of the server.
#[derive(Default)]
struct Share {
    /// Nanoseconds used in the current window.
    used: AtomicU64,
    /// Tasks that used them.
    tasks: AtomicUsize,
    used_at: AtomicU64,
    busy_until: AtomicU64,
}

/// The project of a task. A connection keeps that of its last request.
#[derive(Default)]
pub struct TaskOwner {
    project: Mutex<Option<(Arc<str>, Arc<Share>)>>,
    /// True if the project was set after the task chose its runtime.
    is_new: AtomicBool,
    /// End of the window in which the task was counted last.
    window: AtomicU64,
}

impl Share {
    fn is_active(&self, now: u64) -> bool {
        now < self.used_at.load(Ordering::Relaxed) + nanos(ACTIVE_DURATION)
    }
}

impl TaskOwner {
    fn is_busy(&self, now: u64) -> bool {
        let project = self.project.lock();
        project
            .as_ref()
            .is_some_and(|(_, share)| now < share.busy_until.load(Ordering::Relaxed))
    }
}

impl ProcessorShares {
    /// Starts the threads of busy projects. Fails if the system refuses a thread.
    pub fn start() -> io::Result<Self> {
        let processors = available_parallelism().map_or(1, usize::from);
        let threads = processors.saturating_sub(1).max(1);
        let threads = Builder::new_multi_thread()
            .thread_name(THREAD_NAME)
            .worker_threads(threads)
            .max_blocking_threads(MAX_BLOCKING_THREADS)
            .enable_all()
            .build()?;
        Ok(Self {
            threads: Some(threads),
            processors,
            began: Instant::now(),
            window_end: AtomicU64::new(0),
            projects: Mutex::default(),
        })
    }

    /// Returns the owner of a task of a project.
    #[must_use]
    pub fn owner(&self, project: &Arc<str>) -> TaskOwner {
        let owner = TaskOwner::default();
        self.set_owner(&owner, project);
        owner
    }

    /// Changes the project of a task, if it is another one.
    pub fn set_owner(&self, owner: &TaskOwner, project: &Arc<str>) {
        let mut own = owner.project.lock();
        if own.as_ref().is_none_or(|(known, _)| known != project) {
            let mut projects = self.projects.lock();
            let share = projects.entry(project.clone()).or_default();
            *own = Some((project.clone(), share.clone()));
            owner.is_new.store(true, Ordering::Relaxed);
        }
    }

    /// Ends the step of a task that has learned its project, if the project is busy, so that the rest runs
    /// on the threads of busy projects.
    pub async fn settle(&self, owner: &TaskOwner) {
        let is_new = owner.is_new.load(Ordering::Relaxed);
        if is_new && owner.is_new.swap(false, Ordering::Relaxed) && owner.is_busy(self.now()) {
            yield_now().await;
        }
    }

    /// Does the work of a task: on the threads of its caller, and on those of busy projects while its
    /// project is one.
    pub fn run<T: Send + 'static>(
        self: Arc<Self>,
        owner: Arc<TaskOwner>,
        work: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        self.run_boxed(owner, Box::pin(work))
    }

    async fn run_boxed<T: Send + 'static>(
        self: Arc<Self>,
        owner: Arc<TaskOwner>,
        mut work: Work<T>,
    ) -> T {
        loop {
            if let Some(done) = self.run_while(&owner, &mut work, false).await {
                return done;
            }
            let Some(threads) = &self.threads else {
                // It is there until the shares are dropped.
                return pending().await;
            };
            let shares = self.clone();
            let own = owner.clone();
            let moved = async move {
                let done = shares.run_while(&own, &mut work, true).await;
                (work, done)
            };
            let mut task = AbortOnDrop(threads.spawn(moved));
            match (&mut task.0).await {
                Ok((_, Some(done))) => return done,
                Ok((back, None)) => work = back,
                Err(broken) => match broken.try_into_panic() {
                    Ok(panic) => resume_unwind(panic),
                    // The threads end with the process.
                    Err(_) => return pending().await,
                },
            }
        }
    }

    /// Polls work while its project is busy, or while it is not. Returns `None` when the work has
    /// to move.
    async fn run_while<T>(&self, owner: &TaskOwner, work: &mut Work<T>, busy: bool) -> Option<T> {
        poll_fn(|context| {
            let start = self.now();
            if owner.is_busy(start) != busy {
                return Poll::Ready(None);
            }
            let polled = work.as_mut().poll(context);
            self.count_since(start, owner);
            if busy {
                thread::yield_now();
            }
            polled.map(Some)
        })
        .await
    }

    /// Counts the time of work that stays on the threads of its caller.
    pub async fn measure<T>(&self, owner: &TaskOwner, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            let start = self.now();
            let polled = work.as_mut().poll(context);
            self.count_since(start, owner);
            polled
        })
        .await
    }

    fn count_since(&self, start: u64, owner: &TaskOwner) {
        if let Some((_, share)) = &*owner.project.lock() {
            let now = self.now();
            let window = self.window_end.load(Ordering::Relaxed);
            if owner.window.swap(window, Ordering::Relaxed) != window {
                share.tasks.fetch_add(1, Ordering::Relaxed);
            }
            self.count(share, now - start, now);
        }
    }

    fn count(&self, share: &Share, used: u64, now: u64) {
        share.used.fetch_add(used, Ordering::Relaxed);
        share.used_at.store(now, Ordering::Relaxed);
        let end = self.window_end.load(Ordering::Relaxed);
        if now >= end && self.starts_window(end, now) {
            self.end_window(now);
        }
    }

    /// Starts the window after the one with this end. Returns false if another thread has.
    fn starts_window(&self, end: u64, now: u64) -> bool {
        let next = now + nanos(SHARE_WINDOW);
        self.window_end
            .compare_exchange(end, next, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Finds the projects that used more than an equal share in the window that ends. A project with no
    /// more tasks than there are processors is not busy, because few of its tasks wait in a queue.
    fn end_window(&self, now: u64) {
        let mut projects = self.projects.lock();
        projects.retain(|_, share| share.is_active(now) || Arc::strong_count(share) > 1);
        let active = projects.values().filter(|share| share.is_active(now));
        let used: Vec<_> = active
            .map(|share| (share, share.used.swap(0, Ordering::Relaxed)))
            .collect();
        let all: u64 = used.iter().map(|(_, used)| used).sum();
        let equal_share = all / used.len().max(1) as u64;
        for (share, used) in used {
            let tasks = share.tasks.swap(0, Ordering::Relaxed);
            if used > equal_share && used > nanos(MAX_LIGHT_USE) && tasks > self.processors {
                let until = now + nanos(BUSY_DURATION);
                share.busy_until.store(until, Ordering::Relaxed);
            }
        }
    }

    /// Returns the time since the start, in nanoseconds.
    fn now(&self) -> u64 {
        nanos(self.began.elapsed())
    }
}

impl Drop for ProcessorShares {
    /// Ends the threads without waiting, because the last owner may be a task, which must not block.
    fn drop(&mut self) {
        if let Some(threads) = self.threads.take() {
            threads.shutdown_background();
        }
    }
}

/// A task, aborted when its owner is dropped.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    fn share(owner: &TaskOwner) -> Arc<Share> {
        owner.project.lock().as_ref().unwrap().1.clone()
    }

    /// Ends a window in which projects used these milliseconds, each with a number of tasks. Returns the
    /// busy ones.
    fn busy_after(used: &[u64], tasks: usize) -> Vec<bool> {
        let shares = ProcessorShares::start().unwrap();
        let owners: Vec<_> = (0..used.len())
            .map(|number| shares.owner(&number.to_string().into()))
            .collect();
        let count = |owner: &TaskOwner, used: u64, now: u64| {
            let share = share(owner);
            share.tasks.fetch_add(tasks, Ordering::Relaxed);
            shares.count(&share, used, now);
        };
        let start = 1;
        let end = start + nanos(SHARE_WINDOW);
        count(&owners[0], 0, start);
        for (owner, used) in owners.iter().zip(used) {
            count(owner, used * 1_000_000, start);
        }
        count(&owners[0], 0, end);
        owners.iter().map(|owner| owner.is_busy(end)).collect()
    }

    #[test]
    fn project_beyond_equal_share_is_busy() {
        for (used, expected) in [
            (&[30][..], &[false][..]),
            (&[20, 8], &[true, false]),
            (&[15, 15], &[false, false]),
            (&[18, 1, 0], &[true, false, false]),
            (&[12, 13, 1], &[true, true, false]),
            (&[4, 1], &[false, false]),
        ] {
            assert_eq!(
                busy_after(used, usize::from(u16::MAX)),
                expected,
                "{used:?}"
            );
        }
    }

    #[test]
    fn project_with_few_tasks_is_not_busy() {
        assert_eq!(busy_after(&[20, 8], 0), [false, false]);
    }

    #[tokio::test]
    async fn task_counts_once_in_a_window() {
        let shares = ProcessorShares::start().unwrap();
        shares.window_end.store(u64::MAX, Ordering::Relaxed);
        let owner = shares.owner(&"a".into());
        for _ in 0..2 {
            shares.measure(&owner, async {}).await;
        }
        assert_eq!(share(&owner).tasks.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn busy_project_runs_on_threads_of_its_own() {
        let shares = Arc::new(ProcessorShares::start().unwrap());
        let owner = Arc::new(shares.owner(&"a".into()));
        let on_threads = || thread::current().name() == Some(THREAD_NAME);
        let share = share(&owner);
        let set_busy = move |until| share.busy_until.store(until, Ordering::Relaxed);
        let work = async move {
            let mut seen = vec![on_threads()];
            for until in [u64::MAX, 0] {
                set_busy(until);
                yield_now().await;
                seen.push(on_threads());
            }
            seen
        };
        assert_eq!(shares.run(owner, work).await, [false, true, false]);
    }

    #[tokio::test]
    async fn task_that_learns_its_project_moves() {
        let shares = Arc::new(ProcessorShares::start().unwrap());
        let project: Arc<str> = "a".into();
        let share = share(&shares.owner(&project));
        share.busy_until.store(u64::MAX, Ordering::Relaxed);
        let task = Arc::new(TaskOwner::default());
        let own_shares = shares.clone();
        let own_task = task.clone();
        let work = async move {
            own_shares.set_owner(&own_task, &project);
            own_shares.settle(&own_task).await;
            thread::current().name() == Some(THREAD_NAME)
        };
        assert!(shares.run(task, work).await);
    }

    #[tokio::test]
    async fn dropped_work_ends_on_any_thread() {
        let shares = Arc::new(ProcessorShares::start().unwrap());
        let owner = Arc::new(shares.owner(&"a".into()));
        share(&owner).busy_until.store(u64::MAX, Ordering::Relaxed);
        let (held, mut ended) = tokio::sync::mpsc::channel::<()>(1);
        let work = async move {
            let _held = held;
            pending::<()>().await;
        };
        let mut running = Box::pin(shares.run(owner, work));
        assert!(futures::poll!(&mut running).is_pending());
        drop(running);
        assert_eq!(ended.recv().await, None);
    }

    #[tokio::test]
    async fn blocking_work_of_busy_projects_is_limited() {
        let shares = ProcessorShares::start().unwrap();
        let threads = shares.threads.as_ref().unwrap();
        let (enter, entered) = mpsc::channel();
        let (leave, left) = mpsc::channel::<()>();
        let left = Arc::new(Mutex::new(left));
        for _ in 0..MAX_BLOCKING_THREADS {
            let enter = enter.clone();
            let left = left.clone();
            threads.spawn_blocking(move || {
                enter.send(()).unwrap();
                left.lock().recv().is_err()
            });
        }
        (0..MAX_BLOCKING_THREADS).for_each(|_| entered.recv().unwrap());
        let mut late = threads.spawn_blocking(|| 1);
        assert!(futures::poll!(&mut late).is_pending());
        drop(leave);
        assert_eq!(late.await.unwrap(), 1);
    }

    #[test]
    fn idle_projects_are_forgotten() {
        let shares = ProcessorShares::start().unwrap();
        drop(shares.owner(&"a".into()));
        let owner = shares.owner(&"b".into());
        shares.count(&share(&owner), 1, nanos(ACTIVE_DURATION));
        assert_eq!(shares.projects.lock().len(), 1);
    }
}
