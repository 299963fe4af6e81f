//! Rules of operations, as their rows in the table state them.
//!
//! A row that says nothing gets the strictest treatment: an unrestricted key, the general deadline,
//! the general limit on bodies.

use app::projects::permissions::{Access, Area};
use settings::{MAX_BODY_BYTES, MAX_EXECUTE_BODY_BYTES};

/// The largest JSON body that any operation accepts, in bytes.
pub const MAX_JSON_BYTES: usize = 6 << 20;

/// Permission that a project's key needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Permission {
    /// An unrestricted key.
    #[default]
    Unrestricted,
    /// Any key of the project.
    AnyKey,
    /// The given access in one of the areas.
    OneOf(&'static [Area], Access),
}

/// Time within which an operation must be answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Deadline {
    /// `limits.deadline_s`.
    #[default]
    General,
    /// Limits of the work itself: a tool's time, a publication, a file transfer, an open stream.
    OfItsOwn,
}

/// Largest body of an operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MaxBody {
    /// [`MAX_BODY_BYTES`].
    #[default]
    General,
    /// [`MAX_EXECUTE_BODY_BYTES`].
    Execute,
    /// [`MAX_JSON_BYTES`], enough for the body of a proxy request as base64.
    Proxy,
}

impl MaxBody {
    /// Returns the limit in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::General => MAX_BODY_BYTES,
            Self::Execute => MAX_EXECUTE_BODY_BYTES,
            Self::Proxy => MAX_JSON_BYTES,
        }
    }
}

/// Rules of an operation, as its row in the table states them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Operation {
    /// Permission that a project's key needs. Keys of the organization and of users do not have
    /// permissions.
    pub permission: Permission,
    /// Time within which it must be answered.
    pub deadline: Deadline,
    /// Largest body.
    pub max_body: MaxBody,
    /// True if responses contain data of tools. A project may choose that these are not stored.
    pub returns_tool_data: bool,
    /// True if a provider or an assistant calls it, with headers of its own: an `Idempotency-Key`
    /// means nothing here.
    pub ignores_idempotency_key: bool,
    /// True if scripts of web pages on any host may use it. No cookies are read then.
    pub open_to_scripts: bool,
    /// True if unknown members of the body are refused, unless a setting accepts them.
    pub refuses_unknown_members: bool,
    /// Path of the operation that replaces it; the operation is deprecated then.
    pub successor: Option<&'static str>,
}
