//! Sharing of an account, in requests and views.

use app::accounts::{self, AclChange, SharingChange};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

mirror! {
    /// Account type: private to one user or shared with others.
    #[serde(rename_all = "UPPERCASE")]
    #[schema(as = Sharing)]
    pub(crate) enum AccountType of accounts::AccountType {
        Private,
        Shared,
    }
}

/// The users that may use an account in addition to its own user. In a change, absent members stay
/// as they are.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ShareAccount)]
pub(crate) struct Share {
    /// Without it `PRIVATE`: only the account's own user.
    account_type: Option<AccountType>,
    /// Only for a shared account; without it, only the account's own user may use the shared
    /// account.
    acl_config_for_shared: Option<Acl>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SharedWith)]
struct Acl {
    /// True if all users may use it, except those in `not_allowed_user_ids`.
    allow_all_users: Option<bool>,
    #[schema(max_items = 1000)]
    allowed_user_ids: Option<Vec<String>>,
    /// Users that are never allowed, regardless of the other members.
    #[schema(max_items = 1000)]
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

view! {
    /// The users that may use an account in addition to its own user.
    #[schema(as = AccountSharing)]
    pub(crate) struct SharingView from sharing: accounts::Sharing where {
        let acl = AclView {
            allow_all_users: sharing.acl.allow_all_users,
            allowed_user_ids: sharing.acl.allowed_user_ids,
            not_allowed_user_ids: sharing.acl.not_allowed_user_ids,
        };
        let is_shared = sharing.account_type == accounts::AccountType::Shared;
    } {
        account_type: AccountType = sharing.account_type.into(),
        /// Only for a shared account.
        acl_config_for_shared?: Option<AclView> = is_shared.then_some(acl),
    }
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
