//! Dates: parsing, formatting, addition, and differences.

use jiff::civil::Time;
use jiff::fmt::{rfc2822, strtime, temporal::Pieces};
use jiff::tz::TimeZone;
use jiff::{Span, SpanTotal, Timestamp, Unit, Zoned, ZonedDifference};
use toolkit_sdk::prelude::*;

/// Max length of a number of seconds since 1970, valid until the year 5138. Longer numbers are
/// milliseconds.
const MAX_SECONDS_CHARS: usize = 11;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct DateText {
    /// RFC 3339 (`2026-11-21T09:30:00+01:00`), a date (`2026-11-21`), a date and time without
    /// offset, RFC 2822 (mail headers), seconds or milliseconds since 1970, or `now`.
    date: String,
    /// Format of `date` if it is in none of these forms, with `%` directives, for example
    /// `%d.%m.%Y %H:%M`.
    format: Option<String>,
    /// IANA name, for example `Europe/Berlin`. A date without offset is read in this zone, one with
    /// an offset is converted to it. Defaults to the offset of the date, or else UTC.
    time_zone: Option<String>,
}

/// A point in time in the usual forms.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Moment {
    /// RFC 3339, for example `2026-11-21T09:30:00+01:00`.
    rfc3339: String,
    /// Date: `YYYY-MM-DD`.
    date: String,
    /// Time: `HH:MM:SS`, with fractions if there are any.
    time: String,
    /// English name of the weekday.
    weekday: String,
    /// Day of the year, 1 to 366.
    day_of_year: i16,
    /// Week in ISO 8601, for example `2026-W47`.
    week: String,
    /// IANA name of the time zone, or an offset.
    time_zone: String,
    unix_seconds: i64,
}

impl From<&Zoned> for Moment {
    fn from(moment: &Zoned) -> Self {
        let utc = *moment.time_zone() == TimeZone::UTC;
        let zone = moment.time_zone().iana_name().map(str::to_owned);
        Self {
            rfc3339: moment
                .strftime(if utc {
                    "%Y-%m-%dT%H:%M:%S%.fZ"
                } else {
                    "%Y-%m-%dT%H:%M:%S%.f%:z"
                })
                .to_string(),
            date: moment.date().to_string(),
            time: moment.time().to_string(),
            weekday: moment.strftime("%A").to_string(),
            day_of_year: moment.day_of_year(),
            week: moment.strftime("%G-W%V").to_string(),
            time_zone: zone.unwrap_or_else(|| moment.strftime("%:z").to_string()),
            unix_seconds: moment.timestamp().as_second(),
        }
    }
}

/// Parses a date in almost any form and returns it as RFC 3339, with weekday, week number and Unix
/// time. Use it also to convert a date to another time zone.
#[tool(
    read_only,
    idempotent,
    important,
    example = r#"{"date": "2026-11-21T09:30:00Z", "time_zone": "Europe/Berlin"}"#,
    example = r#"{"date": "21.11.2026 09:30", "format": "%d.%m.%Y %H:%M"}"#
)]
pub(crate) fn parse_date(input: DateText) -> Result<Moment> {
    let moment = read(
        &input.date,
        input.format.as_deref(),
        input.time_zone.as_deref(),
    )?;
    Ok(Moment::from(&moment))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Addition {
    /// Date: RFC 3339, a date, a date and time, RFC 2822, seconds or milliseconds since 1970, or
    /// `now`.
    date: String,
    /// Duration to add: words (`1 month 2 days`, `-3 hours`, `2 weeks ago`) or ISO 8601 (`P1M2D`,
    /// `-PT3H`).
    add: String,
    /// IANA name. Days and longer units keep the local time of this zone across daylight saving
    /// changes.
    time_zone: Option<String>,
}

/// Adds a duration to a date, or subtracts a negative one. Calendar rules apply: a month after
/// January 31 is the last day of February.
#[tool(
    read_only,
    idempotent,
    example = r#"{"date": "2026-01-31", "add": "1 month"}"#
)]
pub(crate) fn add_to_date(input: Addition) -> Result<Moment> {
    let date = read(&input.date, None, input.time_zone.as_deref())?;
    let sum = input
        .add
        .parse::<Span>()
        .and_then(|span| date.checked_add(span))
        .map_err(|_| {
            ToolError::invalid_input(format!(
                "cannot add `{}`: write a duration such as `1 month 2 days`, with a result in the \
                 years -9999 to 9999",
                input.add
            ))
        })?;
    Ok(Moment::from(&sum))
}

/// Largest unit of a difference.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Largest {
    Year,
    Month,
    Week,
    #[default]
    Day,
    Hour,
    Minute,
    Second,
}

