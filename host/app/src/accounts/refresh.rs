//! Token refresh: at most one refresh of an account at a time, across all servers.
//!
//! A provider may revoke all tokens of an account if an old refresh token is used a second time.
//! Therefore a server must take a lease before it refreshes a token. The lease is part of the
//! record that holds the token. The revision created by the lease is the fencing token: the new
//! token is written over that revision only, so that a server that was stopped for longer than its
//! lease changes nothing. The lease is written before anything is sent. A lease that expired
//! without an outcome means that the provider may or may not have replaced the token, and the old
//! token is tried once more.
//!
//! Only a refusal by the provider ends an account. While the provider is unavailable, the account
//! keeps its token and the refresh is retried, after 30 seconds at first and with doubled delays of
//! at most one hour.
//!
//! A refresh continues if its caller has gone away, so that a closed connection does not lose the
//! new token.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use manifest::{AuthMode, AuthScheme};
use oauth::{Client, Flow, MetadataCache, Refusal, Tokens};
use serde::{Deserialize, Serialize};
use store::{Batch, Collection, CommitError, Document, Field, Kind, Query, Record, Store, Time};
use tokio::{
    sync::{Mutex as AsyncMutex, OwnedMutexGuard},
    task::JoinSet,
};

use super::{Account, COLLECTION, CREDENTIALS_NAME, Event, Status, Values, oauth_apps};
use crate::{
    App, Clock, Error, Result,
    accounts::auth_configs::{self, AuthConfig},
    catalog::{LATEST, Release},
    core::{
        clock::time_after,
        ids::{self, AccountId, AuthConfigId, ProjectId},
        vault::{SealContext, Sealed, Vault},
    },
    projects::{self, Project},
    work::Lease as JobLease,
};

/// Credentials of accounts, stored under the id of the account and erased with it.
pub(crate) static CREDENTIALS: Collection = Collection {
    name: CREDENTIALS_NAME,
    fields: &[Field::new("due", Kind::Time)],
};

/// Interval of the job that refreshes idle accounts.
pub(crate) const IDLE_REFRESH_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum number of idle accounts that one run of the job refreshes.
const IDLE_REFRESH_BATCH_SIZE: u64 = 50;
/// Concurrency of these refreshes. Several at a time limit the delay that an unresponsive provider
/// causes for the other accounts.
const IDLE_REFRESH_CONCURRENCY: usize = 8;
/// Interval at which a server checks whether another server has finished its work.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Remaining lifetime below which a token counts as expired, because a request takes time to
/// arrive.
const EXPIRY_SLACK: Duration = Duration::from_secs(5);
/// Time after a refresh in which a rejected token is not refreshed again, because the rejection has
/// another cause.
const REJECTION_COOLDOWN: Duration = Duration::from_secs(60);
/// First retry delay after a provider did not answer.
const MIN_RETRY_DELAY: Duration = Duration::from_secs(30);
/// Maximum retry delay after a provider did not answer.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(3_600);

/// Tokens that a provider issues and revokes.
const REVOCABLE_TOKENS: [(&str, RevokedToken); 2] = [
    (manifest::ACCESS_TOKEN, RevokedToken::Access),
    ("refresh_token", RevokedToken::Refresh),
];
/// Status reason of an account whose refresh reached the provider but whose outcome is unknown.
pub(super) const OUTCOME_UNKNOWN_REASON: &str = "refresh_outcome_unknown";

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
    /// Duration of the lease under which a server refreshes a token.
    pub lease_ttl: Duration,
    /// Time for which a call waits for a refresh or for a client registration.
    pub wait_timeout: Duration,
    /// Time after the last refresh at which an idle account is refreshed.
    pub idle_refresh_after: Duration,
}

