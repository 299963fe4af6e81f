//! The guest of imported toolkits, compiled once on this machine.
//!
//! Its source is three lines on top of the SDK and travels in this command. It lies in the user's cache; cargo decides whether
//! it has to be compiled again, so that a change of the SDK is never missed.

use std::{fs, path::Path};

use anyhow::{Context, Result};

use crate::{
    host, new,
    toolchain::Mode,
    workspace::{Module, Workspace},
};

const CARGO: &str = include_str!("../../interpreter/Cargo.toml.template");
const LOCK: &str = include_str!("../../interpreter/Cargo.lock");
const SOURCE: &str = include_str!("../../interpreter/lib.rs.template");

/// Compiles the guest unless that was done before.
pub(crate) fn compiled(mode: Mode) -> Result<Module> {
    let folder = host::cache()?.join(concat!("interpreter-", env!("CARGO_PKG_VERSION")));
    let source = folder.join("src");
    fs::create_dir_all(&source).with_context(|| format!("cannot make the folder {}", source.display()))?;
    write(&folder.join("Cargo.toml"), &CARGO.replace("{{sdk}}", &new::dependency(None)?))?;
    write(&source.join("lib.rs"), SOURCE)?;
    // cargo goes on with the versions that are known to work, and adds what another SDK may need.
    if !folder.join("Cargo.lock").is_file() {
        write(&folder.join("Cargo.lock"), LOCK)?;
    }
    let workspace = Workspace::read(mode, &folder)?;
    let modules = workspace.compile(mode, &workspace.all()?)?;
    modules.into_iter().next().context("cargo made no module of the interpreter")
}

/// Writes a file that says something else. One that is left alone is not compiled again.
fn write(file: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(file).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}
