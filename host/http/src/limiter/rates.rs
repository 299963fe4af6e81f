//! Rate limits of keys, projects and organizations.

use std::{hash::Hash, net::IpAddr, num::NonZeroU32, sync::Arc, time::Duration};

use app::{
    Error,
    core::ids::OrganizationId,
    projects::{Holder, Project},
};
use governor::{
    DefaultKeyedRateLimiter, Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    middleware::StateInformationMiddleware,
};
use settings::Limits;

use super::counted_as;
use crate::errors;

/// Time in which a used-up rate limit is fully restored.
pub(crate) const RATE_WINDOW: Duration = Duration::from_secs(600);

/// Time in which a used-up rate limit of webhooks is fully restored.
const WEBHOOK_WINDOW: Duration = Duration::from_secs(60);

/// Number of counters of addresses above which those without recent requests are dropped.
const MAX_KEPT_ADDRESSES: usize = 10_000;

/// Rate limits of requests.
pub struct Rates {
    organizations: Rate<OrganizationId>,
    tenants: Rate<Arc<str>>,
    /// Requests without a key, by project.
    strangers: Rate<Arc<str>>,
    /// Requests without a key, by project and address.
    stranger_addresses: Rate<(Arc<str>, IpAddr)>,
    keys: Rate<String>,
    /// Requests of providers, by address.
    webhooks: Rate<String>,
    /// Rate limit reported before a request is counted.
    pub allowance: Allowance,
}

/// Rate limit of requests for each key: it may be used up in one burst and is restored evenly. 0
/// means no limit. What is not an address of a client has a record, so there are no more counters
/// than records.
struct Rate<K: Clone + Hash + Eq> {
    who: &'static str,
    limit: u32,
    limiter: Option<DefaultKeyedRateLimiter<K, StateInformationMiddleware>>,
}

/// State of the tightest rate limit that applies to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Requests in ten minutes; 0 means no limit.
    pub limit: u32,
    /// Remaining requests of the limit.
    pub left: u32,
}

/// Outcome of counting a request.
#[derive(Debug)]
pub(crate) struct Counted {
    /// Rate limit reported to the client.
    pub allowance: Allowance,
    /// Reason why the request is refused, if it is.
    pub refused: Option<Error>,
}

impl Rates {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            organizations: Rate::new(limits.rate(), RATE_WINDOW, "the organization"),
            tenants: Rate::new(limits.rate_per_project, RATE_WINDOW, "the project"),
            strangers: Rate::new(
                limits.stranger_rate(),
                RATE_WINDOW,
                "the public addresses of the project",
            ),
            stranger_addresses: Rate::new(
                limits.stranger_address_rate(),
                RATE_WINDOW,
                "the address without a key at the project",
            ),
            keys: Rate::new(limits.rate_per_key, RATE_WINDOW, "the key"),
            webhooks: Rate::new(limits.webhook_rate(), WEBHOOK_WINDOW, "the address"),
            allowance: Allowance {
                limit: limits.rate(),
                left: limits.rate(),
            },
        }
    }

    /// Counts a request of a provider to an address, which must exist.
    ///
    /// # Errors
    /// [`errors::WEBHOOK_RATE_EXCEEDED`] if the rate limit of the address is used up.
    pub fn count_webhook(&self, address: &String) -> Result<(), Error> {
        match self.webhooks.count(address) {
            Some(Err(retry_after)) => Err(errors::webhook_rate_exceeded(retry_after)),
            _ => Ok(()),
        }
    }

    /// Counts a request. The narrower limit comes first, so that a request it refuses takes nothing
    /// from the wider ones.
    pub(crate) fn count(&self, holder: &Holder, project: Option<&Arc<str>>) -> Counted {
        self.take_all(&[&|| self.keys.take(&holder.key_id), &|| match project {
            Some(project) => self.tenants.take(project),
            None => self.organizations.take(holder.organization()),
        }])
    }

    /// Counts a request from an address to a public address of a project. It takes nothing from the
    /// rate of the project's keys.
    pub(crate) fn count_without_key(&self, project: &Project, from: IpAddr) -> Counted {
        let address = (project.tenant.clone(), counted_as(from));
        self.stranger_addresses.drop_idle(MAX_KEPT_ADDRESSES);
        self.take_all(&[&|| self.stranger_addresses.take(&address), &|| {
            self.strangers.take(&project.tenant)
        }])
    }

    fn take_all(&self, steps: &[&dyn Fn() -> Option<Counted>]) -> Counted {
        let mut tightest: Option<Allowance> = None;
        for counted in steps.iter().filter_map(|step| step()) {
            if counted.refused.is_some() {
                return counted;
            }
            let own = counted.allowance;
            if tightest.is_none_or(|other| own.left < other.left) {
                tightest = Some(own);
            }
        }
        Counted {
            allowance: tightest.unwrap_or(self.allowance),
            refused: None,
        }
    }
}

