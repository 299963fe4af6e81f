//! Pages for browsers, and public endpoints, which need no key.

pub(crate) mod consent;
pub(crate) mod docs;
pub(crate) mod files;
pub(crate) mod health;
pub(crate) mod home;
pub(crate) mod link;
pub(crate) mod logos;
pub(crate) mod missing;

use crate::http::row::{Row, row};

/// Returns the operations of the API that browsers call.
pub(crate) fn rows() -> Vec<Row> {
    // A browser returns from a provider.
    vec![row!("/toolkits/auth/callback", link::callback::handle).by_provider()]
}
