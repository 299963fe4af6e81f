//! The writer: takes what was entered, a group at a time, and makes it durable.

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

/// Bytes of records that are written together at most, unless one alone has more.
pub const GROUP_BYTES: usize = 8 << 20;
/// Line of a record that came past its project's quota.
const PAST_QUOTA: &str = "arguments, data, lines and requests are left out: the project's log is past `logs.quota_mib`";

/// How long a record may wait for others.
const BEHIND: Duration = Duration::from_millis(20);
/// How long the writer waits before it tries again what the store refused.
const AGAIN: Duration = Duration::from_millis(500);
/// How many milliseconds pass before the counts of runs are written again.
const COUNTS: i64 = 60_000;
/// How often it tries when the server is stopping.
const LAST_TRIES: u32 = 6;

/// Writes what is entered. It ends when every [`Log`](super::Log) is gone and everything is written.
pub struct Writer {
    pub(super) from: mpsc::Receiver<Message>,
    pub(super) bell: Arc<Bell>,
    pub(super) store: Store,
    pub(super) vault: Arc<Vault>,
    pub(super) clock: Clock,
    pub(super) usage: Arc<Usage>,
    pub(super) quotas: Arc<Quotas>,
    /// When the counts of runs were last written.
    pub(super) counted: Time,
}

/// What became of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Yes,
    /// The store will never take it.
    Refused,
    /// The server stopped first.
    No,
}

impl Writer {
    /// Writes until there is nothing more to come.
    pub async fn run(mut self) {
        let mut group = Vec::with_capacity(GROUP);
        while self.from.recv_many(&mut group, GROUP).await > 0 {
            // Closed and empty means that nobody will ring; what came is written at once.
            if group.len() < GROUP && !group.iter().any(Message::hurries) && !self.from.is_closed() {
                // Time is up or the bell has rung: either way it is time to write.
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
        // The work that does it every minute has ended before.
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
                && !self.quotas.take(Kind::Log, entry.project.id.as_str(), entry.size, now)
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
                // Whoever waited may have gone.
                let _ = done.send(());
            }
        }
    }

    /// One record that the store refuses must not take the others with it.
    async fn one_by_one(&self, entries: &[Pending]) -> bool {
        let mut all = true;
        for entry in entries {
            all &= self.commit(std::slice::from_ref(entry)).await == Written::Yes;
        }
        all
    }

    /// Commits, and tries again for as long as the server runs.
    async fn commit(&self, entries: &[Pending]) -> Written {
        let mut last_tries = 0;
        loop {
            let cause = match self.batch(entries).await {
                Ok(batch) => match self.store.commit(batch).await {
                    Ok(()) => return Written::Yes,
                    // Trying again cannot help.
                    Err(cause @ (CommitError::Taken { .. } | CommitError::Stale | CommitError::Invalid(_))) => {
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
        let Some(last) = entries.last() else { return Ok(batch) };
        let (id, ended_at) = (last.id.as_str(), entries.iter().map(|entry| entry.ended_at).max().unwrap_or_default());
        let page = Page::of(entries.iter().map(|entry| entry.record()).collect());
        let batch = batch.insert_created(ended_at, project, id, &page);
        let said: Vec<_> = entries.iter().map(|entry| &entry.said).collect();
        if said.iter().all(|said| said.is_none()) {
            return Ok(batch);
        }
        let key = self.vault.key(project, batch.now).await?;
        let details = Details { sealed: key.seal(place(project, id), &said)?.of() };
        Ok(batch.insert_created(ended_at, project, id, &details))
    }
}

impl Message {
    /// Somebody waits for it.
    fn hurries(&self) -> bool {
        !matches!(self, Self::Entry(_, None))
    }
}

/// How many of the first records are written together.
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
    fn large_records_are_written_a_few_at_a_time() {
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
