//! Progress of the recipes that a call executes, for a client that waits for their end.

use std::{collections::HashMap, future::pending};

use tokio::sync::watch;

use crate::core::ids::RecipeRunId;

/// Progress of the recipes that a call executes. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Progress(watch::Sender<Runs>);

/// A reader of a [`Progress`].
#[derive(Debug)]
pub struct ProgressReader(watch::Receiver<Runs>);

#[derive(Debug, Default)]
struct Runs {
    positions: HashMap<RecipeRunId, Position>,
    /// Path of the newest call of a tool in any run.
    step: Option<String>,
}

/// A position in the steps of recipes. A group or a loop is one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Number of steps that have ended.
    pub done: u32,
    /// Number of all steps.
    pub total: u32,
    /// Path of the newest call of a tool, such as `send[2]`.
    pub step: Option<String>,
}

impl Progress {
    /// Returns a reader. Runs that started before report nothing to it.
    #[must_use]
    pub fn reader(&self) -> ProgressReader {
        ProgressReader(self.0.subscribe())
    }

    /// Returns true if somebody reads the reports.
    pub(super) fn has_readers(&self) -> bool {
        self.0.receiver_count() > 0
    }

    /// Reports the position of a run: the number of its steps that have ended, that of all, and the path of the
    /// newest call of a tool.
    pub(super) fn report(
        &self,
        run: &RecipeRunId,
        done: usize,
        total: usize,
        step: Option<String>,
    ) {
        let [done, total] = [done, total].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        self.0.send_if_modified(|runs| {
            let before = runs.positions.get(run);
            // The record of a call that could not start is erased, and the call is retried.
            let done = before.map_or(done, |before| before.done.max(done));
            let position = Position { done, total, step };
            if before == Some(&position) {
                return false;
            }
            runs.step.clone_from(&position.step);
            runs.positions.insert(run.clone(), position);
            true
        });
    }
}

impl ProgressReader {
    /// Waits until the position has changed.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            // Without a sender there is nothing to wait for.
            pending().await
        }
    }

    /// Returns the position in the steps of all recipes together, or `None` before the first one.
    pub fn position(&mut self) -> Option<Position> {
        let runs = self.0.borrow_and_update();
        let positions = runs.positions.values().cloned();
        positions.reduce(|sum, position| Position {
            done: sum.done.saturating_add(position.done),
            total: sum.total.saturating_add(position.total),
            step: runs.step.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_runs_add_up_and_never_go_back() {
        let progress = Progress::default();
        let mut reader = progress.reader();
        assert_eq!(reader.position(), None);
        let [one, other] = [RecipeRunId::random(), RecipeRunId::random()];
        progress.report(&one, 1, 2, Some("b".to_owned()));
        progress.report(&other, 0, 3, Some("a".to_owned()));
        progress.report(&one, 0, 2, None);
        let position = |done, total, step: Option<&str>| {
            let step = step.map(str::to_owned);
            Some(Position { done, total, step })
        };
        assert_eq!(reader.position(), position(1, 5, None));
        progress.report(&one, 2, 2, None);
        progress.report(&other, 2, 3, Some("c".to_owned()));
        assert_eq!(reader.position(), position(4, 5, Some("c")));
    }
}
