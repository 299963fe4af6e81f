//! Credentials of accounts as stored: sealed values, their expiry, and the state of their refresh.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use store::{Collection, Document, Erasure, Field, Record, Time};

use super::{Account, Values, scheme};
use crate::{
    App, Result,
    accounts::errors,
    core::{
        clock::time_after,
        vault::{SealContext, Sealed, Vault},
    },
    work::{Claimable, WorkState, jittered},
};

/// Credentials of accounts, stored under the id of the account and erased with it.
pub(crate) static COLLECTION: Collection = Collection {
    name: "credentials",
    erasure: Erasure::Project,
    fields: &[Field::due("due")],
};

/// Remaining lifetime below which a token counts as expired, because a request takes time to
/// arrive.
const EXPIRY_SLACK: Duration = Duration::from_secs(5);

/// Value of an account with the lifetime of its token in seconds.
const LIFETIME_VALUE: &str = "expires_in";

/// Name of the value with the authorization address of a pending account.
pub(super) const REDIRECT_URL_VALUE: &str = "redirectUrl";

/// Field of a credential with its sealed values.
pub(super) const VALUES_FIELD: &str = "values";
/// Status reason of an account whose refresh reached the provider but whose outcome is unknown.
pub(super) const OUTCOME_UNKNOWN_REASON: &str = "refresh_outcome_unknown";

/// Credential of an account, as stored. It is due when its token is refreshed even if the account is
/// idle. A claim is the right to refresh the token.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Credential {
    pub(super) values: Sealed<Values>,
    /// Time at which the token expires, if the provider has stated it.
    #[serde(default)]
    pub(super) expires_at: Option<Time>,
    /// Time from which the token is refreshed on use.
    #[serde(default)]
    pub(super) renew_at: Option<Time>,
    /// Time of the last refresh.
    #[serde(default)]
    pub(super) renewed_at: Option<Time>,
    #[serde(flatten)]
    pub(super) work: WorkState,
    /// True if a refresh since the last success was interrupted, so that the provider may have
    /// issued other tokens.
    #[serde(default)]
    pub(super) uncertain: bool,
    /// Reason why the last refresh failed, if it was not interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refusal: Option<String>,
    /// Number of consecutive refreshes without an answer.
    #[serde(default)]
    pub(super) failures: u32,
    /// Time before which no refresh is attempted.
    #[serde(default)]
    pub(super) retry_at: Option<Time>,
}

impl Document for Credential {
    const COLLECTION: &'static Collection = &COLLECTION;
}

impl Claimable for Credential {
    fn work(&mut self) -> &mut WorkState {
        &mut self.work
    }

    fn on_claim(&mut self, lapsed: bool) {
        if lapsed {
            self.uncertain = true;
            self.refusal = None;
        }
    }
}

impl Credential {
    /// Creates a credential that does not expire.
    pub(super) fn new(values: Sealed<Values>) -> Self {
        Self {
            values,
            expires_at: None,
            renew_at: None,
            renewed_at: None,
            work: WorkState::default(),
            uncertain: false,
            refusal: None,
            failures: 0,
            retry_at: None,
        }
    }

    /// Sets the expiry to the end of `lifetime` and, if the token is renewable, the times of its
    /// refresh. A renewable token without a known lifetime is refreshed while it is idle, because it
    /// or its refresh token may expire unannounced.
    pub(super) fn with_expiry(
        mut self,
        lifetime: Option<Duration>,
        is_refreshable: bool,
        refresh_times: RefreshTimes,
        now: Time,
    ) -> Self {
        let idle = time_after(now, refresh_times.idle);
        let Some(lifetime) = lifetime else {
            self.work.due = is_refreshable.then_some(idle);
            return self;
        };
        let expires_at = time_after(now, lifetime);
        // The jitter spreads the refreshes of accounts that were connected at the same time.
        let margin = jittered(refresh_times.margin.min(lifetime / 4));
        self.expires_at = Some(expires_at);
        if is_refreshable {
            let renew_at = time_after(now, lifetime.saturating_sub(margin));
            self.renew_at = Some(renew_at);
            self.work.due = Some(renew_at.max(idle));
        }
        self
    }

    /// Returns true if the token can still be sent.
    pub(super) fn is_valid(&self, now: Time) -> bool {
        self.expires_at
            .is_none_or(|end| end > time_after(now, EXPIRY_SLACK))
    }

