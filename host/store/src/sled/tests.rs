//! Tests that need direct access to the tree.

use super::keys::{Key, Prefix, State};
use super::*;
use crate::{Document, Field, Kind, Record, Time};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

static NOTES_COLLECTION: Collection = Collection {
    name: "notes",
    erasure: crate::Erasure::Project,
    fields: &[Field::unique("name", Kind::Text)],
};

#[derive(Debug, Serialize, Deserialize)]
struct Note {
    name: String,
}

impl Document for Note {
    const COLLECTION: &'static Collection = &NOTES_COLLECTION;
}

fn batch(id: &str, name: &str) -> Batch {
    Batch::at(Time(1)).insert(
        "p",
        id,
        &Note {
            name: name.to_owned(),
        },
    )
}

async fn opened(folder: &tempfile::TempDir) -> Sled {
    let sled = Sled::open(folder.path(), &[&NOTES_COLLECTION]).unwrap();
    sled.commit(batch("small", "s")).await.unwrap();
    let rest = "x".repeat(20_000);
    let large = Batch::at(Time(1)).insert("p", "large", &Large { rest });
    sled.commit(large).await.unwrap();
    sled
}

fn tree(sled: &Sled) -> ::sled::Db {
    sled.0.files().unwrap().db.clone()
}

/// Closes the store and opens it with these collections.
async fn reopened(
    sled: Sled,
    folder: &tempfile::TempDir,
    collections: &[&'static Collection],
) -> Result<Sled, OpenError> {
    sled.close().await;
    drop(sled);
    Sled::open(folder.path(), collections)
}

async fn assert_damaged(sled: Sled, folder: &tempfile::TempDir) {
    let opened = reopened(sled, folder, &[&NOTES_COLLECTION]).await;
    assert!(matches!(opened, Err(OpenError::Damaged { .. })));
}

async fn damage(sled: &Sled) -> Vec<String> {
    sled.verify().await.unwrap().damage
}

#[derive(Debug, Serialize, Deserialize)]
struct Large {
    rest: String,
}

impl Document for Large {
    const COLLECTION: &'static Collection = &NOTES_COLLECTION;
}

fn flip(sled: &Sled, key: &Key) {
    let db = tree(sled);
    let mut value = db.get(key.bytes()).unwrap().unwrap().to_vec();
    let middle = value.len() / 2;
    value[middle] ^= 4;
    db.insert(key.bytes(), value).unwrap();
}

#[tokio::test]
async fn flipped_bit_fails_reads_and_verify() {
    for (id, key) in [
        ("small", Key::document(0, "small")),
        ("large", Key::piece(0, "large", 1, 2)),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let sled = opened(&folder).await;
        assert_eq!(damage(&sled).await, Vec::<String>::new());
        flip(&sled, &key);
        assert!(matches!(
            sled.get(&NOTES_COLLECTION, id).await,
            Err(Error::Damaged { .. })
        ));
        assert!(matches!(
            sled.find(&NOTES_COLLECTION, &Query::for_project("p")).await,
            Err(Error::Damaged { .. })
        ));
        let lines = damage(&sled).await;
        assert!(lines.iter().any(|line| line.contains(id)));
        assert_damaged(sled, &folder).await;
    }
}

#[tokio::test]
async fn missing_and_stray_keys_are_detected() {
    let age = Key::age(0, State::Live, "p");
    let index = Key::index(0, State::Live, "p", 0);
    let gone = [
        age,
        index,
        Key::collection(Prefix::Unique, 0),
        Key::collection(Prefix::Counter, 0),
    ];
    for start in gone.iter().map(Some).chain([None]) {
        let folder = tempfile::tempdir().unwrap();
        let sled = opened(&folder).await;
        let db = tree(&sled);
        match start {
            Some(start) => {
                let (key, _) = db.scan_prefix(start.bytes()).next().unwrap().unwrap();
                db.remove(key).unwrap();
            }
            None => {
                let stray = Key::age(0, State::Live, "p").suffix(Time(5), "stray");
                db.insert(stray.bytes(), &[]).unwrap();
            }
        }
        drop(db);
        assert!(damage(&sled).await.len() > 1);
        assert_damaged(sled, &folder).await;
    }
}

#[tokio::test]
async fn leftover_marks_are_removed_at_start() {
    let folder = tempfile::tempdir().unwrap();
    let sled = opened(&folder).await;
    let marks = [Key::document(0, "gone"), Key::piece(0, "gone", 1, 0)];
    for mark in &marks {
        tree(&sled).insert(mark.bytes(), &[]).unwrap();
    }
    assert_eq!(sled.get(&NOTES_COLLECTION, "gone").await.unwrap(), None);
    let opened = reopened(sled, &folder, &[&NOTES_COLLECTION]).await;
    let sled = opened.unwrap();
    assert_eq!(damage(&sled).await, Vec::<String>::new());
    for mark in &marks {
        assert_eq!(tree(&sled).get(mark.bytes()).unwrap(), None);
    }
}

#[tokio::test]
async fn reverted_record_is_detected_at_start() {
    let folder = tempfile::tempdir().unwrap();
    let sled = opened(&folder).await;
    let key = Key::document(0, "small");
    let before = tree(&sled).get(key.bytes()).unwrap().unwrap();
    let row = sled.get(&NOTES_COLLECTION, "small").await.unwrap().unwrap();
    let record: Record<Note> = row.map(|_| Note {
        name: "s".to_owned(),
    });
    sled.commit(Batch::at(Time(2)).update(&record))
        .await
        .unwrap();
    tree(&sled).insert(key.bytes(), before).unwrap();
    assert_damaged(sled, &folder).await;
}

static RENAMED_COLLECTION: Collection = Collection {
    name: "notes",
    erasure: crate::Erasure::Project,
    fields: &[
        Field::new("rest", Kind::Text),
        Field::new("name", Kind::Text),
        Field::new("new", Kind::Int),
    ],
};
static CLASHING_COLLECTION: Collection = Collection {
    name: "notes",
    erasure: crate::Erasure::Project,
    fields: &[Field::unique("kind", Kind::Text)],
};
static OTHER_COLLECTION: Collection = Collection {
    name: "other",
    erasure: crate::Erasure::Project,
    fields: &[],
};

#[tokio::test]
async fn changed_declaration_rebuilds_indexes() {
    let folder = tempfile::tempdir().unwrap();
    let sled = Sled::open(folder.path(), &[&NOTES_COLLECTION]).unwrap();
    for name in 0..300 {
        sled.commit(batch(&format!("n{name}"), &format!("{name}")))
            .await
            .unwrap();
    }
    let opened = reopened(sled, &folder, &[&OTHER_COLLECTION, &RENAMED_COLLECTION]).await;
    let sled = opened.unwrap();
    assert_eq!(damage(&sled).await, Vec::<String>::new());
    let query = Query::for_project("p")
        .order_by("name")
        .descending()
        .page(0, 1);
    let page = sled.find(&RENAMED_COLLECTION, &query).await.unwrap();
    assert_eq!((page.total, &*page.rows[0].id), (300, "n99"));
    sled.commit(batch("twice", "99")).await.unwrap();
    let opened = reopened(sled, &folder, &[&NOTES_COLLECTION]).await;
    let error = opened.err().unwrap();
    assert!(
        error
            .to_string()
            .contains("name of notes is declared unique"),
        "{error}"
    );
    let sled = Sled::open(folder.path(), &[&RENAMED_COLLECTION]).unwrap();
    assert_eq!(
        sled.verify().await.unwrap(),
        Report {
            records: 301,
            ..Report::default()
        }
    );
}

#[test]
fn a_declaration_that_means_nothing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    static SHADOW_COLLECTION: Collection = Collection {
        name: "s",
        erasure: crate::Erasure::Project,
        fields: &[Field::new("created_at", Kind::Time)],
    };
    for collections in [
        &[&NOTES_COLLECTION, &CLASHING_COLLECTION][..],
        &[&SHADOW_COLLECTION][..],
    ] {
        assert!(matches!(
            Sled::open(folder.path(), collections),
            Err(OpenError::Declaration { .. })
        ));
    }
}

