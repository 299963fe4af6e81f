//! Counts of commits and of durations, for the metrics of the operator.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::CommitError;

/// Upper bounds of the buckets, in microseconds. Longer durations are in a last bucket of their own.
pub const BUCKETS_US: [u64; 13] = [
    100,
    300,
    1_000,
    3_000,
    10_000,
    30_000,
    100_000,
    300_000,
    1_000_000,
    3_000_000,
    10_000_000,
    30_000_000,
    100_000_000,
];

/// A histogram of durations. Recording one takes two atomic increments.
#[derive(Debug, Default)]
pub struct Durations {
    buckets: [AtomicU64; BUCKETS_US.len() + 1],
    sum_us: AtomicU64,
}

/// The state of a histogram at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurationCounts {
    /// For each bound in [`BUCKETS_US`], the number of durations up to it.
    pub up_to: [u64; BUCKETS_US.len()],
    /// Number of all durations.
    pub count: u64,
    /// Sum of all durations, in microseconds.
    pub sum_us: u64,
}

/// Counts of the commits of this process.
#[derive(Debug, Default)]
pub struct CommitCounts {
    /// Durations of the commits that succeeded.
    pub durations: Durations,
    /// Number of batches that the state of the records did not allow.
    pub refused: AtomicU64,
    /// Number of batches that the database could not write.
    pub failed: AtomicU64,
}

impl CommitCounts {
    /// Counts a commit by its result.
    pub(crate) fn count(&self, committed: &Result<(), CommitError>, duration: Duration) {
        let counter = match committed {
            Ok(()) => return self.durations.record(duration),
            Err(CommitError::Stale | CommitError::Taken { .. } | CommitError::Invalid(_)) => {
                &self.refused
            }
            Err(CommitError::Full | CommitError::Unavailable(_)) => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl Durations {
    /// Records a duration.
    pub fn record(&self, duration: Duration) {
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = BUCKETS_US.partition_point(|bound| *bound < us);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    /// Reads the histogram. The count is that of the buckets, whatever is recorded meanwhile.
    pub fn read(&self) -> DurationCounts {
        let sum_us = self.sum_us.load(Ordering::Relaxed);
        let mut counts = DurationCounts {
            up_to: [0; BUCKETS_US.len()],
            count: 0,
            sum_us,
        };
        for (at, bucket) in self.buckets.iter().enumerate() {
            counts.count += bucket.load(Ordering::Relaxed);
            if let Some(up_to) = counts.up_to.get_mut(at) {
                *up_to = counts.count;
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_count_up_to_their_bounds() {
        let durations = Durations::default();
        for us in [0, 100, 101, 3_000, 200_000_000] {
            durations.record(Duration::from_micros(us));
        }
        let counts = durations.read();
        assert_eq!(counts.up_to[..4], [2, 3, 3, 4]);
        assert_eq!((counts.up_to[12], counts.count), (4, 5));
        assert_eq!(counts.sum_us, 200_003_201);
    }
}
