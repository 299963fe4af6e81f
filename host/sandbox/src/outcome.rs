//! What a call ends with.

use std::{collections::BTreeMap, fmt, time::Duration};

use bytes::Bytes;

use crate::{File, limiter::Reservation};

/// A call that ran, however it ended.
#[derive(Debug)]
pub struct Outcome {
    /// What the guest answered, or why it did not.
    pub answer: Result<Answer, Failure>,
    /// Its outgoing requests, in order of start.
    pub requests: Vec<RequestRecord>,
    /// Its log, in order, bounded.
    pub log: Vec<LogLine>,
    /// What it used.
    pub usage: Usage,
    /// Files it made, in order. The caller keeps those that the answer names.
    pub files: Vec<File>,
    /// The node's memory that these files take, to be dropped with them.
    pub memory: Option<Reservation>,
    /// What `state` holds at the end; as at the start when the call failed.
    pub state: BTreeMap<String, Vec<u8>>,
}

/// A request of a caller's own that was sent, or refused on its way.
#[derive(Debug)]
pub struct Passed {
    /// What the application answered, or why there is no answer.
    pub answer: Result<PassedAnswer, PassedFailure>,
    /// What was sent: one, or more when one was sent again.
    pub requests: Vec<RequestRecord>,
    /// What was left out.
    pub log: Vec<LogLine>,
    /// From start to end.
    pub wall: Duration,
}

/// What the application answered: any status, secrets removed.
#[derive(Debug)]
pub struct PassedAnswer {
    /// The application's.
    pub status: u16,
    /// Names in lower case, without cookies.
    pub headers: Vec<(String, String)>,
    /// Decompressed.
    pub body: Bytes,
    /// The node's memory that the body takes, to be dropped with it.
    pub memory: Reservation,
}

/// Why an application gave no answer.
#[derive(Debug)]
pub struct PassedFailure {
    /// As the contract of toolkits names it: `denied`, `invalid_request`, `dns`, `timeout` and so on.
    pub kind: String,
    /// For people, secrets removed.
    pub message: String,
}

/// What a guest answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Of a tool: JSON text, UTF-8, not checked further.
    Data(Bytes),
    /// Of a poll.
    Polled {
        /// In the guest's order.
        events: Vec<Event>,
        /// For the next poll. At most 64 KiB.
        cursor: Bytes,
        /// Another poll right away would find more.
        more: bool,
    },
    /// Of a webhook request.
    Received {
        /// In the guest's order.
        events: Vec<Event>,
        /// Answer to the application, 200 to 599.
        status: u16,
        /// Its media type.
        media_type: String,
        /// Its body.
        body: Bytes,
    },
}

/// Something that a trigger found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Identifies it at its source.
    pub id: String,
    /// JSON text.
    pub payload: Bytes,
}

/// Why a call has no answer. It ran: whether it had an effect outside is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Who is to blame.
    pub cause: Cause,
    /// For programs: the toolkit's own for [`Cause::Tool`], else one of the constants of [`kind`].
    pub kind: String,
    /// One sentence for people.
    pub message: String,
    /// When another attempt makes sense.
    pub retry_after: Option<Duration>,
    /// What the external application answered.
    pub upstream_status: Option<u16>,
    /// More detail as JSON.
    pub details: Option<Bytes>,
}

/// Who is to blame for a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The toolkit answered with an error.
    Tool,
    /// The toolkit went past a limit, or broke.
    Limit,
    /// The platform broke.
    Host,
}

/// Kinds of failure that are not the toolkit's own.
pub mod kind {
    /// The processor time is used up.
    pub const CPU: &str = "tool_cpu_limit";
    /// The wall-clock time is over.
    pub const TIMEOUT: &str = "tool_timeout";
    /// The guest could not go on for lack of memory.
    pub const MEMORY: &str = "tool_memory_limit";
    /// The guest panicked, overflowed its stack or did something not allowed.
    pub const TRAP: &str = "tool_trap";
    /// Too many calls of host functions, or too much handed to them.
    pub const HOST_CALLS: &str = "tool_host_call_limit";
    /// The answer is too large.
    pub const OUTPUT_TOO_LARGE: &str = "tool_output_too_large";
    /// The answer is not what the contract says.
    pub const OUTPUT_INVALID: &str = "tool_output_invalid";
    /// The call went another way than the one on the cassette.
    pub const REPLAY_DIFFERS: &str = "replay_differs";
    /// A mistake of the platform.
    pub const HOST: &str = "tool_host_error";
    /// The tool ran, and what it made could not be kept.
    pub const FILE_NOT_KEPT: &str = "file_not_kept";
    /// The tool ran, and its record could not be written.
    pub const LOG_NOT_WRITTEN: &str = "log_not_written";

    /// All of them. A guest cannot give one to an error of its own.
    pub(crate) const ALL: [&str; 11] = [
        CPU,
        TIMEOUT,
        MEMORY,
        TRAP,
        HOST_CALLS,
        OUTPUT_TOO_LARGE,
        OUTPUT_INVALID,
        REPLAY_DIFFERS,
        HOST,
        FILE_NOT_KEPT,
        LOG_NOT_WRITTEN,
    ];
}

/// A call that did not start: trying again is safe, if seldom of use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No compiled form that can be trusted; [`crate::Sandbox::install`] the component's bytes, then call again.
    #[error("the toolkit is not prepared on this node")]
    NotInstalled,
    /// The tenant has as many calls running and waiting as it may.
    #[error("too many calls of this project at once; try again in a second")]
    TenantBusy,
    /// The node has as many calls running and waiting as it can.
    #[error("too many calls at once; try again in a second")]
    NodeBusy,
    /// Host code panicked too often while this component ran. Trying again helps after a restart only.
    #[error("the platform broke three times while this toolkit ran, and does not run it any more")]
    Quarantined,
    /// Something else is missing on this node.
    #[error("{0}")]
    Unavailable(String),
}

/// One outgoing request, for the execution log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRecord {
    /// Upper case.
    pub method: String,
    /// As the guest wrote it, secrets removed, query kept.
    pub url: String,
    /// None when there was no answer.
    pub status: Option<u16>,
    /// Why there was none.
    pub error: Option<String>,
    /// From start to end.
    pub elapsed: Duration,
    /// Bytes of body sent.
    pub sent: u64,
    /// Bytes of body received, decompressed.
    pub received: u64,
}

/// One line of a guest's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// As the guest says.
    pub level: Level,
    /// Since the call began.
    pub at: Duration,
    /// One line: control characters escaped, secrets removed.
    pub message: String,
}

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// For the author.
    Debug,
    /// For the curious.
    Info,
    /// Something odd.
    Warn,
    /// Something wrong.
    Error,
}

/// What a call used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time of the thread while the guest ran, host functions included.
    pub cpu: Duration,
    /// From the start of the guest to its end.
    pub wall: Duration,
    /// Largest size of all memories together, in bytes.
    pub peak_memory: u64,
    /// Calls of host functions.
    pub host_calls: u32,
}

/// What the sandbox holds at this moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Guests alive, running or waiting for an answer.
    pub live: usize,
    /// Calls that wait for a place.
    pub queued: usize,
    /// Components kept loaded.
    pub loaded: usize,
    /// Memory of all guests, in bytes.
    pub memory: u64,
}

impl Level {
    /// The name in lower case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}
