//! The writer of the log, which makes entered records durable in groups.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures::future::join_all;
use store::{Batch, CommitError, Store, Time};
use tokio::{
    sync::{Mutex, mpsc},
    task::yield_now,
    time::timeout,
};

use super::{
    FlushSignal, MAX_GROUP_RECORDS, Message, Pending,
    cassette::{PendingCassette, StoredCassette},
    page::{Details, Page},
    paging::split_into_pages,
};
use crate::{
    Error, Result,
    catalog::Usage,
    core::{
        clock::Clock,
        vault::{SealContext, Vault},
    },
    projects::quotas::{Kind, Quotas},
};

/// Maximum size of the records that are written together, in bytes, unless a single record has
/// more.
pub const MAX_GROUP_BYTES: usize = 1 << 20;
/// Maximum number of groups that are committed at the same time.
const MAX_CONCURRENT_COMMITS: usize = 4;
/// Log line of a record that exceeds its project's quota.
const PAST_QUOTA_NOTE: &str = "arguments, data, lines and requests are omitted: the log of the project exceeds `limits.records_mib`";

/// Size of a record on a page in most cases, in bytes.
const RECORD_CAPACITY: usize = 512;
/// Maximum time for which a record waits for others.
const MAX_WRITE_DELAY: Duration = Duration::from_millis(20);
/// Time before a failed write is retried.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// Interval at which execution counts are written.
const COUNT_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of retries while the server is stopping.
const MAX_FINAL_ATTEMPTS: u32 = 6;

/// The writer of entered records. It ends when every [`Log`](super::Log) is dropped and everything
/// is written.
pub struct Writer {
    pub(super) receiver: mpsc::Receiver<Message>,
    pub(super) flush_signal: Arc<FlushSignal>,
    pub(super) store: Store,
    pub(super) vault: Arc<Vault>,
    pub(super) clock: Clock,
    pub(super) usage: Arc<Usage>,
    pub(super) quotas: Arc<Quotas>,
    /// The time at which the execution counts were last written.
    pub(super) counts_saved_at: Time,
    /// Locked while a group is sealed, so that the groups before it are committed in the meantime
    /// instead of being sealed at the same time.
    pub(super) sealing: Mutex<()>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteOutcome {
    Written,
    /// The store refuses the records permanently.
    Refused,
    /// The server stopped before the records were written.
    Stopped,
}

impl Writer {
    /// Writes entries until no more can come.
    pub async fn run(mut self) {
        let mut group = Vec::with_capacity(MAX_GROUP_RECORDS);
        while self.receive(&mut group).await {
            // If the channel is closed, no signal can follow, so the received entries are written
            // immediately.
            if group.len() < MAX_GROUP_RECORDS
                && !group.iter().any(Message::has_waiter)
                && !self.receiver.is_closed()
            {
                // The group is written in either case, on timeout or on the signal.
                let _ = timeout(MAX_WRITE_DELAY, self.flush_signal.notify.notified()).await;
            }
            if !self.receiver.is_empty() {
                let free = MAX_GROUP_RECORDS - group.len();
                self.receiver.recv_many(&mut group, free).await;
            }
            self.flush_signal
                .submitted
                .store(self.receiver.len(), Ordering::Relaxed);
            self.write(&mut group).await;
            let since = self.clock.now().0 - self.counts_saved_at.0;
            if Duration::from_millis(since.unsigned_abs()) >= COUNT_INTERVAL {
                self.save_counts().await;
            }
        }
        self.save_counts().await;
        // The job that does this every minute has ended before.
        self.quotas.save(&self.store, self.counts_saved_at).await;
    }

    /// Receives entries, and writes the waiting execution counts if no entry arrives. Returns false
    /// if no more can come.
    async fn receive(&mut self, group: &mut Vec<Message>) -> bool {
        if self.usage.is_waiting() {
            let more = self.receiver.recv_many(group, MAX_GROUP_RECORDS);
            if let Ok(received) = timeout(COUNT_INTERVAL, more).await {
                return received > 0;
            }
            self.save_counts().await;
        }
        self.receiver.recv_many(group, MAX_GROUP_RECORDS).await > 0
    }

