//! Result of a call.

use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, Instant},
};

use bytes::Bytes;

use crate::{File, SpanId, schedule::limiter::Reservation};

/// Result of a call or a proxy request that ran, successful or not.
#[derive(Debug)]
pub struct Outcome<T = Output> {
    /// Output or the failure.
    pub output: Result<T, Failure>,
    /// Outgoing requests in order of start.
    pub requests: Vec<RequestRecord>,
    /// Log lines in order, limited in number and size.
    pub log: Vec<LogLine>,
    /// Resource usage of the call.
    pub usage: Usage,
    /// Created files in order. The caller keeps those that the output refers to.
    pub files: Vec<File>,
    /// Reservation for the memory of these files, or of the response to a proxy request; drop it
    /// with them.
    pub memory: Option<Reservation>,
    /// Content of `state` at the end. If the call failed, it equals the content at the start.
    pub state: BTreeMap<String, Vec<u8>>,
}

/// Response of the provider with any status and with secrets removed.
#[derive(Debug)]
pub struct ProxyResponse {
    /// HTTP status of the provider.
    pub status: u16,
    /// Headers with lower-case names, without cookies.
    pub headers: Vec<(String, String)>,
    /// Decompressed body.
    pub body: Bytes,
}

/// Output of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Result of a tool as UTF-8 JSON text, not checked further.
    Data(Bytes),
    /// Result of a poll.
    Polled {
        /// Events in the guest's order.
        events: Vec<Event>,
        /// Cursor for the next poll, at most 64 KiB.
        cursor: Bytes,
        /// True if another poll right away would find more.
        more: bool,
    },
    /// Result of a webhook request.
    Received {
        /// Events in the guest's order.
        events: Vec<Event>,
        /// HTTP status of the response to the provider, 200 to 599.
        status: u16,
        /// Media type of the response.
        media_type: String,
        /// Body of the response.
        body: Bytes,
    },
}

/// Event that a trigger found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Id of the event at its source.
    pub id: String,
    /// Payload as JSON text.
    pub payload: Bytes,
}

/// Failure of a call that ran. It is unknown if the call had an external effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Party responsible for the failure.
    pub cause: Cause,
    /// Machine-readable kind: the toolkit's own for [`Cause::Tool`], that of a request's error in
    /// the contract for [`Cause::Request`], otherwise a constant of [`kind`].
    pub kind: String,
    /// Short human-readable message.
    pub message: String,
    /// Delay after which a retry makes sense.
    pub retry_after: Option<Duration>,
    /// HTTP status of the provider's response.
    pub upstream_status: Option<u16>,
    /// Details as JSON.
    pub details: Option<Bytes>,
}

/// Party responsible for a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The toolkit returned an error.
    Tool,
    /// The toolkit exceeded a limit or crashed.
    Limit,
    /// The platform failed.
    Host,
    /// The caller cancelled the call.
    Caller,
    /// A proxy request was refused or got no response.
    Request,
}

/// Kinds of failure that the platform defines.
pub mod kind {
    /// The call used up its processor time.
    pub const CPU: &str = "tool_cpu_limit";
    /// The call exceeded its wall-clock time.
    pub const TIMEOUT: &str = "tool_timeout";
    /// The guest ran out of memory.
    pub const MEMORY: &str = "tool_memory_limit";
    /// The guest got no memory because other executions hold it.
    pub const MEMORY_BUSY: &str = "tool_memory_busy";
    /// The guest panicked, overflowed its stack or performed a forbidden operation.
    pub const TRAP: &str = "tool_trap";
    /// The guest made too many host calls or passed too much data to them.
    pub const HOST_CALLS: &str = "tool_host_call_limit";
    /// The result is too large.
    pub const OUTPUT_TOO_LARGE: &str = "tool_output_too_large";
    /// The result violates the contract.
    pub const OUTPUT_INVALID: &str = "tool_output_invalid";
    /// The call differs from the recorded one.
    pub const REPLAY_DIFFERS: &str = "replay_differs";
    /// The platform failed.
    pub const HOST: &str = "tool_host_error";
    /// The tool ran, but a file that it created could not be stored.
    pub const FILE_NOT_KEPT: &str = "file_not_kept";
    /// The tool ran, but its execution log could not be written.
    pub const LOG_NOT_WRITTEN: &str = "log_not_written";
    /// The call was cancelled before it ended.
    pub const CANCELLED: &str = "cancelled";

    /// All kinds. A guest cannot use one of them for its own error.
    pub(crate) const ALL: [&str; 13] = [
        CPU,
        TIMEOUT,
        MEMORY,
        MEMORY_BUSY,
        TRAP,
        HOST_CALLS,
        OUTPUT_TOO_LARGE,
        OUTPUT_INVALID,
        REPLAY_DIFFERS,
        HOST,
        FILE_NOT_KEPT,
        LOG_NOT_WRITTEN,
        CANCELLED,
    ];
}

/// One outgoing request, for the execution log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRecord {
    /// Method in upper case.
    pub method: String,
    /// URL as the guest wrote it, with its query and with secrets removed.
    pub url: String,
    /// HTTP status; `None` if there was no response.
    pub status: Option<u16>,
    /// Error, if there was no response.
    pub error: Option<String>,
    /// Time from start to end.
    pub elapsed: Duration,
    /// Size of the sent body, in bytes.
    pub sent: u64,
    /// Size of the received body, in bytes, decompressed.
    pub received: u64,
    /// Span of the request, if it was sent and its run is traced.
    pub span: Option<RequestSpan>,
}

/// Span of an outgoing request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestSpan {
    /// Id of the span.
    pub id: SpanId,
    /// Start of the request.
    pub started: Instant,
    /// Host as the egress rule names it, so that it contains nothing that the guest chose.
    pub host: String,
}

/// One line of a guest's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Level that the guest chose.
    pub level: Level,
    /// Time since the start of the call.
    pub at: Duration,
    /// Text as one line, with control characters escaped and secrets removed.
    pub message: String,
}

/// Severity of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Detail for the toolkit author.
    Debug,
    /// General information.
    Info,
    /// Unexpected situation.
    Warn,
    /// Error.
    Error,
}

/// Resource usage of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time of the thread while the guest ran, including host functions.
    pub cpu: Duration,
    /// Wall-clock time from the start of the guest to its end.
    pub wall: Duration,
    /// Maximum size of all memories together, in bytes.
    pub peak_memory: u64,
    /// Number of host function calls.
    pub host_calls: u32,
}

/// Current load of the sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Number of live guests, running or waiting for a response.
    pub live: usize,
    /// Number of calls that wait for a permit.
    pub queued: usize,
    /// Number of loaded components.
    pub loaded: usize,
    /// Memory of all guests, in bytes.
    pub memory: u64,
}

impl Level {
    /// Returns the name in lower case.
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
