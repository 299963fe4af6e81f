//! Pages for browsers, and public endpoints, which need no key.

pub(crate) mod docs;
pub(crate) mod files;
pub(crate) mod health;
pub(crate) mod home;
pub(crate) mod ingress;
pub(crate) mod link;
pub(crate) mod logos;
pub(crate) mod mcp_oauth;
pub(crate) mod missing;
