//! Reports of the progress of runs, which is read from the calls of their tools.

use std::future::pending;

use super::{
    WAIT_INTERVAL,
    definition::Step,
    record::{self, CALLS_COLLECTION},
};
use crate::{App, agents::progress::Progress, core::ids::RecipeRunId, projects::Project};

impl Progress {
    /// Reports the steps of a run to the readers. Never returns.
    pub(super) async fn follow(
        &self,
        app: &App,
        project: &Project,
        run: &RecipeRunId,
        steps: &[Step],
    ) {
        if !self.has_readers() {
            return pending().await;
        }
        let signal = app.store.commit_signal(&CALLS_COLLECTION);
        loop {
            // If the store cannot be read, the next report has the state.
            if let Ok(place) = record::newest_place(app, project, run).await {
                let done = index_of(steps, place.as_deref());
                self.report(run, done, steps.len(), place);
            }
            signal.committed_within(WAIT_INTERVAL).await;
        }
    }

    /// Reports that a run has ended.
    pub(super) fn end(&self, run: &RecipeRunId, steps: &[Step]) {
        self.report(run, steps.len(), steps.len(), None);
    }
}

/// Returns the index of the step of the recipe that contains a path.
fn index_of(steps: &[Step], place: Option<&str>) -> usize {
    let name = place.and_then(|place| place.split(['.', '[']).next());
    let index = name.and_then(|name| steps.iter().position(|step| step.name == name));
    index.unwrap_or_default()
}

#[cfg(test)]
mod tests;
