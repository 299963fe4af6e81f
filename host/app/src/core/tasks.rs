//! Tasks that continue without their callers.
//!
//! A task that only the runtime knows is lost when the server stops. Each of these has an owner, which waits
//! for it or aborts it.

use parking_lot::Mutex;
use tokio::{sync::oneshot, task::JoinSet};

/// Tasks of one owner. They are aborted when this is dropped.
#[derive(Default)]
pub struct Tasks(Mutex<JoinSet<()>>);

impl Tasks {
    /// Starts work in a task, which continues if the receiver of its output is dropped. The
    /// receiver gets an error if the work panics or is aborted.
    pub fn start<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (done, output) = oneshot::channel();
        let mut tasks = self.0.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            // The receiver may have been dropped.
            let _ = done.send(work.await);
        });
        output
    }

    /// Returns the number of running tasks.
    pub(crate) fn count(&self) -> usize {
        let mut tasks = self.0.lock();
        while tasks.try_join_next().is_some() {}
        tasks.len()
    }

    /// Waits until all tasks have ended, also those that start meanwhile. Aborts them if it is dropped
    /// before.
    pub async fn finish(&self) {
        loop {
            let mut tasks = std::mem::take(&mut *self.0.lock());
            if tasks.is_empty() {
                return;
            }
            while tasks.join_next().await.is_some() {}
        }
    }

    /// Aborts all tasks.
    pub fn abort(&self) {
        self.0.lock().abort_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn finish_waits_for_all_tasks() {
        let tasks = Arc::new(Tasks::default());
        let (release, released) = oneshot::channel::<()>();
        let others = tasks.clone();
        let first = tasks.start(async move {
            released.await.unwrap();
            [others.start(async { 7 })]
        });
        assert_eq!(tasks.count(), 1);
        let mut finish = Box::pin(tasks.finish());
        assert!(finish.as_mut().now_or_never().is_none());
        release.send(()).unwrap();
        finish.await;
        assert_eq!(tasks.count(), 0);
        let [second] = first.await.unwrap();
        assert_eq!(second.await, Ok(7));
    }

    #[tokio::test]
    async fn dropped_finish_aborts_the_tasks() {
        let tasks = Tasks::default();
        let output = tasks.start(std::future::pending::<()>());
        assert!(tasks.finish().now_or_never().is_none());
        output.await.unwrap_err();
    }
}
