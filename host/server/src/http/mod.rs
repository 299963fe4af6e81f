//! Everything that a request passes on its way to its handler and back.
//!
//! [`listen`] accepts connections, [`answer`] handles what all requests have in common, and
//! [`runner`] does what the row of the matched operation says. Handlers take their input as
//! typed arguments ([`auth`], [`body`], [`path`], [`query`], [`page`]) and return typed values
//! ([`reply`]); [`signature`] describes an operation from these very types. This module exports what
//! handlers use.

pub(crate) mod answer;
pub(crate) mod approval;
pub(crate) mod auth;
pub(crate) mod body;
pub(crate) mod branding;
pub(crate) mod context;
pub(crate) mod cors;
pub(crate) mod detached;
pub(crate) mod error;
pub(crate) mod errors;
pub(crate) mod forwarded;
pub(crate) mod handover;
pub(crate) mod idempotency;
pub(crate) mod limiter;
pub(crate) mod listen;
pub(crate) mod members;
mod noting;
pub(crate) mod operation;
pub(crate) mod page;
pub(crate) mod path;
pub(crate) mod permits;
pub(crate) mod query;
pub(crate) mod refusal;
pub(crate) mod reply;
pub(crate) mod request_counts;
pub(crate) mod routes;
pub(crate) mod row;
pub(crate) mod runner;
pub(crate) mod server;
pub(crate) mod sessions;
pub(crate) mod signature;
pub(crate) mod sse;
pub(crate) mod unimplemented;
pub(crate) mod unknown;

pub(crate) use self::{
    auth::{NoKey, OrganizationKey, ProjectKey, UserKey},
    body::{ComponentBytes, JsonWithText, OptionalJson, UnparsedJson},
    branding::Branding,
    context::{CURRENT_REQUEST, request_id},
    detached::run_to_completion,
    error::{ApiError, ApiResult, HttpError},
    page::{Listed, Page, Position, ShortPage},
    path::{Path, Prefix},
    query::{Pairs, Query, number_or_null},
    reply::{
        Created, CreatedOrExisting, Deleted, Json, RawJson, SerializedJson, Success,
        SuccessWithMessage,
    },
    server::Server,
    signature::IN_TABLE,
};
