//! The API description, and the page that displays it. Everything is loaded from this server, so no
//! third party learns who reads it.

use std::{
    io::{Cursor, Read},
    sync::{Arc, LazyLock},
};

use axum::{
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get},
};
use bytes::Bytes;
use http::{ApiError, ApiResult, HttpError, Path, Server, errors};
use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;
use zip::ZipArchive;

/// Scripts and requests may only use this server. Inline styles are allowed because the page sets
/// them from its script.
const PAGE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

const PAGE_HTML: &str = include_str!("page.html");
const START_SCRIPT: &str = include_str!("start.js");

static SWAGGER_STYLE: LazyLock<Option<Bytes>> = LazyLock::new(|| unpack("/dist/swagger-ui.css"));
static SWAGGER_SCRIPT: LazyLock<Option<Bytes>> =
    LazyLock::new(|| unpack("/dist/swagger-ui-bundle.js"));

/// Answers with the API description.
pub fn description(text: String) -> MethodRouter<Arc<Server>> {
    let text = Bytes::from(text);
    get(move || async move { ([(header::CONTENT_TYPE, "application/json")], text) })
}

/// Answers with the page.
pub async fn page() -> Response {
    with_policy(
        "text/html; charset=utf-8",
        Bytes::from_static(PAGE_HTML.as_bytes()),
    )
}

/// Answers with a file that the page loads.
pub async fn asset(Path(name): Path<String>) -> ApiResult<Response> {
    match name.as_str() {
        "start.js" => Ok(with_policy(
            "text/javascript",
            Bytes::from_static(START_SCRIPT.as_bytes()),
        )),
        "swagger-ui.css" => Ok(with_policy("text/css", unpacked(&SWAGGER_STYLE)?)),
        "swagger-ui-bundle.js" => Ok(with_policy("text/javascript", unpacked(&SWAGGER_SCRIPT)?)),
        _ => Err(HttpError::UnknownRoute(None).into()),
    }
}

fn unpacked(asset: &Option<Bytes>) -> ApiResult<Bytes> {
    asset.clone().ok_or_else(|| {
        ApiError::App(errors::internal(
            "the embedded archive of the documentation page cannot be read",
        ))
    })
}

/// Returns the first file of the archive whose name has the given suffix.
fn unpack(suffix: &str) -> Option<Bytes> {
    let mut archive = ZipArchive::new(Cursor::new(SWAGGER_UI_VENDORED)).ok()?;
    let name = archive
        .file_names()
        .find_map(|name| name.ok().filter(|name| name.ends_with(suffix)))?
        .into_owned();
    let mut bytes = Vec::new();
    archive.by_name(&name).ok()?.read_to_end(&mut bytes).ok()?;
    Some(bytes.into())
}

fn with_policy(content_type: &'static str, bytes: Bytes) -> Response {
    (
        [
            (header::CONTENT_TYPE, HeaderValue::from_static(content_type)),
            (header::CONTENT_SECURITY_POLICY, PAGE_POLICY),
        ],
        bytes,
    )
        .into_response()
}
