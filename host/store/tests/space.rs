//! The embedded store's file stays in proportion to its content while records are added and
//! removed.

use host_store::{Batch, Collection, Document, Erasure, Field, Kind, Store, Time};
use serde::{Deserialize, Serialize};

static NOTES_COLLECTION: Collection = Collection {
    name: "notes",
    erasure: Erasure::Project,
    fields: &[Field::unique("name", Kind::Text)],
};

#[derive(Debug, Serialize, Deserialize)]
struct Note {
    name: String,
    text: String,
}

impl Document for Note {
    const COLLECTION: &'static Collection = &NOTES_COLLECTION;
}

#[tokio::test]
async fn removed_large_records_release_their_space() {
    const ROUND_COUNT: usize = 600;
    const LARGE_BYTES: usize = 130_000;
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), &[&NOTES_COLLECTION]).unwrap();
    let note = |id: &str, length: usize| Note {
        name: id.to_owned(),
        text: "x".repeat(length),
    };
    for round in 0..ROUND_COUNT {
        let at = Time(round as i64);
        for place in 0..3 {
            let id = format!("{round:06}-{place}");
            store
                .commit(Batch::at(at).insert("p", &id, &note(&id, 300)))
                .await
                .unwrap();
        }
        let id = format!("{round:06}-large");
        store
            .commit(Batch::at(at).insert("p", &id, &note(&id, LARGE_BYTES)))
            .await
            .unwrap();
        let large = store.lookup::<Note>(&id).await.unwrap().unwrap();
        store.commit(Batch::at(at).purge(&large)).await.unwrap();
    }
    let held = std::fs::metadata(folder.path().join("sled/db"))
        .unwrap()
        .len();
    let gone = (ROUND_COUNT * LARGE_BYTES) as u64;
    assert!(
        held < gone / 5,
        "of {gone} bytes that went the file holds {held}"
    );
}
