//! Errors that operations have by their kind.

use utoipa::openapi::{HttpMethod, SecurityRequirement, path::Operation};

use super::path_parameters;
use crate::api::table::Row;

/// Status and description of an error.
pub(super) type ErrorResponse = (&'static str, &'static str);

/// Errors of every operation.
#[rustfmt::skip]
const COMMON_ERRORS: [ErrorResponse; 3] = [
    ("429", "Too many requests in a period of time or at the same time"),
    ("500", "Internal error"),
    ("503", "The server is temporarily unavailable"),
];
/// Error of operations that need a key.
#[rustfmt::skip]
const UNAUTHORIZED_ERROR: ErrorResponse = ("401", "The key is missing, invalid or of another kind, or there are several keys");
/// Error of operations that need a permission.
#[rustfmt::skip]
const FORBIDDEN_ERROR: ErrorResponse = ("403", "The key does not have the permission, or does not allow the client's address");
/// Error of operations that have parameters or a body.
#[rustfmt::skip]
const INVALID_ERROR: ErrorResponse = ("400", "The request is invalid; `errors` has one line for each problem");
/// Error of operations whose path has parameters.
#[rustfmt::skip]
const NOT_FOUND_ERROR: ErrorResponse = ("404", "The object does not exist in the project or in the catalog");
/// Errors of operations that have a body.
#[rustfmt::skip]
const BODY_ERRORS: [ErrorResponse; 3] = [
    ("408", "The body did not arrive in time"),
    ("413", "The body is too large"),
    ("415", "The body has the wrong media type, or is compressed"),
];

/// Returns the errors that follow from the key, the parameters and the body of an operation.
pub(super) fn errors(row: &Row, operation: &Operation) -> Vec<ErrorResponse> {
    let mut errors = COMMON_ERRORS.to_vec();
    if operation.security.as_deref() != Some(&[SecurityRequirement::default()]) {
        errors.push(UNAUTHORIZED_ERROR);
    }
    if operation.security.is_none() {
        errors.push(FORBIDDEN_ERROR);
    }
    if operation.parameters.is_some() || operation.request_body.is_some() {
        errors.push(INVALID_ERROR);
    }
    // A PUT request creates an object that does not exist.
    let has_path_parameters = path_parameters(row.path).next().is_some();
    if has_path_parameters && row.description.method != HttpMethod::Put {
        errors.push(NOT_FOUND_ERROR);
    }
    if operation.request_body.is_some() {
        errors.extend(BODY_ERRORS);
    }
    errors
}
