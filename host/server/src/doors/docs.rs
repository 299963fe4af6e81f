//! The API description, and the page that displays it. Everything is loaded from this server, so no
//! third party learns who reads it.

use std::{
    io::{Cursor, Read},
    sync::{Arc, LazyLock},
};

use app::Error;
use axum::{
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get},
};
use bytes::Bytes;
use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;
use zip::ZipArchive;

use crate::{
    Server,
    http::{error::ApiError, error::ApiResult, error::HttpError, path::Path},
};

/// Scripts and requests may only use this server. Inline styles are allowed because the page sets
/// them from its script.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

const PAGE: &str = r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>toolhost API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
"#;

/// Configured without a validator, which would be a third party's server.
const START: &str = r##"SwaggerUIBundle({
  url: "/api/v3/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  docExpansion: "list",
  validatorUrl: null,
});
"##;

/// Answers with the API description.
pub(crate) fn description(text: String) -> MethodRouter<Arc<Server>> {
    let text = Bytes::from(text);
    get(move || async move { ([(header::CONTENT_TYPE, "application/json")], text) })
}

/// Answers with the page.
pub(crate) async fn page() -> Response {
    shown(
        "text/html; charset=utf-8",
        Bytes::from_static(PAGE.as_bytes()),
    )
}

/// Answers with a file that the page loads.
pub(crate) async fn asset(Path(name): Path<String>) -> ApiResult<Response> {
    match name.as_str() {
        "start.js" => Ok(shown(
            "text/javascript",
            Bytes::from_static(START.as_bytes()),
        )),
        "swagger-ui.css" => Ok(shown("text/css", unpacked(&STYLE)?)),
        "swagger-ui-bundle.js" => Ok(shown("text/javascript", unpacked(&SCRIPT)?)),
        _ => Err(HttpError::UnknownRoute.into()),
    }
}

static STYLE: LazyLock<Option<Bytes>> = LazyLock::new(|| unpack("/dist/swagger-ui.css"));
static SCRIPT: LazyLock<Option<Bytes>> = LazyLock::new(|| unpack("/dist/swagger-ui-bundle.js"));

fn unpacked(asset: &Option<Bytes>) -> ApiResult<Bytes> {
    asset
        .clone()
        .ok_or_else(|| ApiError::App(Error::Internal("the page's archive cannot be read".into())))
}

/// Returns the first file of the archive whose name has the given ending.
fn unpack(end: &str) -> Option<Bytes> {
    let mut archive = ZipArchive::new(Cursor::new(SWAGGER_UI_VENDORED)).ok()?;
    let name = archive
        .file_names()
        .find_map(|name| name.ok().filter(|name| name.ends_with(end)))?
        .into_owned();
    let mut bytes = Vec::new();
    archive.by_name(&name).ok()?.read_to_end(&mut bytes).ok()?;
    Some(bytes.into())
}

fn shown(kind: &'static str, bytes: Bytes) -> Response {
    (
        [
            (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
            (header::CONTENT_SECURITY_POLICY, POLICY),
        ],
        bytes,
    )
        .into_response()
}
