//! Tests of queues: many workers that are killed and whose clock jumps, and the cost of looking.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
};

use async_trait::async_trait;
use futures::stream::{FuturesUnordered, StreamExt as _};
use parking_lot::Mutex;
use proptest::{collection::vec, prelude::*};
use serde::{Deserialize, Serialize};
use store::{
    Backend, Batch, Collection, Document, Field, Folder, Health, Page, Report, Row, Store,
};
use tokio::sync::{Notify, watch};

use super::*;
use crate::{
    Clock,
    core::ids,
    work::{WorkState, doubled},
};

mod admission;

static ITEMS_COLLECTION: Collection = Collection {
    name: "items",
    erasure: store::Erasure::Project,
    fields: &[Field::due("due")],
};
static RESULTS_COLLECTION: Collection = Collection {
    name: "results",
    erasure: store::Erasure::Project,
    fields: &[],
};

const LEASE_TTL: Duration = Duration::from_secs(60);
/// Time for which a test waits for work.
const TEST_DEADLINE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Item {
    #[serde(flatten)]
    work: WorkState,
    /// Number of attempts that fail before one succeeds.
    failures: u32,
}

impl Item {
    fn due_at(due: Time) -> Self {
        Self {
            work: WorkState::due_at(due),
            failures: 0,
        }
    }
}

impl Document for Item {
    const COLLECTION: &'static Collection = &ITEMS_COLLECTION;
}

impl Claimable for Item {
    fn work(&mut self) -> &mut WorkState {
        &mut self.work
    }
}

/// The result of an attempt that succeeded.
#[derive(Debug, Serialize, Deserialize)]
struct Done {
    item: String,
}

impl Document for Done {
    const COLLECTION: &'static Collection = &RESULTS_COLLECTION;
}

/// Shared state of the workers of a test.
#[derive(Default)]
struct Fixture {
    clock: Clock,
    /// The leases of the workers that are working, by item.
    working: Mutex<BTreeMap<String, BTreeMap<u64, Time>>>,
    attempts: AtomicU64,
    /// Wakes the workers in the middle of their work.
    go: Notify,
    violations: Mutex<Vec<String>>,
}

impl Fixture {
    fn at(clock: &Clock) -> Self {
        Self {
            clock: clock.clone(),
            ..Self::default()
        }
    }

    /// Notes the beginning of work, and a violation if another worker has a valid lease.
    fn begin(&self, item: &str, lease_until: Time) -> Working<'_> {
        let number = self.attempts.fetch_add(1, Ordering::SeqCst);
        let now = self.clock.now();
        let mut working = self.working.lock();
        let workers = working.entry(item.to_owned()).or_default();
        if workers.values().any(|until| *until > now) {
            let violation = format!("two workers have {item} at {now:?}: {workers:?}");
            self.violations.lock().push(violation);
        }
        workers.insert(number, lease_until);
        Working {
            fixture: self,
            item: item.to_owned(),
            number,
        }
    }
}

/// A worker in the middle of its work.
struct Working<'a> {
    fixture: &'a Fixture,
    item: String,
    number: u64,
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        let mut working = self.fixture.working.lock();
        if let Some(workers) = working.get_mut(&self.item) {
            workers.remove(&self.number);
        }
    }
}

fn queue(concurrency: usize) -> Queue<Item, Fixture> {
    Queue {
        name: "items",
        shares: Shares::whole(concurrency as u64),
        lease_ttl: LEASE_TTL,
        retry_delay: |attempts| {
            let [first, max] = [1, 10].map(Duration::from_secs);
            doubled(first, max, attempts)
        },
        admission: Admission::by_project(),
        work: |fixture, claim, ()| Box::pin(work(fixture, claim)),
    }
}

async fn work(fixture: &Fixture, claim: Arc<Claim<Item>>) -> Result<Next> {
    let item = claim.body().await;
    // A claimed record is due when its lease ends.
    let lease_until = item.work.due.unwrap_or_default();
    let working = fixture.begin(claim.id(), lease_until);
    // A third of the attempts wait in the middle until the test lets them go on.
    if working.number.is_multiple_of(3) {
        fixture.go.notified().await;
    }
    if item.failures > 0 {
        let failed = claim.batch().await?;
        let due = time_after(failed.now, Duration::from_secs(1));
        drop(working);
        let change = |item: &mut Item| {
            item.failures -= 1;
            item.work.due = Some(due);
        };
        claim.end(failed, change).await?;
        return Ok(Next::Ended);
    }
    let done = Done {
        item: claim.id().to_owned(),
    };
    let batch = claim.batch().await?;
    // The lease ends with the commit, before it returns.
    drop(working);
    let result = ids::random_text(12);
    let batch = batch.insert("p", &result, &done);
    claim.end(batch, |item| item.work.due = None).await?;
    Ok(Next::Ended)
}

