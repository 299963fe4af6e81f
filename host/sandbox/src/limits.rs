//! Limits of calls, components and child processes.

use std::time::Duration;

/// Maximum size of a component, in bytes. A component that embeds Python has 18 MB; the rest is for
/// the content of the toolkit.
pub const MAX_COMPONENT_BYTES: usize = 24 << 20;
/// Maximum number of core instances of one component. Components that embed interpreters need
/// several; a component that needs more is treated as an attack.
pub const MAX_CORE_INSTANCES: u32 = 32;
/// Maximum number of memories of one component. See [`MAX_CORE_INSTANCES`].
pub const MAX_MEMORIES: u32 = 4;
/// Maximum number of tables of one component. See [`MAX_CORE_INSTANCES`].
pub const MAX_TABLES: u32 = 20;
/// Maximum number of elements of one table.
pub const MAX_TABLE_ELEMENTS: usize = 20_000;

const BYTES_PER_MIB: u64 = 1 << 20;

/// Limits of one call. [`Limits::default`] suits a server; a toolkit may request other values up to
/// [`Limits::CEILING`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of all memories of the guest together, in bytes. Memory does not grow beyond
    /// it.
    pub memory: u64,
    /// Maximum processor time.
    pub cpu: Duration,
    /// Maximum wall-clock time from the start of the guest, including its waits for external
    /// responses. The wait for a permit before the start and the wait for a processor while others
    /// compute do not count. Each of these waits has its own limit.
    pub wall: Duration,
    /// Maximum number of host function calls.
    pub host_calls: u32,
    /// Maximum number of outgoing requests.
    pub requests: u32,
    /// Maximum number of outgoing requests in flight.
    pub concurrent_requests: u32,
    /// Maximum size of one request body taken from guest memory, in bytes.
    pub request_body: u64,
    /// Maximum size of one response body handed to guest memory, in bytes, after decompression.
    pub response_body: u64,
    /// Maximum size of all such response bodies together, in bytes.
    pub responses: u64,
    /// Maximum size of the guest's result, in bytes.
    pub result: u64,
    /// Maximum number of log lines.
    pub log_lines: u32,
    /// Maximum size of all log lines together, in bytes.
    pub log_bytes: u64,
    /// Maximum size of one file, in bytes. It also limits bodies read from or into files. The
    /// ceiling is the largest file that a server can be set to accept.
    pub file: u64,
    /// Maximum number of files that the guest creates.
    pub files: u32,
    /// Timeout for opening an outgoing connection.
    pub connect: Duration,
    /// Timeout for the headers of a response.
    pub first_byte: Duration,
    /// Timeout for one outgoing request, from start to last byte, unless the guest sets a shorter
    /// one.
    pub exchange: Duration,
}

impl Limits {
    /// Maximum limits, for every toolkit and every operator.
    pub const CEILING: Self = Self {
        memory: 256 * BYTES_PER_MIB,
        cpu: Duration::from_secs(60),
        wall: Duration::from_secs(300),
        host_calls: 100_000,
        requests: 500,
        concurrent_requests: 16,
        request_body: 32 * BYTES_PER_MIB,
        response_body: 64 * BYTES_PER_MIB,
        responses: 128 * BYTES_PER_MIB,
        result: 16 * BYTES_PER_MIB,
        log_lines: 10_000,
        log_bytes: 2560 << 10,
        file: 1024 * BYTES_PER_MIB,
        files: 32,
        connect: Duration::from_secs(300),
        first_byte: Duration::from_secs(300),
        exchange: Duration::from_secs(300),
    };

    /// Returns these limits with the values that a toolkit requests, capped at [`Limits::CEILING`].
    #[must_use]
    pub fn with_requested(self, requested: manifest::Limits) -> Self {
        Self {
            memory: requested
                .memory_mib
                .map_or(self.memory, |mib| u64::from(mib) * BYTES_PER_MIB),
            cpu: requested
                .cpu_ms
                .map_or(self.cpu, |ms| Duration::from_millis(ms.into())),
            wall: requested
                .wall_ms
                .map_or(self.wall, |ms| Duration::from_millis(ms.into())),
            ..self
        }
        .clamped()
    }

    /// Returns these limits, each capped at its ceiling.
    #[must_use]
    pub fn clamped(self) -> Self {
        let ceiling = Self::CEILING;
        Self {
            memory: self.memory.min(ceiling.memory),
            cpu: self.cpu.min(ceiling.cpu),
            wall: self.wall.min(ceiling.wall),
            host_calls: self.host_calls.min(ceiling.host_calls),
            requests: self.requests.min(ceiling.requests),
            concurrent_requests: self
                .concurrent_requests
                .clamp(1, ceiling.concurrent_requests),
            request_body: self.request_body.min(ceiling.request_body),
            response_body: self.response_body.min(ceiling.response_body),
            responses: self.responses.min(ceiling.responses),
            result: self.result.min(ceiling.result),
            log_lines: self.log_lines.min(ceiling.log_lines),
            log_bytes: self.log_bytes.min(ceiling.log_bytes),
            file: self.file.min(ceiling.file),
            files: self.files.min(ceiling.files),
            connect: self.connect.min(ceiling.connect),
            first_byte: self.first_byte.min(ceiling.first_byte),
            exchange: self.exchange.min(ceiling.exchange),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 64 * BYTES_PER_MIB,
            cpu: Duration::from_secs(5),
            wall: Duration::from_secs(30),
            host_calls: 10_000,
            requests: 50,
            concurrent_requests: 6,
            request_body: 4 * BYTES_PER_MIB,
            response_body: 10 * BYTES_PER_MIB,
            responses: 32 * BYTES_PER_MIB,
            result: 16 * BYTES_PER_MIB,
            log_lines: 1_000,
            log_bytes: 256 << 10,
            file: 100 * BYTES_PER_MIB,
            files: 32,
            connect: Duration::from_secs(5),
            first_byte: Duration::from_secs(15),
            exchange: Duration::from_secs(30),
        }
    }
}

/// Limits of a child process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChildLimits {
    /// Maximum processor time, in seconds.
    pub cpu_seconds: u64,
    /// Maximum wall-clock time.
    pub wall: Duration,
    /// Maximum writable memory, in bytes.
    pub memory: u64,
}

impl Default for ChildLimits {
    /// Returns the limits for compiling a component.
    fn default() -> Self {
        Self {
            cpu_seconds: 60,
            wall: Duration::from_secs(120),
            memory: 2 << 30,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requested_limits_are_capped_at_the_ceiling() {
        let requested = manifest::Limits {
            memory_mib: Some(u32::MAX),
            cpu_ms: Some(100),
            wall_ms: Some(u32::MAX),
        };
        let limits = Limits::default().with_requested(requested);
        assert_eq!(limits.memory, Limits::CEILING.memory);
        assert_eq!(limits.cpu, Duration::from_millis(100));
        assert_eq!(limits.wall, Limits::CEILING.wall);
        assert_eq!(
            Limits::default().with_requested(manifest::Limits::default()),
            Limits::default()
        );
    }
}
