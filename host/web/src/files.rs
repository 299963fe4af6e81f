//! Upload and download of files, for clients with a signed link.

use std::sync::Arc;

use app::{
    agents::session_files,
    files::{self, Parameters, Reservation, SignedOperation, Ticket, TransferPermit},
};
use axum::{
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{ApiResult, Json, Path, Query, Server, body, errors, permits};
use serde::{Deserialize, Serialize};

/// Parameters of a signed link. Those without a value are absent.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct SignedQuery {
    expires: Option<String>,
    md5: Option<String>,
    r#type: Option<String>,
    size: Option<String>,
    signature: Option<String>,
}

/// Response without members.
#[derive(Serialize)]
pub struct Empty {}

/// Bytes of a file that are being sent. They hold the transfer permit and their memory until then.
struct Outgoing {
    bytes: Bytes,
    _permit: TransferPermit,
    _memory: Reservation,
}

impl AsRef<[u8]> for Outgoing {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Stores the bytes of an upload. The media type of this request is ignored: the file's type was
/// declared when the upload was requested.
pub async fn put(
    State(server): State<Arc<Server>>,
    Path((project, id)): Path<(String, String)>,
    Query(query): Query<SignedQuery>,
    request: Request,
) -> ApiResult<Json<Empty>> {
    let (ticket, size) = ticket(&server, SignedOperation::Put, &project, &id, query)?;
    let _permit = place(&server, &ticket).await?;
    let limit = usize::try_from(size).unwrap_or(usize::MAX);
    let tenant = ticket.project.as_str().into();
    let (bytes, _memory) = body::read_file(&server, &tenant, request, limit).await?;
    if ticket.id.is_of_session() {
        session_files::put(&server.app, &ticket, bytes).await?;
    } else {
        files::put(&server.app, &ticket, bytes).await?;
    }
    Ok(Json(Empty {}))
}

/// Answers with the bytes of a file. Browsers save them and never display them as a page of this
/// server.
pub async fn get(
    State(server): State<Arc<Server>>,
    Path((project, id)): Path<(String, String)>,
    Query(query): Query<SignedQuery>,
) -> ApiResult<Response> {
    let (ticket, _) = ticket(&server, SignedOperation::Get, &project, &id, query)?;
    let place = place(&server, &ticket).await?;
    let (file, bytes, memory) = if ticket.id.is_of_session() {
        session_files::download(&server.app, &ticket).await?
    } else {
        files::get(&server.app, &ticket).await?
    };
    let bytes = Bytes::from_owner(Outgoing {
        bytes,
        _permit: place,
        _memory: memory,
    });
    let mut response = (StatusCode::OK, bytes).into_response();
    let headers = response.headers_mut();
    let value = |text: &str| {
        HeaderValue::from_str(text).map_err(|_| errors::internal("a file's type is no header"))
    };
    headers.insert(header::CONTENT_TYPE, value(&file.media_type)?);
    headers.insert(header::CONTENT_DISPOSITION, value(&file.disposition())?);
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("sandbox; default-src 'none'"),
    );
    Ok(response)
}

/// Acquires a transfer permit of the project. The request releases its concurrency permits while it
/// waits.
async fn place(server: &Server, ticket: &Ticket) -> ApiResult<TransferPermit> {
    if let Some(place) = server.app.files.try_acquire_transfer(&ticket.project) {
        return Ok(place);
    }
    permits::leave();
    let place = server.app.files.acquire_transfer(&ticket.project).await?;
    permits::acquire(&server.limiter).await?;
    Ok(place)
}

fn ticket(
    server: &Server,
    way: SignedOperation,
    project: &str,
    id: &str,
    query: SignedQuery,
) -> ApiResult<(Ticket, u64)> {
    let given = Parameters {
        expires: query.expires.unwrap_or_default(),
        md5: query.md5.unwrap_or_default(),
        media_type: query.r#type.unwrap_or_default(),
        size: query.size.unwrap_or_default(),
        signature: query.signature.unwrap_or_default(),
    };
    let links = &server.app.files.links;
    Ok(links.verify(way, project, id, &given, server.app.clock.now())?)
}
