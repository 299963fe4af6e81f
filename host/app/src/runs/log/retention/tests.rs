//! Tests of `retention`.

use super::*;
use crate::{
    COLLECTIONS,
    core::vault::{KeyFile, SealContext, Vault},
    projects::{Config, LogVisibility, StoredProject},
    runs::log::{
        page::{Details, Page},
        pending::tests::{entry, pending},
    },
    work::claim_job,
};
use store::Batch;

const DAY_MS: i64 = 86_400_000;

/// Creates a store with one page of two executions per day, and their details.
async fn store(folder: &std::path::Path, days: i64) -> Store {
    let store = Store::open(&folder.join("store"), COLLECTIONS).unwrap();
    let key = KeyFile::create(&folder.join("key")).unwrap();
    let vault = Vault::open(store.clone(), &key, Time(0)).await.unwrap();
    let key = vault.key("p", Time(0)).await.unwrap();
    let project = StoredProject {
        name: "p".into(),
        number: 1,
        uuid: uuid::Uuid::nil(),
        config: Config::default(),
    };
    let (run, _) = pending(entry(LogVisibility::DontStoreData, 0), 8_000, 8_000);
    let page = Page::new(&[&run, &run]);
    let mut batch = Batch::at(Time(0)).insert(crate::core::INSTALLATION_PROJECT, "p", &project);
    for day in 0..days {
        let (id, time) = (format!("log_{day:03}"), Time(day * DAY_MS));
        let details = Details {
            sealed: key
                .seal(SealContext::new::<Details>("p", &id, "sealed"), &vec![])
                .unwrap(),
        };
        batch = batch
            .insert_listed::<Page>(time, "p", &id, &page, 0, &page.lists())
            .insert_created(time, "p", &id, &details);
    }
    store.commit(batch).await.unwrap();
    store
}

/// Returns the days whose pages are left, and the days whose details are left.
async fn left(store: &Store) -> (Vec<i64>, Vec<i64>) {
    let days = |times: Vec<Time>| times.into_iter().map(|time| time.0 / DAY_MS).collect();
    let all = Query::for_project("p");
    let pages = store.find::<Page>(&all).await.unwrap().records;
    let details = store.find::<Details>(&all).await.unwrap().records;
    (
        days(pages.into_iter().map(|page| page.created_at).collect()),
        days(
            details
                .into_iter()
                .map(|details| details.created_at)
                .collect(),
        ),
    )
}

/// Returns the days of `days` that are left if records are kept for `kept` days.
async fn left_of(days: i64, kept: i64) -> Vec<i64> {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), days).await;
    let claim = claim_job(&store).await;
    let cutoff = Time((days - 1 - kept) * DAY_MS);
    erase_in_all_projects(&store, &claim, cutoff).await.unwrap();
    let (pages, details) = left(&store).await;
    assert_eq!(pages, details, "what was said goes with its page");
    assert_eq!(store.verify().await.damage, Vec::<String>::new());
    pages
}

#[tokio::test]
async fn only_old_executions_are_erased() {
    assert_eq!(left_of(100, 3).await, [96, 97, 98, 99]);
    assert_eq!(left_of(5, 30).await, [0, 1, 2, 3, 4]);
}
