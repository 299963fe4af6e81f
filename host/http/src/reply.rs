//! Typed responses: a JSON body with status 200 or 201, under the names of this installation.

use std::marker::PhantomData;

pub use app::core::json::RawJson;
use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{branding::Branded, context::CURRENT_REQUEST, error::ApiError, errors};

/// Initial capacity for the headers of a response.
const HEADER_CAPACITY: usize = 12;
/// Initial size of the buffer into which a body is written, in addition to its large parts, in bytes.
const BODY_CAPACITY: usize = 512;

/// JSON body: of a request, or of a response with status 200.
pub struct Json<T>(pub T);

/// JSON body of a response with status 201.
pub struct Created<T>(pub T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        json(StatusCode::OK, &self.0)
    }
}

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        json(StatusCode::CREATED, &self.0)
    }
}

/// JSON body of a response with status 201 for a new object, if the first part is true, or 200 for
/// one that existed.
pub struct CreatedOrExisting<T>(pub bool, pub T);

impl<T: Serialize> IntoResponse for CreatedOrExisting<T> {
    fn into_response(self) -> Response {
        match self {
            Self(true, body) => Created(body).into_response(),
            Self(false, body) => Json(body).into_response(),
        }
    }
}

/// JSON body of a response with status 200 that the handler serialized itself: a body that may be
/// large is serialized in the turns of its project, see [`LargeWork`](app::core::large_work::LargeWork).
pub struct SerializedJson<T> {
    response: Response,
    serialized_from: PhantomData<fn() -> T>,
}

impl<T: Serialize> SerializedJson<T> {
    /// Serializes a body whose large parts have this size together, in bytes.
    pub fn new(body: &T, size: usize) -> Self {
        Self {
            response: json_of_size(StatusCode::OK, body, size),
            serialized_from: PhantomData,
        }
    }

    /// Adds a header, unless its value cannot be sent.
    pub fn with_header(mut self, name: HeaderName, value: &str) -> Self {
        let value = HeaderValue::from_str(value).ok();
        self.response
            .headers_mut()
            .extend(value.map(|value| (name, value)));
        self
    }
}

impl<T> IntoResponse for SerializedJson<T> {
    fn into_response(self) -> Response {
        self.response
    }
}

/// Builds a response with a JSON body.
pub fn json<T: Serialize + ?Sized>(status: StatusCode, body: &T) -> Response {
    json_of_size(status, body, 0)
}

/// Builds a response with a JSON body whose large parts have this size together, in bytes.
fn json_of_size<T: Serialize + ?Sized>(status: StatusCode, body: &T, size: usize) -> Response {
    let branding = CURRENT_REQUEST.try_with(|request| request.branding.clone());
    let mut bytes = Vec::with_capacity(BODY_CAPACITY + size);
    let written = match branding.ok().flatten() {
        None => serde_json::to_writer(&mut bytes, body),
        Some(branding) => serde_json::to_writer(&mut bytes, &Branded(body, &branding)),
    };
    match written {
        Ok(()) => json_bytes(status, bytes),
        Err(cause) => ApiError::App(errors::internal(format!(
            "cannot serialize the response: {cause}"
        )))
        .into_response(),
    }
}

/// Builds a response with an already serialized JSON body.
pub fn json_bytes(status: StatusCode, body: Vec<u8>) -> Response {
    let mut headers = HeaderMap::with_capacity(HEADER_CAPACITY);
    let media_type = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, media_type);
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Success of an operation.
#[derive(Serialize, ToSchema)]
#[schema(as = Done)]
pub struct Success {
    success: bool,
}

/// Success of an operation, with a message.
#[derive(Serialize, ToSchema)]
#[schema(as = DoneWithMessage)]
pub struct SuccessWithMessage {
    success: bool,
    message: &'static str,
}

/// Success of a deletion.
#[derive(Serialize, ToSchema)]
pub struct Deleted {
    /// Always `success`.
    status: &'static str,
}

impl Deleted {
    /// Reports a deletion.
    pub const SUCCESS_STATUS: Self = Self { status: "success" };
}

impl Success {
    /// Reports success.
    pub const WITHOUT_MESSAGE: Self = Self { success: true };

    /// Adds a message.
    pub fn with(message: &'static str) -> SuccessWithMessage {
        SuccessWithMessage {
            success: true,
            message,
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::branding::Branding;

    #[test]
    fn checked_text_is_written_unchanged() {
        let text = r#"{"service": 1.0, "b":[ "\u00e9" ]}"#;
        let body = || [RawJson(Bytes::from_static(text.as_bytes()))];
        let expected = format!("[{text}]");
        assert_eq!(serde_json::to_string(&body()).unwrap(), expected);
        let branding = Branding::new("acme");
        let branded = serde_json::to_string(&Branded(&body(), &branding));
        assert_eq!(branded.unwrap(), expected);
        let value = serde_json::to_value(body()).unwrap();
        assert_eq!(value[0]["b"][0], "\u{e9}");
    }
}
