//! Tests of claims: who holds a record, and what a lost claim can still do.

use store::{Collection, Field};

use super::*;

static ITEMS_COLLECTION: Collection = Collection {
    name: "items",
    erasure: store::Erasure::Project,
    fields: &[Field::due("due")],
};

const CLAIM_TTL: Duration = Duration::from_secs(6);
/// Time for which a test waits for a change.
const TEST_DEADLINE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Item {
    #[serde(flatten)]
    work: WorkState,
    text: String,
}

impl Document for Item {
    const COLLECTION: &'static Collection = &ITEMS_COLLECTION;
}

impl Claimable for Item {
    fn work(&mut self) -> &mut WorkState {
        &mut self.work
    }
}

/// One item, with the clock by which it is claimed.
struct Fixture {
    claims: Claims,
    clock: Clock,
    _folder: tempfile::TempDir,
}

impl Fixture {
    async fn new(clock: Clock) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), &[&ITEMS_COLLECTION]).unwrap();
        let item = Item {
            work: WorkState::due_at(clock.now()),
            text: "new".to_owned(),
        };
        let batch = Batch::at(clock.now()).insert("p", "item", &item);
        store.commit(batch).await.unwrap();
        Self {
            claims: Claims::new(store, clock.clone()),
            clock,
            _folder: folder,
        }
    }

    async fn item(&self) -> Record<Item> {
        self.claims.store.get("p", "item").await.unwrap().unwrap()
    }

    async fn take(&self, ttl: Duration) -> Option<Claim<Item>> {
        self.claims.take(self.item().await, ttl).await.unwrap()
    }

    /// Waits until the stored item meets a condition.
    async fn wait_until(&self, condition: impl Fn(&Item) -> bool) {
        let signal = self.claims.store.commit_signal(&ITEMS_COLLECTION);
        let met = async {
            while !condition(&self.item().await.body) {
                signal.committed().await;
            }
        };
        timeout(TEST_DEADLINE, met).await.unwrap();
    }
}

fn insert(batch: Batch, text: &str) -> Batch {
    let item = Item {
        work: WorkState::default(),
        text: text.to_owned(),
    };
    batch.insert("p", text, &item)
}

#[tokio::test]
async fn only_lapsed_claim_is_taken_over() {
    let fixture = Fixture::new(Clock::standing_at(Time(1_000))).await;
    let claim = fixture.take(CLAIM_TTL).await.unwrap();
    for _ in 0..5 {
        fixture.clock.advance(CLAIM_TTL / 3);
        claim.check().await.unwrap();
        assert!(fixture.take(CLAIM_TTL).await.is_none());
        let due = fixture.item().await.body.work.due;
        assert_eq!(due, Some(time_after(fixture.clock.now(), CLAIM_TTL)));
    }
    fixture.clock.advance(CLAIM_TTL);
    let next = fixture.take(CLAIM_TTL).await.unwrap();
    assert_eq!(next.body().await.work.attempts, 1, "a lost worker counts");
    assert_eq!(claim.check().await, Err(CommitError::Stale));
}

#[tokio::test]
async fn lost_claim_commits_nothing() {
    let fixture = Fixture::new(Clock::standing_at(Time(1_000))).await;
    let old = fixture.take(CLAIM_TTL).await.unwrap();
    let batch = || Batch::at(fixture.clock.now());
    old.commit(insert(batch(), "in_time")).await.unwrap();
    fixture.clock.advance(CLAIM_TTL);
    let new = fixture.take(CLAIM_TTL).await.unwrap();
    let late = old.commit(insert(batch(), "late")).await;
    assert_eq!(late, Err(CommitError::Stale));
    let ended = old.end(batch(), |item| item.text = "late".to_owned()).await;
    assert_eq!(ended, Err(CommitError::Stale));
    assert_eq!(old.erase(batch()).await, Err(CommitError::Stale));
    assert_eq!(fixture.item().await.body.text, "new");
    new.commit(insert(batch(), "mine")).await.unwrap();
    let changed = new.end(batch(), |item| item.text = "done".to_owned()).await;
    changed.unwrap();
    assert_eq!(fixture.item().await.body.text, "done");
    assert_eq!(new.check().await, Err(CommitError::Stale), "it has ended");
}

