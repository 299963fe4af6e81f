//! Bodies of requests, read within limits of size, time and speed.
//!
//! JSON is parsed strictly (see [`app::core::json`]). A request whose body is still arriving holds no
//! concurrency permit.

mod arriving;
mod object;

use std::{convert::identity, marker::PhantomData, sync::Arc};

use app::{Error, catalog::MAX_COMPONENT_BYTES, core::json::without_large_numbers};
use axum::{
    extract::{FromRequest, Request},
    http::{HeaderMap, Method, header},
};
use bytes::Bytes;
use net::text;
use serde::de::DeserializeOwned;

use self::object::{ReadObject, parse_object};
use crate::{ApiError, ApiResult, CURRENT_REQUEST, HttpError, Json, Server, context::operation};

pub use self::{
    arriving::{read, read_after, read_file},
    object::{Unfit, admit_unknown, borrowed, borrowed_object},
};

/// Charsets of JSON bodies that are accepted, as the Encoding standard names them. Latin-1 is a part of
/// `windows-1252` there.
const JSON_CHARSETS: [&str; 5] = ["UTF-8", "UTF-16LE", "UTF-16BE", "windows-1252", "Shift_JIS"];

impl<T: DeserializeOwned + Send + 'static> FromRequest<Arc<Server>> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, server: &Arc<Server>) -> ApiResult<Self> {
        let is_change = *request.method() == Method::PATCH;
        let UnparsedJson { bytes, .. } = UnparsedJson::<T>::from_request(request, server).await?;
        let read = read_object::<T>(server, bytes, identity).await?;
        read.admit(server, is_change).map(Self)
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
        let read = read_object::<T>(server, text.clone(), without_large_numbers).await?;
        let body = read.admit(server, false)?;
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
        let media_type = json_media_type(&head.headers)?;
        let limit = operation().max_body.bytes();
        let bytes = read_after(server, &head.headers, body, limit).await?;
        Ok(Self {
            bytes: decoded(server, media_type, bytes).await?,
            parsed_as: PhantomData,
        })
    }
}

/// Returns the JSON of a request with this media type in UTF-8, see [`text`].
///
/// # Errors
/// As [`LargeWork::run`](app::core::large_work::LargeWork::run).
pub async fn decoded(server: &Server, media_type: &str, bytes: Bytes) -> Result<Bytes, Error> {
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

/// Parses the JSON object of a body, whose bytes are prepared in the same turn.
async fn read_object<T: DeserializeOwned + Send + 'static>(
    server: &Server,
    bytes: Bytes,
    prepare: fn(Bytes) -> Bytes,
) -> ApiResult<ReadObject<T>> {
    let branding = server.branding.clone();
    parse(server, bytes.len(), move || {
        parse_object(&prepare(bytes), &branding)
    })
    .await?
}

/// Component of at most [`MAX_COMPONENT_BYTES`] bytes. Its content is not checked here.
pub struct ComponentBytes(pub Bytes);

impl FromRequest<Arc<Server>> for ComponentBytes {
    type Rejection = ApiError;

    async fn from_request(request: Request, server: &Arc<Server>) -> ApiResult<Self> {
        read(server, request, MAX_COMPONENT_BYTES).await.map(Self)
    }
}

/// Returns the media type of a body, which has to be JSON in an accepted charset; empty without one.
fn json_media_type(headers: &HeaderMap) -> ApiResult<&str> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return Ok("");
    };
    let given = value.to_str().unwrap_or_default();
    let essence = text::essence(given);
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
    Ok(given)
}

/// Returns true if JSON with this media type is in an accepted charset.
pub fn is_charset_accepted(media_type: &str) -> bool {
    text::charset(media_type).is_none_or(|charset| JSON_CHARSETS.contains(&charset))
}
