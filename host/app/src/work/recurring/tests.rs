//! Tests of `recurring`.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::Clock;
use store::Store;

const COUNTING_JOB: Job<AtomicUsize> = Job {
    name: "sweep",
    interval: Duration::from_secs(60),
    run: |runs, _| {
        runs.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(()) })
    },
};

/// Waits until the job has run at a time, and returns its record.
async fn ran_at(store: &Store, time: Time) -> JobState {
    let signal = store.commit_signal(&JOBS_COLLECTION);
    let ran = async {
        loop {
            let job = store
                .get::<JobState>(INSTALLATION_PROJECT, COUNTING_JOB.name)
                .await
                .unwrap();
            if let Some(job) = job.filter(|job| job.body.last_run_at == time) {
                return job.body;
            }
            signal.committed().await;
        }
    };
    let deadline = Duration::from_secs(30);
    tokio::time::timeout(deadline, ran).await.unwrap()
}

#[tokio::test]
async fn job_runs_once_per_interval() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), &[&JOBS_COLLECTION]).unwrap();
    let clock = Clock::standing_at(Time(1_000));
    let claims = Claims::new(store.clone(), clock.clone());
    let runs = AtomicUsize::new(0);
    let twice = async {
        let job = ran_at(&store, clock.now()).await;
        let next = time_after(clock.now(), COUNTING_JOB.interval);
        assert_eq!(job.work.due, Some(next));
        clock.advance(COUNTING_JOB.interval);
        ran_at(&store, next).await;
    };
    tokio::select! {
        () = run_jobs(&claims, &runs, &[COUNTING_JOB]) => {}
        () = twice => {}
    }
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

#[test]
fn job_of_earlier_version_is_read() {
    let body = r#"{"by":"5Vq3mUeQz0Ab","until":1700000000000,"ran":1700000000000}"#;
    let job: JobState = serde_json::from_str(body).unwrap();
    assert!(!job.work.is_claimed(Time(0)) && job.work.due.is_none());
    assert_eq!(job.last_run_at, Time(1_700_000_000_000));
}
