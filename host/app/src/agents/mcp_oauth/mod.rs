//! Authorization of assistants at MCP endpoints by OAuth 2.1.
//!
//! An assistant without an API key asks a project member for access, who signs in with a key and
//! consents to one endpoint. The assistant gets tokens for that endpoint, which have the permissions of
//! the key and end with it.
//!
//! No token is stored. Tokens, codes and client ids are strings that this installation has signed
//! ([`signed`]), so that one which it did not issue is refused without a read of the store. What a
//! project member consented to is a [`Consent`]. It holds the endpoint, a keyed hash of the key, and the
//! number of the valid refresh token.

mod client;
mod consent;
mod names;
mod signed;

use serde::{Deserialize, Serialize};

pub(crate) use self::consent::has_consent;
pub(crate) use self::consent::{COLLECTION, SWEEP_INTERVAL, delete_expired};
pub use self::{
    client::{Client, MAX_CLIENT_NAME_CHARS, MAX_REDIRECT_URIS_BYTES, register, registered},
    consent::{
        ACCESS_TOKEN_TTL, CODE_TTL, CodeExchange, NewConsent, REFRESH_TOKEN_TTL, REUSE_GRACE,
        Refresh, TokenAccess, Tokens, authenticate, exchange, member_project, record_consent,
        refresh, revoke,
    },
    names::{EndpointNames, NamedToolkits, endpoint_names},
};
use super::{
    errors,
    mcp_servers::{McpServer, Selection},
    sessions::Session,
};
use crate::{
    App, Result,
    core::ids::{ProjectId, SessionId},
};

/// An MCP endpoint to which a token gives access.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// An MCP server with the user and the accounts of its address.
    Server {
        /// Id of the server.
        id: String,
        /// User and accounts.
        selection: Selection,
    },
    /// A tool router session.
    Session(SessionId),
}

impl Resource {
    /// Returns the endpoint of an MCP server. The order of the accounts means nothing.
    #[must_use]
    pub fn server(id: String, mut selection: Selection) -> Self {
        selection.accounts.sort();
        selection.accounts.dedup();
        Self::Server { id, selection }
    }

    /// Returns the project of the endpoint. Fails if the endpoint does not exist.
    async fn project(&self, app: &App) -> Result<ProjectId> {
        let project = match self {
            Self::Server { id, .. } => {
                let server = app.store.lookup::<McpServer>(id).await?;
                server.map(|record| record.project)
            }
            Self::Session(id) => {
                let session = app.store.lookup::<Session>(id.as_str()).await?;
                session.map(|record| record.project)
            }
        };
        ProjectId::parse(&project.ok_or_else(errors::mcp_key_without_access)?)
    }
}
