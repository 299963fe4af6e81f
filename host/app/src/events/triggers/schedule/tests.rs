//! Tests of `schedule`.

use proptest::prelude::*;

use super::*;

const ONE_MINUTE: Duration = Duration::from_secs(60);

fn schedule(cron: &str, zone: Option<&str>) -> Schedule {
    Schedule {
        interval_s: None,
        cron: Some(cron.to_owned()),
        time_zone: zone.map(str::to_owned),
    }
}

fn at(minute: &str) -> Time {
    let time = DateTime::parse_from_rfc3339(&format!("{minute}:00Z"));
    Time(time.unwrap().timestamp_millis())
}

/// A day of the month and a day of the week mean one of them. In Paris, 2:30 does not exist on the
/// day on which clocks go forward, and comes twice on the day on which they go back.
#[test]
fn next_time_follows_the_expression() {
    let rows = "
        */15 * * * *    |              | 2026-03-01T10:15 | 2026-03-01T10:30
        0 9 * * *       |              | 2026-03-01T10:15 | 2026-03-02T09:00
        0 9 * * MON-FRI |              | 2026-02-27T09:00 | 2026-03-02T09:00
        0 0 29 2 *      |              | 2026-03-01T00:00 | 2028-02-29T00:00
        0 0 13 * 5      |              | 2026-03-01T00:00 | 2026-03-06T00:00
        @daily          |              | 2026-03-01T10:15 | 2026-03-02T00:00
        0 9 * * *       | Asia/Tokyo   | 2026-03-01T10:15 | 2026-03-02T00:00
        30 2 * * *      | Europe/Paris | 2026-03-28T12:00 | 2026-03-29T01:00
        30 2 * * *      | Europe/Paris | 2026-10-24T12:00 | 2026-10-25T00:30
        30 2 * * *      | Europe/Paris | 2026-10-25T00:30 | 2026-10-26T01:30";
    for row in rows.trim().lines() {
        let columns: Vec<_> = row.split('|').map(str::trim).collect();
        let zone = Some(columns[1]).filter(|zone| !zone.is_empty());
        let found = schedule(columns[0], zone).time_after(at(columns[2]));
        assert_eq!(found, Some(at(columns[3])), "{row}");
    }
}

#[test]
fn invalid_expression_is_refused_with_its_problem() {
    for (cron, zone, problem) in [
        ("", None, "must be a cron expression"),
        ("* * * *", None, "five fields"),
        ("0 * * * * *", None, "five fields"),
        ("60 * * * *", None, "minute: must be 0 to 59"),
        (
            "0 0 x 13 *",
            None,
            "day of the month: must be 1 to 31; month:",
        ),
        ("0 0 31 2 *", None, "has no time"),
        ("* * * * *", None, "60 s apart"),
        ("0,59 * * * *", None, "60 s apart"),
        ("0 9 * * *", Some("Europe/Nowhere"), "poll_time_zone"),
        (&"0".repeat(MAX_CRON_CHARS + 1), None, "256 characters"),
    ] {
        let refused = schedule(cron, zone).check(5 * ONE_MINUTE).unwrap_err();
        assert!(refused.to_string().contains(problem), "{cron}: {refused}");
    }
}

#[test]
fn interval_and_expression_exclude_each_other() {
    let both = Schedule {
        interval_s: Some(60),
        ..schedule("0 9 * * *", None)
    };
    both.check(ONE_MINUTE).unwrap_err();
    let zone_alone = Schedule {
        time_zone: Some("UTC".to_owned()),
        ..Schedule::default()
    };
    zone_alone.check(ONE_MINUTE).unwrap_err();
    Schedule::default().check(ONE_MINUTE).unwrap();
}

proptest! {
    #[test]
    fn polls_are_never_closer_than_the_shortest_interval(
        now in 1_700_000_000_000_i64..1_900_000_000_000,
        step in 1_u32..30,
        delay in 60_u64..7_200,
    ) {
        let schedule = schedule(&format!("*/{step} * * * *"), Some("America/New_York"));
        schedule.check(ONE_MINUTE).unwrap();
        let delay = Duration::from_secs(delay);
        let next = schedule.next(Time(now), delay, ONE_MINUTE);
        prop_assert!(next >= time_after(Time(now), delay));
        // The random part of the delay, the step, and the random part of the time.
        let latest = delay * 3 / 2 + ONE_MINUTE * step + ONE_MINUTE / 2;
        prop_assert!(next <= time_after(Time(now), latest));
    }
}
