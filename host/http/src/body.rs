//! Bodies of requests, read within limits of size, time and speed.
//!
//! JSON is parsed strictly (see [`app::core::json`]). A request whose body is still arriving holds no
//! concurrency permit.

mod arriving;

use std::{convert::identity, marker::PhantomData, sync::Arc};

use app::{Error, catalog::MAX_COMPONENT_BYTES, core::json};
use axum::{
    extract::{FromRequest, Request},
    http::{HeaderMap, Method, header},
};
use bytes::Bytes;
use net::text;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use settings::UnknownMembers;

use crate::{
    ApiError, ApiResult, Branding, CURRENT_REQUEST, HttpError, Json, Server,
    context::operation,
    errors,
    members::{self, DOCUMENT_NAME},
    noting::{Notes, Noting},
    unknown::{Warning, Warnings},
};

pub use self::arriving::{read, read_after, read_file};

/// Charsets of JSON bodies that are accepted, as the Encoding standard names them. Latin-1 is a part of
/// `windows-1252` there.
const JSON_CHARSETS: [&str; 5] = ["UTF-8", "UTF-16LE", "UTF-16BE", "windows-1252", "Shift_JIS"];

/// Problem of a body of another type.
const NOT_AN_OBJECT: &str = "body: must be a JSON object";

impl<T: DeserializeOwned + Send + 'static> FromRequest<Arc<Server>> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, server: &Arc<Server>) -> ApiResult<Self> {
        let is_change = *request.method() == Method::PATCH;
        let UnparsedJson { bytes, .. } = UnparsedJson::<T>::from_request(request, server).await?;
        let (body, notes) = read_object(server, bytes, identity).await?;
        if is_change && !notes.has_known {
            refuse_unknown_change(&notes.warnings)?;
        }
        admit_unknown(server, notes.warnings)?;
        Ok(Self(body))
    }
}

/// JSON body with its text, for a handler that passes on a part of the text. Numbers that are too large
/// for a value are only in the text; the body has zeros.
pub struct JsonWithText<T> {
    pub body: T,
    /// The text of the body; empty if the request has no body.
    pub text: Bytes,
}

impl<T: DeserializeOwned + Send + 'static> FromRequest<Arc<Server>> for JsonWithText<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, server: &Arc<Server>) -> ApiResult<Self> {
        let UnparsedJson { bytes: text, .. } =
            UnparsedJson::<T>::from_request(request, server).await?;
        let (body, notes) = read_object(server, text.clone(), json::without_large_numbers).await?;
        admit_unknown(server, notes.warnings)?;
        Ok(Self { body, text })
    }
}

/// JSON body that may be absent; it counts as `{}` then.
pub struct OptionalJson<T>(pub T);

impl<T: DeserializeOwned + Send + 'static> FromRequest<Arc<Server>> for OptionalJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, server: &Arc<Server>) -> ApiResult<Self> {
        let Json(body) = Json::from_request(request, server).await?;
        Ok(Self(body))
    }
}

/// JSON body that its handler parses as a `T`.
pub struct UnparsedJson<T> {
    /// The bytes as they arrived, in UTF-8.
    pub bytes: Bytes,
    parsed_as: PhantomData<fn() -> T>,
}

impl<T> FromRequest<Arc<Server>> for UnparsedJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, server: &Arc<Server>) -> ApiResult<Self> {
        let (head, body) = request.into_parts();
        is_json(&head.headers)?;
        let limit = operation().max_body.bytes();
        let bytes = read_after(server, &head.headers, body, limit).await?;
        Ok(Self {
            bytes: decoded(server, &head.headers, bytes).await?,
            parsed_as: PhantomData,
        })
    }
}

/// Refuses a change that would change nothing, because all its properties are unknown.
fn refuse_unknown_change(unknown: &Warnings) -> ApiResult<()> {
    if unknown.is_empty() || operation().refuses_unknown_members {
        return Ok(());
    }
    let problems: Vec<_> = unknown.named().map(Warning::refusal).collect();
    Err(errors::invalid(problems).into())
}

/// Takes note of the unknown properties of the body of the request being answered. An operation
/// that refuses them does so. If `sessions.unknown_members` is `warn`, it refuses only those that
/// may be misspelled or misplaced restrictions.
///
/// # Errors
/// `4300` with every refused property that was noted.
pub fn admit_unknown(server: &Server, warnings: Warnings) -> ApiResult<()> {
    if operation().refuses_unknown_members && !warnings.is_empty() {
        // Of more members than are noted, one could be a restriction.
        let accepts_others = server.config.sessions.unknown_members == UnknownMembers::Warn
            && warnings.unnamed() == 0;
        let mut problems: Vec<_> = warnings
            .named()
            .filter(|warning| !accepts_others || warning.may_restrict)
            .map(Warning::refusal)
            .collect();
        if !problems.is_empty() {
            if let more @ 1.. = warnings.unnamed() {
                problems.push(format!("and {more} more unknown body members"));
            }
            return Err(errors::session_invalid(problems).into());
        }
        let warnings: Vec<_> = warnings.named().map(Warning::to_string).collect();
        let warnings = warnings.join(", ");
        tracing::warn!(warnings, "a request to a session has unknown members");
    }
    CURRENT_REQUEST.with(|context| context.warnings.lock().extend(warnings));
    Ok(())
}

