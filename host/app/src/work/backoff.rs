//! Delays between attempts. Jitter keeps work that failed together from being retried together.

use std::time::Duration;

use crate::core::ids;

/// Delay after the first failed attempt of a queue, which doubles with further ones.
const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);
/// Maximum delay after a failed attempt of a queue.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);

/// Returns the delay of a queue after a number of failed attempts.
pub(crate) fn retry_delay(attempts: u32) -> Duration {
    doubled(MIN_RETRY_DELAY, MAX_RETRY_DELAY, attempts)
}

/// Returns the delay after a number of failed attempts: `first`, doubled with each further attempt,
/// and at most `max`.
pub(crate) fn doubled(first: Duration, max: Duration, attempts: u32) -> Duration {
    first
        .saturating_mul(1 << attempts.saturating_sub(1).min(20))
        .min(max)
}

/// Returns a random duration between four fifths and six fifths of `time`.
pub(crate) fn jittered(time: Duration) -> Duration {
    let [byte] = ids::random::<1>();
    time * 4 / 5 + time * 2 / 5 * u32::from(byte) / 255
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_doubles_up_to_its_maximum() {
        let [first, max] = [30, 3_600].map(Duration::from_secs);
        for (attempts, delay) in [(1, 30), (2, 60), (4, 240), (8, 3_600), (u32::MAX, 3_600)] {
            assert_eq!(doubled(first, max, attempts).as_secs(), delay);
        }
    }

    #[test]
    fn jitter_is_at_most_a_fifth() {
        for _ in 0..100 {
            let delay = jittered(Duration::from_secs(100)).as_secs();
            assert!((80..=120).contains(&delay), "{delay}");
        }
    }
}
