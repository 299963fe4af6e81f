//! The search in the execution log and the records that it finds, in the format of older clients.

use app::{core::ids::AccountId, runs::log::ExecutionRecord};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::logs::{CredentialSource, Status};

#[derive(Deserialize, ToSchema)]
#[schema(as = SearchActionLogs)]
pub(crate) struct Search {
    /// Number of executions to skip.
    #[serde(default)]
    pub cursor: Option<f64>,
    #[serde(default)]
    pub limit: Option<f64>,
    #[serde(default)]
    pub case_sensitive: Option<bool>,
    /// Earliest start time, in milliseconds since 1970.
    #[serde(default)]
    pub from: Option<f64>,
    /// Latest start time, in milliseconds since 1970.
    #[serde(default)]
    pub to: Option<f64>,
    #[serde(default)]
    pub search_params: Option<Vec<ConditionBody>>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = ActionLogCondition)]
pub(crate) struct ConditionBody {
    #[serde(default)]
    pub field: Option<String>,
    /// `==`, `!=`, `contains` or `not_contains`; `contains` without it.
    #[serde(default)]
    pub operation: Option<String>,
    #[serde(default)]
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

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SearchableField {
    id: &'static str,
    display_name: &'static str,
    r#type: &'static str,
}

impl SearchableField {
    /// Describes a field by its id and its display name.
    pub(crate) fn new(id: &'static str, display_name: &'static str) -> Self {
        Self {
            id,
            display_name,
            r#type: "string",
        }
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

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ActionLogItem)]
pub(crate) struct ItemView {
    id: String,
    action_key: String,
    app_key: String,
    app: AppView,
    /// Empty if no account was used.
    connected_account_id: String,
    entity_id: String,
    status: Status,
    /// Duration in milliseconds.
    execution_time: u64,
    /// Kind of the failure; empty if the execution succeeded.
    minimal_response: String,
    /// Time in milliseconds since 1970.
    created_at: i64,
    credential_source: CredentialSource,
}

impl ItemView {
    /// Builds the view of a record and of the toolkit that ran.
    pub(crate) fn new(record: ExecutionRecord, toolkit: AppView) -> Self {
        Self {
            id: record.id.to_string(),
            action_key: record.tool,
            app_key: record.toolkit,
            app: toolkit,
            connected_account_id: account_id(record.account),
            entity_id: record.user,
            status: record.status.into(),
            execution_time: record.wall_us / 1_000,
            minimal_response: record.failure.unwrap_or_default(),
            created_at: record.started_at.0,
            credential_source: record.source.into(),
        }
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
