//! Counts of executions by toolkit, for the metrics of the operator.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use store::Durations;
use strum::{IntoStaticStr, VariantArray};

/// Maximum number of toolkits that are counted separately.
const MAX_TOOLKITS: usize = 500;
/// Name under which further toolkits are counted.
const OTHER_TOOLKITS: &str = "(other)";
/// Name under which tools of the host itself are counted.
pub(super) const HOST_TOOLS: &str = "(host)";

/// Counts of the executions of this process, by toolkit. Counting takes atomic increments and no
/// lock, except for the first execution of a toolkit.
#[derive(Debug, Default)]
pub(crate) struct ExecutionCounts(ArcSwap<BTreeMap<Arc<str>, Arc<ToolkitCounts>>>);

/// Counts of the executions of a toolkit.
#[derive(Debug, Default)]
pub struct ToolkitCounts {
    /// Durations from the start of an execution to its result.
    pub durations: Durations,
    /// Numbers of executions by their end.
    outcomes: [AtomicU64; 3],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub(super) enum ExecutionEnd {
    /// The tool returned a result.
    Success,
    /// The tool failed or was stopped.
    Failed,
    /// The client disconnected, or the server stopped.
    Cancelled,
}

impl ExecutionCounts {
    pub(super) fn count(&self, toolkit: &str, end: ExecutionEnd, duration: Duration) {
        loop {
            let known = self.0.load();
            let counts = known
                .get(toolkit)
                .or_else(|| known.get(OTHER_TOOLKITS).filter(|_| is_full(&known)));
            if let Some(counts) = counts {
                return counts.count(end, duration);
            }
            self.0.rcu(|known| {
                let name = if is_full(known) {
                    OTHER_TOOLKITS
                } else {
                    toolkit
                };
                let mut next = BTreeMap::clone(known);
                next.entry(name.into()).or_default();
                next
            });
        }
    }

    /// Returns the counts of each toolkit, by name.
    pub(crate) fn read(&self) -> Vec<(Arc<str>, Arc<ToolkitCounts>)> {
        let known = self.0.load();
        BTreeMap::clone(&known).into_iter().collect()
    }
}

fn is_full(known: &BTreeMap<Arc<str>, Arc<ToolkitCounts>>) -> bool {
    known.len() >= MAX_TOOLKITS
}

impl ToolkitCounts {
    fn count(&self, end: ExecutionEnd, duration: Duration) {
        self.durations.record(duration);
        self.outcomes[end as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of executions by outcome.
    pub fn outcomes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self
            .outcomes
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        let ends = ExecutionEnd::VARIANTS.iter().map(ExecutionEnd::into_str);
        ends.zip(counts)
    }
}

#[cfg(test)]
mod tests;
