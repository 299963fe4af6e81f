//! Path parameters, and the prefix of a path.

use std::sync::Arc;

use axum::{extract::FromRequestParts, http::request::Parts};
use serde::de::DeserializeOwned;

use crate::{
    Server,
    api::table::PREFIXES,
    http::{
        error::{ApiError, ApiResult},
        errors,
    },
};

/// Path parameters.
pub(crate) struct Path<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<Server>> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> ApiResult<Self> {
        let path = axum::extract::Path::<T>::from_request_parts(parts, server).await;
        path.map(|path| Self(path.0))
            .map_err(|_| errors::invalid("path: not readable as UTF-8 text").into())
    }
}

/// Path prefix of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefix {
    /// `/api/v3`
    V3,
    /// `/api/v3.1`
    V3_1,
}

impl Prefix {
    /// Returns the default tool version of the prefix.
    pub(crate) fn tool_version(self) -> &'static str {
        match self {
            Self::V3 => app::catalog::BASE,
            Self::V3_1 => app::catalog::LATEST,
        }
    }
}

impl FromRequestParts<Arc<Server>> for Prefix {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Server>) -> ApiResult<Self> {
        let newer = parts
            .uri
            .path()
            .strip_prefix(PREFIXES[1])
            .is_some_and(|rest| rest.starts_with('/'));
        Ok(if newer { Self::V3_1 } else { Self::V3 })
    }
}
