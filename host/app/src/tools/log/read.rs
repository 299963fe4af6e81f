//! Reading the log: lists by condition, and one run by its id.
//!
//! A page says which tools, users and so on its runs have, so a condition that equals finds pages by index; which runs of
//! them are meant is decided here.

use store::{Query, Record};

use super::page::{Detail, Details, Executed, Page, SLOW, SPAN, place};
use crate::{
    App, Error, Result,
    ids::{AccountId, AuthConfigId, LogId},
    projects::Project,
};

/// Pages read at once.
const PAGES: u64 = 64;
/// Milliseconds a run may take at most, with the wait for its place and for its record.
const LONGEST: i64 = 600_000;

/// A field of the log that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Slug of the tool.
    Tool,
    /// Slug of the toolkit.
    Toolkit,
    /// The account.
    Account,
    /// The auth config.
    AuthConfig,
    /// `success` or `failed`.
    Status,
    /// The user.
    User,
    /// The request.
    Request,
    /// The run itself.
    Id,
    /// Something no run has yet: nothing equals it.
    Absent,
}

/// How a field is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// Equal.
    Is,
    /// Not equal.
    IsNot,
    /// Has the text as a part.
    Contains,
    /// Does not.
    ContainsNot,
}

/// One condition.
#[derive(Debug, Clone)]
pub struct Condition {
    /// Field.
    pub field: Field,
    /// Operator.
    pub operator: Operator,
    /// Value.
    pub value: String,
}

/// Which runs.
#[derive(Debug, Default)]
pub struct Filter {
    /// All of these.
    pub conditions: Vec<Condition>,
    /// Begun at this millisecond or later.
    pub from: Option<i64>,
    /// Begun at this millisecond or before.
    pub to: Option<i64>,
}

impl Field {
    /// The list of a page that holds it.
    fn list(self) -> Option<&'static str> {
        match self {
            Self::Tool => Some("tools"),
            Self::Toolkit => Some("toolkits"),
            Self::Account => Some("accounts"),
            Self::AuthConfig => Some("auth_configs"),
            Self::Status => Some("statuses"),
            Self::User => Some("users"),
            Self::Request | Self::Id | Self::Absent => None,
        }
    }

    fn of(self, run: &Executed) -> Option<&str> {
        match self {
            Self::Tool => Some(&run.tool),
            Self::Toolkit => Some(&run.toolkit),
            Self::Account => run.account.as_ref().map(AccountId::as_str),
            Self::AuthConfig => run.auth_config.as_ref().map(AuthConfigId::as_str),
            Self::Status => Some(run.status.as_str()),
            Self::User => Some(&run.user),
            Self::Request => Some(&run.request),
            Self::Id => Some(run.id.as_str()),
            Self::Absent => None,
        }
    }
}

impl Condition {
    fn holds(&self, run: &Executed) -> bool {
        let value = self.field.of(run);
        match self.operator {
            Operator::Is => value == Some(&self.value),
            Operator::IsNot => value != Some(&self.value),
            Operator::Contains => value.is_some_and(|value| value.contains(&self.value)),
            Operator::ContainsNot => !value.is_some_and(|value| value.contains(&self.value)),
        }
    }
}

impl Filter {
    fn holds(&self, run: &Executed) -> bool {
        self.from.is_none_or(|from| run.started_at.0 >= from)
            && self.to.is_none_or(|to| run.started_at.0 <= to)
            && self.conditions.iter().all(|condition| condition.holds(run))
    }

    /// Finds every page that may have such a run.
    fn query(&self, project: &Project) -> Query {
        let mut query = Query::of(project.id.as_str()).newest();
        for Condition { field, operator, value } in &self.conditions {
            query = match (field.list(), operator) {
                (Some(list), Operator::Is) => query.is(list, value.as_str()),
                (Some(list), Operator::Contains) => query.contains(list, value),
                _ => query,
            };
        }
        if let Some(from) = self.from {
            query = query.at_least("created_at", from.saturating_sub(SPAN));
        }
        if let Some(to) = self.to {
            query = query.below("created_at", to.saturating_add(LONGEST));
        }
        query
    }

    /// The run that is asked for by its id.
    fn only(&self) -> Option<&str> {
        let only = |condition: &&Condition| condition.field == Field::Id && condition.operator == Operator::Is;
        self.conditions.iter().find(only).map(|condition| condition.value.as_str())
    }
}

