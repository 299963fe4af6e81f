//! Token refresh: at most one refresh of an account at a time, across all servers.
//!
//! A provider may revoke all tokens of an account if an old refresh token is used a second time.
//! Therefore a server must claim the record that holds the token before it refreshes the token
//! ([`Claim`]). The lease is extended while the refresh runs. The new token is committed under the
//! claim, so that a server that was stopped for longer than its lease changes nothing. A lease that
//! expired without an outcome means that the provider may or may not have replaced the token, and
//! the old token is tried once more.
//!
//! An account ends if the provider refuses the refresh, or if a token that cannot be refreshed has
//! expired. While the provider is unavailable or refuses the client, the account keeps its token and
//! the refresh is retried, after 30 seconds at first and with doubled delays of at most one hour.
//! The reason is kept with the credential.
//!
//! A refresh continues if its caller has gone away, so that a closed connection does not lose the
//! new token. A stopping server waits for it ([`finish_tasks`]).

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use manifest::AuthMode;
use oauth::{Refusal, Tokens};
use store::{Batch, CommitError, Document, Record, Time};
use tokio::sync::OwnedSemaphorePermit;

use super::{
    Account, Status, TokenManager, Values,
    credential::{Credential, OUTCOME_UNKNOWN_REASON, VALUES_FIELD, access_token, stated_lifetime},
    tokens::TokenOwner,
};
use crate::{
    App, Error, Result,
    accounts::errors,
    core::{clock::time_after, vault::SealContext},
    projects,
    work::{Claim, doubled, jittered},
};

/// Interval at which a server checks whether another server has finished its work.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Time after a refresh in which a rejected token is not refreshed again, because the rejection has
/// another cause.
const REJECTION_COOLDOWN: Duration = Duration::from_secs(60);

/// First retry delay after a provider did not answer.
pub(super) const MIN_RETRY_DELAY: Duration = Duration::from_secs(30);

/// Maximum retry delay after a provider did not answer.
pub(super) const MAX_RETRY_DELAY: Duration = Duration::from_secs(3_600);

/// Timeout of all requests of one refresh together.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(30);

/// Time for which a stopping server waits for running tasks of accounts, so that their outcome is stored. A
/// refresh ends within it. A code exchange may take longer if the provider also sends its metadata slowly.
const FINISH_TIMEOUT: Duration = Duration::from_secs(REFRESH_TIMEOUT.as_secs() + 5);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RefreshReason {
    /// The token expires soon.
    ExpiresSoon,
    /// The provider rejects this token.
    Rejected(String),
}

impl RefreshReason {
    fn applies(&self, credential: &Credential, values: &Values, now: Time) -> bool {
        match self {
            Self::ExpiresSoon => {
                credential.renew_at.is_some_and(|at| at <= now) || !credential.is_valid(now)
            }
            Self::Rejected(token) => {
                let settled = credential
                    .renewed_at
                    .is_none_or(|at| time_after(at, REJECTION_COOLDOWN) <= now);
                settled && access_token(values) == Some(token)
            }
        }
    }
}

/// Waits until the running tasks of accounts have ended: token refreshes, client registrations, and work
/// that consumes a one-time value or revokes a credential. A stopping server thus loses no new token and no
/// new client. Gives up after 35 seconds.
pub async fn finish_tasks(app: &App) {
    let tasks = app.account_tasks();
    let count = tasks.count();
    if count == 0 {
        return;
    }
    tracing::info!(count, "waiting until the tasks of accounts have ended");
    let finished = tokio::time::timeout(FINISH_TIMEOUT, tasks.finish());
    if finished.await.is_err() {
        tracing::warn!(
            "tasks of accounts did not end before the timeout: new tokens, clients and revocations may be lost"
        );
    }
}

