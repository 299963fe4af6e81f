//! Derives the failure of a call from the error of the engine and from the state of the guest.

use std::time::Duration;

use bytes::Bytes;
use gate::Busy;
use wasmtime::{Trap, WasmBacktrace};

use crate::{
    Cause, Failure, Limits,
    contract::v1::{http, types::ToolError},
    outcome::kind,
    schedule::{
        limiter::{Limiter, MemoryRefusal},
        meter::{MAX_HELD_UP, Meter},
        scheduler::Stopped,
    },
    trace::{cut, one_line},
};

const MAX_MESSAGE_BYTES: usize = 4 << 10;
const MAX_DETAILS_BYTES: usize = 64 << 10;
const MAX_KIND_BYTES: usize = 64;
/// Delay after which a call that got no memory is worth another attempt.
const MEMORY_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Kind for a guest error without a valid kind or with a kind of the platform. Callers would
/// attribute such a kind to the platform.
const DEFAULT_KIND: &str = "internal";

/// Converts the guest's own error and limits its size.
pub(crate) fn from_tool_error(error: ToolError) -> Failure {
    let proper = !error.kind.is_empty()
        && error.kind.len() <= MAX_KIND_BYTES
        && error
            .kind
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && !kind::ALL.contains(&error.kind.as_str());
    let details = error.details.filter(|details| {
        details.len() <= MAX_DETAILS_BYTES
            && std::str::from_utf8(details).is_ok()
            && serde_json::from_slice::<serde::de::IgnoredAny>(details).is_ok()
    });
    Failure {
        cause: Cause::Tool,
        kind: if proper {
            error.kind
        } else {
            DEFAULT_KIND.to_owned()
        },
        message: cut(&error.message, MAX_MESSAGE_BYTES).to_owned(),
        retry_after: error.retry_after_ms.map(Duration::from_millis),
        upstream_status: error.upstream_status,
        details: details.map(Bytes::from),
    }
}

/// Creates the failure of a guest that was stopped from outside.
pub(crate) fn from_stopped(stopped: &Stopped, max_wall: Duration) -> Failure {
    match stopped {
        Stopped::Timeout => limit(
            kind::TIMEOUT,
            format!("the tool took longer than {max_wall:?}"),
        ),
        Stopped::HeldUp => limit(
            kind::TIMEOUT,
            format!(
                "the tool took longer than {max_wall:?}, and waited {MAX_HELD_UP:?} more for a free processor"
            ),
        ),
        Stopped::Panicked(_) => {
            host("the host failed while the tool ran; this is a bug of the host")
        }
    }
}

/// Creates the failure of a guest that the engine ended.
pub(crate) fn from_engine_error(
    cause: &wasmtime::Error,
    limiter: &Limiter,
    meter: &Meter,
    instantiated: bool,
    limits: &Limits,
) -> Failure {
    tracing::debug!(cause = format!("{cause:#}"), "a guest was ended");
    if meter.host_calls() > limits.host_calls {
        return limit(
            kind::HOST_CALLS,
            format!("the tool made more than {} host calls", limits.host_calls),
        );
    }
    if let Some(failure) = from_trap(cause, limiter, instantiated, limits.memory, limits.cpu) {
        return failure;
    }
    if let Some(exit) = cause.downcast_ref::<wasmtime_wasi::I32Exit>() {
        return limit(
            kind::TRAP,
            format!("the tool ended itself with exit code {}", exit.0),
        );
    }
    let text = innermost(cause);
    // Without a guest frame on the stack, the host could not read the result.
    let in_guest = !instantiated || cause.is::<WasmBacktrace>();
    match (text.contains("fuel allocated for hostcalls"), in_guest) {
        (true, false) => over_size(limits),
        (true, true) => limit(
            kind::HOST_CALLS,
            "the tool passed too much data to one host call",
        ),
        (false, false) => invalid(format!(
            "the tool's result cannot be read: {}",
            plain(&text)
        )),
        (false, true) => violated(cause),
    }
}

