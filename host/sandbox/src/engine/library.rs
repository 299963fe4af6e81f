//! Loaded components.
//!
//! A component is mapped from the cache on its first call and then kept with resolved imports, so
//! that a call only has to look it up. What is kept has a budget in bytes. If it is exceeded, the
//! components that are called least are dropped, and the operating system reclaims their pages. One
//! round over more components than fit does not drop those that are called all the time.

use std::sync::Arc;

use quick_cache::{
    DefaultHashBuilder, OptionsBuilder, Weighter,
    sync::{Cache as Kept, DefaultLifecycle},
};
use rustix::process::{Resource, getrlimit};

use super::{Runtime, cache::Cache, compile::MAX_ARTIFACT_BYTES};
use crate::{Digest, OpenError, Refusal, toolkit::abi::v1::Toolkit};

/// Size that a loaded component has at least in the budget, in bytes: it also takes a file
/// descriptor, several mappings, and memory for its types.
pub(crate) const MIN_LOADED_BYTES: u64 = 256 << 10;
/// Maximum number of loaded components. Each takes about four of the mappings that a process may
/// have, usually 65,530.
const MAX_LOADED: u64 = 8_192;
/// Part of the process's file descriptors that loaded components may take, as a divisor.
const OPEN_FILES_DIVISOR: u64 = 4;

/// Loaded components by digest.
pub(crate) struct Library {
    runtime: Arc<Runtime>,
    cache: Arc<Cache>,
    loaded: Kept<Digest, Arc<Loaded>, SizeInBudget>,
}

/// Component in memory.
pub(crate) struct Loaded {
    pub(crate) toolkit: Toolkit,
    /// Size of its machine code, in bytes.
    size: u64,
}

#[derive(Clone)]
struct SizeInBudget {
    least: u64,
}

impl Weighter<Digest, Arc<Loaded>> for SizeInBudget {
    fn weight(&self, _: &Digest, loaded: &Arc<Loaded>) -> u64 {
        loaded.size.max(self.least)
    }
}

impl Library {
    /// Creates a library that keeps components of `budget` bytes together.
    pub(crate) fn new(
        runtime: Arc<Runtime>,
        cache: Arc<Cache>,
        budget: u64,
    ) -> Result<Self, OpenError> {
        let open_files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let most = (open_files / OPEN_FILES_DIVISOR).clamp(1, MAX_LOADED);
        let least = MIN_LOADED_BYTES.max(budget / most);
        let options = OptionsBuilder::new()
            // Each shard can hold the largest component.
            .shards(at_least_one(budget / MAX_ARTIFACT_BYTES))
            .estimated_items_capacity(at_least_one(budget / least))
            .weight_capacity(budget)
            .build()
            .map_err(|cause| OpenError(format!("no components can be kept loaded: {cause}")))?;
        let loaded = Kept::with_options(
            options,
            SizeInBudget { least },
            DefaultHashBuilder::default(),
            DefaultLifecycle::default(),
        );
        Ok(Self {
            runtime,
            cache,
            loaded,
        })
    }

    /// Returns the number of loaded components.
    pub(crate) fn len(&self) -> usize {
        self.loaded.len()
    }

    /// Returns a component from memory or from the cache. One component is never loaded twice at
    /// the same time.
    pub(crate) async fn get(self: &Arc<Self>, digest: &Digest) -> Result<Arc<Loaded>, Refusal> {
        let loading = async {
            let library = self.clone();
            let wanted = *digest;
            let loaded = tokio::task::spawn_blocking(move || library.load(&wanted)).await;
            loaded.unwrap_or_else(|broken| {
                Err(Refusal::Unavailable(format!(
                    "loading a toolkit failed: {broken}"
                )))
            })
        };
        self.loaded.get_or_insert_async(digest, loading).await
    }

    /// Maps a component and resolves its imports. Blocks on disk access.
    fn load(&self, digest: &Digest) -> Result<Arc<Loaded>, Refusal> {
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
        Ok(Arc::new(Loaded {
            toolkit,
            size: self.cache.size(digest).unwrap_or_default(),
        }))
    }
}

fn at_least_one(count: u64) -> usize {
    usize::try_from(count).unwrap_or(1).max(1)
}
