//! Target folder of all toolkits that take the SDK from this command.
//!
//! Problem: the SDK and its dependencies take minutes to compile, and are the same for all toolkits
//! of a user. But cargo names a module after its crate alone, so that two crates of one name would
//! get each other's module from a shared folder.
//!
//! Guarantee: one toolkit is compiled at a time. A module that another crate of the same name left
//! is removed, so that cargo makes it again, and each toolkit gets a copy of its module.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{
    compiler,
    foreign::files,
    host,
    toolchain::GUEST_TARGET,
    workspace::{Module, Package},
};

/// File locked while a toolkit is compiled.
const LOCK_FILE: &str = "toolkit.lock";
/// Folder with a file for each module, which names the folder of its crate.
const OWNERS_FOLDER: &str = "owners";

/// The folder, locked.
pub(crate) struct SharedTarget {
    pub(crate) folder: PathBuf,
    /// Unlocked when it is closed.
    _lock: File,
}

impl SharedTarget {
    /// Waits until no other toolkit is compiled in the folder of this name, and removes the modules of other
    /// crates whose names are those of the packages.
    pub(crate) fn lock(folder: &str, packages: &[Package]) -> Result<Self> {
        Self::lock_in(host::cache()?.join("target").join(folder), packages)
    }

    fn lock_in(folder: PathBuf, packages: &[Package]) -> Result<Self> {
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let file = folder.join(LOCK_FILE);
        let lock = File::create(&file)
            .and_then(|lock| lock.lock().map(|()| lock))
            .with_context(|| format!("cannot lock {}", file.display()))?;
        let shared = Self {
            folder,
            _lock: lock,
        };
        packages
            .iter()
            .try_for_each(|package| shared.take_over(package))?;
        Ok(shared)
    }

    fn take_over(&self, package: &Package) -> Result<()> {
        let owner = self.folder.join(OWNERS_FOLDER).join(&package.module);
        let crate_folder = package.folder.to_string_lossy();
        if fs::read_to_string(&owner).is_ok_and(|owner| owner == crate_folder) {
            return Ok(());
        }
        let release = self.folder.join(GUEST_TARGET).join("release");
        let module = release.join(&package.module).with_extension("wasm");
        let original = release.join("deps").join(&package.module);
        let lean = compiler::lean_of(&module);
        for left in [lean, original.with_extension("wasm"), module] {
            if left.exists() {
                fs::remove_file(&left)
                    .with_context(|| format!("cannot remove {}", left.display()))?;
            }
        }
        files::write_file(&owner, &crate_folder)
    }

    /// Copies a module and its lean variant into the target folder of its own workspace.
    pub(crate) fn copy(&self, module: Module, own: &Path) -> Result<Module> {
        let name = Path::new(&module.package.module);
        let copy = own.join(name.with_extension("wasm"));
        copy_file(&module.file, &copy)?;
        if let Some(lean) = compiler::lean(&module.file) {
            copy_file(&lean, &compiler::lean_of(&copy))?;
        }
        Ok(Module {
            file: copy,
            ..module
        })
    }
}

fn copy_file(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    fs::copy(from, to)
        .map(drop)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_of_another_crate_is_removed() {
        let target = tempfile::tempdir().unwrap();
        let release = target.path().join(GUEST_TARGET).join("release");
        let module = release.join("hello.wasm");
        fs::create_dir_all(&release).unwrap();
        let lock = |folder: &str| {
            let package = Package {
                name: "hello".to_owned(),
                id: format!("path+file://{folder}#0.1.0"),
                folder: folder.into(),
                module: "hello".to_owned(),
            };
            drop(SharedTarget::lock_in(target.path().to_owned(), &[package]).unwrap());
        };
        lock("/work/hello");
        fs::write(&module, "first").unwrap();
        lock("/work/hello");
        assert!(module.is_file(), "its own module is fresh");
        lock("/other/hello");
        assert!(!module.exists());
    }
}
