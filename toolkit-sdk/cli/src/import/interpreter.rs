//! Guest of imported toolkits, embedded in this command as a compiled module.
//!
//! Problem: an import contains no code, so its author should not need a compiler.
//!
//! Guarantee: the module is stored next to its sources in the repository, together with a digest of
//! them and of the SDK's. A test compares the digest, and the hidden command `toolkit interpreter`
//! compiles the module again.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use crate::{
    compiler,
    foreign::files,
    sdk,
    toolchain::{self, Mode, Profile},
    workspace::Workspace,
};

/// The guest without its own description.
pub(crate) const INTERPRETER_MODULE: &[u8] = include_bytes!("../../interpreter/interpreter.wasm");

const MODULE_FILE: &str = "interpreter.wasm";
/// File with the digest of the sources that the module was compiled from.
const DIGEST_FILE: &str = "interpreter.sources";

const CARGO_TOML: &str = include_str!("../../interpreter/Cargo.toml.template");
const LIB_RS: &str = include_str!("../../interpreter/lib.rs.template");

/// Compile the guest of imported toolkits.
#[derive(Debug, Args)]
pub(crate) struct Interpreter {
    /// Folder of its sources in the repository, which gets the module.
    folder: PathBuf,
    /// Toolchain to compile with [default: the first that works here].
    #[arg(long, value_enum, env = "TOOLKIT_TOOLCHAIN")]
    toolchain: Option<Mode>,
}

/// Runs the command.
pub(crate) fn run(options: &Interpreter) -> Result<()> {
    let folder = tempfile::tempdir().context("cannot make a folder for temporary files")?;
    files::write(folder.path(), &sources())?;
    let mode = toolchain::find(options.toolchain)?;
    let workspace = Workspace::read(mode, folder.path())?;
    let modules = workspace.compile(mode, Profile::Published, &workspace.all()?)?;
    let module = modules.first().context("cargo made no module")?;
    let lean = compiler::lean(&module.file).context("the linker made no lean module")?;
    let file = options.folder.join(MODULE_FILE);
    let bytes = fs::read(&lean).with_context(|| format!("cannot read {}", lean.display()))?;
    fs::write(&file, bytes).with_context(|| format!("cannot write {}", file.display()))?;
    files::write_file(&options.folder.join(DIGEST_FILE), &(digest() + "\n"))?;
    println!("compiled {}", file.display());
    Ok(())
}

/// Returns the files of the crate.
fn sources() -> [files::File; 3] {
    [
        ("Cargo.lock", sdk::LOCK_FILE),
        ("Cargo.toml", CARGO_TOML),
        ("src/lib.rs", LIB_RS),
    ]
}

/// Returns a digest of the crate and of the SDK.
fn digest() -> String {
    let sources = sources();
    let files = sources.iter().chain(sdk::LIBRARY_FILES);
    files::digest_of(files.map(|(path, text)| (*path, text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_is_compiled_from_the_current_sources() {
        let recorded = include_str!("../../interpreter/interpreter.sources");
        assert_eq!(
            recorded.trim_end(),
            digest(),
            "the SDK has changed: run `make interpreter`"
        );
    }
}
