//! Sources of a toolkit and the detection of changes.
//!
//! The content decides: a file system notification is only a reason to compare. So a file that was
//! merely touched, or that the build wrote, causes no rebuild. A change without a notification is
//! found by the next comparison.

use std::{
    collections::BTreeMap,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::{sync::mpsc, time::timeout};

/// Period without notifications after which a change counts as complete, because editors write in
/// steps.
const QUIET_PERIOD: Duration = Duration::from_millis(50);
/// Maximum number of notifications to wait for, because a program may write without end.
const MAX_NOTIFICATIONS: usize = 20;
/// Interval of comparisons without a notification, for file systems that do not send any.
const SCAN_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum size in bytes of files that are compared by content. Larger files are compared by size
/// and time.
const MAX_READ_BYTES: u64 = 4 << 20;
/// Names of build output folders. Any folder with a `CACHEDIR.TAG` is one, too.
const OUTPUT_FOLDERS: [&str; 4] = ["target", "dist", "node_modules", "__pycache__"];
const CACHE_TAG_FILE: &str = "CACHEDIR.TAG";
/// File that both cargo and the author write.
const LOCK_FILE: &str = "Cargo.lock";

/// A watched folder.
pub(crate) struct Sources {
    root: PathBuf,
    /// File system watcher, or `None` if the system does not support it.
    watcher: Option<RecommendedWatcher>,
    reports: mpsc::Receiver<()>,
}

/// Content of a folder at one time: a hash for each file, by its path in the folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Snapshot(BTreeMap<PathBuf, u64>);

impl Sources {
    /// Watches a folder and its subfolders, except build outputs.
    pub(crate) fn watch(root: PathBuf) -> Self {
        let (report, reports) = mpsc::channel(1);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Read access is not a change, and this command reads files itself. If the channel is
            // full, a notification is already pending.
            if !matches!(
                event,
                Ok(notify::Event {
                    kind: EventKind::Access(_),
                    ..
                })
            ) {
                let _ = report.try_send(());
            }
        });
        Self {
            root,
            watcher: watcher.ok(),
            reports,
        }
    }

    /// Waits until the content of the folder differs from `old`.
    pub(crate) async fn changed_from(&mut self, old: &Snapshot) -> Result<Snapshot> {
        loop {
            let now = self.scan()?;
            if now == *old {
                // Waits for a notification or the next regular comparison.
                let _ = timeout(SCAN_INTERVAL, self.reports.recv()).await;
                continue;
            }
            for _ in 0..MAX_NOTIFICATIONS {
                if timeout(QUIET_PERIOD, self.reports.recv()).await.is_err() {
                    break;
                }
            }
            let settled = self.scan()?;
            if settled != *old {
                return Ok(settled);
            }
        }
    }

    /// Reads the current content.
    pub(crate) fn scan(&mut self) -> Result<Snapshot> {
        let mut files = BTreeMap::new();
        let root = self.root.clone();
        self.folder(&root, &mut files)
            .with_context(|| format!("cannot read {}", root.display()))?;
        Ok(Snapshot(files))
    }

    fn folder(&mut self, folder: &Path, files: &mut BTreeMap<PathBuf, u64>) -> io::Result<()> {
        // Watched before it is read, so that later changes are notified. Repeated each time,
        // because the folder may have been replaced. Without a watcher, the regular comparisons
        // find the changes.
        if let Some(watcher) = &mut self.watcher {
            let _ = watcher.watch(folder, RecursiveMode::NonRecursive);
        }
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            let file_name = entry.file_name();
            let name = file_name.to_string_lossy();
            if name.starts_with('.') || name.ends_with('~') {
                continue;
            }
            // A file that was deleted meanwhile is skipped.
            let Ok(about) = fs::metadata(&path) else {
                continue;
            };
            if !about.is_dir() {
                let inside = path.strip_prefix(&self.root).unwrap_or(&path).to_owned();
                files.insert(inside, content(&path, &about));
            } else if !OUTPUT_FOLDERS.contains(&name.as_ref())
                && !path.join(CACHE_TAG_FILE).exists()
                && !entry.path().is_symlink()
            {
                match self.folder(&path, files) {
                    Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// Hashes a file. An unreadable file counts as empty: the build reports the problem.
fn content(path: &Path, about: &fs::Metadata) -> u64 {
    let mut hasher = DefaultHasher::new();
    if about.len() > MAX_READ_BYTES {
        (about.len(), about.modified().ok()).hash(&mut hasher);
    } else {
        fs::read(path).unwrap_or_default().hash(&mut hasher);
    }
    hasher.finish()
}

impl Snapshot {
    /// Lists files that are new, deleted or changed.
    pub(crate) fn changed_from(&self, old: &Self) -> Vec<PathBuf> {
        let other = self
            .0
            .iter()
            .filter(|(path, hash)| old.0.get(*path) != Some(hash))
            .map(|(path, _)| path);
        let gone = old.0.keys().filter(|path| !self.0.contains_key(*path));
        other.chain(gone).cloned().collect()
    }

    /// Copies the hash of cargo's lock file from another snapshot.
    pub(crate) fn take_lock_file(&mut self, from: &Self) {
        if let Some(&hash) = from.0.get(Path::new(LOCK_FILE)) {
            self.0.insert(LOCK_FILE.into(), hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        folder
    }

    fn scan(folder: &tempfile::TempDir) -> Snapshot {
        Sources::watch(folder.path().to_owned()).scan().unwrap()
    }

    #[test]
    fn build_and_editor_files_are_ignored() {
        let files = [
            "src/lib.rs",
            "cases/a/b.json",
            "target/x",
            "dist/a.wasm",
            "out/CACHEDIR.TAG",
            "out/y",
            ".git/HEAD",
        ];
        let folder = folder(&files);
        fs::write(folder.path().join("src/lib.rs~"), "backup").unwrap();
        let seen: Vec<_> = scan(&folder).0.into_keys().collect();
        assert_eq!(seen, [Path::new("cases/a/b.json"), Path::new("src/lib.rs")]);
    }

    #[test]
    fn identical_rewrite_is_no_change() {
        let folder = folder(&["src/lib.rs"]);
        let before = scan(&folder);
        fs::write(folder.path().join("src/lib.rs"), "src/lib.rs").unwrap();
        assert_eq!(scan(&folder), before);
        fs::write(folder.path().join("src/new.rs"), "").unwrap();
        fs::remove_file(folder.path().join("src/lib.rs")).unwrap();
        let changed = scan(&folder).changed_from(&before);
        assert_eq!(changed, [Path::new("src/new.rs"), Path::new("src/lib.rs")]);
    }

    #[test]
    fn lock_file_of_a_build_is_no_change() {
        let folder = folder(&["src/lib.rs"]);
        let mut built = scan(&folder);
        fs::write(folder.path().join(LOCK_FILE), "made").unwrap();
        built.take_lock_file(&scan(&folder));
        assert_eq!(scan(&folder), built);
    }

    #[tokio::test]
    async fn changes_in_folders_that_came_later_are_found() {
        let folder = folder(&["src/lib.rs"]);
        let mut sources = Sources::watch(folder.path().to_owned());
        let mut known = sources.scan().unwrap();
        for path in ["src/deep/er/mod.rs", "src/deep/er/other.rs"] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "x").unwrap();
            let now = timeout(Duration::from_secs(60), sources.changed_from(&known))
                .await
                .unwrap()
                .unwrap();
            assert_eq!(
                now.changed_from(&known),
                [path.strip_prefix(folder.path()).unwrap()]
            );
            known = now;
        }
    }
}
