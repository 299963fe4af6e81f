//! Filters of executions: what a list of the log selects.

use store::Query;

use super::page::{ExecutionRecord, MAX_PAGE_SPAN_MS};
use crate::{
    core::ids::{AccountId, AuthConfigId, SessionId},
    projects::Project,
};

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

    /// Returns true if the field of an execution has one of the values.
    pub(super) fn is_one_of(self, run: &ExecutionRecord, values: &[String]) -> bool {
        self.value(run)
            .is_some_and(|value| values.iter().any(|one| one == value))
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
        for condition in self.conditions.iter().filter(|own| !own.ignore_case) {
            let value = condition.value.as_str();
            query = match (condition.field.list(), condition.operator) {
                (Some(list), Operator::Is) => query.is(list, value),
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
    pub(super) fn single_id(&self) -> Option<&str> {
        let single = self.conditions.iter().find(|condition| {
            condition.field == Field::Id
                && condition.operator == Operator::Is
                && !condition.ignore_case
        });
        single.map(|condition| condition.value.as_str())
    }
}

#[cfg(test)]
mod tests;
