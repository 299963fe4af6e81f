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
use crate::auth_configs::ToolkitSlug;

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
            values.insert("expired_at".into(), iso(account.changed_at).into());
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

view! {
    /// The account that was created.
    #[schema(as = NewAccount)]
    pub(crate) struct CreatedView from shown: AccountView where {
        let values = Values::new(&shown);
        let account = shown.record.body;
    } {
        id: String = shown.record.id,
        #[serde(rename = "connectionData")] connection_data: StateView = StateView {
            auth_scheme: account.scheme.as_str(),
            val: values,
        },
        status: AccountStatus = account.status.into(),
        /// URL where the user connects the account; null if no user action is needed.
        redirect_url!: Option<String> = shown.redirect_url.clone(),
        redirect_uri!: Option<String> = shown.redirect_url,
        deprecated: CreatedIds = CreatedIds::new(account.uuid, shown.config_uuid),
        experimental: SharingView = account.sharing.into(),
    }
}

view! {
    #[schema(as = NewAccountIds)]
    struct CreatedIds from (uuid: Uuid, config_uuid: Option<Uuid>) {
        #[schema(value_type = String)] uuid: Uuid = uuid,
        #[serde(rename = "authConfigUuid")]
        #[schema(value_type = String)]
        auth_config_uuid: Option<Uuid> = config_uuid,
    }
}

view! {
    /// One user's account at one provider.
    #[schema(as = Account)]
    pub(crate) struct View from shown: AccountView where {
        let values = Values::new(&shown);
        let auth_config = AuthConfigView::from(&shown);
        let account = shown.record.body;
        let auth_scheme = account.scheme.as_str();
    } {
        toolkit: ToolkitSlug = ToolkitSlug { slug: account.toolkit },
        auth_config: AuthConfigView = auth_config,
        id: String = shown.record.id,
        user_id: String = account.user_id,
        status: AccountStatus = account.status.into(),
        #[schema(format = DateTime)] created_at: String = iso(shown.record.created_at),
        #[schema(format = DateTime)] updated_at: String = iso(account.changed_at),
        state: StateView = StateView { auth_scheme, val: values.clone() },
        /// The older name of `state.val`.
        data: Values = values,
        status_reason!: Option<String> = account.status_reason,
        is_disabled: bool = account.status == Status::Inactive,
        deprecated: LegacyIds = LegacyIds { uuid: account.uuid, labels: Vec::new() },
        word_id!: Option<String> = None,
        alias!: Option<String> = account.alias,
        experimental: SharingView = account.sharing.into(),
        #[serde(rename = "authScheme")] auth_scheme: &'static str = auth_scheme,
    }
}

view! {
    #[schema(as = AccountAuthConfig)]
    struct AuthConfigView from shown: &AccountView {
        id: String = shown.record.body.auth_config.to_string(),
        auth_scheme: &'static str = shown.record.body.scheme.as_str(),
        is_service_managed: bool = shown.managed,
        is_disabled: bool = shown.config_disabled,
        deprecated?: Option<LegacyId> = shown.config_uuid.map(|uuid| LegacyId { uuid }),
    }
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

view! {
    #[schema(as = AccountDetail)]
    pub(crate) struct DetailView from shown: AccountView where {
        let account = View::from(shown);
        let params = account.data.clone();
    } {
        #[serde(flatten)] account: View = account,
        /// The oldest name of `state.val`.
        params: Values = params,
    }
}

view! {
    /// A link to the page on which a user connects an account.
    #[schema(as = Link)]
    pub(crate) struct LinkView from link: LinkCreated {
        link_token: String = link.token,
        redirect_url: String = link.url,
        #[schema(format = DateTime)] expires_at: String = iso(link.expires_at),
        connected_account_id: String = link.account.to_string(),
        experimental: SharingView = link.sharing.into(),
    }
}

view! {
    /// The account that is active now.
    #[schema(as = Completed)]
    pub(crate) struct CompletedView from completion: Completion {
        connected_account_id: String = completion.account.to_string(),
        toolkit_slug: String = completion.toolkit,
    }
}

view! {
    /// The new connection of an account.
    #[schema(as = Refreshed)]
    pub(crate) struct RefreshedView from (id: &AccountId, started: Reconnection) {
        id: String = id.to_string(),
        status: AccountStatus = started.status.into(),
        /// URL where the user connects the account again; null if no user action is needed.
        redirect_url!: Option<String> = started.redirect_url,
    }
}

view! {
    /// Success of a change of an account.
    #[schema(as = Updated)]
    pub(crate) struct UpdatedView from (id: &AccountId, status: Status) {
        success: bool = true,
        id: String = id.to_string(),
        status: AccountStatus = status.into(),
    }
}

view! {
    /// The revocation of an account's credential.
    #[schema(as = Revoked)]
    pub(crate) struct RevokedView from (
        id: &AccountId,
        revoked: Vec<accounts::RevokedToken>,
    ) {
        /// The tokens that were revoked at the provider.
        revoked_tokens: Vec<RevokedToken> = revoked.into_iter().map(RevokedToken::from).collect(),
        connected_account: RevokedAccount = id.into(),
    }
}

mirror! {
    #[serde(rename_all = "snake_case")]
    enum RevokedToken of accounts::RevokedToken {
        #[serde(rename = "access_token")]
        Access,
        #[serde(rename = "refresh_token")]
        Refresh,
        Credential,
    }
}

view! {
    struct RevokedAccount from id: &AccountId {
        id: String = id.to_string(),
        status: AccountStatus = AccountStatus::Revoked,
    }
}
