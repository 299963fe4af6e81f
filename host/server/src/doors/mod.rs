//! What is reached without a key.

pub(crate) mod health;