    async fn save_counts(&mut self) {
        self.counts_saved_at = self.clock.now();
        if let Err(cause) = self.usage.save(&self.store, self.counts_saved_at).await {
            tracing::warn!(%cause, "the execution counts of toolkits could not be written");
        }
    }

    async fn write(&self, group: &mut Vec<Message>) {
        let mut entries = Vec::with_capacity(group.len());
        let mut waiting = Vec::new();
        for message in group.drain(..) {
            match message {
                Message::Entry(entry, done) => {
                    entries.push(entry);
                    waiting.extend(done);
                }
                Message::Flush(done) => waiting.push(done),
            }
        }
        // The sort is stable: the records of one project stay in the order of their arrival.
        entries.sort_by(|one, other| one.project().cmp(other.project()));
        self.apply_quotas(&mut entries);
        self.keep_cassettes(&entries).await;
        let mut written = true;
        for groups in split_into_groups(&entries).chunks(MAX_CONCURRENT_COMMITS) {
            let commits = groups.iter().map(|group| self.commit_group(group));
            written &= join_all(commits)
                .await
                .into_iter()
                .all(|is_written| is_written);
        }
        self.count_usage(&entries);
        if written {
            for done in waiting {
                // The waiting caller may have gone.
                let _ = done.send(());
            }
        }
    }

    /// Writes the cassettes of a group. A cassette that cannot be written is lost with a warning,
    /// because the execution's log record is more important.
    async fn keep_cassettes(&self, entries: &[Box<Pending>]) {
        for entry in entries {
            if let Some(kept) = &entry.cassette
                && let Err(cause) = self.keep_cassette(entry, kept).await
            {
                tracing::warn!(%cause, log = %entry.id, "a cassette could not be written");
            }
        }
    }

    async fn keep_cassette(&self, entry: &Pending, kept: &PendingCassette) -> Result<()> {
        let (project, id) = (entry.project().as_str(), entry.id.as_str());
        let now = self.clock.now();
        let context = SealContext::new::<StoredCassette>(project, id, "sealed");
        let sealed = self
            .vault
            .seal_compressed(context, &*kept.cassette, now)
            .await?;
        let stored = StoredCassette { sealed };
        let size = stored.sealed.size();
        if !self.quotas.take(Kind::Log, project, size, now) {
            return Ok(());
        }
        let batch = Batch::at(now).insert(project, id, &stored);
        Ok(self.store.commit(batch).await?)
    }

    /// Leaves out the details of records that exceed the quota of their project. The records are in
    /// order of their projects.
    fn apply_quotas(&self, entries: &mut [Box<Pending>]) {
        let now = self.clock.now();
        for records in entries.chunk_by_mut(|one, other| one.project() == other.project()) {
            let project = records[0].project().clone();
            let owner = project.as_str();
            let take = |size: usize| self.quotas.take(Kind::Log, owner, size, now);
            let record_bytes = records.len() * RECORD_CAPACITY;
            self.quotas.count(Kind::Log, owner, record_bytes, now);
            let with_detail = records.iter().filter(|record| record.detail.is_some());
            let total: usize = with_detail.map(|record| record.size).sum();
            // If the total fits, each record fits.
            if total == 0 || take(total) {
                continue;
            }
            for record in records {
                if let Some(detail) = &mut record.detail
                    && !take(record.size)
                {
                    detail.leave_out(PAST_QUOTA_NOTE);
                }
            }
        }
    }

    /// Counts the executions of each toolkit.
    fn count_usage(&self, entries: &[Box<Pending>]) {
        let toolkits = entries.chunk_by(|one, other| one.release_slug() == other.release_slug());
        for records in toolkits {
            if let Some(slug) = records[0].release_slug() {
                self.usage.count(slug, records.len() as u64);
            }
        }
    }

    /// Commits the records of a group. Returns true if all of them are written.
    async fn commit_group(&self, entries: &[Box<Pending>]) -> bool {
        match self.commit(entries).await {
            WriteOutcome::Refused if entries.len() > 1 => self.one_by_one(entries).await,
            outcome => outcome == WriteOutcome::Written,
        }
    }

    /// Writes records one by one, so that a record that the store refuses does not affect the
    /// others.
    async fn one_by_one(&self, entries: &[Box<Pending>]) -> bool {
        let mut all = true;
        for entry in entries {
            all &= self.commit(std::slice::from_ref(entry)).await == WriteOutcome::Written;
        }
        all
    }