/// Creates the failure of a guest that a trap or its memory limit ended.
pub(crate) fn from_trap(
    cause: &wasmtime::Error,
    limiter: &Limiter,
    instantiated: bool,
    max_memory: u64,
    max_cpu: Duration,
) -> Option<Failure> {
    let refused = limiter.refused();
    let out_of_memory = refused.map(|refused| from_memory_refusal(refused, max_memory));
    match cause.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) => Some(limit(
            kind::CPU,
            format!("the tool used more than {max_cpu:?} of processor time"),
        )),
        Some(Trap::UnreachableCodeReached) if refused.is_some() => out_of_memory,
        Some(trap) => Some(limit(
            kind::TRAP,
            format!(
                "the tool trapped: {}; its log may show the reason",
                plain(&trap.to_string())
            ),
        )),
        None if limiter.is_ended() || !instantiated => out_of_memory,
        None => None,
    }
}

fn from_memory_refusal(refused: MemoryRefusal, max_memory: u64) -> Failure {
    match refused {
        MemoryRefusal::Guest => limit(
            kind::MEMORY,
            format!(
                "the tool exceeded its memory limit of {} MiB",
                max_memory >> 20
            ),
        ),
        MemoryRefusal::Node(busy) => Failure {
            retry_after: Some(MEMORY_RETRY_DELAY),
            ..failure(Cause::Host, kind::MEMORY_BUSY, memory_busy(busy))
        },
    }
}

/// Returns the message for memory that executions of the project, or of others, hold.
pub(crate) const fn memory_busy(busy: Busy) -> &'static str {
    match busy {
        Busy::Own => {
            "the executions of the project hold all memory that they may have on this server; try again when some of them have ended"
        }
        Busy::Others => {
            "the executions of other projects hold the memory of this server; try again in a second"
        }
    }
}

/// Creates the failure of a guest that used its host in another way than the contract says.
pub(crate) fn violated(cause: &wasmtime::Error) -> Failure {
    limit(
        kind::TRAP,
        format!(
            "the tool violated the contract: {}",
            plain(&innermost(cause))
        ),
    )
}

/// Creates the failure for an oversized result.
pub(crate) fn over_size(limits: &Limits) -> Failure {
    limit(
        kind::OUTPUT_TOO_LARGE,
        format!("the tool returned more than {} bytes", limits.result),
    )
}

/// Creates the failure for a result that violates the contract.
pub(crate) fn invalid(message: impl Into<String>) -> Failure {
    limit(kind::OUTPUT_INVALID, message)
}

/// Creates the failure for a call that differs from the recorded one.
pub(crate) fn replay_difference(how: String) -> Failure {
    failure(Cause::Host, kind::REPLAY_DIFFERS, how)
}

/// Creates the failure of a call that was dropped before its end.
pub(crate) fn cancelled() -> Failure {
    failure(
        Cause::Caller,
        kind::CANCELLED,
        "the call was cancelled before it ended",
    )
}

/// Creates the failure of a proxy request.
pub(crate) fn from_request_error(error: http::Error) -> Failure {
    failure(Cause::Request, &error.kind, error.message)
}

fn limit(kind: &str, message: impl Into<String>) -> Failure {
    failure(Cause::Limit, kind, message)
}

fn host(message: &str) -> Failure {
    failure(Cause::Host, kind::HOST, message)
}

fn failure(cause: Cause, kind: &str, message: impl Into<String>) -> Failure {
    Failure {
        cause,
        kind: kind.to_owned(),
        message: message.into(),
        retry_after: None,
        upstream_status: None,
        details: None,
    }
}

/// Returns the last cause. The causes before it are backtraces and addresses, which belong in the
/// log.
fn innermost(cause: &wasmtime::Error) -> String {
    cause
        .chain()
        .last()
        .map(ToString::to_string)
        .unwrap_or_default()
}

fn plain(text: &str) -> String {
    one_line(cut(text.trim_start_matches("wasm trap: "), 300))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported_kind(kind: &str) -> String {
        let kind = kind.to_owned();
        let message = "m".to_owned();
        from_tool_error(ToolError {
            kind,
            message,
            retry_after_ms: None,
            upstream_status: None,
            details: None,
        })
        .kind
    }

    #[test]
    fn guests_cannot_claim_kinds_of_the_platform() {
        for kind in kind::ALL {
            assert_eq!(reported_kind(kind), DEFAULT_KIND);
        }
        for own in ["rate_limited", "tool_broken", "timeout"] {
            assert_eq!(reported_kind(own), own);
        }
    }
}