/// Runs, the last that ended first: those after the first `offset`, at most `limit`, and whether there are more.
///
/// # Errors
/// When the store does not answer.
pub async fn list(
    app: &App,
    project: &Project,
    filter: &Filter,
    offset: u64,
    limit: u64,
) -> Result<(Vec<Executed>, bool)> {
    app.log.settle().await?;
    if let Some(id) = filter.only() {
        let found = match LogId::parse(id) {
            Ok(id) => locate(app, project, &id).await?,
            Err(_) => None,
        };
        let run = found.map(|(page, index)| page.body.runs[index].clone()).filter(|run| filter.holds(run));
        return Ok((run.filter(|_| offset == 0).into_iter().collect(), false));
    }
    let (mut skipped, mut found) = (0, Vec::new());
    for part in 0.. {
        let query = filter.query(project).page(part * PAGES, PAGES);
        let pages = app.store.find::<Page>(&query).await?.records;
        let last = (pages.len() as u64) < PAGES;
        let runs = pages.into_iter().flat_map(|page| page.body.runs.into_iter().rev());
        for run in runs.filter(|run| filter.holds(run)) {
            if skipped < offset {
                skipped += 1;
            } else if found.len() as u64 == limit {
                return Ok((found, true));
            } else {
                found.push(run);
            }
        }
        if last {
            break;
        }
    }
    Ok((found, false))
}

/// A run with what was said, as far as it was kept.
///
/// # Errors
/// When there is none, or it does not open.
pub async fn get(app: &App, project: &Project, id: &LogId) -> Result<(Executed, Option<Detail>)> {
    app.log.settle().await?;
    let found = locate(app, project, id).await?;
    let (mut page, index) = found.ok_or_else(|| Error::LogNotFound(id.to_string()))?;
    let run = page.body.runs.swap_remove(index);
    let details = app.store.get::<Details>(project.id.as_str(), &page.id).await?;
    let Some(details) = details else { return Ok((run, None)) };
    let key = app.vault.key(project.id.as_str(), app.clock.now()).await?;
    let mut said = key.open(place(project.id.as_str(), &page.id), &details.body.sealed)?;
    let detail = if index < said.len() { said.swap_remove(index) } else { None };
    Ok((run, detail))
}

/// The page of a run, and its place on it.
async fn locate(app: &App, project: &Project, id: &LogId) -> Result<Option<(Record<Page>, usize)>> {
    let Some(began) = id.time() else { return Ok(None) };
    let of = || Query::of(project.id.as_str());
    let near = of().at_least("created_at", began.0).below("created_at", began.0 + SLOW + 2 * SPAN);
    for query in [near, of().is("slow", id.as_str())] {
        for part in 0.. {
            let pages = app.store.find::<Page>(&query.clone().page(part * PAGES, PAGES)).await?.records;
            let last = (pages.len() as u64) < PAGES;
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
pub(super) mod tests {
    use super::*;
    use crate::{Time, connections::Source, ids::Sequence, tools::log::page::Status};

    pub(in crate::tools::log) fn run(tool: &str, began: i64) -> Executed {
        Executed {
            id: Sequence::new().log(Time(began)),
            tool: tool.into(),
            toolkit: "t".into(),
            version: "20260101_00".into(),
            status: Status::Success,
            user: "default".into(),
            account: None,
            auth_config: None,
            source: Source::NoAuth,
            request: "req_1".into(),
            started_at: Time(began),
            ended_at: Time(began + 5),
            cpu_us: 1,
            wall_us: 1,
            memory: 1,
            host_calls: 0,
            requests: 0,
            failure: None,
        }
    }

    fn holds(field: Field, operator: Operator, value: &str) -> bool {
        Condition { field, operator, value: value.into() }.holds(&run("T_RUN", 7))
    }

    #[test]
    fn conditions_mean_what_they_say() {
        assert!(holds(Field::Tool, Operator::Is, "T_RUN"));
        assert!(!holds(Field::Tool, Operator::Is, "T"));
        assert!(holds(Field::Tool, Operator::Contains, "RU"));
        assert!(holds(Field::User, Operator::ContainsNot, "x"));
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
        let filter = |from, to| Filter { from, to, ..Filter::default() }.holds(&run("T", 7));
        assert!(filter(Some(7), Some(7)) && filter(None, None));
        assert!(!filter(Some(8), None) && !filter(None, Some(6)));
    }
}
