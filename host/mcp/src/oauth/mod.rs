//! Authorization server for assistants at MCP endpoints, by OAuth 2.1.
//!
//! An assistant learns from the metadata of its endpoint ([`metadata`]) where to register
//! ([`register`]), sends its user to the page on which a project member signs in with a key and
//! consents (`web/consent`), and exchanges the code for tokens ([`token`]). Clients are public: each
//! proves by PKCE that it started the authorization. The tokens work at one MCP endpoint, and nowhere in
//! the API.

mod issuer;
pub mod metadata;
mod parameters;
mod refused;
pub mod register;
pub mod token;

pub use self::{issuer::Issuer, parameters::Parameters};

/// Path of the page on which a member consents.
pub const AUTHORIZE_PATH: &str = "/oauth/authorize";
/// Path before the issuers of MCP endpoints.
pub const ENDPOINTS_PATH: &str = "/oauth/endpoints";
/// End of the path of the page of an issuer.
pub const PAGE_SEGMENT: &str = "/authorize";
/// Path of the exchange of codes and refresh tokens.
pub const TOKEN_PATH: &str = "/oauth/token";
/// Path of the revocation of tokens.
pub const REVOKE_PATH: &str = "/oauth/revoke";
/// Path of the registration of clients.
pub const REGISTER_PATH: &str = "/oauth/register";
/// Path of the metadata of the authorization server (RFC 8414, section 3).
pub const SERVER_METADATA_PATH: &str = "/.well-known/oauth-authorization-server";
/// Path before that of an MCP endpoint, at which its metadata is (RFC 9728, section 3).
pub const RESOURCE_METADATA_PATH: &str = "/.well-known/oauth-protected-resource";
/// The only scope: the use of one MCP endpoint.
const ENDPOINT_SCOPE: &str = "mcp";
