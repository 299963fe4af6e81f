//! Signals of this process's commits, for tasks that wait for records to appear.
//!
//! A signal remembers a commit that happens while nobody waits. A task that creates the signal
//! before it looks for records therefore misses no commit.

use crate::{Batch, Collection};
use parking_lot::Mutex;
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{sync::Notify, time::timeout};

/// A signal, given after each commit that writes records of one collection.
#[derive(Debug)]
pub struct CommitSignal(Arc<Notify>);

impl CommitSignal {
    /// Waits for a commit after the last call, or after the creation of the signal.
    pub async fn committed(&self) {
        self.0.notified().await;
    }

    /// Waits for a commit, at most for `interval`. Returns false without one: other processes on the
    /// same store may have committed then.
    pub async fn committed_within(&self, interval: Duration) -> bool {
        timeout(interval, self.committed()).await.is_ok()
    }
}

/// The signals of a store.
#[derive(Debug, Default)]
pub(crate) struct CommitSignals(Mutex<Vec<(&'static str, Weak<Notify>)>>);

impl CommitSignals {
    pub(crate) fn subscribe(&self, collection: &'static Collection) -> CommitSignal {
        let signal = Arc::new(Notify::new());
        let mut all = self.0.lock();
        all.retain(|(_, signal)| signal.strong_count() > 0);
        all.push((collection.name, Arc::downgrade(&signal)));
        CommitSignal(signal)
    }

    /// Returns the signals to give once a batch is committed.
    pub(crate) fn for_batch(&self, batch: &Batch) -> Vec<Arc<Notify>> {
        self.of_collections(|name| {
            let mut writes = batch.writes.iter();
            writes.any(|write| write.collection.name == name && write.step.body().is_some())
        })
    }

    /// Returns the signals of a collection.
    pub(crate) fn of_collection(&self, collection: &'static Collection) -> Vec<Arc<Notify>> {
        self.of_collections(|name| name == collection.name)
    }

    fn of_collections(&self, is_meant: impl Fn(&str) -> bool) -> Vec<Arc<Notify>> {
        let all = self.0.lock();
        let meant = all.iter().filter(|(name, _)| is_meant(name));
        meant.filter_map(|(_, signal)| signal.upgrade()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, Time};
    use futures::FutureExt as _;

    static THINGS_COLLECTION: Collection = Collection {
        name: "things",
        erasure: crate::Erasure::Project,
        fields: &[],
    };
    static OTHERS_COLLECTION: Collection = Collection {
        name: "others",
        erasure: crate::Erasure::Project,
        fields: &[],
    };

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Thing {}

    impl Document for Thing {
        const COLLECTION: &'static Collection = &THINGS_COLLECTION;
    }

    #[test]
    fn commit_before_the_wait_is_remembered() {
        let signals = CommitSignals::default();
        let things = signals.subscribe(&THINGS_COLLECTION);
        let others = signals.subscribe(&OTHERS_COLLECTION);
        let batch = Batch::at(Time(0)).insert("p", "t", &Thing {});
        for signal in signals.for_batch(&batch) {
            signal.notify_one();
        }
        assert!(things.committed().now_or_never().is_some());
        assert!(things.committed().now_or_never().is_none(), "it is spent");
        assert!(others.committed().now_or_never().is_none());
        for signal in signals.of_collection(&OTHERS_COLLECTION) {
            signal.notify_one();
        }
        assert!(others.committed().now_or_never().is_some());
        assert!(things.committed().now_or_never().is_none());
        drop(things);
        assert!(signals.for_batch(&batch).is_empty());
    }
}
