//! Sharing: the users who may use an account.
//!
//! [`Sharing::admits`] alone decides it, and every use of a named account asks it. An account that
//! is selected without being named is never a shared one, so that a shared account is used only on
//! explicit request.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::user_id::MAX_USER_ID_CHARS;
use crate::{Error, Result, accounts::errors};

/// Maximum number of users in one list of an account.
pub const MAX_LISTED_USERS: usize = 1_000;

/// Path to the lists of users in requests.
const ACL_PATH: &str = "experimental.acl_config_for_shared";

/// Account type: private to one user or shared with others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "UPPERCASE")]
#[strum(serialize_all = "UPPERCASE", const_into_str)]
pub enum AccountType {
    /// Only the account's own user may use it.
    #[default]
    Private,
    /// The account's own user and the users admitted by its lists may use it.
    Shared,
}

/// Users who may use an account in addition to its owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sharing {
    /// Account type.
    #[serde(default)]
    pub account_type: AccountType,
    /// Lists of users; empty for a private account.
    #[serde(default, rename = "acl_config_for_shared")]
    pub acl: Acl,
}

/// Users who are admitted to a shared account, and users who are not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Acl {
    /// True if every user is admitted who is not named in `not_allowed_user_ids`.
    pub allow_all_users: bool,
    /// Admitted users, at most 1,000.
    pub allowed_user_ids: Vec<String>,
    /// Users who are never admitted, at most 1,000. This list takes precedence.
    pub not_allowed_user_ids: Vec<String>,
}

/// Change of the sharing. Absent fields stay as they are.
#[derive(Debug, Default)]
pub struct SharingChange {
    /// Account type. `Private` clears the lists.
    pub account_type: Option<AccountType>,
    /// Change of the lists; valid only for a shared account.
    pub acl: Option<AclChange>,
}

/// Change of the lists. Absent lists stay as they are; an empty list clears.
#[derive(Debug, Default)]
pub struct AclChange {
    /// True to admit every user who is not excluded.
    pub allow_all_users: Option<bool>,
    /// Admitted users.
    pub allowed_user_ids: Option<Vec<String>>,
    /// Excluded users.
    pub not_allowed_user_ids: Option<Vec<String>>,
}

impl Sharing {
    /// Returns true if a user may use the account of `owner`. The owner always may. Another user
    /// may if the account is shared, the user is not excluded, and either all users or this user
    /// are admitted.
    #[must_use]
    pub fn admits(&self, owner: &str, user: &str) -> bool {
        let acl = &self.acl;
        let is_shared = self.account_type == AccountType::Shared;
        let is_admitted = acl.allow_all_users || lists(&acl.allowed_user_ids, user);
        user == owner || (is_shared && is_admitted && !lists(&acl.not_allowed_user_ids, user))
    }

    /// Applies a change. Fails if lists are given for a private account, or if a list is too long
    /// or contains an empty or overlong user id.
    pub(super) fn with(&self, change: &SharingChange) -> Result<Self> {
        let account_type = change.account_type.unwrap_or(self.account_type);
        if account_type == AccountType::Private {
            if change.acl.is_none() {
                return Ok(Self::default());
            }
            // Clients recognize this error by its wording.
            let refused = errors::account_refused(
                "acl_config_for_shared is only valid on SHARED accounts; send `account_type` SHARED with it, or leave it out",
            );
            return Err(refused.at(ACL_PATH));
        }
        let mut acl = self.acl.clone();
        if let Some(change) = &change.acl {
            acl.allow_all_users = change.allow_all_users.unwrap_or(acl.allow_all_users);
            if let Some(given) = &change.allowed_user_ids {
                acl.allowed_user_ids = checked_users("allowed_user_ids", given)?;
            }
            if let Some(given) = &change.not_allowed_user_ids {
                acl.not_allowed_user_ids = checked_users("not_allowed_user_ids", given)?;
            }
        }
        Ok(Self { account_type, acl })
    }
}

fn checked_users(name: &str, given: &[String]) -> Result<Vec<String>> {
    if given.len() > MAX_LISTED_USERS {
        let count = given.len();
        return Err(users_invalid(
            name,
            &format!("{count} users; at most {MAX_LISTED_USERS}"),
        ));
    }
    let checked = given
        .iter()
        .enumerate()
        .map(|(index, user)| match user.trim() {
            user if (1..=MAX_USER_ID_CHARS).contains(&user.chars().count()) => Ok(user.to_owned()),
            _ => Err(users_invalid(
                &format!("{name}[{index}]"),
                &format!("must have 1 to {MAX_USER_ID_CHARS} characters"),
            )),
        });
    errors::collect_all(checked)
}

fn users_invalid(name: &str, why: &str) -> Error {
    errors::invalid(format!("{ACL_PATH}.{name}: {why}"))
}

fn lists(list: &[String], user: &str) -> bool {
    list.iter().any(|listed| listed == user)
}

#[cfg(test)]
mod tests;