impl TokenManager {
    /// Returns the values of an account with a usable token. Refreshes the token first if
    /// necessary.
    pub(super) async fn fresh_values(
        self: &Arc<Self>,
        owner: &TokenOwner,
        reason: RefreshReason,
    ) -> Result<Values> {
        let record = self.read::<Credential>(owner).await?;
        let values = self.open(owner, &record.body).await?;
        let now = self.clock.now();
        if !reason.applies(&record.body, &values, now) {
            return Ok(values);
        }
        let (locks, account) = (&self.account_locks, &owner.account);
        let (guard, still_valid) = if reason == RefreshReason::ExpiresSoon
            && record.body.is_valid(now)
        {
            match locks.try_acquire(account) {
                Some(guard) => (guard, Some(values)),
                // Another task is refreshing the token, and the current token is still valid.
                None => return Ok(values),
            }
        } else {
            let waited = tokio::time::timeout(self.settings.wait_timeout, locks.acquire(account));
            let guard = waited.await.ok().flatten();
            (
                guard.ok_or_else(|| errors::refresh_in_progress(account))?,
                None,
            )
        };
        let refreshing = self.clone().refresh_and_log(owner.clone(), reason, guard);
        let refreshing_task = self.tasks.start(refreshing);
        if let Some(values) = still_valid {
            return Ok(values);
        }
        match tokio::time::timeout(self.settings.wait_timeout, refreshing_task).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(errors::internal(
                "the task that refreshes a token has panicked",
            )),
            Err(_) => Err(errors::refresh_in_progress(&owner.account)),
        }
    }

    async fn refresh_and_log(
        self: Arc<Self>,
        owner: TokenOwner,
        reason: RefreshReason,
        _guard: OwnedSemaphorePermit,
    ) -> Result<Values> {
        let done = self.refresh_under_lease(&owner, &reason).await;
        if let Err(cause) = &done {
            tracing::debug!(account = %owner.account, %cause, "a token was not refreshed");
        }
        done
    }

    /// Claims the credential and refreshes the token, unless another server has done so or is doing
    /// so.
    async fn refresh_under_lease(
        &self,
        owner: &TokenOwner,
        reason: &RefreshReason,
    ) -> Result<Values> {
        loop {
            let now = self.claims.now().await?;
            let record = self.read::<Credential>(owner).await?;
            let values = self.open(owner, &record.body).await?;
            if !reason.applies(&record.body, &values, now) {
                return Ok(values);
            }
            let still_valid = *reason == RefreshReason::ExpiresSoon && record.body.is_valid(now);
            if record.body.work.is_claimed(now) {
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
                    let problem = record.body.refresh_problem(now);
                    Err(refresh_unavailable(owner, problem, until, now))
                };
            }
            if !projects::is_live(&self.store, owner.project.as_str()).await? {
                return Err(errors::project_not_found(&owner.project));
            }
            // An earlier refresh may have ended the account.
            self.check_connected(owner).await?;
            let ttl = self.settings.lease_ttl;
            if let Some(claim) = self.claims.take(record, ttl).await? {
                let refreshing = self.refresh_claimed(owner, &claim);
                return match claim.keep_to_end(refreshing).await {
                    Err(cause) if still_valid && cause.is(&errors::REFRESH_UNAVAILABLE) => {
                        Ok(values)
                    }
                    done => done,
                };
            }
        }
    }

    /// Requests a new token from the provider, under a claim, and ends the claim.
    pub(super) async fn refresh_claimed(
        &self,
        owner: &TokenOwner,
        claim: &Claim<Credential>,
    ) -> Result<Values> {
        let claimed = claim.body().await;
        let values = self.open(owner, &claimed).await?;
        if !self.is_refreshable(owner.scheme()?, &values) {
            return self.expire(owner, claim, &values, "token_expired").await;
        }
        let is_dynamic_client =
            owner.mode == AuthMode::DcrOauth && values.contains_key("client_id");
        let failure = match self.request_tokens(owner, &values).await {
            Ok(Ok(tokens)) => {
                self.refreshes.refreshed.fetch_add(1, Ordering::Relaxed);
                return self.store_tokens(owner, claim, values, tokens).await;
            }
            // A client that this server registered cannot be repaired: the next connection
            // registers another one.
            Ok(Err(refusal))
                if refusal.ends_account() || (is_dynamic_client && refusal.is_invalid_client()) =>
            {
                if is_dynamic_client && refusal.is_invalid_client() {
                    self.delete_rejected_client(owner, &values).await?;
                }
                let reason = refusal.to_string();
                tracing::warn!(account = %owner.account, reason, "a token was not refreshed, and its account has expired");
                let shown_reason = match claimed.uncertain {
                    true => OUTCOME_UNKNOWN_REASON,
                    false => &reason,
                };
                return self.expire(owner, claim, &values, shown_reason).await;
            }
            Ok(Err(refusal)) => RefreshFailure::from(refusal),
            Err(cause) => RefreshFailure::unsent(&cause),
        };
        let reason = &*failure.reason;
        tracing::warn!(account = %owner.account, reason, "a token was not refreshed; the refresh is retried");
        self.retry_later(owner, claim, &claimed, failure).await
    }

    /// Requests new tokens from the provider. An outer error means that nothing was requested.
    async fn request_tokens(
        &self,
        owner: &TokenOwner,
        values: &Values,
    ) -> Result<std::result::Result<Tokens, Refusal>> {
        let client = self.client_of(owner).await?;
        let context = client.ok_or_else(|| errors::auth_config_not_found(&owner.auth_config))?;
        let declared_flow = context.flow(owner.scheme()?, values);
        let request = async {
            let scheme = self.metadata.resolve(&declared_flow).await?;
            let flow = context.flow(&scheme, values);
            match flow.can_refresh() {
                true => flow.refresh().await,
                false => flow.obtain(&context.scopes).await,
            }
        };
        let requested = tokio::time::timeout(REFRESH_TIMEOUT, request).await;
        Ok(requested.unwrap_or_else(|_| {
            Err(Refusal::Unavailable {
                reason: format!("it sent no token within {} s", REFRESH_TIMEOUT.as_secs()),
                retry_after: None,
                may_have_issued: true,
            })
        }))
    }

    /// Ends a claim after a refresh, which is retried later. Always returns an error.
    async fn retry_later(
        &self,
        owner: &TokenOwner,
        claim: &Claim<Credential>,
        claimed: &Credential,
        failure: RefreshFailure,
    ) -> Result<Values> {
        self.refreshes.retried.fetch_add(1, Ordering::Relaxed);
        let batch = claim.batch().await?;
        let now = batch.now;
        let failures = claimed.failures.saturating_add(1);
        let delay = jittered(doubled(MIN_RETRY_DELAY, MAX_RETRY_DELAY, failures));
        let retry_after = failure.retry_after.unwrap_or_default();
        let until = time_after(now, delay.max(retry_after.min(MAX_RETRY_DELAY)));
        let refusal = (!failure.is_interruption).then_some(failure.reason);
        let failed = claim.end(batch, |credential| {
            credential.uncertain |= failure.is_interruption;
            credential.refusal.clone_from(&refusal);
            credential.failures = failures;
            credential.work.due = credential.work.due.map(|due| due.max(until));
            credential.retry_at = Some(until);
        });
        match failed.await {
            Ok(()) | Err(CommitError::Stale) => {
                let problem = refusal.as_deref();
                Err(refresh_unavailable(owner, problem, until, now))
            }
            Err(cause) => Err(cause.into()),
        }
    }

    /// Stores new tokens and retries for the duration of the lease, because a lost refresh token
    /// ends the account.
    async fn store_tokens(
        &self,
        owner: &TokenOwner,
        claim: &Claim<Credential>,
        old: Values,
        tokens: Tokens,
    ) -> Result<Values> {
        // The time only dates the credential and bounds the loop. If the clock of the database
        // cannot be read, that of this server is good enough, and the new tokens are not lost.
        let database_time = self.claims.now().await;
        let now = database_time.unwrap_or_else(|_| self.clock.now());
        // A response without a refresh token keeps the old one (RFC 6749, section 6). A response
        // without a lifetime keeps the one stated before: some providers state it only once.
        let lifetime = tokens.lifetime.or_else(|| stated_lifetime(&old));
        let mut values = old;
        values.extend(tokens.values);
        let (project, account, scheme) = (&owner.project, &owner.account, owner.scheme()?);
        let credential =
            self.build_credential(project, account, Some(scheme), &values, lifetime, now);
        let renewed = Credential {
            renewed_at: Some(now),
            ..credential.await?
        };
        loop {
            let ended = claim.end(Batch::at(now), |credential| {
                credential.clone_from(&renewed);
            });
            match ended.await {
                Ok(()) => return Ok(values),
                Err(CommitError::Stale) => return self.resolve_lost_lease(owner, values).await,
                Err(cause) if time_after(now, self.settings.lease_ttl) <= self.clock.now() => {
                    return Err(cause.into());
                }
                Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }

    /// Returns the stored values of an account whose claim is lost. Revokes the new tokens if the
    /// account was deleted or is not connected any more, because nothing else can revoke them.
    async fn resolve_lost_lease(&self, owner: &TokenOwner, new_values: Values) -> Result<Values> {
        let stored = self.stored_values(owner).await;
        // After another error the account may be connected and use the same refresh token.
        if let Err(cause) = &stored
            && (cause.is(&errors::ACCOUNT_NOT_FOUND) || cause.is(&errors::ACCOUNT_NOT_ACTIVE))
        {
            self.revoke_best_effort(owner, &new_values).await;
        }
        stored
    }

    /// Ends an account whose token cannot be refreshed, unless another server has refreshed it
    /// meanwhile.
    async fn expire(
        &self,
        owner: &TokenOwner,
        claim: &Claim<Credential>,
        values: &Values,
        reason: &str,
    ) -> Result<Values> {
        loop {
            let account = self.read::<Account>(owner).await?;
            let unchanged = claim.batch().await?;
            let batch = self
                .add_expiry(owner, unchanged, account, values, reason)
                .await?;
            let ended = claim.end(batch, |credential| credential.work.due = None);
            match claim.succeeded(ended.await).await {
                Ok(true) => break,
                Ok(false) => {}
                Err(CommitError::Stale) => return self.stored_values(owner).await,
                Err(cause) => return Err(cause.into()),
            }
        }
        self.refreshes.expired.fetch_add(1, Ordering::Relaxed);
        let status = Status::Expired.into_str();
        Err(errors::account_not_active(&owner.account, status))
    }

    /// Returns the stored values of an account. Fails if the account does not exist or is not
    /// connected.
    async fn stored_values(&self, owner: &TokenOwner) -> Result<Values> {
        self.check_connected(owner).await?;
        let record = self.read::<Credential>(owner).await?;
        self.open(owner, &record.body).await
    }

    /// Fails if the account of a token does not exist or is not connected.
    async fn check_connected(&self, owner: &TokenOwner) -> Result<()> {
        let status = self.read::<Account>(owner).await?.body.status;
        if status.is_connected() {
            return Ok(());
        }
        Err(errors::account_not_active(
            &owner.account,
            status.into_str(),
        ))
    }

    /// Reads the account of a token, or the credential under the same id.
    async fn read<T: Document>(&self, owner: &TokenOwner) -> Result<Record<T>> {
        let (project, account) = (&owner.project, &owner.account);
        let record = self.store.get(project.as_str(), account.as_str()).await?;
        record.ok_or_else(|| errors::account_not_found(account))
    }

    async fn open(&self, owner: &TokenOwner, credential: &Credential) -> Result<Values> {
        let (project, account) = (owner.project.as_str(), owner.account.as_str());
        let context = SealContext::new::<Credential>(project, account, VALUES_FIELD);
        let now = self.clock.now();
        self.vault.unseal(context, &credential.values, now).await
    }
}

/// A refresh that yielded no tokens and is retried.
struct RefreshFailure {
    reason: String,
    /// Delay that the provider asks for.
    retry_after: Option<Duration>,
    /// True if the provider may have issued tokens that were lost.
    is_interruption: bool,
}

impl RefreshFailure {
    /// Creates the failure of a refresh for which nothing was sent.
    fn unsent(cause: &Error) -> Self {
        Self {
            reason: cause.to_string(),
            retry_after: None,
            is_interruption: false,
        }
    }
}

impl From<Refusal> for RefreshFailure {
    fn from(refusal: Refusal) -> Self {
        Self {
            reason: refusal.to_string(),
            is_interruption: refusal.may_have_issued(),
            retry_after: match refusal {
                Refusal::Unavailable { retry_after, .. } => retry_after,
                _ => None,
            },
        }
    }
}

fn refresh_unavailable(owner: &TokenOwner, problem: Option<&str>, until: Time, now: Time) -> Error {
    let problem = problem.unwrap_or(OUTCOME_UNKNOWN_REASON);
    let retry_after =
        Duration::from_millis(u64::try_from(until.0.saturating_sub(now.0)).unwrap_or(0));
    errors::refresh_unavailable(&owner.account, problem, retry_after)
}
