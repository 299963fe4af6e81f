//! The Rust library of toolkits, whose sources are part of this command.
//!
//! Problem: a toolkit depends on the library in exactly the version that this command builds and
//! runs, and should build in any folder of any machine. A path of a machine in its `Cargo.toml`
//! would be of no use to another author.
//!
//! Guarantee: the `Cargo.toml` of a toolkit names a version. This command unpacks the sources into
//! the user's cache, into a folder named by their digest, and tells cargo to take them for that
//! version. A configuration file of cargo in the toolkit's folder tells other programs the same.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{foreign::files, host};

/// Name of the library, as dependencies name it.
pub(crate) const LIBRARY_NAME: &str = "toolkit-sdk";
/// Version requirement of a toolkit that takes the library from this command.
pub(crate) const LIBRARY_VERSION: &str = env!("CARGO_PKG_VERSION");
/// Sources by their path in the repository.
pub(crate) const LIBRARY_FILES: &[files::File] =
    include!(concat!(env!("OUT_DIR"), "/sdk_sources.rs"));
/// Lock file with tested versions of the dependencies of the library. Toolkits that start with it
/// share the compiled dependencies.
pub(crate) const LOCK_FILE: &str = include_str!("../interpreter/Cargo.lock");

/// Crate of the lock file, and the first line of its dependencies.
const LOCKED_CRATE: &str = "name = \"interpreter\"\nversion = \"0.1.0\"\ndependencies = [\n";
/// Dependencies of a new toolkit in addition to the library.
const NEW_DEPENDENCIES: [&str; 3] = ["schemars", "serde", "serde_json"];

/// Folder of the library among the sources.
const LIBRARY_FOLDER: &str = "toolkit-sdk/sdk";
/// Configuration of cargo next to the unpacked sources.
const CONFIG_FILE: &str = "config.toml";
/// File in which cargo looks for the configuration of a toolkit.
const TOOLKIT_CONFIG_FILE: &str = ".cargo/config.toml";
/// First line of the configuration. A file that does not start with it is the author's.
const CONFIG_MARK: &str =
    "# Written by `toolkit`, which contains the SDK. Keep it out of version control.";

/// Returns the lock file of a new toolkit with this name.
pub(crate) fn lock_file(name: &str) -> String {
    let dependencies = NEW_DEPENDENCIES.map(|dependency| format!(" \"{dependency}\",\n"));
    let locked = LOCKED_CRATE.replace("interpreter", name) + &dependencies.concat();
    LOCK_FILE.replace(LOCKED_CRATE, &locked)
}

/// Unpacks the library, lets cargo find it from the folder of a toolkit, and returns the
/// configuration for cargo.
pub(crate) fn link(toolkit: &Path) -> Result<PathBuf> {
    let config = unpack(&host::cache()?.join("sdk"))?.join(CONFIG_FILE);
    let text =
        fs::read_to_string(&config).with_context(|| format!("cannot read {}", config.display()))?;
    let own = toolkit.join(TOOLKIT_CONFIG_FILE);
    let old = fs::read_to_string(&own);
    let is_ours = old
        .as_ref()
        .map_or(true, |old| old.starts_with(CONFIG_MARK));
    if is_ours && old.ok().as_ref() != Some(&text) {
        files::write_file(&own, &text)?;
    }
    Ok(config)
}

/// Unpacks the sources below a folder, unless they are there, and returns their folder.
fn unpack(below: &Path) -> Result<PathBuf> {
    let digest = files::digest_of(
        LIBRARY_FILES
            .iter()
            .map(|(path, text)| (*path, text.as_bytes())),
    );
    let folder = below.join(format!("{LIBRARY_VERSION}-{}", &digest[..16]));
    if folder.is_dir() {
        return Ok(folder);
    }
    fs::create_dir_all(below)
        .with_context(|| format!("cannot make the folder {}", below.display()))?;
    let fresh = tempfile::tempdir_in(below)
        .with_context(|| format!("cannot make a folder in {}", below.display()))?;
    files::write(fresh.path(), LIBRARY_FILES)?;
    let library = folder.join(LIBRARY_FOLDER);
    // TOML and Rust have the same escapes for all common characters of a path.
    let config = format!(
        "{CONFIG_MARK}\n[patch.crates-io]\n{LIBRARY_NAME} = {{ path = {:?} }}\n",
        library.to_string_lossy()
    );
    files::write_file(&fresh.path().join(CONFIG_FILE), &config)?;
    match fs::rename(fresh.path(), &folder) {
        // Another run of this command may have unpacked the same sources meanwhile.
        Err(_) if folder.is_dir() => {}
        done => done.with_context(|| format!("cannot make {}", folder.display()))?,
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_unpacked_once_and_whole() {
        let cache = tempfile::tempdir().unwrap();
        let folder = unpack(cache.path()).unwrap();
        assert!(folder.join(LIBRARY_FOLDER).join("src/lib.rs").is_file());
        let config = fs::read_to_string(folder.join(CONFIG_FILE)).unwrap();
        assert!(config.contains(folder.to_str().unwrap()), "{config}");
        assert_eq!(unpack(cache.path()).unwrap(), folder);
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 1);
    }

    #[test]
    fn packed_workspace_states_what_its_crates_inherit() {
        let (_, workspace) = LIBRARY_FILES[0];
        for (path, manifest) in LIBRARY_FILES
            .iter()
            .filter(|(path, _)| path.ends_with("/Cargo.toml"))
        {
            let names = manifest
                .lines()
                .filter(|line| line.contains("workspace = true"));
            let names = names.filter_map(|line| line.split(['.', ' ']).next());
            for name in names.filter(|name| !["edition", "workspace"].contains(name)) {
                let stated = workspace
                    .lines()
                    .any(|line| line.starts_with(&format!("{name} = ")));
                assert!(stated, "{name} of {path}");
            }
        }
    }
}
