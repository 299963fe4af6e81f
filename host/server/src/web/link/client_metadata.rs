//! Metadata of OAuth clients whose client id is a URL of this server. Providers fetch it.

use std::sync::Arc;

use app::{connections, ids::AuthConfigId};
use axum::{extract::State, response::Response};

use crate::{
    Server,
    extract::Path,
    respond::{Reply, ok},
};

/// Answers with the metadata of the client of an auth config.
pub(crate) async fn read(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> Reply<Response> {
    ok(&connections::described(&server.app, &AuthConfigId::parse(&id)?).await?)
}
