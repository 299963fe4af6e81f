//! Loaded components.
//!
//! A component is mapped from the cache on its first call and then kept with resolved imports, so
//! that a call only has to look it up. The least recently used components are dropped, and the
//! operating system reclaims their pages.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use parking_lot::RwLock;
use tokio::sync::Mutex;

use super::{Runtime, cache::Cache};
use crate::{Digest, Refusal, toolkit::abi::v1::Toolkit};

/// Maximum number of simultaneous loads; one component is never loaded twice at the same time.
const LOAD_LOCKS: usize = 8;

/// Loaded components by digest.
pub(crate) struct Library {
    runtime: Arc<Runtime>,
    cache: Arc<Cache>,
    max_loaded: usize,
    loaded: RwLock<HashMap<Digest, Arc<Loaded>>>,
    load_locks: [Mutex<()>; LOAD_LOCKS],
    /// Number of calls so far; orders components by last use.
    calls: AtomicU64,
}

/// Component in memory.
pub(crate) struct Loaded {
    pub(crate) toolkit: Toolkit,
    last_used: AtomicU64,
}

impl Library {
    pub(crate) fn new(runtime: Arc<Runtime>, cache: Arc<Cache>, max_loaded: usize) -> Self {
        Self {
            runtime,
            cache,
            max_loaded: max_loaded.max(1),
            loaded: RwLock::default(),
            load_locks: Default::default(),
            calls: AtomicU64::new(0),
        }
    }

    /// Returns the number of loaded components.
    pub(crate) fn len(&self) -> usize {
        self.loaded.read().len()
    }

    /// Returns a component from memory or from the cache.
    pub(crate) async fn get(self: &Arc<Self>, digest: &Digest) -> Result<Arc<Loaded>, Refusal> {
        if let Some(loaded) = self.find(digest) {
            return Ok(loaded);
        }
        let _load_lock = self.load_locks[usize::from(digest.as_bytes()[0]) % LOAD_LOCKS]
            .lock()
            .await;
        if let Some(loaded) = self.find(digest) {
            return Ok(loaded);
        }
        let library = self.clone();
        let wanted = *digest;
        let loaded = tokio::task::spawn_blocking(move || library.load(&wanted)).await;
        loaded.unwrap_or_else(|broken| {
            Err(Refusal::Unavailable(format!(
                "loading a toolkit failed: {broken}"
            )))
        })
    }

    fn find(&self, digest: &Digest) -> Option<Arc<Loaded>> {
        let loaded = self.loaded.read();
        let found = loaded.get(digest)?;
        found
            .last_used
            .store(self.calls.fetch_add(1, Relaxed), Relaxed);
        Some(found.clone())
    }

    /// Maps a component and resolves its imports. Blocks on disk access.
    pub(crate) fn load(&self, digest: &Digest) -> Result<Arc<Loaded>, Refusal> {
        let component = self
            .cache
            .load(&self.runtime.engine, digest)
            .map_err(|cause| {
                Refusal::Unavailable(format!("the compiled toolkit cannot be read: {cause}"))
            })?
            .ok_or(Refusal::NotInstalled)?;
        let toolkit = Toolkit::new(&self.runtime.linker, &component).map_err(|cause| {
            Refusal::Unavailable(format!("the toolkit does not fit this host: {cause:#}"))
        })?;
        let loaded = Arc::new(Loaded {
            toolkit,
            last_used: AtomicU64::new(self.calls.fetch_add(1, Relaxed)),
        });
        let mut all = self.loaded.write();
        while all.len() >= self.max_loaded {
            let oldest = all
                .iter()
                .min_by_key(|(_, loaded)| loaded.last_used.load(Relaxed))
                .map(|(digest, _)| *digest);
            let Some(oldest) = oldest else { break };
            all.remove(&oldest);
        }
        all.insert(*digest, loaded.clone());
        Ok(loaded)
    }
}
