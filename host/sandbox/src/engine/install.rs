//! Turns the bytes of a component into an installed component.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use manifest::Manifest;
use tokio::sync::Semaphore;
use wasmtime::component::Component;

use super::{
    Runtime,
    cache::Cache,
    check::{self, Checked},
    compile,
    error::InstallError,
};
use crate::{
    Compiler, Digest,
    limits::{ChildLimits, MAX_COMPONENT_BYTES, MAX_MEMORIES, MAX_TABLE_ELEMENTS, MAX_TABLES},
    toolkit::abi::v1::Toolkit,
};

/// Component that can be called.
#[derive(Debug, Clone)]
pub struct Installed {
    /// Digest for [`crate::Call::component`].
    pub digest: Digest,
    /// Validated manifest of the component.
    pub manifest: Manifest,
    /// Size of the component, in bytes.
    pub size: u64,
    /// Size of the compiled form, in bytes.
    pub artifact_size: u64,
    /// Imports of the component in order, for example `toolhost:toolkit/http@1.0.0`.
    pub imports: Vec<String>,
}

/// Checks a component, compiles it if it is not compiled yet, and stores the compiled form.
pub(crate) async fn install(
    wasm: Bytes,
    compiler: &Compiler,
    compiling: &Semaphore,
    runtime: &Arc<Runtime>,
    cache: &Arc<Cache>,
) -> Result<Installed, InstallError> {
    if wasm.len() > MAX_COMPONENT_BYTES {
        return Err(InstallError::TooLarge);
    }
    let bytes = wasm.clone();
    let (digest, checked) =
        blocking(move || (Digest::compute(&bytes), check::check(&bytes))).await?;
    let Checked { manifest, imports } = checked?;
    let size = wasm.len() as u64;
    if cache.size(&digest).is_none() {
        let _permit = compiling.acquire().await;
        // Another installation may have compiled it while this one waited for its permit.
        if cache.size(&digest).is_none() {
            let artifact = compile::compile(compiler, wasm).await?;
            let runtime = runtime.clone();
            let cache = cache.clone();
            blocking(move || store_artifact(&digest, &artifact, &runtime, &cache)).await??;
        }
    }
    let artifact_size = cache.size(&digest).unwrap_or_default();
    Ok(Installed {
        digest,
        manifest,
        size,
        artifact_size,
        imports,
    })
}

/// Limits for compiling a program of the host, which is larger than a component of a toolkit.
const PROGRAM_COMPILE_LIMITS: ChildLimits = ChildLimits {
    cpu_seconds: 600,
    wall: Duration::from_secs(900),
    memory: 2 << 30,
};

/// Compiles a program of the host if it is not compiled yet, and stores the compiled form.
pub(crate) async fn install_program(
    wasm: Bytes,
    compiler: &Compiler,
    compiling: &Semaphore,
    cache: &Arc<Cache>,
) -> Result<Digest, InstallError> {
    if wasm.len() > MAX_COMPONENT_BYTES {
        return Err(InstallError::TooLarge);
    }
    let bytes = wasm.clone();
    let digest = blocking(move || Digest::compute(&bytes)).await?;
    if cache.size(&digest).is_some() {
        return Ok(digest);
    }
    let _permit = compiling.acquire().await;
    // Another installation may have compiled it while this one waited for its permit.
    if cache.size(&digest).is_none() {
        let compiler = compiler.with_limits(PROGRAM_COMPILE_LIMITS);
        let artifact = compile::compile(&compiler, wasm).await?;
        let cache = cache.clone();
        let stored = blocking(move || cache.put(&digest, &artifact)).await?;
        stored.map_err(|cause| {
            InstallError::Unavailable(format!("the compiled form cannot be stored: {cause}"))
        })?;
    }
    Ok(digest)
}

/// Stores a compiled form and loads it once to check that it fits this host.
fn store_artifact(
    digest: &Digest,
    artifact: &[u8],
    runtime: &Runtime,
    cache: &Cache,
) -> Result<(), InstallError> {
    let loaded = cache
        .put(digest, artifact)
        .and_then(|()| cache.load(&runtime.engine, digest))
        .map_err(|cause| {
            InstallError::Unavailable(format!("the compiled form cannot be stored: {cause}"))
        })?;
    let component = loaded.ok_or_else(|| {
        InstallError::PastLimit(vec![
            "it needs more instances, memories or tables than one component may have".to_owned(),
        ])
    })?;
    check_fits(&component, runtime).inspect_err(|_| {
        if let Err(cause) = cache.remove(digest) {
            tracing::warn!(%digest, %cause, "the compiled form of a refused component could not be removed");
        }
    })
}

/// Checks that the host provides what a component needs.
fn check_fits(component: &Component, runtime: &Runtime) -> Result<(), InstallError> {
    if let Some(needs) = component.resources_required() {
        let tables = needs.max_initial_table_size.unwrap_or(0);
        if needs.num_memories > MAX_MEMORIES
            || needs.num_tables > MAX_TABLES
            || tables > MAX_TABLE_ELEMENTS as u64
        {
            return Err(InstallError::PastLimit(vec![format!(
                "it needs {} memories and {} tables; at most {MAX_MEMORIES} and {MAX_TABLES} are possible",
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

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, InstallError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|broken| {
        InstallError::Unavailable(format!("reading the component failed: {broken}"))
    })
}
