//! Path parameters, and the prefix of a path.

use std::sync::Arc;

use app::{
    Error,
    core::ids::{
        AccountId, AuthConfigId, DeliveryId, EndpointId, LogId, MemberId, ProjectId, SessionId,
        SubscriptionId, TriggerInstanceId,
    },
};
use axum::{extract::FromRequestParts, http::request::Parts};
use serde::de::DeserializeOwned;

use crate::{ApiError, ApiResult, Server, errors};

/// Path prefixes: older clients use the first, newer ones the second. They differ in the default
/// tool version, in the form of tool schemas, and in some members of responses.
pub const API_PREFIXES: [&str; 2] = ["/api/v3", "/api/v3.1"];

/// Parameters of a path: one, or a pair of them.
pub struct Path<T>(pub T);

/// Parameter of a path.
pub(crate) trait PathParameter: Sized {
    /// Reads the parameter from the text in the path.
    fn read(text: String) -> Result<Self, Error>;
}

impl PathParameter for String {
    fn read(text: String) -> Result<Self, Error> {
        Ok(text)
    }
}

macro_rules! ids {
    ($($id:ident)+) => {$(
        impl PathParameter for $id {
            fn read(text: String) -> Result<Self, Error> {
                Self::parse(&text)
            }
        }
    )+};
}

ids! {
    AccountId AuthConfigId DeliveryId EndpointId LogId MemberId ProjectId SessionId SubscriptionId
    TriggerInstanceId
}

impl<T: PathParameter> FromRequestParts<Arc<Server>> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Server>) -> ApiResult<Self> {
        Ok(Self(T::read(texts(parts).await?)?))
    }
}

impl<A: PathParameter, B: PathParameter> FromRequestParts<Arc<Server>> for Path<(A, B)> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Server>) -> ApiResult<Self> {
        let (first, second) = texts(parts).await?;
        Ok(Self((A::read(first)?, B::read(second)?)))
    }
}

async fn texts<T: DeserializeOwned + Send>(parts: &mut Parts) -> ApiResult<T> {
    let path = axum::extract::Path::from_request_parts(parts, &()).await;
    path.map(|axum::extract::Path(texts)| texts)
        .map_err(|_| errors::invalid("path: not readable as UTF-8 text").into())
}

/// Path prefix of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    /// `/api/v3`
    V3,
    /// `/api/v3.1`
    V3_1,
}

impl Prefix {
    /// Returns the default tool version of the prefix.
    pub fn tool_version(self) -> &'static str {
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
            .strip_prefix(API_PREFIXES[1])
            .is_some_and(|rest| rest.starts_with('/'));
        Ok(if newer { Self::V3_1 } else { Self::V3 })
    }
}
