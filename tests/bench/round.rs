//! Result of a round of requests.

use std::time::Duration;

use anyhow::{Result, ensure};

/// Responses on one connection in a round.
#[derive(Default)]
pub(crate) struct Responses {
    /// Latencies of successful requests, in nanoseconds.
    pub(crate) latencies: Vec<u32>,
    pub(crate) failed: usize,
}

/// Result of one round.
#[derive(Debug, Clone)]
pub(crate) struct Round {
    pub(crate) per_second: f64,
    pub(crate) p50: Duration,
    pub(crate) p90: Duration,
    pub(crate) p95: Duration,
    pub(crate) p99: Duration,
    pub(crate) p999: Duration,
    /// Processor time of the server per request.
    pub(crate) cpu: Duration,
    /// Failed requests per second, which count nowhere else.
    pub(crate) failed_per_second: f64,
}

impl Round {
    /// Computes the result of all connections together.
    pub(crate) fn of(connections: Vec<Responses>, took: Duration, cpu: Duration) -> Result<Self> {
        let failed: usize = connections.iter().map(|responses| responses.failed).sum();
        let latencies = connections
            .into_iter()
            .flat_map(|responses| responses.latencies);
        let mut latencies: Vec<_> = latencies.collect();
        latencies.sort_unstable();
        ensure!(!latencies.is_empty(), "nothing was answered in {took:?}");
        let at = |share: f64| {
            let place = ((latencies.len() - 1) as f64 * share) as usize;
            Duration::from_nanos(u64::from(latencies[place]))
        };
        let requests = latencies.len();
        Ok(Self {
            per_second: requests as f64 / took.as_secs_f64(),
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            cpu: cpu / requests as u32,
            failed_per_second: failed as f64 / took.as_secs_f64(),
        })
    }
}
