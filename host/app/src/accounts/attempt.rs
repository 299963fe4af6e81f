//! Connection attempts: a user opens a page of this server, authorizes at the provider, and returns
//! to this server.
//!
//! An attempt uses up to three secrets, and each secret names one [`ConnectionAttempt`] record: the
//! link token of the page, the `state` of the authorization request (RFC 6749, section 10.12), and
//! the session with which the project confirms its user. A secret is random, is stored only as a
//! keyed hash, belongs to one account and one attempt, and expires. A `state` is spent before its
//! code is exchanged, so that only one of several callbacks can use the code. The end of an attempt
//! invalidates all its secrets, because each of them names the number of the attempt and the
//! account then has another number.
//!
//! An attempt that started on the page is bound to the browser that opened the page. Another
//! browser cannot complete it. If that browser repeats a callback, it gets the same result. A user
//! whom the provider did not let through can open the link again.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use store::{Batch, Collection, Document, Erasure, Field, Kind, Query, Record, Time};

use super::{Account, Event, Values, credential::Credential};
use crate::{
    App, Error, Result,
    accounts::errors,
    core::{
        clock::time_before,
        ids::{self, AccountId, OrganizationId, ProjectId},
        vault::{SealContext, Sealed},
    },
    projects::{self, Project},
    work::{JobClaim, erase_all},
};

pub(crate) static COLLECTION: Collection = Collection {
    name: "flows",
    erasure: Erasure::Project,
    fields: &[Field::new("until", Kind::Time)],
};

/// Interval of the job that expires attempts and deletes old records.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Time for which an expired record is kept, so that its link can still report that it has expired.
const USED_LINK_TTL: Duration = Duration::from_secs(86_400);

/// Records that one run of the job reads from each collection.
const BATCH_SIZE: u64 = 200;

/// Length of a secret in characters. Each character has almost six bits.
const SECRET_CHARS: usize = 43;

/// Status reason of an account whose user did not connect it in time.
const TIMED_OUT_REASON: &str = "INITIATION_TIMEOUT";

/// One step of a connection attempt, stored under the keyed hash of its secret.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ConnectionAttempt {
    #[serde(rename = "stage")]
    pub(super) step: Step,
    pub(super) account: AccountId,
    /// Number of the account's attempt. If the account has another number, this record is void.
    #[serde(rename = "attempt")]
    pub(super) attempt_number: u32,
    /// Organization of the project, for requests that carry no key.
    #[serde(rename = "organisation")]
    pub(super) organization: OrganizationId,
    #[serde(default)]
    pub(super) callback_url: Option<String>,
    /// Keyed hash of the browser's cookie, if the attempt started on the page.
    #[serde(default)]
    pub(super) browser: Option<String>,
    pub(super) until: Time,
    #[serde(rename = "held")]
    pub(super) secrets: Sealed<PendingSecrets>,
}

impl Document for ConnectionAttempt {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// Step of a connection attempt, which is also the kind of its secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Step {
    /// The page is open to the user; the secret is the link token.
    #[serde(rename = "link")]
    Link,
    /// The user is at the provider; the secret is the `state`.
    #[serde(rename = "away")]
    Authorize,
    /// The user came back; the secret is the spent `state`. Only the browser of an attempt that
    /// started on the page may repeat its callback.
    #[serde(rename = "returned")]
    Returned,
    /// The project must confirm its user; the secret is the session.
    #[serde(rename = "vouching")]
    Verify,
}

impl Step {
    /// Returns the prefix that is hashed with a secret. It never changes, because record ids depend
    /// on it.
    fn hash_prefix(self) -> &'static str {
        match self {
            Self::Link => "Link",
            Self::Authorize | Self::Returned => "Away",
            Self::Verify => "Vouching",
        }
    }
}

/// Secrets of a connection attempt.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct PendingSecrets {
    pub(super) values: Values,
    /// PKCE code verifier, which proves that the code exchange comes from the sender of the
    /// authorization request (RFC 7636).
    pub(super) verifier: String,
    /// Redirect URI, as it was sent in the authorization request.
    pub(super) redirect_uri: String,
    /// Lifetime of the token in seconds, once there is a token.
    pub(super) lifetime: Option<u64>,
    /// Address to which the callback has redirected the browser.
    #[serde(default)]
    pub(super) landed: Option<String>,
}

impl App {
    /// Returns the name under which the record of a secret is stored.
    pub(super) fn attempt_record_id(&self, step: Step, secret: &str) -> String {
        let message = format!("{} {secret}", step.hash_prefix());
        self.vault.hash_text("flows", &message)
    }

    pub(super) fn browser_hash(&self, browser: &str) -> String {
        self.vault.hash_text("browsers", browser)
    }

