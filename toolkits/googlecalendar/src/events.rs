//! Reading, creating and changing events.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::Offset;
use serde::Deserializer;
use toolkit_sdk::prelude::*;

use crate::API;
use crate::people::{Attendee, Notify, mail};
use crate::times::{Length, When, Zone, zone_of};

pub(crate) const EVENTS_PATH: &str = "/calendars/{calendar}/events";
pub(crate) const EVENT_PATH: &str = "/calendars/{calendar}/events/{event}";
/// Max size of a description in a list, in bytes. A longer one is cut; a request for the single
/// event returns it whole.
const MAX_LISTED_TEXT_CHARS: usize = 500;
/// Default duration of an event.
const DEFAULT_MINUTES: i64 = 60;

/// An event.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all(deserialize = "camelCase"))]
pub(crate) struct Event {
    pub(crate) id: String,
    /// `confirmed`, `tentative` or, for a deleted event, `cancelled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<String>,
    /// Title of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) summary: Option<String>,
    /// Text, which may contain HTML; in lists a long text is cut and ends in `…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    /// Start time, with the offset of its time zone; only a date for an all-day event.
    #[serde(
        default,
        deserialize_with = "moment",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) start: Option<String>,
    /// End time; for an all-day event the day after its last day.
    #[serde(
        default,
        deserialize_with = "moment",
        skip_serializing_if = "Option::is_none"
    )]
    end: Option<String>,
    /// Email address of the organizer.
    #[serde(
        default,
        deserialize_with = "mail",
        skip_serializing_if = "Option::is_none"
    )]
    organizer: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) attendees: Vec<Attendee>,
    /// True if attendees are missing from the list.
    #[serde(default, skip_serializing_if = "is_false")]
    attendees_omitted: bool,
    /// Recurrence rules: lines of RFC 5545 such as `RRULE:FREQ=WEEKLY`. Only in the series itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    recurrence: Vec<String>,
    /// Id of the series to which this occurrence belongs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recurring_event_id: Option<String>,
    /// URL of the video meeting.
    #[serde(
        rename(deserialize = "hangoutLink"),
        default,
        skip_serializing_if = "Option::is_none"
    )]
    meeting_url: Option<String>,
    /// True if the event does not block the time.
    #[serde(
        rename(deserialize = "transparency"),
        default,
        deserialize_with = "transparent",
        skip_serializing_if = "is_false"
    )]
    free: bool,
    /// `public`, `private` or `confidential`; if missing, the default of the calendar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    visibility: Option<String>,
    /// `default`, `outOfOffice`, `focusTime`, `workingLocation`, `birthday` or `fromGmail`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    event_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    color_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    updated: Option<String>,
    /// URL of the web page.
    #[serde(
        rename(deserialize = "htmlLink"),
        default,
        skip_serializing_if = "Option::is_none"
    )]
    url: Option<String>,
}

/// A time in Google's format.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventTime {
    date: Option<String>,
    date_time: Option<String>,
    time_zone: Option<String>,
}

impl EventTime {
    fn text(self) -> Option<String> {
        self.date_time.or(self.date)
    }

    fn when(&self) -> Result<Option<When>> {
        self.clone()
            .text()
            .map(|text| When::read("event", &text))
            .transpose()
    }
}

fn moment<'de, D: Deserializer<'de>>(json: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<EventTime>::deserialize(json)?.and_then(EventTime::text))
}

fn transparent<'de, D: Deserializer<'de>>(json: D) -> Result<bool, D::Error> {
    Ok(Option::<String>::deserialize(json)?.is_some_and(|word| word == "transparent"))
}

pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

impl Event {
    /// Returns true if it is one occurrence of a series.
    pub(crate) fn is_occurrence(&self) -> bool {
        self.recurring_event_id.is_some()
    }

    fn shortened(mut self) -> Self {
        if let Some(long) = self
            .description
            .take_if(|text| text.len() > MAX_LISTED_TEXT_CHARS)
        {
            let end = long.floor_char_boundary(MAX_LISTED_TEXT_CHARS);
            self.description = Some(format!("{}…", &long[..end]));
        }
        self
    }
}

/// One page of a list of events.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Page {
    items: Vec<Event>,
    /// Time zone of the calendar.
    #[serde(skip_serializing_if = "Option::is_none")]
    time_zone: Option<String>,
    /// `page_token` of the next request; missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page_token: Option<String>,
}

