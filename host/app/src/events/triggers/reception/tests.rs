//! Tests of `reception`.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use tokio::sync::Notify;

use super::*;
use crate::core::errors;

fn event(id: usize, payload_bytes: usize) -> Event {
    Event {
        id: id.to_string(),
        payload: vec![b' '; payload_bytes].into(),
    }
}

fn ids(groups: &[Arc<[Event]>]) -> Vec<String> {
    let events = groups.iter().flat_map(|events| events.iter());
    events.map(|event| event.id.clone()).collect()
}

#[tokio::test]
async fn webhooks_during_a_commit_share_the_next() {
    let receptions = Receptions::default();
    let commits = Mutex::new(Vec::new());
    let first_ends = Notify::new();
    let store = |groups: Vec<Arc<[Event]>>| {
        let (commits, first_ends) = (&commits, &first_ends);
        async move {
            let is_first = commits.lock().is_empty();
            commits.lock().push(ids(&groups));
            if is_first {
                first_ends.notified().await;
            }
            Ok(())
        }
    };
    let webhooks = (0..20).map(|number| receptions.store("ti_a", vec![event(number, 10)], store));
    let ending = async {
        first_ends.notify_one();
    };
    let (stored, ()) = tokio::join!(join_all(webhooks), ending);
    assert!(stored.iter().all(Result::is_ok));
    let expected: Vec<_> = (0..20).map(|number| number.to_string()).collect();
    assert_eq!(*commits.lock(), [&expected[..1], &expected[1..]]);
}

#[tokio::test]
async fn refused_events_do_not_stop_others() {
    let receptions = Receptions::default();
    let store = |groups: Vec<Arc<[Event]>>| async move {
        tokio::task::yield_now().await;
        if ids(&groups).contains(&"3".to_owned()) {
            return Err(errors::internal("it is refused"));
        }
        Ok(())
    };
    let webhooks = (0..8).map(|number| receptions.store("ti_a", vec![event(number, 10)], store));
    let stored = join_all(webhooks).await;
    let refused = stored.iter().map(Result::is_err).collect::<Vec<_>>();
    assert_eq!(refused.iter().filter(|refused| **refused).count(), 1);
    assert!(refused[3]);
}

#[tokio::test]
async fn cut_off_commit_leaves_no_webhook_behind() {
    let receptions = Receptions::default();
    let calls = AtomicUsize::new(0);
    let store = |_: Vec<Arc<[Event]>>| async {
        if calls.fetch_add(1, Ordering::SeqCst) == 0 {
            std::future::pending::<()>().await;
        }
        Ok(())
    };
    let mut first = Box::pin(receptions.store("ti_a", vec![event(0, 10)], store));
    assert!(futures::poll!(&mut first).is_pending());
    let mut second = Box::pin(receptions.store("ti_a", vec![event(1, 10)], store));
    assert!(futures::poll!(&mut second).is_pending());
    drop(first);
    second.await.unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn shared_commit_has_bounded_bytes() {
    let receptions = Receptions::default();
    let sizes = Mutex::new(Vec::new());
    let store = |groups: Vec<Arc<[Event]>>| {
        sizes.lock().push(groups.len());
        async {
            tokio::task::yield_now().await;
            Ok(())
        }
    };
    let large = MAX_SHARED_BYTES / 2;
    let webhooks = (0..4).map(|number| receptions.store("ti_a", vec![event(number, large)], store));
    assert!(join_all(webhooks).await.iter().all(Result::is_ok));
    assert_eq!(*sizes.lock(), [1; 4]);
}
