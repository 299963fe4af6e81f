//! Actions of trigger instances, and their runs.

use app::{
    Result,
    catalog::LATEST,
    core::{
        clock::iso,
        ids::{AccountId, TriggerInstanceId},
    },
    events::{
        message_id,
        triggers::actions::{self, ActionRequest, ActionRunView, RunStatus},
    },
};
use http::{ApiResult, IN_TABLE, Json, Listed, Page, Path, ProjectKey, Query, members::present};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

/// A tool or a recipe that runs for every event of a trigger instance.
// An unknown field is refused, because it could be meant as a condition.
#[derive(Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TriggerAction)]
pub(crate) struct Action {
    /// Slug of a tool, or of a recipe of the user.
    tool_slug: String,
    /// Version of the tool; `latest` without it.
    version: Option<String>,
    /// The account with which the tool runs. If it and `user_id` are null, that of the trigger
    /// instance if the tool belongs to the same toolkit, or else the newest active account of the
    /// user. Without this property, that of the replaced action, if both tools belong to one
    /// toolkit.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    connected_account_id: Option<Option<String>>,
    /// The user for whom the tool runs; if null, that of the trigger instance. Without this
    /// property, that of the replaced action.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    user_id: Option<Option<String>>,
    /// Arguments of the tool. `{{event.data.name}}` is replaced by a value of the event, in the
    /// third version of messages.
    #[serde(default)]
    arguments: Map<String, Value>,
    /// True if the events of the instance are not sent to webhook subscriptions.
    #[serde(default)]
    instead_of_webhook: bool,
}

impl Action {
    /// Returns the action as the app knows it.
    pub(super) fn into_app(self) -> Result<ActionRequest> {
        let account = self
            .connected_account_id
            .as_ref()
            .and_then(Option::as_deref);
        Ok(ActionRequest {
            keeps_user: self.user_id.is_none(),
            keeps_account: self.connected_account_id.is_none(),
            action: actions::Action {
                tool: self.tool_slug,
                version: self.version.unwrap_or_else(|| LATEST.to_owned()),
                account: account.map(AccountId::parse).transpose()?,
                user_id: self.user_id.flatten(),
                arguments: self.arguments,
                replaces_webhook: self.instead_of_webhook,
            },
        })
    }
}

impl From<actions::Action> for Action {
    fn from(action: actions::Action) -> Self {
        Self {
            tool_slug: action.tool,
            version: Some(action.version),
            connected_account_id: Some(action.account.map(|id| id.to_string())),
            user_id: Some(action.user_id),
            arguments: action.arguments,
            instead_of_webhook: action.replaces_webhook,
        }
    }
}

/// Filter of the list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Of this status.
    #[serde(default, deserialize_with = "present")]
    #[param(inline)]
    status: Option<Status>,
}

mirror! {
    /// Status of the run of an action: `pending` while an attempt is due, `failed` when no attempt
    /// follows.
    #[serde(rename_all = "snake_case")]
    #[schema(as = TriggerActionStatus)]
    enum Status of RunStatus {
        Pending,
        Succeeded,
        Failed,
    }
}

view! {
    /// The run of an action for one event.
    #[schema(as = TriggerActionRun)]
    pub(crate) struct View from view: ActionRunView where {
        let next_attempt_at = view.record.body.next_attempt_at();
        let run = view.record.body;
    } {
        /// Id of the event, as in its messages.
        message_id: String = message_id(&view.record.id),
        status: Status = run.status.into(),
        attempt_count: u32 = run.attempt_count,
        #[schema(format = DateTime)] next_attempt_at!: Option<String> = next_attempt_at.map(iso),
        /// Log of the last attempt.
        log_id!: Option<String> = run.log_id.map(|id| id.to_string()),
        /// Error of the last attempt, or the reason why there was no attempt.
        error!: Option<String> = view.error,
        #[schema(format = DateTime)] created_at: String = iso(view.record.created_at),
        #[schema(format = DateTime)] updated_at: String = iso(view.record.updated_at),
    }
}

/// Lists the runs of the action of an instance, newest first.
#[utoipa::path(get, path = IN_TABLE, operation_id = "list_actions", responses(
    (status = 410, description = "The instance is deleted"),
))]
pub(crate) async fn list(
    key: ProjectKey,
    Path(id): Path<TriggerInstanceId>,
    Query(query): Query<ListQuery>,
    page: Page,
) -> ApiResult<Json<Listed<View>>> {
    let status = query.status.map(Into::into);
    let window = page.window(false)?;
    let found = actions::list(key.app(), &key.project, &id, status, window).await?;
    Ok(Json(Listed::after(found, &page)))
}
