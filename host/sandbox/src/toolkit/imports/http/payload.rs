//! Bodies of requests: their content, the limits on it, and the members that a credential adds.

use std::borrow::Cow;

use bytes::Bytes;
use net::HeaderMap;
use serde_json::{Map, Value};
use url::form_urlencoded;

use super::error;
use crate::{
    Limits,
    contract::v1::{
        blob,
        http::{self, Error},
    },
    files::Files,
    sign::is_form,
};

/// Maximum number of parts of a multipart body. The HTTP library puts each part into the one before,
/// and reads them by recursion.
pub const MAX_PARTS: usize = 256;

/// Content of a body, from which a request can be built repeatedly.
#[derive(Debug, Clone)]
pub(super) enum Payload {
    Empty,
    Bytes(Bytes),
    Multipart(Vec<Part>),
}

#[derive(Debug, Clone)]
pub(super) struct Part {
    name: String,
    filename: Option<String>,
    media_type: Option<String>,
    bytes: Bytes,
}

impl Part {
    fn to_net(&self) -> Result<net::Part, Error> {
        let size = self.bytes.len() as u64;
        let mut part = net::Part::stream_with_length(self.bytes.clone(), size);
        if let Some(filename) = &self.filename {
            part = part.file_name(filename.clone());
        }
        if let Some(media_type) = &self.media_type {
            part = part.mime_str(media_type).map_err(|_| {
                let problem = format!("`{media_type}` is not a media type");
                error("invalid_request", problem)
            })?;
        }
        Ok(part)
    }
}

impl Payload {
    /// Returns the size of the content in bytes, without the framing of parts.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Multipart(parts) => parts.iter().map(|part| part.bytes.len() as u64).sum(),
        }
    }

    pub(super) fn body(&self) -> Result<net::Body, Error> {
        Ok(match self {
            Self::Empty => net::Body::Empty,
            Self::Bytes(bytes) => net::Body::Bytes(bytes.clone()),
            Self::Multipart(parts) if parts.len() > MAX_PARTS => {
                let problem = format!("a multipart body has at most {MAX_PARTS} parts");
                return Err(error("invalid_request", problem));
            }
            Self::Multipart(parts) => {
                let form = parts.iter().try_fold(net::Form::new(), |form, part| {
                    Ok(form.part(part.name.clone(), part.to_net()?))
                })?;
                net::Body::Multipart(form)
            }
        })
    }
}

/// Resolves the content that a request refers to.
pub(super) fn to_payload(
    body: http::Body,
    files: &Files,
    limits: &Limits,
) -> Result<Payload, Error> {
    let all = body_size(&body, files, limits)?;
    let most = limits.file.max(limits.request_body);
    if all > most {
        let problem = format!("the body of a request has at most {most} bytes with its files");
        return Err(error("too_large", problem));
    }
    Ok(match body {
        http::Body::Empty => Payload::Empty,
        http::Body::Content(one) => Payload::Bytes(content_bytes(one, files)?),
        http::Body::Multipart(parts) => Payload::Multipart(
            parts
                .into_iter()
                .map(|part| to_part(part, files))
                .collect::<Result<_, Error>>()?,
        ),
    })
}

fn to_part(part: http::Part, files: &Files) -> Result<Part, Error> {
    Ok(Part {
        name: part.name,
        filename: part.filename,
        media_type: part.media_type,
        bytes: content_bytes(part.content, files)?,
    })
}

fn body_size(body: &http::Body, files: &Files, limits: &Limits) -> Result<u64, Error> {
    match body {
        http::Body::Empty => Ok(0),
        http::Body::Content(one) => content_size(one, files, limits),
        http::Body::Multipart(parts) => parts
            .iter()
            .map(|part| content_size(&part.content, files, limits))
            .sum(),
    }
}

fn content_size(content: &http::Content, files: &Files, limits: &Limits) -> Result<u64, Error> {
    match content {
        http::Content::Bytes(bytes) if bytes.len() as u64 > limits.request_body => {
            Err(too_large(limits.request_body))
        }
        http::Content::Bytes(bytes) => Ok(bytes.len() as u64),
        http::Content::Blob(id) => files.size(id).map_err(missing_file),
    }
}

fn content_bytes(content: http::Content, files: &Files) -> Result<Bytes, Error> {
    match content {
        http::Content::Bytes(bytes) => Ok(Bytes::from(bytes)),
        http::Content::Blob(id) => files.content(&id).map_err(missing_file),
    }
}

fn missing_file(cause: blob::Error) -> Error {
    error("invalid_request", cause.message)
}