    /// Returns the reason why the token could not be refreshed, or `None` after a success.
    pub(super) fn refresh_problem(&self, now: Time) -> Option<&str> {
        if self.work.is_lapsed(now) {
            return Some(OUTCOME_UNKNOWN_REASON);
        }
        let refusal = self.refusal.as_deref();
        refusal.or_else(|| self.uncertain.then_some(OUTCOME_UNKNOWN_REASON))
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct RefreshTimes {
    /// Time before the expiry.
    pub(super) margin: Duration,
    /// Time after the last refresh, for an idle account.
    pub(super) idle: Duration,
}

/// Returns the decrypted values of an account and the record that holds them.
pub(super) async fn open_credential(
    app: &App,
    record: &Record<Account>,
) -> Result<(Values, Record<Credential>)> {
    // A missing record means that the account was deleted after it was read.
    let stored = app.store.get(&record.project, &record.id).await?;
    let credential = stored.ok_or_else(|| errors::account_not_found(&record.id))?;
    let values = open_values(&app.vault, &credential, app.clock.now()).await?;
    Ok((values, credential))
}

/// Decrypts the values of a credential.
pub(super) async fn open_values(
    vault: &Vault,
    record: &Record<Credential>,
    now: Time,
) -> Result<Values> {
    let context = SealContext::of(record, VALUES_FIELD);
    vault.unseal(context, &record.body.values, now).await
}

/// Returns the lifetime of a token, as stated when it was issued or imported.
pub(super) fn stated_lifetime(values: &Values) -> Option<Duration> {
    let seconds = values.get(LIFETIME_VALUE).and_then(scheme::text)?;
    seconds.parse().ok().map(Duration::from_secs)
}

pub(super) fn access_token(values: &Values) -> Option<&String> {
    match values.get(manifest::ACCESS_TOKEN) {
        Some(serde_json::Value::String(token)) => Some(token),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(lifetime: u64, margin: u64) -> Credential {
        issued(Some(lifetime), margin, true)
    }

    fn issued(lifetime: Option<u64>, margin: u64, is_refreshable: bool) -> Credential {
        let sealed = serde_json::from_str("\"v1.a.b\"").unwrap();
        let [margin, idle] = [margin, 86_400].map(Duration::from_secs);
        let lifetime = lifetime.map(Duration::from_secs);
        let times = RefreshTimes { margin, idle };
        Credential::new(sealed).with_expiry(lifetime, is_refreshable, times, Time(0))
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
    fn idle_account_is_refreshed_after_a_day() {
        assert_eq!(token(3_600, 300).work.due, Some(Time(24 * 3_600_000)));
        assert!(token(60 * 86_400, 300).work.due.unwrap().0 > 59 * 86_400_000);
    }

    #[test]
    fn token_without_lifetime_is_refreshed_while_idle() {
        let credential = issued(None, 300, true);
        assert_eq!(credential.work.due, Some(Time(24 * 3_600_000)));
        assert_eq!((credential.expires_at, credential.renew_at), (None, None));
        assert_eq!(issued(None, 300, false).work.due, None);
    }

    #[test]
    fn refusal_is_shown_unless_a_refresh_was_interrupted() {
        let mut credential = token(3_600, 300);
        assert_eq!(credential.refresh_problem(Time(9)), None);
        credential.refusal = Some("the client is unknown".to_owned());
        let shown = |credential: &Credential| {
            let shown = credential.refresh_problem(Time(9));
            shown.map(str::to_owned)
        };
        assert_eq!(shown(&credential).as_deref(), Some("the client is unknown"));
        credential.on_claim(false);
        assert_eq!(shown(&credential).as_deref(), Some("the client is unknown"));
        credential.on_claim(true);
        assert_eq!(shown(&credential).as_deref(), Some(OUTCOME_UNKNOWN_REASON));
    }

    #[test]
    fn credential_of_earlier_version_is_read() {
        let body = r#"{"values":"v1.a.b","due":7,"lease":{"by":"server","until":9},"uncertain":false,"failures":2}"#;
        let mut credential: Credential = serde_json::from_str(body).unwrap();
        assert_eq!(
            (credential.work.due, credential.failures),
            (Some(Time(7)), 2)
        );
        assert!(credential.work.is_claimed(Time(8)));
        assert_eq!(
            credential.refresh_problem(Time(9)),
            Some(OUTCOME_UNKNOWN_REASON)
        );
        credential.on_claim(true);
        assert!(credential.uncertain);
    }
}
