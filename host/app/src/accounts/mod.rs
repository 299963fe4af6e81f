//! Connected accounts: access of one user to one provider, with its credential.
//!
//! An account of a scheme without redirect is ACTIVE as soon as its fields are complete. For all
//! other schemes its user must first authorize the connection at the provider (`attempt`). `state`
//! alone decides which changes of status are allowed, and every change asks it inside its
//! transaction. The credential is a separate record, so that the deletion of an account hides the
//! account and erases the credential in one step. `refresh` renews the token while the account
//! exists.

mod account;
mod attempt;
mod attempt_end;
pub mod auth_configs;
mod authorize;
mod callback;
mod change;
mod completion;
mod create;
mod credential;
mod custom;
pub mod errors;
mod expiry;
mod fields;
mod grant;
mod granted;
mod idle_refresh;
mod link;
mod link_page;
mod list;
pub mod oauth_apps;
mod oauth_clients;
mod redirect;
mod refresh;
mod removal;
mod scheme;
mod session;
mod sharing;
mod state;
mod tokens;
mod trigger;
mod unusable;
mod user_id;
mod verification;

pub use oauth::Values;

pub(crate) use account::COLLECTION;
pub use account::{Account, Failure, NEVER_CONNECTED_TTL};
pub(crate) use attempt::{COLLECTION as CONNECTION_ATTEMPTS, SWEEP_INTERVAL, sweep};
pub use authorize::{Reconnection, reconnect};
pub use callback::callback;
pub use change::{Changes, change, set_enabled};
pub use completion::{Completion, complete};
pub use create::{MAX_VALUES_BYTES, NewAccount, create};
pub(crate) use credential::COLLECTION as CREDENTIALS;
pub use custom::{CustomCredential, CustomParameter};
pub(crate) use grant::{CredentialChoice, FirstToken, grant, proxy_context};
pub(crate) use granted::Granted;
pub use granted::Source;
pub use idle_refresh::IDLE_REFRESH_SHARES;
pub(crate) use idle_refresh::idle_refresh;
pub use link::{LinkCreated, NewLink, link};
pub use link_page::{Brand, Form, FormField, LinkPage, Submitted, open_link, submit};
pub use list::{AccountView, Filter, get, list};
pub use oauth_clients::client_metadata;
pub(crate) use oauth_clients::{COLLECTION as CLIENTS, delete_clients, purge_clients};
pub(crate) use redirect::check_redirect_url;
pub use refresh::finish_tasks;
pub use removal::{remove, revoke};
pub(crate) use removal::{remove_all, revoke_all};
pub use scheme::mask;
pub use session::{SessionAccount, commit_signal};
pub(crate) use session::{
    accounts_of_session, check_usable, count_of_session, find_by_id_or_alias,
    newest_session_config, session_accounts,
};
pub use sharing::{AccountType, AclChange, MAX_LISTED_USERS, Sharing, SharingChange};
pub use state::{Event, Status};
pub(crate) use tokens::ExpiryListener;
pub use tokens::{RefreshCounts, RevokedToken, Settings, TokenManager};
pub(crate) use trigger::{
    account_for_trigger, active_account, check_account_for_tool, grant_trigger,
};
pub(crate) use unusable::{inactive_account_note, newest_inactive};
pub use user_id::{DEFAULT_USER, MAX_USER_ID_CHARS, parse_user_id};
pub use verification::verify_credential;
pub(crate) use verification::{CredentialCheck, VerifyCredential};
