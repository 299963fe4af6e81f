//! A damaged store either opens with everything that was acknowledged, or reports which file is
//! broken. It never opens with less, never panics out of `open` and never hangs.
//!
//! Each case copies a closed store, breaks one thing at random and opens it. The seed is printed;
//! `DAMAGE_SEED=n` at compile time repeats a run.

#![expect(
    clippy::unwrap_used,
    reason = "a test that meets an error it does not expect has failed"
)]

use host_store::{
    Batch, Collection, Document, Erasure, Field, Kind, OpenError, Query, Record, Store, Time,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

static NOTES_COLLECTION: Collection = Collection {
    name: "notes",
    erasure: Erasure::Project,
    fields: &[Field::new("rank", Kind::Int)],
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Note {
    rank: i64,
    text: String,
}

impl Document for Note {
    const COLLECTION: &'static Collection = &NOTES_COLLECTION;
}

const CASE_COUNT: usize = 160;
const RECORD_COUNT: i64 = 4_000;

/// A closed store, an earlier state of it, another store, and the records that the first has
/// acknowledged.
struct Stores {
    folder: tempfile::TempDir,
    acknowledged: BTreeMap<String, Record<Note>>,
}

impl Stores {
    async fn make() -> Stores {
        let folder = tempfile::tempdir().unwrap();
        let whole = folder.path().join("whole");
        fill(&whole, 0..RECORD_COUNT / 2).await;
        copy(&whole, &folder.path().join("earlier"));
        fill(&whole, RECORD_COUNT / 2..RECORD_COUNT).await;
        let store = open(&whole).unwrap();
        let changed = store
            .find::<Note>(&Query::for_project("p").below("rank", 900))
            .await
            .unwrap()
            .records;
        let batch = changed.iter().fold(Batch::at(Time(9)), |batch, record| {
            match record.body.rank % 3 {
                0 => batch.remove(record),
                1 => batch.purge(record),
                _ => batch.update(&Record {
                    body: Note {
                        rank: 5_000,
                        ..record.body.clone()
                    },
                    ..record.clone()
                }),
            }
        });
        store.commit(batch).await.unwrap();
        let acknowledged = read(&store).await;
        store.close().await;
        fill(&folder.path().join("other"), 0..RECORD_COUNT / 2).await;
        Stores {
            folder,
            acknowledged,
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

async fn fill(at: &Path, ranks: std::ops::Range<i64>) {
    let store = open(at).unwrap();
    let ranks = ranks.collect::<Vec<_>>();
    for ranks in ranks.chunks(250) {
        let batch = ranks.iter().fold(Batch::at(Time(ranks[0])), |batch, rank| {
            let text = "n".repeat(if rank % 500 == 0 {
                20_000
            } else {
                40 + *rank as usize % 700
            });
            batch.insert("p", &format!("n{rank}"), &Note { rank: *rank, text })
        });
        store.commit(batch).await.unwrap();
    }
    store.close().await;
}

fn open(at: &Path) -> Result<Store, OpenError> {
    Store::open(at, &[&NOTES_COLLECTION])
}

async fn read(store: &Store) -> BTreeMap<String, Record<Note>> {
    let found = store
        .find::<Note>(&Query::all_projects().with_deleted())
        .await
        .unwrap();
    assert_eq!(found.total, found.records.len() as u64);
    found
        .records
        .into_iter()
        .map(|record| (record.id.clone(), record))
        .collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let from = entry.as_ref().unwrap().path();
        let to = to.join(entry.unwrap().file_name());
        if from.is_dir() {
            copy(&from, &to)
        } else {
            assert!(fs::copy(from, to).is_ok())
        }
    }
}

/// Deterministic pseudo-random numbers of a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize].clone()
    }
}

/// Returns the files that a start depends on. The database file is three times as likely as each
/// other one.
fn files(store: &Path) -> Vec<PathBuf> {
    let sled = fs::read_dir(store.join("sled"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files = sled.filter(|path| path.is_file()).collect::<Vec<_>>();
    files.sort();
    files.extend([
        store.join("HEAD"),
        store.join("sled/db"),
        store.join("sled/db"),
    ]);
    files
}

/// Breaks one thing and describes it.
fn damage(stores: &Stores, at: &Path, chance: &mut Chance) -> String {
    let path = chance.of(&files(at));
    let inside = path.strip_prefix(at).unwrap().to_owned();
    let name = inside.display();
    let length = fs::metadata(&path).unwrap().len();
    let place = chance.below(length);
    let file = fs::File::options()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    match chance.below(100) {
        0..25 => {
            file.set_len(place).unwrap();
            format!("{name} cut to {place} of {length} bytes")
        }
        25..60 => {
            let mut byte = [0];
            file.read_exact_at(&mut byte, place).unwrap();
            let bit = chance.below(8);
            file.write_all_at(&[byte[0] ^ 1 << bit], place).unwrap();
            format!("bit {bit} of byte {place} of {name} flipped")
        }
        60..75 => {
            let place = place / 4096 * 4096;
            file.write_all_at(&vec![0; 4096.min(length - place) as usize], place)
                .unwrap();
            format!("4 KiB of {name} zeroed at {place}")
        }
        75..85 => {
            fs::remove_file(&path).unwrap();
            format!("{name} deleted")
        }
        85..90 => {
            let (kind, text) = chance.of(&[
                ("snap.FFFFFFFFFFFFFFFF", ""),
                ("snap.FFFFFFFFFFFFFFFF.generating", "half"),
            ]);
            fs::write(at.join("sled").join(kind), text).unwrap();
            fs::write(at.join("HEAD.new"), "half").unwrap();
            format!("a stray {kind}")
        }
        _ => swap(stores, at, &inside, chance),
    }
}

fn swap(stores: &Stores, at: &Path, inside: &Path, chance: &mut Chance) -> String {
    let source = chance.of(&["earlier", "other"]);
    let inside = chance.of(&[inside.to_owned(), PathBuf::from("sled")]);
    let from = stores.at(source).join(&inside);
    let target = at.join(&inside);
    if target.is_dir() {
        fs::remove_dir_all(&target).unwrap();
        copy(&from, &target);
    } else if from.exists() {
        fs::copy(&from, &target).unwrap();
    } else {
        // Snapshots have other names in each store, so the other snapshot is put next to it.
        for path in files(&stores.at(source))
            .into_iter()
            .filter(|path| path.to_string_lossy().contains("snap."))
        {
            fs::copy(&path, at.join("sled").join(path.file_name().unwrap())).unwrap();
        }
    }
    format!("{} taken from the {source} store", inside.display())
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_store_opens_complete_or_names_damage() {
    let seed = option_env!("DAMAGE_SEED").map_or_else(
        || RandomState::new().hash_one(0),
        |seed| seed.parse().unwrap(),
    );
    println!("DAMAGE_SEED={seed}");
    let stores = Stores::make().await;
    let mut chance = Chance(seed);
    let mut whole = 0;
    let mut refused = BTreeMap::<String, usize>::new();
    for case in 0..CASE_COUNT {
        let at = stores.at(&format!("case-{case}"));
        copy(&stores.at("whole"), &at);
        let what = damage(&stores, &at, &mut chance);
        match open(&at) {
            Ok(store) => {
                assert!(
                    read(&store).await == stores.acknowledged,
                    "case {case}, {what}: it opened with less"
                );
                assert_eq!(
                    store.verify().await.damage,
                    Vec::<String>::new(),
                    "case {case}, {what}"
                );
                store.close().await;
                whole += 1;
            }
            Err(OpenError::Damaged {
                file,
                reason,
                repair,
            }) => {
                assert!(
                    file.starts_with(&at) && !reason.is_empty() && repair.contains("backup"),
                    "{what}"
                );
                *refused.entry(reason).or_default() += 1;
                assert!(
                    open(&at).is_err(),
                    "case {case}, {what}: refused once, then opened"
                );
            }
            Err(other) => panic!("case {case}, {what}: {other}"),
        }
        fs::remove_dir_all(&at).unwrap();
    }
    println!("{CASE_COUNT} cases: {whole} opened whole, the others were refused: {refused:#?}");
}

#[tokio::test]
async fn store_is_locked_while_open() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let error = open(folder.path()).err().unwrap();
    assert!(matches!(&error, OpenError::Locked { at } if at == folder.path()));
    assert!(error.to_string().contains("in use by another process"));
    store.close().await;
    fs::write(folder.path().join("LOCK"), "left behind").unwrap();
    open(folder.path()).unwrap().close().await;
}

#[tokio::test]
async fn file_in_place_of_folder_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    assert!(matches!(open(file.path()), Err(OpenError::Io { at, .. }) if at == file.path()));
    assert_eq!(fs::read(file.path()).unwrap(), b"");
}

#[tokio::test]
async fn damaged_blob_is_found_by_verify() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    for key in ["flipped", "cut", "empty", "whole"] {
        store
            .blobs()
            .put(key, vec![7; 10_000].into())
            .await
            .unwrap();
    }
    let file = |key: &str| {
        fs::File::options()
            .write(true)
            .open(folder.path().join("blobs").join(key))
            .unwrap()
    };
    file("flipped").write_all_at(&[6], 5_000).unwrap();
    file("cut").set_len(9_000).unwrap();
    file("empty").set_len(0).unwrap();
    for key in ["flipped", "cut", "empty"] {
        assert!(store.blobs().get(key).await.is_err());
    }
    assert!(store.blobs().get("whole").await.unwrap().is_some());
    let report = store.verify().await;
    assert_eq!((report.blobs, report.damage.len()), (4, 3));
    store.close().await;
}