/// Credential of an account, as stored.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Credential {
    pub(super) values: Sealed<Values>,
    /// Time at which the token expires, if the provider has stated it.
    #[serde(default)]
    expires_at: Option<Time>,
    /// Time from which the token is refreshed on use.
    #[serde(default)]
    renew_at: Option<Time>,
    /// Time of the last refresh.
    #[serde(default)]
    renewed_at: Option<Time>,
    /// Time at which the token is refreshed even if the account is idle.
    #[serde(default)]
    due: Option<Time>,
    #[serde(default)]
    lease: Option<Lease>,
    /// True if a refresh was started and its outcome is unknown.
    #[serde(default)]
    uncertain: bool,
    /// Number of consecutive refreshes without an answer.
    #[serde(default)]
    failures: u32,
    /// Time before which no refresh is attempted.
    #[serde(default)]
    retry_at: Option<Time>,
}

/// Lease to refresh a token.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Lease {
    /// Name of the server that holds the lease.
    by: String,
    /// Time at which the lease expires.
    until: Time,
}

impl Document for Credential {
    const COLLECTION: &'static Collection = &CREDENTIALS;
}

impl Credential {
    /// Creates a credential that does not expire.
    pub(super) fn new(values: Sealed<Values>) -> Self {
        Self {
            values,
            expires_at: None,
            renew_at: None,
            renewed_at: None,
            due: None,
            lease: None,
            uncertain: false,
            failures: 0,
            retry_at: None,
        }
    }

    /// Sets the expiry to the end of `lifetime` and, if the token is renewable, the times of its
    /// refresh.
    fn with_expiry(
        mut self,
        lifetime: Option<Duration>,
        is_refreshable: bool,
        refresh_times: RefreshTimes,
        now: Time,
    ) -> Self {
        let Some(lifetime) = lifetime else {
            return self;
        };
        let expires_at = time_after(now, lifetime);
        // The jitter spreads the refreshes of accounts that were connected at the same time.
        let margin = jittered(refresh_times.margin.min(lifetime / 4));
        self.expires_at = Some(expires_at);
        if is_refreshable {
            let renew_at = time_after(now, lifetime.saturating_sub(margin));
            self.renew_at = Some(renew_at);
            self.due = Some(renew_at.max(time_after(now, refresh_times.idle)));
        }
        self
    }

    /// Returns true if the token can still be sent.
    fn is_valid(&self, now: Time) -> bool {
        self.expires_at
            .is_none_or(|end| end > time_after(now, EXPIRY_SLACK))
    }

    /// Returns true if a refresh was interrupted.
    pub(super) fn is_uncertain(&self, now: Time) -> bool {
        self.uncertain || self.lease.as_ref().is_some_and(|lease| lease.until <= now)
    }
}

/// Times at which tokens are refreshed.
#[derive(Debug, Clone, Copy)]
struct RefreshTimes {
    /// Time before the expiry.
    margin: Duration,
    /// Time after the last refresh, for an idle account.
    idle: Duration,
}

/// Owner of a token.
#[derive(Clone)]
pub(super) struct TokenOwner {
    pub project: ProjectId,
    pub account: AccountId,
    pub auth_config: AuthConfigId,
    pub release: Arc<Release>,
    pub mode: AuthMode,
}

/// Reason to refresh a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RefreshReason {
    /// The token expires soon.
    ExpiresSoon,
    /// The provider rejects this token.
    Rejected(String),
    /// The account has been idle for a long time.
    Idle,
}

impl RefreshReason {
    fn applies(&self, credential: &Credential, values: &Values, now: Time) -> bool {
        let past = |time: Option<Time>| time.is_some_and(|time| time <= now);
        match self {
            Self::ExpiresSoon => past(credential.renew_at) || !credential.is_valid(now),
            Self::Rejected(token) => {
                let settled = credential
                    .renewed_at
                    .is_none_or(|at| time_after(at, REJECTION_COOLDOWN) <= now);
                settled && access_token(values) == Some(token)
            }
            Self::Idle => past(credential.due),
        }
    }
}

