//! The data directory, which only its owner can access.

use std::{
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

use anyhow::Context;

use super::Stop;

/// Folder of the compiled components in the data directory.
pub(super) const COMPILED_FOLDER: &str = "compiled";

/// Returns the folder of the store in the data directory.
pub(crate) fn store_folder(data: &Path) -> PathBuf {
    data.join("store")
}

/// Creates a folder that only its owner can access. An existing folder must be private already.
pub(super) fn make_private(folder: &Path) -> Result<(), Stop> {
    let created = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder);
    created
        .with_context(|| format!("cannot create the data directory {}", folder.display()))
        .map_err(Stop::from)?;
    check_private(folder)
}

/// Refuses a data directory that other users can read or write, just as a readable key file is
/// refused.
///
/// # Errors
/// Exit code 78 if other users have access.
pub(crate) fn check_private(folder: &Path) -> Result<(), Stop> {
    let shown = folder.display();
    let found = std::fs::metadata(folder)
        .with_context(|| format!("cannot read the permissions of the data directory {shown}"))?;
    if found.mode() & 0o077 == 0 {
        return Ok(());
    }
    // A folder that no server has written may belong to other programs, which a change of its mode
    // would lock out.
    let is_ours = [store_folder(folder), folder.join(COMPILED_FOLDER)]
        .iter()
        .any(|path| path.exists());
    let remedy = match is_ours {
        true => "run `chmod 700` on it",
        false => "set `data` to a new folder inside it, which the server creates",
    };
    Err(Stop::refused(format_args!(
        "other users have access to the data directory {shown}: {remedy}"
    )))
}
