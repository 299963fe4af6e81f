//! Calls that wait until a user has connected accounts.
//!
//! Problem: a call that waits holds its request, and reads the accounts of its user whenever an
//! account of any project changes. Many waiting calls would keep the other calls of their project out.
//!
//! Guarantee: a project waits in a few calls at most, and a call reads the accounts a few times in a
//! second at most.

use std::collections::HashMap;

use parking_lot::Mutex;

use super::errors;
use crate::{Result, core::ids::ProjectId};

/// Maximum number of calls of one project that wait for connections on one server.
pub const MAX_WAITS_PER_PROJECT: usize = 10;

/// The numbers of waiting calls, by project.
#[derive(Debug, Default)]
pub(crate) struct ConnectionWaits(Mutex<HashMap<ProjectId, usize>>);

/// A waiting call. Dropping it ends its wait.
#[derive(Debug)]
pub(super) struct Wait<'a> {
    waits: &'a ConnectionWaits,
    project: ProjectId,
}

impl ConnectionWaits {
    /// Counts a call that begins to wait.
    ///
    /// # Errors
    /// Fails if the project waits in [`MAX_WAITS_PER_PROJECT`] calls already.
    pub(super) fn begin(&self, project: &ProjectId) -> Result<Wait<'_>> {
        let mut waiting = self.0.lock();
        let count = waiting.entry(project.clone()).or_default();
        if *count >= MAX_WAITS_PER_PROJECT {
            return Err(errors::too_many_waits(MAX_WAITS_PER_PROJECT));
        }
        *count += 1;
        Ok(Wait {
            waits: self,
            project: project.clone(),
        })
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut waiting = self.waits.0.lock();
        if let Some(count) = waiting.get_mut(&self.project) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(&self.project);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_of_a_project_are_limited() {
        let waits = ConnectionWaits::default();
        let (one, other) = (ProjectId::random(), ProjectId::random());
        let mut held: Vec<_> = (0..MAX_WAITS_PER_PROJECT)
            .map(|_| waits.begin(&one).unwrap())
            .collect();
        let refused = waits.begin(&one).unwrap_err();
        assert!(refused.is(&errors::TOO_MANY_WAITS), "{refused}");
        waits.begin(&other).unwrap();
        held.pop();
        held.push(waits.begin(&one).unwrap());
        drop(held);
        assert!(waits.0.lock().is_empty());
    }
}
