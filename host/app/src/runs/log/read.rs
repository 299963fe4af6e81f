//! Queries of the log: filtered lists, and one execution by its id.
//!
//! A page lists the tools, users and other values of its executions. An equality condition
//! therefore finds pages by index, and this module selects the matching executions on them.

use store::{Query, Record};

use super::{
    filter::Filter,
    page::{Detail, Details, ExecutionRecord, MAX_PAGE_SPAN_MS, Page, SLOW_RUN_MS},
};
use crate::{
    App, Result,
    core::{ids::LogId, vault::SealContext},
    projects::Project,
    runs::errors,
};

/// Number of pages that are read in one query.
pub(super) const PAGES_PER_QUERY: u64 = 64;

/// A part of a list.
#[derive(Debug, Clone)]
pub struct ListPart {
    /// The execution after which the part begins, or `None` for the beginning of the list.
    pub after: Option<LogId>,
    /// The number of executions to skip.
    pub skip: u64,
    /// Maximum number of executions.
    pub limit: u64,
}

/// Returns executions, the last to end first, and true if more follow. A part that begins after an
/// execution of another part neither repeats nor skips executions that existed then, even if others
/// were added or erased in the meantime.
pub async fn list(
    app: &App,
    project: &Project,
    filter: &Filter,
    part: &ListPart,
) -> Result<(Vec<ExecutionRecord>, bool)> {
    app.log.wait_until_written().await?;
    let mut collected = Collector {
        skip: part.skip,
        limit: part.limit,
        runs: Vec::new(),
    };
    if let Some(id) = filter.single_id() {
        let found = match LogId::parse(id) {
            Ok(id) if part.after.is_none() => locate(app, project, &id).await?,
            _ => None,
        };
        let run = found
            .map(|(page, index)| page.body.runs[index].clone())
            .filter(|run| filter.holds(run));
        let more = collected.fill(run.into_iter());
        return Ok((collected.runs, more));
    }
    let mut reached = None;
    if let Some(id) = &part.after {
        // The oldest executions are erased first, so all later items of the list are gone as well.
        let Some((mut page, index)) = locate(app, project, id).await? else {
            return Ok((Vec::new(), false));
        };
        let rest = page
            .body
            .runs
            .drain(..index)
            .rev()
            .filter(|run| filter.holds(run));
        if collected.fill(rest) {
            return Ok((collected.runs, true));
        }
        reached = Some((page.created_at, page.id));
    }
    // The number of pages with the creation time reached so far that were already read.
    let mut pages_at_reached_time = 0;
    loop {
        let mut query = filter.query(project);
        if let Some((at, _)) = &reached {
            query = query.below("created_at", at.0 + 1);
        }
        let query = query.page(pages_at_reached_time, PAGES_PER_QUERY);
        let pages = app.store.find::<Page>(&query).await?.records;
        let last = (pages.len() as u64) < PAGES_PER_QUERY;
        for page in pages {
            let position = (page.created_at, page.id);
            pages_at_reached_time = if reached.as_ref().is_some_and(|(at, _)| *at == position.0) {
                pages_at_reached_time + 1
            } else {
                1
            };
            if reached.as_ref().is_some_and(|reached| position >= *reached) {
                continue;
            }
            if collected.fill(
                page.body
                    .runs
                    .into_iter()
                    .rev()
                    .filter(|run| filter.holds(run)),
            ) {
                return Ok((collected.runs, true));
            }
            reached = Some(position);
        }
        if last {
            return Ok((collected.runs, false));
        }
    }
}

/// The executions collected for a part.
struct Collector {
    skip: u64,
    limit: u64,
    runs: Vec<ExecutionRecord>,
}

impl Collector {
    /// Collects executions. Returns true if there are more than the part may have.
    fn fill(&mut self, runs: impl Iterator<Item = ExecutionRecord>) -> bool {
        for run in runs {
            if self.skip > 0 {
                self.skip -= 1;
            } else if self.runs.len() as u64 == self.limit {
                return true;
            } else {
                self.runs.push(run);
            }
        }
        false
    }
}

/// Returns an execution with its details, if they were kept. Fails if the execution does not exist,
/// or its details do not open.
pub async fn get(
    app: &App,
    project: &Project,
    id: &LogId,
) -> Result<(ExecutionRecord, Option<Detail>)> {
    app.log.wait_until_written().await?;
    let found = locate(app, project, id).await?;
    let (mut page, index) = found.ok_or_else(|| errors::log_not_found(id))?;
    let run = page.body.runs.swap_remove(index);
    let details = app
        .store
        .get::<Details>(project.id.as_str(), &page.id)
        .await?;
    let Some(details) = details else {
        return Ok((run, None));
    };
    let (context, now) = (SealContext::of(&details, "sealed"), app.clock.now());
    let sealed = &details.body.sealed;
    let mut details_of_page = app.vault.unseal(context, sealed, now).await?;
    let detail = if index < details_of_page.len() {
        details_of_page.swap_remove(index)
    } else {
        None
    };
    Ok((run, detail))
}

/// Returns the page of an execution and its position on the page.
async fn locate(app: &App, project: &Project, id: &LogId) -> Result<Option<(Record<Page>, usize)>> {
    let Some(started_at) = id.time() else {
        return Ok(None);
    };
    let of = || Query::for_project(project.id.as_str());
    let near = of().at_least("created_at", started_at.0).below(
        "created_at",
        started_at.0 + SLOW_RUN_MS + 2 * MAX_PAGE_SPAN_MS,
    );
    for query in [near, of().is("slow", id.as_str())] {
        for part in 0.. {
            let query = query.clone();
            let query = query.page(part * PAGES_PER_QUERY, PAGES_PER_QUERY);
            let pages = app.store.find::<Page>(&query).await?.records;
            let last = (pages.len() as u64) < PAGES_PER_QUERY;
            for page in pages {
                if let Ok(index) = page.body.runs.binary_search_by(|run| run.id.cmp(id)) {
                    return Ok(Some((page, index)));
                }
            }
            if last {
                break;
            }
        }
    }
    Ok(None)
}
