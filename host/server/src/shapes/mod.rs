//! Shapes of responses, used only for the API description.
//!
//! Views write JSON member by member; these types declare the members. No code builds values of
//! them. The contract tests compare every response with its type and accept neither additional nor
//! missing members.
#![expect(
    dead_code,
    reason = "their fields are read by the description, not by code"
)]

mod catalogue;
mod organisation;
mod runs;

pub(crate) use catalogue::*;
pub(crate) use organisation::*;
pub(crate) use runs::*;
use utoipa::{IntoParams, ToSchema};

/// A page of a list.
#[derive(ToSchema)]
pub(crate) struct Listed<T> {
    items: Vec<T>,
    /// Cursor of the next page; null on the last one.
    #[schema(required)]
    next_cursor: Option<String>,
    /// At least one, even if the list is empty.
    total_pages: u64,
    /// Number of this page, from one.
    current_page: u64,
    total_items: u64,
}

/// Selection of a page of a list.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Paging {
    /// Items on a page, 20 without it. More than 1000 means 1000.
    limit: Option<f64>,
    /// `next_cursor` of the page before; the limit that it contains takes precedence over `limit`.
    cursor: Option<String>,
}

/// Selection of a page of a short list.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ShortPaging {
    /// Items on a page, 20 without it. More than 50 means 50.
    limit: Option<f64>,
    /// `next_cursor` of the page before; the limit that it contains takes precedence over `limit`.
    cursor: Option<String>,
}

/// Success of an operation.
#[derive(ToSchema)]
pub(crate) struct Done {
    success: bool,
}

/// Success of an operation, with a message.
#[derive(ToSchema)]
pub(crate) struct DoneWithMessage {
    success: bool,
    message: String,
}
