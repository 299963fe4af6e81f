//! Input of a call.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use manifest::EgressRule;

use crate::{Digest, Grant, Limits, Reservation, RunTrace, Secret};

/// One call of one toolkit.
pub struct Call {
    /// Component to run.
    pub component: Digest,
    /// Tenant that the call counts against, for example the id of a project.
    pub tenant: Arc<str>,
    /// Action to perform.
    pub action: Action,
    /// Information for the guest about its call.
    pub context: Context,
    /// Hosts that the call may reach.
    pub policy: Arc<Policy>,
    /// Source of the credential for outgoing requests; `None` for tools that need no account.
    pub grant: Option<Arc<dyn Grant>>,
    /// Limits of the call.
    pub limits: Limits,
    /// Files that the call may read, by id.
    pub files: Vec<File>,
    /// Reservation for the memory of these files, which is released with them; `None` if they count
    /// toward no limit.
    pub files_memory: Option<Reservation>,
    /// Content of `state` at the beginning of the call.
    pub state: BTreeMap<String, Vec<u8>>,
    /// Trace of the call; `None` if it is not traced.
    pub trace: Option<RunTrace>,
}

/// Proxy request: one request of the caller with the credential of a connected account.
pub struct ProxyRequest {
    /// Tenant that the request counts against, as for a [`Call`].
    pub tenant: Arc<str>,
    /// Hosts that the request may reach.
    pub policy: Arc<Policy>,
    /// Source of the credential; `None` for an anonymous request.
    pub grant: Option<Arc<dyn Grant>>,
    /// Limits of the request.
    pub limits: Limits,
    /// Method in upper case.
    pub method: String,
    /// Absolute `https` URL.
    pub url: String,
    /// Headers. Those that only the platform may write are left out.
    pub headers: Vec<(String, String)>,
    /// Body of at most [`Limits::file`] bytes.
    pub body: Option<Bytes>,
    /// Maximum size of a textual response to decode to UTF-8, in bytes.
    pub max_text_bytes: usize,
    /// Trace of the request; `None` if it is not traced.
    pub trace: Option<RunTrace>,
}

/// Action that a toolkit can perform.
#[derive(Debug, Clone)]
pub enum Action {
    /// Run of a tool.
    Execute {
        /// Slug as the manifest spells it.
        tool: Arc<str>,
        /// Arguments as JSON.
        arguments: Bytes,
    },
    /// Poll for events.
    Poll {
        /// Slug as the manifest spells it.
        trigger: Arc<str>,
        /// Configuration as JSON.
        config: Bytes,
        /// Cursor returned by the previous poll; empty for the first.
        cursor: Bytes,
    },
    /// Processing of a webhook request.
    Receive {
        /// Slug as the manifest spells it.
        trigger: Arc<str>,
        /// Configuration as JSON.
        config: Bytes,
        /// Request as it arrived.
        request: Inbound,
    },
}

/// Information for the guest about its call. It never contains a secret.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// Id of the run in logs.
    pub run_id: String,
    /// Id that the project uses for the user; may be empty.
    pub user_id: String,
    /// Non-secret fields of the connected account.
    pub fields: Vec<(String, String)>,
}

/// Hosts that a call may reach, and the part of its configuration that the guest may not read.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Egress rules. Every request without a matching rule is refused, so an empty list refuses
    /// all.
    pub egress: Vec<EgressRule>,
    /// True if only GET and HEAD are allowed, except for methods that a rule names.
    pub read_only: bool,
    /// Names of the secret properties in the configuration of [`Action::Receive`]. A guest that
    /// verifies through the host does not see their values, and no guest returns them.
    pub write_only: BTreeSet<String>,
    /// Signing secret that the call hands to the provider.
    pub webhook_secret: Option<HandedOverSecret>,
}

/// Signing secret of a webhook, which the guest does not see. The platform substitutes it for
/// [`manifest::SECRET_PLACEHOLDER`] in the body of a request with the account's credential, and
/// removes it from responses.
#[derive(Debug, Clone)]
pub struct HandedOverSecret {
    /// JSON pointer to its position in the body.
    pub pointer: String,
    /// The secret.
    pub secret: Secret,
}

/// Complete file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Id that the guest uses.
    pub id: String,
    /// Human-readable file name.
    pub name: String,
    /// Media type, for example `text/csv`.
    pub media_type: String,
    /// Content of the file.
    pub bytes: Bytes,
}

/// Webhook request as the provider sent it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inbound {
    /// Method in upper case.
    pub method: String,
    /// Path and query below the trigger's own URL.
    pub path: String,
    /// Headers in order of arrival, with lower-case names.
    pub headers: Vec<(String, String)>,
    /// Body as the exact bytes.
    pub body: Bytes,
}
