//! Work of the host for a waiting guest, outside of the guest's stack.
//!
//! Problem: the code of an HTTP client uses tens of KiB of stack. On the stack of a guest, a call that
//! waits keeps these pages, and the next call faults them in again, because they return to the kernel.
//!
//! Guarantee: the work is polled by the task of its call, on the stack of the thread, and only while the
//! guest waits. It is dropped with the call. A guest that waits for one part alone is not polled before
//! that part ends: each poll switches to its stack.

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use futures::future::{BoxFuture, FutureExt, poll_fn};
use parking_lot::Mutex;

/// Work of the host for one guest, in parts with results of the type `T`. The parts are few, because a call
/// has few concurrent requests.
pub(crate) struct HostWork<T>(Mutex<Vec<Part<T>>>);

enum Part<T> {
    Running {
        work: BoxFuture<'static, T>,
        /// True if the guest waits for nothing else.
        blocks_guest: bool,
        /// Future of the guest that waits for the result.
        waiter: Option<Waker>,
    },
    Done(T),
    /// The result was taken. The next work reuses the position.
    Taken,
}

impl<T> Default for HostWork<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Part<T> {
    /// Polls running work. Returns true if it ended. The guest is polled next, so only a future within it
    /// that has a waker of its own is woken.
    fn ends(&mut self, context: &mut Context<'_>) -> bool {
        let Self::Running { work, waiter, .. } = self else {
            return false;
        };
        let Poll::Ready(result) = work.poll_unpin(context) else {
            return false;
        };
        let other = waiter.take().filter(|own| !own.will_wake(context.waker()));
        if let Some(waiter) = other {
            waiter.wake();
        }
        *self = Self::Done(result);
        true
    }

    /// Takes the result if the work has ended.
    fn take(&mut self, context: &Context<'_>) -> Poll<T> {
        if let Self::Running { waiter, .. } = self {
            *waiter = Some(context.waker().clone());
            return Poll::Pending;
        }
        match std::mem::replace(self, Self::Taken) {
            Self::Done(result) => Poll::Ready(result),
            Self::Running { .. } | Self::Taken => Poll::Pending,
        }
    }
}

impl<T> HostWork<T> {
    /// Does work for the guest, which waits for the result, and with `blocks_guest` for nothing else.
    pub(crate) async fn run(&self, work: BoxFuture<'static, T>, blocks_guest: bool) -> T {
        let place = self.add(Part::Running {
            work,
            blocks_guest,
            waiter: None,
        });
        poll_fn(|context| self.0.lock()[place].take(context)).await
    }

    fn add(&self, part: Part<T>) -> usize {
        let mut parts = self.0.lock();
        let free = parts.iter().position(|part| matches!(part, Part::Taken));
        let place = free.unwrap_or(parts.len());
        match free {
            Some(place) => parts[place] = part,
            None => parts.push(part),
        }
        place
    }

    /// Runs a guest, and the work for it while it waits.
    pub(crate) async fn run_guest<R>(&self, guest: impl Future<Output = R>) -> R {
        let mut guest = pin!(guest);
        poll_fn(|context| {
            loop {
                if !self.blocks_guest()
                    && let Poll::Ready(ended) = guest.as_mut().poll(context)
                {
                    return Poll::Ready(ended);
                }
                if !self.advances(context) {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    fn blocks_guest(&self) -> bool {
        let parts = self.0.lock();
        parts.iter().any(|part| {
            matches!(
                part,
                Part::Running {
                    blocks_guest: true,
                    ..
                }
            )
        })
    }

    /// Polls every part of the work. Returns true if one ended.
    fn advances(&self, context: &mut Context<'_>) -> bool {
        let mut parts = self.0.lock();
        let ended = parts
            .iter_mut()
            .filter_map(|part| part.ends(context).then_some(()));
        ended.count() > 0
    }
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt, stream};
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn guest_gets_results_of_concurrent_work() {
        let work = HostWork::default();
        let (first, until_first) = oneshot::channel();
        let parts = [
            work.run(async { until_first.await.unwrap() }.boxed(), false)
                .boxed(),
            work.run(
                async move {
                    first.send(1).unwrap();
                    2
                }
                .boxed(),
                false,
            )
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
        let waiting = async move {
            let _held = held;
            std::future::pending::<()>().await;
        };
        let mut guest = Box::pin(work.run_guest(work.run(waiting.boxed(), true)));
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
