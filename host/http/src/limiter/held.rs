//! Permits that a request holds while it is answered.

use std::sync::OnceLock;

use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

use super::{Caller, CallerPermit, PagePermit};

/// Permits of one request, released when it is answered.
#[derive(Default)]
pub struct Permits {
    pub(crate) server: Mutex<Option<OwnedSemaphorePermit>>,
    pub(crate) project: Mutex<Option<CallerPermit>>,
    pub(crate) page: Mutex<Option<PagePermit>>,
    /// Caller whose permit the request needs.
    pub(crate) caller: OnceLock<Caller>,
}

impl Permits {
    /// Returns true if the request was sent to a project without a key.
    pub(crate) fn is_of_stranger(&self) -> bool {
        let caller = self.caller.get();
        caller.is_some_and(|caller| caller.stranger.is_some())
    }

    /// Moves the permit into a new value.
    pub(crate) fn take(&self) -> Self {
        Self {
            server: Mutex::new(self.server.lock().take()),
            project: Mutex::new(self.project.lock().take()),
            page: Mutex::new(self.page.lock().take()),
            caller: self.caller.clone(),
        }
    }
}
