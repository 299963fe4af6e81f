//! Retention of the log by age and by number of executions.
//!
//! The pages of a project are ordered by age. The oldest are read and erased in small batches until
//! one must stay. Between two batches, other tasks get their turn. Details and cassettes have the
//! creation time of their page or execution, and are erased by the same limit.

use std::time::Duration;

use store::{Query, Store, Time};

use super::{
    CASSETTES_COLLECTION, DETAILS_COLLECTION, PAGES_COLLECTION,
    page::{MAX_PAGE_RUNS, Page},
};
use crate::{
    App, Result,
    core::clock::time_before,
    projects,
    work::{Claim, Claimable, JobClaim, erase_all},
};

/// Maximum number of records that are erased in one batch.
const ERASE_BATCH: u64 = 32;
/// Number of projects or pages that are read in one query.
const READ_BATCH: u64 = 256;
/// Interval at which old records are erased.
pub(crate) const RETENTION_INTERVAL: Duration = Duration::from_secs(3_600);

/// The retention settings of the log.
#[derive(Debug, Clone, Copy, Default)]
pub struct Retention {
    /// Executions that ended longer ago than this are erased.
    pub age: Option<Duration>,
    /// The number of newest executions of each project that stay. Up to one page more may stay.
    pub runs: Option<u64>,
}

impl Retention {
    fn keeps_all(&self) -> bool {
        self.age.is_none() && self.runs.is_none()
    }
}

/// Erases old records.
pub(crate) async fn erase_old(app: &App, claim: &JobClaim) -> Result<()> {
    let retention = app.log.retention;
    if retention.keeps_all() {
        return Ok(());
    }
    erase_in_all_projects(&app.store, claim, retention, app.clock.now()).await
}

/// Goes through all projects once, including deleted ones.
async fn erase_in_all_projects<T: Claimable>(
    store: &Store,
    claim: &Claim<T>,
    retention: Retention,
    now: Time,
) -> Result<()> {
    let mut after = String::new();
    loop {
        let projects = store
            .scan(&projects::PROJECTS_COLLECTION, &after, READ_BATCH)
            .await?;
        let Some(last) = projects.last() else {
            return Ok(());
        };
        after.clone_from(&last.id);
        for project in &projects {
            let cutoff = cutoff(store, &project.id, retention, now).await?;
            for collection in [
                &CASSETTES_COLLECTION,
                &DETAILS_COLLECTION,
                &PAGES_COLLECTION,
            ] {
                let oldest_first = Query::for_project(&project.id);
                erase_all(claim, collection, oldest_first, ERASE_BATCH, |row| {
                    row.created_at < cutoff
                })
                .await?;
            }
        }
    }
}

/// Returns the creation time before which records of a project are erased.
async fn cutoff(store: &Store, project: &str, retention: Retention, now: Time) -> Result<Time> {
    let by_age = retention
        .age
        .map_or(Time(i64::MIN), |age| time_before(now, age));
    let by_number = match retention.runs {
        Some(runs) => oldest_kept(store, project, runs).await?,
        None => None,
    };
    Ok(by_number.map_or(by_age, |time| time.max(by_age)))
}

/// Returns the creation time of the page with the last of the `runs` newest executions, or `None`
/// if the project has no more than these.
async fn oldest_kept(store: &Store, project: &str, runs: u64) -> Result<Option<Time>> {
    let query = Query::for_project(project).descending();
    let pages = store.find::<Page>(&query.clone().page(0, 1)).await?.total;
    if pages.saturating_mul(MAX_PAGE_RUNS as u64) <= runs {
        return Ok(None);
    }
    let (mut found, mut offset) = (0, 0);
    while offset < pages {
        let read = store
            .find::<Page>(&query.clone().page(offset, READ_BATCH))
            .await?
            .records;
        if read.is_empty() {
            break;
        }
        offset += read.len() as u64;
        for page in read {
            found += page.body.runs.len() as u64;
            if found >= runs {
                return Ok(Some(page.created_at));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        COLLECTIONS,
        core::vault::{KeyFile, SealContext, Vault},
        projects::{Config, LogVisibility, StoredProject},
        runs::log::{
            page::Details,
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
                .insert_borrowed::<Page>(time, "p", &id, &page, 0)
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

    async fn left_of(days: i64, retention: Retention) -> Vec<i64> {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path(), days).await;
        let claim = claim_job(&store).await;
        erase_in_all_projects(&store, &claim, retention, Time((days - 1) * DAY_MS))
            .await
            .unwrap();
        let (pages, details) = left(&store).await;
        assert_eq!(pages, details, "what was said goes with its page");
        assert_eq!(store.verify().await.damage, Vec::<String>::new());
        pages
    }

    #[tokio::test]
    async fn only_old_executions_are_erased() {
        let age = |days: u64| Retention {
            age: Some(Duration::from_secs(days * 86_400)),
            runs: None,
        };
        assert_eq!(left_of(100, age(3)).await, [96, 97, 98, 99]);
        assert_eq!(left_of(5, age(30)).await, [0, 1, 2, 3, 4]);
    }

    #[tokio::test]
    async fn so_many_of_the_newest_runs_stay() {
        let runs = |runs| Retention {
            age: None,
            runs: Some(runs),
        };
        assert_eq!(left_of(100, runs(6)).await, [97, 98, 99]);
        assert_eq!(
            left_of(100, runs(5)).await,
            [97, 98, 99],
            "a page stays whole"
        );
        assert_eq!(left_of(100, runs(200)).await.len(), 100);
        assert_eq!(left_of(100, runs(1_000_000)).await.len(), 100);
    }

    #[tokio::test]
    async fn whichever_rule_lets_more_go_holds() {
        let age = Some(Duration::from_secs(10 * 86_400));
        assert_eq!(
            left_of(100, Retention { age, runs: Some(4) }).await,
            [98, 99]
        );
        assert_eq!(
            left_of(
                100,
                Retention {
                    age,
                    runs: Some(190)
                }
            )
            .await
            .len(),
            11
        );
    }
}
