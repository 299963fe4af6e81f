//! Everything that a request passes on its way to its handler and back.
//!
//! [`listen`] accepts connections, [`answer`] handles what all requests have in common, and
//! [`runner`] does what the row of the matched operation says. Handlers take their input as
//! typed arguments ([`auth`], [`body`], [`path`], [`query`], [`page`]) and return typed values
//! ([`reply`]); [`signature`] describes an operation from these very types. This module exports what
//! handlers use.

pub mod answer;
pub mod approval;
pub mod auth;
pub mod body;
pub mod branding;
pub mod context;
pub(crate) mod cors;
pub mod error;
pub mod errors;
pub(crate) mod forwarded;
pub(crate) mod handover;
pub mod idempotency;
pub mod limiter;
pub mod listen;
pub mod members;
mod noting;
pub mod operation;
pub mod page;
pub mod path;
pub mod permits;
pub mod query;
pub mod refusal;
pub mod reply;
pub(crate) mod request_counts;
pub mod routes;
pub mod row;
pub(crate) mod runner;
pub mod server;
pub mod signature;
pub mod similar_route;
pub mod sse;
pub mod unimplemented;
pub mod unknown;

pub use self::{
    auth::{NoKey, OrganizationKey, ProjectKey, UserKey},
    body::{ComponentBytes, JsonWithText, OptionalJson, UnparsedJson},
    branding::Branding,
    context::{CURRENT_REQUEST, request_id},
    error::{ApiError, ApiResult, HttpError},
    handover::run_to_completion,
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