    /// Commits records, and retries for as long as the server runs.
    async fn commit(&self, entries: &[Box<Pending>]) -> WriteOutcome {
        let mut final_attempts = 0;
        loop {
            let cause = match self.batch(entries).await {
                Ok(batch) => match self.store.commit(batch).await {
                    Ok(()) => return WriteOutcome::Written,
                    // A retry cannot succeed.
                    Err(
                        cause @ (CommitError::Taken { .. }
                        | CommitError::Stale
                        | CommitError::Invalid(_)),
                    ) => {
                        tracing::error!(%cause, records = entries.len(), "log records were refused");
                        return WriteOutcome::Refused;
                    }
                    Err(cause) => Error::from(cause),
                },
                Err(cause) => cause,
            };
            final_attempts += u32::from(self.receiver.is_closed());
            if final_attempts > MAX_FINAL_ATTEMPTS {
                tracing::error!(%cause, records = entries.len(), "log records are lost: the server is stopping");
                return WriteOutcome::Stopped;
            }
            tracing::warn!(%cause, records = entries.len(), "log records wait for the store");
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }

    async fn batch(&self, entries: &[Box<Pending>]) -> Result<Batch> {
        let _sealing = self.sealing.lock().await;
        let mut batch = Batch::at(self.clock.now());
        for page in split_into_pages(entries) {
            batch = self.page(batch, &page).await?;
            // Requests that are ready on this thread do not wait for all pages.
            yield_now().await;
        }
        Ok(batch)
    }

    async fn page(&self, batch: Batch, entries: &[&Pending]) -> Result<Batch> {
        let Some(last) = entries.last() else {
            return Ok(batch);
        };
        let (project, id) = (last.project().as_str(), last.id.as_str());
        let ended_at = entries.iter().map(|entry| entry.ended_at);
        let ended_at = ended_at.max().unwrap_or_default();
        let page = Page::new(entries);
        let capacity = RECORD_CAPACITY * (entries.len() + 1);
        let lists = page.lists();
        let batch = batch.insert_listed::<Page>(ended_at, project, id, &page, capacity, &lists);
        let details: Vec<_> = entries.iter().map(|entry| &entry.detail).collect();
        if details.iter().all(|detail| detail.is_none()) {
            return Ok(batch);
        }
        let context = SealContext::new::<Details>(project, id, "sealed");
        let sealed = self
            .vault
            .seal_compressed(context, &details, batch.now)
            .await?;
        let details = Details {
            sealed: sealed.cast(),
        };
        Ok(batch.insert_created(ended_at, project, id, &details))
    }
}

impl Message {
    /// Returns true if a caller waits for the message to be processed.
    fn has_waiter(&self) -> bool {
        !matches!(self, Self::Entry(_, None))
    }
}

/// Divides records into groups that are written together.
fn split_into_groups(entries: &[Box<Pending>]) -> Vec<&[Box<Pending>]> {
    let mut groups = Vec::new();
    let mut rest = entries;
    while !rest.is_empty() {
        let (group, later) = rest.split_at(group_length(rest));
        groups.push(group);
        rest = later;
    }
    groups
}

/// Returns the number of first records that are written together.
fn group_length(entries: &[Box<Pending>]) -> usize {
    let mut bytes = 0;
    let fitting = entries.iter().take_while(|entry| {
        bytes += entry.size;
        bytes <= MAX_GROUP_BYTES
    });
    fitting.count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        projects::LogVisibility,
        runs::log::pending::tests::{entry, pending},
    };

    #[test]
    fn large_records_are_written_in_small_groups() {
        let of = |size: &usize| {
            let (mut record, _) = pending(entry(LogVisibility::DontStoreData, 0), 8_000, 8_000);
            record.size = *size;
            record
        };
        let count = |sizes: &[usize]| group_length(&sizes.iter().map(of).collect::<Vec<_>>());
        assert_eq!(count(&[1; 8]), 8);
        assert_eq!(count(&[MAX_GROUP_BYTES / 2; 8]), 2);
        assert_eq!(count(&[MAX_GROUP_BYTES + 1, 1]), 1);
    }
}
