//! Concurrency permits that the request being answered holds: one of the node, and one of its
//! project once its key is authenticated.
//!
//! A request that waits for its client holds none: it releases its permits, waits, and acquires
//! them again. A stream of announcements releases them for good, and has a permit of its own.

use std::{
    cell::{Cell, OnceCell},
    sync::Arc,
};

use app::Error;
use tokio::sync::OwnedSemaphorePermit;

use crate::http::{context::CURRENT_REQUEST, limiter::RequestLimiter};

/// Permits of one request, released when it is answered.
#[derive(Default)]
pub(crate) struct Permits {
    node: Cell<Option<OwnedSemaphorePermit>>,
    project: Cell<Option<OwnedSemaphorePermit>>,
    /// Project whose permit the request needs.
    tenant: OnceCell<Arc<str>>,
}

impl Permits {
    /// Moves the permits into a new value.
    pub(crate) fn take(&self) -> Self {
        Self {
            node: Cell::new(self.node.take()),
            project: Cell::new(self.project.take()),
            tenant: self.tenant.clone(),
        }
    }
}

/// Acquires the permits of the request being answered. The project's permit comes first, so that a
/// project at its limit waits without occupying a permit of the node.
///
/// # Errors
/// Returns an error if no permit becomes free in time.
pub(crate) async fn enter(limiter: &RequestLimiter) -> Result<(), Error> {
    let tenant = CURRENT_REQUEST.with(|context| context.permits.tenant.get().cloned());
    if let Some(tenant) = tenant {
        let project = limiter.enter_project(&tenant).await?;
        CURRENT_REQUEST.with(|context| context.permits.project.set(Some(project)));
    }
    let node = limiter.enter().await?;
    CURRENT_REQUEST.with(|context| context.permits.node.set(Some(node)));
    Ok(())
}

/// Acquires a permit of a project too, unless the request has one already.
///
/// # Errors
/// As [`enter`].
pub(crate) async fn enter_project(
    limiter: &RequestLimiter,
    tenant: &Arc<str>,
) -> Result<(), Error> {
    // The first call determines the project; later calls are for the same one.
    if CURRENT_REQUEST.with(|context| context.permits.tenant.set(tenant.clone()).is_err()) {
        return Ok(());
    }
    match limiter.try_enter_project(tenant) {
        Some(place) => {
            CURRENT_REQUEST.with(|context| context.permits.project.set(Some(place)));
            Ok(())
        }
        None => {
            leave();
            Box::pin(enter(limiter)).await
        }
    }
}

/// Releases the permits of a request that waits for its client, or opens a stream of announcements.
pub(crate) fn leave() {
    drop(
        CURRENT_REQUEST
            .with(|context| (context.permits.node.take(), context.permits.project.take())),
    );
}