/// A list of events in Google's format.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    #[serde(default)]
    items: Vec<Event>,
    time_zone: Option<String>,
    next_page_token: Option<String>,
}

fn page(request: Request) -> Result<Page> {
    let Listed {
        items,
        time_zone,
        next_page_token,
    } = request.send()?.json()?;
    Ok(Page {
        items: items.into_iter().map(Event::shortened).collect(),
        time_zone,
        next_page_token,
    })
}

/// Formats a time as RFC 3339 in UTC, as Google expects it.
pub(crate) fn written(moment: Timestamp) -> String {
    moment
        .display_with_offset(Offset::UTC)
        .to_string()
        .replace("+00:00", "Z")
}

pub(crate) fn primary() -> String {
    "primary".to_owned()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListEvents {
    /// Id of the calendar, from `list_calendars`; `primary` is the main calendar of the account.
    #[serde(default = "primary")]
    calendar_id: String,
    /// Only events that end after this time: `2026-03-01T09:00:00+01:00`, `2026-03-01T09:00`, or
    /// `2026-03-01` for the start of the day. Defaults to now.
    start_time: Option<String>,
    /// Only events that begin before this time; a date means the start of the day. Defaults to no
    /// limit.
    end_time: Option<String>,
    /// Only events with these words in title, description, location or attendees.
    query: Option<String>,
    /// Time zone of `start_time` and `end_time` without an offset, and of the response:
    /// `Europe/Berlin`. Defaults to the time zone of the calendar.
    time_zone: Option<String>,
    /// Max number of events to return.
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 250))]
    limit: u32,
    /// Token of the next page: `next_page_token` of the previous response. All other arguments must
    /// be the same.
    page_token: Option<String>,
}

fn fifty() -> u32 {
    50
}

/// Lists the events of a calendar by start time, from now on or in a period, or finds some by
/// words. Each occurrence of a series is listed. Use it for "what is on my calendar tomorrow" and
/// to find the id of an event.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("https://www.googleapis.com/auth/calendar.events.readonly"),
    example = r#"{"start_time": "2026-03-02", "end_time": "2026-03-03", "time_zone": "Europe/Berlin"}"#
)]
pub(crate) fn list_events(input: ListEvents) -> Result<Page> {
    let mut zone = Zone::new(input.time_zone.as_deref(), &input.calendar_id);
    let start = match &input.start_time {
        Some(start) => written(zone.moment("start_time", start)?),
        None => now(),
    };
    let end = input
        .end_time
        .as_ref()
        .map(|end| zone.moment("end_time", end))
        .transpose()?
        .map(written);
    let request = API
        .get(EVENTS_PATH)
        .path("calendar", &input.calendar_id)
        .query("singleEvents", true)
        .query("orderBy", "startTime")
        .query("timeMin", start)
        .query_opt("timeMax", end)
        .query_opt("q", input.query)
        .query_opt("timeZone", input.time_zone)
        .query("maxResults", input.limit.clamp(1, 250))
        .query_opt("pageToken", input.page_token);
    page(request)
}

/// Returns the current time, to the second.
pub(crate) fn now() -> String {
    let seconds = i64::try_from(clock::now() / 1000).unwrap_or(i64::MAX);
    written(Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX))
}

/// An event, by its id.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct EventId {
    /// Id of the calendar, from `list_calendars`; `primary` is the main calendar of the account.
    #[serde(default = "primary")]
    pub(crate) calendar_id: String,
    /// Id of the event, from `list_events`. For a series: the id of one occurrence, or
    /// `recurring_event_id` for all.
    #[schemars(length(min = 1))]
    pub(crate) event_id: String,
}

impl EventId {
    pub(crate) fn fill(&self, request: Request) -> Request {
        request
            .path("calendar", &self.calendar_id)
            .path("event", &self.event_id)
    }
}

