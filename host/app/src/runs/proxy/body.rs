//! Bodies of proxy requests and of their responses.

use std::sync::Arc;

use bumpalo::Bump;
use bytes::Bytes;
use manifest::disposition;
use sandbox::{Limits, Policy};
use serde::Deserialize;
use serde_json::value::RawValue;
use url::Url;

use super::destination::rule;
use crate::{
    App, Result,
    accounts::auth_configs::PROXY_REQUEST_SLUG,
    catalog::Release,
    core::json::{RawJson, Rules, Tree, without_large_numbers},
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

impl ProxyBody {
    /// Returns the field `body` of the JSON object of a project's request: a string is sent as it
    /// is, any other value as JSON, as it is written there, because numbers lose digits in a parsed
    /// value. Null is no body. The inner error means that the bytes are no JSON object. Fails as
    /// [`LargeWork::scan`](crate::core::large_work::LargeWork::scan).
    pub async fn find_in(
        app: &App,
        tenant: &Arc<str>,
        object: Bytes,
    ) -> Result<serde_json::Result<Option<Self>>> {
        let size = object.len();
        let found = app
            .large_work
            .scan(tenant, size, move || Self::from_member(&object));
        found.await
    }

    /// Returns the JSON object of such a request so that its other fields can be read: with zeros for the
    /// numbers of the field `body` that are too large for a value. Other bytes stay as they are.
    pub(crate) fn with_readable_numbers(object: &Bytes) -> Bytes {
        let Ok(WithBody { body: Some(body) }) = serde_json::from_slice(object) else {
            return object.clone();
        };
        let body = object.slice_ref(body.get().as_bytes());
        let start = body.as_ptr() as usize - object.as_ptr() as usize;
        let end = start + body.len();
        let readable = without_large_numbers(body);
        [&object[..start], &readable, &object[end..]]
            .concat()
            .into()
    }

    fn from_member(object: &Bytes) -> serde_json::Result<Option<Self>> {
        let WithBody { body } = serde_json::from_slice(object)?;
        let Some(text) = body.map(RawValue::get) else {
            return Ok(None);
        };
        Ok(Some(if text.starts_with('"') {
            Self::Bytes(serde_json::from_str::<String>(text)?.into(), None)
        } else {
            Self::Json(object.slice_ref(text.as_bytes()))
        }))
    }
}

/// An object with a field `body`.
#[derive(Deserialize)]
struct WithBody<'a> {
    #[serde(borrow)]
    body: Option<&'a RawValue>,
}

/// The body of a response.
#[derive(Debug)]
pub enum ResponseBody {
    /// A JSON body with all digits of its numbers, other text as a JSON string, or null for an empty body.
    Json(RawJson),
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
    let size = bytes.len();
    if size > MAX_BODY_BYTES {
        let problem = format!("the body has {size} bytes; at most {MAX_BODY_BYTES} can be sent");
        return Err(errors::invalid(problem));
    }
    let mut names = headers.iter().map(|(name, _)| name);
    let is_set = names.any(|name| name.eq_ignore_ascii_case("content-type"));
    if let Some(media_type) = media_type.filter(|_| !is_set) {
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
    let url = Url::parse(address).map_err(|_| invalid_url("is not a URL"))?;
    let host = url.domain();
    let host = host.ok_or_else(|| invalid_url("must have a host name, not an IP address"))?;
    let rule = rule(host.to_owned(), url.port());
    let run = Run {
        project,
        release,
        what: Request {
            method: "GET".to_owned(),
            url: url.into(),
            headers: Vec::new(),
            body: None,
            max_text_bytes: 0,
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
    let answer = sent.output.map_err(|failed| invalid_url(&failed.message))?;
    if !(200..300).contains(&answer.status) {
        return Err(invalid_url(&format!(
            "the response has the status {}",
            answer.status
        )));
    }
    let media_type = header(&answer.headers, "content-type").map(str::to_owned);
    Ok((answer.body, media_type))
}

fn invalid_url(why: &str) -> crate::Error {
    errors::invalid(format!("binary_body.url: {why}"))
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
        return Ok(ResponseBody::Json(RawJson::NULL_VALUE));
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
        Ok(json) => Ok(ResponseBody::Json(json)),
        Err(body) => {
            let media_type = if media_type.is_empty() {
                "application/octet-stream"
            } else {
                &media_type
            };
            let name = header(headers, "content-disposition").and_then(disposition::file_name);
            let made = files::NewFile {
                toolkit,
                tool: PROXY_REQUEST_SLUG,
                name: name.as_deref().unwrap_or("answer"),
                media_type,
                bytes: body,
            };
            Ok(ResponseBody::File(
                files::store_new(app, project, made).await?.link,
            ))
        }
    }
}

/// Returns a body as JSON: as it is, or other text as a string. Returns a binary body unchanged.
fn parse_text(body: Bytes) -> std::result::Result<RawJson, Bytes> {
    match std::str::from_utf8(&body) {
        Ok(text) if !text.contains('\0') => {
            let json = without_large_numbers(body.clone());
            let is_json = Tree::parse(&json, &Bump::new(), Rules::Lenient).is_ok();
            Ok(if is_json {
                RawJson(body)
            } else {
                RawJson::from_text(text)
            })
        }
        _ => Err(body),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_json_body_is_kept() {
        let body = |object: &'static str| ProxyBody::from_member(&object.into());
        let kept = body(r#"{"a":1, "body": {"n": 12345678901234567890123, "p": 1.0}}"#);
        let Ok(Some(ProxyBody::Json(kept))) = kept else {
            panic!("{kept:?}");
        };
        assert_eq!(kept, r#"{"n": 12345678901234567890123, "p": 1.0}"#);
        let text = body(r#"{"body": "a\u0062"}"#);
        let Ok(Some(ProxyBody::Bytes(text, None))) = text else {
            panic!("{text:?}");
        };
        assert_eq!(text, "ab");
        for none in ["{}", r#"{"body": null}"#] {
            assert!(matches!(body(none), Ok(None)), "{none}");
        }
    }

    #[test]
    fn large_numbers_are_readable_in_bodies_alone() {
        for (object, readable) in [
            (
                r#"{"a":1E400, "body":[1E400]}"#,
                r#"{"a":1E400, "body":[0    ]}"#,
            ),
            (r#"{"a":1E400}"#, r#"{"a":1E400}"#),
            ("[1E400", "[1E400"),
        ] {
            assert_eq!(ProxyBody::with_readable_numbers(&object.into()), readable);
        }
    }

    #[test]
    fn json_of_a_response_is_kept() {
        let parsed = |text: &'static str| parse_text(text.into()).map(|RawJson(json)| json);
        let json = r#"{"n": 0.1234567890123456789, "large": 1E400}"#;
        assert_eq!(parsed(json).unwrap(), json);
        assert_eq!(parsed("{").unwrap(), r#""{""#);
        assert!(parsed("\0").is_err());
    }
}
