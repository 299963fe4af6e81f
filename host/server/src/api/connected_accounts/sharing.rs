//! Sharing of an account, in requests and views.

use app::accounts::{self, AclChange, SharingChange};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Account type: private to one user or shared with others.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schema(as = Sharing)]
pub(crate) enum AccountType {
    Private,
    Shared,
}

impl From<AccountType> for accounts::AccountType {
    fn from(account_type: AccountType) -> Self {
        match account_type {
            AccountType::Private => Self::Private,
            AccountType::Shared => Self::Shared,
        }
    }
}

impl From<accounts::AccountType> for AccountType {
    fn from(account_type: accounts::AccountType) -> Self {
        match account_type {
            accounts::AccountType::Private => Self::Private,
            accounts::AccountType::Shared => Self::Shared,
        }
    }
}

/// The users that may use an account in addition to its own user. In a change, absent members stay
/// as they are.
#[derive(Default, Deserialize, ToSchema)]
#[schema(as = ShareAccount)]
pub(crate) struct Share {
    /// Without it `PRIVATE`: only the account's own user.
    #[serde(default)]
    account_type: Option<AccountType>,
    /// Only for a shared account; without it, only the account's own user may use the shared
    /// account.
    #[serde(default)]
    acl_config_for_shared: Option<Acl>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = SharedWith)]
struct Acl {
    /// True if all users may use it, except those in `not_allowed_user_ids`.
    #[serde(default)]
    allow_all_users: Option<bool>,
    #[schema(max_items = 1000)]
    #[serde(default)]
    allowed_user_ids: Option<Vec<String>>,
    /// Users that are never allowed, regardless of the other members.
    #[schema(max_items = 1000)]
    #[serde(default)]
    not_allowed_user_ids: Option<Vec<String>>,
}

impl From<Share> for SharingChange {
    fn from(share: Share) -> Self {
        Self {
            account_type: share.account_type.map(accounts::AccountType::from),
            acl: share.acl_config_for_shared.map(|acl| AclChange {
                allow_all_users: acl.allow_all_users,
                allowed_user_ids: acl.allowed_user_ids,
                not_allowed_user_ids: acl.not_allowed_user_ids,
            }),
        }
    }
}

/// The users that may use an account in addition to its own user.
#[derive(Serialize, ToSchema)]
#[schema(as = AccountSharing)]
pub(crate) struct SharingView {
    account_type: AccountType,
    /// Only for a shared account.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    acl_config_for_shared: Option<AclView>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = AccountAcl)]
struct AclView {
    /// True if all users may use it, except those in `not_allowed_user_ids`.
    allow_all_users: bool,
    allowed_user_ids: Vec<String>,
    /// Users that are never allowed, regardless of the other members.
    not_allowed_user_ids: Vec<String>,
}

impl From<accounts::Sharing> for SharingView {
    fn from(sharing: accounts::Sharing) -> Self {
        let acl = AclView {
            allow_all_users: sharing.acl.allow_all_users,
            allowed_user_ids: sharing.acl.allowed_user_ids,
            not_allowed_user_ids: sharing.acl.not_allowed_user_ids,
        };
        let is_shared = sharing.account_type == accounts::AccountType::Shared;
        Self {
            account_type: sharing.account_type.into(),
            acl_config_for_shared: is_shared.then_some(acl),
        }
    }
}
