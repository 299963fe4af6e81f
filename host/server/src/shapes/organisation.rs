//! Shapes of usage.

use std::collections::BTreeMap;

use utoipa::ToSchema;

/// Usage totals by counted entity.
#[derive(ToSchema)]
pub(crate) struct UsageSummary {
    entities: BTreeMap<String, UsageSum>,
}

#[derive(ToSchema)]
struct UsageSum {
    unit: String,
    /// A number, as text.
    total_quantity: String,
    event_count: u64,
}

#[derive(ToSchema)]
pub(crate) struct UsageGroups {
    entity_type: String,
    unit: String,
    /// A number, as text.
    total_quantity: String,
    event_count: u64,
    groups: Vec<UsageGroup>,
}

#[derive(ToSchema)]
struct UsageGroup {
    key: String,
    /// A number, as text.
    total_quantity: String,
    event_count: u64,
}
