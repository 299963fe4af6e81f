//! Notion, through its REST API, which supports Markdown.

mod api;
mod comments;
mod databases;
mod events;
mod pages;
mod properties;
mod text;

use toolkit_sdk::prelude::*;

toolkit! {
    slug: "notion",
    name: "Notion",
    description: "Works in Notion: finds, reads and writes pages in Markdown, queries and fills databases, and comments.",
    categories: ["documents", "productivity"],
    version: "20261121_00",
    logo: "logo.svg",
    auth: [
        oauth2(
            authorize_url: "https://api.notion.com/v1/oauth/authorize",
            token_url: "https://api.notion.com/v1/oauth/token",
            authorize_params: [param("owner", "user")],
            client_auth: "basic",
            pkce: false,
        ),
        bearer_token(
            title: "Integration token",
            help: "notion.so/profile/integrations, your integration, Configuration: the secret that begins with ntn_. It sees the pages \
                that are shared with the integration: on a page, the menu, Connections.",
        ),
    ],
    egress: ["GET,POST,PATCH,DELETE api.notion.com/v1/"],
    import: api::API,
    tools: [
        pages::search, pages::read_page, pages::create_page, pages::update_page, pages::edit_page, pages::append_to_page,
        pages::replace_page_content, pages::move_page, pages::trash_page, pages::restore_page,
        databases::get_database, databases::get_data_source, databases::query_data_source, databases::create_database,
        comments::list_comments, comments::create_comment,
    ],
    triggers: [events::page_edited, events::page_added, events::event_received],
}

cases!();