#[tokio::test]
async fn guarded_batch_needs_the_claim() {
    let fixture = Fixture::new(Clock::standing_at(Time(1_000))).await;
    let commit = async |claim: &Claim<Item>, text: &str| {
        let batch = claim
            .guard(insert(Batch::at(fixture.clock.now()), text))
            .await?;
        fixture.claims.store.commit(batch).await
    };
    let old = fixture.take(CLAIM_TTL).await.unwrap();
    commit(&old, "first").await.unwrap();
    old.check().await.unwrap();
    commit(&old, "extended").await.unwrap();
    fixture.clock.advance(CLAIM_TTL);
    commit(&old, "lapsed").await.unwrap();
    let new = fixture.take(CLAIM_TTL).await.unwrap();
    assert_eq!(commit(&old, "late").await, Err(CommitError::Stale));
    commit(&new, "mine").await.unwrap();
    let ended = new.end(Batch::at(fixture.clock.now()), |_| {}).await;
    ended.unwrap();
    assert_eq!(commit(&old, "later").await, Err(CommitError::Stale));
    assert_eq!(commit(&new, "ended").await, Err(CommitError::Stale));
    for (text, is_stored) in [
        ("lapsed", true),
        ("mine", true),
        ("late", false),
        ("later", false),
    ] {
        let found = fixture.claims.store.get::<Item>("p", text).await.unwrap();
        assert_eq!(found.is_some(), is_stored, "{text}");
    }
}

#[tokio::test]
async fn refused_end_leaves_the_claim() {
    let fixture = Fixture::new(Clock::standing_at(Time(1_000))).await;
    let claim = fixture.take(CLAIM_TTL).await.unwrap();
    let batch = || Batch::at(fixture.clock.now());
    let taken = claim
        .end(insert(batch(), "item"), |item| item.text.clear())
        .await;
    assert!(matches!(taken, Err(CommitError::Invalid(_))), "{taken:?}");
    claim.check().await.unwrap();
    assert_eq!(fixture.item().await.body.text, "new");
    claim.end(batch(), |_| {}).await.unwrap();
}

#[tokio::test]
async fn claim_is_extended_while_its_work_runs() {
    let fixture = Fixture::new(Clock::system()).await;
    let claim = fixture.take(CLAIM_TTL / 2).await.unwrap();
    let first = claim.body().await.work.due;
    let work = fixture.wait_until(|item| item.work.due > first);
    claim.keep(work).await.unwrap();
    let batch = claim.batch().await.unwrap();
    claim.end(batch, |item| item.work.due = None).await.unwrap();
    assert_eq!(fixture.item().await.body.work.due, None);
}

#[tokio::test]
async fn work_ends_when_its_claim_is_lost() {
    let fixture = Fixture::new(Clock::system()).await;
    let claim = fixture.take(CLAIM_TTL / 2).await.unwrap();
    let other = Batch::at(fixture.clock.now()).update(&fixture.item().await);
    fixture.claims.store.commit(other).await.unwrap();
    let work = claim.keep(std::future::pending::<()>());
    let lost = timeout(TEST_DEADLINE, work).await.unwrap();
    assert_eq!(lost, Err(Lost::Taken));
}

#[tokio::test]
async fn work_to_the_end_outlives_its_claim() {
    let fixture = Fixture::new(Clock::system()).await;
    let claim = fixture.take(CLAIM_TTL / 20).await.unwrap();
    let other = Batch::at(fixture.clock.now()).update(&fixture.item().await);
    fixture.claims.store.commit(other).await.unwrap();
    let work = claim.keep_to_end(async {
        // The loss is found out by the first extension, before the work ends.
        sleep(CLAIM_TTL / 10).await;
        claim.check().await
    });
    assert_eq!(work.await, Err(CommitError::Stale));
}
