//! Busy times of people and rooms, and times at which all of them are free.

use std::collections::BTreeMap;

use jiff::civil::{Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use toolkit_sdk::prelude::*;

use crate::API;
use crate::events::written;
use crate::times::{When, zone};

/// Max length of the searched period, in days.
const MAX_DAYS: i32 = 92;

fn own() -> Vec<String> {
    vec!["primary".to_owned()]
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Span {
    /// Ids of calendars: email addresses of people and rooms, or `primary` for the main calendar of
    /// the account.
    #[serde(default = "own")]
    #[schemars(length(min = 1, max = 50))]
    calendars: Vec<String>,
    /// Start of the period: `2026-03-02T09:00:00+01:00`, or without an offset together with
    /// `time_zone`; a date means the start of the day.
    start_time: String,
    /// End of the period; a date means the start of the day.
    end_time: String,
    /// Time zone of times without an offset, and of the response: `Europe/Berlin`.
    time_zone: Option<String>,
}

/// A period as timestamps.
struct Moments {
    start: Timestamp,
    end: Timestamp,
    zone: TimeZone,
}

impl Span {
    fn moments(&self) -> Result<Moments> {
        let named = self.time_zone.as_deref().map(zone).transpose()?;
        let start = moment("start_time", &self.start_time, named.as_ref())?;
        let end = moment("end_time", &self.end_time, named.as_ref())?;
        if start >= end {
            return Err(ToolError::invalid_input(format!(
                "`end_time` ({}) must be after `start_time` ({})",
                self.end_time, self.start_time
            )));
        }
        Ok(Moments {
            start,
            end,
            zone: named.unwrap_or(TimeZone::UTC),
        })
    }
}

/// Parses a time: with its own offset, or else in a time zone.
fn moment(argument: &str, text: &str, zone: Option<&TimeZone>) -> Result<Timestamp> {
    match (When::read(argument, text)?, zone) {
        (When::Exact(moment, _), _) => Ok(moment),
        (open, Some(zone)) => open.moment(zone),
        (_, None) => Err(ToolError::invalid_input(format!(
            "`{argument}` is `{text}`, which may be many moments; give `time_zone`, or an offset as in `2026-03-02T09:00:00+01:00`"
        ))),
    }
}

/// Response to a free/busy request in Google's format.
#[derive(Deserialize)]
struct FreeBusyResponse {
    #[serde(default)]
    calendars: BTreeMap<String, CalendarBusy>,
}

#[derive(Deserialize)]
struct CalendarBusy {
    #[serde(default)]
    busy: Vec<Period>,
    #[serde(default)]
    errors: Vec<Reason>,
}

#[derive(Deserialize)]
struct Reason {
    reason: String,
}

/// A period with start and end.
#[derive(Serialize, Deserialize, JsonSchema, Clone)]
struct Period {
    start: String,
    end: String,
}

fn ask(span: &Span, moments: &Moments) -> Result<FreeBusyResponse> {
    let items: Vec<Value> = span
        .calendars
        .iter()
        .map(|id| json!({ "id": id }))
        .collect();
    let mut body = json!({ "timeMin": written(moments.start), "timeMax": written(moments.end), "items": items });
    if let Some(zone) = &span.time_zone {
        body["timeZone"] = zone.as_str().into();
    }
    API.post("/freeBusy").json(&body).send()?.json()
}

/// Busy times of a calendar.
#[derive(Serialize, JsonSchema)]
struct Busy {
    calendar: String,
    busy: Vec<Period>,
    /// Reason for missing data: `notFound` if the calendar does not exist or the account may not
    /// see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct AllBusy {
    calendars: Vec<Busy>,
}

/// Gets the busy times of people or rooms, without the events themselves. For times at which all of
/// them are free use `find_free_time`.
#[tool(
    read_only,
    idempotent,
    scopes("https://www.googleapis.com/auth/calendar.freebusy"),
    egress("POST www.googleapis.com/calendar/v3/freeBusy"),
    example = r#"{"calendars": ["ada@example.com", "grace@example.com"], "start_time": "2026-03-02T08:00:00Z", "end_time": "2026-03-02T18:00:00Z"}"#
)]
pub(crate) fn get_free_busy(input: Span) -> Result<AllBusy> {
    let mut answer = ask(&input, &input.moments()?)?;
    let calendars = input
        .calendars
        .into_iter()
        .map(|calendar| {
            let calendar_busy = answer.calendars.remove(&calendar);
            let unknown = calendar_busy.is_none().then(|| "notFound".to_owned());
            let CalendarBusy { busy, errors } = calendar_busy.unwrap_or(CalendarBusy {
                busy: Vec::new(),
                errors: Vec::new(),
            });
            let problem = errors
                .into_iter()
                .next()
                .map(|error| error.reason)
                .or(unknown);
            Busy {
                calendar,
                busy,
                problem,
            }
        })
        .collect();
    Ok(AllBusy { calendars })
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Search {
    #[serde(flatten)]
    span: Span,
    #[schemars(range(min = 1, max = 1440))]
    duration_minutes: u32,
    /// Earliest time of day, in `time_zone`.
    #[serde(default = "morning")]
    day_start: String,
    /// Latest time of day, in `time_zone`.
    #[serde(default = "evening")]
    day_end: String,
    /// Includes Saturdays and Sundays.
    #[serde(default)]
    weekends: bool,
    /// Max number of free periods to return.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
}

fn morning() -> String {
    "09:00".to_owned()
}

fn evening() -> String {
    "17:00".to_owned()
}

fn ten() -> usize {
    10
}

/// Periods in which all calendars are free.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Free {
    /// Whole periods, earliest first; each is at least as long as the duration.
    free: Vec<Period>,
    /// True if more periods were found than returned.
    truncated: bool,
}

