//! The search in the execution log and the records that it finds, in the format of older clients.

use app::{core::ids::AccountId, runs::log::ExecutionRecord};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::logs::{CredentialSource, Status};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SearchActionLogs)]
pub(crate) struct Search {
    /// Number of executions to skip.
    pub cursor: Option<f64>,
    pub limit: Option<f64>,
    pub case_sensitive: Option<bool>,
    /// Earliest start time, in milliseconds since 1970.
    pub from: Option<f64>,
    /// Latest start time, in milliseconds since 1970.
    pub to: Option<f64>,
    pub search_params: Option<Vec<ConditionBody>>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ActionLogCondition)]
pub(crate) struct ConditionBody {
    pub field: Option<String>,
    /// `==`, `!=`, `contains` or `not_contains`; `contains` without it.
    pub operation: Option<String>,
    pub value: Option<String>,
}

/// The fields that can be searched.
#[derive(Serialize, ToSchema)]
#[schema(as = ActionLogFields)]
pub(crate) struct FieldsView {
    pub fields: SearchableFields,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct SearchableFields {
    pub action_execution: Vec<SearchableField>,
}

view! {
    #[serde(rename_all = "camelCase")]
    pub(crate) struct SearchableField from (id: &'static str, display_name: &'static str) {
        id: &'static str = id,
        display_name: &'static str = display_name,
        r#type: &'static str = "string",
    }
}

/// A page of executions, in the format of older clients.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ActionLogs)]
pub(crate) struct ListView {
    pub data: Vec<ItemView>,
    /// Number of executions to skip for the next page; null on the last one.
    #[schema(required)]
    pub next_cursor: Option<u64>,
}

view! {
    #[serde(rename_all = "camelCase")]
    #[schema(as = ActionLogItem)]
    pub(crate) struct ItemView from (toolkit: AppView, record: ExecutionRecord) {
        id: String = record.id.to_string(),
        action_key: String = record.tool,
        app_key: String = record.toolkit,
        app: AppView = toolkit,
        /// Empty if no account was used.
        connected_account_id: String = account_id(record.account),
        entity_id: String = record.user,
        status: Status = record.status.into(),
        /// Duration in milliseconds.
        execution_time: u64 = record.wall_us / 1_000,
        /// Kind of the failure; empty if the execution succeeded.
        minimal_response: String = record.failure.unwrap_or_default(),
        /// Time in milliseconds since 1970.
        created_at: i64 = record.started_at.0,
        credential_source: CredentialSource = record.source.into(),
    }
}

/// Name and logo of a toolkit.
#[derive(Serialize, ToSchema)]
#[schema(as = ActionLogApp)]
pub(crate) struct AppView {
    pub icon: String,
    pub name: String,
}

/// Returns the id of the account, or an empty text if no account was used.
pub(super) fn account_id(account: Option<AccountId>) -> String {
    account.map_or_else(String::new, |id| id.to_string())
}
