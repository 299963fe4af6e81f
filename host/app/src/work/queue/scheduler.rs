//! The due records of a queue, which the workers of one server claim.
//!
//! One worker looks on behalf of all. Records for which no permit is free stay in memory. If more
//! records are due than were read, the next page leaves out the projects that have records in memory.
//! However many records of other projects are due, a project with free capacity is therefore found
//! after one page for each project in memory, and nothing is written meanwhile.
//!
//! In a queue whose projects have several keys, records without a permit may precede records of the
//! same project that would get one. They are deferred to a later due time. A deferred record is claimed
//! earlier if a permit frees up, so that an overestimated delay does not leave capacity idle.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::Duration,
};

use gate::{Gate, Permit, Shares};
use parking_lot::Mutex;
use store::{Batch, CommitError, CommitSignal, Predicate, Query, Record, Scalar, Time};
use tokio::{
    sync::{Mutex as AsyncMutex, Notify},
    time::{Instant, sleep_until},
};

use super::{Admission, MAX_DEFERRAL, POLL_INTERVAL, RetryAt};
use crate::{
    Result,
    core::{clock::time_after, ids},
    work::{Claim, Claimable, Claims, jittered},
};

/// Interval at which due records are looked for while deferred records come due.
const DEFERRED_READ_INTERVAL: Duration = Duration::from_millis(50);
/// Minimum time between two reads of due records if the first has returned all of them.
const MIN_READ_INTERVAL: Duration = Duration::from_millis(5);
/// Minimum time between two reads of due records while some of them wait in memory.
const MIN_WAITING_READ_INTERVAL: Duration = Duration::from_millis(50);
/// Minimum number of records that are read at a time.
const MIN_PAGE_RECORDS: usize = 16;
/// Number of pages of records that may wait in memory when another one is read.
const MAX_WAITING_PAGES: usize = 4;
/// Part of a page that stays in memory of each group while many records wait, as a divisor.
const KEPT_PART: usize = 8;

/// Permit of a worker, and that of the admission.
type Permits<R> = (Permit<String>, R);

/// The due records that the workers of one server claim.
pub(super) struct Scheduler<'a, T, C, R> {
    claims: &'a Claims,
    context: &'a C,
    admission: &'a Admission<T, C, R>,
    /// Permits of workers, by project.
    workers: Gate<String>,
    signal: CommitSignal,
    page_records: usize,
    waiting: AsyncMutex<Waiting<T>>,
    /// Ids of the records that a worker of this server is about to claim.
    claiming: Mutex<HashSet<String>>,
    /// Notified when a worker has ended its work, which may have freed a permit.
    pub(super) ended: Notify,
}

/// Records that were read and are not claimed yet.
struct Waiting<T> {
    due: Buffer<T>,
    /// Time at which due records were read. `None` before the first read.
    read_at: Option<Instant>,
    /// True if more records may be due of projects that have some in memory.
    has_hidden: bool,
    /// Records that were deferred and are not due yet.
    deferred: Buffer<T>,
    /// Latest due time of deferred records. `None` before the first read.
    deferred_until: Option<Time>,
}

impl<T> Waiting<T> {
    /// Takes a record for which a permit is free. Due records come first.
    fn admit<R>(&mut self, acquire: impl Fn(&str, &str) -> Option<R>) -> Option<(Record<T>, R)> {
        if let Some((record, permit, is_last)) = self.due.admit(&acquire) {
            self.due.more |= is_last && self.has_hidden;
            return Some((record, permit));
        }
        let (record, permit, is_last) = self.deferred.admit(&acquire)?;
        self.deferred.more |= is_last;
        Some((record, permit))
    }

    /// Drops the due records in memory, so that those of all projects are read.
    fn forget_due(&mut self) {
        self.due.clear();
        self.has_hidden = false;
    }

    /// Returns true if deferred records are to be read before they are due. If no record in memory
    /// got a permit, they are read again after a while only.
    fn reads_deferred(&self, now: Time) -> bool {
        let is_read = self.deferred.is_recent() && !self.deferred.more;
        !self.due.more && self.deferred_until > Some(now) && !is_read
    }
}

/// Records in memory, in random order.
struct Buffer<T> {
    /// None of them is empty.
    groups: VecDeque<Group<T>>,
    /// Time at which records of all projects were read.
    all_read_at: Option<Instant>,
    /// True if there may be more records of projects without records in memory.
    more: bool,
}

/// Records of one project and one key.
struct Group<T> {
    project: String,
    key: String,
    records: Vec<Record<T>>,
}

impl<T> Buffer<T> {
    fn new(more: bool) -> Self {
        Self {
            groups: VecDeque::new(),
            all_read_at: None,
            more,
        }
    }

    /// Adds records of projects without records in memory.
    fn add(&mut self, mut records: Vec<Record<T>>, key: fn(&Record<T>) -> String) {
        records.sort_by_cached_key(|_| ids::random::<4>());
        let mut by_key = HashMap::<_, Vec<_>>::new();
        for record in records {
            let name = (record.project.clone(), key(&record));
            by_key.entry(name).or_default().push(record);
        }
        let groups = by_key.into_iter().map(|((project, key), records)| Group {
            project,
            key,
            records,
        });
        self.groups.extend(groups);
    }

