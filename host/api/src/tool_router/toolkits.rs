//! View of a toolkit of a session.

use app::{accounts::SessionAccount, agents::SessionToolkit, catalog::AuthMode, core::clock::iso};

use crate::toolkits::logo_url;

view! {
    /// A toolkit, with the account that the session uses for it.
    #[schema(as = SessionToolkit)]
    pub(crate) struct SessionToolkitView from view: SessionToolkit where {
        let release = view.toolkit.current();
        let managed = view.managed.then_some(AuthMode::Oauth2.as_str());
    } {
        name: String = release.name.clone(),
        slug: String = release.slug.to_string(),
        /// True if the session permits it.
        enabled: bool = view.enabled,
        /// True if its tools run without an account.
        is_no_auth: bool = release.no_auth(),
        service_managed_auth_schemes: Vec<&'static str> = managed.into_iter().collect(),
        meta: MetaView = MetaView {
            logo: logo_url(release),
            description: release.description.clone(),
        },
        /// Null without an active account of the user that the session may use.
        connected_account!: Option<AccountView> = view.account.as_deref().map(AccountView::from),
    }
}

#[derive(serde::Serialize, utoipa::ToSchema)]
#[schema(as = SessionToolkitMeta)]
struct MetaView {
    logo: String,
    description: String,
}

view! {
    #[schema(as = SessionAccount)]
    struct AccountView from account: &SessionAccount {
        id: String = account.record.id.clone(),
        user_id: String = account.record.body.user_id.clone(),
        status: &'static str = account.record.body.status.into_str(),
        #[schema(format = DateTime)] created_at: String = iso(account.record.created_at),
        auth_config: AuthConfigView = account.into(),
    }
}

view! {
    #[schema(as = SessionAccountAuthConfig)]
    struct AuthConfigView from account: &SessionAccount {
        id: String = account.record.body.auth_config.to_string(),
        auth_scheme: &'static str = account.record.body.scheme.as_str(),
        is_service_managed: bool = account.managed,
    }
}
