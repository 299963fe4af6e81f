//! Bytes of files, in and out, for whoever has a link.

use std::{sync::Arc, time::Duration};

use app::{
    Error,
    files::{self, Parameters, Signed, Ticket},
};
use axum::{
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::json;

use crate::{
    Server,
    extract::{self, Path, Query},
    respond::{self, Reply},
};

/// How long a file may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(600);

/// Takes the bytes of an upload. What media type the request itself claims does not count: that of the file was announced.
pub(crate) async fn put(
    State(server): State<Arc<Server>>,
    Path((project, id)): Path<(String, String)>,
    query: Query,
    request: Request,
) -> Reply<Response> {
    let (ticket, size) = ticket(&server, Signed::Put, &project, &id, &query)?;
    let _place = server.app.files.place().await;
    let bytes = extract::read(request, usize::try_from(size).unwrap_or(usize::MAX), ARRIVAL).await?;
    files::put(&server.app, &ticket, bytes).await?;
    respond::ok(&json!({}))
}

/// Answers the bytes of a file. A browser saves them and never shows them as a page of this server.
pub(crate) async fn get(
    State(server): State<Arc<Server>>,
    Path((project, id)): Path<(String, String)>,
    query: Query,
) -> Reply<Response> {
    let (ticket, _) = ticket(&server, Signed::Get, &project, &id, &query)?;
    let _place = server.app.files.place().await;
    let (file, bytes) = files::get(&server.app, &ticket).await?;
    let mut response = (StatusCode::OK, bytes).into_response();
    let headers = response.headers_mut();
    let value =
        |text: &str| HeaderValue::from_str(text).map_err(|_| Error::Internal("a file's type is no header".into()));
    headers.insert(header::CONTENT_TYPE, value(&file.media_type)?);
    headers.insert(header::CONTENT_DISPOSITION, value(&file.disposition())?);
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    Ok(response)
}

fn ticket(server: &Server, way: Signed, project: &str, id: &str, query: &Query) -> Reply<(Ticket, u64)> {
    let text = |name: &str| query.text(name).map(|text| text.unwrap_or_default().to_owned());
    let given = Parameters {
        expires: text("expires")?,
        md5: text("md5")?,
        media_type: text("type")?,
        size: text("size")?,
        signature: text("signature")?,
    };
    Ok(server.app.files.links.read(way, project, id, &given, server.app.clock.now())?)
}
