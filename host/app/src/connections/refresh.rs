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
use serde::{Deserialize, Serialize};
use store::{Batch, Collection, CommitError, Document, Field, Kind, Query, Record, Store, Time};
use tokio::{
    sync::{Mutex as AsyncMutex, OwnedMutexGuard},
    task::JoinSet,
};

use super::{
    Account, COLLECTION, CREDENTIALS_NAME, Event, Status, Values, apps,
    protocol::{Client, Flow, Issuers, Refusal, Tokens},
};
use crate::{
    App, Clock, Error, Result,
    auth_configs::{self, AuthConfig},
    catalog::{LATEST, Release},
    ids::{self, AccountId, AuthConfigId, ProjectId},
    jobs::Lease as JobLease,
    projects::{self, Project},
    vault::{Place, Sealed, Vault},
};

/// Credentials of accounts, stored under the id of the account and erased with it.
pub(crate) static CREDENTIALS: Collection = Collection {
    name: CREDENTIALS_NAME,
    fields: &[Field::new("due", Kind::Time)],
};

/// Interval of the job that refreshes idle accounts.
pub(crate) const EVERY: Duration = Duration::from_secs(5);
/// Maximum number of idle accounts that one run of the job refreshes.
const IDLE_AT_ONCE: u64 = 50;
/// Concurrency of these refreshes. Several at a time limit the delay that an unresponsive provider
/// causes for the other accounts.
const IDLE_TOGETHER: usize = 8;
/// Interval at which a server checks whether another server has finished its work.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// Remaining lifetime below which a token counts as expired, because a request takes time to
/// arrive.
const SLACK: Duration = Duration::from_secs(5);
/// Time after a refresh in which a rejected token is not refreshed again, because the rejection has
/// another cause.
const SETTLED: Duration = Duration::from_secs(60);
/// First and maximum retry delay after a provider did not answer.
const PAUSES: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(3_600)];

/// Tokens that a provider issues and revokes.
const TOKENS: [&str; 2] = [manifest::ACCESS_TOKEN, "refresh_token"];
/// Status reason of an account whose refresh reached the provider but whose outcome is unknown.
pub(super) const UNKNOWN: &str = "refresh_outcome_unknown";

/// Settings for connecting accounts and refreshing their tokens.
#[derive(Clone)]
pub struct Settings {
    /// HTTP client for requests to authorization servers.
    pub net: net::Client,
    /// Time for which a pending account waits for its user.
    pub pending: Duration,
    /// Time that a user may spend at a provider.
    pub away: Duration,
    /// Time before the expiry at which a token is refreshed. The last quarter of the token's
    /// lifetime applies if that is shorter.
    pub margin: Duration,
    /// Duration of the lease under which a server refreshes a token.
    pub lease: Duration,
    /// Time for which a call waits for a refresh or for a client registration.
    pub wait: Duration,
    /// Time after the last refresh at which an idle account is refreshed.
    pub idle: Duration,
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
    pub(super) fn of(values: Sealed<Values>) -> Self {
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
    fn ending(
        mut self,
        lifetime: Option<Duration>,
        renewable: bool,
        times: Times,
        now: Time,
    ) -> Self {
        let Some(lifetime) = lifetime else {
            return self;
        };
        let expires_at = after(now, lifetime);
        // The jitter spreads the refreshes of accounts that were connected at the same time.
        let margin = jittered(times.margin.min(lifetime / 4));
        self.expires_at = Some(expires_at);
        if renewable {
            let renew_at = after(now, lifetime.saturating_sub(margin));
            self.renew_at = Some(renew_at);
            self.due = Some(renew_at.max(after(now, times.idle)));
        }
        self
    }

    /// Returns true if the token can still be sent.
    fn works(&self, now: Time) -> bool {
        self.expires_at.is_none_or(|end| end > after(now, SLACK))
    }

    /// Returns true if a refresh was interrupted.
    pub(super) fn is_uncertain(&self, now: Time) -> bool {
        self.uncertain || self.lease.as_ref().is_some_and(|lease| lease.until <= now)
    }
}

/// Times at which tokens are refreshed.
#[derive(Debug, Clone, Copy)]
struct Times {
    /// Time before the expiry.
    margin: Duration,
    /// Time after the last refresh, for an idle account.
    idle: Duration,
}

/// Owner of a token.
#[derive(Clone)]
pub(super) struct Whose {
    pub project: ProjectId,
    pub account: AccountId,
    pub auth_config: AuthConfigId,
    pub release: Arc<Release>,
    pub mode: AuthMode,
}

/// Reason to refresh a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Why {
    /// The token expires soon.
    Ending,
    /// The provider rejects this token.
    Rejected(String),
    /// The account has been idle for a long time.
    Idle,
}

