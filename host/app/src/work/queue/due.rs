//! The due records of a queue, which the workers of one server take up.
//!
//! One worker looks on behalf of all. Records without room wait in memory. If more records are due
//! than were read, the next page leaves out the projects that have records in memory. However many
//! records of other projects are due, a project without any is therefore found after one page for
//! each of them, and nothing is written meanwhile.
//!
//! In a queue in which other records of the same project may have room, those that hide them are
//! put off to a later turn. A record that was put off is taken up before its turn once there is room
//! for it, so that a turn that was estimated too late leaves no room unused.

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

use super::{Admission, MAX_TURN_DELAY, POLL_INTERVAL, Turn};
use crate::{
    Result,
    core::{clock::time_after, ids},
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
/// Pages of records that may wait in memory when another one is read.
const MAX_WAITING_PAGES: usize = 4;
/// Part of a page that stays in memory of each group while many records wait, as a divisor.
const KEPT_PART: usize = 8;

/// Permit of a worker, and the room of the admission.
type Room<R> = (Permit<String>, R);

/// The due records that the workers of one server take up.
pub(super) struct Due<'a, T, C, R> {
    claims: &'a Claims,
    context: &'a C,
    admission: &'a Admission<T, C, R>,
    /// Permits of workers, by project.
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
    /// Time at which due records of all projects were read.
    all_read_at: Option<Instant>,
    /// True if more records may be due of projects that have none in memory.
    more: bool,
    /// True if more records may be due of projects that have some in memory.
    hides_some: bool,
    /// Records that were put off and whose turn has not come.
    ahead: Groups<T>,
    /// Time at which those of all projects were read.
    ahead_read_at: Option<Instant>,
    /// True if there may be more of projects that have none in memory.
    more_ahead: bool,
    /// Time until which records that were put off come due. None before the first read.
    turns_until: Option<Time>,
}

impl<T> Waiting<T> {
    /// Takes a record for which there is room. Due records come first.
    fn admit<R>(&mut self, enter: impl Fn(&str, &str) -> Option<R>) -> Option<(Record<T>, R)> {
        if let Some((record, room, last)) = self.due.admit(&enter) {
            self.more |= last && self.hides_some;
            return Some((record, room));
        }
        let (record, room, last) = self.ahead.admit(&enter)?;
        self.more_ahead |= last;
        Some((record, room))
    }

    /// Forgets the due records in memory, so that those of all projects are read.
    fn forget(&mut self) {
        self.due.0.clear();
        self.all_read_at = None;
        self.hides_some = false;
    }

    /// Returns true if records that were put off are to be read before their turn. If none of those
    /// that were read has room, they are read again after a while only.
    fn looks_ahead(&self, now: Time) -> bool {
        let is_read = is_recent(self.ahead_read_at) && !self.more_ahead;
        !self.more && self.turns_until > Some(now) && !is_read
    }
}

fn is_recent(read_at: Option<Instant>) -> bool {
    read_at.is_some_and(|read_at| read_at.elapsed() < POLL_INTERVAL)
}

/// Records in random order, grouped by project and the key of their room. No group is empty.
struct Groups<T>(VecDeque<Group<T>>);

struct Group<T> {
    project: String,
    key: String,
    records: Vec<Record<T>>,
}

impl<T> Groups<T> {
    fn new(mut records: Vec<Record<T>>, key: fn(&Record<T>) -> String) -> Self {
        records.sort_by_cached_key(|_| ids::random::<4>());
        let mut groups = HashMap::<_, Vec<_>>::new();
        for record in records {
            let name = (record.project.clone(), key(&record));
            groups.entry(name).or_default().push(record);
        }
        let groups = groups.into_iter();
        let groups = groups.map(|((project, key), records)| Group {
            project,
            key,
            records,
        });
        Self(groups.collect())
    }

    /// Takes a record of the first group for which there is room, which becomes the last group.
    /// Returns true with the last record of a group.
    fn admit<R>(
        &mut self,
        enter: impl Fn(&str, &str) -> Option<R>,
    ) -> Option<(Record<T>, R, bool)> {
        for _ in 0..self.0.len() {
            let mut group = self.0.pop_front()?;
            let admitted = enter(&group.project, &group.key)
                .and_then(|room| Some((group.records.pop()?, room, group.records.is_empty())));
            if !group.records.is_empty() {
                self.0.push_back(group);
            }
            if admitted.is_some() {
                return admitted;
            }
        }
        None
    }

    /// Returns the number of records.
    fn record_count(&self) -> usize {
        self.0.iter().map(|group| group.records.len()).sum()
    }

    /// Leaves the projects of these records out of a query.
    fn without_own_projects(&self, query: Query) -> Query {
        let projects: HashSet<_> = self.0.iter().map(|group| &*group.project).collect();
        let own = Predicate::AnyOf(projects.into_iter().map(Scalar::from).collect());
        query.test("project", Predicate::Not(Box::new(own)))
    }

    /// Keeps a number of records of each group.
    fn truncate(&mut self, records: usize) {
        for group in &mut self.0 {
            group.records.truncate(records);
        }
    }

