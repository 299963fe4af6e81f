//! Logos of toolkits, as images that run nothing.

use std::sync::Arc;

use axum::{
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use http::{ApiResult, Path, Server};

/// Policy of a browser that opens a logo by itself: it loads nothing and runs no script.
const LOGO_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

/// Returns the logo of the current version of a toolkit.
pub async fn read(
    State(server): State<Arc<Server>>,
    Path(slug): Path<String>,
) -> ApiResult<Response> {
    let catalog = server.app.catalog.snapshot();
    let toolkit = catalog.toolkit(&slug);
    let image = toolkit.and_then(|toolkit| image(&toolkit.current().logo));
    let (media_type, bytes) = image.ok_or_else(|| catalog.unknown_toolkit(&slug))?;
    let policy = HeaderValue::from_static(LOGO_POLICY);
    let headers = [
        (header::CONTENT_TYPE, media_type),
        (header::CONTENT_SECURITY_POLICY, policy),
    ];
    Ok((headers, bytes).into_response())
}

/// Returns the media type and the bytes of a logo, which is an SVG document or a `data:` URL.
fn image(logo: &str) -> Option<(HeaderValue, Vec<u8>)> {
    if logo.is_empty() {
        return None;
    }
    let Some(data) = logo.trim_start().strip_prefix("data:") else {
        let media_type = HeaderValue::from_static("image/svg+xml");
        return Some((media_type, logo.as_bytes().to_vec()));
    };
    let (media_type, content) = data.split_once(";base64,")?;
    let media_type = HeaderValue::from_str(media_type).ok()?;
    Some((media_type, BASE64.decode(content).ok()?))
}
