//! Errors that operations have by their kind.

use http::row::Row;
use utoipa::openapi::{HttpMethod, SecurityRequirement, path::Operation};

use super::path_parameters;

/// Status and description of an error.
pub(super) type ErrorResponse = (&'static str, &'static str);

/// Returns the errors that follow from the key, the parameters and the body of an operation.
#[rustfmt::skip]
pub(super) fn errors(row: &Row, operation: &Operation) -> Vec<ErrorResponse> {
    let needs_key = operation.security.as_deref() != Some(&[SecurityRequirement::default()]);
    let needs_permission = operation.security.is_none();
    let has_body = operation.request_body.is_some();
    let has_input = has_body || operation.parameters.is_some();
    // A PUT request creates an object that does not exist.
    let is_put = row.description.method == HttpMethod::Put;
    let names_object = path_parameters(row.path).next().is_some() && !is_put;
    let errors = [
        (has_input, "400", "The request is invalid; `errors` has one line for each problem"),
        (needs_key, "401", "The key is missing, invalid or of another kind, or there are several keys"),
        (needs_permission, "403", "The key does not have the permission, or does not allow the client's address"),
        (names_object, "404", "The object does not exist in the project or in the catalog"),
        (has_body, "408", "The body did not arrive in time"),
        (has_body, "413", "The body is too large"),
        (has_body, "415", "The body has the wrong media type, or is compressed"),
        (true, "429", "Too many requests in a period of time or at the same time"),
        (true, "500", "Internal error"),
        (true, "503", "The server is temporarily unavailable"),
    ];
    let own = errors.into_iter().filter(|(applies, ..)| *applies);
    own.map(|(_, status, description)| (status, description)).collect()
}
