//! Classes of failures.

/// Class of a failure: what the caller can conclude from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// The request is wrong.
    Invalid,
    /// The caller has no valid key.
    Unauthenticated,
    /// The caller may not do this.
    Forbidden,
    /// The object does not exist.
    NotFound,
    /// The request contradicts the state of the object. It may succeed later.
    Conflict,
    /// The object existed and was removed.
    Gone,
    /// The request is larger than allowed.
    TooLarge,
    /// The request is well-formed, but is refused. It fails whenever it is repeated unchanged.
    Unprocessable,
    /// The caller has reached a limit that counts for the caller alone.
    LimitReached,
    /// The server has a fault. The message is for its log, not for callers.
    Internal,
    /// The server does not offer this.
    NotSupported,
    /// A provider or a language model failed.
    UpstreamFailed,
    /// A provider did not respond in time.
    UpstreamTimeout,
    /// The server cannot do this now.
    Unavailable,
    /// The storage is full.
    StorageFull,
}

impl Class {
    /// Returns true if the failure says nothing about the request, so that it may succeed later.
    pub(crate) fn may_pass(self) -> bool {
        match self {
            Self::LimitReached
            | Self::Internal
            | Self::UpstreamFailed
            | Self::UpstreamTimeout
            | Self::Unavailable
            | Self::StorageFull => true,
            Self::Invalid
            | Self::Unauthenticated
            | Self::Forbidden
            | Self::NotFound
            | Self::Conflict
            | Self::Gone
            | Self::TooLarge
            | Self::Unprocessable
            | Self::NotSupported => false,
        }
    }
}