impl<K: Clone + Hash + Eq> Rate<K> {
    fn new(limit: u32, window: Duration, who: &'static str) -> Self {
        let quota = NonZeroU32::new(limit).and_then(|burst| {
            let each = window / limit;
            Quota::with_period(each).map(|quota| quota.allow_burst(burst))
        });
        Self {
            who,
            limit,
            limiter: quota.map(|quota| RateLimiter::keyed(quota).with_middleware()),
        }
    }

    /// Drops the counters of keys that have their whole rate, if there are many counters.
    fn drop_idle(&self, max_kept: usize) {
        if let Some(limiter) = &self.limiter
            && limiter.len() > max_kept
        {
            limiter.retain_recent();
        }
    }

    /// Takes one request from the rate limit of a key; returns `None` without a limit.
    fn take(&self, key: &K) -> Option<Counted> {
        Some(match self.count(key)? {
            Ok(allowance) => Counted {
                allowance,
                refused: None,
            },
            Err(retry_after) => Counted {
                allowance: Allowance {
                    limit: self.limit,
                    left: 0,
                },
                refused: Some(errors::rate_exceeded(self.who, retry_after)),
            },
        })
    }

    /// Counts one request of a key. The error is the time until the next one is possible.
    fn count(&self, key: &K) -> Option<Result<Allowance, Duration>> {
        let counted = self.limiter.as_ref()?.check_key(key);
        Some(match counted {
            Ok(state) => Ok(Allowance {
                limit: state.quota().burst_size().get(),
                left: state.remaining_burst_capacity(),
            }),
            Err(not_yet) => Err(not_yet.wait_time_from(DefaultClock::default().now())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_limit_counts_down_and_reports_retry_time() {
        let rate = Rate::new(3, RATE_WINDOW, "the key");
        let left: Vec<_> = (0..3).map(|_| rate.take(&1).unwrap().allowance).collect();
        assert_eq!(left, [2, 1, 0].map(|left| Allowance { limit: 3, left }));
        let counted = rate.take(&1).unwrap();
        assert_eq!(counted.allowance, Allowance { limit: 3, left: 0 });
        let refused = counted.refused.expect("it is used up");
        assert!(refused.is(&errors::RATE_EXCEEDED), "{refused}");
        assert!(refused.to_string().starts_with("the key "), "{refused}");
        let retry_after = refused.retry_after().unwrap();
        assert!(
            retry_after > Duration::ZERO && retry_after <= RATE_WINDOW / 3,
            "{retry_after:?}"
        );
        let other = rate.take(&2).unwrap();
        assert!(other.refused.is_none(), "keys do not share");
        assert!(
            Rate::new(0, RATE_WINDOW, "the key").take(&1).is_none(),
            "no limit counts nothing"
        );
    }

    #[test]
    fn only_keyless_requests_are_limited_by_default() {
        let rates = Rates::new(&Limits::default());
        assert!(rates.organizations.limiter.is_none() && rates.tenants.limiter.is_none());
        assert_eq!(rates.allowance.limit, 0);
        let keyless = (
            rates.strangers.limit,
            rates.stranger_addresses.limit,
            rates.webhooks.limit,
        );
        assert_eq!(keyless, (5_000, 1_250, 4_000));
    }

    #[test]
    fn counters_of_idle_addresses_are_dropped() {
        // A key has its whole rate again after a nanosecond.
        let rate = Rate::new(3, Duration::from_nanos(3), "the address");
        let counters = || rate.limiter.as_ref().unwrap().len();
        (0..10).for_each(|key| drop(rate.take(&key)));
        rate.drop_idle(10);
        assert_eq!(counters(), 10);
        rate.drop_idle(9);
        assert_eq!(counters(), 0);
    }
}
