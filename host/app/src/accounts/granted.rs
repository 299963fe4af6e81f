//! Access of one call to one credential, as the sandbox asks for it.

use std::sync::Arc;

use async_trait::async_trait;
use manifest::AuthMode;
use parking_lot::Mutex;
use sandbox::{Credential, Grant, GrantError};
use store::Record;

use super::{
    Account, TokenManager, Values, credential::access_token, refresh::RefreshReason, scheme,
    tokens::TokenOwner,
};
use crate::{
    App, Error, Result,
    accounts::errors,
    catalog::Release,
    core::ids::{AccountId, AuthConfigId},
};

/// Origin of the credential of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A connected account.
    ConnectedAccount,
    /// All fields of a scheme came with the request.
    InstantAccount,
    /// Headers, query parameters or body fields came with the request.
    CustomAuth,
    /// No credential was needed.
    #[default]
    NoAuth,
}

/// Access to one credential during one call.
#[derive(Default)]
pub(crate) struct Granted {
    /// Credential, or `None` if the toolkit does not need one.
    pub grant: Option<Arc<dyn Grant>>,
    /// Fields that the toolkit may read.
    pub fields: Vec<(String, String)>,
    /// Connected account, or `None` for a credential of the request.
    pub account: Option<AccountId>,
    /// Auth config of the account.
    pub auth_config: Option<AuthConfigId>,
    /// Origin of the credential, for the execution log.
    pub source: Source,
    /// OAuth scopes that the provider named when it issued the token, as it sent them.
    pub scopes: Option<String>,
}

impl Granted {
    pub(super) fn new(
        credential: Credential,
        fields: Vec<(String, String)>,
        source: Source,
    ) -> Self {
        Self {
            grant: Some(Arc::new(StaticGrant(Arc::new(credential)))),
            fields,
            source,
            ..Self::default()
        }
    }

    /// Routes the requests through a proxy, if one is set.
    pub(super) fn via_proxy(self, proxy: Option<Arc<net::Proxy>>) -> Self {
        let Some(proxy) = proxy else { return self };
        let grant = self
            .grant
            .unwrap_or_else(|| Arc::new(StaticGrant(Arc::default())));
        Self {
            grant: Some(Arc::new(ProxiedGrant { grant, proxy })),
            ..self
        }
    }
}

/// Grants a credential that is refreshed if the provider rejects it and the scheme supports it.
pub(super) fn refreshing_grant(
    app: &App,
    release: &Release,
    record: &Record<Account>,
    values: &Values,
) -> Result<Granted> {
    let mut granted = static_grant(release, record.body.scheme, values)?;
    if record.body.scheme.has_flow()
        && let (Some(scheme), Some(token)) =
            (release.scheme(record.body.scheme), access_token(values))
    {
        let credential = Arc::new(scheme::credential(scheme, values));
        granted.grant = Some(Arc::new(RefreshingGrant {
            manager: app.accounts.clone(),
            owner: TokenOwner::for_account(app, record)?,
            current: Mutex::new((credential, token.clone())),
        }));
    }
    Ok(granted)
}

/// Grants values that are never refreshed. Fails if the toolkit does not offer the scheme.
pub(super) fn static_grant(release: &Release, mode: AuthMode, values: &Values) -> Result<Granted> {
    let Some(scheme) = release.scheme(mode) else {
        if mode == AuthMode::NoAuth {
            return Ok(Granted::default());
        }
        return Err(errors::scheme_not_offered(&release.slug, mode.as_str()));
    };
    let credential = scheme::credential(scheme, values);
    let fields = scheme::open_fields(scheme, values);
    Ok(Granted::new(credential, fields, Source::InstantAccount))
}

type GrantResult<T> = std::result::Result<T, GrantError>;

/// A credential whose requests are routed through a proxy.
struct ProxiedGrant {
    grant: Arc<dyn Grant>,
    proxy: Arc<net::Proxy>,
}

#[async_trait]
impl Grant for ProxiedGrant {
    async fn credential(&self) -> GrantResult<Arc<Credential>> {
        self.grant.credential().await
    }

    async fn refresh(&self, rejected: &Credential) -> GrantResult<Option<Arc<Credential>>> {
        self.grant.refresh(rejected).await
    }

    fn proxy(&self) -> Option<Arc<net::Proxy>> {
        Some(self.proxy.clone())
    }
}

/// A credential that cannot be refreshed.
struct StaticGrant(Arc<Credential>);

#[async_trait]
impl Grant for StaticGrant {
    async fn credential(&self) -> GrantResult<Arc<Credential>> {
        Ok(self.0.clone())
    }

    async fn refresh(&self, _rejected: &Credential) -> GrantResult<Option<Arc<Credential>>> {
        Ok(None)
    }
}

/// A token of an account, refreshed if the provider rejects it.
struct RefreshingGrant {
    manager: Arc<TokenManager>,
    owner: TokenOwner,
    /// Current credential and its token.
    current: Mutex<(Arc<Credential>, String)>,
}

#[async_trait]
impl Grant for RefreshingGrant {
    async fn credential(&self) -> GrantResult<Arc<Credential>> {
        Ok(self.current.lock().0.clone())
    }

    async fn refresh(&self, rejected: &Credential) -> GrantResult<Option<Arc<Credential>>> {
        let (current, token) = self.current.lock().clone();
        // Another request of the same call has already refreshed the token.
        if current.secrets != rejected.secrets {
            return Ok(Some(current));
        }
        let reason = RefreshReason::Rejected(token.clone());
        let values = self
            .manager
            .fresh_values(&self.owner, reason)
            .await
            .map_err(grant_error)?;
        let scheme = self.owner.scheme().map_err(grant_error)?;
        let Some(fresh) = access_token(&values).filter(|fresh| **fresh != token) else {
            return Ok(None);
        };
        let credential = Arc::new(scheme::credential(scheme, &values));
        *self.current.lock() = (credential.clone(), fresh.clone());
        Ok(Some(credential))
    }
}

fn grant_error(cause: Error) -> GrantError {
    GrantError(cause.to_string())
}
