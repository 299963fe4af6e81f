//! Tokens of accounts: the client with which they are requested, and their request and revocation.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use futures::future::BoxFuture;
use gate::KeyedLimit;
use manifest::{AuthMode, AuthScheme};
use oauth::{Client, Flow, MetadataCache, Refusal};
use serde_json::Value;
use store::{Batch, Record, Store, Time};

use super::{
    Account, AccountView, Values,
    auth_configs::{self, AuthConfig},
    credential::{Credential, RefreshTimes, VALUES_FIELD},
    oauth_apps,
};
use crate::{
    App, Clock, Result,
    accounts::errors,
    catalog::{LATEST, Release},
    core::{
        ids::{AccountId, AuthConfigId, ProjectId},
        tasks::Tasks,
        vault::{SealContext, Vault},
    },
    work::Claims,
};

/// Tokens that a provider issues and revokes.
const REVOCABLE_TOKENS: [(&str, RevokedToken); 2] = [
    (manifest::ACCESS_TOKEN, RevokedToken::Access),
    ("refresh_token", RevokedToken::Refresh),
];

/// Part of a credential that was revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevokedToken {
    /// The provider revoked the access token.
    Access,
    /// The provider revoked the refresh token.
    Refresh,
    /// This server erased values that were filled in.
    Credential,
}

/// Settings for connecting accounts and refreshing their tokens.
#[derive(Clone)]
pub struct Settings {
    /// HTTP client for requests to authorization servers.
    pub net: net::Client,
    /// Time for which a pending account waits for its user.
    pub pending_ttl: Duration,
    /// Time that a user may spend at a provider.
    pub authorization_ttl: Duration,
    /// Time before the expiry at which a token is refreshed. The last quarter of the token's
    /// lifetime applies if that is shorter.
    pub refresh_margin: Duration,
    /// Duration of the lease under which a server refreshes a token. It is extended meanwhile.
    pub lease_ttl: Duration,
    /// Time for which a call waits for a refresh or for a client registration.
    pub wait_timeout: Duration,
    /// Time after the last refresh at which an idle account is refreshed.
    pub idle_refresh_after: Duration,
}

/// Counts of the attempts of this process to refresh tokens.
#[derive(Debug, Default)]
pub struct RefreshCounts {
    /// Number of attempts in which the provider gave a token.
    pub refreshed: AtomicU64,
    /// Number of attempts after which the account has expired.
    pub expired: AtomicU64,
    /// Number of attempts that failed and are retried.
    pub retried: AtomicU64,
}

/// Receiver of the news that an account expires. It belongs to a module above this one, and is set
/// where the [`App`](crate::App) is put together.
pub(crate) trait ExpiryListener: Send + Sync {
    /// Adds all that follows from an expiry to the batch in which the account expires.
    fn add(&self, batch: Batch, account: AccountView) -> BoxFuture<'_, Result<Batch>>;
}

/// Token refresh service; one instance per process.
pub struct TokenManager {
    pub(super) store: Store,
    pub(super) vault: Arc<Vault>,
    pub(super) clock: Clock,
    pub(super) settings: Settings,
    pub(super) metadata: MetadataCache,
    /// Claims on credentials and on client registrations.
    pub(super) claims: Claims,
    /// Locks of accounts that are being refreshed, so that calls in one process wait in memory.
    pub(super) account_locks: KeyedLimit<AccountId>,
    /// Work that obtains tokens or clients. A stopping server waits for it.
    pub(crate) tasks: Tasks,
    pub(super) expiry: Box<dyn ExpiryListener>,
    pub(crate) refreshes: RefreshCounts,
}

/// This server's client at a provider, with the scopes that it requests.
pub(super) struct ClientContext {
    /// HTTP client for requests to the provider.
    pub net: net::Client,
    /// Id and secret of the client.
    pub client: Client,
    /// Scopes of the authorization request.
    pub scopes: Vec<String>,
    /// Scopes with which the provider acts for the user.
    pub user_scopes: Vec<String>,
    /// Redirect URI that replaces this server's own.
    pub redirect_uri: Option<String>,
    /// Time from which the lifetimes of tokens are counted.
    now: Time,
}

