//! An exported store is restored unchanged, and a file that was changed or truncated anywhere is
//! refused.

#![expect(
    clippy::unwrap_used,
    reason = "a test that meets an error it does not expect has failed"
)]

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use age::secrecy::ExposeSecret;
use host_app::{
    COLLECTIONS,
    core::vault::{KeyFile, Vault},
    lifecycle::archive::{self, ArchiveError, Counts, Lock, Unlock},
};
use proptest::{collection::vec, prelude::*, test_runner::Config};
use store::{Batch, Row, Store, Time};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;

/// A folder with a key file and an identity, and the lock for that identity.
struct Place {
    folder: TempDir,
    key: KeyFile,
    lock: Lock,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = KeyFile::create(&folder.path().join("master.key")).unwrap();
        let identity = age::x25519::Identity::generate();
        std::fs::write(
            folder.path().join("identity"),
            identity.to_string().expose_secret(),
        )
        .unwrap();
        let lock = Lock::recipient(&identity.to_public().to_string()).unwrap();
        Self { folder, key, lock }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn store(&self, name: &str) -> Store {
        Store::open(&self.path(name), COLLECTIONS).unwrap()
    }

    fn unlock(&self) -> Unlock {
        Unlock::identities(&self.path("identity")).unwrap()
    }

    async fn pack(&self, store: &Store, name: &str) -> Result<Counts, ArchiveError> {
        let mut read = Vec::new();
        archive::export_frames(store, &mut read).await.unwrap();
        archive::pack(
            || Ok(&*read),
            &self.path(name),
            &self.lock,
            &self.key,
            &mut |_| {},
        )
    }

    fn check(&self, name: &str) -> Result<archive::CheckedArchive, ArchiveError> {
        archive::check(&self.path(name), &self.unlock(), &mut |_| {})
    }

    async fn restore(&self, name: &str, into: &Store) -> Result<(), ArchiveError> {
        archive::restore(
            into,
            self.check(name)?,
            Arc::new(self.unlock()),
            &mut |_| {},
        )
        .await
    }
}

/// Returns all records and blobs of a store, in order.
async fn content(store: &Store) -> (Vec<(&'static str, Row)>, Vec<(String, Vec<u8>)>) {
    let mut rows = Vec::new();
    let mut blobs = Vec::new();
    for at in COLLECTIONS {
        rows.extend(
            store
                .scan(at, "", u64::MAX)
                .await
                .unwrap()
                .into_iter()
                .map(|row| (at.name, row)),
        );
    }
    for key in store.blobs().keys().await.unwrap() {
        let bytes = store.blobs().get(&key).await.unwrap().unwrap().to_vec();
        blobs.push((key, bytes));
    }
    (rows, blobs)
}

fn row() -> impl Strategy<Value = (usize, Row)> {
    let ids = (
        "[a-zA-Z0-9_é]{1,12}",
        "[a-z]{0,3}",
        any::<i32>(),
        any::<i32>(),
        any::<Option<i32>>(),
    );
    // The first collection holds the keys of the vault, which must be openable.
    (1..COLLECTIONS.len(), ids, 1..9_i64, "\\PC{0,40}", 0..60_000_usize).prop_map(
        |(at, (id, project, created, updated, deleted), revision, text, long)| {
            let time = |time: i32| Time(time.into());
            let body = serde_json::json!({ "text": text, "long": "x".repeat(if long > 59_000 { long } else { 0 }) });
            let row = Row {
                id,
                project,
                revision,
                created_at: time(created),
                updated_at: time(updated),
                deleted_at: deleted.map(time),
                body: serde_json::to_vec(&body).unwrap().into(),
            };
            (at, row)
        },
    )
}

proptest! {
    #![proptest_config(Config { cases: 12, failure_persistence: None, ..Config::default() })]

    #[test]
    fn what_was_exported_is_imported_equal(rows in vec(row(), 0..300), blobs in vec(vec(any::<u8>(), 0..3_000), 0..4)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            let place = Place::new();
            let from = place.store("from");
            for (at, row) in rows {
                // The same id may occur twice.
                from.commit(Batch::at(Time(0)).restore(COLLECTIONS[at], row)).await.ok();
            }
            for (number, bytes) in blobs.into_iter().enumerate() {
                from.blobs().put(&format!("blob{number}"), bytes.into()).await.unwrap();
            }
            let counts = place.pack(&from, "all.age").await.unwrap();
            let expected = content(&from).await;
            assert_eq!((counts.records, counts.blobs), (expected.0.len() as u64, expected.1.len() as u64));
            let to = place.store("to");
            place.restore("all.age", &to).await.unwrap();
            assert_eq!(content(&to).await, expected);
            assert_eq!(to.verify().await.damage, Vec::<String>::new());
        });
    }
}