/// Gets one event with its whole description, attendees, location and meeting URL.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("https://www.googleapis.com/auth/calendar.events.readonly"),
    example = r#"{"event_id": "7cbh8rpc10lrc0ckih9tafss99"}"#
)]
pub(crate) fn get_event(input: EventId) -> Result<Event> {
    input.fill(API.get(EVENT_PATH)).send()?.json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Instances {
    #[serde(flatten)]
    event: EventId,
    /// Only occurrences that end after this time; a date means the start of the day.
    start_time: Option<String>,
    /// Only occurrences that begin before this time.
    end_time: Option<String>,
    /// Includes deleted occurrences.
    #[serde(default)]
    include_cancelled: bool,
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 250))]
    limit: u32,
    /// Token of the next page: `next_page_token` of the previous response.
    page_token: Option<String>,
}

/// Lists the occurrences of a recurring event, by the id of its series. Each has its own id, which
/// changes or deletes only that occurrence.
#[tool(
    read_only,
    idempotent,
    scopes("https://www.googleapis.com/auth/calendar.events.readonly"),
    example = r#"{"event_id": "7cbh8rpc10lrc0ckih9tafss99", "limit": 10}"#
)]
pub(crate) fn list_event_instances(input: Instances) -> Result<Page> {
    let mut zone = Zone::new(None, &input.event.calendar_id);
    let mut moment = |name: &str, text: Option<String>| -> Result<Option<String>> {
        text.map(|text| zone.moment(name, &text))
            .transpose()
            .map(|moment| moment.map(written))
    };
    let start = moment("start_time", input.start_time)?;
    let end = moment("end_time", input.end_time)?;
    let request = input
        .event
        .fill(API.get("/calendars/{calendar}/events/{event}/instances"))
        .query_opt("timeMin", start)
        .query_opt("timeMax", end)
        .query_opt("showDeleted", input.include_cancelled.then_some(true))
        .query("maxResults", input.limit.clamp(1, 250))
        .query_opt("pageToken", input.page_token);
    page(request)
}

