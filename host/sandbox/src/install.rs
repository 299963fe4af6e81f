//! Bytes of a component become a component that can be called.

use std::sync::Arc;

use bytes::Bytes;
use manifest::Manifest;

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
    /// Every problem of the component.
    #[error("the component was refused: {}", .0.join("; "))]
    Refused(Vec<String>),
    /// Larger than 16 MiB.
    #[error("the component is larger than 16 MiB")]
    TooLarge,
    /// Compiling it takes more time or memory than allowed.
    #[error("{0}")]
    CompileLimit(String),
    /// Something is missing on this node.
    #[error("{0}")]
    Unavailable(String),
}

/// Checks a component, compiles it unless that was done before, and keeps the compiled form.
pub(crate) async fn install(
    wasm: Bytes,
    compiler: &Compiler,
    runtime: &Arc<Runtime>,
    cache: &Arc<Cache>,
) -> Result<Installed, InstallError> {
    if wasm.len() > COMPONENT_BYTES {
        return Err(InstallError::TooLarge);
    }
    let bytes = wasm.clone();
    let (digest, checked) = blocking(move || (Digest::of(&bytes), check::check(&bytes))).await?;
    let Checked { manifest, imports } = checked.map_err(InstallError::Refused)?;
    let size = wasm.len() as u64;
    if cache.size(&digest).is_none() {
        let artefact = compile::compile(compiler, &runtime.engine, wasm).await?;
        let (runtime, cache) = (runtime.clone(), cache.clone());
        blocking(move || keep(&digest, &artefact, &runtime, &cache)).await??;
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
        InstallError::Refused(vec![
            "it needs more instances, memories or tables than one component may have".to_owned(),
        ])
    })?;
    let mut problems = Vec::new();
    if let Some(needs) = component.resources_required() {
        let tables = needs.max_initial_table_size.unwrap_or(0);
        if needs.num_memories > MEMORIES || needs.num_tables > TABLES || tables > TABLE_ELEMENTS as u64 {
            problems.push(format!(
                "it needs {} memories and {} tables; at most {MEMORIES} and {TABLES} are possible",
                needs.num_memories, needs.num_tables
            ));
        }
    }
    if let Err(cause) = Toolkit::new(&runtime.linker, &component) {
        problems.push(format!("it does not fit this host: {}", crate::trace::one_line(&format!("{cause:#}"))));
    }
    if problems.is_empty() {
        return Ok(());
    }
    cache.remove(digest).map_err(unavailable)?;
    Err(InstallError::Refused(problems))
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, InstallError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|broken| InstallError::Unavailable(format!("reading the component failed: {broken}")))
}