/// Returns the JSON of a request in UTF-8, see [`text`].
///
/// # Errors
/// As [`LargeWork::run`](app::core::large_work::LargeWork::run).
pub async fn decoded(server: &Server, headers: &HeaderMap, bytes: Bytes) -> Result<Bytes, Error> {
    let media_type = text::media_type(headers);
    if text::is_plain_request(media_type, &bytes) {
        return Ok(bytes);
    }
    let (media_type, size) = (media_type.to_owned(), bytes.len());
    parse(server, size, move || {
        text::decode_request(&media_type, bytes)
    })
    .await
}

/// Does work that grows with the size of a body of the request being answered, in the turns of its
/// project.
///
/// # Errors
/// As [`LargeWork::run`](app::core::large_work::LargeWork::run).
async fn parse<T: Send + 'static>(
    server: &Server,
    size: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    let owner = CURRENT_REQUEST.with(|context| context.owner.get().cloned());
    let owner = owner.unwrap_or_default();
    server.app.large_work.run(&owner, size, work).await
}

/// Parses the JSON object of a body, whose bytes are prepared in the same turn. Returns also the notes
/// about its members.
async fn read_object<T: DeserializeOwned + Send + 'static>(
    server: &Server,
    bytes: Bytes,
    prepare: fn(Bytes) -> Bytes,
) -> ApiResult<(T, Notes)> {
    let branding = server.branding.clone();
    parse(server, bytes.len(), move || {
        object(&prepare(bytes), &branding)
    })
    .await?
}

/// Parses a JSON object strictly. An empty body is read as an empty object. Returns also the notes
/// about its members.
fn object<T: DeserializeOwned>(bytes: &[u8], branding: &Branding) -> ApiResult<(T, Notes)> {
    let value = || strict_object(bytes).map(|value| branding.restore(value));
    members::read(value().map_err(errors::invalid)?).map_err(|_| {
        let mut problems = value().map_or_else(|line| vec![line], members::problems::<T>);
        for line in &mut problems {
            *line = branding.rename(line).into_owned();
        }
        errors::invalid(problems).into()
    })
}

/// Parses a JSON object strictly. An empty body is read as an empty object.
///
/// # Errors
/// The problem with the bytes.
fn strict_object(bytes: &[u8]) -> Result<Value, String> {
    let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { bytes };
    let value = json::parse(bytes).map_err(|problem| problem.line(DOCUMENT_NAME))?;
    // serde would deserialize a struct from an array of its members in order.
    if !value.is_object() {
        return Err(NOT_AN_OBJECT.to_owned());
    }
    Ok(value)
}

/// Parses a JSON object whose parts are borrowed from its bytes. Returns also the warnings about
/// unknown members.
///
/// # Errors
/// If the bytes are not an object that fits the type.
pub fn borrowed_object<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> ApiResult<(T, Warnings)> {
    borrowed(bytes).map_err(|problems| errors::invalid(problems).into())
}

/// Parses as [`borrowed_object`] does, for operations with errors of their own.
///
/// # Errors
/// Every problem with the bytes.
pub fn borrowed<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<(T, Warnings), Vec<String>> {
    let json: &[u8] = if bytes.is_empty() { b"{}" } else { bytes };
    // serde would deserialize a struct from an array of its members in order.
    if json.trim_ascii_start().first() != Some(&b'{') {
        return Err(vec![NOT_AN_OBJECT.to_owned()]);
    }
    let mut notes = Notes::default();
    let mut reader = serde_json::Deserializer::from_slice(json);
    let body = T::deserialize(Noting::new(&mut reader, &mut notes));
    body.and_then(|body| reader.end().map(|()| (body, notes.warnings)))
        .map_err(|_| match strict_object(bytes) {
            Ok(value) => members::problems::<T>(value),
            Err(line) => vec![line],
        })
}

/// Component of at most [`MAX_COMPONENT_BYTES`] bytes. Its content is not checked here.
pub struct ComponentBytes(pub Bytes);

impl FromRequest<Arc<Server>> for ComponentBytes {
    type Rejection = ApiError;

    async fn from_request(request: Request, server: &Arc<Server>) -> ApiResult<Self> {
        read(server, request, MAX_COMPONENT_BYTES).await.map(Self)
    }
}

/// Checks that a body is JSON by its content type, in an accepted charset.
fn is_json(headers: &HeaderMap) -> ApiResult<()> {
    let Some(given) = headers.get(header::CONTENT_TYPE) else {
        return Ok(());
    };
    let given = given.to_str().unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim();
    let json = essence.eq_ignore_ascii_case("application/json")
        || essence
            .get(essence.len().saturating_sub(5)..)
            .is_some_and(|end| end.eq_ignore_ascii_case("+json"));
    if !json {
        return Err(HttpError::WrongType.into());
    }
    if !is_charset_accepted(given) {
        return Err(HttpError::WrongCharset.into());
    }
    Ok(())
}

/// Returns true if JSON with this media type is in an accepted charset.
pub fn is_charset_accepted(media_type: &str) -> bool {
    text::charset(media_type).is_none_or(|charset| JSON_CHARSETS.contains(&charset))
}