    /// Takes a record of the first group for which a permit is free, which becomes the last group.
    /// Returns true with the last record of a group.
    fn admit<R>(
        &mut self,
        acquire: impl Fn(&str, &str) -> Option<R>,
    ) -> Option<(Record<T>, R, bool)> {
        for _ in 0..self.groups.len() {
            let mut group = self.groups.pop_front()?;
            let admitted = acquire(&group.project, &group.key)
                .and_then(|permit| Some((group.records.pop()?, permit, group.records.is_empty())));
            if !group.records.is_empty() {
                self.groups.push_back(group);
            }
            if admitted.is_some() {
                return admitted;
            }
        }
        None
    }

    /// Returns true if records of all projects were read a short time ago.
    fn is_recent(&self) -> bool {
        let read_at = self.all_read_at;
        read_at.is_some_and(|read_at| read_at.elapsed() < POLL_INTERVAL)
    }

    fn clear(&mut self) {
        self.groups.clear();
        self.all_read_at = None;
    }

    fn record_count(&self) -> usize {
        self.groups.iter().map(|group| group.records.len()).sum()
    }

    /// Leaves the projects of these records out of a query.
    fn without_own_projects(&self, query: Query) -> Query {
        let projects: HashSet<_> = self.groups.iter().map(|group| &*group.project).collect();
        let in_memory = Predicate::AnyOf(projects.into_iter().map(Scalar::from).collect());
        query.test("project", Predicate::Not(Box::new(in_memory)))
    }

    /// Keeps a number of records of each group.
    fn truncate(&mut self, records: usize) {
        for group in &mut self.groups {
            group.records.truncate(records);
        }
    }

    fn retain(&mut self, mut is_kept: impl FnMut(&mut Record<T>) -> bool) {
        self.groups.retain_mut(|group| {
            group.records.retain_mut(&mut is_kept);
            !group.records.is_empty()
        });
    }
}

impl<'a, T: Claimable, C, R> Scheduler<'a, T, C, R> {
    pub(super) fn new(
        claims: &'a Claims,
        context: &'a C,
        admission: &'a Admission<T, C, R>,
        shares: Shares,
    ) -> Self {
        let waiting = Waiting {
            due: Buffer::new(true),
            read_at: None,
            has_hidden: false,
            deferred: Buffer::new(false),
            deferred_until: None,
        };
        Self {
            claims,
            context,
            admission,
            workers: Gate::new(shares),
            signal: claims.store.commit_signal(T::COLLECTION),
            page_records: usize::try_from(shares.total.saturating_mul(2))
                .unwrap_or(usize::MAX)
                .max(MIN_PAGE_RECORDS),
            waiting: AsyncMutex::new(waiting),
            claiming: Mutex::default(),
            ended: Notify::new(),
        }
    }

    /// Waits for a due record for which a permit is free, and claims it. Returns `None` if another
    /// server was faster. Fails if the store refuses.
    pub(super) async fn claim_next(&self, ttl: Duration) -> Result<Option<(Claim<T>, Permits<R>)>> {
        let (record, permits) = self.next().await?;
        let id = record.id.clone();
        let claimed = self.claims.take(record, ttl).await;
        self.claiming.lock().remove(&id);
        Ok(claimed?.map(|claim| (claim, permits)))
    }

    /// Returns a due record that no worker held when it was read, and its permits. Waits for one if
    /// necessary.
    async fn next(&self) -> Result<(Record<T>, Permits<R>)> {
        let mut waiting = self.waiting.lock().await;
        loop {
            let now = self.claims.now().await?;
            let admitted =
                waiting.admit(|project: &str, key: &str| self.acquire(project, key, now));
            if let Some((record, permits)) = admitted {
                self.claiming.lock().insert(record.id.clone());
                return Ok((record, permits));
            }
            if !self.reads_on(&mut waiting) {
                match self.admission.retry_at {
                    Some(retry_at) if waiting.has_hidden => {
                        self.defer(&mut waiting, retry_at, now).await?;
                    }
                    retry_at => {
                        if !self.is_read_again(&waiting, now).await {
                            continue;
                        }
                        // If projects have several keys, their other records may get permits. In any case,
                        // other servers may have claimed the records in memory after a while.
                        if retry_at.is_some() || !waiting.due.is_recent() {
                            waiting.forget_due();
                        }
                    }
                }
            }
            self.read_page(&mut waiting).await?;
        }
    }

    /// Returns true if due records of further projects are to be read now. Frees memory for them.
    fn reads_on(&self, waiting: &mut Waiting<T>) -> bool {
        if waiting.due.more && waiting.due.record_count() > self.page_records {
            waiting.due.truncate(self.page_records / KEPT_PART);
            waiting.has_hidden = true;
        }
        waiting.due.more && self.has_memory(&waiting.due)
    }

    /// Acquires a worker and the permit of the admission for a record, if both are free.
    fn acquire(&self, project: &str, key: &str, now: Time) -> Option<Permits<R>> {
        let worker = self.workers.try_acquire(&project.to_owned()).ok()?;
        let permit = (self.admission.acquire)(self.context, key, now)?;
        Some((worker, permit))
    }