/// This server's client at a provider, with the scopes that it requests.
pub(super) struct ClientContext {
    /// HTTP client for requests to the provider.
    pub net: net::Client,
    pub client: Client,
    pub scopes: Vec<String>,
    /// Scopes with which the provider acts for the user.
    pub user_scopes: Vec<String>,
    /// Redirect URI that replaces this server's own.
    pub redirect_uri: Option<String>,
}

/// Token refresh service; one instance per process.
pub struct TokenManager {
    pub(super) store: Store,
    pub(super) vault: Arc<Vault>,
    pub(super) clock: Clock,
    pub(super) settings: Settings,
    pub(super) metadata: MetadataCache,
    name: String,
    /// Locks of accounts that are being refreshed, so that calls in one process wait in memory.
    account_locks: Mutex<HashMap<String, Weak<AsyncMutex<()>>>>,
}

impl TokenManager {
    pub(crate) fn new(store: Store, vault: Arc<Vault>, clock: Clock, settings: Settings) -> Self {
        let name = ids::random_text(12);
        Self {
            store,
            vault,
            clock,
            settings,
            metadata: MetadataCache::default(),
            name,
            account_locks: Mutex::default(),
        }
    }

    /// Returns the values of an account with a usable token. Refreshes the token first if
    /// necessary.
    pub(super) async fn fresh_values(
        self: &Arc<Self>,
        owner: &TokenOwner,
        reason: RefreshReason,
    ) -> Result<Values> {
        let record = self.credential(owner).await?;
        let values = self.open(owner, &record).await?;
        let now = self.clock.now();
        if !reason.applies(&record.body, &values, now) {
            return Ok(values);
        }
        let lock = self.account_lock(&owner.account);
        let (guard, still_valid) = if reason == RefreshReason::ExpiresSoon
            && record.body.is_valid(now)
        {
            match lock.try_lock_owned() {
                Ok(guard) => (guard, Some(values)),
                // Another task is refreshing the token, and the current token is still valid.
                Err(_) => return Ok(values),
            }
        } else {
            let waited = tokio::time::timeout(self.settings.wait_timeout, lock.lock_owned()).await;
            (
                waited.map_err(|_| Error::RefreshInProgress(owner.account.to_string()))?,
                None,
            )
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "a new token must not be lost if its caller disconnects; it is awaited"
        )]
        let refreshing_task =
            tokio::spawn(self.clone().refresh_and_log(owner.clone(), reason, guard));
        if let Some(values) = still_valid {
            return Ok(values);
        }
        match tokio::time::timeout(self.settings.wait_timeout, refreshing_task).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(Error::Internal(
                "the task that refreshes a token has panicked".into(),
            )),
            Err(_) => Err(Error::RefreshInProgress(owner.account.to_string())),
        }
    }

    async fn refresh_and_log(
        self: Arc<Self>,
        owner: TokenOwner,
        reason: RefreshReason,
        _guard: OwnedMutexGuard<()>,
    ) -> Result<Values> {
        let done = self.refresh_under_lease(&owner, &reason).await;
        if let Err(cause) = &done {
            tracing::debug!(account = %owner.account, %cause, "a token was not refreshed");
        }
        done
    }

    /// Takes the lease and refreshes the token, unless another server has done so or is doing so.
    async fn refresh_under_lease(
        &self,
        owner: &TokenOwner,
        reason: &RefreshReason,
    ) -> Result<Values> {
        loop {
            let now = self.now().await?;
            let mut record = self.credential(owner).await?;
            let values = self.open(owner, &record).await?;
            if !reason.applies(&record.body, &values, now) {
                return Ok(values);
            }
            let still_valid = *reason == RefreshReason::ExpiresSoon && record.body.is_valid(now);
            if record
                .body
                .lease
                .as_ref()
                .is_some_and(|lease| lease.until > now)
            {
                if still_valid {
                    return Ok(values);
                }
                tokio::time::sleep(POLL_INTERVAL).await;
                continue;
            }
            if let Some(until) = record.body.retry_at.filter(|until| *until > now) {
                return if still_valid {
                    Ok(values)
                } else {
                    Err(refresh_unavailable(owner, until, now))
                };
            }
            if !projects::is_live(&self.store, owner.project.as_str()).await? {
                return Err(Error::ProjectNotFound(owner.project.to_string()));
            }
            // An earlier refresh may have ended the account.
            let account = self.account(owner).await?.body.status;
            if !account.is_connected() {
                let state = account.as_str().to_owned();
                return Err(Error::AccountNotActive {
                    account: owner.account.to_string(),
                    state,
                });
            }
            if !self.is_refreshable(owner.scheme()?, &values) {
                return self.expire(owner, record, "token_expired").await;
            }
            record.body.uncertain = record.body.is_uncertain(now);
            record.body.lease = Some(Lease {
                by: self.name.clone(),
                until: time_after(now, self.settings.lease_ttl),
            });
            match self.store.commit(Batch::at(now).update(&record)).await {
                Ok(()) => record.revision += 1,
                Err(CommitError::Stale) => continue,
                Err(cause) => return Err(cause.into()),
            }
            return self
                .request_tokens(owner, record, values, still_valid)
                .await;
        }
    }

    /// Requests a new token from the provider, under the lease.
    async fn request_tokens(
        &self,
        owner: &TokenOwner,
        leased: Record<Credential>,
        values: Values,
        still_valid: bool,
    ) -> Result<Values> {
        let refreshing = async {
            let scheme = owner.scheme()?;
            let config =
                auth_configs::find_in(&self.store, &owner.project, &owner.auth_config).await?;
            let config =
                config.ok_or_else(|| Error::AuthConfigNotFound(owner.auth_config.to_string()))?;
            let context = self.client_context(&owner.project, &config).await?;
            let client = &context.client;
            let flow = Flow {
                net: &context.net,
                now_ms: self.clock.now().0,
                scheme,
                client,
                values: &values,
            };
            let request = async {
                let scheme = self.metadata.resolve(&flow).await?;
                let flow = Flow {
                    scheme: &scheme,
                    ..flow
                };
                if flow.can_refresh() {
                    flow.refresh().await
                } else {
                    flow.obtain(&context.scopes).await
                }
            };
            Ok(request.await)
        };
        let is_dynamic_client =
            owner.mode == AuthMode::DcrOauth && values.contains_key("client_id");
        let outcome: Result<std::result::Result<Tokens, Refusal>> = refreshing.await;
        let (reason, retry_after) = match outcome {
            Ok(Ok(tokens)) => return self.store_tokens(owner, leased, values, tokens).await,
            // A client that this server registered cannot be repaired: the next connection
            // registers another one.
            Ok(Err(refusal))
                if refusal.ends_account() || (is_dynamic_client && refusal.is_invalid_client()) =>
            {
                if is_dynamic_client && refusal.is_invalid_client() {
                    self.delete_rejected_client(&owner.project, &owner.auth_config, &values)
                        .await?;
                }
                let reason = if leased.body.uncertain {
                    OUTCOME_UNKNOWN_REASON.to_owned()
                } else {
                    refusal.to_string()
                };
                return self.expire(owner, leased, &reason).await;
            }
            Ok(Err(Refusal::Unavailable {
                reason,
                retry_after,
            })) => (reason, retry_after),
            Ok(Err(refusal)) => (refusal.to_string(), None),
            Err(cause) => (cause.to_string(), None),
        };
        let now = self.now().await?;
        let delay = MIN_RETRY_DELAY
            .saturating_mul(1 << leased.body.failures.min(10))
            .min(MAX_RETRY_DELAY);
        let until = time_after(
            now,
            jittered(delay).max(retry_after.unwrap_or_default().min(MAX_RETRY_DELAY)),
        );
        tracing::info!(account = %owner.account, reason, "a provider did not refresh a token; the refresh is retried");
        let body = Credential {
            lease: None,
            uncertain: true,
            failures: leased.body.failures.saturating_add(1),
            due: leased.body.due.map(|due| due.max(until)),
            retry_at: Some(until),
            ..leased.body
        };
        match self
            .store
            .commit(Batch::at(now).update(&Record { body, ..leased }))
            .await
        {
            Ok(()) | Err(CommitError::Stale) if still_valid => Ok(values),
            Ok(()) | Err(CommitError::Stale) => Err(refresh_unavailable(owner, until, now)),
            Err(cause) => Err(cause.into()),
        }
    }

    /// Stores new tokens and retries for the duration of the lease, because a lost refresh token
    /// ends the account.
    async fn store_tokens(
        &self,
        owner: &TokenOwner,
        leased: Record<Credential>,
        old: Values,
        tokens: Tokens,
    ) -> Result<Values> {
        let now = self.now().await?;
        // A response without a refresh token keeps the old one (RFC 6749, section 6). A response
        // without a lifetime clears the old lifetime.
        let mut values = old;
        values.remove("expires_in");
        values.extend(tokens.values);
        let sealed = self.seal(&owner.project, &owner.account, &values).await?;
        let scheme = owner.scheme()?;
        let credential = Credential::new(sealed);
        let renewed = Credential {
            renewed_at: Some(now),
            ..credential
        };
        let body = renewed.with_expiry(
            tokens.lifetime,
            self.is_refreshable(scheme, &values),
            self.refresh_times(scheme),
            now,
        );
        let record = Record { body, ..leased };
        loop {
            match self.store.commit(Batch::at(now).update(&record)).await {
                Ok(()) => return Ok(values),
                Err(CommitError::Stale) => return self.resolve_lost_lease(owner, values).await,
                Err(cause) if time_after(now, self.settings.lease_ttl) <= self.clock.now() => {
                    return Err(cause.into());
                }
                Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }

    /// Handles a stale lease. If the account still exists, its stored values are returned. If it
    /// was deleted, the new tokens are revoked.
    async fn resolve_lost_lease(&self, owner: &TokenOwner, new_values: Values) -> Result<Values> {
        match self.credential(owner).await {
            Ok(record) => self.open(owner, &record).await,
            Err(cause) => {
                self.revoke_best_effort(owner, &new_values).await;
                Err(cause)
            }
        }
    }

    /// Ends an account whose token cannot be refreshed, unless another server has refreshed it
    /// meanwhile.
    async fn expire(
        &self,
        owner: &TokenOwner,
        leased: Record<Credential>,
        reason: &str,
    ) -> Result<Values> {
        let expired = self
            .store
            .change(&COLLECTION, owner.account.as_str(), || async {
                let now = self.now().await?;
                let current = self.credential(owner).await?;
                if current.revision != leased.revision {
                    return Ok((Batch::at(now), Some(self.open(owner, &current).await?)));
                }
                let mut account = self.account(owner).await?;
                let body = Credential {
                    lease: None,
                    due: None,
                    ..current.body
                };
                let mut batch = Batch::at(now).update(&Record { body, ..current });
                if let Some(status) = account.body.status.after(Event::RefreshFailed) {
                    account.body.set_status(status, Some(reason), now);
                    batch = batch.update(&account);
                }
                Ok::<_, Error>((batch, None))
            });
        let renewed = expired.await?;
        let state = Status::Expired.as_str().to_owned();
        renewed.ok_or_else(|| Error::AccountNotActive {
            account: owner.account.to_string(),
            state,
        })
    }

    /// Revokes tokens at the provider. A failure is only logged.
    pub(super) async fn revoke_best_effort(&self, owner: &TokenOwner, values: &Values) {
        if let Err(cause) = self.revoke(owner, values).await {
            tracing::warn!(account = %owner.account, %cause, "tokens were not revoked at the provider");
        }
    }

    /// Revokes tokens at the provider and returns the revoked ones.
    pub(super) async fn revoke(
        &self,
        owner: &TokenOwner,
        values: &Values,
    ) -> Result<Vec<RevokedToken>> {
        let config = auth_configs::find_in(&self.store, &owner.project, &owner.auth_config).await?;
        // The client at the provider is unknown without its auth config.
        let Some(config) = config else {
            return Ok(Vec::new());
        };
        let scheme = owner.scheme()?;
        let context = self.client_context(&owner.project, &config).await?;
        let flow = Flow {
            net: &context.net,
            now_ms: self.clock.now().0,
            scheme,
            client: &context.client,
            values,
        };
        let request = async {
            let scheme = self.metadata.resolve(&flow).await?;
            Flow {
                scheme: &scheme,
                ..flow
            }
            .revoke()
            .await
        };
        match request.await {
            Ok(()) => Ok(REVOCABLE_TOKENS
                .into_iter()
                .filter(|(name, _)| values.contains_key(*name))
                .map(|(_, token)| token)
                .collect()),
            // The provider has no revocation endpoint.
            Err(Refusal::Unsent { .. }) => Ok(Vec::new()),
            Err(refusal) => Err(Error::Unavailable(refusal.to_string())),
        }
    }

    /// Returns this server's client at the provider of an auth config.
    pub(super) async fn client_context(
        &self,
        project: &ProjectId,
        config: &Record<AuthConfig>,
    ) -> Result<ClientContext> {
        let now = self.clock.now();
        let credentials = auth_configs::open_credentials(&self.vault, project, config, now).await?;
        let net = self.settings.net.with_proxy(credentials.net_proxy()?);
        let own = credentials.own;
        let redirect_uri = own
            .get("oauth_redirect_uri")
            .and_then(|value| value.as_str());
        let redirect_uri = redirect_uri
            .filter(|text| !text.is_empty())
            .map(str::to_owned);
        let mut scopes = auth_configs::scopes(&own, "scopes");
        let user_scopes = auth_configs::scopes(&own, "user_scopes");
        let client = if config.body.managed {
            let app = oauth_apps::find(&self.store, &config.body.toolkit).await?;
            let app = app.ok_or_else(|| Error::NoManagedAuth(config.body.toolkit.clone()))?;
            scopes.extend(app.body.scopes.iter().cloned());
            let secret = oauth_apps::secret(&self.vault, &app, now).await?;
            let secret = (!secret.is_empty()).then(|| secret.into());
            Client {
                id: app.body.client_id,
                secret,
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
        })
    }

    /// Builds the credential of a connected account.
    pub(super) async fn build_credential(
        &self,
        project: &ProjectId,
        account: &AccountId,
        scheme: Option<&AuthScheme>,
        values: &Values,
        lifetime: Option<Duration>,
    ) -> Result<Credential> {
        let credential = Credential::new(self.seal(project, account, values).await?);
        let Some(scheme) = scheme.filter(|scheme| scheme.mode.has_flow()) else {
            return Ok(credential);
        };
        let is_refreshable = self.is_refreshable(scheme, values);
        Ok(credential.with_expiry(
            lifetime,
            is_refreshable,
            self.refresh_times(scheme),
            self.clock.now(),
        ))
    }

    /// Obtains tokens from field values, in a mode without a browser. Returns the values with the
    /// tokens, and the lifetime of the tokens.
    pub(super) async fn obtain(
        &self,
        project: &ProjectId,
        config: &Record<AuthConfig>,
        scheme: &AuthScheme,
        mut values: Values,
    ) -> Result<(Values, Option<Duration>)> {
        let context = self.client_context(project, config).await?;
        let flow = Flow {
            net: &context.net,
            now_ms: self.clock.now().0,
            scheme,
            client: &context.client,
            values: &values,
        };
        let request = async {
            let scheme = self.metadata.resolve(&flow).await?;
            Flow {
                scheme: &scheme,
                ..flow
            }
            .obtain(&context.scopes)
            .await
        };
        let tokens = request.await.map_err(|refusal| match refusal {
            Refusal::Unavailable { .. } => Error::Unavailable(refusal.to_string()),
            refusal => Error::CredentialRejected(refusal.to_string()),
        })?;
        values.extend(tokens.values);
        Ok((values, tokens.lifetime))
    }

    /// Returns true if the tokens can be refreshed without the user.
    fn is_refreshable(&self, scheme: &AuthScheme, values: &Values) -> bool {
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

    fn refresh_times(&self, scheme: &AuthScheme) -> RefreshTimes {
        RefreshTimes {
            margin: refresh_margin(scheme, self.settings.refresh_margin),
            idle: self.settings.idle_refresh_after,
        }
    }

    pub(super) async fn seal(
        &self,
        project: &ProjectId,
        account: &AccountId,
        values: &Values,
    ) -> Result<Sealed<Values>> {
        self.vault
            .key(project.as_str(), self.clock.now())
            .await?
            .seal(seal_context(project, account.as_str()), values)
    }

    /// Returns the current time. All servers that share the store agree on it.
    pub(super) async fn now(&self) -> Result<Time> {
        Ok(self.store.now().await?.unwrap_or_else(|| self.clock.now()))
    }

    async fn account(&self, owner: &TokenOwner) -> Result<Record<Account>> {
        let found = self
            .store
            .get(owner.project.as_str(), owner.account.as_str())
            .await?;
        found.ok_or_else(|| Error::AccountNotFound(owner.account.to_string()))
    }

    async fn credential(&self, owner: &TokenOwner) -> Result<Record<Credential>> {
        let found = self
            .store
            .get(owner.project.as_str(), owner.account.as_str())
            .await?;
        found.ok_or_else(|| Error::AccountNotFound(owner.account.to_string()))
    }

    async fn open(&self, owner: &TokenOwner, record: &Record<Credential>) -> Result<Values> {
        let key = self
            .vault
            .key(owner.project.as_str(), self.clock.now())
            .await?;
        key.open(
            seal_context(&owner.project, &record.id),
            &record.body.values,
        )
    }

    fn account_lock(&self, account: &AccountId) -> Arc<AsyncMutex<()>> {
        let mut locks = self
            .account_locks
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(account.as_str()).and_then(Weak::upgrade) {
            return lock;
        }
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::new(AsyncMutex::new(()));
        locks.insert(account.as_str().to_owned(), Arc::downgrade(&lock));
        lock
    }
}

impl TokenOwner {
    /// Identifies the token of an account. Fails if the account's toolkit no longer exists.
    pub(super) fn for_account(
        app: &App,
        project: &Project,
        record: &Record<Account>,
    ) -> Result<Self> {
        Ok(Self {
            project: project.id.clone(),
            account: AccountId::parse(&record.id)?,
            auth_config: record.body.auth_config.clone(),
            release: app.catalog.release(&record.body.toolkit, LATEST)?,
            mode: record.body.scheme,
        })
    }

    pub(super) fn scheme(&self) -> Result<&AuthScheme> {
        self.release.scheme(self.mode).ok_or_else(|| {
            let toolkit = self.release.slug.to_string();
            let scheme = self.mode.as_str().to_owned();
            Error::SchemeNotOffered { toolkit, scheme }
        })
    }
}

/// Refreshes accounts that have been idle for a long time, so that their refresh tokens do not
/// expire unused.
pub(crate) async fn refresh_idle(app: &App, lease: &JobLease) -> Result<()> {
    let now = app.accounts.now().await?;
    let query = Query::all_projects()
        .below("due", now.0.saturating_add(1))
        .order_by("due")
        .page(0, IDLE_REFRESH_BATCH_SIZE);
    let mut refreshing = JoinSet::new();
    for record in app.store.find::<Credential>(&query).await?.records {
        let account = if projects::is_live(&app.store, &record.project).await? {
            app.store
                .get::<Account>(&record.project, &record.id)
                .await?
        } else {
            None
        };
        let release = account
            .as_ref()
            .and_then(|account| app.catalog.release(&account.body.toolkit, LATEST).ok());
        match (account, release) {
            (Some(account), Some(release)) if account.body.status == Status::Active => {
                let owner = TokenOwner {
                    project: ProjectId::parse(&record.project)?,
                    account: AccountId::parse(&record.id)?,
                    auth_config: account.body.auth_config,
                    release,
                    mode: account.body.scheme,
                };
                if refreshing.len() >= IDLE_REFRESH_CONCURRENCY {
                    refreshing.join_next().await;
                }
                let manager = app.accounts.clone();
                // Failures are stored with the account and logged.
                refreshing.spawn(async move {
                    manager
                        .fresh_values(&owner, RefreshReason::Idle)
                        .await
                        .is_ok()
                });
            }
            _ => {
                let body = Credential {
                    due: None,
                    ..record.body
                };
                match app
                    .store
                    .commit(lease.fence(Batch::at(now).update(&Record { body, ..record })))
                    .await
                {
                    Ok(()) | Err(CommitError::Stale) => {}
                    Err(cause) => return Err(cause.into()),
                }
            }
        }
    }
    while refreshing.join_next().await.is_some() {}
    Ok(())
}

/// Returns the time before the expiry at which tokens of a scheme are refreshed.
fn refresh_margin(scheme: &AuthScheme, usual: Duration) -> Duration {
    let own = scheme.oauth2.as_ref().and_then(|flow| flow.refresh_margin);
    own.map_or(usual, |seconds| Duration::from_secs(seconds.into()))
}

/// Returns true if tokens of a mode can be obtained from field values at any time.
pub(super) fn obtains_from_fields(mode: AuthMode) -> bool {
    mode.has_flow() && !mode.redirects()
}

pub(super) fn access_token(values: &Values) -> Option<&String> {
    match values.get(manifest::ACCESS_TOKEN) {
        Some(serde_json::Value::String(token)) => Some(token),
        _ => None,
    }
}

pub(super) fn seal_context<'a>(project: &'a ProjectId, id: &'a str) -> SealContext<'a> {
    SealContext {
        collection: CREDENTIALS_NAME,
        project: project.as_str(),
        id,
        field: "values",
    }
}

fn refresh_unavailable(owner: &TokenOwner, until: Time, now: Time) -> Error {
    let retry_after =
        Duration::from_millis(u64::try_from(until.0.saturating_sub(now.0)).unwrap_or(0));
    Error::RefreshUnavailable {
        account: owner.account.to_string(),
        retry_after,
    }
}

/// Returns a random duration between four fifths and six fifths of `time`.
fn jittered(time: Duration) -> Duration {
    let [byte] = ids::random::<1>();
    time * 4 / 5 + time * 2 / 5 * u32::from(byte) / 255
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(lifetime: u64, margin: u64) -> Credential {
        let sealed = serde_json::from_str("\"v1.a.b\"").unwrap();
        let [lifetime, margin, idle] = [lifetime, margin, 86_400].map(Duration::from_secs);
        Credential::new(sealed).with_expiry(
            Some(lifetime),
            true,
            RefreshTimes { margin, idle },
            Time(0),
        )
    }

    #[test]
    fn refresh_falls_late_in_token_lifetime() {
        for (lifetime, margin, earliest, latest) in [
            (3_600, 300, 3_240, 3_360),
            (60, 300, 42, 48),
            (600, 0, 600, 600),
        ] {
            for _ in 0..100 {
                let at = token(lifetime, margin).renew_at.unwrap().0 / 1_000;
                assert!(
                    (earliest..=latest).contains(&at),
                    "{lifetime} s with a margin of {margin} s: after {at} s"
                );
            }
        }
    }

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

    #[test]
    fn idle_account_is_refreshed_after_a_day() {
        assert_eq!(token(3_600, 300).due, Some(Time(24 * 3_600_000)));
        assert!(token(60 * 86_400, 300).due.unwrap().0 > 59 * 86_400_000);
    }

    #[test]
    fn pauses_differ_by_a_fifth_at_most() {
        for _ in 0..100 {
            let pause = jittered(Duration::from_secs(100)).as_secs();
            assert!((80..=120).contains(&pause), "{pause}");
        }
    }
}
