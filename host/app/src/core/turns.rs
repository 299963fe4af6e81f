//! Turns of projects at the threads of requests.
//!
//! Problem: the runtime runs tasks in the order in which they become ready, without regard to their
//! projects. Hundreds of ready tasks of one project would run before a call of another.
//!
//! Guarantee: while several projects send requests, the tasks of one project leave a processor to the
//! others: one fewer than there are processors, but at least one, run or are ready to. The rest wait
//! outside of the runtime's queues. A task that waits for something else, such as the response of a
//! provider, has no turn in the meantime, so that any number of them can wait. A project that is alone
//! needs no turns.
//!
//! Cost: with two processors, a busy project has one of them while another is active.

use std::{
    collections::HashMap,
    future::poll_fn,
    hash::{BuildHasher, RandomState},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    thread::available_parallelism,
    time::Instant,
};

use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::yield_now,
};

/// Number of projects above which those that hold no permit are dropped.
const MAX_KEPT_PROJECTS: usize = 1_000;
/// Time in milliseconds for which a project counts as active after its last work.
const NEIGHBOR_MILLIS: u64 = 10_000;

/// Permits of each project.
pub(super) struct ProjectPermits {
    per_project: usize,
    projects: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
}

impl ProjectPermits {
    pub(super) fn new(per_project: usize) -> Self {
        Self {
            per_project,
            projects: Mutex::default(),
        }
    }

    /// Returns the permits of a project.
    pub(super) fn of(&self, project: &Arc<str>) -> Arc<Semaphore> {
        let mut projects = self.projects.lock();
        if let Some(permits) = projects.get(project) {
            return permits.clone();
        }
        if projects.len() >= MAX_KEPT_PROJECTS {
            projects.retain(|_, permits| Arc::strong_count(permits) > 1);
        }
        let permits = Arc::new(Semaphore::new(self.per_project));
        projects.insert(project.clone(), permits.clone());
        permits
    }
}

/// The turns of projects.
pub struct Turns {
    permits: ProjectPermits,
    hasher: RandomState,
    began: Instant,
    /// Hash of the project that did work last.
    last: AtomicU64,
    /// Time in milliseconds after `began` until which several projects count as active.
    shared_until: AtomicU64,
}

/// The project of a task. A connection knows it from its last request.
#[derive(Default)]
pub struct TaskOwner(Mutex<Option<Arc<str>>>);

impl TaskOwner {
    /// Returns the owner of a task of a project.
    pub(crate) fn project(project: &Arc<str>) -> Self {
        Self(Mutex::new(Some(project.clone())))
    }

    /// Changes the project, if it is another one.
    pub fn set(&self, project: &Arc<str>) {
        let mut own = self.0.lock();
        if own.as_ref() != Some(project) {
            *own = Some(project.clone());
        }
    }
}

impl Default for Turns {
    fn default() -> Self {
        let processors = available_parallelism().map_or(1, usize::from);
        Self::new(processors.saturating_sub(1).max(1))
    }
}

impl Turns {
    fn new(per_project: usize) -> Self {
        Self {
            permits: ProjectPermits::new(per_project),
            hasher: RandomState::new(),
            began: Instant::now(),
            last: AtomicU64::new(0),
            shared_until: AtomicU64::new(0),
        }
    }

    /// Does the work of a task, each step of it in a turn of its project. The task has to await it
    /// without a pause, because it may hold a turn between two polls.
    pub async fn pace<T>(&self, owner: &TaskOwner, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            let turn = self.turn(owner).await;
            let step = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await;
            drop(turn);
            match step {
                Poll::Ready(done) => return done,
                Poll::Pending => woken().await,
            }
        }
    }

    /// Waits for a turn. Returns none at once if the task needs none.
    async fn turn(&self, owner: &TaskOwner) -> Option<OwnedSemaphorePermit> {
        let project = owner.0.lock().clone()?;
        if !self.has_neighbors(&project) {
            return None;
        }
        let permits = self.permits.of(&project);
        // The semaphore is never closed.
        let turn = permits.acquire_owned().await.ok();
        // The turn begins once the runtime has seen all other tasks that are ready, of which those of
        // this project leave its queue to wait for a turn, and has looked for requests that have arrived.
        yield_now().await;
        turn
    }

    /// Notes work of a project. Returns true if another project had some lately.
    fn has_neighbors(&self, project: &Arc<str>) -> bool {
        let hash = self.hasher.hash_one(project);
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let last = self.last.load(Ordering::Relaxed);
        if last != hash {
            self.last.store(hash, Ordering::Relaxed);
            if last != 0 {
                let until = now.saturating_add(NEIGHBOR_MILLIS);
                self.shared_until.store(until, Ordering::Relaxed);
            }
        }
        now < self.shared_until.load(Ordering::Relaxed)
    }
}

/// Waits until the task is woken by what it has registered with before.
async fn woken() {
    let mut has_waited = false;
    poll_fn(|_| {
        if std::mem::replace(&mut has_waited, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, poll};
    use tokio::sync::Notify;

    use super::*;

    /// Returns one turn for each project, and two projects that are active.
    fn turns() -> (Turns, [Arc<str>; 2]) {
        let turns = Turns::new(1);
        let projects = ["a", "b"].map(Arc::<str>::from);
        let active = projects.each_ref().map(|one| turns.has_neighbors(one));
        assert_eq!(active, [false, true]);
        (turns, projects)
    }

    #[tokio::test]
    async fn task_that_waits_holds_no_turn() {
        let (turns, [project, _]) = turns();
        let owner = TaskOwner::project(&project);
        let gate = Notify::new();
        let mut waiting = Box::pin(turns.pace(&owner, gate.notified()));
        // It lets other tasks go first, and then begins.
        for _ in 0..2 {
            assert!(poll!(&mut waiting).is_pending());
        }
        assert_eq!(turns.pace(&owner, async { 1 }).await, 1);
        gate.notify_one();
        waiting.await;
    }

    #[tokio::test]
    async fn project_without_turns_leaves_others_alone() {
        let (turns, projects) = turns();
        let [one, other] = projects.each_ref().map(TaskOwner::project);
        let permits = turns.permits.of(&projects[0]);
        let held = permits.try_acquire().unwrap();
        let mut waits = Box::pin(turns.pace(&one, async { 1 }));
        assert!(poll!(&mut waits).is_pending());
        assert_eq!(turns.pace(&other, async { 2 }).await, 2);
        let unknown = TaskOwner::default();
        assert_eq!(turns.pace(&unknown, async { 3 }).now_or_never(), Some(3));
        drop(held);
        assert_eq!(waits.await, 1);
    }

    #[tokio::test]
    async fn project_alone_needs_no_turns() {
        let turns = Turns::new(0);
        let owner = TaskOwner::default();
        owner.set(&"a".into());
        for _ in 0..2 {
            assert_eq!(turns.pace(&owner, async { 1 }).now_or_never(), Some(1));
        }
    }
}