async fn small(place: &Place) -> Store {
    let store = place.store("small");
    let row = Row::inserted("p", "one", Time(1), r#"{"a":1}"#.into());
    store
        .commit(Batch::at(Time(1)).restore(COLLECTIONS[1], row))
        .await
        .unwrap();
    store
        .blobs()
        .put("blob", vec![7; 100].into())
        .await
        .unwrap();
    store
}

#[tokio::test]
async fn export_keeps_session_blobs_until_its_end() {
    let place = Place::new();
    let store = small(&place).await;
    let key = "file.sfile_1";
    let file = serde_json::json!({
        "session": "s", "place": "s/a", "path": "a", "blob": key, "media_type": "text/plain",
        "size": 9_000, "modified_at": 1, "expires_at": null,
    });
    let row = Row::inserted("p", "sfile_1", Time(1), file.to_string().into());
    let mut known = COLLECTIONS.iter();
    let files = known.find(|known| known.name == "session_files").unwrap();
    let batch = Batch::at(Time(1)).restore(files, row);
    store.commit(batch).await.unwrap();
    store.blobs().put(key, vec![7; 9_000].into()).await.unwrap();
    let exported = store.clone();
    let (mut to, mut from) = tokio::io::duplex(64);
    let export = async move { archive::export_frames(&exported, &mut to).await };
    let watch = async {
        let mut was_kept = false;
        let mut bytes = [0; 64];
        while from.read(&mut bytes).await.unwrap() > 0 {
            was_kept |= store.keeps_blob(key);
        }
        was_kept
    };
    let (exported, was_kept) = tokio::join!(export, watch);
    exported.unwrap();
    assert!(was_kept && !store.keeps_blob(key));
}

#[tokio::test]
async fn archive_with_changed_byte_is_refused() {
    let place = Place::new();
    place.pack(&small(&place).await, "all.age").await.unwrap();
    let whole = std::fs::read(place.path("all.age")).unwrap();
    place.check("all.age").unwrap();
    for at in 0..whole.len() {
        for change in [1_u8, 0x80, 0x20] {
            let mut bytes = whole.clone();
            bytes[at] ^= change;
            std::fs::write(place.path("bad.age"), bytes).unwrap();
            assert!(
                place.check("bad.age").is_err(),
                "byte {at} of {} changed by {change}",
                whole.len()
            );
        }
    }
}

#[tokio::test]
async fn truncated_or_extended_archive_is_refused() {
    let place = Place::new();
    place.pack(&small(&place).await, "all.age").await.unwrap();
    let whole = std::fs::read(place.path("all.age")).unwrap();
    for length in 0..whole.len() {
        std::fs::write(place.path("bad.age"), &whole[..length]).unwrap();
        assert!(
            place.check("bad.age").is_err(),
            "cut to {length} of {}",
            whole.len()
        );
    }
    std::fs::write(place.path("bad.age"), [&whole[..], b"x"].concat()).unwrap();
    assert!(place.check("bad.age").is_err());
}

#[tokio::test]
async fn a_store_that_has_something_is_left_alone() {
    let place = Place::new();
    let store = small(&place).await;
    place.pack(&store, "all.age").await.unwrap();
    let before = content(&store).await;
    assert!(matches!(
        place.restore("all.age", &store).await,
        Err(ArchiveError::NotEmpty)
    ));
    assert_eq!(content(&store).await, before);
}

#[tokio::test]
async fn failed_export_leaves_and_overwrites_nothing() {
    let place = Place::new();
    let store = small(&place).await;
    let mut read = Vec::new();
    archive::export_frames(&store, &mut read).await.unwrap();
    let pack = |from: &[u8]| {
        archive::pack(
            || Ok(from),
            &place.path("cut.age"),
            &place.lock,
            &place.key,
            &mut |_| {},
        )
    };
    assert!(matches!(
        pack(&read[..read.len() - 1]),
        Err(ArchiveError::Incomplete(_))
    ));
    let left = |name: &Path| {
        std::fs::read_dir(name)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect::<Vec<_>>()
    };
    assert!(
        left(place.folder.path())
            .iter()
            .all(|name| !name.to_string_lossy().contains("cut"))
    );
    place.pack(&store, "all.age").await.unwrap();
    assert!(place.pack(&store, "all.age").await.is_err());
    place.check("all.age").unwrap();
}

#[tokio::test]
async fn wrong_key_makes_no_archive() {
    let place = Place::new();
    let store = small(&place).await;
    Vault::open(store.clone(), &place.key, Time(1))
        .await
        .unwrap();
    let other = KeyFile::create(&place.path("other.key")).unwrap();
    let mut read = Vec::new();
    archive::export_frames(&store, &mut read).await.unwrap();
    let packed = archive::pack(
        || Ok(&*read),
        &place.path("all.age"),
        &place.lock,
        &other,
        &mut |_| {},
    );
    assert!(matches!(packed, Err(ArchiveError::OtherKey)));
    assert!(!place.path("all.age").exists());
    place.pack(&store, "all.age").await.unwrap();
    let to = place.store("to");
    place.restore("all.age", &to).await.unwrap();
    assert!(Vault::open(to.clone(), &other, Time(2)).await.is_err());
    Vault::open(to, &place.key, Time(2)).await.unwrap();
}

#[tokio::test]
async fn another_identity_or_passphrase_does_not_open_it() {
    let place = Place::new();
    let store = small(&place).await;
    place.pack(&store, "all.age").await.unwrap();
    let other = age::x25519::Identity::generate().to_string();
    std::fs::write(place.path("identity"), other.expose_secret()).unwrap();
    assert!(matches!(
        place.check("all.age"),
        Err(ArchiveError::Undecryptable { .. })
    ));
    assert!(matches!(
        Lock::passphrase("short"),
        Err(ArchiveError::WeakPassphrase)
    ));
    let lock = Lock::passphrase("several words are good").unwrap();
    let place = Place { lock, ..place };
    place.pack(&store, "words.age").await.unwrap();
    let check = |text: &str| {
        archive::check(
            &place.path("words.age"),
            &Unlock::passphrase(text),
            &mut |_| {},
        )
    };
    assert!(matches!(
        check("several words are bad"),
        Err(ArchiveError::Undecryptable { .. })
    ));
    assert_eq!(check("several words are good").unwrap().counts.records, 1);
}
