//! Permits that a request holds while it is answered.

use std::sync::OnceLock;

use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

use super::{Caller, CallerPermit, PagePermit, RequestLimiter};

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

    /// Exchanges the permit of the server for one of a project, if one is free. Returns false if the request
    /// has to wait for it.
    pub(crate) fn exchange(&self, limiter: &RequestLimiter, caller: Caller) -> bool {
        // The first call determines the project; later calls are for the same one.
        if self.caller.set(caller).is_err() {
            return true;
        }
        self.release();
        let caller = self.caller.get();
        let permit = caller.and_then(|caller| limiter.try_acquire_for_project(caller));
        let is_held = permit.is_some();
        *self.project.lock() = permit;
        is_held
    }

    /// Releases the concurrency permit.
    pub(crate) fn release(&self) {
        let released = (self.server.lock().take(), self.project.lock().take());
        drop(released);
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