#[derive(Debug, Clone)]
enum Event {
    /// The clock jumps by a number of seconds.
    Jump(u64),
    /// A server dies and another one starts.
    Kill(usize),
    /// The workers in the middle of their work go on.
    Go,
    /// Time passes in which the workers work.
    Work,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (1_u64..150).prop_map(Event::Jump),
        (0_usize..3).prop_map(Event::Kill),
        Just(Event::Go),
        Just(Event::Work),
    ]
}

/// Returns the number of results of each item whose id starts with a prefix.
async fn results(store: &Store, prefix: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for result in store
        .find::<Done>(&Query::for_project("p"))
        .await
        .unwrap()
        .records
    {
        if result.body.item.starts_with(prefix) {
            *found.entry(result.body.item).or_default() += 1;
        }
    }
    found
}

/// Adds a record that is never due, so that workers look for due ones.
async fn wake(store: &Store) {
    let item = Item {
        work: WorkState::default(),
        ..Item::due_at(Time(0))
    };
    let id = ids::random_text(12);
    let batch = Batch::at(Time(0)).insert("p", &id, &item);
    store.commit(batch).await.unwrap();
}

/// Lets three servers work on items while events happen, and then until all is done.
async fn run(store: &Store, prefix: &str, failures: &[u32], events: &[Event]) {
    let clock = Clock::standing_at(Time(1_000));
    let claims = Claims::new(store.clone(), clock.clone());
    let fixture = Fixture::at(&clock);
    let queue = queue(3);
    let mut batch = Batch::at(clock.now());
    for (number, failures) in failures.iter().enumerate() {
        let item = Item {
            failures: *failures,
            ..Item::due_at(clock.now())
        };
        batch = batch.insert("p", &format!("{prefix}{number}"), &item);
    }
    store.commit(batch).await.unwrap();
    let start = || Box::pin(queue.run(&claims, &fixture));
    let mut servers = [start(), start(), start()];
    let mut events = events.iter();
    let finished = async {
        loop {
            match events.next() {
                Some(Event::Jump(seconds)) => clock.advance(Duration::from_secs(*seconds)),
                Some(Event::Kill(server)) => servers[*server] = start(),
                Some(Event::Go) => fixture.go.notify_waiters(),
                Some(Event::Work) => {}
                None => {
                    clock.advance(LEASE_TTL);
                    fixture.go.notify_waiters();
                    if results(store, prefix).await.len() == failures.len() {
                        return;
                    }
                }
            }
            wake(store).await;
            let mut all: FuturesUnordered<_> = servers.iter_mut().collect();
            let commits = store.commit_signal(&ITEMS_COLLECTION);
            let steps = async {
                for _ in 0..4 {
                    commits.committed().await;
                }
            };
            tokio::select! {
                _ = all.next() => {}
                _ = tokio::time::timeout(Duration::from_millis(20), steps) => {}
            }
        }
    };
    tokio::time::timeout(TEST_DEADLINE, finished).await.unwrap();
    let counts = results(store, prefix).await;
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    assert_eq!(*fixture.violations.lock(), Vec::<String>::new());
}

#[test]
fn every_item_is_done_by_one_worker() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), &[&ITEMS_COLLECTION, &RESULTS_COLLECTION]).unwrap();
    let case = AtomicUsize::new(0);
    let config = ProptestConfig {
        cases: 16,
        max_shrink_iters: 32,
        ..ProptestConfig::default()
    };
    proptest!(config, |(failures in vec(0_u32..3, 1..12), events in vec(event(), 0..24))| {
        let prefix = format!("case{}_", case.fetch_add(1, Ordering::SeqCst));
        runtime.block_on(run(&store, &prefix, &failures, &events));
    });
}

/// A store that counts the queries and the records that they return.
struct Counted {
    store: Store,
    queries: watch::Sender<usize>,
    records: AtomicUsize,
}

#[async_trait]
impl Backend for Counted {
    async fn get(
        &self,
        collection: &'static Collection,
        id: &str,
    ) -> std::result::Result<Option<Row>, store::Error> {
        let query = Query::all_projects().is("id", id).with_deleted();
        Ok(self.find(collection, &query).await?.rows.pop())
    }

    async fn find(
        &self,
        collection: &'static Collection,
        query: &Query,
    ) -> std::result::Result<Page, store::Error> {
        let page = self.store.rows(collection, query).await?;
        self.records.fetch_add(page.rows.len(), Ordering::SeqCst);
        self.queries.send_modify(|queries| *queries += 1);
        Ok(page)
    }