impl Why {
    fn holds(&self, credential: &Credential, values: &Values, now: Time) -> bool {
        let past = |time: Option<Time>| time.is_some_and(|time| time <= now);
        match self {
            Self::Ending => past(credential.renew_at) || !credential.works(now),
            Self::Rejected(token) => {
                let settled = credential
                    .renewed_at
                    .is_none_or(|at| after(at, SETTLED) <= now);
                settled && access_token(values) == Some(token)
            }
            Self::Idle => past(credential.due),
        }
    }
}

/// This server's client at a provider, with the scopes that it requests.
pub(super) struct Standing {
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
pub struct Keeper {
    pub(super) store: Store,
    pub(super) vault: Arc<Vault>,
    pub(super) clock: Clock,
    pub(super) settings: Settings,
    pub(super) issuers: Issuers,
    name: String,
    /// Locks of accounts that are being refreshed, so that calls in one process wait in memory.
    busy: Mutex<HashMap<String, Weak<AsyncMutex<()>>>>,
}

impl Keeper {
    pub(crate) fn new(store: Store, vault: Arc<Vault>, clock: Clock, settings: Settings) -> Self {
        let name = ids::random_text(12);
        Self {
            store,
            vault,
            clock,
            settings,
            issuers: Issuers::default(),
            name,
            busy: Mutex::default(),
        }
    }

