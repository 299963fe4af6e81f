//! Bytes of a component become a component that can be called.

use std::sync::Arc;

use bytes::Bytes;
use manifest::Manifest;
use tokio::sync::Semaphore;
use wasmtime::component::Component;

use crate::{
    Compiler, Digest,
    abi::v1::Toolkit,
    cache::Cache,
    check::{self, COMPONENT_BYTES, Checked},
    compile,
    engine::{MEMORIES, Runtime, TABLE_ELEMENTS, TABLES},
};

/// A component that can be called.
#[derive(Debug, Clone)]
pub struct Installed {
    /// Its name for [`crate::Call::component`].
    pub digest: Digest,
    /// What it says about itself; valid.
    pub manifest: Manifest,
    /// Its bytes.
    pub size: u64,
    /// Bytes of its compiled form.
    pub artefact_size: u64,
    /// What it imports, for example `toolhost:toolkit/http@1.0.0`, in order.
    pub imports: Vec<String>,
}

/// Why a component was not installed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstallError {
    /// It is broken, or asks for what does not exist here. Every problem, one line each.
    #[error("the component was refused: {}", .0.join("; "))]
    Refused(Vec<String>),
    /// Larger than 24 MiB.
    #[error("the component is larger than 24 MiB")]
    TooLarge,
    /// Nothing is wrong with it, but it holds more than a component may, or compiling it takes more time or memory than
    /// allowed. One line each.
    #[error("the component is past a limit: {}", .0.join("; "))]
    PastLimit(Vec<String>),
    /// Something is missing on this node.
    #[error("{0}")]
    Unavailable(String),
}

/// Checks a component, compiles it unless that was done before, and keeps the compiled form.
pub(crate) async fn install(
    wasm: Bytes,
    compiler: &Compiler,
    compiling: &Semaphore,
    runtime: &Arc<Runtime>,
    cache: &Arc<Cache>,
) -> Result<Installed, InstallError> {
    if wasm.len() > COMPONENT_BYTES {
        return Err(InstallError::TooLarge);
    }
    let bytes = wasm.clone();
    let (digest, checked) = blocking(move || (Digest::of(&bytes), check::check(&bytes))).await?;
    let Checked { manifest, imports } = checked?;
    let size = wasm.len() as u64;
    if cache.size(&digest).is_none() {
        let _place = compiling.acquire().await;
        // Unless somebody did while this one waited for its place.
        if cache.size(&digest).is_none() {
            let artefact = compile::compile(compiler, &runtime.engine, wasm).await?;
            let (runtime, cache) = (runtime.clone(), cache.clone());
            blocking(move || keep(&digest, &artefact, &runtime, &cache)).await??;
        }
    }
    let artefact_size = cache.size(&digest).unwrap_or_default();
    Ok(Installed { digest, manifest, size, artefact_size, imports })
}

/// Keeps a compiled form and loads it once, to see that it fits this host.
fn keep(digest: &Digest, artefact: &[u8], runtime: &Runtime, cache: &Cache) -> Result<(), InstallError> {
    let unavailable =
        |cause: std::io::Error| InstallError::Unavailable(format!("the compiled form cannot be kept: {cause}"));
    cache.put(digest, artefact).map_err(unavailable)?;
    let loaded = cache.load(&runtime.engine, digest).map_err(unavailable)?;
    let component = loaded.ok_or_else(|| {
        InstallError::PastLimit(vec![
            "it needs more instances, memories or tables than one component may have".to_owned(),
        ])
    })?;
    fits(&component, runtime).inspect_err(|_| {
        if let Err(cause) = cache.remove(digest) {
            tracing::warn!(%digest, %cause, "the compiled form of a refused component could not be removed");
        }
    })
}

/// Whether a component finds what it needs here.
fn fits(component: &Component, runtime: &Runtime) -> Result<(), InstallError> {
    if let Some(needs) = component.resources_required() {
        let tables = needs.max_initial_table_size.unwrap_or(0);
        if needs.num_memories > MEMORIES || needs.num_tables > TABLES || tables > TABLE_ELEMENTS as u64 {
            return Err(InstallError::PastLimit(vec![format!(
                "it needs {} memories and {} tables; at most {MEMORIES} and {TABLES} are possible",
                needs.num_memories, needs.num_tables
            )]));
        }
    }
    match Toolkit::new(&runtime.linker, component) {
        Ok(_) => Ok(()),
        Err(cause) => Err(InstallError::Refused(vec![format!(
            "it does not fit this host: {}",
            crate::trace::one_line(&format!("{cause:#}"))
        )])),
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, InstallError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|broken| InstallError::Unavailable(format!("reading the component failed: {broken}")))
}
