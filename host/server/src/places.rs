//! Places that the request being answered holds among the requests in flight: one of the node, and one of its project once its
//! key was judged.
//!
//! A request that waits for its client holds none: it leaves them, waits, and enters again.

use std::{
    cell::{Cell, OnceCell},
    sync::Arc,
};

use app::Error;
use tokio::sync::OwnedSemaphorePermit;

use crate::{admission::Admission, respond::EXCHANGE};

/// Places of one request, given back when it is answered.
#[derive(Default)]
pub(crate) struct Places {
    node: Cell<Option<OwnedSemaphorePermit>>,
    project: Cell<Option<OwnedSemaphorePermit>>,
    /// Project of which a place is to be held.
    tenant: OnceCell<Arc<str>>,
}

impl Places {
    /// Moves the places elsewhere.
    pub(crate) fn take(&self) -> Self {
        Self { node: Cell::new(self.node.take()), project: Cell::new(self.project.take()), tenant: self.tenant.clone() }
    }
}

/// Takes the places of the request being answered. The project's comes first, so that a project at its limit waits without one of
/// the node's.
///
/// # Errors
/// [`Error::ProjectBusy`] or [`Error::NodeBusy`] when none becomes free in time.
pub(crate) async fn enter(admission: &Admission) -> Result<(), Error> {
    let tenant = EXCHANGE.with(|exchange| exchange.places.tenant.get().cloned());
    if let Some(tenant) = tenant {
        let project = admission.enter_project(&tenant).await?;
        EXCHANGE.with(|exchange| exchange.places.project.set(Some(project)));
    }
    let node = admission.enter().await?;
    EXCHANGE.with(|exchange| exchange.places.node.set(Some(node)));
    Ok(())
}

/// Takes a place of a project as well, unless the request has one already.
///
/// # Errors
/// As [`enter`].
pub(crate) async fn enter_project(admission: &Admission, tenant: &Arc<str>) -> Result<(), Error> {
    // The first call says which project it is; later ones mean the same.
    if EXCHANGE.with(|exchange| exchange.places.tenant.set(tenant.clone()).is_err()) {
        return Ok(());
    }
    match admission.try_enter_project(tenant) {
        Some(place) => {
            EXCHANGE.with(|exchange| exchange.places.project.set(Some(place)));
            Ok(())
        }
        None => {
            leave();
            enter(admission).await
        }
    }
}

/// Gives the places back, to wait for the client.
pub(crate) fn leave() {
    drop(EXCHANGE.with(|exchange| (exchange.places.node.take(), exchange.places.project.take())));
}
