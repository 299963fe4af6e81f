//! Pages for browsers, and public endpoints, which need no key.

pub mod consent;
pub mod docs;
pub mod files;
pub mod health;
pub mod home;
pub mod link;
pub mod logos;
pub mod missing;

use http::row::{Row, row};

/// Returns the operations of the API that browsers call.
pub fn rows() -> Vec<Row> {
    // A browser returns from a provider.
    vec![row!("/toolkits/auth/callback", link::callback::handle).by_provider()]
}
