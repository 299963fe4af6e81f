//! Work of the host for a waiting guest, outside of the guest's stack.
//!
//! Problem: the code of an HTTP client uses tens of KiB of stack. On the stack of a guest, these pages
//! return to the kernel at the end of the call, and the next call faults them in again.
//!
//! Guarantee: the work is polled by the task of its call, on the stack of the thread, and only while the
//! guest waits. It is dropped with the call.

use std::{
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::{BoxFuture, poll_fn};
use parking_lot::Mutex;

/// Work of the host for one guest. Its parts are few, because a call has few concurrent requests.
#[derive(Default)]
pub(crate) struct HostWork(Mutex<Vec<BoxFuture<'static, ()>>>);

impl HostWork {
    /// Does work for the guest, which waits for the result.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let result = Arc::new(Mutex::new(None));
        let kept = result.clone();
        let work = async move {
            let done = work.await;
            *kept.lock() = Some(done);
        };
        self.0.lock().push(Box::pin(work));
        // The guest is polled again when a part of the work is done.
        poll_fn(|_| result.lock().take().map_or(Poll::Pending, Poll::Ready)).await
    }

    /// Runs a guest, and the work for it while it waits.
    pub(crate) async fn run_guest<T>(&self, guest: impl Future<Output = T>) -> T {
        let mut guest = pin!(guest);
        poll_fn(|context| {
            loop {
                if let Poll::Ready(ended) = guest.as_mut().poll(context) {
                    return Poll::Ready(ended);
                }
                if self.poll(context).is_pending() {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    /// Polls every part of the work. Returns `Ready` if one is done.
    fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut parts = self.0.lock();
        let before = parts.len();
        parts.retain_mut(|part| Pin::new(part).poll(context).is_pending());
        if parts.len() < before {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn guest_gets_results_of_concurrent_work() {
        let work = HostWork::default();
        let (first, until_first) = oneshot::channel();
        let one = work.run(until_first);
        let two = work.run(async move {
            first.send(1).unwrap();
            2
        });
        let ended = work.run_guest(async { futures::join!(one, two) }).await;
        assert_eq!(ended, (Ok(1), 2));
    }

    #[tokio::test]
    async fn dropped_guest_drops_its_work() {
        let work = HostWork::default();
        let (held, mut dropped) = oneshot::channel::<()>();
        let mut guest = Box::pin(work.run_guest(work.run(async move {
            let _held = held;
            std::future::pending::<()>().await;
        })));
        assert!(futures::poll!(&mut guest).is_pending());
        drop(guest);
        drop(work);
        assert!(
            dropped
                .try_recv()
                .is_err_and(|end| end == oneshot::error::TryRecvError::Closed)
        );
    }
}