    async fn scan(
        &self,
        collection: &'static Collection,
        after: &str,
        limit: u64,
    ) -> std::result::Result<Vec<Row>, store::Error> {
        self.store.scan(collection, after, limit).await
    }

    async fn commit(&self, batch: Batch) -> std::result::Result<(), CommitError> {
        self.store.commit(batch).await
    }

    fn health(&self) -> Health {
        self.store.health()
    }

    async fn verify(&self) -> std::result::Result<Report, store::Error> {
        Ok(self.store.verify().await)
    }

    async fn close(&self) {}
}

/// Returns claims on the records of a store, and the numbers of their queries and of the records they read.
fn counted_claims(sled: &Store, folder: &std::path::Path, clock: &Clock) -> (Claims, Arc<Counted>) {
    let counted = Arc::new(Counted {
        store: sled.clone(),
        queries: watch::Sender::default(),
        records: AtomicUsize::new(0),
    });
    let blobs = Arc::new(Folder::open(&folder.join("blobs")).unwrap());
    let store = Store::new(counted.clone(), blobs);
    (Claims::new(store, clock.clone()), counted)
}

#[tokio::test]
async fn looking_costs_what_is_due() {
    const ITEM_COUNT: usize = 20_000;
    const DUE_COUNT: usize = ITEM_COUNT / 100;
    let folder = tempfile::tempdir().unwrap();
    let sled = Store::open(
        &folder.path().join("store"),
        &[&ITEMS_COLLECTION, &RESULTS_COLLECTION],
    )
    .unwrap();
    let clock = Clock::standing_at(Time(1_000));
    let numbers: Vec<usize> = (0..ITEM_COUNT).collect();
    for part in numbers.chunks(5_000) {
        let insert = |batch: Batch, number: &usize| {
            let is_due = number.is_multiple_of(ITEM_COUNT / DUE_COUNT);
            let due = if is_due {
                clock.now()
            } else {
                Time(1_000_000_000)
            };
            batch.insert("p", &format!("i{number}"), &Item::due_at(due))
        };
        let batch = part.iter().fold(Batch::at(clock.now()), insert);
        sled.commit(batch).await.unwrap();
    }
    let (claims, counted) = counted_claims(&sled, folder.path(), &clock);
    let fixture = Fixture::at(&clock);
    let queue = queue(8);
    let signal = claims.store.commit_signal(&RESULTS_COLLECTION);
    let finished = async {
        while results(&sled, "i").await.len() < DUE_COUNT {
            signal.committed().await;
            fixture.go.notify_waiters();
        }
    };
    tokio::select! {
        () = queue.run(&claims, &fixture) => {}
        done = tokio::time::timeout(TEST_DEADLINE, finished) => done.unwrap(),
    }
    let read = counted.records.load(Ordering::SeqCst);
    assert!((DUE_COUNT..DUE_COUNT * 3).contains(&read), "{read}");
}

#[tokio::test]
async fn record_without_further_attempts_is_dead() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), &[&ITEMS_COLLECTION, &RESULTS_COLLECTION]).unwrap();
    let clock = Clock::standing_at(Time(1_000));
    let claims = Claims::new(store.clone(), clock.clone());
    let item = Item::due_at(clock.now());
    let batch = Batch::at(clock.now()).insert("p", "item", &item);
    store.commit(batch).await.unwrap();
    let queue = Queue::<Item, Fixture> {
        work: |fixture, _, ()| {
            let attempts = fixture.attempts.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move {
                let reason = "the provider is down".to_owned();
                Ok(match attempts {
                    0 | 1 => Next::Retry { reason },
                    _ => Next::GiveUp { reason },
                })
            })
        },
        ..queue(1)
    };
    let fixture = Fixture::at(&clock);
    let signal = store.commit_signal(&ITEMS_COLLECTION);
    let states = async {
        let mut dues = Vec::new();
        loop {
            let item = store.get::<Item>("p", "item").await.unwrap().unwrap().body;
            if item.work.due.is_none() {
                return (item, dues);
            }
            if !item.work.is_claimed(clock.now()) && item.work.due > Some(clock.now()) {
                dues.push(item.work.due);
                clock.advance(Duration::from_secs(100));
                wake(&store).await;
            }
            signal.committed().await;
        }
    };
    let (item, dues) = tokio::select! {
        () = queue.run(&claims, &fixture) => unreachable!("a queue has no end"),
        dead = tokio::time::timeout(TEST_DEADLINE, states) => dead.unwrap(),
    };
    assert_eq!(fixture.attempts.load(Ordering::SeqCst), 3);
    assert_eq!((item.work.due, item.work.attempts), (None, 3));
    assert!(dues[0] > Some(Time(1_000)) && dues[1] > Some(Time(101_000)));
}