/// Finds times at which all the given people and rooms are free long enough, within working hours.
/// Use it before `create_event` to propose or book a meeting.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("https://www.googleapis.com/auth/calendar.freebusy"),
    egress("POST www.googleapis.com/calendar/v3/freeBusy"),
    example = r#"{"calendars": ["primary", "ada@example.com"], "start_time": "2026-03-02", "end_time": "2026-03-07", "time_zone": "Europe/Berlin", "duration_minutes": 45}"#
)]
pub(crate) fn find_free_time(input: Search) -> Result<Free> {
    let Search {
        span,
        duration_minutes,
        day_start,
        day_end,
        weekends,
        limit,
    } = input;
    let moments = span.moments()?;
    let hours = (
        clock_time("day_start", &day_start)?,
        clock_time("day_end", &day_end)?,
    );
    if hours.0 >= hours.1 {
        return Err(ToolError::invalid_input(format!(
            "`day_end` ({day_end}) must be after `day_start` ({day_start})"
        )));
    }
    let windows = windows(&moments, hours, weekends)?;
    let mut busy = Vec::new();
    for (calendar, calendar_busy) in ask(&span, &moments)?.calendars {
        if let Some(Reason { reason }) = calendar_busy.errors.first() {
            let message = format!(
                "Google returned no free times of the calendar `{calendar}`: {reason}; omit it, or ask its owner to share it"
            );
            return Err(if reason == "notFound" {
                ToolError::not_found(message)
            } else {
                ToolError::upstream(message)
            });
        }
        for period in calendar_busy.busy {
            busy.push((read(&period.start)?, read(&period.end)?));
        }
    }
    busy.sort_unstable();
    let least = SignedDuration::from_mins(duration_minutes.into());
    let mut found = gaps(&windows, &busy)
        .into_iter()
        .filter(|(start, end)| end.duration_since(*start) >= least);
    let free = found
        .by_ref()
        .take(limit)
        .map(|(start, end)| Period {
            start: written_in(&moments.zone, start),
            end: written_in(&moments.zone, end),
        })
        .collect();
    Ok(Free {
        free,
        truncated: found.next().is_some(),
    })
}

fn written_in(zone: &TimeZone, moment: Timestamp) -> String {
    let offset = zone.to_offset(moment);
    moment.display_with_offset(offset).to_string()
}

fn clock_time(argument: &str, text: &str) -> Result<Time> {
    text.parse().map_err(|_| {
        ToolError::invalid_input(format!(
            "`{argument}` is `{text}`; write a time of day such as `09:00`"
        ))
    })
}

fn read(moment: &str) -> Result<Timestamp> {
    moment.parse().map_err(|_| {
        ToolError::upstream(format!("Google's response has an invalid time `{moment}`"))
    })
}

/// Returns the usable hours of each day within the period.
fn windows(
    moments: &Moments,
    (open, close): (Time, Time),
    weekends: bool,
) -> Result<Vec<(Timestamp, Timestamp)>> {
    let mut at = moments.zone.to_datetime(moments.start).date();
    let last = moments.zone.to_datetime(moments.end).date();
    let mut windows = Vec::new();
    for _ in 0..=MAX_DAYS {
        if at > last {
            return Ok(windows);
        }
        if weekends || !matches!(at.weekday(), Weekday::Saturday | Weekday::Sunday) {
            let opening = When::Local(at.to_datetime(open)).moment(&moments.zone)?;
            let closing = When::Local(at.to_datetime(close)).moment(&moments.zone)?;
            let start = opening.max(moments.start);
            let end = closing.min(moments.end);
            windows.extend((start < end).then_some((start, end)));
        }
        let Ok(next) = at.checked_add(1.days()) else {
            return Ok(windows);
        };
        at = next;
    }
    Err(ToolError::invalid_input(format!(
        "the span has more than {MAX_DAYS} days; search in parts of it"
    )))
}

/// Subtracts the busy times, which must be sorted, from the windows.
fn gaps(
    windows: &[(Timestamp, Timestamp)],
    busy: &[(Timestamp, Timestamp)],
) -> Vec<(Timestamp, Timestamp)> {
    let mut gaps = Vec::new();
    for (start, end) in windows {
        let mut at = *start;
        for (begins, ends) in busy
            .iter()
            .filter(|(begins, ends)| begins < end && ends > start)
        {
            if *begins > at {
                gaps.push((at, *begins));
            }
            at = at.max(*ends);
        }
        if at < *end {
            gaps.push((at, *end));
        }
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_or_ends_outside_is_busy_once() {
        let at = |minute: i64| Timestamp::from_second(minute * 60).unwrap_or_default();
        let spans = |spans: &[(i64, i64)]| {
            spans
                .iter()
                .map(|(a, b)| (at(*a), at(*b)))
                .collect::<Vec<_>>()
        };
        let windows = spans(&[(0, 100), (200, 300)]);
        let busy = spans(&[(-10, 10), (20, 60), (30, 40), (90, 210), (300, 310)]);
        assert_eq!(
            gaps(&windows, &busy),
            spans(&[(10, 20), (60, 90), (210, 300)])
        );
        assert_eq!(gaps(&windows, &[]), windows);
        assert_eq!(gaps(&windows, &spans(&[(0, 300)])), []);
    }
}
