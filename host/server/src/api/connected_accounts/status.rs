//! Status of an account, in requests and views.

use app::accounts::Status;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum AccountStatus {
    Initializing,
    Initiated,
    Active,
    Failed,
    Expired,
    Inactive,
    Revoked,
}

impl From<AccountStatus> for Status {
    fn from(status: AccountStatus) -> Self {
        match status {
            AccountStatus::Initializing => Self::Initializing,
            AccountStatus::Initiated => Self::Initiated,
            AccountStatus::Active => Self::Active,
            AccountStatus::Failed => Self::Failed,
            AccountStatus::Expired => Self::Expired,
            AccountStatus::Inactive => Self::Inactive,
            AccountStatus::Revoked => Self::Revoked,
        }
    }
}

impl From<Status> for AccountStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Initializing => Self::Initializing,
            Status::Initiated => Self::Initiated,
            Status::Active => Self::Active,
            Status::Failed => Self::Failed,
            Status::Expired => Self::Expired,
            Status::Inactive => Self::Inactive,
            Status::Revoked => Self::Revoked,
        }
    }
}
