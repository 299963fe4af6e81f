//! Tests of queues that admit only some records.

use std::sync::atomic::AtomicBool;

use super::*;

/// Time after which an item that was put off has its turn.
const TURN_DELAY: Duration = Duration::from_secs(60);

/// Shared state of workers that have room for only some items.
#[derive(Default)]
struct Limited {
    has_room: AtomicBool,
    begun: Mutex<Vec<String>>,
}

impl Limited {
    /// Returns a queue whose items need room, except those whose id begins with `free`.
    fn queue() -> Queue<Item, Self> {
        Queue {
            name: "items",
            shares: Shares::whole(2),
            lease_ttl: LEASE_TTL,
            retry_delay: |_| None,
            admission: Admission {
                key: |item: &Record<Item>| item.id.clone(),
                enter: |limited: &Self, id, _| {
                    let has_room = limited.has_room.load(Ordering::SeqCst);
                    (has_room || id.starts_with("free")).then_some(())
                },
                turn: |_, _, now| time_after(now, TURN_DELAY),
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

/// Works on a number of items without room, and on one with room that is due after them. Lets all
/// have room after some time. Returns the number of items that were written before.
async fn written_without_room(items: usize, time: Duration) -> usize {
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
        limited.has_room.store(true, Ordering::SeqCst);
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
async fn items_wait_for_room_without_a_claim() {
    assert_eq!(written_without_room(10, TURN_DELAY).await, 0);
}

#[tokio::test]
async fn items_without_room_hide_no_other() {
    // The last page is not full. Its items are not put off.
    assert_eq!(written_without_room(200, TURN_DELAY).await, 192);
}

#[tokio::test]
async fn free_room_is_used_before_a_turn() {
    assert_eq!(written_without_room(200, Duration::ZERO).await, 192);
}
