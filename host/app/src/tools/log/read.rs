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
pub(super) const PAGES: u64 = 64;
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
    /// Whether upper and lower case are the same.
    pub folded: bool,
}

/// Which part of a list.
#[derive(Debug, Clone)]
pub struct Part {
    /// What comes after this run; from the beginning without one.
    pub after: Option<LogId>,
    /// Runs passed over there.
    pub skip: u64,
    /// Runs at most.
    pub limit: u64,
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
        if self.folded {
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
    pub(super) fn holds(&self, run: &Executed) -> bool {
        self.from.is_none_or(|from| run.started_at.0 >= from)
            && self.to.is_none_or(|to| run.started_at.0 <= to)
            && self.conditions.iter().all(|condition| condition.holds(run))
    }

    /// Finds every page that may have such a run.
    pub(super) fn query(&self, project: &Project) -> Query {
        let mut query = Query::of(project.id.as_str()).newest();
        for Condition { field, operator, value, .. } in self.conditions.iter().filter(|condition| !condition.folded) {
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
        let only = |condition: &&Condition| {
            condition.field == Field::Id && condition.operator == Operator::Is && !condition.folded
        };
        self.conditions.iter().find(only).map(|condition| condition.value.as_str())
    }
}

/// Runs, the last that ended first, and whether there are more. A part that begins after a run of another part neither repeats
/// nor passes over what was there then, whatever has run or gone meanwhile.
///
/// # Errors
/// When the store does not answer.
pub async fn list(app: &App, project: &Project, filter: &Filter, part: &Part) -> Result<(Vec<Executed>, bool)> {
    app.log.settle().await?;
    let mut taken = Taken { skip: part.skip, limit: part.limit, runs: Vec::new() };
    if let Some(id) = filter.only() {
        let found = match LogId::parse(id) {
            Ok(id) if part.after.is_none() => locate(app, project, &id).await?,
            _ => None,
        };
        let run = found.map(|(page, index)| page.body.runs[index].clone()).filter(|run| filter.holds(run));
        let more = taken.fill(run.into_iter());
        return Ok((taken.runs, more));
    }
    let mut reached = None;
    if let Some(id) = &part.after {
        // The oldest go first: what came after a run that is gone is gone, too.
        let Some((mut page, index)) = locate(app, project, id).await? else { return Ok((Vec::new(), false)) };
        let rest = page.body.runs.drain(..index).rev().filter(|run| filter.holds(run));
        if taken.fill(rest) {
            return Ok((taken.runs, true));
        }
        reached = Some((page.created_at, page.id));
    }
    // Pages of the millisecond reached that were read already.
    let mut ties = 0;
    loop {
        let mut query = filter.query(project);
        if let Some((at, _)) = &reached {
            query = query.below("created_at", at.0 + 1);
        }
        let pages = app.store.find::<Page>(&query.page(ties, PAGES)).await?.records;
        let last = (pages.len() as u64) < PAGES;
        for page in pages {
            let place = (page.created_at, page.id);
            ties = if reached.as_ref().is_some_and(|(at, _)| *at == place.0) { ties + 1 } else { 1 };
            if reached.as_ref().is_some_and(|reached| place >= *reached) {
                continue;
            }
            if taken.fill(page.body.runs.into_iter().rev().filter(|run| filter.holds(run))) {
                return Ok((taken.runs, true));
            }
            reached = Some(place);
        }
        if last {
            return Ok((taken.runs, false));
        }
    }
}

/// What a part has so far.
struct Taken {
    skip: u64,
    limit: u64,
    runs: Vec<Executed>,
}

impl Taken {
    /// Takes what is wanted of these; true when there is more than that.
    fn fill(&mut self, runs: impl Iterator<Item = Executed>) -> bool {
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
            tokens: None,
            failure: None,
        }
    }

    fn holds(field: Field, operator: Operator, value: &str) -> bool {
        Condition { field, operator, value: value.into(), folded: false }.holds(&run("T_RUN", 7))
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
        let folded =
            |operator, value: &str| Condition { field: Field::Tool, operator, value: value.into(), folded: true };
        assert!(folded(Operator::Is, "t_run").holds(&run("T_RUN", 7)));
        assert!(!folded(Operator::ContainsNot, "Run").holds(&run("T_RUN", 7)));
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