    fn retain(&mut self, mut is_kept: impl FnMut(&mut Record<T>) -> bool) {
        self.0.retain_mut(|group| {
            group.records.retain_mut(&mut is_kept);
            !group.records.is_empty()
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
            all_read_at: None,
            more: true,
            hides_some: false,
            ahead: Groups(VecDeque::new()),
            ahead_read_at: None,
            more_ahead: false,
            turns_until: None,
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
            let enter = |project: &str, key: &str| self.enter(project, key, now);
            if let Some((record, room)) = waiting.admit(enter) {
                self.taking.lock().insert(record.id.clone());
                return Ok((record, room));
            }
            if !self.reads_on(&mut waiting) {
                match self.admission.turn {
                    Some(turn) if waiting.hides_some => {
                        self.put_off(&mut waiting, turn, now).await?;
                    }
                    turn => {
                        if !self.is_read_again(&waiting, now).await {
                            continue;
                        }
                        // With turns, other records of the same projects may have room. Without
                        // them, other servers may have taken up the records in memory.
                        if turn.is_some() || !is_recent(waiting.all_read_at) {
                            waiting.forget();
                        }
                    }
                }
            }
            self.read_page(&mut waiting).await?;
        }
    }

    /// Returns true if due records of further projects are to be read now. Leaves memory for them.
    fn reads_on(&self, waiting: &mut Waiting<T>) -> bool {
        if waiting.more && waiting.due.record_count() > self.page_records {
            waiting.due.truncate(self.page_records / KEPT_PART);
            waiting.hides_some = true;
        }
        waiting.more && self.has_memory(&waiting.due)
    }

    /// Takes a worker and room for the work on a record of a project, if there are both.
    fn enter(&self, project: &str, key: &str, now: Time) -> Option<Room<R>> {
        let permit = self.workers.try_acquire(&project.to_owned()).ok()?;
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
        let poll_interval = match waiting.turns_until > Some(now) {
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
    async fn put_off(&self, waiting: &mut Waiting<T>, turn: Turn<C>, now: Time) -> Result<()> {
        let mut batch = Batch::at(now);
        for group in waiting.due.0.drain(..) {
            for mut record in group.records {
                let turn = turn(self.context, &group.key, now);
                record.body.work().put_off(turn);
                waiting.turns_until = waiting.turns_until.max(Some(turn));
                batch = batch.update(&record);
            }
        }
        waiting.forget();
        waiting.more_ahead = true;
        match self.claims.store.commit(batch).await {
            // Another worker has changed one of the records. All of them are read again.
            Ok(()) | Err(CommitError::Stale) => Ok(()),
            Err(cause) => Err(cause.into()),
        }
    }

    /// Reads a page of due records of the projects that have none in memory, and one of those that
    /// were put off if there may be room for them.
    async fn read_page(&self, waiting: &mut Waiting<T>) -> Result<()> {
        let read_at = Instant::now();
        waiting.read_at = Some(read_at);
        let now = self.claims.now().await?;
        let after_now = now.0.saturating_add(1);
        let mut due = Query::all_projects().below("due", after_now);
        if waiting.due.0.is_empty() {
            waiting.all_read_at = Some(read_at);
            waiting.hides_some = false;
        } else {
            due = waiting.due.without_own_projects(due);
        }
        let due = self.find(due).await?;
        waiting.more = due.len() >= self.page_records;
        waiting.hides_some |= waiting.more;
        waiting.due.0.extend(self.group(due, now).0);
        waiting
            .ahead
            .retain(|record| record.body.work().due > Some(now));
        if self.admission.turn.is_some() {
            // Those that were put off before this server started are found, too.
            let at_start = || time_after(now, MAX_TURN_DELAY);
            let until = *waiting.turns_until.get_or_insert_with(at_start);
            if waiting.looks_ahead(now) {
                self.read_ahead(waiting, now, until).await?;
            }
        }
        Ok(())
    }

    /// Reads a page of the records that were put off, of the projects that have none in memory.
    async fn read_ahead(&self, waiting: &mut Waiting<T>, now: Time, until: Time) -> Result<()> {
        let [from, to] = [now, until].map(|time| time.0.saturating_add(1));
        let mut turns = Query::all_projects().at_least("due", from).below("due", to);
        if is_recent(waiting.ahead_read_at) {
            waiting.ahead.truncate(self.page_records / KEPT_PART);
            turns = waiting.ahead.without_own_projects(turns);
        } else {
            waiting.ahead.0.clear();
            waiting.ahead_read_at = Some(Instant::now());
        }
        let mut ahead = self.find(turns).await?;
        let is_last = ahead.len() < self.page_records;
        ahead.retain_mut(|record| record.body.work().is_put_off());
        waiting.ahead.0.extend(self.group(ahead, now).0);
        waiting.more_ahead = !is_last && self.has_memory(&waiting.ahead);
        Ok(())
    }

    /// Returns true if another page of records may be read beside those in memory.
    fn has_memory(&self, groups: &Groups<T>) -> bool {
        groups.record_count() <= MAX_WAITING_PAGES * self.page_records
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