/// Properties of an event, apart from title, time and attendees.
#[derive(Deserialize, JsonSchema)]
struct Details {
    /// Text; simple HTML is shown formatted.
    description: Option<String>,
    /// An address, or the name of a room.
    location: Option<String>,
    /// Recurrence rules: lines of RFC 5545, for example `["RRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=10"]`,
    /// without DTSTART.
    #[schemars(length(max = 20))]
    recurrence: Option<Vec<String>>,
    /// Minutes before the event for reminders; `[]` for none. Defaults to the reminders of the
    /// calendar.
    #[schemars(length(max = 5))]
    reminder_minutes: Option<Vec<u32>>,
    /// Does not block the time.
    free: Option<bool>,
    visibility: Option<Visibility>,
    /// Id of a color, from `get_colors`.
    color_id: Option<String>,
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Visibility {
    Default,
    /// Details are visible to all who see the calendar.
    Public,
    /// Details are visible only to attendees.
    Private,
}

/// Body of a request: the specified fields under Google's names.
type Body = BTreeMap<&'static str, Value>;

impl Details {
    fn write(&self, body: &mut Body) {
        let mut set = |name, value: Option<Value>| body.extend(value.map(|value| (name, value)));
        set(
            "description",
            self.description.as_ref().map(|text| json!(text)),
        );
        set("location", self.location.as_ref().map(|text| json!(text)));
        set(
            "recurrence",
            self.recurrence.as_ref().map(|lines| json!(lines)),
        );
        set(
            "transparency",
            self.free
                .map(|free| json!(if free { "transparent" } else { "opaque" })),
        );
        set("visibility", self.visibility.map(|word| json!(word)));
        set("colorId", self.color_id.as_ref().map(|id| json!(id)));
        set(
            "reminders",
            self.reminder_minutes.as_ref().map(|all| {
                let overrides: Vec<Value> = all
                    .iter()
                    .map(|minutes| json!({ "method": "popup", "minutes": minutes }))
                    .collect();
                json!({ "useDefault": false, "overrides": overrides })
            }),
        );
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CreateEvent {
    /// Id of the calendar, from `list_calendars`; `primary` is the main calendar of the account.
    #[serde(default = "primary")]
    calendar_id: String,
    /// Title of the event.
    summary: String,
    /// Start time: `2026-03-01T09:00` in `time_zone`, `2026-03-01T09:00:00+01:00`, or `2026-03-01`
    /// for an all-day event.
    start: String,
    /// End time, written like `start`; for an all-day event the day after its last day.
    /// Alternatively give `duration_minutes`. Defaults to one hour, or one day for an all-day
    /// event.
    end: Option<String>,
    #[schemars(range(min = 1, max = 525600))]
    duration_minutes: Option<u32>,
    /// Time zone of times without an offset, and of the recurrence: `Europe/Berlin`. Defaults to
    /// the time zone of the calendar.
    time_zone: Option<String>,
    #[serde(flatten)]
    details: Details,
    /// Email addresses of the attendees.
    #[serde(default)]
    #[schemars(length(max = 200))]
    attendees: Vec<String>,
    /// Creates a Google Meet meeting; its URL is returned as `meeting_url`.
    #[serde(default)]
    video_meeting: bool,
    #[serde(default)]
    notify: Notify,
}

/// Creates an event on a calendar: a meeting with attendees and a video link, an all-day event, or
/// a series. Look for free time first with `find_free_time`.
#[tool(
    open_world,
    important,
    scopes("https://www.googleapis.com/auth/calendar.events"),
    example = r#"{"summary": "Planning", "start": "2026-03-02T09:00", "duration_minutes": 30, "time_zone": "Europe/Berlin", "attendees": ["ada@example.com"], "video_meeting": true}"#
)]
pub(crate) fn create_event(input: CreateEvent) -> Result<Event> {
    let start = When::read("start", &input.start)?;
    let usual = if start.is_day() {
        Length::Days(1)
    } else {
        Length::Minutes(DEFAULT_MINUTES)
    };
    let end = end(
        start,
        input.end.as_deref(),
        input.duration_minutes,
        Some(usual),
    )?;
    let repeats = input
        .details
        .recurrence
        .as_ref()
        .is_some_and(|lines| !lines.is_empty());
    let open = [start, end]
        .iter()
        .any(|time| matches!(time, When::Local(_)));
    let zone = match input.time_zone {
        None if open || repeats && !start.is_day() => Some(zone_of(&input.calendar_id)?),
        given => given,
    };
    let mut body = Body::from([("summary", json!(input.summary))]);
    input.details.write(&mut body);
    body.insert("start", start.json(zone.as_deref(), false));
    body.insert("end", end.json(zone.as_deref(), false));
    if !input.attendees.is_empty() {
        let attendees: Vec<Value> = input
            .attendees
            .iter()
            .map(|address| json!({ "email": address }))
            .collect();
        body.insert("attendees", json!(attendees));
    }
    let request = API
        .post(EVENTS_PATH)
        .path("calendar", &input.calendar_id)
        .query("sendUpdates", input.notify.word());
    meeting(request, input.video_meeting, &mut body)
        .json(&body)
        .send()?
        .json()
}

/// Adds a request for a video meeting.
fn meeting(request: Request, wanted: bool, body: &mut Body) -> Request {
    if !wanted {
        return request;
    }
    // Identifies the meeting request: Google creates one meeting for repeated requests with the
    // same id.
    let id = format!("meeting-{}", clock::now());
    let wish = json!({ "requestId": id, "conferenceSolutionKey": { "type": "hangoutsMeet" } });
    body.insert("conferenceData", json!({ "createRequest": wish }));
    request.query("conferenceDataVersion", 1)
}

/// Returns the end of an event from its start and one of end, duration and default duration.
fn end(
    start: When,
    end: Option<&str>,
    minutes: Option<u32>,
    usual: Option<Length>,
) -> Result<When> {
    let found = match (end, minutes) {
        (Some(_), Some(_)) => {
            return Err(ToolError::invalid_input(
                "give `end` or `duration_minutes`, not both",
            ));
        }
        (Some(end), None) => When::read("end", end)?,
        (None, Some(minutes)) => start.after(Length::Minutes(minutes.into()))?,
        (None, None) => {
            let usual = usual.ok_or_else(|| {
                ToolError::invalid_input("say when it ends: give `end` or `duration_minutes`")
            })?;
            start.after(usual)?
        }
    };
    if start.is_day() != found.is_day() {
        return Err(ToolError::invalid_input(
            "write `start` and `end` both with a time, or both as dates for an all-day event",
        ));
    }
    Ok(found)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct UpdateEvent {
    #[serde(flatten)]
    event: EventId,
    /// New title.
    summary: Option<String>,
    /// New start time, written as for `create_event`. Without a new end the duration stays the
    /// same.
    start: Option<String>,
    /// New end time.
    end: Option<String>,
    #[schemars(range(min = 1, max = 525600))]
    duration_minutes: Option<u32>,
    /// Time zone of times without an offset. Defaults to the time zone of the event.
    time_zone: Option<String>,
    #[serde(flatten)]
    details: Details,
    /// Email addresses of attendees to add.
    #[serde(default)]
    add_attendees: Vec<String>,
    /// Email addresses of attendees to remove.
    #[serde(default)]
    remove_attendees: Vec<String>,
    /// Adds a Google Meet meeting.
    #[serde(default)]
    video_meeting: bool,
    #[serde(default)]
    notify: Notify,
}

/// Properties of the event before a change.
#[derive(Deserialize)]
struct Before {
    #[serde(default)]
    start: EventTime,
    #[serde(default)]
    end: EventTime,
    #[serde(default)]
    attendees: Vec<Value>,
}

/// Changes an event: moves it, renames it, adds or removes attendees. Give only the fields to
/// change. The id of one occurrence changes only that one, the id of the series changes all. To
/// accept or decline an invitation use `respond_to_event`.
#[tool(
    destructive,
    open_world,
    important,
    scopes("https://www.googleapis.com/auth/calendar.events"),
    example = r#"{"event_id": "7cbh8rpc10lrc0ckih9tafss99", "start": "2026-03-02T10:00", "add_attendees": ["grace@example.com"]}"#
)]
pub(crate) fn update_event(input: UpdateEvent) -> Result<Event> {
    let mut body = Body::new();
    body.extend(
        input
            .summary
            .as_ref()
            .map(|summary| ("summary", json!(summary))),
    );
    input.details.write(&mut body);
    let timed = input.start.is_some() || input.end.is_some() || input.duration_minutes.is_some();
    let people = !input.add_attendees.is_empty() || !input.remove_attendees.is_empty();
    if timed || people {
        let before = input
            .event
            .fill(API.get(EVENT_PATH))
            .query("fields", "start,end,attendees")
            .send()?
            .json()?;
        if timed {
            retime(&input, &before, &mut body)?;
        }
        if people {
            body.insert(
                "attendees",
                invited(
                    before.attendees,
                    &input.add_attendees,
                    &input.remove_attendees,
                ),
            );
        }
    }
    let patch = input
        .event
        .fill(API.patch(EVENT_PATH))
        .query("sendUpdates", input.notify.word());
    let request = meeting(patch, input.video_meeting, &mut body);
    if body.is_empty() {
        return Err(ToolError::invalid_input(
            "nothing is to be changed; give at least one of the other arguments",
        ));
    }
    request.json(&body).send()?.json()
}