impl ClientContext {
    /// Returns the flow of a scheme between this client and the provider.
    pub(super) fn flow<'a>(&'a self, scheme: &'a AuthScheme, values: &'a Values) -> Flow<'a> {
        Flow {
            net: &self.net,
            now_ms: self.now.0,
            scheme,
            client: &self.client,
            values,
        }
    }

    /// Adds the scopes of tools: of those that an auth config names for new connections, or else of all
    /// that may run with its accounts, and those of triggers if these are all tools. If the auth config or the
    /// operator's OAuth app names scopes itself, they stand for all of these, and so do scopes in the parameters
    /// of the scheme.
    pub(super) fn add_tool_scopes(
        &mut self,
        config: &AuthConfig,
        scheme: &AuthScheme,
        release: &Release,
    ) {
        let named = &config.tools_for_connection;
        let has_scope_parameter = scheme.oauth2.as_ref().is_some_and(|oauth2| {
            let mut parameters = oauth2.authorize_params.keys();
            parameters.any(|name| oauth::is_scope_parameter(name))
        });
        // A dynamic client is registered with the scopes of the scheme alone.
        let of_all = scheme.mode == AuthMode::Oauth2
            && !has_scope_parameter
            && named.is_empty()
            && self.scopes.is_empty()
            && self.user_scopes.is_empty();
        let tools = release.tools.iter().filter(|tool| {
            if of_all {
                config.allows(&tool.slug)
            } else {
                named.iter().any(|own| own.eq_ignore_ascii_case(&tool.slug))
            }
        });
        self.scopes
            .extend(tools.flat_map(|tool| tool.scopes.iter().cloned()));
        if of_all && config.allows_all() {
            let triggers = release.triggers.iter();
            self.scopes
                .extend(triggers.flat_map(|trigger| trigger.scopes.iter().cloned()));
        }
    }
}

impl TokenManager {
    pub(crate) fn new(
        store: Store,
        vault: Arc<Vault>,
        clock: Clock,
        settings: Settings,
        expiry: Box<dyn ExpiryListener>,
    ) -> Self {
        Self {
            claims: Claims::new(store.clone(), clock.clone()),
            store,
            vault,
            clock,
            settings,
            metadata: MetadataCache::default(),
            account_locks: KeyedLimit::new(1),
            tasks: Tasks::default(),
            expiry,
            refreshes: RefreshCounts::default(),
        }
    }

    /// Returns this server's client at the provider of an auth config.
    pub(super) async fn client_context(
        &self,
        config: &Record<AuthConfig>,
    ) -> Result<ClientContext> {
        let now = self.clock.now();
        let credentials = auth_configs::open_credentials(&self.vault, config, now).await?;
        let net = self
            .settings
            .net
            .clone()
            .for_tenant(config.project.as_str().into())
            .with_proxy(credentials.net_proxy()?);
        let own = credentials.own;
        let redirect_uri = own
            .get("oauth_redirect_uri")
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
            .map(str::to_owned);
        let mut scopes = auth_configs::scopes(&own, "scopes");
        let user_scopes = auth_configs::scopes(&own, "user_scopes");
        let client = if config.body.managed {
            let app = oauth_apps::find(&self.store, &config.body.toolkit)
                .await?
                .ok_or_else(|| errors::no_managed_auth(&config.body.toolkit))?;
            scopes.extend(app.body.scopes.iter().cloned());
            let secret = oauth_apps::secret(&self.vault, &app, now).await?;
            Client {
                id: app.body.client_id,
                secret: (!secret.is_empty()).then(|| secret.into()),
                ..Client::default()
            }
        } else {
            // Some providers identify only the account, not a client.
            Client::from_credentials(&own).unwrap_or_default()
        };
        Ok(ClientContext {
            net,
            client,
            scopes,
            user_scopes,
            redirect_uri,
            now,
        })
    }

    /// Returns this server's client at the provider of an account, or `None` if the account's auth
    /// config is deleted.
    pub(super) async fn client_of(&self, owner: &TokenOwner) -> Result<Option<ClientContext>> {
        match auth_configs::find(&self.store, &owner.project, &owner.auth_config).await? {
            Some(config) => self.client_context(&config).await.map(Some),
            None => Ok(None),
        }
    }

    /// Builds the credential of a connected account, whose tokens were issued at the time `now`.
    pub(super) async fn build_credential(
        &self,
        project: &ProjectId,
        account: &AccountId,
        scheme: Option<&AuthScheme>,
        values: &Values,
        lifetime: Option<Duration>,
        now: Time,
    ) -> Result<Credential> {
        let credential = self.seal(project, account, values).await?;
        let Some(scheme) = scheme.filter(|scheme| scheme.mode.has_flow()) else {
            return Ok(credential);
        };
        let is_refreshable = self.is_refreshable(scheme, values);
        let times = RefreshTimes {
            margin: refresh_margin(scheme, self.settings.refresh_margin),
            idle: self.settings.idle_refresh_after,
        };
        Ok(credential.with_expiry(lifetime, is_refreshable, times, now))
    }

    /// Obtains tokens from field values, in a mode without a browser. Returns the values with the
    /// tokens, and the lifetime of the tokens.
    pub(super) async fn obtain(
        &self,
        config: &Record<AuthConfig>,
        scheme: &AuthScheme,
        mut values: Values,
    ) -> Result<(Values, Option<Duration>)> {
        let context = self.client_context(config).await?;
        let request = async {
            let declared_flow = context.flow(scheme, &values);
            let scheme = self.metadata.resolve(&declared_flow).await?;
            let flow = context.flow(&scheme, &values);
            flow.obtain(&context.scopes).await
        };
        let tokens = request.await.map_err(|refusal| match refusal {
            Refusal::Unavailable { .. } => errors::unavailable(refusal),
            refusal => errors::credential_rejected(refusal),
        })?;
        values.extend(tokens.values);
        Ok((values, tokens.lifetime))
    }

