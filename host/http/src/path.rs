//! Path parameters, and the prefix of a path.

use std::sync::Arc;

use app::{
    Error,
    core::ids::{
        AccountId, AuthConfigId, DeliveryId, EndpointId, LogId, MemberId, ProjectId, SessionId,
        SubscriptionId, TriggerInstanceId,
    },
};
use axum::{
    extract::{FromRequestParts, RawPathParams},
    http::request::Parts,
};

use crate::{ApiError, ApiResult, Server, errors};

/// Path prefixes: older clients use the first, newer ones the second. They differ in the default
/// tool version, in the form of tool schemas, and in some members of responses.
pub const API_PREFIXES: [&str; 2] = ["/api/v3", "/api/v3.1"];

/// Parameters of a path: one, or a pair of them.
pub struct Path<T>(pub T);

/// Parameter of a path.
pub(crate) trait PathParameter: Sized {
    /// Reads the parameter from the text in the path.
    fn read(text: &str) -> Result<Self, Error>;
}

impl PathParameter for String {
    fn read(text: &str) -> Result<Self, Error> {
        Ok(text.to_owned())
    }
}

macro_rules! ids {
    ($($id:ident)+) => {$(
        impl PathParameter for $id {
            fn read(text: &str) -> Result<Self, Error> {
                Self::parse(text)
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
        Ok(Self(read_next(&mut parameters(parts).await?.iter())?))
    }
}

impl<A: PathParameter, B: PathParameter> FromRequestParts<Arc<Server>> for Path<(A, B)> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Server>) -> ApiResult<Self> {
        let given = parameters(parts).await?;
        let mut rest = given.iter();
        Ok(Self((read_next(&mut rest)?, read_next(&mut rest)?)))
    }
}

async fn parameters(parts: &mut Parts) -> ApiResult<RawPathParams> {
    let parameters = RawPathParams::from_request_parts(parts, &()).await;
    parameters.map_err(|_| errors::invalid("path: not readable as UTF-8 text").into())
}

/// Reads the next parameter of a path. An error names it.
fn read_next<'p, T: PathParameter>(
    parameters: &mut impl Iterator<Item = (&'p str, &'p str)>,
) -> Result<T, Error> {
    let parameter = parameters.next();
    let (name, text) = parameter.ok_or_else(|| errors::internal("the route lacks a parameter"))?;
    T::read(text).map_err(|error| error.at(name))
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
