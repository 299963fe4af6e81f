//! The writer of the log, which makes entered records durable in groups.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use store::{Batch, CommitError, Store, Time};
use tokio::{sync::mpsc, time::timeout};

use super::{
    Bell, GROUP, Message, Pending,
    page::{Details, Page, cut, place},
};
use crate::{
    Error, Result,
    catalog::Usage,
    clock::Clock,
    quotas::{Kind, Quotas},
    vault::Vault,
};

/// Maximum size of the records that are written together, in bytes, unless a single record has
/// more.
pub const GROUP_BYTES: usize = 8 << 20;
/// Log line of a record that exceeds its project's quota.
const PAST_QUOTA: &str =
    "arguments, data, lines and requests are left out: the project's log is past `logs.quota_mib`";

/// Maximum time for which a record waits for others.
const BEHIND: Duration = Duration::from_millis(20);
/// Time before a failed write is retried.
const AGAIN: Duration = Duration::from_millis(500);
/// Interval at which execution counts are written, in milliseconds.
const COUNTS: i64 = 60_000;
/// Maximum number of retries while the server is stopping.
const LAST_TRIES: u32 = 6;

/// The writer of entered records. It ends when every [`Log`](super::Log) is dropped and everything
/// is written.
pub struct Writer {
    pub(super) from: mpsc::Receiver<Message>,
    pub(super) bell: Arc<Bell>,
    pub(super) store: Store,
    pub(super) vault: Arc<Vault>,
    pub(super) clock: Clock,
    pub(super) usage: Arc<Usage>,
    pub(super) quotas: Arc<Quotas>,
    /// The time at which the execution counts were last written.
    pub(super) counted: Time,
}

/// The outcome of writing a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Yes,
    /// The store refuses the records permanently.
    Refused,
    /// The server stopped before the records were written.
    No,
}

impl Writer {
    /// Writes entries until no more can come.
    pub async fn run(mut self) {
        let mut group = Vec::with_capacity(GROUP);
        while self.from.recv_many(&mut group, GROUP).await > 0 {
            // If the channel is closed, no signal can follow, so the received entries are written
            // at once.
            if group.len() < GROUP && !group.iter().any(Message::hurries) && !self.from.is_closed()
            {
                // The group is written in either case, on timeout or on the signal.
                let _ = timeout(BEHIND, self.bell.rung.notified()).await;
            }
            while group.len() < GROUP
                && let Ok(more) = self.from.try_recv()
            {
                group.push(more);
            }
            self.bell.entered.store(self.from.len(), Ordering::Relaxed);
            self.write(std::mem::take(&mut group)).await;
            if self.clock.now().0 - self.counted.0 >= COUNTS {
                self.save_counts().await;
            }
        }
        self.save_counts().await;
        // The job that does this every minute has ended before.
        self.quotas.save(&self.store, self.counted).await;
    }

    async fn save_counts(&mut self) {
        self.counted = self.clock.now();
        if let Err(cause) = self.usage.save(&self.store, self.counted).await {
            tracing::warn!(%cause, "how often toolkits run could not be written");
        }
    }

    async fn write(&self, group: Vec<Message>) {
        let mut entries = Vec::with_capacity(group.len());
        let mut waiting = Vec::new();
        for message in group {
            match message {
                Message::Entry(entry, done) => {
                    entries.push(*entry);
                    waiting.extend(done);
                }
                Message::Settle(done) => waiting.push(done),
            }
        }
        let now = self.clock.now();
        for entry in &mut entries {
            if let Some(said) = &mut entry.said
                && !self
                    .quotas
                    .take(Kind::Log, entry.project.id.as_str(), entry.size, now)
            {
                said.leave_out(PAST_QUOTA);
            }
        }
        self.keep_cassettes(&entries).await;
        let (mut written, mut rest) = (true, &entries[..]);
        while !rest.is_empty() {
            let (together, later) = rest.split_at(together(rest));
            written &= match self.commit(together).await {
                Written::Refused if together.len() > 1 => self.one_by_one(together).await,
                written => written == Written::Yes,
            };
            rest = later;
        }
        for entry in &entries {
            self.usage.count(&entry.release.slug);
        }
        if written {
            for done in waiting {
                // The waiting caller may have gone.
                let _ = done.send(());
            }
        }
    }

