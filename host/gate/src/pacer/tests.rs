//! Tests of `pacer`.

use super::*;

const RETRY_PAUSE: Duration = Duration::from_secs(30);
const MAX_DEFERRAL: Duration = Duration::from_secs(300);
/// Time at which most tests start.
const START_MS: i64 = 1_000;
/// Time after a pause that began at the start.
const AFTER_PAUSE_MS: i64 = START_MS + 30_000;

fn pacer() -> Pacer {
    Pacer::new(MAX_DEFERRAL)
}

#[test]
fn limit_grows_with_success_and_shrinks_with_failure() {
    let pacer = pacer();
    let acquire = |key| pacer.acquire(key, START_MS);
    for _ in 0..10 {
        acquire("ws_a").unwrap().accepted(4);
    }
    let taken: Vec<_> = std::iter::from_fn(|| acquire("ws_a")).collect();
    assert_eq!(taken.len(), 4);
    assert!(acquire("ws_b").is_some(), "others have permits");
    drop(taken);
    acquire("ws_a").unwrap().failed(START_MS, RETRY_PAUSE);
    let left = std::iter::from_fn(|| acquire("ws_a"));
    assert_eq!(left.collect::<Vec<_>>().len(), 3);
}

#[test]
fn failures_in_a_row_pause_one_key() {
    let pacer = pacer();
    for failures in 1..=FAILURES_BEFORE_PAUSE {
        let mut permit = pacer.acquire("ws_a", START_MS).unwrap();
        assert_eq!(permit.failed(START_MS, RETRY_PAUSE), failures);
    }
    assert!(pacer.acquire("ws_a", START_MS).is_none());
    assert!(pacer.retry_at("ws_a", START_MS) > AFTER_PAUSE_MS);
    assert!(pacer.acquire("ws_b", START_MS).is_some());
    let mut probe = pacer.acquire("ws_a", AFTER_PAUSE_MS).unwrap();
    let other = pacer.acquire("ws_a", AFTER_PAUSE_MS);
    assert!(other.is_none(), "one message probes");
    probe.accepted(8);
    assert!(pacer.acquire("ws_a", AFTER_PAUSE_MS).is_some());
}

#[test]
fn due_times_of_deferrals_are_spread() {
    let pacer = pacer();
    let _all = [
        pacer.acquire("ws_a", START_MS).unwrap(),
        pacer.acquire("ws_a", START_MS).unwrap(),
    ];
    let retry_at = |now| pacer.retry_at("ws_a", now);
    assert_eq!(
        [retry_at(START_MS), retry_at(START_MS), retry_at(START_MS)],
        [1_005, 1_010, 1_015]
    );
    // The messages in progress have taken ten seconds.
    let later = 11_000;
    assert_eq!([retry_at(later), retry_at(later)], [16_000, 21_000]);
    let all = (0..100).map(|_| retry_at(later));
    assert!(all.max() <= Some(later + 300_000));
}

#[test]
fn fast_key_gets_several_permits_per_millisecond() {
    let pacer = pacer();
    for _ in 0..100 {
        pacer.acquire("ws_a", START_MS).unwrap().accepted(16);
    }
    let acquire = |_| pacer.acquire("ws_a", START_MS).unwrap();
    let _taken: Vec<_> = (0..16).map(acquire).collect();
    let due_times = (0..20).map(|_| pacer.retry_at("ws_a", START_MS));
    assert_eq!(due_times.max(), Some(1_002));
}

#[test]
fn one_slow_message_defers_no_other_longer() {
    let pacer = pacer();
    let _slow = pacer.acquire("ws_a", START_MS).unwrap();
    let now = 11_000;
    let _quick = pacer.acquire("ws_a", now).unwrap();
    let retry_at = || pacer.retry_at("ws_a", now);
    assert_eq!([retry_at(), retry_at()], [11_005, 11_010]);
}

#[test]
fn failures_outlast_the_cleanup_of_keys() {
    let pacer = pacer();
    let failed = || {
        let mut permit = pacer.acquire("ws_a", START_MS).unwrap();
        permit.failed(START_MS, RETRY_PAUSE)
    };
    assert_eq!(failed(), 1);
    (0..=2 * crate::keys::MAX_IDLE_KEYS)
        .for_each(|key| drop(pacer.acquire(&key.to_string(), START_MS)));
    assert!(pacer.keys.lock().len() <= crate::keys::MAX_IDLE_KEYS + 1);
    assert_eq!(failed(), 2);
}