/// Writes the new times of an event.
fn retime(input: &UpdateEvent, before: &Before, body: &mut Body) -> Result<()> {
    let began = before.start.when()?;
    let ended = before.end.when()?;
    let start = input
        .start
        .as_ref()
        .map(|text| When::read("start", text))
        .transpose()?
        .or(began)
        .ok_or_else(|| ToolError::upstream("Google's response has no start of the event"))?;
    let length = began
        .zip(ended)
        .and_then(|(began, ended)| began.until(ended));
    let end = end(start, input.end.as_deref(), input.duration_minutes, length)?;
    let open = [start, end]
        .iter()
        .any(|time| matches!(time, When::Local(_)));
    let zone = match input.time_zone.as_ref().or(before.start.time_zone.as_ref()) {
        Some(zone) => Some(zone.clone()),
        None if open => Some(zone_of(&input.event.calendar_id)?),
        None => None,
    };
    body.insert("start", start.json(zone.as_deref(), true));
    body.insert("end", end.json(zone.as_deref(), true));
    Ok(())
}

/// Adds and removes attendees. All properties of the remaining attendees are kept.
fn invited(mut attendees: Vec<Value>, add: &[String], remove: &[String]) -> Value {
    attendees.retain(|attendee| !remove.iter().any(|address| has_address(attendee, address)));
    for address in add {
        if !attendees
            .iter()
            .any(|attendee| has_address(attendee, address))
        {
            attendees.push(json!({ "email": address }));
        }
    }
    attendees.into()
}

fn has_address(attendee: &Value, address: &str) -> bool {
    attendee["email"]
        .as_str()
        .is_some_and(|email| email.eq_ignore_ascii_case(address))
}
