//! Installation of components that this server has not compiled yet.
//!
//! Problem: compiling a component takes seconds, longer than some callers wait, for example the provider
//! that sends a webhook. If a compilation ended with its caller, the next caller would have to start it again, and no
//! caller would ever be served.
//!
//! Guarantee: a compilation continues without its caller, and all that need the component wait for
//! the same one.

use std::{collections::HashMap, sync::Arc};

use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use parking_lot::Mutex;
use sandbox::{Digest, InstallError, Sandbox};
use store::Store;

use crate::{catalog, core::tasks::Tasks};

type Installed = Result<(), InstallError>;
type UnderWay = Arc<Mutex<HashMap<Digest, Shared<BoxFuture<'static, Installed>>>>>;

/// The installations under way.
#[derive(Default)]
pub(crate) struct Installations {
    by_component: UnderWay,
    /// Their tasks. A server that stops aborts them.
    tasks: Tasks,
}

/// Removes an installation from those under way when it ends, even with a panic.
struct Ending(UnderWay, Digest);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.lock().remove(&self.1);
    }
}

impl Installations {
    /// Installs a component from the store, unless another call is installing it, and waits until
    /// it is installed. Fails if the store does not have the component, or for the reasons of
    /// [`Sandbox::install`].
    pub(super) async fn install(
        &self,
        store: &Store,
        sandbox: &Sandbox,
        component: Digest,
    ) -> Installed {
        let installing = {
            let mut under_way = self.by_component.lock();
            let entry = under_way.entry(component).or_insert_with(|| {
                let work = install(store.clone(), sandbox.clone(), component);
                self.start(Ending(self.by_component.clone(), component), work)
            });
            entry.clone()
        };
        installing.await
    }

    fn start(
        &self,
        ending: Ending,
        work: impl Future<Output = Installed> + Send + 'static,
    ) -> Shared<BoxFuture<'static, Installed>> {
        let output = self.tasks.start(async move {
            let _ending = ending;
            work.await
        });
        let ended = async move {
            output.await.unwrap_or_else(|_| {
                Err(InstallError::Unavailable(
                    "the installation panicked".to_owned(),
                ))
            })
        };
        ended.boxed().shared()
    }
}

async fn install(store: Store, sandbox: Sandbox, component: Digest) -> Installed {
    let read = store.blobs().get(&catalog::blob(component)).await;
    let stored = read.map_err(|cause| InstallError::Unavailable(cause.to_string()))?;
    let bytes = stored.ok_or_else(|| {
        tracing::error!(%component, "a component is missing: servers that share a database must also share a bucket");
        InstallError::Unavailable(
            "the blob storage of this server does not have the toolkit's component".to_owned(),
        )
    })?;
    sandbox.install(bytes).await.map(drop)
}
