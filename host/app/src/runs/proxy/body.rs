//! Bodies of proxy requests and of their responses.
use std::sync::Arc;

use bytes::Bytes;
use manifest::EgressRule;
use sandbox::{Limits, Policy};
use serde_json::Value;
use url::Url;

use super::TOOL_SLUG;
use crate::{
    App, Result,
    catalog::Release,
    files::{self, Link},
    projects::SharedProject,
    runs::{
        errors,
        run::{self, Request, Run},
    },
};

/// Maximum size of a request body, in bytes.
pub const MAX_BODY_BYTES: usize = 4 << 20;
/// Maximum size of text in a response, in bytes. Longer text becomes a file.
pub(super) const MAX_TEXT_BYTES: usize = 4 << 20;
/// Prefixes of media types that are treated as binary, even if the bytes are valid text.
const BINARY_MEDIA_TYPES: [&str; 7] = [
    "image/",
    "audio/",
    "video/",
    "font/",
    "application/octet-stream",
    "application/pdf",
    "application/zip",
];

/// The body of a proxy request.
#[derive(Debug)]
pub enum ProxyBody {
    /// JSON text.
    Json(Bytes),
    /// Bytes that are sent unchanged, at most 4 MiB, with their media type.
    Bytes(Bytes, Option<String>),
    /// The content of a public URL, with a media type that replaces the one of its response.
    Url(String, Option<String>),
}

/// The body of a response.
#[derive(Debug)]
pub enum ResponseBody {
    /// An empty body.
    Empty,
    /// A JSON body.
    Json(Value),
    /// A text body that is not JSON.
    Text(String),
    /// A binary or large body, which is stored as a file.
    File(Link),
}

/// Returns the bytes to send. Adds their media type to the headers unless the caller has set one.
pub(super) async fn body_bytes(
    app: &App,
    project: &SharedProject,
    release: &Release,
    body: ProxyBody,
    headers: &mut Vec<(String, String)>,
) -> Result<Bytes> {
    let (bytes, media_type) = match body {
        ProxyBody::Json(bytes) => (bytes, Some("application/json".to_owned())),
        ProxyBody::Bytes(bytes, media_type) => (bytes, media_type),
        ProxyBody::Url(url, media_type) => {
            let (bytes, own) = download(app, project, release, &url).await?;
            (bytes, media_type.or(own))
        }
    };
    if bytes.len() > MAX_BODY_BYTES {
        return Err(errors::invalid(format!(
            "the body has {} bytes; at most {MAX_BODY_BYTES} can be sent",
            bytes.len()
        )));
    }
    if let Some(media_type) = media_type
        && !headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
    {
        headers.push(("content-type".to_owned(), media_type));
    }
    Ok(bytes)
}

/// Downloads a URL without a credential. Returns its content and media type.
async fn download(
    app: &App,
    project: &SharedProject,
    release: &Release,
    address: &str,
) -> Result<(Bytes, Option<String>)> {
    let invalid = |why: &str| errors::invalid(format!("binary_body.url: {why}"));
    let url = Url::parse(address).map_err(|_| invalid("is not a URL"))?;
    let host = url
        .domain()
        .ok_or_else(|| invalid("must have a host name, not an IP address"))?
        .to_owned();
    let rule = EgressRule {
        host,
        port: url.port(),
        methods: Vec::new(),
        path_prefix: None,
    };
    let run = Run {
        project,
        release,
        what: Request {
            method: "GET".to_owned(),
            url: url.into(),
            headers: Vec::new(),
            body: None,
        },
        policy: Arc::new(Policy {
            egress: vec![rule],
            read_only: true,
            ..Policy::default()
        }),
        credential: None,
        limits: Limits {
            file: MAX_BODY_BYTES as u64,
            ..Limits::default()
        },
        record: None,
    };
    let sent = run::send(app, run).await?;
    let answer = sent.output.map_err(|failed| invalid(&failed.message))?;
    if !(200..300).contains(&answer.status) {
        return Err(invalid(&format!(
            "the response has the status {}",
            answer.status
        )));
    }
    let media_type = header(&answer.headers, "content-type").map(str::to_owned);
    Ok((answer.body, media_type))
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(own, _)| own == name)
        .map(|(_, value)| value.as_str())
}

/// Converts a response body to the form that callers receive.
pub(super) async fn to_response_body(
    app: &App,
    project: &SharedProject,
    toolkit: &str,
    headers: &[(String, String)],
    body: Bytes,
) -> Result<ResponseBody> {
    if body.is_empty() {
        return Ok(ResponseBody::Empty);
    }
    let media_type = header(headers, "content-type")
        .unwrap_or_default()
        .to_ascii_lowercase();
    let binary = BINARY_MEDIA_TYPES
        .iter()
        .any(|family| media_type.starts_with(family))
        && !media_type.starts_with("image/svg");
    let parsed = if binary || body.len() > MAX_TEXT_BYTES {
        Err(body)
    } else {
        let (size, parse) = (body.len(), move || parse_text(body));
        app.large_work.run(&project.tenant, size, parse).await?
    };
    match parsed {
        Ok(body) => Ok(body),
        Err(body) => {
            let media_type = if media_type.is_empty() {
                "application/octet-stream"
            } else {
                &media_type
            };
            let made = files::NewFile {
                toolkit,
                tool: TOOL_SLUG,
                name: "answer",
                media_type,
                bytes: body,
            };
            Ok(ResponseBody::File(
                files::store_new(app, project, made).await?.link,
            ))
        }
    }
}

/// Parses a body as JSON, or as text if it is not JSON. Returns a body that is not text unchanged.
fn parse_text(body: Bytes) -> std::result::Result<ResponseBody, Bytes> {
    match std::str::from_utf8(&body) {
        Ok(text) if !text.contains('\0') => Ok(serde_json::from_str(text)
            .map_or_else(|_| ResponseBody::Text(text.to_owned()), ResponseBody::Json)),
        _ => Err(body),
    }
}
