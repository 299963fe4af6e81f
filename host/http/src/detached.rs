//! Work in tasks of its own, so that it completes even if its client disconnects.

use parking_lot::Mutex;
use tokio::{sync::oneshot, task::JoinSet};

use crate::errors;

/// Tasks of requests. A stopping server waits for them as for other requests,
/// and aborts them afterwards by dropping this.
#[derive(Default)]
pub struct Detached(Mutex<JoinSet<()>>);

impl Detached {
    /// Starts work in a task, which continues if the receiver of its output is dropped. The
    /// receiver gets an error if the work panics or a stopping server aborts it.
    pub(crate) fn start<T: Send + 'static>(
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

    /// Takes the tasks, to wait for them or to abort them by dropping the set.
    pub fn take(&self) -> JoinSet<()> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Runs work that consumes a one-time value to completion, even if the client disconnects: an
/// authorization code that was used without effect is lost.
pub async fn run_to_completion<T: Send + 'static>(
    work: impl Future<Output = app::Result<T>> + Send + 'static,
) -> app::Result<T> {
    #[expect(
        clippy::disallowed_methods,
        reason = "it is awaited here, and its requests have deadlines if the client disconnects"
    )]
    let task = tokio::spawn(work);
    task.await
        .unwrap_or_else(|_| Err(errors::internal("the task of a one-time value panicked")))
}
