//! Queries of the log: filtered lists, and one execution by its id, with its cassette.
//!
//! A page lists the tools, users and other values of its executions. An equality condition
//! therefore finds pages by index, and this module selects the matching executions on them.

use sandbox::cassette::Cassette;
use store::{Query, Record};

use super::{
    cassette::StoredCassette,
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
    /// The execution after which the part starts, or `None` for the start of the list.
    pub after: Option<LogId>,
    /// The number of executions to skip.
    pub skip: u64,
    /// Maximum number of executions.
    pub limit: u64,
}

/// Returns executions, the last to end first, and true if more follow. A part that starts after an
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
        filter,
        skip: part.skip,
        limit: part.limit,
        runs: Vec::new(),
    };
    let more = match (filter.single_id(), &part.after) {
        // The list contains nothing else.
        (Some(_), Some(_)) => false,
        (Some(id), None) => collected.fill_by_id(app, project, id).await?,
        (None, after) => collected.fill_by_time(app, project, after.as_ref()).await?,
    };
    Ok((collected.runs, more))
}

/// The executions collected for a part.
struct Collector<'a> {
    filter: &'a Filter,
    skip: u64,
    limit: u64,
    runs: Vec<ExecutionRecord>,
}

impl Collector<'_> {
    /// Collects a single execution. Returns true if there are more than the part may have.
    async fn fill_by_id(&mut self, app: &App, project: &Project, id: &str) -> Result<bool> {
        let Ok(id) = LogId::parse(id) else {
            return Ok(false);
        };
        let found = locate(app, project, &id).await?;
        let run = found.map(|(mut page, index)| page.body.runs.swap_remove(index));
        Ok(self.fill(run.into_iter()))
    }

    /// Collects executions, the last to end first, that follow another one. Returns true if there
    /// are more than the part may have.
    async fn fill_by_time(
        &mut self,
        app: &App,
        project: &Project,
        after: Option<&LogId>,
    ) -> Result<bool> {
        let mut reached = None;
        if let Some(id) = after {
            // The oldest executions are erased first, so all later items of the list are gone as
            // well.
            let Some((mut page, index)) = locate(app, project, id).await? else {
                return Ok(false);
            };
            if self.fill(page.body.runs.drain(..index).rev()) {
                return Ok(true);
            }
            reached = Some((page.created_at, page.id));
        }
        // The number of pages with the creation time reached so far that were already read.
        let mut pages_at_reached_time = 0;
        loop {
            let mut query = self.filter.query(project);
            if let Some((at, _)) = &reached {
                query = query.below("created_at", at.0 + 1);
            }
            let (pages, is_last) = read_pages(app, query, pages_at_reached_time).await?;
            for page in pages {
                let position = (page.created_at, page.id);
                pages_at_reached_time = match &reached {
                    Some((at, _)) if *at == position.0 => pages_at_reached_time + 1,
                    _ => 1,
                };
                if reached.as_ref().is_some_and(|reached| position >= *reached) {
                    continue;
                }
                if self.fill(page.body.runs.into_iter().rev()) {
                    return Ok(true);
                }
                reached = Some(position);
            }
            if is_last {
                return Ok(false);
            }
        }
    }

    /// Collects the executions that the filter selects. Returns true if there are more than the
    /// part may have.
    fn fill(&mut self, runs: impl Iterator<Item = ExecutionRecord>) -> bool {
        let filter = self.filter;
        for run in runs.filter(|run| filter.holds(run)) {
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

/// Reads pages from an offset. Also returns true if they are the last.
pub(super) async fn read_pages(
    app: &App,
    query: Query,
    offset: u64,
) -> Result<(Vec<Record<Page>>, bool)> {
    let query = query.page(offset, PAGES_PER_QUERY);
    let pages = app.store.find::<Page>(&query).await?.records;
    let is_last = (pages.len() as u64) < PAGES_PER_QUERY;
    Ok((pages, is_last))
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
    let details = app.store.get::<Details>(&page.project, &page.id).await?;
    let Some(details) = details else {
        return Ok((run, None));
    };
    let (context, now) = (SealContext::of(&details, "sealed"), app.clock.now());
    let sealed = &details.body.sealed;
    let details_of_page = app.vault.unseal(context, sealed, now).await?;
    Ok((run, details_of_page.into_iter().nth(index).flatten()))
}

/// Returns the cassette of an execution. Fails if the execution or its cassette does not exist.
pub async fn cassette(app: &App, project: &Project, id: &LogId) -> Result<Cassette> {
    let (run, _) = get(app, project, id).await?;
    let project = project.id.as_str();
    let id_text = run.id.as_str();
    let stored = app.store.get::<StoredCassette>(project, id_text).await?;
    let stored = stored.ok_or_else(|| errors::no_cassette(id))?;
    let (context, now) = (SealContext::of(&stored, "sealed"), app.clock.now());
    app.vault.unseal(context, &stored.body.sealed, now).await
}

/// Returns the page of an execution and its position on the page.
async fn locate(app: &App, project: &Project, id: &LogId) -> Result<Option<(Record<Page>, usize)>> {
    let Some(started_at) = id.time() else {
        return Ok(None);
    };
    let all = Query::for_project(project.id.as_str());
    let near = all.clone().at_least("created_at", started_at.0).below(
        "created_at",
        started_at.0 + SLOW_RUN_MS + 2 * MAX_PAGE_SPAN_MS,
    );
    for query in [near, all.is("slow", id.as_str())] {
        for part in 0.. {
            let offset = part * PAGES_PER_QUERY;
            let (pages, is_last) = read_pages(app, query.clone(), offset).await?;
            for page in pages {
                if let Ok(index) = page.body.runs.binary_search_by(|run| run.id.cmp(id)) {
                    return Ok(Some((page, index)));
                }
            }
            if is_last {
                break;
            }
        }
    }
    Ok(None)
}
