//! Polling triggers of the toolkit.

use toolkit_sdk::prelude::*;

use crate::api::Repo;
use crate::issues::Issue;

/// Max number of issues that one poll reads. More are not expected to be opened between two polls.
const MAX_ISSUES_PER_POLL: usize = 1000;
/// Max number of issues that one poll reports. The next poll follows immediately.
const MAX_EVENTS_PER_POLL: usize = 50;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Config {
    #[serde(flatten)]
    repo: Repo,
    /// Only issues that have all of these labels when they are first seen.
    #[serde(default)]
    labels: Vec<String>,
    /// Only issues opened by the user with this login.
    creator: Option<String>,
}

/// Position of the last poll.
#[derive(Serialize, Deserialize)]
pub(crate) struct Cursor {
    /// Highest issue number seen. Numbers only grow.
    highest: u64,
}

/// Fires for each new issue of a repository, oldest first; not for pull requests. Can be limited to
/// labels or to an author.
#[trigger(poll, scopes("repo"))]
pub(crate) fn new_issue(config: Config, cursor: Option<Cursor>) -> Result<Polled<Issue, Cursor>> {
    let Some(Cursor { highest }) = cursor else {
        let newest = newest(&config, 1).next().transpose()?;
        return Ok(Polled::new(Cursor {
            highest: newest.map_or(0, |issue| issue.number),
        }));
    };
    let mut issues: Vec<Issue> = newest(&config, MAX_ISSUES_PER_POLL)
        .take_while(|issue| issue.as_ref().map_or(true, |issue| issue.number > highest))
        .collect::<Result<_>>()?;
    issues.reverse();
    let more = issues.len() > MAX_EVENTS_PER_POLL;
    issues.truncate(MAX_EVENTS_PER_POLL);
    let highest = issues.last().map_or(highest, |issue| issue.number);
    let opened = issues
        .into_iter()
        .filter(|issue| !issue.is_pull_request)
        .map(|issue| (issue.number, issue));
    Ok(Polled::new(Cursor { highest }).events(opened).more(more))
}

/// Returns the issues and pull requests in any state, newest first.
fn newest(config: &Config, most: usize) -> http::Items<Issue> {
    config
        .repo
        .get("/issues")
        .query("state", "all")
        .query_list("labels", &config.labels, ",")
        .query_opt("creator", config.creator.as_ref())
        .query("sort", "created")
        .query("direction", "desc")
        .items(Paging::link().size("per_page", 100), most)
}