    /// Waits until there may be more due records, or permits for those that were read. Returns true if
    /// the due records are to be read.
    async fn is_read_again(&self, waiting: &Waiting<T>, now: Time) -> bool {
        let has_due = !waiting.due.groups.is_empty();
        let has_waiting = has_due || !waiting.deferred.groups.is_empty();
        let read_interval = match has_due {
            true => MIN_WAITING_READ_INTERVAL,
            false => MIN_READ_INTERVAL,
        };
        let read_at = waiting.read_at.unwrap_or_else(Instant::now);
        let poll_interval = match waiting.deferred_until > Some(now) {
            true => DEFERRED_READ_INTERVAL,
            false => jittered(POLL_INTERVAL),
        };
        let committed = async {
            sleep_until(read_at + read_interval).await;
            self.signal.committed().await;
        };
        tokio::select! {
            () = self.ended.notified(), if has_waiting => false,
            () = committed => true,
            () = sleep_until(read_at + poll_interval) => true,
        }
    }

    /// Defers the due records in memory, in one commit.
    async fn defer(&self, waiting: &mut Waiting<T>, retry_at: RetryAt<C>, now: Time) -> Result<()> {
        let mut batch = Batch::at(now);
        for group in waiting.due.groups.drain(..) {
            for mut record in group.records {
                let due = retry_at(self.context, &group.key, now);
                record.body.work().defer(due);
                waiting.deferred_until = waiting.deferred_until.max(Some(due));
                batch = batch.update(&record);
            }
        }
        waiting.forget_due();
        waiting.deferred.more = true;
        match self.claims.store.commit(batch).await {
            // Another worker has changed one of the records. All of them are read again.
            Ok(()) | Err(CommitError::Stale) => Ok(()),
            Err(cause) => Err(cause.into()),
        }
    }

    /// Reads a page of due records, and one of deferred records if permits may be free for them.
    async fn read_page(&self, waiting: &mut Waiting<T>) -> Result<()> {
        waiting.read_at = Some(Instant::now());
        let now = self.claims.now().await?;
        waiting.has_hidden &= !waiting.due.groups.is_empty();
        let due = Query::all_projects().below("due", now.0.saturating_add(1));
        let is_full = self.read_into(&mut waiting.due, due, now, |_| true).await?;
        waiting.due.more = is_full;
        waiting.has_hidden |= is_full;
        let deferred = &mut waiting.deferred;
        deferred.retain(|record| record.body.work().due > Some(now));
        if self.admission.retry_at.is_some() {
            // Records that were deferred before this server started are found, too.
            let until = *waiting
                .deferred_until
                .get_or_insert_with(|| time_after(now, MAX_DEFERRAL));
            if waiting.reads_deferred(now) {
                self.read_deferred(&mut waiting.deferred, now, until)
                    .await?;
                // Without deferred records, due ones are read at the usual interval.
                if waiting.deferred.groups.is_empty() && !waiting.deferred.more {
                    waiting.deferred_until = Some(now);
                }
            }
        }
        Ok(())
    }

    /// Reads a page of deferred records that are due after `now`, at the latest at `until`.
    async fn read_deferred(&self, deferred: &mut Buffer<T>, now: Time, until: Time) -> Result<()> {
        match deferred.is_recent() {
            true => deferred.truncate(self.page_records / KEPT_PART),
            false => deferred.clear(),
        }
        let [from, to] = [now, until].map(|time| time.0.saturating_add(1));
        let query = Query::all_projects().at_least("due", from).below("due", to);
        let is_full = self
            .read_into(deferred, query, now, |record| {
                record.body.work().is_deferred()
            })
            .await?;
        deferred.more = is_full && self.has_memory(deferred);
        Ok(())
    }

    /// Reads a page of records that no worker holds into memory, in order of their due times, of
    /// the projects without records there. Returns true if the page is full.
    async fn read_into(
        &self,
        buffer: &mut Buffer<T>,
        query: Query,
        now: Time,
        is_wanted: fn(&mut Record<T>) -> bool,
    ) -> Result<bool> {
        let query = match buffer.groups.is_empty() {
            true => {
                buffer.all_read_at = Some(Instant::now());
                query
            }
            false => buffer.without_own_projects(query),
        };
        let query = query
            .order_by("due")
            .page(0, self.page_records as u64)
            .uncounted();
        let mut records = self.claims.store.find::<T>(&query).await?.records;
        let is_full = records.len() >= self.page_records;
        let claiming = self.claiming.lock();
        records.retain_mut(|record| {
            is_wanted(record)
                && !record.body.work().is_claimed(now)
                && !claiming.contains(&record.id)
        });
        drop(claiming);
        buffer.add(records, self.admission.key);
        Ok(is_full)
    }

    /// Returns true if another page of records may be read in addition to those in memory.
    fn has_memory(&self, buffer: &Buffer<T>) -> bool {
        buffer.record_count() <= MAX_WAITING_PAGES * self.page_records
    }
}