fn too_large(limit: u64) -> Error {
    error(
        "too_large",
        format!("the body of a request has at most {limit} bytes; send a file by its id instead"),
    )
}

/// Merges members into a body and replaces existing members of the same names. A request without a
/// body stays without one.
pub(super) fn merge<'a>(
    members: &Map<String, Value>,
    headers: &HeaderMap,
    payload: &'a Payload,
) -> Result<Cow<'a, Payload>, Error> {
    if members.is_empty() {
        return Ok(Cow::Borrowed(payload));
    }
    let merged = match payload {
        Payload::Empty => return Ok(Cow::Borrowed(payload)),
        Payload::Multipart(parts) => {
            let theirs = parts
                .iter()
                .filter(|part| !members.contains_key(&part.name))
                .cloned();
            Payload::Multipart(theirs.chain(members.iter().map(part)).collect())
        }
        Payload::Bytes(bytes) if is_form(headers) => {
            let mut form = form_urlencoded::Serializer::new(String::new());
            form.extend_pairs(
                form_urlencoded::parse(bytes).filter(|(name, _)| !members.contains_key(&**name)),
            );
            form.extend_pairs(members.iter().map(|(name, value)| (name, text(value))));
            Payload::Bytes(form.finish().into())
        }
        Payload::Bytes(bytes) => {
            let mut object: Map<String, Value> = serde_json::from_slice(bytes).map_err(|_| {
                error(
                    "credential",
                    "the credential goes into the body, which is neither a JSON object nor a form",
                )
            })?;
            object.extend(members.clone());
            Payload::Bytes(Value::Object(object).to_string().into())
        }
    };
    Ok(Cow::Owned(merged))
}

fn part((name, value): (&String, &Value)) -> Part {
    Part {
        name: name.clone(),
        filename: None,
        media_type: None,
        bytes: text(value).into_owned().into(),
    }
}

/// Returns a value in the form in which forms hold it.
fn text(value: &Value) -> Cow<'_, str> {
    value
        .as_str()
        .map_or_else(|| value.to_string().into(), Cow::from)
}

#[cfg(test)]
mod tests {
    use net::header::{CONTENT_TYPE, HeaderValue};

    use super::*;

    fn text(text: &str) -> String {
        text.to_owned()
    }

    #[test]
    fn body_members_replace_the_guests_own() {
        let members = serde_json::from_str(r#"{"key": "k&1", "version": 2}"#).unwrap();
        let merged = |media_type: &'static str, payload: Payload| {
            let headers =
                HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media_type))]);
            match merge(&members, &headers, &payload).map(Cow::into_owned) {
                Ok(Payload::Bytes(bytes)) => Ok(String::from_utf8(bytes.to_vec()).unwrap()),
                Ok(Payload::Multipart(parts)) => {
                    let shown = parts.iter().map(|part| {
                        format!("{}={}", part.name, String::from_utf8_lossy(&part.bytes))
                    });
                    Ok(shown.collect::<Vec<_>>().join(" "))
                }
                Ok(Payload::Empty) => Ok(String::new()),
                Err(refused) => Err(refused.kind),
            }
        };
        let bytes = |text: &'static str| Payload::Bytes(text.into());
        let json = merged("application/json", bytes(r#"{"q": 1, "key": "theirs"}"#)).unwrap();
        assert_eq!(json, r#"{"q":1,"key":"k&1","version":2}"#);
        let form = merged(
            "Application/X-WWW-Form-Urlencoded; charset=utf-8",
            bytes("q=a+b&key=theirs"),
        )
        .unwrap();
        assert_eq!(form, "q=a+b&key=k%261&version=2");
        let own = |name: &str| Part {
            name: text(name),
            filename: None,
            media_type: None,
            bytes: "x".into(),
        };
        let parts = merged(
            "multipart/form-data",
            Payload::Multipart(vec![own("q"), own("key")]),
        )
        .unwrap();
        assert_eq!(parts, "q=x key=k&1 version=2");
        assert_eq!(merged("application/json", Payload::Empty).unwrap(), "");
        assert_eq!(
            merged("text/plain", bytes("[1]")).unwrap_err(),
            "credential"
        );
    }

    #[test]
    fn parts_of_a_body_are_limited() {
        let part = Part {
            name: "a".to_owned(),
            filename: None,
            media_type: None,
            bytes: Bytes::new(),
        };
        let body = |parts: usize| Payload::Multipart(vec![part.clone(); parts]).body();
        assert!(body(MAX_PARTS).is_ok());
        let refused = body(MAX_PARTS + 1).err().unwrap();
        assert_eq!(refused.kind, "invalid_request");
    }
}
