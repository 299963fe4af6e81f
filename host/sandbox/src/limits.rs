//! How much one call may use.

use std::time::Duration;

const MIB: u64 = 1 << 20;

/// Bounds of one call. [`Limits::default`] suits a server; a toolkit may ask for other values up to [`Limits::CEILING`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// All memories of the guest together, in bytes. Past it memory does not grow.
    pub memory: u64,
    /// Processor time.
    pub cpu: Duration,
    /// Wall-clock time from the start of the guest, waiting for the outside included. What it waits for a place before
    /// that, and for a processor while others compute, is not held against it; either wait has its own bound.
    pub wall: Duration,
    /// Calls of host functions.
    pub host_calls: u32,
    /// Outgoing requests.
    pub requests: u32,
    /// Outgoing requests in flight.
    pub requests_at_once: u32,
    /// Body of one outgoing request taken from guest memory, in bytes.
    pub request_body: u64,
    /// Body of one answer handed to guest memory, in bytes, after decompression.
    pub response_body: u64,
    /// All such answers together, in bytes.
    pub responses: u64,
    /// What the guest answers, in bytes.
    pub result: u64,
    /// Lines of log.
    pub log_lines: u32,
    /// All lines of log together, in bytes.
    pub log_bytes: u64,
    /// One file, in bytes; also the limit of a body that is read from or into a file.
    pub file: u64,
    /// Files that the guest makes.
    pub files: u32,
    /// Until an outgoing connection stands.
    pub connect: Duration,
    /// Until the headers of an answer are there.
    pub first_byte: Duration,
    /// One outgoing request, from start to last byte, unless the guest asks for less.
    pub exchange: Duration,
}

impl Limits {
    /// What no toolkit and no operator can go past.
    pub const CEILING: Self = Self {
        memory: 256 * MIB,
        cpu: Duration::from_secs(60),
        wall: Duration::from_secs(300),
        host_calls: 100_000,
        requests: 500,
        requests_at_once: 16,
        request_body: 32 * MIB,
        response_body: 64 * MIB,
        responses: 128 * MIB,
        result: 16 * MIB,
        log_lines: 10_000,
        log_bytes: 2560 << 10,
        file: 1024 * MIB,
        files: 32,
        connect: Duration::from_secs(300),
        first_byte: Duration::from_secs(300),
        exchange: Duration::from_secs(300),
    };

    /// These limits with what a toolkit asks for in their place, never past [`Limits::CEILING`].
    #[must_use]
    pub fn asked(self, asked: manifest::Limits) -> Self {
        let millis = |value: u32| Duration::from_millis(value.into());
        Self {
            memory: asked.memory_mib.map_or(self.memory, |mib| u64::from(mib) * MIB),
            cpu: asked.cpu_ms.map_or(self.cpu, millis),
            wall: asked.wall_ms.map_or(self.wall, millis),
            ..self
        }
        .clamped()
    }

    /// These limits, none past its ceiling.
    #[must_use]
    pub fn clamped(self) -> Self {
        let top = Self::CEILING;
        Self {
            memory: self.memory.min(top.memory),
            cpu: self.cpu.min(top.cpu),
            wall: self.wall.min(top.wall),
            host_calls: self.host_calls.min(top.host_calls),
            requests: self.requests.min(top.requests),
            requests_at_once: self.requests_at_once.clamp(1, top.requests_at_once),
            request_body: self.request_body.min(top.request_body),
            response_body: self.response_body.min(top.response_body),
            responses: self.responses.min(top.responses),
            result: self.result.min(top.result),
            log_lines: self.log_lines.min(top.log_lines),
            log_bytes: self.log_bytes.min(top.log_bytes),
            file: self.file.min(top.file),
            files: self.files.min(top.files),
            connect: self.connect.min(top.connect),
            first_byte: self.first_byte.min(top.first_byte),
            exchange: self.exchange.min(top.exchange),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 64 * MIB,
            cpu: Duration::from_secs(5),
            wall: Duration::from_secs(30),
            host_calls: 10_000,
            requests: 50,
            requests_at_once: 6,
            request_body: 4 * MIB,
            response_body: 10 * MIB,
            responses: 32 * MIB,
            result: 16 * MIB,
            log_lines: 1_000,
            log_bytes: 256 << 10,
            file: 100 * MIB,
            files: 32,
            connect: Duration::from_secs(5),
            first_byte: Duration::from_secs(15),
            exchange: Duration::from_secs(30),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolkit_gets_what_it_asks_for_up_to_the_ceiling() {
        let asked = manifest::Limits { memory_mib: Some(u32::MAX), cpu_ms: Some(100), wall_ms: Some(u32::MAX) };
        let limits = Limits::default().asked(asked);
        assert_eq!(limits.memory, Limits::CEILING.memory);
        assert_eq!(limits.cpu, Duration::from_millis(100));
        assert_eq!(limits.wall, Limits::CEILING.wall);
        assert_eq!(Limits::default().asked(manifest::Limits::default()), Limits::default());
    }
}
