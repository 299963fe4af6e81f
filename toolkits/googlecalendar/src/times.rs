//! Conversion of times from the text of agents to Google's format: a day, a local time, or an exact
//! time.

use jiff::civil::{Date, DateTime};
use jiff::fmt::temporal::Pieces;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan};
use toolkit_sdk::prelude::*;

use crate::API;

/// Start or end of an event.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum When {
    /// All-day: `2026-03-01`.
    Day(Date),
    /// Local time in a time zone: `2026-03-01T09:00`.
    Local(DateTime),
    /// Time with an offset: `2026-03-01T09:00+01:00`.
    Exact(Timestamp, Offset),
}

/// Duration of an event.
#[derive(Clone, Copy)]
pub(crate) enum Length {
    Days(i32),
    Minutes(i64),
}

impl When {
    /// Parses an argument.
    pub(crate) fn read(argument: &str, text: &str) -> Result<Self> {
        let wrong = || {
            ToolError::invalid_input(format!(
                "`{argument}` is `{text}`, which is no time; write `2026-03-01T09:00:00+01:00`, `2026-03-01T09:00` or `2026-03-01`"
            ))
        };
        let pieces = Pieces::parse(text.trim()).map_err(|_| wrong())?;
        match (pieces.time(), pieces.to_numeric_offset()) {
            (None, None) => Ok(Self::Day(pieces.date())),
            (Some(time), None) => Ok(Self::Local(pieces.date().to_datetime(time))),
            (Some(time), Some(offset)) => {
                let moment = offset
                    .to_timestamp(pieces.date().to_datetime(time))
                    .map_err(|_| wrong())?;
                Ok(Self::Exact(moment, offset))
            }
            (None, Some(_)) => Err(wrong()),
        }
    }

    /// Adds a duration.
    pub(crate) fn after(self, length: Length) -> Result<Self> {
        match (self, length) {
            (Self::Day(day), Length::Days(days)) => {
                Ok(Self::Day(day.checked_add(days.days()).map_err(too_late)?))
            }
            (Self::Local(time), Length::Minutes(minutes)) => Ok(Self::Local(
                time.checked_add(SignedDuration::from_mins(minutes))
                    .map_err(too_late)?,
            )),
            (Self::Exact(moment, offset), Length::Minutes(minutes)) => Ok(Self::Exact(
                moment
                    .checked_add(SignedDuration::from_mins(minutes))
                    .map_err(too_late)?,
                offset,
            )),
            (Self::Day(_), Length::Minutes(_)) => Err(ToolError::invalid_input(
                "an all-day event has no minutes; give `end` as the day after its last, or `start` with a time",
            )),
            (_, Length::Days(_)) => Err(ToolError::invalid_input(
                "the event was all day and now begins at a time; give `end` or `duration_minutes`, too",
            )),
        }
    }

    /// Returns the duration until `end`, if both are of the same kind.
    pub(crate) fn until(self, end: Self) -> Option<Length> {
        match (self, end) {
            (Self::Day(start), Self::Day(end)) => {
                Some(Length::Days(start.until(end).ok()?.get_days()))
            }
            (Self::Exact(start, _), Self::Exact(end, _)) => {
                Some(Length::Minutes(end.duration_since(start).as_mins()))
            }
            _ => None,
        }
    }

    pub(crate) fn is_day(self) -> bool {
        matches!(self, Self::Day(_))
    }

    /// Converts to Google's format. In a change, the field of the other kind is set to null, so
    /// that an all-day event can get a time and vice versa.
    pub(crate) fn json(self, zone: Option<&str>, change: bool) -> Value {
        let mut json = match self {
            Self::Day(day) => json!({ "date": day.to_string() }),
            Self::Local(time) => json!({ "dateTime": time.to_string() }),
            Self::Exact(moment, offset) => {
                json!({ "dateTime": moment.display_with_offset(offset).to_string() })
            }
        };
        if !self.is_day()
            && let Some(zone) = zone
        {
            json["timeZone"] = zone.into();
        }
        if change {
            json[if self.is_day() { "dateTime" } else { "date" }] = Value::Null;
        }
        json
    }

    /// Returns the timestamp. A time without an offset is read in the given time zone.
    pub(crate) fn moment(self, zone: &TimeZone) -> Result<Timestamp> {
        let time = match self {
            Self::Exact(moment, _) => return Ok(moment),
            Self::Day(day) => day.to_datetime(jiff::civil::Time::midnight()),
            Self::Local(time) => time,
        };
        let moment = zone.to_timestamp(time);
        moment.map_err(|_| ToolError::invalid_input(format!("{time} is not in the calendar")))
    }
}

