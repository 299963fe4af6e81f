//! Limits on streams, of announcements and of events. Clients keep such a stream open without work, so
//! that it holds no concurrency permit of a request.

use gate::Shares;
use settings::Limits;

use super::callers::shares_of_strangers;

/// Maximum number of open streams, as a multiple of `limits.in_flight`.
const STREAMS_PER_REQUEST: u64 = 2;
/// Part of all streams that a project takes whenever they are free.
const STREAM_BASE_DIVISOR: u64 = 128;
/// Part of all streams that one project has at most.
const STREAM_CAP_DIVISOR: u64 = 4;

/// Returns the shares of projects in streams.
pub const fn stream_shares(limits: &Limits) -> Shares {
    let all = (limits.in_flight as u64).saturating_mul(STREAMS_PER_REQUEST);
    Shares::new(all, STREAM_BASE_DIVISOR, all / STREAM_CAP_DIVISOR)
}

/// Returns the shares of projects in the streams of callers without a key.
pub const fn stranger_stream_shares(limits: &Limits) -> Shares {
    shares_of_strangers(stream_shares(limits), STREAM_BASE_DIVISOR)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use settings::Sandbox;

    use crate::{
        errors,
        limiter::{Caller, RequestLimiter},
    };

    use super::*;

    #[test]
    fn streams_are_limited_and_released() {
        let limits = Limits {
            in_flight: 16,
            ..Default::default()
        };
        let streams = RequestLimiter::new(&limits, &Sandbox::default()).streams;
        let tenant: Arc<str> = "a".into();
        let stranger = |address| Caller {
            tenant: tenant.clone(),
            stranger: Some([192, 0, 2, address].into()),
        };
        let held = (1..=4).map(|address| streams.try_acquire(&stranger(address)).unwrap());
        let held: Vec<_> = held.collect();
        for (address, reason) in [(1, &errors::ADDRESS_BUSY), (5, &errors::PROJECT_BUSY)] {
            let refused = streams.try_acquire(&stranger(address)).err().unwrap();
            assert!(refused.is(reason), "{refused}");
            assert!(refused.to_string().ends_with("open streams"), "{refused}");
        }

        let with_key = Caller {
            tenant: tenant.clone(),
            stranger: None,
        };
        let open = (0..8).map(|_| streams.try_acquire(&with_key).unwrap());
        let mut open: Vec<_> = open.collect();
        let refused = streams.try_acquire(&with_key).err().unwrap();
        assert!(refused.is(&errors::PROJECT_BUSY), "{refused}");
        drop(open.pop());
        assert!(streams.try_acquire(&with_key).is_ok());
        drop(held);
        assert!(streams.try_acquire(&stranger(1)).is_ok());
    }
}
