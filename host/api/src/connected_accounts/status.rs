//! Status of an account, in requests and views.

use app::accounts::Status;

mirror! {
    #[serde(rename_all = "UPPERCASE")]
    pub(crate) enum AccountStatus of Status {
        Initializing,
        Initiated,
        Active,
        Failed,
        Expired,
        Inactive,
        Revoked,
    }
}
