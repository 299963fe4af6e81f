//! GitHub, through its REST API.

mod actions;
mod api;
mod branches;
mod changes;
mod checks;
mod comments;
mod commits;
mod contents;
mod gists;
mod hooks;
mod issues;
mod labels;
mod notifications;
mod pulls;
mod releases;
mod repositories;
mod reviews;
mod search;
mod triggers;
mod users;
mod webhooks;

use toolkit_sdk::prelude::*;

toolkit! {
    slug: "github",
    name: "GitHub",
    description: "Works on GitHub: issues, pull requests and reviews, files, branches, commits, releases, Actions, gists, \
        notifications and search.",
    categories: ["developer-tools", "version-control"],
    version: "20261121_00",
    logo: "logo.svg",
    auth: [
        oauth2(
            authorize_url: "https://github.com/login/oauth/authorize",
            token_url: "https://github.com/login/oauth/access_token",
            scopes: ["read:user"],
            token_answer: "form",
            verify: "https://api.github.com/user",
        ),
        bearer_token(
            title: "Personal access token",
            help: "github.com, Settings, Developer settings, Personal access tokens. Fine-grained: choose the repositories and what \
                may be done there. Classic: the scopes repo, gist and notifications cover most tools.",
            verify: "https://api.github.com/user",
        ),
    ],
    egress: ["api.github.com", "POST uploads.github.com"],
    tools: [
        issues::list_issues, issues::get_issue, issues::create_issue, issues::update_issue, issues::lock_issue, issues::unlock_issue,
        comments::list_issue_comments, comments::create_issue_comment, comments::update_issue_comment, comments::delete_issue_comment,
        labels::list_labels, labels::create_label, labels::delete_label, labels::add_issue_labels, labels::remove_issue_label,
        pulls::list_pull_requests, pulls::get_pull_request, pulls::get_pull_request_diff, pulls::list_pull_request_files,
        pulls::create_pull_request, pulls::update_pull_request, pulls::merge_pull_request,
        reviews::list_reviews, reviews::list_review_comments, reviews::create_review, reviews::reply_to_review_comment,
        reviews::request_reviewers,
        repositories::get_repository, repositories::list_my_repositories, repositories::list_user_repositories,
        repositories::list_organization_repositories, repositories::create_repository, repositories::fork_repository,
        contents::get_file, contents::get_readme, contents::list_directory, contents::list_tree,
        changes::put_file, changes::delete_file, changes::commit_files,
        branches::list_branches, branches::create_branch, branches::delete_branch, branches::list_tags,
        commits::list_commits, commits::get_commit, commits::compare_commits,
        releases::list_releases, releases::get_release, releases::create_release, releases::upload_release_asset,
        search::search_repositories, search::search_issues, search::search_code, search::search_users,
        actions::list_workflows, actions::list_workflow_runs, actions::get_workflow_run, actions::list_workflow_jobs,
        actions::dispatch_workflow, actions::rerun_workflow, actions::cancel_workflow_run,
        checks::list_check_runs, checks::list_check_annotations,
        gists::list_gists, gists::get_gist, gists::create_gist, gists::update_gist, gists::delete_gist,
        users::get_me, users::get_user,
        notifications::list_notifications, notifications::mark_notification_read, notifications::mark_all_notifications_read,
    ],
    triggers: [
        triggers::new_issue,
        webhooks::issue_changed, webhooks::pull_request_changed, webhooks::commits_pushed, webhooks::star_changed,
        webhooks::release_changed,
    ],
}

cases!();
