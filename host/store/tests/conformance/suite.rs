//! The conformance suite: one function per guarantee.

use bytes::Bytes;
use host_store::{
    Batch, Collection, CommitError, Cursor, Document, EditError, Erasure, Field, Health, Kind,
    MAX_VALUES_PER_READ, Query, Record, Store, Time,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::task::Poll;
use tokio::task::JoinSet;

/// An empty store, with a way to open it again.
pub(crate) trait Place {
    fn new() -> Self;
    async fn open(&self) -> Store;
}

pub(crate) static COLLECTIONS: &[&Collection] = &[&THINGS_COLLECTION, &NOTES_COLLECTION];

pub(crate) static THINGS_COLLECTION: Collection = Collection {
    name: "things",
    erasure: Erasure::Project,
    fields: &[
        Field::unique("name", Kind::Text),
        Field::new("colour", Kind::Text),
        Field::new("rank", Kind::Int),
        Field::due("due"),
        Field::new("tags", Kind::List),
        Field::new("on", Kind::Text),
    ],
};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Thing {
    pub(crate) name: Option<String>,
    pub(crate) colour: Option<String>,
    pub(crate) rank: Option<i64>,
    pub(crate) due: Option<i64>,
    pub(crate) tags: Vec<String>,
    pub(crate) on: bool,
    pub(crate) rest: String,
}

impl Document for Thing {
    const COLLECTION: &'static Collection = &THINGS_COLLECTION;
}

pub(crate) static NOTES_COLLECTION: Collection = Collection {
    name: "notes",
    erasure: Erasure::Project,
    fields: &[],
};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Note {
    pub(crate) text: String,
}

impl Document for Note {
    const COLLECTION: &'static Collection = &NOTES_COLLECTION;
}

pub(crate) fn named(name: &str) -> Thing {
    Thing {
        name: Some(name.to_owned()),
        ..Thing::default()
    }
}

fn note(text: &str) -> Note {
    Note {
        text: text.to_owned(),
    }
}

fn at(time: i64) -> Batch {
    Batch::at(Time(time))
}

async fn commit(store: &Store, batch: Batch) {
    store.commit(batch).await.unwrap();
}

/// Inserts a record of the same name into each of two projects.
async fn insert_in_two_projects(store: &Store) {
    let first = at(1).insert("p", "t1", &named("a"));
    commit(store, first.insert("q", "t2", &named("a"))).await;
}

/// Returns the error of a commit whose value of a field is in use.
fn taken(collection: &'static str, field: &'static str) -> CommitError {
    CommitError::Taken { collection, field }
}

/// Returns the number of records that a query selects.
async fn total<T: Document>(store: &Store, query: &Query) -> u64 {
    store.find::<T>(query).await.unwrap().total
}

async fn thing(store: &Store, id: &str) -> Record<Thing> {
    store.get("p", id).await.unwrap().unwrap()
}

/// Checks that nothing is broken, also after the store is opened again.
pub(crate) async fn whole(place: &impl Place, store: Store) -> Store {
    assert_eq!(store.verify().await.damage, Vec::<String>::new());
    store.close().await;
    let store = place.open().await;
    assert_eq!(store.verify().await.damage, Vec::<String>::new());
    store
}

pub(crate) async fn a_record_reads_as_it_was_written(place: impl Place) {
    let store = place.open().await;
    let body = Thing {
        rank: Some(-1),
        tags: vec!["x".into()],
        rest: "\u{1F600}\n\"".into(),
        ..named("a")
    };
    store.commit(at(5).insert("p", "t1", &body)).await.unwrap();
    let store = whole(&place, store).await;
    let expected = Record {
        id: "t1".to_owned(),
        project: "p".to_owned(),
        revision: 1,
        created_at: Time(5),
        updated_at: Time(5),
        deleted_at: None,
        body,
    };
    assert_eq!(store.get("p", "t1").await.unwrap(), Some(expected.clone()));
    assert_eq!(store.lookup("t1").await.unwrap(), Some(expected));
    assert_eq!(store.lookup::<Thing>("t2").await.unwrap(), None);
    assert_eq!(store.health(), Health::Ready);
}

pub(crate) async fn another_projects_record_is_not_found(place: impl Place) {
    let store = place.open().await;
    insert_in_two_projects(&store).await;
    assert_eq!(store.get::<Thing>("q", "t1").await.unwrap(), None);
    assert_eq!(total::<Thing>(&store, &Query::for_project("q")).await, 1);
    assert_eq!(total::<Thing>(&store, &Query::all_projects()).await, 2);
    let mut stolen = thing(&store, "t1").await;
    stolen.project = "q".to_owned();
    assert_eq!(
        store.commit(at(2).update(&stolen)).await,
        Err(CommitError::Stale)
    );
}

pub(crate) async fn live_records_of_a_project_read_together(place: impl Place) {
    let store = place.open().await;
    let batch = at(1)
        .insert("p", "a", &named("a"))
        .insert("p", "\u{0}", &named("b"))
        .insert("p", "removed", &named("c"))
        .insert("q", "other", &named("d"));
    commit(&store, batch).await;
    let removed = thing(&store, "removed").await;
    store.commit(at(2).remove(&removed)).await.unwrap();
    let ids = ["a", "missing", "\u{0}", "removed", "a", "other"];
    let found = store.get_many::<Thing>("p", &ids).await.unwrap();
    for id in ["a", "\u{0}"] {
        assert_eq!(found.get(id), Some(&thing(&store, id).await));
    }
    assert_eq!(found.len(), 2);
    assert!(store.get_many::<Thing>("p", &[]).await.unwrap().is_empty());
}

pub(crate) async fn more_ids_than_one_read_takes_are_read(place: impl Place) {
    let store = place.open().await;
    let ids: Vec<String> = (0..=MAX_VALUES_PER_READ).map(|n| format!("n{n}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    for ids in ids.chunks(250) {
        let insert = |batch: Batch, id: &&str| batch.insert("p", id, &named(id));
        store.commit(ids.iter().fold(at(1), insert)).await.unwrap();
    }
    let found = store.get_many::<Thing>("p", &ids).await.unwrap();
    assert_eq!(found.len(), ids.len());
    let all = Query::for_project("p");
    let counts = store.count_by::<Thing>(&all, "name", &ids).await.unwrap();
    assert_eq!(counts.values().sum::<u64>(), ids.len() as u64);
}

pub(crate) async fn a_batch_holds_wholly_or_not_at_all(place: impl Place) {
    let store = place.open().await;
    let both = at(1).insert("p", "t1", &named("a"));
    commit(&store, both.insert("p", "n1", &note("old"))).await;
    let first = thing(&store, "t1").await;
    let other: Record<Note> = store.get("p", "n1").await.unwrap().unwrap();
    let stale = Record {
        revision: 9,
        ..other.clone()
    };
    let batch = || at(2).insert("p", "a2", &named("b")).update(&first);
    assert_eq!(
        store.commit(batch().update(&stale)).await,
        Err(CommitError::Stale)
    );
    assert_eq!(
        store.commit(batch().check(&stale)).await,
        Err(CommitError::Stale)
    );
    assert_eq!(
        store.commit(batch().insert("p", "n1", &note("new"))).await,
        Err(taken("notes", "id"))
    );
    assert_eq!(store.get::<Thing>("p", "a2").await.unwrap(), None);
    assert_eq!(thing(&store, "t1").await, first);
    store.commit(batch().check(&other)).await.unwrap();
    assert_eq!(thing(&store, "t1").await.revision, 2);
    assert_eq!(
        store.get::<Note>("p", "n1").await.unwrap(),
        Some(other),
        "a check changes nothing"
    );
    whole(&place, store).await;
}

pub(crate) async fn many_changes_hold_together_or_not_at_all(place: impl Place) {
    let store = place.open().await;
    let ids: Vec<_> = (0..40).map(|number| format!("n\u{0}{number}")).collect();
    let insert = |batch: Batch, id: &String| batch.insert("p\u{1}", id, &note("\u{0}old"));
    store.commit(ids.iter().fold(at(1), insert)).await.unwrap();
    let all = || async {
        let query = Query::for_project("p\u{1}");
        store.find::<Note>(&query).await.unwrap().records
    };
    let mut notes = all().await;
    assert_eq!(notes.len(), ids.len());
    for note in &mut notes {
        note.body.text = format!("\u{1}{}", note.id);
    }
    let update = |notes: &[Record<Note>]| notes.iter().fold(at(2), Batch::update);
    let mut one_stale = notes.clone();
    one_stale[7].revision += 1;
    let refused = store.commit(update(&one_stale)).await;
    assert_eq!(refused, Err(CommitError::Stale));
    let refused = store.commit(insert(insert(at(2), &ids[3]), &"new".to_owned()));
    assert_eq!(refused.await, Err(taken("notes", "id")));
    assert!(all().await.iter().all(|note| note.revision == 1));
    store.commit(update(&notes)).await.unwrap();
    for (changed, note) in all().await.iter().zip(&notes) {
        assert_eq!((&changed.id, &changed.body), (&note.id, &note.body));
        let times = (changed.created_at, changed.updated_at);
        assert_eq!((changed.revision, times), (2, (Time(1), Time(2))));
    }
    whole(&place, store).await;
}

pub(crate) async fn writers_of_many_records_lose_nothing(place: impl Place) {
    let store = place.open().await;
    let ids: Vec<_> = (0..30).map(|number| format!("n{number}")).collect();
    let insert = |batch: Batch, id: &String| batch.insert("p", id, &note(""));
    store.commit(ids.iter().fold(at(1), insert)).await.unwrap();
    let mut writers = JoinSet::new();
    for writer in 0..8 {
        let store = store.clone();
        writers.spawn(async move {
            loop {
                let page = store.find::<Note>(&Query::for_project("p")).await.unwrap();
                let mut notes = page.records;
                // Two writers name records of the same set in opposite orders.
                if writer % 2 == 0 {
                    notes.reverse();
                }
                match store.commit(notes.iter().fold(at(2), Batch::update)).await {
                    Ok(()) => return,
                    Err(cause) => assert_eq!(cause, CommitError::Stale),
                }
            }
        });
    }
    writers.join_all().await;
    let page = store.find::<Note>(&Query::for_project("p")).await.unwrap();
    assert!(page.records.iter().all(|note| note.revision == 9));
    whole(&place, store).await;
}

pub(crate) async fn a_stale_revision_is_refused(place: impl Place) {
    let store = place.open().await;
    commit(&store, at(1).insert("p", "t1", &named("a"))).await;
    let old = thing(&store, "t1").await;
    commit(
        &store,
        at(2).update(&Record {
            body: named("b"),
            ..old.clone()
        }),
    )
    .await;
    for batch in [
        at(3).update(&old),
        at(3).remove(&old),
        at(3).purge(&old),
        at(3).check(&old),
    ] {
        assert_eq!(store.commit(batch).await, Err(CommitError::Stale));
    }
    let now = thing(&store, "t1").await;
    assert_eq!(
        (now.revision, now.created_at, now.updated_at),
        (2, Time(1), Time(2))
    );
    assert_eq!(now.body, named("b"));
}

pub(crate) async fn unique_value_belongs_to_one_live_record(place: impl Place) {
    let store = place.open().await;
    let taken = Err(taken("things", "name"));
    insert_in_two_projects(&store).await;
    assert_eq!(
        store.commit(at(2).insert("p", "t3", &named("a"))).await,
        taken
    );
    assert_eq!(
        store
            .commit(
                at(2)
                    .insert("p", "t3", &named("b"))
                    .insert("p", "t4", &named("b"))
            )
            .await,
        taken
    );
    commit(
        &store,
        at(2)
            .insert("p", "t3", &named("b"))
            .insert("p", "t4", &Thing::default()),
    )
    .await;
    commit(&store, at(2).insert("p", "t5", &Thing::default())).await;
    let third = thing(&store, "t3").await;
    assert_eq!(
        store
            .commit(at(3).update(&Record {
                body: named("a"),
                ..third.clone()
            }))
            .await,
        taken
    );
    store.commit(at(3).update(&third)).await.unwrap();
    // A unique value does not pass from one record to another inside a batch.
    let first = thing(&store, "t1").await;
    assert_eq!(
        store
            .commit(at(4).remove(&first).insert("p", "t6", &named("a")))
            .await,
        taken
    );
    commit(
        &store,
        at(4).update(&Record {
            body: named("c"),
            ..first
        }),
    )
    .await;
    commit(&store, at(5).insert("p", "t6", &named("a"))).await;
    whole(&place, store).await;
}

pub(crate) async fn removed_record_is_hidden_and_releases_values(place: impl Place) {
    let store = place.open().await;
    commit(&store, at(1).insert("p", "t1", &named("a"))).await;
    let first = thing(&store, "t1").await;
    store.commit(at(2).remove(&first)).await.unwrap();
    assert_eq!(store.get::<Thing>("p", "t1").await.unwrap(), None);
    assert_eq!(
        total::<Thing>(&store, &Query::for_project("p").is("name", "a")).await,
        0
    );
    let hidden = store
        .find::<Thing>(&Query::for_project("p").is("name", "a").with_deleted())
        .await
        .unwrap()
        .records
        .remove(0);
    assert_eq!(
        (hidden.deleted_at, hidden.updated_at, hidden.revision),
        (Some(Time(2)), Time(2), 2)
    );
    commit(&store, at(3).insert("p", "t2", &named("a"))).await;
    for batch in [
        at(4).update(&hidden),
        at(4).remove(&hidden),
        at(4).check(&hidden),
    ] {
        assert_eq!(store.commit(batch).await, Err(CommitError::Stale));
    }
    assert_eq!(
        store.commit(at(4).insert("p", "t1", &named("z"))).await,
        Err(taken("things", "id")),
        "an id is never free again"
    );
    let store = whole(&place, store).await;
    store.commit(at(5).purge(&hidden)).await.unwrap();
    assert_eq!(
        total::<Thing>(&store, &Query::for_project("p").with_deleted()).await,
        1
    );
    commit(&store, at(6).insert("p", "t1", &named("z"))).await;
    whole(&place, store).await;
}

pub(crate) async fn one_concurrent_insert_of_an_id_wins(place: impl Place) {
    let store = place.open().await;
    commit(&store, at(1).insert("p", "t1", &named("free"))).await;
    let read = thing(&store, "t1").await;
    let mut racers = JoinSet::new();
    for racer in 0..32 {
        let store = store.clone();
        let mine = Record {
            body: named(&format!("r{racer}")),
            ..read.clone()
        };
        racers.spawn(async move { store.commit(at(2).update(&mine)).await });
    }
    let mut winners = 0;
    for result in racers.join_all().await {
        match result {
            Ok(()) => winners += 1,
            Err(error) => assert_eq!(error, CommitError::Stale),
        }
    }
    assert_eq!((winners, thing(&store, "t1").await.revision), (1, 2));
}

pub(crate) async fn one_concurrent_claim_of_a_value_wins(place: impl Place) {
    let store = place.open().await;
    let mut racers = JoinSet::new();
    for racer in 0..32 {
        let store = store.clone();
        racers.spawn(async move {
            store
                .commit(at(1).insert("p", &format!("t{racer}"), &named("one")))
                .await
        });
    }
    let winners = racers
        .join_all()
        .await
        .iter()
        .filter(|result| result.is_ok())
        .count();
    assert_eq!(
        (
            winners,
            total::<Thing>(&store, &Query::for_project("p")).await
        ),
        (1, 1)
    );
    whole(&place, store).await;
}

pub(crate) async fn sixteen_writers_lose_nothing(place: impl Place) {
    let store = place.open().await;
    commit(
        &store,
        at(1).insert(
            "p",
            "sum",
            &Thing {
                rank: Some(0),
                ..Thing::default()
            },
        ),
    )
    .await;
    let mut writers = JoinSet::new();
    for writer in 0..16 {
        let store = store.clone();
        writers.spawn(async move {
            for round in 0..12 {
                let pair = |half: &str| format!("w{writer}-{round}-{half}");
                let body = Thing {
                    rank: Some(round),
                    colour: Some(format!("w{writer}")),
                    ..Thing::default()
                };
                commit(
                    &store,
                    at(2)
                        .insert("p", &pair("a"), &body)
                        .insert("p", &pair("b"), &body),
                )
                .await;
                let seen = store
                    .find::<Thing>(&Query::for_project("p").is("colour", format!("w{writer}")))
                    .await
                    .unwrap();
                assert_eq!(
                    seen.total,
                    2 * (round as u64 + 1),
                    "a list shows no half of a batch"
                );
                while bump(&store).await.is_err() {}
            }
        });
    }
    writers.join_all().await;
    let store = whole(&place, store).await;
    assert_eq!(
        total::<Thing>(&store, &Query::for_project("p")).await,
        1 + 16 * 12 * 2
    );
    assert_eq!(thing(&store, "sum").await.body.rank, Some(16 * 12));
}

pub(crate) async fn every_one_of_sixty_four_writers_succeeds(place: impl Place) {
    let store = place.open().await;
    all_succeed(std::slice::from_ref(&store)).await;
    whole(&place, store).await;
}

/// Lets 64 writers change one record concurrently, and checks that each has done so once.
pub(crate) async fn all_succeed(stores: &[Store]) {
    stores[0]
        .commit(at(1).insert(
            "p",
            "sum",
            &Thing {
                rank: Some(0),
                ..Thing::default()
            },
        ))
        .await
        .unwrap();
    let mut writers = JoinSet::new();
    for writer in 0..64 {
        let store = stores[writer % stores.len()].clone();
        writers.spawn(async move { bump(&store).await });
    }
    for done in writers.join_all().await {
        done.unwrap();
    }
    let sum = thing(&stores[0], "sum").await;
    assert_eq!((sum.body.rank, sum.revision), (Some(64), 65));
}

async fn bump(store: &Store) -> Result<(), EditError<()>> {
    let change = |thing: &mut Thing| {
        thing.rank = thing.rank.map(|rank| rank + 1);
        Ok(())
    };
    store.edit("p", "sum", Time(3), change).await.map(|_| ())
}

pub(crate) async fn edit_changes_record_or_returns_error(place: impl Place) {
    let store = place.open().await;
    commit(&store, at(1).insert("p", "t1", &named("a"))).await;
    let rename = |name: &'static str| {
        move |thing: &mut Thing| -> Result<Option<String>, &str> {
            if name.is_empty() {
                Err("no name")
            } else {
                Ok(thing.name.replace(name.to_owned()))
            }
        }
    };
    assert_eq!(
        store.edit("p", "t1", Time(2), rename("b")).await.unwrap(),
        Some(Some("a".to_owned()))
    );
    assert_eq!(
        store.edit("q", "t1", Time(2), rename("c")).await.unwrap(),
        None
    );
    assert!(matches!(
        store.edit("p", "t1", Time(2), rename("")).await,
        Err(EditError::Change("no name"))
    ));
    assert_eq!(thing(&store, "t1").await.body, named("b"));
}

pub(crate) async fn a_large_body_is_kept_whole(place: impl Place) {
    let store = place.open().await;
    let large = |fill: &str, length: usize| note(&fill.repeat(length));
    let sizes = [6_000, 6_144, 6_145, 16_384, 1_000_000];
    let mut batch = at(1);
    for size in sizes {
        batch = batch.insert("p", &format!("n{size}"), &large("x", size));
    }
    store.commit(batch).await.unwrap();
    let store = whole(&place, store).await;
    for size in sizes {
        let record: Record<Note> = store.get("p", &format!("n{size}")).await.unwrap().unwrap();
        assert_eq!(record.body, large("x", size));
        let smaller = Record {
            body: large("\u{e9}", size / 2 + 1),
            ..record.clone()
        };
        store.commit(at(2).update(&smaller)).await.unwrap();
        let again: Record<Note> = store.get("p", &record.id).await.unwrap().unwrap();
        assert_eq!(again.body, smaller.body);
        commit(
            &store,
            if size % 2 == 0 {
                at(3).remove(&again)
            } else {
                at(3).purge(&again)
            },
        )
        .await;
    }
    whole(&place, store).await;
}

pub(crate) async fn large_body_is_never_read_mixed(place: impl Place) {
    let store = place.open().await;
    let filled = |digit: i64| note(&digit.to_string().repeat(100_000));
    commit(&store, at(0).insert("p", "n", &filled(0))).await;
    let mut writer = JoinSet::new();
    writer.spawn({
        let store = store.clone();
        async move {
            for digit in 1..=9 {
                let change = |note: &mut Note| Ok::<_, ()>(std::mem::replace(note, filled(digit)));
                store.edit("p", "n", Time(digit), change).await.unwrap();
            }
        }
    });
    while writer.try_join_next().is_none() {
        let read: Record<Note> = store.get("p", "n").await.unwrap().unwrap();
        assert_eq!(read.body, filled(read.updated_at.0));
        tokio::task::yield_now().await;
    }
    assert_eq!(
        store.get::<Note>("p", "n").await.unwrap().unwrap().revision,
        10
    );
}

pub(crate) async fn any_unicode_is_kept_and_found(place: impl Place) {
    let store = place.open().await;
    let texts = [
        "",
        " ",
        "\u{1}",
        "a\u{0}b",
        "a",
        "aa",
        "\u{e9}",
        "e\u{301}",
        "\u{1F469}\u{200D}\u{1F4BB}",
        "\u{10FFFF}",
        "%_\\'\"",
    ];
    let mut batch = at(1);
    for (place, text) in texts.iter().enumerate() {
        batch = batch.insert("p\u{1F600}", &format!("\u{e9}{place}"), &named(text));
    }
    store.commit(batch).await.unwrap();
    let store = whole(&place, store).await;
    for (place, text) in texts.iter().enumerate() {
        let found = store
            .find::<Thing>(&Query::for_project("p\u{1F600}").is("name", *text))
            .await
            .unwrap();
        assert_eq!(
            found.records.iter().map(|r| &*r.id).collect::<Vec<_>>(),
            [format!("\u{e9}{place}")]
        );
    }
    let sorted = store
        .find::<Thing>(&Query::for_project("p\u{1F600}").order_by("name"))
        .await
        .unwrap();
    let names = sorted
        .records
        .into_iter()
        .map(|record| record.body.name.unwrap())
        .collect::<Vec<_>>();
    assert_eq!(
        names,
        texts
            .iter()
            .map(|text| (*text).to_owned())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
    );
}

pub(crate) async fn what_cannot_be_stored_is_refused_in_words(place: impl Place) {
    let store = place.open().await;
    let long = "x".repeat(1025);
    let many = Thing {
        tags: (0..257).map(|n| n.to_string()).collect(),
        ..Thing::default()
    };
    for batch in [
        at(1).insert("p", "", &named("a")),
        at(1).insert("p", &long, &named("a")),
        at(1).insert(&long, "t", &named("a")),
        at(1).insert("p", "t", &named(&long)),
        at(1).insert("p", "t", &many),
        at(1)
            .insert("p", "t", &named("a"))
            .insert("p", "t", &named("b")),
    ] {
        assert!(matches!(
            store.commit(batch).await,
            Err(CommitError::Invalid(_))
        ));
    }
    assert_eq!(total::<Thing>(&store, &Query::all_projects()).await, 0);
    assert!(
        store
            .find::<Thing>(&Query::for_project("p").is("rest", "x"))
            .await
            .is_err()
    );
    commit(
        &store,
        at(1).insert("", &"i".repeat(256), &named(&long[1..])),
    )
    .await;
    assert_eq!(
        total::<Thing>(&store, &Query::for_project("").is("name", &long[1..])).await,
        1
    );
}

pub(crate) async fn pages_follow_one_another_without_gap_or_overlap(place: impl Place) {
    let store = place.open().await;
    let mut batch = at(0);
    for n in 0..100_i64 {
        let body = Thing {
            rank: Some(n % 7),
            ..Thing::default()
        };
        batch = batch.insert_created(Time(n / 3), "p", &format!("t{:02}", (n * 37) % 100), &body);
    }
    store.commit(batch).await.unwrap();
    for query in [
        Query::for_project("p"),
        Query::for_project("p").descending(),
        Query::for_project("p").order_by("rank"),
        Query::for_project("p").order_by("rank").descending(),
    ] {
        let all = store.find::<Thing>(&query).await.unwrap();
        assert_eq!((all.total, all.records.len()), (100, 100));
        for size in [1, 7, 100] {
            let mut paged = Vec::new();
            for page in 0..101 / size + 2 {
                let found = store
                    .find::<Thing>(&query.clone().page(page * size, size))
                    .await
                    .unwrap();
                assert_eq!(found.total, 100);
                paged.extend(found.records);
            }
            assert_eq!(paged, all.records);
        }
    }
}

pub(crate) async fn uncounted_pages_follow_one_another(place: impl Place) {
    let store = place.open().await;
    let mut batch = at(0);
    for n in 0..40_i64 {
        let body = Thing {
            colour: Some("r".to_owned()),
            ..Thing::default()
        };
        batch = batch.insert_created(Time(n / 3), "p", &format!("t{:02}", (n * 37) % 40), &body);
    }
    store.commit(batch).await.unwrap();
    let aged = Query::for_project("p")
        .at_least("created_at", 2)
        .below("created_at", 11);
    let colored = Query::for_project("p").is("colour", "r");
    for query in [
        aged.clone(),
        aged.descending(),
        colored.clone(),
        colored.descending(),
    ] {
        let all = store.find::<Thing>(&query).await.unwrap().records;
        let mut read = Vec::new();
        let mut left = query.clone().page(0, 4).uncounted();
        loop {
            let page = store.list::<Thing>(&left).await.unwrap();
            assert_eq!(page.total, 0);
            read.extend(page.items);
            let Some(next) = page.next else { break };
            left = left.after(next);
        }
        assert_eq!(read, all, "{query:?}");
    }
}

pub(crate) async fn rows_are_read_without_bodies_if_asked(place: impl Place) {
    let store = place.open().await;
    let mut batch = at(1);
    for (id, project, rank) in [("t1", "p", 3), ("t2", "q", 2), ("t3", "p", 1)] {
        let body = Thing {
            colour: Some("r".to_owned()),
            rank: Some(rank),
            rest: "x".repeat(9_000),
            ..Thing::default()
        };
        batch = batch.insert(project, id, &body);
    }
    store.commit(batch).await.unwrap();
    let all = Query::all_projects();
    for query in [
        Query::for_project("p"),
        Query::for_project("p").below("rank", 9).order_by("rank"),
        Query::for_project("p").is("colour", "r").uncounted(),
        all.clone().below("created_at", 9).page(1, 1),
        all.is("colour", "r").below("rank", 9).order_by("rank"),
    ] {
        let rows = async |query: &Query| store.rows(&THINGS_COLLECTION, query).await.unwrap();
        let mut expected = rows(&query).await;
        for row in &mut expected.rows {
            assert!(row.body.len() > 9_000, "{query:?}");
            row.body = Bytes::new();
        }
        assert!(!expected.rows.is_empty(), "{query:?}");
        let query = query.without_bodies();
        assert_eq!(rows(&query).await, expected, "{query:?}");
    }
}

pub(crate) async fn page_of_large_records_ends_early(place: impl Place) {
    const RECORD_COUNT: usize = 60;
    let store = place.open().await;
    for number in 0..RECORD_COUNT {
        let body = Thing {
            rest: "x".repeat(100 << 10),
            ..Thing::default()
        };
        let batch = at(1).insert("p", &format!("t{number:02}"), &body);
        store.commit(batch).await.unwrap();
    }
    let mut sizes = Vec::new();
    let mut left = Query::for_project("p").page(0, 1_000);
    loop {
        let page = store.list::<Thing>(&left).await.unwrap();
        assert_eq!(page.total, RECORD_COUNT as u64);
        sizes.push(page.items.len());
        let Some(next) = page.next else { break };
        left = left.after(next);
    }
    assert_eq!(sizes, [40, 20]);
}

pub(crate) async fn a_list_misses_nothing_that_stays(place: impl Place) {
    let store = place.open().await;
    let orders = [
        Query::for_project("p"),
        Query::for_project("p").descending(),
        Query::for_project("p").order_by("rank"),
        Query::for_project("p").order_by("rank").descending(),
    ];
    let filtered = orders
        .iter()
        .map(|query| query.clone().is("colour", "r"))
        .collect::<Vec<_>>();
    for (pass, query) in orders.iter().chain(&filtered).enumerate() {
        let mut batch = at(0);
        for n in 0..40_i64 {
            let rank = Some(n % 7).filter(|rank| *rank > 0);
            let body = Thing {
                rank,
                colour: Some("r".to_owned()),
                ..Thing::default()
            };
            batch = batch.insert_created(
                Time(n / 3),
                "p",
                &format!("t{pass}-{:02}", (n * 37) % 40),
                &body,
            );
        }
        store.commit(batch).await.unwrap();
        let all = store.find::<Thing>(query).await.unwrap().records;
        let mut read = Vec::new();
        let mut left = query.clone().page(0, 7);
        loop {
            let page = store.list::<Thing>(&left).await.unwrap();
            // Half of the records that were read, every second one, are deleted before the next
            // page is read.
            let gone = page
                .items
                .iter()
                .step_by(2)
                .fold(at(9), |batch, record| batch.remove(record));
            assert_eq!(page.total, all.len() as u64 - removed(&read));
            read.extend(page.items);
            store.commit(gone).await.unwrap();
            let Some(next) = page.next else { break };
            left = left.after(next);
        }
        assert_eq!(read, all, "{query:?}");
        let rest = store
            .find::<Thing>(&Query::for_project("p"))
            .await
            .unwrap()
            .records;
        commit(
            &store,
            rest.iter()
                .fold(at(10), |batch, record| batch.purge(record)),
        )
        .await;
    }
    let unfit = Cursor {
        value: Some("r".into()),
        created_at: Time(0),
        id: "t".to_owned(),
    };
    assert!(
        store
            .find::<Thing>(
                &Query::for_project("p")
                    .order_by("rank")
                    .after(unfit.clone())
            )
            .await
            .is_err()
    );
    assert!(
        store
            .find::<Thing>(&Query::for_project("p").after(unfit))
            .await
            .is_err()
    );
    whole(&place, store).await;
}

/// Returns how many records of full pages of seven were deleted: the first, third, fifth and
/// seventh of each page.
fn removed(read: &[Record<Thing>]) -> u64 {
    (read.len() / 7 * 4) as u64
}

pub(crate) async fn everything_is_read_out_in_order_of_id(place: impl Place) {
    let store = place.open().await;
    let ids = ["B", "a", "a0", "a_", "ab", "\u{e9}"];
    for id in ids.iter().rev() {
        commit(&store, at(1).insert("p", id, &named(id))).await;
    }
    commit(
        &store,
        at(1).insert("p", "a1", &note("of another collection")),
    )
    .await;
    commit(&store, at(2).remove(&thing(&store, "a0").await)).await;
    let mut read = Vec::new();
    let mut after = String::new();
    loop {
        let rows = store.scan(&THINGS_COLLECTION, &after, 4).await.unwrap();
        let Some(last) = rows.last() else { break };
        assert!(rows.len() <= 4);
        after.clone_from(&last.id);
        read.extend(rows);
    }
    assert_eq!(
        read.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(),
        ids
    );
    assert_eq!(
        read[2].deleted_at,
        Some(Time(2)),
        "removed records are read out, too"
    );
}

pub(crate) async fn a_restored_record_is_what_it_was(place: impl Place) {
    let store = place.open().await;
    let row = |id: &str, deleted_at: Option<i64>| Record {
        id: id.to_owned(),
        project: "p".to_owned(),
        revision: 7,
        created_at: Time(3),
        updated_at: Time(5),
        deleted_at: deleted_at.map(Time),
        body: Bytes::from(serde_json::to_vec(&named("same")).unwrap()),
    };
    let restored = [
        row("gone", Some(5)),
        row("gone too", Some(5)),
        row("here", None),
    ];
    let batch = restored.iter().fold(at(9), |batch, row| {
        batch.restore(&THINGS_COLLECTION, row.clone())
    });
    store.commit(batch).await.unwrap();
    assert_eq!(
        store
            .commit(at(9).restore(&THINGS_COLLECTION, row("gone", None)))
            .await,
        Err(taken("things", "id"))
    );
    assert_eq!(
        store
            .commit(at(9).restore(&THINGS_COLLECTION, row("other", None)))
            .await,
        Err(taken("things", "name"))
    );
    let store = whole(&place, store).await;
    let read = store.scan(&THINGS_COLLECTION, "", 9).await.unwrap();
    let body = |row: &Record<Bytes>| serde_json::from_slice::<Thing>(&row.body).unwrap();
    assert_eq!(
        read.iter().map(body).collect::<Vec<_>>(),
        restored.iter().map(body).collect::<Vec<_>>()
    );
    let bare = |rows: &[Record<Bytes>]| {
        rows.iter()
            .map(|row| row.clone().map(|_| ()))
            .collect::<Vec<_>>()
    };
    assert_eq!(bare(&read), bare(&restored));
    assert_eq!(
        total::<Thing>(&store, &Query::for_project("p").is("name", "same")).await,
        1
    );
    commit(&store, at(10).update(&thing(&store, "here").await)).await;
}

pub(crate) async fn pause_delays_commits_until_dropped(place: impl Place) {
    let store = place.open().await;
    let pause = store.pause().await;
    let mut writing = Box::pin(store.commit(at(1).insert("p", "t", &named("a"))));
    assert!(poll_fn(|context| Poll::Ready(writing.as_mut().poll(context).is_pending())).await);
    assert_eq!(store.scan(&THINGS_COLLECTION, "", 1).await.unwrap(), []);
    drop(pause);
    writing.await.unwrap();
    assert_eq!(
        store.scan(&THINGS_COLLECTION, "", 1).await.unwrap().len(),
        1
    );
}

pub(crate) async fn a_closed_store_answers_unavailable(place: impl Place) {
    let store = place.open().await;
    let other = store.clone();
    store.close().await;
    assert_eq!(other.health(), Health::Closed);
    assert!(other.lookup::<Thing>("t").await.is_err());
    assert!(other.find::<Thing>(&Query::for_project("p")).await.is_err());
    assert!(matches!(
        other.commit(at(1).insert("p", "t", &named("a"))).await,
        Err(CommitError::Unavailable(_))
    ));
    place.open().await;
}

macro_rules! promises {
    ($place:ty) => {
        $crate::suite::promises! { $place:
            suite: a_record_reads_as_it_was_written, another_projects_record_is_not_found,
                live_records_of_a_project_read_together, more_ids_than_one_read_takes_are_read,
                a_batch_holds_wholly_or_not_at_all, a_stale_revision_is_refused,
                unique_value_belongs_to_one_live_record,
                removed_record_is_hidden_and_releases_values, one_concurrent_insert_of_an_id_wins,
                many_changes_hold_together_or_not_at_all, writers_of_many_records_lose_nothing,
                one_concurrent_claim_of_a_value_wins, sixteen_writers_lose_nothing,
                every_one_of_sixty_four_writers_succeeds, a_list_misses_nothing_that_stays, page_of_large_records_ends_early,
                uncounted_pages_follow_one_another, rows_are_read_without_bodies_if_asked,
                edit_changes_record_or_returns_error, a_large_body_is_kept_whole,
                large_body_is_never_read_mixed, any_unicode_is_kept_and_found,
                what_cannot_be_stored_is_refused_in_words, pages_follow_one_another_without_gap_or_overlap,
                everything_is_read_out_in_order_of_id, a_restored_record_is_what_it_was,
                pause_delays_commits_until_dropped,
                a_closed_store_answers_unavailable;
        }
        $crate::suite::promises! { $place:
            random: queries_over_many_records_match_the_reference;
        }

        #[test]
        fn random_batches_and_queries_match_the_reference() {
            $crate::random::random_batches_and_queries_match_the_reference::<$place>();
        }
    };
    ($place:ty: $module:ident: $($promise:ident),*;) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $promise() {
            $crate::$module::$promise(<$place as $crate::suite::Place>::new()).await;
        })*
    };
}
pub(crate) use promises;
