//! Components that broke the host too often.
//!
//! A panic of host code is a mistake of ours, and its call ends with an error. But a component that meets the same mistake
//! again and again is either what an attacker has found or what every caller suffers from. After three panics within ten
//! minutes it is not run any more until the process starts again; every other component goes on.

use std::{
    collections::HashMap,
    sync::{
        PoisonError, RwLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use crate::Digest;

/// Panics that are one too many.
const PANICS: usize = 3;
/// Within this time.
const WINDOW: Duration = Duration::from_secs(600);

/// Who is held back.
#[derive(Default)]
pub(crate) struct Quarantine {
    /// Panics of each component within the window; of one that is held back, those that led to it.
    panics: RwLock<HashMap<Digest, Vec<Instant>>>,
    /// There is somebody. Nearly always nobody is, and a call should pay nothing for asking.
    anybody: AtomicBool,
}

impl Quarantine {
    /// Whether the component must not run.
    pub(crate) fn holds(&self, component: &Digest) -> bool {
        self.anybody.load(Relaxed) && {
            let panics = self.panics.read().unwrap_or_else(PoisonError::into_inner);
            panics.get(component).is_some_and(|times| times.len() >= PANICS)
        }
    }

    /// Host code panicked while the component ran.
    pub(crate) fn panicked(&self, component: &Digest, now: Instant) {
        let mut all = self.panics.write().unwrap_or_else(PoisonError::into_inner);
        let times = all.entry(*component).or_default();
        if times.len() >= PANICS {
            return;
        }
        times.retain(|time| now.saturating_duration_since(*time) < WINDOW);
        times.push(now);
        if times.len() >= PANICS {
            self.anybody.store(true, Relaxed);
            tracing::error!(
                %component,
                "a component is quarantined: host code panicked {PANICS} times within {} minutes while it ran. Its calls \
                 are refused until the server starts again; report the panics above",
                WINDOW.as_secs() / 60
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_panic_within_the_window_holds_one_component_back_for_good() {
        let quarantine = Quarantine::default();
        let (bad, good) = (Digest::of(b"bad"), Digest::of(b"good"));
        let begun = Instant::now();
        for after in [0, 1, 599] {
            assert!(!quarantine.holds(&bad));
            quarantine.panicked(&bad, begun + Duration::from_secs(after));
        }
        quarantine.panicked(&good, begun);
        quarantine.panicked(&bad, begun + 10 * WINDOW);
        assert!(quarantine.holds(&bad) && !quarantine.holds(&good));
    }

    #[test]
    fn panics_far_apart_hold_nobody_back() {
        let quarantine = Quarantine::default();
        let component = Digest::of(b"unlucky");
        let begun = Instant::now();
        for turn in 0..10 {
            quarantine.panicked(&component, begun + turn * (WINDOW / 2 + Duration::from_secs(1)));
        }
        assert!(!quarantine.holds(&component));
    }
}
