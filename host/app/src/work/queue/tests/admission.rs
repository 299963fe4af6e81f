//! Tests of queues that admit only some records.

use std::sync::atomic::AtomicBool;

use super::*;

/// Time for which an item is deferred.
const RETRY_DELAY: Duration = Duration::from_secs(60);

/// Shared state of workers that have permits for only some items.
#[derive(Default)]
struct Limited {
    has_permits: AtomicBool,
    begun: Mutex<Vec<String>>,
}

impl Limited {
    /// Returns a queue whose items need a permit, except those whose id starts with `free`.
    fn queue() -> Queue<Item, Self> {
        Queue {
            name: "items",
            shares: Shares::whole(2),
            lease_ttl: LEASE_TTL,
            retry_delay: |_| RETRY_DELAY,
            admission: Admission {
                key: |item: &Record<Item>| item.id.clone(),
                acquire: |limited: &Self, id, _| {
                    let has_permits = limited.has_permits.load(Ordering::SeqCst);
                    (has_permits || id.starts_with("free")).then_some(())
                },
                retry_at: Some(|_, _, now| time_after(now, RETRY_DELAY)),
            },
            work: |limited, claim, ()| {
                Box::pin(async move {
                    limited.begun.lock().push(claim.id().to_owned());
                    let done = claim.batch().await?;
                    claim.end(done, |item| item.work.due = None).await?;
                    Ok(Next::Ended)
                })
            },
        }
    }

    async fn wait_for(&self, store: &Store, items: usize) {
        let signal = store.commit_signal(&ITEMS_COLLECTION);
        while self.begun.lock().len() < items {
            signal.committed().await;
        }
    }
}

/// Works on a number of items without a permit, and on one with a permit, due after them. Frees
/// permits for all after some time. Returns the number of items that were written before.
async fn written_without_permit(items: usize, time: Duration) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), &[&ITEMS_COLLECTION, &RESULTS_COLLECTION]).unwrap();
    let clock = Clock::standing_at(Time(1_000));
    let claims = Claims::new(store.clone(), clock.clone());
    let mut batch = Batch::at(clock.now()).insert("p", "free", &Item::due_at(clock.now()));
    for number in 0..items {
        batch = batch.insert("p", &format!("item{number}"), &Item::due_at(Time(500)));
    }
    store.commit(batch).await.unwrap();
    let limited = Limited::default();
    let queue = Limited::queue();
    let all = async {
        limited.wait_for(&store, 1).await;
        assert_eq!(*limited.begun.lock(), ["free"]);
        let found = store.find::<Item>(&Query::for_project("p")).await.unwrap();
        let found = found.records.into_iter();
        let written = found.filter(|item| item.id != "free" && item.revision > 1);
        let written = written.count();
        limited.has_permits.store(true, Ordering::SeqCst);
        clock.advance(time);
        wake(&store).await;
        limited.wait_for(&store, items + 1).await;
        written
    };
    tokio::select! {
        () = queue.run(&claims, &limited) => unreachable!("a queue has no end"),
        written = tokio::time::timeout(TEST_DEADLINE, all) => written.unwrap(),
    }
}

#[tokio::test]
async fn items_wait_for_permits_without_a_claim() {
    assert_eq!(written_without_permit(10, RETRY_DELAY).await, 0);
}

#[tokio::test]
async fn items_without_permit_hide_no_other() {
    // The last page is not full. Its items are not deferred.
    assert_eq!(written_without_permit(200, RETRY_DELAY).await, 192);
}

#[tokio::test]
async fn deferred_items_use_permits_that_free_up() {
    assert_eq!(written_without_permit(200, Duration::ZERO).await, 192);
}

/// Number of projects that hold all that they may.
const HOSTILE_COUNT: usize = 8;
/// Number of due items of each of them.
const BACKLOG_ITEMS: usize = 3_000;

/// Returns a queue of items whose work takes until the test ends, but for the newcomer's.
fn shared_queue(retry_at: Option<RetryAt<Limited>>) -> Queue<Item, Limited> {
    let queue = Limited::queue();
    Queue {
        shares: Shares {
            total: 24,
            reserve: 8,
            base: 1,
            cap: 16,
        },
        admission: Admission {
            key: |item| item.project.clone(),
            acquire: |_, _, _| Some(()),
            retry_at,
        },
        work: |limited, claim, ()| {
            Box::pin(async move {
                limited.begun.lock().push(claim.project().to_owned());
                if claim.project() != "newcomer" {
                    std::future::pending::<()>().await;
                }
                let done = claim.batch().await?;
                claim.end(done, |item| item.work.due = None).await?;
                Ok(Next::Ended)
            })
        },
        ..queue
    }
}

