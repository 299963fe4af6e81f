//! Tests of `pacing`.

use super::*;

const RETRY_PAUSE: Duration = Duration::from_secs(30);

#[test]
fn limit_grows_with_success_and_shrinks_with_failure() {
    let pacer = Pacer::default();
    let now = Time(1_000);
    for _ in 0..10 {
        pacer.acquire("ws_a", now).unwrap().accepted(4);
    }
    let taken: Vec<_> = std::iter::from_fn(|| pacer.acquire("ws_a", now)).collect();
    assert_eq!(taken.len(), 4);
    assert!(pacer.acquire("ws_b", now).is_some(), "others have permits");
    drop(taken);
    pacer.acquire("ws_a", now).unwrap().failed(now, RETRY_PAUSE);
    let left = std::iter::from_fn(|| pacer.acquire("ws_a", now));
    assert_eq!(left.collect::<Vec<_>>().len(), 3);
}

#[test]
fn failures_in_a_row_pause_one_endpoint() {
    let pacer = Pacer::default();
    let now = Time(1_000);
    for failures in 1..=FAILURES_BEFORE_PAUSE {
        let mut permit = pacer.acquire("ws_a", now).unwrap();
        assert_eq!(permit.failed(now, RETRY_PAUSE), failures);
    }
    assert!(pacer.acquire("ws_a", now).is_none());
    assert!(pacer.retry_at("ws_a", now) > time_after(now, RETRY_PAUSE));
    assert!(pacer.acquire("ws_b", now).is_some());
    let after = time_after(now, RETRY_PAUSE);
    let mut probe = pacer.acquire("ws_a", after).unwrap();
    assert!(pacer.acquire("ws_a", after).is_none(), "one message probes");
    probe.accepted(8);
    assert!(pacer.acquire("ws_a", after).is_some());
}

#[test]
fn due_times_of_deferred_deliveries_are_spread() {
    let pacer = Pacer::default();
    let now = Time(1_000);
    let _all = [
        pacer.acquire("ws_a", now).unwrap(),
        pacer.acquire("ws_a", now).unwrap(),
    ];
    let retry_at = |now| pacer.retry_at("ws_a", now).0;
    assert_eq!(
        [retry_at(now), retry_at(now), retry_at(now)],
        [1_005, 1_010, 1_015]
    );
    // The messages under way have taken ten seconds.
    let later = Time(11_000);
    assert_eq!([retry_at(later), retry_at(later)], [16_000, 21_000]);
    let all = (0..100).map(|_| retry_at(later));
    assert!(all.max() <= Some(time_after(later, MAX_DEFERRAL).0));
}

#[test]
fn fast_endpoint_gets_several_messages_per_millisecond() {
    let pacer = Pacer::default();
    let now = Time(1_000);
    for _ in 0..100 {
        pacer.acquire("ws_a", now).unwrap().accepted(16);
    }
    let acquire = |_| pacer.acquire("ws_a", now).unwrap();
    let _taken: Vec<_> = (0..16).map(acquire).collect();
    let due_times = (0..20).map(|_| pacer.retry_at("ws_a", now).0);
    assert_eq!(due_times.max(), Some(1_002));
}

#[test]
fn one_slow_message_defers_no_other_longer() {
    let pacer = Pacer::default();
    let _slow = pacer.acquire("ws_a", Time(1_000)).unwrap();
    let now = Time(11_000);
    let _quick = pacer.acquire("ws_a", now).unwrap();
    let retry_at = || pacer.retry_at("ws_a", now).0;
    assert_eq!([retry_at(), retry_at()], [11_005, 11_010]);
}
