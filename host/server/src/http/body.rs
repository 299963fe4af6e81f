//! Bodies of requests, read within limits of size, time and speed.
//!
//! JSON is parsed strictly (see [`app::core::json`]). A request whose body is still arriving holds no
//! concurrency permit.

mod arriving;

use std::{marker::PhantomData, sync::Arc};

use app::{Error, catalog::MAX_COMPONENT_BYTES, core::json};
use axum::{
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use bytes::Bytes;
use net::text;
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    config::UnknownMembers,
    http::{
        ApiError, ApiResult, Branding, CURRENT_REQUEST, HttpError, Json, Server,
        context::operation,
        errors, members,
        noting::{Notes, Noting},
        unknown::{MAX_WARNINGS, Warning},
    },
};

pub(crate) use self::arriving::{read, read_after, read_file};

/// Charsets of JSON bodies that are accepted, as the Encoding standard names them. Latin-1 is a part of
/// `windows-1252` there.
const JSON_CHARSETS: [&str; 5] = ["UTF-8", "UTF-16LE", "UTF-16BE", "windows-1252", "Shift_JIS"];

impl<T: DeserializeOwned + Send + 'static> FromRequest<Arc<Server>> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, server: &Arc<Server>) -> ApiResult<Self> {
        let JsonWithText { body, .. } = JsonWithText::from_request(request, server).await?;
        Ok(Self(body))
    }
}

/// JSON body with its text, for a handler that passes on a part of the text.
pub(crate) struct JsonWithText<T> {
    pub body: T,
    /// The text of the body; empty if the request has no body.
    pub text: Bytes,
}

impl<T: DeserializeOwned + Send + 'static> FromRequest<Arc<Server>> for JsonWithText<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, server: &Arc<Server>) -> ApiResult<Self> {
        let UnparsedJson { bytes: text, .. } =
            UnparsedJson::<T>::from_request(request, server).await?;
        let (size, bytes) = (text.len(), text.clone());
        let branding = server.branding.clone();
        let parsed = parse(server, size, move || object(&bytes, &branding));
        let (body, warnings) = parsed.await??;
        admit_unknown(server, warnings)?;
        Ok(Self { body, text })
    }
}

/// JSON body that may be absent; it counts as `{}` then.
pub(crate) struct OptionalJson<T>(pub T);

impl<T: DeserializeOwned + Send + 'static> FromRequest<Arc<Server>> for OptionalJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, server: &Arc<Server>) -> ApiResult<Self> {
        let Json(body) = Json::from_request(request, server).await?;
        Ok(Self(body))
    }
}

/// JSON body that its handler parses as a `T`.
pub(crate) struct UnparsedJson<T> {
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

/// Takes note of the unknown properties of the body of the request being answered. An operation
/// that refuses them does so. If `sessions.unknown_members` is `warn`, it refuses only those that
/// may be misspelled or misplaced restrictions.
///
/// # Errors
/// `4300` with every refused property that was noted.
pub(crate) fn admit_unknown(server: &Server, warnings: Vec<Warning>) -> ApiResult<()> {
    if operation().refuses_unknown_members && !warnings.is_empty() {
        // Of more members than are noted, one could be a restriction.
        let accepts_others = server.config.sessions.unknown_members == UnknownMembers::Warn
            && warnings.len() < MAX_WARNINGS;
        let problems: Vec<_> = warnings
            .iter()
            .filter(|warning| !accepts_others || warning.may_restrict)
            .map(Warning::refusal)
            .collect();
        if !problems.is_empty() {
            return Err(errors::session_invalid(problems).into());
        }
        let warnings: Vec<_> = warnings.iter().map(Warning::to_string).collect();
        let warnings = warnings.join(", ");
        tracing::warn!(warnings, "a request to a session has unknown members");
    }
    CURRENT_REQUEST.with(|context| context.names.warn(warnings));
    Ok(())
}

/// Returns the JSON of a request in UTF-8, see [`text`].
///
/// # Errors
/// As [`LargeWork::run`](app::core::large_work::LargeWork::run).
pub(crate) async fn decoded(
    server: &Server,
    headers: &HeaderMap,
    bytes: Bytes,
) -> Result<Bytes, Error> {
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

/// Parses a JSON object strictly. An empty body is read as an empty object. Returns also the warnings
/// about unknown members.
fn object<T: DeserializeOwned>(bytes: &[u8], branding: &Branding) -> ApiResult<(T, Vec<Warning>)> {
    let bytes = if bytes.is_empty() { b"{}" } else { bytes };
    let value = json::parse(bytes).map_err(|cause| errors::invalid(format!("body: {cause}")))?;
    // serde would deserialize a struct from an array of its members in order.
    if !value.is_object() {
        return Err(errors::invalid("body: must be a JSON object").into());
    }
    let value = branding.restore(value);
    members::read(value).map_err(|first| {
        let again = json::parse(bytes).map(|value| branding.restore(value));
        let mut problems = members::problems::<T>(again.unwrap_or_default(), first);
        for line in &mut problems {
            *line = branding.rename(line).into_owned();
        }
        errors::invalid(problems).into()
    })
}

/// Parses a JSON object whose parts are borrowed from its bytes. Returns also the warnings about
/// unknown members.
///
/// # Errors
/// If the bytes are not an object that fits the type.
pub(crate) fn borrowed_object<'a, T: Deserialize<'a>>(
    bytes: &'a [u8],
) -> ApiResult<(T, Vec<Warning>)> {
    borrowed(bytes).map_err(|problem| errors::invalid(problem).into())
}

/// Parses as [`borrowed_object`] does, for operations with errors of their own.
///
/// # Errors
/// The problem with the bytes.
pub(crate) fn borrowed<'a, T: Deserialize<'a>>(
    bytes: &'a [u8],
) -> Result<(T, Vec<Warning>), String> {
    let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { bytes };
    // serde would deserialize a struct from an array of its members in order.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err("body: must be a JSON object".to_owned());
    }
    let mut notes = Notes::default();
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let body = T::deserialize(Noting::new(&mut json, &mut notes));
    body.and_then(|body| json.end().map(|()| (body, notes.warnings)))
        .map_err(|cause| match &*notes.path {
            "" => format!("body: {cause}"),
            path => format!("body: {path}: {cause}"),
        })
}

/// Component of at most [`MAX_COMPONENT_BYTES`] bytes. Its content is not checked here.
pub(crate) struct ComponentBytes(pub Bytes);

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
    match text::charset(given) {
        Some(charset) if !JSON_CHARSETS.contains(&charset) => Err(HttpError::WrongCharset.into()),
        _ => Ok(()),
    }
}