fn too_late(_: jiff::Error) -> ToolError {
    ToolError::invalid_input("the event would end past the end of the calendar; shorten it")
}

/// Returns the time zone with this name.
pub(crate) fn zone(name: &str) -> Result<TimeZone> {
    TimeZone::get(name).map_err(|_| {
        ToolError::invalid_input(format!(
            "the time zone `{name}` is unknown; write a name such as `Europe/Berlin` or `UTC`"
        ))
    })
}

/// Returns the time zone of a calendar, which Google sends with its events.
pub(crate) fn zone_of(calendar: &str) -> Result<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Calendar {
        time_zone: String,
    }
    let request = API
        .get("/calendars/{calendar}/events")
        .path("calendar", calendar);
    let found: Calendar = request
        .query("maxResults", 1)
        .query("fields", "timeZone")
        .send()?
        .json()?;
    Ok(found.time_zone)
}

/// Time zone for times without an offset: the given one, or else that of the calendar.
pub(crate) struct Zone<'a> {
    given: Option<&'a str>,
    calendar: &'a str,
    asked: Option<String>,
}

impl<'a> Zone<'a> {
    pub(crate) fn new(given: Option<&'a str>, calendar: &'a str) -> Self {
        Self {
            given,
            calendar,
            asked: None,
        }
    }

    /// Parses an argument to a timestamp. The time zone of the calendar is requested at most once,
    /// and only if needed.
    pub(crate) fn moment(&mut self, argument: &str, text: &str) -> Result<Timestamp> {
        match When::read(argument, text)? {
            When::Exact(moment, _) => Ok(moment),
            open => open.moment(&zone(self.name()?)?),
        }
    }

    fn name(&mut self) -> Result<&str> {
        if let Some(given) = self.given {
            return Ok(given);
        }
        if self.asked.is_none() {
            self.asked = Some(zone_of(self.calendar)?);
        }
        Ok(self.asked.as_deref().unwrap_or("UTC"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> When {
        When::read("start", text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn times_are_converted_to_google_format() {
        let sent = |text: &str| read(text).json(Some("Europe/Berlin"), false);
        assert_eq!(sent("2026-03-01"), json!({ "date": "2026-03-01" }));
        let local = json!({ "dateTime": "2026-03-01T09:00:00", "timeZone": "Europe/Berlin" });
        assert_eq!(sent("2026-03-01T09:00"), local);
        assert_eq!(sent(" 2026-03-01 09:00:00 "), local);
        let exact = json!({ "dateTime": "2026-03-01T09:00:00+01:00", "timeZone": "Europe/Berlin" });
        assert_eq!(sent("2026-03-01T09:00+01:00"), exact);
        assert_eq!(
            read("2026-03-01T09:00:00Z").json(None, true)["date"],
            Value::Null
        );
        for wrong in ["", "tomorrow", "2026-02-30", "09:00", "2026-03-01T25:00"] {
            assert_eq!(
                When::read("start", wrong).map_err(|error| error.kind().to_owned()),
                Err("invalid_input".into()),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_length_is_kept_when_the_beginning_moves() {
        let length = |start: &str, end: &str| read(start).until(read(end));
        let days =
            length("2026-03-01", "2026-03-03").map(|length| read("2026-12-31").after(length));
        assert_eq!(days, Some(Ok(read("2027-01-02"))));
        let minutes = length("2026-03-01T09:00+01:00", "2026-03-01T08:45Z")
            .map(|length| read("2026-03-01T23:30").after(length));
        assert_eq!(minutes, Some(Ok(read("2026-03-02T00:15"))));
        assert!(length("2026-03-01", "2026-03-01T08:45Z").is_none());
    }

    #[test]
    fn clocks_of_a_zone_mean_a_moment() {
        let berlin = zone("Europe/Berlin").unwrap_or_else(|error| panic!("{error}"));
        let moment = |text: &str| read(text).moment(&berlin).map(|moment| moment.to_string());
        assert_eq!(
            moment("2026-03-01T09:00"),
            Ok("2026-03-01T08:00:00Z".to_owned())
        );
        assert_eq!(moment("2026-07-01"), Ok("2026-06-30T22:00:00Z".to_owned()));
        assert!(zone("Europe/Atlantis").is_err());
    }
}
