//! What answers look like, for the description of the API alone.
//!
//! Views write JSON member by member; these types say which members there are. Nothing builds them: the contract tests hold
//! every answer to them, with no member more and none less.
#![expect(dead_code, reason = "their fields are read by the description, not by code")]

mod accounts;
mod catalogue;
mod organisation;
mod runs;

pub(crate) use accounts::*;
pub(crate) use catalogue::*;
pub(crate) use organisation::*;
pub(crate) use runs::*;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

/// A page of a list.
#[derive(ToSchema)]
pub(crate) struct Listed<T> {
    items: Vec<T>,
    /// Marks the page after; null on the last one.
    #[schema(required)]
    next_cursor: Option<String>,
    /// At least one, even when there is nothing.
    total_pages: u64,
    /// From one.
    current_page: u64,
    total_items: u64,
}

/// Which page of a list.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Paging {
    /// Items on a page, 20 without it. More than 1000 means 1000.
    limit: Option<f64>,
    /// `next_cursor` of the page before; its own limit wins over `limit`.
    cursor: Option<String>,
}

/// Which page of a short list.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ShortPaging {
    /// Items on a page, 20 without it. More than 50 means 50.
    limit: Option<f64>,
    /// `next_cursor` of the page before; its own limit wins over `limit`.
    cursor: Option<String>,
}

/// Versions of tools.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ToolkitVersions {
    /// A version or `latest` for every toolkit; or, written `toolkit_versions[slug]=version`, for each by itself.
    toolkit_versions: Option<String>,
}

/// It is done.
#[derive(ToSchema)]
pub(crate) struct Done {
    success: bool,
}

/// It is done, and in words.
#[derive(ToSchema)]
pub(crate) struct DoneWithMessage {
    success: bool,
    message: String,
}

/// Whether something is in use.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Switch {
    Enabled,
    Disabled,
}
