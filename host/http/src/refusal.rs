//! The envelope of every error. An error is logged in this module and nowhere else.

use std::borrow::Cow;

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    context::{rename_slugs, request_id},
    error::{ApiError, status},
    reply::json,
};

/// The envelope of every error.
#[derive(Serialize, ToSchema)]
pub struct Refusal<'a> {
    /// The same message again, at the top level where some clients look for it; only with status
    /// 429.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    message: Option<&'a str>,
    error: RefusalDetail<'a>,
}

#[derive(Serialize, ToSchema)]
struct RefusalDetail<'a> {
    /// Message for people.
    message: &'a str,
    /// Error code of this platform; not the HTTP status.
    code: u32,
    /// Identifier for programs; never changes.
    slug: &'a str,
    /// The HTTP status.
    status: u16,
    /// The `x-request-id` of the request, or one made by the server.
    request_id: String,
    /// Suggestion how to solve the problem.
    suggested_fix: &'a str,
    /// One line for each problem, if there can be several.
    errors: &'a [String],
}

/// Mark of the response to a request that failed and may nevertheless have had its effect.
#[derive(Clone, Copy)]
pub(crate) struct EffectUnknown;

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, code, slug, message, hint) = match &self {
            Self::App(error) => {
                let info = error.info();
                (
                    status(info.class),
                    info.code,
                    info.slug,
                    error.to_string(),
                    info.hint,
                )
            }
            Self::Http(error) => error.row(),
        };
        let (errors, after) = match &self {
            Self::App(error) => (error.problems(), error.retry_after()),
            Self::Http(_) => (&[][..], None),
        };
        let request_id = request_id().into_text();
        log(status, &request_id, slug, &message);
        // Details of an internal error could disclose more than they help.
        let message = if status == 500 {
            Cow::Borrowed("internal error")
        } else {
            rename_slugs(&message)
        };
        let hint = rename_slugs(hint);
        let errors: Vec<_> = errors
            .iter()
            .map(|line| rename_slugs(line).into_owned())
            .collect();
        let detail = RefusalDetail {
            message: &message,
            code,
            slug,
            status,
            request_id,
            suggested_fix: &hint,
            errors: &errors,
        };
        let envelope = Refusal {
            message: (status == 429).then_some(&*message),
            error: detail,
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = json(status, &envelope);
        if matches!(&self, Self::App(error) if error.is_effect_unknown()) {
            response.extensions_mut().insert(EffectUnknown);
        }
        if let Some(after) = after {
            response.headers_mut().insert(
                header::RETRY_AFTER,
                HeaderValue::from(after.as_secs().max(1)),
            );
        }
        response
    }
}

/// Logs an error, at the level of its status.
fn log(status: u16, request_id: &str, slug: &str, failure: &str) {
    match status {
        // The server is not at fault.
        502 | 504 => tracing::warn!(request_id, slug, failure, "a provider or a model failed"),
        500.. if status != 501 => {
            tracing::error!(request_id, slug, failure, "a request failed");
        }
        _ => tracing::debug!(request_id, status, slug, failure, "a request was refused"),
    }
}
