//! Requests and views of the usage statistics.

use std::collections::BTreeMap;

use serde::Deserialize;
use utoipa::ToSchema;

/// The only counted entity.
pub(crate) const COUNTED_ENTITY: &str = "tool_execution";
/// Unit of the quantity of the entity.
const QUANTITY_UNIT: &str = "execution";

/// Selection and order of the counted executions.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = UsageAsked)]
pub(crate) struct UsageRequest {
    /// Earliest start time, in milliseconds since 1970.
    pub from: Option<f64>,
    /// Latest start time, in milliseconds since 1970.
    pub to: Option<f64>,
    pub entity_types: Option<Vec<String>>,
    /// `tool_slug`, `toolkit_slug`, `user_id`, `status` or `project_id`; `tool_slug` without it.
    pub group_by: Option<String>,
    pub order_by: Option<OrderBy>,
    pub order_direction: Option<Direction>,
    /// Maximum number of groups, 100 without it. More than 1000 means 1000.
    pub limit: Option<f64>,
    pub filters: Option<Filters>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = UsageFilters)]
pub(crate) struct Filters {
    pub user_id: Option<Vec<String>>,
    pub session_id: Option<Vec<String>>,
    pub project_id: Option<Vec<String>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = UsageOrder)]
pub(crate) enum OrderBy {
    Key,
    TotalQuantity,
    EventCount,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = UsageDirection)]
pub(crate) enum Direction {
    Asc,
    Desc,
}

view! {
    /// Usage totals by counted entity.
    #[schema(as = UsageSummary)]
    pub(crate) struct SummaryView from (executions: Option<u64>) where {
        let entities = executions.map(|count| (COUNTED_ENTITY, UsageSum::from(count)));
    } {
        #[schema(value_type = BTreeMap<String, UsageSum>)]
        entities: BTreeMap<&'static str, UsageSum> = entities.into_iter().collect(),
        /// Charge for the usage, always `0`: the server charges nothing.
        instant_charge: &'static str = "0",
    }
}

view! {
    struct UsageSum from count: u64 {
        unit: &'static str = QUANTITY_UNIT,
        /// A number, as text.
        total_quantity: String = count.to_string(),
        event_count: u64 = count,
    }
}

view! {
    /// Usage of one counted entity in groups.
    #[schema(as = UsageGroups)]
    pub(crate) struct GroupsView from (
        groups: impl Iterator<Item = (String, u64)>,
        total: u64,
    ) {
        entity_type: &'static str = COUNTED_ENTITY,
        unit: &'static str = QUANTITY_UNIT,
        /// A number, as text. It includes groups beyond the limit.
        total_quantity: String = total.to_string(),
        event_count: u64 = total,
        groups: Vec<GroupView> = groups.map(Into::into).collect(),
    }
}

view! {
    #[schema(as = UsageGroup)]
    struct GroupView from group: (String, u64) {
        key: String = group.0,
        /// A number, as text.
        total_quantity: String = group.1.to_string(),
        event_count: u64 = group.1,
    }
}
