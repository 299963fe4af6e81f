//! Views of connected accounts.

use app::{
    accounts::{self, AccountView, Completion, LinkCreated, Reconnection, Status},
    core::{clock::iso, ids::AccountId},
};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{sharing::SharingView, status::AccountStatus};
use crate::api::auth_configs::ToolkitSlug;

/// Values of the auth scheme. Of secrets, only the first characters are shown.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = AccountValues)]
struct Values {
    status: AccountStatus,
    #[serde(flatten)]
    of_the_scheme: Map<String, Value>,
}

impl Values {
    fn new(shown: &AccountView) -> Self {
        let account = &shown.record.body;
        let mut values = shown.values.clone();
        // The status of the account takes precedence over a value of that name.
        values.remove("status");
        if let Some(failure) = &account.failure {
            let error = failure.error.as_str();
            let description = failure.description.as_str();
            values.insert("error".into(), error.into());
            values.insert("error_description".into(), description.into());
        }
        if account.status == Status::Expired {
            values.insert("expired_at".into(), iso(shown.record.updated_at).into());
        }
        Self {
            status: account.status.into(),
            of_the_scheme: values,
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = AccountState)]
struct StateView {
    #[serde(rename = "authScheme")]
    auth_scheme: &'static str,
    val: Values,
}

/// The account that was created.
#[derive(Serialize, ToSchema)]
#[schema(as = NewAccount)]
pub(crate) struct CreatedView {
    id: String,
    #[serde(rename = "connectionData")]
    connection_data: StateView,
    status: AccountStatus,
    /// URL where the user connects the account; null if no user action is needed.
    #[schema(required)]
    redirect_url: Option<String>,
    #[schema(required)]
    redirect_uri: Option<String>,
    deprecated: CreatedIds,
    experimental: SharingView,
}

#[derive(Serialize, ToSchema)]
#[schema(as = NewAccountIds)]
struct CreatedIds {
    #[schema(value_type = String)]
    uuid: Uuid,
    #[serde(rename = "authConfigUuid")]
    #[schema(value_type = String)]
    auth_config_uuid: Option<Uuid>,
}

impl From<AccountView> for CreatedView {
    fn from(shown: AccountView) -> Self {
        let values = Values::new(&shown);
        let account = shown.record.body;
        Self {
            id: shown.record.id,
            connection_data: StateView {
                auth_scheme: account.scheme.as_str(),
                val: values,
            },
            status: account.status.into(),
            redirect_url: shown.redirect_url.clone(),
            redirect_uri: shown.redirect_url,
            deprecated: CreatedIds {
                uuid: account.uuid,
                auth_config_uuid: shown.config_uuid,
            },
            experimental: account.sharing.into(),
        }
    }
}

/// One user's account at one provider.
#[derive(Serialize, ToSchema)]
#[schema(as = Account)]
pub(crate) struct View {
    toolkit: ToolkitSlug,
    auth_config: AuthConfigView,
    id: String,
    user_id: String,
    status: AccountStatus,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
    state: StateView,
    /// The older name of `state.val`.
    data: Values,
    #[schema(required)]
    status_reason: Option<String>,
    is_disabled: bool,
    deprecated: LegacyIds,
    #[schema(required)]
    word_id: Option<String>,
    #[schema(required)]
    alias: Option<String>,
    experimental: SharingView,
    #[serde(rename = "authScheme")]
    auth_scheme: &'static str,
}

#[derive(Serialize, ToSchema)]
#[schema(as = AccountAuthConfig)]
struct AuthConfigView {
    id: String,
    auth_scheme: &'static str,
    is_service_managed: bool,
    is_disabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    deprecated: Option<LegacyId>,
}

#[derive(Serialize, ToSchema)]
struct LegacyId {
    #[schema(value_type = String)]
    uuid: Uuid,
}

#[derive(Serialize, ToSchema)]
#[schema(as = AccountIds)]
struct LegacyIds {
    #[schema(value_type = String)]
    uuid: Uuid,
    labels: Vec<String>,
}

impl From<AccountView> for View {
    fn from(shown: AccountView) -> Self {
        let values = Values::new(&shown);
        let account = shown.record.body;
        let auth_scheme = account.scheme.as_str();
        Self {
            toolkit: ToolkitSlug {
                slug: account.toolkit,
            },
            auth_config: AuthConfigView {
                id: account.auth_config.to_string(),
                auth_scheme,
                is_service_managed: shown.managed,
                is_disabled: shown.config_disabled,
                deprecated: shown.config_uuid.map(|uuid| LegacyId { uuid }),
            },
            id: shown.record.id,
            user_id: account.user_id,
            status: account.status.into(),
            created_at: iso(shown.record.created_at),
            updated_at: iso(shown.record.updated_at),
            state: StateView {
                auth_scheme,
                val: values.clone(),
            },
            data: values,
            status_reason: account.status_reason,
            is_disabled: account.status == Status::Inactive,
            deprecated: LegacyIds {
                uuid: account.uuid,
                labels: Vec::new(),
            },
            word_id: None,
            alias: account.alias,
            experimental: account.sharing.into(),
            auth_scheme,
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = AccountDetail)]
pub(crate) struct DetailView {
    #[serde(flatten)]
    account: View,
    /// The oldest name of `state.val`.
    params: Values,
}

impl From<AccountView> for DetailView {
    fn from(shown: AccountView) -> Self {
        let account = View::from(shown);
        Self {
            params: account.data.clone(),
            account,
        }
    }
}

/// A link to the page on which a user connects an account.
#[derive(Serialize, ToSchema)]
#[schema(as = Link)]
pub(crate) struct LinkView {
    link_token: String,
    redirect_url: String,
    #[schema(format = DateTime)]
    expires_at: String,
    connected_account_id: String,
    experimental: SharingView,
}

impl From<LinkCreated> for LinkView {
    fn from(link: LinkCreated) -> Self {
        Self {
            link_token: link.token,
            redirect_url: link.url,
            expires_at: iso(link.expires_at),
            connected_account_id: link.account.to_string(),
            experimental: link.sharing.into(),
        }
    }
}

/// The account that is active now.
#[derive(Serialize, ToSchema)]
#[schema(as = Completed)]
pub(crate) struct CompletedView {
    connected_account_id: String,
    toolkit_slug: String,
}

impl From<Completion> for CompletedView {
    fn from(completion: Completion) -> Self {
        Self {
            connected_account_id: completion.account.to_string(),
            toolkit_slug: completion.toolkit,
        }
    }
}

/// The new connection of an account.
#[derive(Serialize, ToSchema)]
#[schema(as = Refreshed)]
pub(crate) struct RefreshedView {
    id: String,
    status: AccountStatus,
    /// URL where the user connects the account again; null if no user action is needed.
    #[schema(required)]
    redirect_url: Option<String>,
}

impl RefreshedView {
    /// Builds the view of a started connection.
    pub(crate) fn new(id: &AccountId, started: Reconnection) -> Self {
        Self {
            id: id.to_string(),
            status: started.status.into(),
            redirect_url: started.redirect_url,
        }
    }
}

/// Success of a change of an account.
#[derive(Serialize, ToSchema)]
#[schema(as = Updated)]
pub(crate) struct UpdatedView {
    success: bool,
    id: String,
    status: AccountStatus,
}

impl UpdatedView {
    /// Reports success.
    pub(crate) fn new(id: &AccountId, status: Status) -> Self {
        Self {
            success: true,
            id: id.to_string(),
            status: status.into(),
        }
    }
}

/// The revocation of an account's credential.
#[derive(Serialize, ToSchema)]
#[schema(as = Revoked)]
pub(crate) struct RevokedView {
    /// The tokens that were revoked at the provider.
    revoked_tokens: Vec<RevokedToken>,
    connected_account: RevokedAccount,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum RevokedToken {
    AccessToken,
    RefreshToken,
    Credential,
}

impl From<accounts::RevokedToken> for RevokedToken {
    fn from(token: accounts::RevokedToken) -> Self {
        match token {
            accounts::RevokedToken::Access => Self::AccessToken,
            accounts::RevokedToken::Refresh => Self::RefreshToken,
            accounts::RevokedToken::Credential => Self::Credential,
        }
    }
}

#[derive(Serialize, ToSchema)]
struct RevokedAccount {
    id: String,
    status: AccountStatus,
}

impl RevokedView {
    /// Builds the view of an account whose credential is revoked.
    pub(crate) fn new(id: &AccountId, revoked: Vec<accounts::RevokedToken>) -> Self {
        Self {
            revoked_tokens: revoked.into_iter().map(RevokedToken::from).collect(),
            connected_account: RevokedAccount {
                id: id.to_string(),
                status: AccountStatus::Revoked,
            },
        }
    }
}
