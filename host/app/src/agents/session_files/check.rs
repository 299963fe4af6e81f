//! Checks of the paths, the number and the size of the files of a session.

use std::collections::{BTreeMap, BTreeSet};

use store::{Record, Time};

use super::{Stored, VARIABLES_PATH};
use crate::{Result, agents::errors, core::shown_slug};

/// Id of the only mount of a session.
pub const MOUNT_ID: &str = "files";
/// Maximum number of files of a session.
pub const MAX_FILES: usize = 900;
/// Maximum size of all files of a session together, in bytes.
pub const MAX_TOTAL_BYTES: u64 = 64 << 20;
/// Field of a path in requests to a mount.
pub(super) const MOUNT_PATH_FIELD: &str = "mount_relative_path";
/// Maximum length of a path, in bytes.
pub const MAX_PATH_BYTES: usize = 512;

/// Checks the id of a mount. Fails for every id except [`MOUNT_ID`].
pub fn check_mount(id: &str) -> Result<()> {
    if id == MOUNT_ID {
        return Ok(());
    }
    Err(errors::mount_not_found(shown_slug(id)))
}

/// Checks a path in a field of a request: relative names, separated by single slashes.
pub(super) fn check_path(field: &str, path: &str) -> Result<()> {
    let problem = if path.is_empty() || path.len() > MAX_PATH_BYTES {
        format!("must have 1 to {MAX_PATH_BYTES} bytes")
    } else if path.chars().any(char::is_control) || path.contains('\\') {
        "must not contain control characters or backslashes".to_owned()
    } else if path.split('/').any(|name| matches!(name, "" | "." | "..")) {
        "must be relative, with names between single slashes that are not `.` or `..`".to_owned()
    } else {
        return Ok(());
    };
    Err(errors::session_invalid(format!("{field}: {problem}")))
}

/// Checks the files of a session as they would be after changes.
pub(super) fn check_limits(
    records: &[Record<Stored>],
    sizes: &BTreeMap<String, Option<u64>>,
    now: Time,
) -> Result<()> {
    let kept = records
        .iter()
        .map(|record| &record.body)
        .filter(|file| {
            file.place.is_some() && !file.is_expired(now) && !sizes.contains_key(&file.path)
        })
        .map(|file| (file.path.as_str(), file.size));
    let new = sizes
        .iter()
        .filter_map(|(path, size)| Some((path.as_str(), (*size)?)));
    let after: BTreeMap<&str, u64> = kept
        .chain(new)
        .filter(|(path, _)| *path != VARIABLES_PATH)
        .collect();
    let bytes: u64 = after.values().sum();
    if after.len() > MAX_FILES || bytes > MAX_TOTAL_BYTES {
        return Err(errors::session_files_full(MAX_FILES, MAX_TOTAL_BYTES >> 20));
    }
    let paths: BTreeSet<&str> = after.into_keys().collect();
    for path in &paths {
        let mut parents = path.match_indices('/').map(|(at, _)| &path[..at]);
        if let Some(file) = parents.find(|parent| paths.contains(parent)) {
            return Err(errors::session_invalid(format!(
                "path: `{path}` lies in `{file}`, which is a file"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside_the_folder() {
        for path in ["a", "a b/ü.txt", ".hidden", "a/...", &"x".repeat(512)] {
            assert!(check_path("path", path).is_ok(), "{path}");
        }
        for path in [
            "",
            "/a",
            "a/",
            "a//b",
            ".",
            "..",
            "a/../b",
            "a/./b",
            "a\0",
            "a\nb",
            "a\\b",
            &"x".repeat(513),
        ] {
            let refused = check_path("path", path).unwrap_err();
            assert!(refused.to_string().contains("path: must"), "{path:?}");
        }
    }
}
