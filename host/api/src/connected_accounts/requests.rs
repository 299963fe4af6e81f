//! Requests of connected accounts.

use app::{
    Time,
    accounts::{self, Filter, Status},
};
use http::members::present;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::{sharing::Share, status::AccountStatus};
use crate::{Direction, OrderBy};

/// Filters and order of the list.
#[derive(Default, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Of these toolkits.
    toolkit_slugs: Vec<String>,
    /// In one of these states.
    #[param(inline)]
    statuses: Vec<AccountStatus>,
    /// Of these users.
    user_ids: Vec<String>,
    /// Of these auth configs.
    auth_config_ids: Vec<String>,
    /// With these ids.
    connected_account_ids: Vec<String>,
    /// Time by which the list is ordered; `created_at` without it.
    #[param(inline)]
    order_by: Option<OrderBy>,
    /// `desc` without it.
    #[param(inline)]
    order_direction: Option<Direction>,
    /// `PRIVATE` without it.
    #[param(inline)]
    account_type: Option<AccountTypeFilter>,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
enum AccountTypeFilter {
    Private,
    Shared,
    All,
}

impl ListQuery {
    /// Returns the filter for accounts that were created until the given time.
    pub(crate) fn into_filter(self, until: Option<Time>) -> Filter {
        let slugs = self.toolkit_slugs.iter();
        Filter {
            toolkits: slugs.map(|slug| slug.to_ascii_lowercase()).collect(),
            statuses: self.statuses.into_iter().map(Status::from).collect(),
            users: self.user_ids,
            auth_configs: self.auth_config_ids,
            ids: self.connected_account_ids,
            account_type: match self.account_type {
                None | Some(AccountTypeFilter::Private) => Some(accounts::AccountType::Private),
                Some(AccountTypeFilter::Shared) => Some(accounts::AccountType::Shared),
                Some(AccountTypeFilter::All) => None,
            },
            by_change: self.order_by == Some(OrderBy::UpdatedAt),
            ascending: self.order_direction == Some(Direction::Asc),
            until,
        }
    }
}

/// Parameters of a new connection.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RefreshQuery {
    /// URL to which the user's browser is redirected at the end.
    pub redirect_url: Option<String>,
}

/// Parameters of a deletion.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RemoveQuery {
    /// The credential is revoked at the provider, too.
    #[serde(default, deserialize_with = "present")]
    pub revoke_on_delete: Option<bool>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = ConnectAccount)]
pub(crate) struct Create {
    pub auth_config: ConfigId,
    pub connection: Connection,
    pub validate_credentials: Option<bool>,
    /// Always refused: the sharing is a part of the connection.
    #[serde(
        default,
        alias = "account_type",
        alias = "acl_config_for_shared",
        deserialize_with = "refuse_sharing"
    )]
    #[schema(ignore)]
    #[expect(dead_code, reason = "refused while it is read")]
    experimental: Option<bool>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = AuthConfigId)]
pub(crate) struct ConfigId {
    pub id: String,
}

#[derive(Deserialize, ToSchema)]
pub(crate) struct Connection {
    pub state: Option<ConnectionState>,
    /// The older spelling of `state.val`.
    #[schema(value_type = Option<Object>)]
    pub data: Option<Map<String, Value>>,
    pub user_id: Option<String>,
    pub alias: Option<String>,
    /// URL to which the user's browser is redirected at the end.
    pub callback_url: Option<String>,
    /// The older spelling of `callback_url`.
    pub redirect_uri: Option<String>,
    pub experimental: Option<Share>,
}

#[derive(Default, Deserialize, ToSchema)]
pub(crate) struct ConnectionState {
    #[serde(rename = "authScheme")]
    pub auth_scheme: Option<String>,
    #[schema(value_type = Option<Object>)]
    pub val: Option<Map<String, Value>>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = LinkAccount)]
pub(crate) struct Link {
    pub auth_config_id: String,
    pub user_id: String,
    pub callback_url: Option<String>,
    /// Fields that are known already; the user is not asked for the secret ones of them.
    #[schema(value_type = Option<Object>)]
    pub connection_data: Option<Map<String, Value>>,
    pub alias: Option<String>,
    pub experimental: Option<Share>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = CompleteConnection)]
pub(crate) struct Complete {
    pub session_uri: String,
    pub user_id: String,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = RefreshAccount)]
pub(crate) struct Refresh {
    /// URL to which the user's browser is redirected at the end.
    pub redirect_url: Option<String>,
    /// Another spelling of `redirect_url`, by which clients tell it from the query parameter.
    pub body_redirect_url: Option<String>,
    pub validate_credentials: Option<bool>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = UpdateAccount)]
pub(crate) struct Update {
    /// An empty text clears it.
    pub alias: Option<String>,
    pub connection: Option<UpdatedConnection>,
    pub experimental: Option<Share>,
    /// Always refused: another operation pauses and resumes accounts.
    #[serde(
        default,
        alias = "status",
        alias = "is_disabled",
        alias = "disabled",
        deserialize_with = "refuse_status"
    )]
    #[schema(ignore)]
    #[expect(dead_code, reason = "refused while it is read")]
    enabled: Option<bool>,
}

refusals! {
    refuse_sharing: "belongs in `connection.experimental`";
    refuse_status: "is not changed here: send `{\"enabled\": false}` or `true` to `PATCH /connected_accounts/{nanoid}/status`";
}

#[derive(Deserialize, ToSchema)]
pub(crate) struct UpdatedConnection {
    pub state: UpdatedState,
}

#[derive(Deserialize, ToSchema)]
pub(crate) struct UpdatedState {
    #[serde(rename = "authScheme")]
    pub auth_scheme: String,
    /// Merged into the existing fields; null clears a field.
    pub val: Map<String, Value>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = SetAccountStatus)]
pub(crate) struct SetStatus {
    pub enabled: bool,
}
