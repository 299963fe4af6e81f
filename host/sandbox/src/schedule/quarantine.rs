//! Quarantines components that make host code panic too often.
//!
//! Problem: a panic of host code is a bug of the platform, and its call ends with an error. A
//! component that triggers the same bug repeatedly is either an attack or a problem for all of its
//! callers.
//!
//! Guarantee: after three panics within ten minutes a component does not run until the process
//! restarts. Every other component continues to run.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use parking_lot::RwLock;

use crate::Digest;

/// Number of panics that quarantines a component.
const MAX_PANICS: usize = 3;
/// Time window for these panics.
const PANIC_WINDOW: Duration = Duration::from_secs(600);

/// Quarantined components.
#[derive(Default)]
pub(crate) struct Quarantine {
    /// Panics of each component within the window. For a quarantined component, the panics that led
    /// to the quarantine.
    panics: RwLock<HashMap<Digest, Vec<Instant>>>,
    /// True if any component is quarantined. This is rare, and the check should cost other calls
    /// nothing.
    is_in_use: AtomicBool,
}

impl Quarantine {
    /// Returns true if the component must not run.
    pub(crate) fn holds(&self, component: &Digest) -> bool {
        self.is_in_use.load(Relaxed) && {
            let panics = self.panics.read();
            panics
                .get(component)
                .is_some_and(|times| times.len() >= MAX_PANICS)
        }
    }

    /// Records a panic of host code while the component ran.
    pub(crate) fn panicked(&self, component: &Digest, now: Instant) {
        let mut all = self.panics.write();
        let times = all.entry(*component).or_default();
        if times.len() >= MAX_PANICS {
            return;
        }
        times.retain(|time| now.saturating_duration_since(*time) < PANIC_WINDOW);
        times.push(now);
        if times.len() >= MAX_PANICS {
            self.is_in_use.store(true, Relaxed);
            tracing::error!(
                %component,
                "a component is quarantined: host code panicked {MAX_PANICS} times within {} minutes while it ran. Its calls \
                 are refused until the server starts again; report the panics above",
                PANIC_WINDOW.as_secs() / 60
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn third_panic_within_window_quarantines_the_component() {
        let quarantine = Quarantine::default();
        let bad = Digest::compute(b"bad");
        let good = Digest::compute(b"good");
        let begun = Instant::now();
        for seconds in [0, 1, 599] {
            assert!(!quarantine.holds(&bad));
            quarantine.panicked(&bad, begun + Duration::from_secs(seconds));
        }
        quarantine.panicked(&good, begun);
        quarantine.panicked(&bad, begun + 10 * PANIC_WINDOW);
        assert!(quarantine.holds(&bad) && !quarantine.holds(&good));
    }

    #[test]
    fn panics_far_apart_hold_nobody_back() {
        let quarantine = Quarantine::default();
        let component = Digest::compute(b"unlucky");
        let begun = Instant::now();
        for turn in 0..10 {
            quarantine.panicked(
                &component,
                begun + turn * (PANIC_WINDOW / 2 + Duration::from_secs(1)),
            );
        }
        assert!(!quarantine.holds(&component));
    }
}