    /// Writes records one by one, so that a record that the store refuses does not affect the
    /// others.
    async fn one_by_one(&self, entries: &[Pending]) -> bool {
        let mut all = true;
        for entry in entries {
            all &= self.commit(std::slice::from_ref(entry)).await == Written::Yes;
        }
        all
    }

    /// Commits records, and retries for as long as the server runs.
    async fn commit(&self, entries: &[Pending]) -> Written {
        let mut last_tries = 0;
        loop {
            let cause = match self.batch(entries).await {
                Ok(batch) => match self.store.commit(batch).await {
                    Ok(()) => return Written::Yes,
                    // A retry cannot succeed.
                    Err(
                        cause @ (CommitError::Taken { .. }
                        | CommitError::Stale
                        | CommitError::Invalid(_)),
                    ) => {
                        tracing::error!(%cause, records = entries.len(), "log records were refused");
                        return Written::Refused;
                    }
                    Err(cause) => Error::from(cause),
                },
                Err(cause) => cause,
            };
            last_tries += u32::from(self.from.is_closed());
            if last_tries > LAST_TRIES {
                tracing::error!(%cause, records = entries.len(), "log records are lost: the server stops");
                return Written::No;
            }
            tracing::warn!(%cause, records = entries.len(), "log records wait for the store");
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn batch(&self, entries: &[Pending]) -> Result<Batch> {
        let mut projects: Vec<(&str, Vec<&Pending>)> = Vec::new();
        for entry in entries {
            let project = entry.project.id.as_str();
            match projects.iter_mut().find(|(own, _)| *own == project) {
                Some((_, entries)) => entries.push(entry),
                None => projects.push((project, vec![entry])),
            }
        }
        let mut batch = Batch::at(self.clock.now());
        for (project, entries) in projects {
            for page in cut(&entries) {
                batch = self.page(batch, project, &page).await?;
            }
        }
        Ok(batch)
    }

    async fn page(&self, batch: Batch, project: &str, entries: &[&Pending]) -> Result<Batch> {
        let Some(last) = entries.last() else {
            return Ok(batch);
        };
        let (id, ended_at) = (
            last.id.as_str(),
            entries
                .iter()
                .map(|entry| entry.ended_at)
                .max()
                .unwrap_or_default(),
        );
        let page = Page::of(entries.iter().map(|entry| entry.record()).collect());
        let batch = batch.insert_created(ended_at, project, id, &page);
        let said: Vec<_> = entries.iter().map(|entry| &entry.said).collect();
        if said.iter().all(|said| said.is_none()) {
            return Ok(batch);
        }
        let key = self.vault.key(project, batch.now).await?;
        let details = Details {
            sealed: key.seal(place(project, id), &said)?.cast(),
        };
        Ok(batch.insert_created(ended_at, project, id, &details))
    }
}

impl Message {
    /// Returns true if a caller waits for the message to be processed.
    fn hurries(&self) -> bool {
        !matches!(self, Self::Entry(_, None))
    }
}

/// Returns the number of first records that are written together.
fn together(entries: &[Pending]) -> usize {
    let mut bytes = 0;
    let fits = |entry: &&Pending| {
        bytes += entry.size;
        bytes <= GROUP_BYTES
    };
    entries.iter().take_while(fits).count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        projects::LogVisibility,
        tools::log::pending::tests::{entry, pending},
    };

    #[test]
    fn large_records_are_written_in_small_groups() {
        let of = |size: &usize| {
            let (mut record, _) = pending(entry(LogVisibility::DontStoreData, 0), 8_000, 8_000);
            record.size = *size;
            record
        };
        let count = |sizes: &[usize]| together(&sizes.iter().map(of).collect::<Vec<_>>());
        assert_eq!(count(&[1; 8]), 8);
        assert_eq!(count(&[GROUP_BYTES / 2; 8]), 2);
        assert_eq!(count(&[GROUP_BYTES + 1, 1]), 1);
    }
}
