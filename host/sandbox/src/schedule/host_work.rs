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
    task::{Context, Poll, Waker},
};

use futures::future::{BoxFuture, poll_fn};
use parking_lot::Mutex;

/// Work of the host for one guest. Its parts are few, because a call has few concurrent requests.
#[derive(Default)]
pub(crate) struct HostWork(Mutex<Vec<BoxFuture<'static, ()>>>);

/// The result of a part of the work, and who waits for it.
struct Answer<T> {
    result: Option<T>,
    waiter: Option<Waker>,
}

impl<T> Answer<T> {
    fn poll(&mut self, context: &Context<'_>) -> Poll<T> {
        self.waiter = Some(context.waker().clone());
        self.result.take().map_or(Poll::Pending, Poll::Ready)
    }

    /// Keeps the result. The guest is polled next; only a future within it that has a waker of its own is
    /// woken.
    fn set(&mut self, result: Option<T>, context: &Context<'_>) {
        self.result = result;
        let waiter = self.waiter.take();
        if let Some(waiter) = waiter.filter(|waiter| !waiter.will_wake(context.waker())) {
            waiter.wake();
        }
    }
}

impl HostWork {
    /// Does work for the guest, which waits for the result.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let answer = Arc::new(Mutex::new(Answer {
            result: None,
            waiter: None,
        }));
        let own = answer.clone();
        let work = async move {
            let mut result = Some(work.await);
            poll_fn(|context| {
                own.lock().set(result.take(), context);
                Poll::Ready(())
            })
            .await;
        };
        self.0.lock().push(Box::pin(work));
        poll_fn(|context| answer.lock().poll(context)).await
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
    use futures::{FutureExt, StreamExt, stream};
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn guest_gets_results_of_concurrent_work() {
        let work = HostWork::default();
        let (first, until_first) = oneshot::channel();
        let parts = [
            work.run(async { until_first.await.unwrap() }).boxed(),
            work.run(async move {
                first.send(1).unwrap();
                2
            })
            .boxed(),
        ];
        // It polls only the parts that were woken.
        let all = stream::iter(parts).buffered(2).collect::<Vec<_>>();
        assert_eq!(work.run_guest(all).await, [1, 2]);
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