    pub(super) async fn attempt_project(
        &self,
        attempt: &Record<ConnectionAttempt>,
    ) -> Result<Project> {
        let id = ProjectId::parse(&attempt.project)?;
        let project = projects::get(self, &attempt.body.organization, &id).await;
        project
            .map_err(|cause| cause.replace_if(&errors::PROJECT_NOT_FOUND, errors::attempt_unknown))
    }

    pub(super) async fn seal_secrets(
        &self,
        project: &Project,
        name: &str,
        secrets: &PendingSecrets,
    ) -> Result<Sealed<PendingSecrets>> {
        let context = SealContext::new::<ConnectionAttempt>(project.id.as_str(), name, "held");
        self.vault.seal(context, secrets, self.clock.now()).await
    }

    pub(super) async fn open_secrets(
        &self,
        attempt: &Record<ConnectionAttempt>,
    ) -> Result<PendingSecrets> {
        let context = SealContext::of(attempt, "held");
        let now = self.clock.now();
        self.vault.unseal(context, &attempt.body.secrets, now).await
    }
}

pub(super) fn secret(prefix: &str) -> String {
    format!("{prefix}{}", ids::random_text(SECRET_CHARS))
}

pub(super) fn link_gone(cause: Error) -> Error {
    cause.replace_if(&errors::ACCOUNT_NOT_FOUND, errors::attempt_unknown)
}

/// Expires accounts whose user did not return in time, erases those that were never connected, and
/// deletes old records. Fails if the claim is lost or the store refuses.
pub(crate) async fn sweep(app: &App, claim: &JobClaim) -> Result<()> {
    sweep_at(claim, app.clock.now()).await
}

async fn sweep_at(claim: &JobClaim, now: Time) -> Result<()> {
    let store = claim.store();
    let waiting = Query::all_projects()
        .below("waits_until", now.0.saturating_add(1))
        .page(0, BATCH_SIZE);
    for mut account in store.find::<Account>(&waiting).await?.records {
        let batch = match account.body.status.after(Event::TimedOut) {
            Some(status) => {
                account.body.set_status(status, Some(TIMED_OUT_REASON), now);
                Batch::at(now).update(&account)
            }
            None if account.body.was_connected => {
                account.body.waits_until = None;
                Batch::at(now).update(&account)
            }
            None => {
                let without_account = Batch::at(now).purge(&account);
                let credential = store.get::<Credential>(&account.project, &account.id);
                credential.await?.iter().fold(without_account, Batch::purge)
            }
        };
        let committed = claim.commit(batch).await;
        // The next run reads an account again that another writer has changed.
        claim.succeeded(committed).await?;
    }
    let old = Query::all_projects().below("until", time_before(now, USED_LINK_TTL).0);
    erase_all(claim, &COLLECTION, old, BATCH_SIZE).await
}

#[cfg(test)]
mod tests {
    use store::Store;

    use super::*;
    use crate::{
        COLLECTIONS,
        accounts::{NEVER_CONNECTED_TTL, account, credential},
        core::clock::time_after,
        work::claim_job,
    };

    #[tokio::test]
    async fn accounts_never_connected_are_erased() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), COLLECTIONS).unwrap();
        let account = |id: &str, connected: &str| {
            let body = format!(
                r#"{{"user_id":"u","toolkit":"t","auth_config":"{}","scheme":"OAUTH2","status":"INITIATED",
                "uuid":"{}","changed_at":1,"waits_until":10{connected}}}"#,
                ids::AuthConfigId::random(),
                uuid::Uuid::new_v4(),
            );
            Record::inserted("p", id, Time(1), body.into())
        };
        let never = r#","was_connected":false"#;
        let credential = Record::inserted("p", "never", Time(1), r#"{"values":""}"#.into());
        let batch = Batch::at(Time(1))
            .restore(&account::COLLECTION, account("never", never))
            .restore(
                &account::COLLECTION,
                account("again", r#","was_connected":true"#),
            )
            .restore(&account::COLLECTION, account("older", ""))
            .restore(&credential::COLLECTION, credential);
        store.commit(batch).await.unwrap();
        let claim = claim_job(&store).await;
        let left = async || {
            let all = Query::for_project("p").order_by("status");
            let accounts = store.find::<Account>(&all).await.unwrap().records;
            let all = Query::for_project("p");
            let credentials = store.rows(&credential::COLLECTION, &all);
            let expired = accounts
                .iter()
                .filter(|of| of.body.status == super::super::Status::Expired);
            (
                expired.count(),
                accounts.len(),
                credentials.await.unwrap().rows.len(),
            )
        };
        sweep_at(&claim, Time(10)).await.unwrap();
        assert_eq!(left().await, (3, 3, 1));
        let erased_at = time_after(Time(10), NEVER_CONNECTED_TTL);
        sweep_at(&claim, Time(erased_at.0 - 1)).await.unwrap();
        assert_eq!(
            left().await,
            (3, 3, 1),
            "the user may still be at the provider"
        );
        sweep_at(&claim, erased_at).await.unwrap();
        assert_eq!(left().await, (2, 2, 0));
    }
}
