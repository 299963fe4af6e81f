//! Queries of the log: filtered lists, and one execution by its id.
//!
//! A page lists the tools, users and other values of its executions. An equality condition
//! therefore finds pages by index, and this module selects the matching executions on them.

use store::{Query, Record};

use super::page::{Detail, Details, ExecutionRecord, MAX_PAGE_SPAN_MS, Page, SLOW_RUN_MS};
use crate::{
    App, Result,
    core::{
        ids::{AccountId, AuthConfigId, LogId, SessionId},
        vault::SealContext,
    },
    projects::Project,
    runs::errors,
};

/// Number of pages that are read in one query.
pub(super) const PAGES_PER_QUERY: u64 = 64;
/// Maximum duration of an execution, in milliseconds, including the waits for its slot and for its
/// record.
const MAX_RUN_MS: i64 = 600_000;

/// A field of the log that conditions can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// The slug of the tool.
    Tool,
    /// The slug of the toolkit.
    Toolkit,
    /// The connected account.
    Account,
    /// The auth config.
    AuthConfig,
    /// The status: `success` or `failed`.
    Status,
    /// The user.
    User,
    /// The tool router session.
    Session,
    /// The id of the request.
    Request,
    /// The id of the log record.
    Id,
    /// A field that no execution has yet. No value equals it.
    Absent,
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// Equal.
    Is,
    /// Not equal.
    IsNot,
    /// Contains the text.
    Contains,
    /// Does not contain the text.
    ContainsNot,
}

/// A condition on one field.
#[derive(Debug, Clone)]
pub struct Condition {
    /// The field.
    pub field: Field,
    /// The operator.
    pub operator: Operator,
    /// The value to compare with.
    pub value: String,
    /// True if upper and lower case are equal.
    pub ignore_case: bool,
}

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

/// A filter for executions.
#[derive(Debug, Default)]
pub struct Filter {
    /// The conditions, all of which must hold.
    pub conditions: Vec<Condition>,
    /// The earliest start time, inclusive, in epoch milliseconds.
    pub from: Option<i64>,
    /// The latest start time, inclusive, in epoch milliseconds.
    pub to: Option<i64>,
}

impl Field {
    /// Returns the list of a page that holds the field's values, or `None` if pages do not list
    /// them.
    fn list(self) -> Option<&'static str> {
        match self {
            Self::Tool => Some("tools"),
            Self::Toolkit => Some("toolkits"),
            Self::Account => Some("accounts"),
            Self::AuthConfig => Some("auth_configs"),
            Self::Status => Some("statuses"),
            Self::User => Some("users"),
            Self::Session => Some("sessions"),
            Self::Request | Self::Id | Self::Absent => None,
        }
    }

    fn value(self, run: &ExecutionRecord) -> Option<&str> {
        match self {
            Self::Tool => Some(&run.tool),
            Self::Toolkit => Some(&run.toolkit),
            Self::Account => run.account.as_ref().map(AccountId::as_str),
            Self::AuthConfig => run.auth_config.as_ref().map(AuthConfigId::as_str),
            Self::Status => Some(run.status.into_str()),
            Self::User => Some(&run.user),
            Self::Session => run.session.as_ref().map(SessionId::as_str),
            Self::Request => Some(&run.request),
            Self::Id => Some(run.id.as_str()),
            Self::Absent => None,
        }
    }
}

impl Condition {
    fn holds(&self, run: &ExecutionRecord) -> bool {
        let value = self.field.value(run);
        if self.ignore_case {
            let (value, wanted) = (value.map(str::to_lowercase), self.value.to_lowercase());
            return self.operator.holds(value.as_deref(), &wanted);
        }
        self.operator.holds(value, &self.value)
    }
}

impl Operator {
    fn holds(self, value: Option<&str>, wanted: &str) -> bool {
        match self {
            Self::Is => value == Some(wanted),
            Self::IsNot => value != Some(wanted),
            Self::Contains => value.is_some_and(|value| value.contains(wanted)),
            Self::ContainsNot => !value.is_some_and(|value| value.contains(wanted)),
        }
    }
}

impl Filter {
    pub(super) fn holds(&self, run: &ExecutionRecord) -> bool {
        self.from.is_none_or(|from| run.started_at.0 >= from)
            && self.to.is_none_or(|to| run.started_at.0 <= to)
            && self.conditions.iter().all(|condition| condition.holds(run))
    }

