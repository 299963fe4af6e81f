//! What is reached without a key.

pub(crate) mod docs;
pub(crate) mod files;
pub(crate) mod health;
pub(crate) mod link;