/// Starts the work of a newcomer while others have thousands of due items. Returns the number of
/// items of the others that were written without being worked on, and of records that were read.
async fn cost_of_newcomer(retry_at: Option<RetryAt<Limited>>) -> (usize, usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let sled = Store::open(&path, &[&ITEMS_COLLECTION, &RESULTS_COLLECTION]).unwrap();
    let clock = Clock::standing_at(Time(100_000));
    let (claims, counted) = counted_claims(&sled, folder.path(), &clock);
    let project = |number: usize| format!("hostile{number}");
    for hostile in 0..HOSTILE_COUNT {
        let insert = |batch: Batch, number| {
            let due = Time(i64::try_from(hostile * BACKLOG_ITEMS + number).unwrap());
            let id = format!("{hostile}_{number}");
            batch.insert(&project(hostile), &id, &Item::due_at(due))
        };
        let batch = (0..BACKLOG_ITEMS).fold(Batch::at(clock.now()), insert);
        sled.commit(batch).await.unwrap();
    }
    let limited = Limited::default();
    let queue = shared_queue(retry_at);
    let newcomer = async {
        // One project holds all but the reserve, and each of the others its base.
        limited.wait_for(&sled, 23).await;
        let before = counted.records.load(Ordering::SeqCst);
        let batch = Batch::at(clock.now());
        let batch = batch.insert("newcomer", "newcomer", &Item::due_at(clock.now()));
        sled.commit(batch).await.unwrap();
        limited.wait_for(&sled, 24).await;
        counted.records.load(Ordering::SeqCst) - before
    };
    let read = tokio::select! {
        () = queue.run(&claims, &limited) => unreachable!("a queue has no end"),
        read = tokio::time::timeout(TEST_DEADLINE, newcomer) => read.unwrap(),
    };
    let last = limited.begun.lock().last().cloned();
    assert_eq!(last.as_deref(), Some("newcomer"));
    let found = sled.find::<Item>(&Query::all_projects()).await.unwrap();
    let found = found.records.into_iter();
    let written = found.filter(|item| item.project != "newcomer" && item.revision > 1);
    (written.count() - 23, read)
}

#[tokio::test]
async fn backlog_of_others_delays_no_newcomer() {
    let (written, read) = cost_of_newcomer(None).await;
    assert_eq!(written, 0, "items that wait are not written");
    assert!(read < 2_000, "{read} records were read");
}

#[tokio::test]
async fn deferred_records_delay_no_newcomer() {
    let retry_at: RetryAt<Limited> = |_, _, now| time_after(now, RETRY_DELAY);
    let (_, read) = cost_of_newcomer(Some(retry_at)).await;
    assert!(read < 4_000, "{read} records were read");
}

#[tokio::test]
async fn idle_queues_read_at_the_same_interval() {
    let folder = tempfile::tempdir().unwrap();
    let collections: [&Collection; 2] = [&ITEMS_COLLECTION, &RESULTS_COLLECTION];
    let sled = Store::open(&folder.path().join("store"), &collections).unwrap();
    let clock = Clock::standing_at(Time(100_000));
    let (claims, plain) = counted_claims(&sled, folder.path(), &clock);
    let (deferring_claims, deferring) = counted_claims(&sled, folder.path(), &clock);
    let limited = Limited::default();
    let (queue, deferring_queue) = (shared_queue(None), Limited::queue());
    let mut queries = plain.queries.subscribe();
    tokio::select! {
        () = queue.run(&claims, &limited) => unreachable!("a queue has no end"),
        () = deferring_queue.run(&deferring_claims, &limited) => unreachable!("a queue has no end"),
        read = tokio::time::timeout(TEST_DEADLINE, queries.wait_for(|queries| *queries > 4)) => {
            assert!(read.is_ok(), "the queue reads again");
        }
    }
    let queries = *deferring.queries.borrow();
    assert!(
        queries < 20,
        "{queries} queries, of which one is for deferred records"
    );
}
