//! Slack, through its Web API and Events API.

mod api;
mod channels;
mod events;
mod files;
mod messages;
mod search;
mod time;
mod users;

use toolkit_sdk::prelude::*;

toolkit! {
    slug: "slack",
    name: "Slack",
    description: "Works in Slack: reads and sends messages and threads, finds channels and people, manages channels, reactions, pins \
        and files.",
    categories: ["communication"],
    version: "20261121_00",
    logo: "logo.svg",
    auth: [
        oauth2(
            authorize_url: "https://slack.com/oauth/v2/authorize",
            token_url: "https://slack.com/api/oauth.v2.access",
            scope_separator: ",",
            pkce: false,
            flow: r#"{
                "response": { "fallback_root": "authed_user" },
                "rejected_if": [{ "status": 200, "path": "error", "one_of": ["token_expired"] }]
            }"#,
        ),
        bearer_token(
            title: "Bot or user token",
            help: "api.slack.com/apps, your app, OAuth & Permissions: the token that begins with xoxb- (the app acts as itself) or \
                xoxp- (it acts as you). The same page lists the scopes that tools ask for.",
        ),
    ],
    egress: ["GET,POST slack.com/api/", "GET,POST files.slack.com"],
    import: api::API,
    tools: [
        messages::send_message, messages::update_message, messages::schedule_message, messages::read_channel, messages::read_thread,
        search::search_messages,
        channels::list_channels, channels::get_channel, channels::list_channel_members, channels::create_channel,
        channels::invite_to_channel, channels::open_conversation,
        users::get_me, users::list_users, users::get_user, users::find_user_by_email, users::set_status,
        files::list_files, files::upload_file, files::download_file,
    ],
    triggers: [events::message_posted, events::event_received, events::app_mentioned, events::reaction_added],
}

cases!();
