//! Schedules of polls: an interval, or a cron expression in a time zone.
//!
//! Two polls are never closer than the shortest interval, which is a setting. An expression that
//! asks for more is refused. Every time has a random part, so that instances created together or
//! with equal expressions are not polled together.

use std::time::Duration;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use croner::{
    Cron,
    parser::{CronParser, Seconds, Year},
};
use serde::{Deserialize, Serialize};
use store::Time;

use crate::{Result, core::clock::time_after, events::errors, work::jittered};

/// Maximum interval between two polls.
const MAX_INTERVAL: Duration = Duration::from_secs(24 * 3_600);
/// Maximum length of a cron expression, in characters.
pub const MAX_CRON_CHARS: usize = 256;
/// Number of times of an expression that are checked for their distance. An hour has 60 times.
const CHECKED_TIMES: usize = 61;

/// Fields of a cron expression, each with its values.
const CRON_FIELDS: [&str; 5] = [
    "minute: must be 0 to 59",
    "hour: must be 0 to 23",
    "day of the month: must be 1 to 31",
    "month: must be 1 to 12 or JAN to DEC",
    "day of the week: must be 0 to 7 or SUN to SAT",
];

/// A schedule of polls, as requested and as stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// Interval between two polls, in seconds. `None` means the shortest one.
    #[serde(default)]
    pub interval_s: Option<u64>,
    /// Cron expression of five fields, instead of an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// Time zone of the expression, a name of the IANA database. `None` means UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
}

impl Schedule {
    /// Checks a requested schedule. Fails if the interval is out of range, the expression or the
    /// time zone is invalid, or the expression asks for no poll or for polls that are closer than
    /// `shortest`.
    pub(super) fn check(&self, shortest: Duration) -> Result<()> {
        let allowed = shortest.as_secs()..=MAX_INTERVAL.max(shortest).as_secs();
        let problem = match self {
            Self {
                interval_s: Some(given),
                cron: None,
                time_zone: None,
            } if !allowed.contains(given) => format!(
                "poll_interval_seconds: must be {} to {}",
                allowed.start(),
                allowed.end()
            ),
            Self {
                interval_s: Some(_),
                cron: Some(_),
                ..
            } => "poll_cron: cannot be combined with `poll_interval_seconds`".to_owned(),
            Self {
                cron: None,
                time_zone: Some(_),
                ..
            } => "poll_time_zone: needs `poll_cron`".to_owned(),
            Self {
                cron: Some(text), ..
            } => match self.check_cron(text, shortest) {
                Ok(()) => return Ok(()),
                Err(problem) => problem,
            },
            _ => return Ok(()),
        };
        Err(errors::invalid(problem))
    }

    fn check_cron(&self, text: &str, shortest: Duration) -> std::result::Result<(), String> {
        if text.chars().count() > MAX_CRON_CHARS {
            return Err(format!("poll_cron: at most {MAX_CRON_CHARS} characters"));
        }
        let cron = parse(text)?;
        self.zone()?;
        // The times of any fixed day in UTC, so that the answer depends on nothing but the expression.
        let times: Vec<_> = cron
            .iter_after(DateTime::UNIX_EPOCH)
            .take(CHECKED_TIMES)
            .collect();
        if times.is_empty() {
            return Err("poll_cron: has no time: no such day exists".to_owned());
        }
        let gaps = times
            .windows(2)
            .map(|pair| (pair[1] - pair[0]).num_seconds());
        let least = i64::try_from(shortest.as_secs()).unwrap_or(i64::MAX);
        match gaps.min() {
            Some(gap) if gap < least => Err(format!(
                "poll_cron: has times {gap} s apart; the shortest interval is {least} s"
            )),
            _ => Ok(()),
        }
    }

    fn zone(&self) -> std::result::Result<Tz, String> {
        let Some(name) = &self.time_zone else {
            return Ok(Tz::UTC);
        };
        name.parse().map_err(|_| {
            "poll_time_zone: must be a name of the IANA database, such as `Europe/Paris`".to_owned()
        })
    }

    /// Returns the interval from which delays after failures are derived.
    pub(super) fn interval(&self, shortest: Duration) -> Duration {
        let declared = self.interval_s.map(Duration::from_secs);
        declared.unwrap_or_default().max(shortest)
    }

    /// Returns the time of the next poll: at least `delay` after `now`, and at a time of the
    /// expression, if there is one.
    pub(super) fn next(&self, now: Time, delay: Duration, shortest: Duration) -> Time {
        let earliest = time_after(now, not_below(delay));
        // A delay of the shortest interval does not slow down an expression, whose times are as far
        // apart.
        let from = time_after(now, delay.saturating_sub(shortest));
        match self.time_after(from) {
            Some(at) => time_after(at, not_below(shortest) - shortest).max(earliest),
            None => earliest,
        }
    }

    /// Returns the first time of the expression after another.
    fn time_after(&self, from: Time) -> Option<Time> {
        let cron = parse(self.cron.as_ref()?).ok()?;
        let from = DateTime::<Utc>::from_timestamp_millis(from.0)?;
        let from = from.with_timezone(&self.zone().ok()?);
        let at = cron.find_next_occurrence(&from, false).ok()?;
        Some(Time(at.timestamp_millis()))
    }
}

fn parse(text: &str) -> std::result::Result<Cron, String> {
    let parser = CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .build();
    parser.parse(text).map_err(|_| {
        format!(
            "poll_cron: must be a cron expression of five fields, such as `*/10 8-18 * * MON-FRI`{}",
            wrong_fields(parser, text)
        )
    })
}

/// Returns which fields of an expression are wrong, and what they must be, without what they contain; empty
/// unless it has five fields.
fn wrong_fields(parser: CronParser, text: &str) -> String {
    let given: Vec<_> = text.split_whitespace().collect();
    if given.len() != CRON_FIELDS.len() {
        return String::new();
    }
    let named = CRON_FIELDS.iter().enumerate().filter(|(index, _)| {
        let mut fields = ["*"; CRON_FIELDS.len()];
        fields[*index] = given[*index];
        parser.parse(&fields.join(" ")).is_err()
    });
    named.map(|(_, field)| ["; ", *field].concat()).collect()
}

/// Adds a random part of up to a half to an interval.
pub(super) fn not_below(interval: Duration) -> Duration {
    // The jitter is a fifth of the time in both directions.
    jittered(interval * 5 / 4)
}

#[cfg(test)]
mod tests;
