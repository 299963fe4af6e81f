//! Resend, a provider that sends email.

mod api;
mod contacts;
mod domains;
mod emails;
mod outgoing;

use toolkit_sdk::prelude::*;

toolkit! {
    slug: "resend",
    name: "Resend",
    description: "Sends email with Resend, one or many, now or later, and manages sending domains and contacts.",
    categories: ["email", "marketing"],
    version: "20261121_00",
    logo: "logo.svg",
    // No `verify`: a key with sending access only is refused by every request without side effects.
    auth: [api_key(
        header: "authorization",
        value: "Bearer {api_key}",
        help: "resend.com, API Keys; it begins with re_. \"Sending access\" is enough for the tools that send.",
    )],
    egress: ["api.resend.com"],
    tools: [
        emails::send_email,
        emails::send_email_batch,
        emails::get_email,
        emails::list_emails,
        emails::reschedule_email,
        emails::cancel_email,
        domains::list_domains,
        domains::get_domain,
        domains::create_domain,
        domains::verify_domain,
        contacts::create_contact,
        contacts::get_contact,
        contacts::list_contacts,
        contacts::update_contact,
        contacts::list_segments,
    ],
}

cases!();
