//! Linear, through its GraphQL API.

mod api;
mod comments;
mod events;
mod hooks;
mod issues;
mod names;
mod projects;
mod relations;
mod teams;

use toolkit_sdk::prelude::*;

toolkit! {
    slug: "linear",
    name: "Linear",
    description: "Works in Linear: finds, creates and changes issues, comments, follows projects and cycles, and knows teams and people.",
    categories: ["project-management", "developer-tools"],
    version: "20261121_00",
    logo: "logo.svg",
    auth: [
        oauth2(
            authorize_url: "https://linear.app/oauth/authorize",
            token_url: "https://api.linear.app/oauth/token",
            scopes: ["read"],
            scope_separator: ",",
        ),
        api_key(
            header: "authorization",
            value: "{api_key}",
            title: "Personal API key",
            help: "linear.app, Settings, Security & access, Personal API keys: it begins with lin_api_ and acts as you.",
        ),
        bearer_token(title: "Access token", help: "Of an application of your own at linear.app, Settings, API."),
    ],
    egress: ["POST api.linear.app/graphql"],
    import: api::API,
    tools: [
        issues::search_issues, issues::list_issues, issues::get_issue, issues::create_issue, issues::update_issue,
        issues::archive_issue, issues::unarchive_issue, issues::delete_issue,
        comments::list_comments, comments::create_comment, comments::update_comment,
        relations::relate_issues, relations::link_url,
        projects::list_projects, projects::get_project, projects::create_project, projects::update_project, projects::post_project_update,
        projects::get_document,
        teams::get_me, teams::list_teams, teams::get_team, teams::list_users, teams::list_labels, teams::list_cycles,
    ],
    triggers: [events::issue_created, events::issue_updated, events::event_received],
}

cases!();
