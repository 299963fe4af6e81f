//! Tests of `pacing`.

use super::*;

const RETRY_PAUSE: Duration = Duration::from_secs(30);

#[test]
fn room_grows_with_success_and_shrinks_with_failure() {
    let endpoints = Endpoints::default();
    let now = Time(1_000);
    for _ in 0..10 {
        endpoints.enter("ws_a", now).unwrap().accepted(4);
    }
    let taken: Vec<_> = std::iter::from_fn(|| endpoints.enter("ws_a", now)).collect();
    assert_eq!(taken.len(), 4);
    assert!(endpoints.enter("ws_b", now).is_some(), "others have room");
    drop(taken);
    endpoints
        .enter("ws_a", now)
        .unwrap()
        .failed(now, RETRY_PAUSE);
    let left = std::iter::from_fn(|| endpoints.enter("ws_a", now));
    assert_eq!(left.collect::<Vec<_>>().len(), 3);
}

#[test]
fn failures_in_a_row_pause_one_endpoint() {
    let endpoints = Endpoints::default();
    let now = Time(1_000);
    for failures in 1..=FAILURES_BEFORE_PAUSE {
        let mut room = endpoints.enter("ws_a", now).unwrap();
        assert_eq!(room.failed(now, RETRY_PAUSE), failures);
    }
    assert!(endpoints.enter("ws_a", now).is_none());
    assert!(endpoints.turn("ws_a", now) > time_after(now, RETRY_PAUSE));
    assert!(endpoints.enter("ws_b", now).is_some());
    let after = time_after(now, RETRY_PAUSE);
    let mut probe = endpoints.enter("ws_a", after).unwrap();
    assert!(
        endpoints.enter("ws_a", after).is_none(),
        "one message probes"
    );
    probe.accepted(8);
    assert!(endpoints.enter("ws_a", after).is_some());
}

#[test]
fn turns_of_waiting_deliveries_are_spread() {
    let endpoints = Endpoints::default();
    let now = Time(1_000);
    let _all = [
        endpoints.enter("ws_a", now).unwrap(),
        endpoints.enter("ws_a", now).unwrap(),
    ];
    let turn = |now| endpoints.turn("ws_a", now).0;
    assert_eq!([turn(now), turn(now), turn(now)], [1_005, 1_010, 1_015]);
    // The messages under way have taken ten seconds.
    let later = Time(11_000);
    assert_eq!([turn(later), turn(later)], [16_000, 21_000]);
    let all = (0..100).map(|_| turn(later));
    assert!(all.max() <= Some(time_after(later, MAX_TURN_DELAY).0));
}

#[test]
fn fast_endpoint_gets_several_turns_per_millisecond() {
    let endpoints = Endpoints::default();
    let now = Time(1_000);
    for _ in 0..100 {
        endpoints.enter("ws_a", now).unwrap().accepted(16);
    }
    let enter = |_| endpoints.enter("ws_a", now).unwrap();
    let _taken: Vec<_> = (0..16).map(enter).collect();
    let turns = (0..20).map(|_| endpoints.turn("ws_a", now).0);
    assert_eq!(turns.max(), Some(1_002));
}

#[test]
fn one_slow_message_delays_no_turn() {
    let endpoints = Endpoints::default();
    let _slow = endpoints.enter("ws_a", Time(1_000)).unwrap();
    let now = Time(11_000);
    let _quick = endpoints.enter("ws_a", now).unwrap();
    let turn = || endpoints.turn("ws_a", now).0;
    assert_eq!([turn(), turn()], [11_005, 11_010]);
}
