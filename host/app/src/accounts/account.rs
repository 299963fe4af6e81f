//! Connected accounts as stored, and the rules for their aliases.

use std::time::Duration;

use manifest::AuthMode;
use serde::{Deserialize, Serialize};
use store::{Collection, CommitError, Document, EditError, Erasure, Field, Kind, Record, Time};
use uuid::Uuid;

use super::{Event, Sharing, Status};
use crate::{
    App, Error, Result,
    accounts::errors,
    core::{
        clock::time_after,
        ids::{AccountId, AuthConfigId},
    },
    projects::Project,
};

/// Time after which an account is erased that has expired or failed and was never connected.
pub const NEVER_CONNECTED_TTL: Duration = Duration::from_secs(86_400);
/// Maximum number of accounts of one user and toolkit among which a usable one is looked for.
pub(super) const MAX_CANDIDATES: u64 = 100;
/// Reason of an attempt that failed, or an account that cannot be used, because the auth config was deleted.
pub(super) const AUTH_CONFIG_GONE: &str = "auth_config_gone";

pub(crate) static COLLECTION: Collection = Collection {
    name: "connected_accounts",
    erasure: Erasure::HidingProject,
    fields: &[
        Field::new("user_id", Kind::Text),
        Field::new("toolkit", Kind::Text),
        Field::new("auth_config", Kind::Text),
        Field::new("status", Kind::Text),
        Field::new("changed_at", Kind::Time),
        Field::new("waits_until", Kind::Time),
        Field::unique("uuid", Kind::Text),
        Field::unique("alias_of", Kind::Text),
        Field::new("account_type", Kind::Text),
    ],
};

/// A connected account, as stored.
#[derive(Debug, Serialize, Deserialize)]
pub struct Account {
    /// The project's own identifier for the user.
    pub user_id: String,
    /// Slug of the toolkit.
    pub toolkit: String,
    /// Auth config with which the account was connected.
    pub auth_config: AuthConfigId,
    /// Auth scheme. It is stored here as well because the auth config may be deleted.
    pub scheme: AuthMode,
    /// Current status.
    pub status: Status,
    /// Reason of the status, if the status alone does not explain it.
    #[serde(default)]
    pub status_reason: Option<String>,
    /// Legacy id, for older clients.
    pub uuid: Uuid,
    /// Name that the user gave to the account; unique for user and toolkit.
    #[serde(default)]
    pub alias: Option<String>,
    #[serde(default)]
    pub(super) alias_of: Option<String>,
    /// Time of the last change. Lists are sorted by it, and show it.
    pub changed_at: Time,
    /// Number of the current connection attempt. Records of an earlier attempt have no effect.
    #[serde(default, rename = "attempt")]
    pub(super) attempt_number: u32,
    /// Time until which a pending account waits for its user. For an account that was never connected
    /// and does not wait, the time at which it is erased.
    #[serde(default)]
    pub(super) waits_until: Option<Time>,
    /// True if the account was ever connected, and in records that are older than this field.
    #[serde(default = "older_account_was_connected")]
    pub(super) was_connected: bool,
    /// Reason that the provider gave when it refused the connection.
    #[serde(default)]
    pub failure: Option<Failure>,
    /// Users who may use the account.
    #[serde(flatten)]
    pub sharing: Sharing,
}

fn older_account_was_connected() -> bool {
    true
}

/// Reason why a provider did not connect an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Error code, for example `access_denied` (RFC 6749, section 4.1.2.1).
    pub error: String,
    /// Description; may be empty.
    pub description: String,
}

impl Failure {
    pub(super) fn new(error: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            error: error.into(),
            description: description.into(),
        }
    }
}

impl Document for Account {
    const COLLECTION: &'static Collection = &COLLECTION;
}

impl Account {
    /// Changes the status. The caller has checked the change with [`Status::after`].
    pub(super) fn set_status(&mut self, status: Status, reason: Option<&str>, now: Time) {
        self.was_connected |= status.is_connected();
        if !status.is_pending() {
            self.waits_until = (!self.was_connected).then(|| time_after(now, NEVER_CONNECTED_TTL));
        }
        (self.status, self.status_reason, self.changed_at) =
            (status, reason.map(str::to_owned), now);
        self.failure = None;
    }
}

pub(crate) async fn record(
    app: &App,
    project: &Project,
    id: &AccountId,
) -> Result<Record<Account>> {
    let account = app.store.get(project.id.as_str(), id.as_str()).await?;
    account.ok_or_else(|| errors::account_not_found(id))
}

/// Parses the alias of an account: at most 100 characters, trimmed. Returns `None` if it is empty.
pub(super) fn parse_alias(given: Option<String>) -> Result<Option<String>> {
    let alias = given
        .map(|alias| alias.trim().to_owned())
        .filter(|alias| !alias.is_empty());
    match alias {
        Some(alias) if alias.chars().count() > 100 || alias.contains('\u{1f}') => {
            Err(errors::invalid("alias: at most 100 printable characters"))
        }
        alias => Ok(alias),
    }
}

pub(super) fn unique_alias(user: &str, toolkit: &str, alias: &str) -> String {
    format!("{user}\u{1f}{toolkit}\u{1f}{alias}")
}

/// Converts a conflict of the alias into its error.
pub(super) fn map_alias_conflict(cause: EditError<Error>) -> Error {
    match cause {
        EditError::Commit(CommitError::Taken {
            field: "alias_of", ..
        }) => {
            errors::account_refused("the alias is used by another account of this user and toolkit")
        }
        cause => cause.into(),
    }
}

/// Returns the status of an account after an event. Fails if the event cannot happen now.
pub(super) fn status_after(id: &AccountId, status: Status, event: Event) -> Result<Status> {
    let action = match event {
        Event::Enabled => "resumed",
        Event::Disabled => "paused",
        Event::Revoked => "revoked",
        _ => "changed",
    };
    let now = status.into_str();
    status.after(event).ok_or_else(|| {
        errors::account_refused(format!("account {id} is {now} and cannot be {action}"))
    })
}
