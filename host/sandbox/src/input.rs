//! What a call is given.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use manifest::EgressRule;

use crate::{Digest, Grant, Limits};

/// One call of one toolkit.
pub struct Call {
    /// Which component.
    pub component: Digest,
    /// On whose account the call counts, for example the id of a project.
    pub tenant: Arc<str>,
    /// What to do.
    pub action: Action,
    /// What the guest is told about itself.
    pub context: Context,
    /// What it may reach.
    pub policy: Arc<Policy>,
    /// Gives the credential for outgoing requests; none for tools that need no account.
    pub grant: Option<Arc<dyn Grant>>,
    /// How much it may use.
    pub limits: Limits,
    /// Files it may read, by id.
    pub files: Vec<File>,
    /// What `state` holds when the call begins.
    pub state: BTreeMap<String, Vec<u8>>,
}

/// One request that a caller sends itself, with the credential of an account.
pub struct Pass {
    /// On whose account it counts, as that of a [`Call`].
    pub tenant: Arc<str>,
    /// Where it may go.
    pub policy: Arc<Policy>,
    /// Gives the credential; none for an anonymous request.
    pub grant: Option<Arc<dyn Grant>>,
    /// What it may use.
    pub limits: Limits,
    /// Upper case.
    pub method: String,
    /// Absolute, `https`.
    pub url: String,
    /// Those that only the platform may write are left out.
    pub headers: Vec<(String, String)>,
    /// The body; at most [`Limits::file`] bytes.
    pub body: Option<Bytes>,
}

/// What a toolkit can be asked to do.
#[derive(Debug, Clone)]
pub enum Action {
    /// Run a tool.
    Execute {
        /// Slug, as the manifest spells it.
        tool: Arc<str>,
        /// JSON.
        arguments: Bytes,
    },
    /// Look for events.
    Poll {
        /// Slug, as the manifest spells it.
        trigger: Arc<str>,
        /// JSON.
        config: Bytes,
        /// What the last poll answered; empty at the first.
        cursor: Bytes,
    },
    /// Read a webhook request.
    Receive {
        /// Slug, as the manifest spells it.
        trigger: Arc<str>,
        /// JSON.
        config: Bytes,
        /// As it arrived.
        request: Inbound,
    },
}

/// What a guest is told about its call. Never a secret.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// Identifies the run in logs.
    pub run_id: String,
    /// The project's own name for the person; may be empty.
    pub user_id: String,
    /// Non-secret fields of the account.
    pub fields: Vec<(String, String)>,
}

/// What a call may reach.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Everything else is refused; empty refuses all.
    pub egress: Vec<EgressRule>,
    /// Only GET and HEAD, unless a rule names the method.
    pub read_only: bool,
}

/// A file, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// What the guest calls it by.
    pub id: String,
    /// For people.
    pub name: String,
    /// For example `text/csv`.
    pub media_type: String,
    /// Its content.
    pub bytes: Bytes,
}

/// A webhook request as the external application sent it.
#[derive(Debug, Clone, Default)]
pub struct Inbound {
    /// Upper case.
    pub method: String,
    /// Path and query below the trigger's own address.
    pub path: String,
    /// In order of arrival, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The exact bytes.
    pub body: Bytes,
}
