//! Google Calendar, through its REST API. Tools that need no changes are imported from Google's
//! description (`import.json`, `overlay.toml`). The tools for events, times and free time are
//! written here.

mod channels;
mod events;
mod free;
mod people;
mod sharing;
mod times;
mod triggers;

use toolkit_sdk::prelude::*;

const API: Client = Client::new("https://www.googleapis.com/calendar/v3");

toolkit! {
    slug: "googlecalendar",
    name: "Google Calendar",
    description: "Works on Google Calendar: reads, plans, changes and answers events, finds free time, and manages calendars and who sees them.",
    categories: ["calendar", "productivity", "scheduling"],
    version: "20261121_00",
    logo: "logo.svg",
    auth: [
        oauth2(
            authorize_url: "https://accounts.google.com/o/oauth2/v2/auth",
            token_url: "https://oauth2.googleapis.com/token",
            authorize_params: [param("access_type", "offline"), param("prompt", "consent")],
        ),
        bearer_token(
            title: "Access token",
            help: "An OAuth 2.0 access token of Google with the scope https://www.googleapis.com/auth/calendar. It lasts an hour.",
        ),
    ],
    egress: ["www.googleapis.com/calendar/v3/"],
    import: true,
    tools: [
        events::list_events, events::get_event, events::list_event_instances, events::create_event, events::update_event,
        people::respond_to_event,
        free::get_free_busy, free::find_free_time,
        sharing::share_calendar,
    ],
    triggers: [
        triggers::event_created, triggers::event_changed, triggers::event_starting, channels::calendar_changed,
    ],
}

cases!();