    /// Returns the values of an account with a usable token. Refreshes the token first if
    /// necessary.
    pub(super) async fn fresh(self: &Arc<Self>, whose: &Whose, why: Why) -> Result<Values> {
        let record = self.credential(whose).await?;
        let values = self.open(whose, &record).await?;
        let now = self.clock.now();
        if !why.holds(&record.body, &values, now) {
            return Ok(values);
        }
        let place = self.place(&whose.account);
        let (guard, spare) = if why == Why::Ending && record.body.works(now) {
            match place.try_lock_owned() {
                Ok(guard) => (guard, Some(values)),
                // Another task is refreshing the token, and the current token is still valid.
                Err(_) => return Ok(values),
            }
        } else {
            let waited = tokio::time::timeout(self.settings.wait, place.lock_owned()).await;
            (
                waited.map_err(|_| Error::RefreshInProgress(whose.account.to_string()))?,
                None,
            )
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "a new token must not be lost with whoever asked for it; it is awaited"
        )]
        let renewing = tokio::spawn(self.clone().held(whose.clone(), why, guard));
        if let Some(values) = spare {
            return Ok(values);
        }
        match tokio::time::timeout(self.settings.wait, renewing).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(Error::Internal("a refresh has panicked".into())),
            Err(_) => Err(Error::RefreshInProgress(whose.account.to_string())),
        }
    }

    async fn held(
        self: Arc<Self>,
        whose: Whose,
        why: Why,
        _place: OwnedMutexGuard<()>,
    ) -> Result<Values> {
        let done = self.turn(&whose, &why).await;
        if let Err(cause) = &done {
            tracing::debug!(account = %whose.account, %cause, "a token was not renewed");
        }
        done
    }

    /// Takes the lease and refreshes the token, unless another server has done so or is doing so.
    async fn turn(&self, whose: &Whose, why: &Why) -> Result<Values> {
        loop {
            let now = self.now().await?;
            let mut record = self.credential(whose).await?;
            let values = self.open(whose, &record).await?;
            if !why.holds(&record.body, &values, now) {
                return Ok(values);
            }
            let spare = *why == Why::Ending && record.body.works(now);
            if record
                .body
                .lease
                .as_ref()
                .is_some_and(|lease| lease.until > now)
            {
                if spare {
                    return Ok(values);
                }
                tokio::time::sleep(LOOK).await;
                continue;
            }
            if let Some(until) = record.body.retry_at.filter(|until| *until > now) {
                return if spare {
                    Ok(values)
                } else {
                    Err(away(whose, until, now))
                };
            }
            if !projects::is_live(&self.store, whose.project.as_str()).await? {
                return Err(Error::ProjectNotFound(whose.project.to_string()));
            }
            // An earlier refresh may have ended the account.
            let account = self.account(whose).await?.body.status;
            if !account.is_connected() {
                let state = account.as_str().to_owned();
                return Err(Error::AccountNotActive {
                    account: whose.account.to_string(),
                    state,
                });
            }
            if !self.is_renewable(whose.scheme()?, &values) {
                return self.lapse(whose, record, "token_expired").await;
            }
            record.body.uncertain = record.body.is_uncertain(now);
            record.body.lease = Some(Lease {
                by: self.name.clone(),
                until: after(now, self.settings.lease),
            });
            match self.store.commit(Batch::at(now).update(&record)).await {
                Ok(()) => record.revision += 1,
                Err(CommitError::Stale) => continue,
                Err(cause) => return Err(cause.into()),
            }
            return self.renew(whose, record, values, spare).await;
        }
    }

    /// Requests a new token from the provider, under the lease.
    async fn renew(
        &self,
        whose: &Whose,
        held: Record<Credential>,
        values: Values,
        spare: bool,
    ) -> Result<Values> {
        let asked = async {
            let scheme = whose.scheme()?;
            let config =
                auth_configs::find_in(&self.store, &whose.project, &whose.auth_config).await?;
            let config =
                config.ok_or_else(|| Error::AuthConfigNotFound(whose.auth_config.to_string()))?;
            let standing = self.standing(&whose.project, &config).await?;
            let client = &standing.client;
            let flow = Flow {
                net: &standing.net,
                now: self.clock.now(),
                scheme,
                client,
                values: &values,
            };
            let asked = async {
                let scheme = self.issuers.described(&flow).await?;
                let flow = Flow {
                    scheme: &scheme,
                    ..flow
                };
                if flow.refreshes() {
                    flow.refresh().await
                } else {
                    flow.obtain(&standing.scopes).await
                }
            };
            Ok(asked.await)
        };
        let made = whose.mode == AuthMode::DcrOauth && values.contains_key("client_id");
        let answered: Result<std::result::Result<Tokens, Refusal>> = asked.await;
        let (why, wanted) = match answered {
            Ok(Ok(tokens)) => return self.keep(whose, held, values, tokens).await,
            // A client that this server registered cannot be repaired: the next connection
            // registers another one.
            Ok(Err(refusal)) if refusal.ends_account() || (made && refusal.is_of_client()) => {
                if made && refusal.is_of_client() {
                    self.forget_client(&whose.project, &whose.auth_config, &values)
                        .await?;
                }
                let reason = if held.body.uncertain {
                    UNKNOWN.to_owned()
                } else {
                    refusal.to_string()
                };
                return self.lapse(whose, held, &reason).await;
            }
            Ok(Err(Refusal::Unavailable {
                reason,
                retry_after,
            })) => (reason, retry_after),
            Ok(Err(refusal)) => (refusal.to_string(), None),
            Err(cause) => (cause.to_string(), None),
        };
        let now = self.now().await?;
        let pause = PAUSES[0]
            .saturating_mul(1 << held.body.failures.min(10))
            .min(PAUSES[1]);
        let until = after(
            now,
            jittered(pause).max(wanted.unwrap_or_default().min(PAUSES[1])),
        );
        tracing::info!(account = %whose.account, why, "an application did not renew a token; it is asked again later");
        let body = Credential {
            lease: None,
            uncertain: true,
            failures: held.body.failures.saturating_add(1),
            due: held.body.due.map(|due| due.max(until)),
            retry_at: Some(until),
            ..held.body
        };
        match self
            .store
            .commit(Batch::at(now).update(&Record { body, ..held }))
            .await
        {
            Ok(()) | Err(CommitError::Stale) if spare => Ok(values),
            Ok(()) | Err(CommitError::Stale) => Err(away(whose, until, now)),
            Err(cause) => Err(cause.into()),
        }
    }

    /// Stores new tokens and retries for the duration of the lease, because a lost refresh token
    /// ends the account.
    async fn keep(
        &self,
        whose: &Whose,
        held: Record<Credential>,
        old: Values,
        tokens: Tokens,
    ) -> Result<Values> {
        let now = self.now().await?;
        // A response without a refresh token keeps the old one (RFC 6749, section 6). A response
        // without a lifetime clears the old lifetime.
        let mut values = old;
        values.remove("expires_in");
        values.extend(tokens.values);
        let sealed = self.seal(&whose.project, &whose.account, &values).await?;
        let (scheme, credential) = (whose.scheme()?, Credential::of(sealed));
        let renewed = Credential {
            renewed_at: Some(now),
            ..credential
        };
        let body = renewed.ending(
            tokens.lifetime,
            self.is_renewable(scheme, &values),
            self.times(scheme),
            now,
        );
        let record = Record { body, ..held };
        loop {
            match self.store.commit(Batch::at(now).update(&record)).await {
                Ok(()) => return Ok(values),
                Err(CommitError::Stale) => return self.lost(whose, values).await,
                Err(cause) if after(now, self.settings.lease) <= self.clock.now() => {
                    return Err(cause.into());
                }
                Err(_) => tokio::time::sleep(LOOK).await,
            }
        }
    }

    /// Handles a stale lease. If the account still exists, its stored values are returned. If it
    /// was deleted, the new tokens are revoked.
    async fn lost(&self, whose: &Whose, brought: Values) -> Result<Values> {
        match self.credential(whose).await {
            Ok(record) => self.open(whose, &record).await,
            Err(cause) => {
                self.give_back(whose, &brought).await;
                Err(cause)
            }
        }
    }

    /// Ends an account whose token cannot be refreshed, unless another server has refreshed it
    /// meanwhile.
    async fn lapse(&self, whose: &Whose, held: Record<Credential>, reason: &str) -> Result<Values> {
        let lapsed = self
            .store
            .change(&COLLECTION, whose.account.as_str(), || async {
                let now = self.now().await?;
                let current = self.credential(whose).await?;
                if current.revision != held.revision {
                    return Ok((Batch::at(now), Some(self.open(whose, &current).await?)));
                }
                let mut account = self.account(whose).await?;
                let body = Credential {
                    lease: None,
                    due: None,
                    ..current.body
                };
                let mut batch = Batch::at(now).update(&Record { body, ..current });
                if let Some(status) = account.body.status.after(Event::Lapsed) {
                    account.body.pass_to(status, Some(reason), now);
                    batch = batch.update(&account);
                }
                Ok::<_, Error>((batch, None))
            });
        let renewed = lapsed.await?;
        let state = Status::Expired.as_str().to_owned();
        renewed.ok_or_else(|| Error::AccountNotActive {
            account: whose.account.to_string(),
            state,
        })
    }

    /// Revokes tokens at the provider. A failure is only logged.
    pub(super) async fn give_back(&self, whose: &Whose, values: &Values) {
        if let Err(cause) = self.revoke(whose, values).await {
            tracing::warn!(account = %whose.account, %cause, "an application was not told to forget tokens");
        }
    }

    /// Revokes tokens at the provider and returns the names of the revoked tokens.
    pub(super) async fn revoke(&self, whose: &Whose, values: &Values) -> Result<Vec<&'static str>> {
        let config = auth_configs::find_in(&self.store, &whose.project, &whose.auth_config).await?;
        // The client at the provider is unknown without its auth config.
        let Some(config) = config else {
            return Ok(Vec::new());
        };
        let (scheme, standing) = (
            whose.scheme()?,
            self.standing(&whose.project, &config).await?,
        );
        let flow = Flow {
            net: &standing.net,
            now: self.clock.now(),
            scheme,
            client: &standing.client,
            values,
        };
        let asked = async {
            let scheme = self.issuers.described(&flow).await?;
            Flow {
                scheme: &scheme,
                ..flow
            }
            .revoke()
            .await
        };
        match asked.await {
            Ok(()) => Ok(TOKENS
                .into_iter()
                .filter(|name| values.contains_key(*name))
                .collect()),
            // The provider has no revocation endpoint.
            Err(Refusal::Unsent { .. }) => Ok(Vec::new()),
            Err(refusal) => Err(Error::Unavailable(refusal.to_string())),
        }
    }

    /// Returns this server's client at the provider of an auth config.
    pub(super) async fn standing(
        &self,
        project: &ProjectId,
        config: &Record<AuthConfig>,
    ) -> Result<Standing> {
        let now = self.clock.now();
        let credentials = auth_configs::open(&self.vault, project, config, now).await?;
        let net = self.settings.net.through(credentials.way()?);
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
            let app = apps::find(&self.store, &config.body.toolkit).await?;
            let app = app.ok_or_else(|| Error::NoManagedAuth(config.body.toolkit.clone()))?;
            scopes.extend(app.body.scopes.iter().cloned());
            let secret = apps::secret(&self.vault, &app, now).await?;
            let secret = (!secret.is_empty()).then(|| secret.into());
            Client {
                id: app.body.client_id,
                secret,
                ..Client::default()
            }
        } else {
            // Some providers identify only the account, not a client.
            Client::of(&own).unwrap_or_default()
        };
        Ok(Standing {
            net,
            client,
            scopes,
            user_scopes,
            redirect_uri,
        })
    }

    /// Builds the credential of a connected account.
    pub(super) async fn connected(
        &self,
        project: &ProjectId,
        account: &AccountId,
        scheme: Option<&AuthScheme>,
        values: &Values,
        lifetime: Option<Duration>,
    ) -> Result<Credential> {
        let credential = Credential::of(self.seal(project, account, values).await?);
        let Some(scheme) = scheme.filter(|scheme| scheme.mode.has_flow()) else {
            return Ok(credential);
        };
        let renewable = self.is_renewable(scheme, values);
        Ok(credential.ending(lifetime, renewable, self.times(scheme), self.clock.now()))
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
        let standing = self.standing(project, config).await?;
        let flow = Flow {
            net: &standing.net,
            now: self.clock.now(),
            scheme,
            client: &standing.client,
            values: &values,
        };
        let asked = async {
            let scheme = self.issuers.described(&flow).await?;
            Flow {
                scheme: &scheme,
                ..flow
            }
            .obtain(&standing.scopes)
            .await
        };
        let tokens = asked.await.map_err(|refusal| match refusal {
            Refusal::Unavailable { .. } => Error::Unavailable(refusal.to_string()),
            refusal => Error::CredentialRejected(refusal.to_string()),
        })?;
        values.extend(tokens.values);
        Ok((values, tokens.lifetime))
    }

    /// Returns true if the tokens can be refreshed without the user.
    fn is_renewable(&self, scheme: &AuthScheme, values: &Values) -> bool {
        let client = Client::default();
        let flow = Flow {
            net: &self.settings.net,
            now: self.clock.now(),
            scheme,
            client: &client,
            values,
        };
        flow.refreshes() || obtains(scheme.mode)
    }

    fn times(&self, scheme: &AuthScheme) -> Times {
        Times {
            margin: margin(scheme, self.settings.margin),
            idle: self.settings.idle,
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
            .seal(place(project, account.as_str()), values)
    }

    /// Returns the current time. All servers that share the store agree on it.
    pub(super) async fn now(&self) -> Result<Time> {
        Ok(self.store.now().await?.unwrap_or_else(|| self.clock.now()))
    }

    async fn account(&self, whose: &Whose) -> Result<Record<Account>> {
        let found = self
            .store
            .get(whose.project.as_str(), whose.account.as_str())
            .await?;
        found.ok_or_else(|| Error::AccountNotFound(whose.account.to_string()))
    }

    async fn credential(&self, whose: &Whose) -> Result<Record<Credential>> {
        let found = self
            .store
            .get(whose.project.as_str(), whose.account.as_str())
            .await?;
        found.ok_or_else(|| Error::AccountNotFound(whose.account.to_string()))
    }

    async fn open(&self, whose: &Whose, record: &Record<Credential>) -> Result<Values> {
        let key = self
            .vault
            .key(whose.project.as_str(), self.clock.now())
            .await?;
        key.open(place(&whose.project, &record.id), &record.body.values)
    }

    fn place(&self, account: &AccountId) -> Arc<AsyncMutex<()>> {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = busy.get(account.as_str()).and_then(Weak::upgrade) {
            return place;
        }
        busy.retain(|_, place| place.strong_count() > 0);
        let place = Arc::new(AsyncMutex::new(()));
        busy.insert(account.as_str().to_owned(), Arc::downgrade(&place));
        place
    }
}