impl From<Largest> for Unit {
    fn from(largest: Largest) -> Self {
        match largest {
            Largest::Year => Self::Year,
            Largest::Month => Self::Month,
            Largest::Week => Self::Week,
            Largest::Day => Self::Day,
            Largest::Hour => Self::Hour,
            Largest::Minute => Self::Minute,
            Largest::Second => Self::Second,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Interval {
    /// Earlier date: RFC 3339, a date, a date and time, RFC 2822, seconds or milliseconds since
    /// 1970, or `now`.
    start: String,
    /// Later date, in the same forms.
    end: String,
    /// IANA name of the time zone for dates without offset and for the length of days. Defaults to
    /// UTC.
    time_zone: Option<String>,
    #[serde(default)]
    largest_unit: Largest,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Difference {
    /// Difference in ISO 8601, for example `P3DT2H`; negative if `end` is before `start`.
    iso: String,
    /// Difference in words, for example `3d 2h`.
    text: String,
    /// Difference in days of the time zone, with a fraction.
    days: f64,
    seconds: i64,
}

/// Computes the time between two dates, in the requested units, in days and in seconds.
#[tool(
    read_only,
    idempotent,
    example = r#"{"start": "2026-01-31", "end": "2026-11-21", "largest_unit": "month"}"#
)]
pub(crate) fn compare_dates(input: Interval) -> Result<Difference> {
    let zone = input.time_zone.as_deref().unwrap_or("UTC");
    let start = read(&input.start, None, Some(zone))?;
    let end = read(&input.end, None, Some(zone))?;
    let span = start
        .until(ZonedDifference::new(&end).largest(input.largest_unit.into()))
        .map_err(incomparable)?;
    let days = span
        .total(SpanTotal::from(Unit::Day).relative(&start))
        .map_err(incomparable)?;
    let seconds = end.timestamp().as_second() - start.timestamp().as_second();
    Ok(Difference {
        iso: span.to_string(),
        text: format!("{span:#}"),
        days,
        seconds,
    })
}

fn incomparable(_: jiff::Error) -> ToolError {
    ToolError::invalid_input("cannot compare the dates: they are too far apart")
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Formatting {
    /// Date: RFC 3339, a date, a date and time, RFC 2822, seconds or milliseconds since 1970, or
    /// `now`.
    date: String,
    /// Format with `%` directives: `%Y` year, `%m` month, `%d` day, `%H:%M:%S` time, `%A` weekday,
    /// `%B` month name, `%j` day of the year, `%V` week, `%z` offset, `%Q` zone name.
    format: String,
    /// IANA name of the time zone of the output.
    time_zone: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Formatted {
    text: String,
}

/// Formats a date, for example as `Saturday, 21 November 2026`.
#[tool(
    read_only,
    idempotent,
    example = r#"{"date": "2026-11-21", "format": "%A, %d %B %Y"}"#
)]
pub(crate) fn format_date(input: Formatting) -> Result<Formatted> {
    let date = read(&input.date, None, input.time_zone.as_deref())?;
    let text = strtime::format(&input.format, &date).map_err(|_| {
        ToolError::invalid_input(format!(
            "cannot use the format `{}`: it has an unknown `%` directive",
            input.format
        ))
    })?;
    Ok(Formatted { text })
}

fn read(date: &str, format: Option<&str>, zone: Option<&str>) -> Result<Zoned> {
    let zone = zone.map(TimeZone::get).transpose().map_err(|_| {
        ToolError::invalid_input("use an IANA name as `time_zone`, such as `Europe/Berlin`")
    })?;
    let date = date.trim();
    let parsed = match format {
        Some(format) => with_format(date, format, zone.clone()),
        None => in_known_form(date, zone.clone()),
    };
    let moment = parsed.map_err(|_| {
        let expected = match format {
            Some(_) => "it is not in this `format`, or there is no such date",
            None => {
                "write it as `2026-01-31` or `2026-01-31T09:00:00+01:00`, and as a day that exists"
            }
        };
        ToolError::invalid_input(format!("cannot read `{date}` as a date: {expected}"))
    })?;
    Ok(zone.map_or_else(|| moment.clone(), |zone| moment.with_time_zone(zone)))
}

fn in_known_form(date: &str, zone: Option<TimeZone>) -> Result<Zoned, jiff::Error> {
    if date.eq_ignore_ascii_case("now") {
        let now = i64::try_from(clock::now()).unwrap_or(i64::MAX);
        return Ok(Timestamp::from_millisecond(now)?.to_zoned(TimeZone::UTC));
    }
    if let Ok(number) = date.parse::<i64>() {
        let seconds = date.len() <= MAX_SECONDS_CHARS;
        let at = if seconds {
            Timestamp::from_second(number)
        } else {
            Timestamp::from_millisecond(number)
        };
        return Ok(at?.to_zoned(TimeZone::UTC));
    }
    if let Ok(moment) = date.parse::<Zoned>() {
        return Ok(moment);
    }
    if let Ok(moment) = rfc2822::parse(date) {
        return Ok(moment);
    }
    let pieces = Pieces::parse(date)?;
    let local = pieces
        .date()
        .to_datetime(pieces.time().unwrap_or(Time::midnight()));
    match pieces.to_numeric_offset() {
        Some(offset) => Ok(offset
            .to_timestamp(local)?
            .to_zoned(TimeZone::fixed(offset))),
        None => local.to_zoned(zone.unwrap_or(TimeZone::UTC)),
    }
}

fn with_format(date: &str, format: &str, zone: Option<TimeZone>) -> Result<Zoned, jiff::Error> {
    let parts = strtime::parse(format, date)?;
    if let Ok(moment) = parts.to_zoned() {
        return Ok(moment);
    }
    let local = parts.to_datetime().or_else(|_| {
        parts
            .to_date()
            .map(|date| date.to_datetime(Time::midnight()))
    })?;
    local.to_zoned(zone.unwrap_or(TimeZone::UTC))
}