    /// Revokes tokens at the provider and returns the revoked ones.
    pub(super) async fn revoke(
        &self,
        owner: &TokenOwner,
        values: &Values,
    ) -> Result<Vec<RevokedToken>> {
        // The client at the provider is unknown without its auth config.
        let Some(context) = self.client_of(owner).await? else {
            return Ok(Vec::new());
        };
        let declared_flow = context.flow(owner.scheme()?, values);
        let request = async {
            let scheme = self.metadata.resolve(&declared_flow).await?;
            context.flow(&scheme, values).revoke().await
        };
        match request.await {
            Ok(()) => {
                let tokens = REVOCABLE_TOKENS
                    .into_iter()
                    .filter(|(name, _)| values.contains_key(*name));
                Ok(tokens.map(|(_, token)| token).collect())
            }
            // The provider lacks a revocation endpoint.
            Err(Refusal::Unsent { .. }) => Ok(Vec::new()),
            Err(refusal) => Err(errors::unavailable(refusal)),
        }
    }

    /// Revokes tokens at the provider. A failure is only logged.
    pub(super) async fn revoke_best_effort(&self, owner: &TokenOwner, values: &Values) {
        if let Err(cause) = self.revoke(owner, values).await {
            tracing::warn!(account = %owner.account, %cause, "tokens were not revoked at the provider");
        }
    }

    /// Returns true if the tokens can be refreshed without the user.
    pub(super) fn is_refreshable(&self, scheme: &AuthScheme, values: &Values) -> bool {
        let client = Client::default();
        let flow = Flow {
            net: &self.settings.net,
            now_ms: self.clock.now().0,
            scheme,
            client: &client,
            values,
        };
        flow.can_refresh() || obtains_from_fields(scheme.mode)
    }

    /// Seals the values of an account as a credential that does not expire.
    pub(super) async fn seal(
        &self,
        project: &ProjectId,
        account: &AccountId,
        values: &Values,
    ) -> Result<Credential> {
        let context =
            SealContext::new::<Credential>(project.as_str(), account.as_str(), VALUES_FIELD);
        let sealed = self.vault.seal(context, values, self.clock.now()).await?;
        Ok(Credential::new(sealed))
    }
}

#[derive(Clone)]
pub(super) struct TokenOwner {
    pub project: ProjectId,
    pub account: AccountId,
    pub auth_config: AuthConfigId,
    /// Version of the toolkit whose scheme is used.
    pub release: Arc<Release>,
    /// Scheme of the account.
    pub mode: AuthMode,
}

impl TokenOwner {
    /// Identifies the token of an account. Fails if the account's toolkit no longer exists.
    pub(super) fn for_account(app: &App, record: &Record<Account>) -> Result<Self> {
        Ok(Self {
            project: ProjectId::parse(&record.project)?,
            account: AccountId::parse(&record.id)?,
            auth_config: record.body.auth_config.clone(),
            release: app.catalog.release(&record.body.toolkit, LATEST)?,
            mode: record.body.scheme,
        })
    }

    /// Returns the scheme of the account. Fails if its toolkit does not offer it.
    pub(super) fn scheme(&self) -> Result<&AuthScheme> {
        self.release
            .scheme(self.mode)
            .ok_or_else(|| errors::scheme_not_offered(&self.release.slug, self.mode.as_str()))
    }
}

/// Returns the time before the expiry at which tokens of a scheme are refreshed.
fn refresh_margin(scheme: &AuthScheme, usual: Duration) -> Duration {
    let declared = scheme.oauth2.as_ref().and_then(|flow| flow.refresh_margin);
    declared.map_or(usual, |seconds| Duration::from_secs(seconds.into()))
}

/// Returns true if tokens of a mode can be obtained from field values at any time.
pub(super) fn obtains_from_fields(mode: AuthMode) -> bool {
    mode.has_flow() && !mode.redirects()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheme_overrides_the_refresh_margin() {
        let usual = Duration::from_secs(300);
        let scheme = |flow: serde_json::Value| -> AuthScheme {
            serde_json::from_value(
                serde_json::json!({ "mode": "OAUTH2", "name": "n", "oauth2": flow }),
            )
            .unwrap()
        };
        assert_eq!(
            refresh_margin(&scheme(serde_json::json!({ "token_url": "t" })), usual),
            usual
        );
        let own = refresh_margin(
            &scheme(serde_json::json!({ "token_url": "t", "refresh_margin": 60 })),
            usual,
        );
        assert_eq!(own, Duration::from_secs(60));
    }
}
