//! Guest of imported toolkits, compiled once per machine.
//!
//! Its source is three lines on top of the SDK and is part of this command. It is kept in the
//! user's cache. Cargo decides whether it must be compiled again, so that a changed SDK is always
//! noticed.

use std::{fs, path::Path};

use anyhow::{Context, Result};

use crate::{
    host, new,
    toolchain::Mode,
    workspace::{Module, Workspace},
};

const CARGO_TOML: &str = include_str!("../../interpreter/Cargo.toml.template");
const CARGO_LOCK: &str = include_str!("../../interpreter/Cargo.lock");
const LIB_RS: &str = include_str!("../../interpreter/lib.rs.template");

/// Compiles the guest, unless it is already compiled.
pub(crate) fn compiled(mode: Mode) -> Result<Module> {
    let folder = host::cache()?.join(concat!("interpreter-", env!("CARGO_PKG_VERSION")));
    let source = folder.join("src");
    fs::create_dir_all(&source)
        .with_context(|| format!("cannot make the folder {}", source.display()))?;
    write(
        &folder.join("Cargo.toml"),
        &CARGO_TOML.replace("{{sdk}}", &new::dependency(None)?),
    )?;
    write(&source.join("lib.rs"), LIB_RS)?;
    // Cargo starts from the tested versions of the lock file and adds those that another SDK may
    // need.
    if !folder.join("Cargo.lock").is_file() {
        write(&folder.join("Cargo.lock"), CARGO_LOCK)?;
    }
    let workspace = Workspace::read(mode, &folder)?;
    let modules = workspace.compile(mode, &workspace.all()?)?;
    modules
        .into_iter()
        .next()
        .context("cargo made no module of the interpreter")
}

/// Writes a file if its content differs. An unchanged file causes no compilation.
fn write(file: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(file).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}
