//! CPython, compiled to WebAssembly, with its library.
//!
//! The module is a snapshot of an interpreter that has imported most of its library, so that a run
//! does not start it. It is unpacked when it has to be compiled, which is once per node and version.

use std::sync::OnceLock;

use bytes::Bytes;
use sandbox::{Digest, InstallError, Refusal, Sandbox};

/// Maximum size of a script, in bytes.
pub const MAX_CODE_BYTES: usize = 1 << 20;

static PACKED_MODULE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/python.wasm.xz"));
static LIBRARY_ZIP: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/python314.zip"));

/// SHA-256 of the unpacked module. It changes with the version in `interpreter/Cargo.toml`.
const MODULE_DIGEST: &str = "71df1f2cf7b3dbc0ee56b7fc58243f6ae17d9d57cdbb50855598241a7a357600";
/// Path of the library, where the snapshot expects it.
pub(crate) const LIBRARY_PATH: &str = "/usr/local/lib/python314.zip";
/// Exported function that runs a script.
pub(crate) const ENTRY_FUNCTION: &str = "bashkit_run";

/// Returns the digest by which the sandbox knows the module.
pub(crate) fn digest() -> Digest {
    static PARSED_DIGEST: OnceLock<Digest> = OnceLock::new();
    *PARSED_DIGEST.get_or_init(|| MODULE_DIGEST.parse().expect("the constant is a digest"))
}

/// Returns the library.
pub(crate) fn library() -> Bytes {
    Bytes::from_static(LIBRARY_ZIP)
}

/// Compiles the module, unless its compiled form is stored.
pub(crate) async fn install(sandbox: &Sandbox) -> Result<(), Refusal> {
    if sandbox.has_program(&digest()) {
        return Ok(());
    }
    let module = tokio::task::spawn_blocking(unpack)
        .await
        .map_err(|broken| unavailable(broken.to_string()))?
        .map_err(unavailable)?;
    tracing::info!("compiling the Python interpreter, once for this node");
    let installed: Result<Digest, InstallError> = sandbox.install_program(module).await;
    match installed {
        Ok(found) if found == digest() => Ok(()),
        Ok(found) => Err(unavailable(format!("it has the digest {found}"))),
        Err(cause) => Err(unavailable(cause.to_string())),
    }
}

fn unavailable(cause: String) -> Refusal {
    Refusal::Unavailable(format!(
        "the Python interpreter cannot be prepared: {cause}"
    ))
}

fn unpack() -> Result<Bytes, String> {
    let mut module = Vec::new();
    lzma_rs::xz_decompress(&mut &PACKED_MODULE[..], &mut module)
        .map_err(|cause| cause.to_string())?;
    Ok(module.into())
}
