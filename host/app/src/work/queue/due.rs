//! The due records of a queue, which the workers of one server take up.
//!
//! One worker looks on behalf of all. Records without room wait in memory. If more records are due
//! than were read, those that wait are put off to a later turn. A record that was put off is taken
//! up before its turn once there is room for it, so that a turn that was estimated too late leaves
//! no room unused.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::Duration,
};

use gate::{Gate, Permit, Shares};
use parking_lot::Mutex;
use store::{Batch, CommitError, CommitSignal, Query, Record, Time};
use tokio::{
    sync::{Mutex as AsyncMutex, Notify},
    time::{Instant, sleep_until},
};

use super::{Admission, POLL_INTERVAL};
use crate::{
    Result,
    core::ids,
    work::{Claim, Claimable, Claims, jittered},
};

/// Interval at which due records are looked for while records that were put off come due.
const TURN_INTERVAL: Duration = Duration::from_millis(50);
/// Minimum time between two reads of due records if the first has returned all of them.
const MIN_READ_INTERVAL: Duration = Duration::from_millis(5);
/// Minimum time between two reads of due records while some of them wait in memory.
const MIN_WAITING_READ_INTERVAL: Duration = Duration::from_millis(50);
/// Minimum number of records that are read at a time.
const MIN_PAGE_RECORDS: usize = 16;

/// Permit of a worker, and the room of the admission.
type Room<R> = (Permit<String>, R);

/// The due records that the workers of one server take up.
pub(super) struct Due<'a, T, C, R> {
    claims: &'a Claims,
    context: &'a C,
    admission: &'a Admission<T, C, R>,
    /// Permits of workers, by the key of the admission.
    workers: Gate<String>,
    signal: CommitSignal,
    page_records: usize,
    waiting: AsyncMutex<Waiting<T>>,
    /// Ids of the records that a worker of this server is about to claim.
    taking: Mutex<HashSet<String>>,
    /// Given when a worker has ended its work, which may have made room for another record.
    pub(super) ended: Notify,
}

/// Records that were read and are not taken up yet.
struct Waiting<T> {
    due: Groups<T>,
    /// Time at which due records were read. None before the first read.
    read_at: Option<Instant>,
    /// True if more records may have been due.
    more: bool,
    /// Records that were put off and whose turn has not come.
    ahead: Groups<T>,
    /// Time at which these were read. None if others may have room.
    ahead_read_at: Option<Instant>,
    /// Time until which records that were put off come due.
    turns_until: Time,
}

impl<T> Waiting<T> {
    /// Takes a record for which there is room. Due records come first.
    fn admit<R>(&mut self, enter: impl Fn(&str) -> Option<R>) -> Option<(Record<T>, R)> {
        if let Some(admitted) = self.due.admit(&enter) {
            return Some(admitted);
        }
        let groups = self.ahead.0.len();
        let admitted = self.ahead.admit(&enter);
        if self.ahead.0.len() < groups {
            self.ahead_read_at = None;
        }
        admitted
    }

    /// Returns true if records that were put off are to be read before their turn. If none of those
    /// that were read has room, they are read again after a while only.
    fn looks_ahead(&self, now: Time) -> bool {
        let is_current = |read_at: Instant| read_at.elapsed() < POLL_INTERVAL;
        !self.more && self.turns_until > now && !self.ahead_read_at.is_some_and(is_current)
    }
}

/// Records in random order, grouped by the key of their room. No group is empty.
struct Groups<T>(VecDeque<(String, Vec<Record<T>>)>);

impl<T> Groups<T> {
    fn new(mut records: Vec<Record<T>>, key: fn(&Record<T>) -> String) -> Self {
        records.sort_by_cached_key(|_| ids::random::<4>());
        let mut groups = HashMap::<_, Vec<_>>::new();
        for record in records {
            groups.entry(key(&record)).or_default().push(record);
        }
        Self(groups.into_iter().collect())
    }

    /// Takes a record of the first group for which there is room, which becomes the last group.
    fn admit<R>(&mut self, enter: impl Fn(&str) -> Option<R>) -> Option<(Record<T>, R)> {
        for _ in 0..self.0.len() {
            let (key, mut records) = self.0.pop_front()?;
            let admitted = enter(&key).and_then(|room| Some((records.pop()?, room)));
            if !records.is_empty() {
                self.0.push_back((key, records));
            }
            if admitted.is_some() {
                return admitted;
            }
        }
        None
    }

    fn retain(&mut self, mut is_kept: impl FnMut(&mut Record<T>) -> bool) {
        self.0.retain_mut(|(_, records)| {
            records.retain_mut(&mut is_kept);
            !records.is_empty()
        });
    }
}

