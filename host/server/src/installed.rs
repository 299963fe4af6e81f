//! Files that a release contains in addition to the program: `bin/toolhost`,
//! `share/toolhost/toolkits` and `share/doc/toolhost`.

use std::path::PathBuf;

/// Folder of the components of a release, below its prefix.
const TOOLKITS_FOLDER: &str = "share/toolhost/toolkits";
/// First page of the manual of a release, below its prefix.
const MANUAL_PAGE: &str = "share/doc/toolhost/README.md";

/// Returns the folder of the components that were installed with this program, if it exists.
pub(crate) fn toolkits() -> Option<PathBuf> {
    below_prefix(TOOLKITS_FOLDER)
}

/// Returns the first page of the manual that was installed with this program, if it exists.
pub(crate) fn manual() -> Option<PathBuf> {
    below_prefix(MANUAL_PAGE)
}

/// Returns a path below the prefix of this program, if it exists. A link to the program leads to
/// the files next to the program itself.
fn below_prefix(path: &str) -> Option<PathBuf> {
    let program = std::env::current_exe().and_then(std::fs::canonicalize);
    let program = program.ok()?;
    let prefix = program.parent()?.parent()?;
    Some(prefix.join(path)).filter(|path| path.exists())
}