impl Whose {
    /// Identifies the token of an account. Fails if the account's toolkit no longer exists.
    pub(super) fn of(app: &App, project: &Project, record: &Record<Account>) -> Result<Self> {
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
            let (toolkit, scheme) = (self.release.slug.to_string(), self.mode.as_str().to_owned());
            Error::SchemeNotOffered { toolkit, scheme }
        })
    }
}

/// Refreshes accounts that have been idle for a long time, so that their refresh tokens do not
/// expire unused.
pub(crate) async fn idle(app: &App, lease: &JobLease) -> Result<()> {
    let now = app.accounts.now().await?;
    let query = Query::everywhere()
        .below("due", now.0.saturating_add(1))
        .by("due")
        .page(0, IDLE_AT_ONCE);
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
                let whose = Whose {
                    project: ProjectId::parse(&record.project)?,
                    account: AccountId::parse(&record.id)?,
                    auth_config: account.body.auth_config,
                    release,
                    mode: account.body.scheme,
                };
                if refreshing.len() >= IDLE_TOGETHER {
                    refreshing.join_next().await;
                }
                let keeper = app.accounts.clone();
                // Failures are stored with the account and logged.
                refreshing.spawn(async move { keeper.fresh(&whose, Why::Idle).await.is_ok() });
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
fn margin(scheme: &AuthScheme, usual: Duration) -> Duration {
    let own = scheme.oauth2.as_ref().and_then(|flow| flow.refresh_margin);
    own.map_or(usual, |seconds| Duration::from_secs(seconds.into()))
}

/// Returns true if tokens of a mode can be obtained from field values at any time.
pub(super) fn obtains(mode: AuthMode) -> bool {
    mode.has_flow() && !mode.redirects()
}

pub(super) fn access_token(values: &Values) -> Option<&String> {
    match values.get(manifest::ACCESS_TOKEN) {
        Some(serde_json::Value::String(token)) => Some(token),
        _ => None,
    }
}

pub(super) fn place<'a>(project: &'a ProjectId, id: &'a str) -> Place<'a> {
    Place {
        collection: CREDENTIALS_NAME,
        project: project.as_str(),
        id,
        field: "values",
    }
}

fn away(whose: &Whose, until: Time, now: Time) -> Error {
    let retry_after =
        Duration::from_millis(u64::try_from(until.0.saturating_sub(now.0)).unwrap_or(0));
    Error::RefreshUnavailable {
        account: whose.account.to_string(),
        retry_after,
    }
}

/// Returns a random duration between four fifths and six fifths of `time`.
fn jittered(time: Duration) -> Duration {
    let [byte] = ids::random::<1>();
    time * 4 / 5 + time * 2 / 5 * u32::from(byte) / 255
}

pub(super) fn after(time: Time, by: Duration) -> Time {
    Time(
        time.0
            .saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(lifetime: u64, margin: u64) -> Credential {
        let sealed = serde_json::from_str("\"v1.a.b\"").unwrap();
        let [lifetime, margin, idle] = [lifetime, margin, 86_400].map(Duration::from_secs);
        Credential::of(sealed).ending(Some(lifetime), true, Times { margin, idle }, Time(0))
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
            margin(&scheme(serde_json::json!({ "token_url": "t" })), usual),
            usual
        );
        let own = margin(
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
