//! Gmail, through its REST API. The tools for labels, filters and trash are imported from Google's
//! description (`import.json`, `overlay.toml`). The tools for mail itself are written here, since
//! Google exchanges mail as MIME in base64.

mod attachments;
mod drafts;
mod labels;
mod mail;
mod message;
mod messages;
mod mime;
mod send;
mod text;
mod threads;
mod triggers;
mod vacation;

use toolkit_sdk::prelude::*;

const API: Client = Client::new("https://gmail.googleapis.com/gmail/v1/users/me");

toolkit! {
    slug: "gmail",
    name: "Gmail",
    description: "Works on a Gmail mailbox: finds and reads mail, sends, answers and forwards it, with drafts, attachments, labels and filters.",
    categories: ["email", "communication", "productivity"],
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
            help: "An OAuth 2.0 access token of Google with the scopes https://www.googleapis.com/auth/gmail.modify and \
                https://www.googleapis.com/auth/gmail.settings.basic. It lasts an hour.",
            verify: "https://gmail.googleapis.com/gmail/v1/users/me/profile",
        ),
    ],
    egress: ["gmail.googleapis.com/gmail/v1/users/me/", "POST,PUT gmail.googleapis.com/upload/gmail/v1/users/me/"],
    import: true,
    // A mail of 25 MB takes long to send.
    limits: { wall_ms: 120_000 },
    tools: [
        messages::search_emails, messages::get_email, attachments::get_attachment,
        threads::search_threads, threads::get_thread,
        send::send_email, send::reply_to_email, send::forward_email,
        drafts::list_drafts, drafts::get_draft, drafts::create_draft, drafts::update_draft, drafts::send_draft,
        labels::change_labels, labels::change_thread_labels, labels::rename_label,
        vacation::get_vacation_reply, vacation::set_vacation_reply,
    ],
    triggers: [triggers::new_email],
}

cases!();