static MANY_COLLECTION: Collection = Collection {
    name: "many",
    erasure: crate::Erasure::Project,
    fields: &[
        Field::unique("name", Kind::Text),
        Field::new("colour", Kind::Text),
        Field::new("rank", Kind::Int),
        Field::due("due"),
        Field::new("tags", Kind::List),
        Field::new("on", Kind::Text),
    ],
};

#[derive(Debug, Serialize, Deserialize)]
struct One {
    name: String,
    colour: String,
    rank: i64,
    due: i64,
    tags: Vec<String>,
    on: bool,
}

impl Document for One {
    const COLLECTION: &'static Collection = &MANY_COLLECTION;
}

/// Deletes every record outside of the pages directly in the tree. A query that reads one of them
/// fails.
#[tokio::test]
async fn page_reads_only_its_own_records() {
    const RECORD_COUNT: i64 = 20_000;
    const BATCH_RECORDS: i64 = 5_000;
    let folder = tempfile::tempdir().unwrap();
    let sled = Sled::open(folder.path(), &[&MANY_COLLECTION]).unwrap();
    for start in (0..RECORD_COUNT).step_by(BATCH_RECORDS as usize) {
        let batch = (start..start + BATCH_RECORDS).fold(Batch::at(Time(0)), |batch, n| {
            let colour = format!("c{}", n % 8);
            let tags = vec![format!("t{}", n % 8)];
            let one = One {
                name: format!("n{n}"),
                colour,
                rank: n % 8,
                due: n % 8,
                tags,
                on: n % 2 == 0,
            };
            batch.insert_created(Time(n), "p", &format!("r{n}"), &one)
        });
        sled.commit(batch).await.unwrap();
    }
    let all = Query::for_project("p");
    let queries = [
        (all.clone(), 20_000),
        (all.clone().descending(), 20_000),
        (all.clone().order_by("rank").descending(), 20_000),
        (all.clone().is("name", "n7"), 1),
        (all.clone().is("colour", "c7"), 2_500),
        (all.clone().is("rank", 7), 2_500),
        (all.clone().below("due", 1).descending(), 2_500),
        (Query::all_projects().below("due", 2).order_by("due"), 5_000),
        (all.clone().is("tags", "t7").descending(), 2_500),
        (all.clone().is("on", true), 10_000),
        (
            all.clone()
                .any_of("rank", [6_i64, 7])
                .at_least("created_at", 19_000),
            250,
        ),
        (all.at_least("created_at", 17_500), 2_500),
    ];
    let mut pages = Vec::new();
    for (query, total) in queries {
        for page in [0, 99] {
            let query = query.clone().page(page * 20, 20);
            let found = sled.find(&MANY_COLLECTION, &query).await.unwrap();
            let length = 20.min(total - (page * 20).min(total));
            assert_eq!(
                (found.total, found.rows.len() as u64),
                (total, length),
                "{query:?}"
            );
            pages.push((query, found));
        }
    }
    let named: HashSet<_> = pages
        .iter()
        .flat_map(|(_, page)| &page.rows)
        .map(|row| row.id.clone())
        .collect();
    let db = tree(&sled);
    for id in (0..RECORD_COUNT)
        .map(|n| format!("r{n}"))
        .filter(|id| !named.contains(id))
    {
        db.remove(Key::document(0, &id).bytes()).unwrap().unwrap();
    }
    assert!(
        sled.find(&MANY_COLLECTION, &Query::for_project("p"))
            .await
            .is_err(),
        "what is gone cannot be read"
    );
    for (query, page) in pages {
        assert_eq!(
            sled.find(&MANY_COLLECTION, &query).await.unwrap(),
            page,
            "{query:?}"
        );
    }
}
