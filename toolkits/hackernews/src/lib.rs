//! Hacker News, read through its public API and its public search.

mod items;
mod search;
mod stories;
mod triggers;
mod users;

use toolkit_sdk::prelude::*;

toolkit! {
    slug: "hackernews",
    name: "Hacker News",
    description: "Reads and searches stories, comments and users of Hacker News. Needs no account.",
    categories: ["news", "developer-tools"],
    version: "20261121_00",
    logo: "logo.svg",
    egress: ["GET hacker-news.firebaseio.com/v0/", "GET hn.algolia.com/api/v1/"],
    tools: [
        stories::list_stories,
        items::get_item,
        items::list_comments,
        search::search_posts,
        users::get_user,
    ],
    triggers: [triggers::new_story],
}

cases!();
