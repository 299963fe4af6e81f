//! Progress of runs, for a client that waits for their end.

use std::{collections::HashMap, future::pending};

use tokio::{sync::watch, time::sleep};

use super::{
    WAIT_INTERVAL,
    definition::Step,
    record::{self, CALLS_COLLECTION},
};
use crate::{App, core::ids::RecipeRunId, projects::Project};

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

    /// Reports the steps of a run to the readers. Never returns.
    pub(super) async fn follow(
        &self,
        app: &App,
        project: &Project,
        run: &RecipeRunId,
        steps: &[Step],
    ) {
        if self.0.receiver_count() == 0 {
            return pending().await;
        }
        let signal = app.store.commit_signal(&CALLS_COLLECTION);
        loop {
            // If the store cannot be read, the next report has the state.
            if let Ok(place) = record::newest_place(app, project, run).await {
                self.report(run, index_of(steps, place.as_deref()), steps, place);
            }
            tokio::select! {
                () = signal.committed() => {}
                () = sleep(WAIT_INTERVAL) => {}
            }
        }
    }

    /// Reports that a run has ended.
    pub(super) fn end(&self, run: &RecipeRunId, steps: &[Step]) {
        self.report(run, steps.len(), steps, None);
    }

    fn report(&self, run: &RecipeRunId, done: usize, steps: &[Step], step: Option<String>) {
        let [done, total] =
            [done, steps.len()].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
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

/// Returns the index of the step of the recipe that contains a path.
fn index_of(steps: &[Step], place: Option<&str>) -> usize {
    let name = place.and_then(|place| place.split(['.', '[']).next());
    let index = name.and_then(|name| steps.iter().position(|step| step.name == name));
    index.unwrap_or_default()
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
mod tests;