    /// Returns a query for all pages that may have matching executions.
    pub(super) fn query(&self, project: &Project) -> Query {
        let mut query = Query::for_project(project.id.as_str()).descending();
        for Condition {
            field,
            operator,
            value,
            ..
        } in self
            .conditions
            .iter()
            .filter(|condition| !condition.ignore_case)
        {
            query = match (field.list(), operator) {
                (Some(list), Operator::Is) => query.is(list, value.as_str()),
                (Some(list), Operator::Contains) => query.contains(list, value),
                _ => query,
            };
        }
        if let Some(from) = self.from {
            query = query.at_least("created_at", from.saturating_sub(MAX_PAGE_SPAN_MS));
        }
        if let Some(to) = self.to {
            query = query.below("created_at", to.saturating_add(MAX_RUN_MS));
        }
        query
    }

    /// Returns the id of an execution, if the filter asks for a single one.
    fn single_id(&self) -> Option<&str> {
        let is_single_id = |condition: &&Condition| {
            condition.field == Field::Id
                && condition.operator == Operator::Is
                && !condition.ignore_case
        };
        self.conditions
            .iter()
            .find(is_single_id)
            .map(|condition| condition.value.as_str())
    }
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
        let pages = app
            .store
            .find::<Page>(&query.page(pages_at_reached_time, PAGES_PER_QUERY))
            .await?
            .records;
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

/// Returns an execution with its details, if they were kept.
///
/// # Errors
/// Returns an error if the execution does not exist, or its details do not open.
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
            let pages = app
                .store
                .find::<Page>(&query.clone().page(part * PAGES_PER_QUERY, PAGES_PER_QUERY))
                .await?
                .records;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Time, accounts::Source, core::ids::Sequence, runs::log::page::Status};

    fn run(tool: &str, started_at: i64) -> ExecutionRecord {
        ExecutionRecord {
            id: Sequence::new().log(Time(started_at)),
            tool: tool.into(),
            toolkit: "t".into(),
            version: "20260101_00".into(),
            status: Status::Success,
            user: "default".into(),
            account: None,
            auth_config: None,
            source: Source::NoAuth,
            session: None,
            request: "req_1".into(),
            trace: None,
            started_at: Time(started_at),
            ended_at: Time(started_at + 5),
            cpu_us: 1,
            wall_us: 1,
            memory: 1,
            host_calls: 0,
            requests: 0,
            tokens: None,
            failure: None,
        }
    }

    fn holds(field: Field, operator: Operator, value: &str) -> bool {
        Condition {
            field,
            operator,
            value: value.into(),
            ignore_case: false,
        }
        .holds(&run("T_RUN", 7))
    }

    #[test]
    fn conditions_mean_what_they_say() {
        assert!(holds(Field::Tool, Operator::Is, "T_RUN"));
        assert!(!holds(Field::Tool, Operator::Is, "T"));
        assert!(holds(Field::Tool, Operator::Contains, "RU"));
        assert!(holds(Field::User, Operator::ContainsNot, "x"));
    }

    #[test]
    fn a_folded_condition_does_not_tell_cases_apart() {
        let condition = |operator, value: &str| Condition {
            field: Field::Tool,
            operator,
            value: value.into(),
            ignore_case: true,
        };
        assert!(condition(Operator::Is, "t_run").holds(&run("T_RUN", 7)));
        assert!(!condition(Operator::ContainsNot, "Run").holds(&run("T_RUN", 7)));
    }

    #[test]
    fn what_a_run_does_not_have_equals_nothing() {
        for field in [Field::Account, Field::Absent] {
            assert!(!holds(field, Operator::Is, ""));
            assert!(!holds(field, Operator::Contains, ""));
            assert!(holds(field, Operator::IsNot, "a"));
            assert!(holds(field, Operator::ContainsNot, "a"));
        }
    }

    #[test]
    fn a_time_range_has_both_its_ends() {
        let filter = |from, to| {
            Filter {
                from,
                to,
                ..Filter::default()
            }
            .holds(&run("T", 7))
        };
        assert!(filter(Some(7), Some(7)) && filter(None, None));
        assert!(!filter(Some(8), None) && !filter(None, Some(6)));
    }
}
