//! Trace and usage of a run, readable at its end and after it was cancelled.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use crate::{Failure, Limits, Outcome, Usage, schedule::meter::Meter, trace::Trace};

/// Trace and meter of one call or one proxy request.
pub(crate) struct Observer {
    pub(crate) trace: Arc<Trace>,
    pub(crate) meter: Arc<Meter>,
}

impl Observer {
    pub(crate) fn new(started: Instant, limits: &Limits) -> Self {
        Self {
            trace: Arc::new(Trace::new(started, limits)),
            meter: Arc::default(),
        }
    }

    /// Returns the outcome of the run with this output, without files and state.
    pub(crate) fn outcome<T>(&self, output: Result<T, Failure>) -> Outcome<T> {
        let (log, requests) = self.trace.take();
        Outcome {
            output,
            requests,
            log,
            usage: Usage {
                cpu: self.meter.used(),
                wall: self.trace.elapsed(),
                peak_memory: self.meter.peak_memory(),
                host_calls: self.meter.host_calls(),
            },
            files: Vec::new(),
            memory: None,
            state: BTreeMap::new(),
        }
    }
}