impl<'a, T: Claimable, C, R> Due<'a, T, C, R> {
    pub(super) fn new(
        claims: &'a Claims,
        context: &'a C,
        admission: &'a Admission<T, C, R>,
        shares: Shares,
    ) -> Self {
        let waiting = Waiting {
            due: Groups(VecDeque::new()),
            read_at: None,
            more: true,
            ahead: Groups(VecDeque::new()),
            ahead_read_at: None,
            turns_until: Time(0),
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
            taking: Mutex::default(),
            ended: Notify::new(),
        }
    }

    /// Waits for a due record for which there is room, and claims it. Returns none if another
    /// server was faster. Fails if the store refuses.
    pub(super) async fn claim_next(&self, ttl: Duration) -> Result<Option<(Claim<T>, Room<R>)>> {
        let (record, room) = self.next().await?;
        let id = record.id.clone();
        let taken = self.claims.take(record, ttl).await;
        self.taking.lock().remove(&id);
        Ok(taken?.map(|claim| (claim, room)))
    }

    /// Returns a due record that no worker held when it was read, and its room. Waits for one if
    /// necessary.
    async fn next(&self) -> Result<(Record<T>, Room<R>)> {
        let mut waiting = self.waiting.lock().await;
        loop {
            let now = self.claims.now().await?;
            if let Some((record, room)) = waiting.admit(|key| self.enter(key, now)) {
                self.taking.lock().insert(record.id.clone());
                return Ok((record, room));
            }
            if waiting.more {
                self.put_off(&mut waiting, now).await?;
            } else if !self.is_read_again(&waiting, now).await {
                continue;
            }
            self.read_page(&mut waiting).await?;
        }
    }

    /// Takes a worker and room for the work on a record with a key, if there are both.
    fn enter(&self, key: &str, now: Time) -> Option<Room<R>> {
        let permit = self.workers.try_acquire(&key.to_owned()).ok()?;
        let room = (self.admission.enter)(self.context, key, now)?;
        Some((permit, room))
    }

    /// Waits until there may be more due records, or room for those that were read. Returns true if
    /// the due records are to be read.
    async fn is_read_again(&self, waiting: &Waiting<T>, now: Time) -> bool {
        let has_due = !waiting.due.0.is_empty();
        let has_waiting = has_due || !waiting.ahead.0.is_empty();
        let read_interval = match has_due {
            true => MIN_WAITING_READ_INTERVAL,
            false => MIN_READ_INTERVAL,
        };
        let read_at = waiting.read_at.unwrap_or_else(Instant::now);
        let poll_interval = match waiting.turns_until > now {
            true => TURN_INTERVAL,
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

    /// Puts the records off that wait for room, in one commit.
    async fn put_off(&self, waiting: &mut Waiting<T>, now: Time) -> Result<()> {
        let mut batch = Batch::at(now);
        for (key, records) in waiting.due.0.drain(..) {
            for mut record in records {
                let turn = (self.admission.turn)(self.context, &key, now);
                record.body.work().put_off(turn);
                waiting.turns_until = waiting.turns_until.max(turn);
                batch = batch.update(&record);
            }
        }
        waiting.ahead_read_at = None;
        match self.claims.store.commit(batch).await {
            // Another worker has changed one of the records. All of them are read again.
            Ok(()) | Err(CommitError::Stale) => Ok(()),
            Err(cause) => Err(cause.into()),
        }
    }

    /// Reads a page of due records, and one of those that were put off if there may be room for them.
    async fn read_page(&self, waiting: &mut Waiting<T>) -> Result<()> {
        waiting.read_at = Some(Instant::now());
        let now = self.claims.now().await?;
        let after_now = now.0.saturating_add(1);
        let due = Query::all_projects().below("due", after_now);
        let due = self.find(due).await?;
        waiting.more = due.len() >= self.page_records;
        waiting.due = self.group(due, now);
        waiting
            .ahead
            .retain(|record| record.body.work().due > Some(now));
        if waiting.looks_ahead(now) {
            let turns = Query::all_projects().at_least("due", after_now);
            let turns = turns.below("due", waiting.turns_until.0.saturating_add(1));
            let mut ahead = self.find(turns).await?;
            ahead.retain_mut(|record| record.body.work().is_put_off());
            waiting.ahead = self.group(ahead, now);
            waiting.ahead_read_at = Some(Instant::now());
        }
        Ok(())
    }

    /// Reads a page of records in order of their due times.
    async fn find(&self, query: Query) -> Result<Vec<Record<T>>> {
        let query = query.order_by("due");
        let query = query.page(0, self.page_records as u64).uncounted();
        Ok(self.claims.store.find::<T>(&query).await?.records)
    }

    /// Groups the records that no worker holds.
    fn group(&self, mut records: Vec<Record<T>>, now: Time) -> Groups<T> {
        let taking = self.taking.lock();
        records.retain_mut(|record| {
            !record.body.work().is_claimed(now) && !taking.contains(&record.id)
        });
        drop(taking);
        Groups::new(records, self.admission.key)
    }
}
