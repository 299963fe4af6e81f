//! Publication of toolkits at a start: those of a folder that the operator names, else those of the
//! release.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use futures::{StreamExt, stream};
use http::Server;
use indicatif::{ProgressBar, ProgressStyle};
use settings::Config;
use tokio::time::sleep;

use crate::{commands::toolkits, installed, terminal::Terminal};

/// Interval at which a start that publishes toolkits says how far it is.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// Source of the components that a start publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A folder that the operator named. A version that was published with other bytes is a problem.
    Named,
    /// The release that this program belongs to. Only versions that the store lacks are published.
    Release,
}

/// Components that a start publishes.
pub(super) struct Publication {
    files: Vec<PathBuf>,
    origin: Origin,
    /// Problem of components that are left out.
    problem: Option<String>,
}

impl Publication {
    /// Finds the components of the folder that a flag or else a setting names, or else those of the
    /// release, and notes in the catalog which toolkits it will have.
    pub(super) async fn find(server: &Server, named: Option<&Path>) -> Result<Self> {
        let (files, origin, problem) = match named.or(server.config.toolkits.as_deref()) {
            Some(folder) => (components(folder)?, Origin::Named, None),
            None => {
                let folder = installed::toolkits();
                let files = folder.map_or_else(|| Ok(Vec::new()), |folder| components(&folder))?;
                let (signed, problem) = acceptable(server, files)?;
                (signed, Origin::Release, problem)
            }
        };
        let slugs = unpublished(server, &files).await;
        server.app.catalog.set_pending(slugs).await;
        Ok(Self {
            files,
            origin,
            problem,
        })
    }

    /// Publishes the components. Returns the problems. A component that cannot be published does not
    /// prevent the others.
    pub(super) async fn run(self, server: &Arc<Server>, progress: Option<Terminal>) -> Vec<String> {
        let mut problems = publish(server, self.files, self.origin, progress).await;
        server.app.catalog.set_pending(BTreeSet::new()).await;
        problems.extend(self.problem);
        problems
    }
}

/// Returns the toolkits of components whose versions the catalog lacks. A component that cannot be read
/// is a problem of its publication.
async fn unpublished(server: &Server, files: &[PathBuf]) -> BTreeSet<String> {
    let snapshot = server.app.catalog.snapshot();
    let mut slugs = BTreeSet::new();
    for path in files {
        if let Ok(bytes) = tokio::fs::read(path).await
            && let Ok((slug, version)) = app::catalog::identity(&bytes)
            && snapshot.release(&slug, &version).is_err()
        {
            slugs.insert(slug);
        }
    }
    slugs
}

/// Checks that the folder of toolkits can be read, before a start creates anything.
///
/// # Errors
/// Names the folder.
pub(super) fn check(config: &Config, named: Option<&Path>) -> Result<()> {
    let folder = named.or(config.toolkits.as_deref());
    folder.map_or(Ok(()), |folder| components(folder).map(drop))
}

/// Returns the components of a folder, sorted by name.
fn components(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .with_context(|| format!("cannot read the folder of toolkits {}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "wasm")
        })
        .collect();
    files.sort();
    Ok(files)
}

/// Leaves out the components of the release that have no signature, if the operator requires one.
/// Returns also the problem that reports them.
fn acceptable(server: &Server, files: Vec<PathBuf>) -> Result<(Vec<PathBuf>, Option<String>)> {
    if server.config.publish.trusted_keys.is_empty() {
        return Ok((files, None));
    }
    let total = files.len();
    let mut signed = Vec::new();
    for path in files {
        if toolkits::signature_beside(&path)?.is_some() {
            signed.push(path);
        }
    }
    let unsigned = total - signed.len();
    let problem = (unsigned > 0).then(|| {
        format!(
            "{unsigned} toolkits of the release are not published, because `publish.trusted_keys` requires signatures: \
             sign them with `toolkit sign`, or set `toolkits` to an empty folder"
        )
    });
    Ok((signed, problem))
}

async fn publish(
    server: &Arc<Server>,
    files: Vec<PathBuf>,
    origin: Origin,
    progress: Option<Terminal>,
) -> Vec<String> {
    let bar = ProgressBar::new(files.len() as u64).with_style(
        ProgressStyle::with_template("  publishing {pos}/{len} {wide_bar:.dim} {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let publications = stream::iter(files)
        .map(|path| {
            let server = server.clone();
            let bar = bar.clone();
            async move {
                let name = path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                bar.set_message(name.clone());
                let done = publish_one(&server, &path, origin).await;
                bar.inc(1);
                done.err().map(|cause| format!("{name}: {cause:#}"))
            }
        })
        .buffer_unordered(cores)
        .filter_map(std::future::ready)
        .collect::<Vec<_>>();
    // On a terminal there is a bar.
    let progress = progress.filter(|_| bar.is_hidden());
    let reported = async {
        let mut shown = None;
        loop {
            sleep(PROGRESS_INTERVAL).await;
            let (position, total) = (bar.position(), bar.length().unwrap_or_default());
            // The same line again would look like a fault.
            if let Some(terminal) = progress
                && shown.replace(position) != Some(position)
            {
                terminal.line(&format!(
                    "publishing toolkits: {position} of {total}; each is compiled once, and the server is ready after the last"
                ));
            }
        }
    };
    let problems = tokio::select! {
        problems = publications => problems,
        () = reported => Vec::new(),
    };
    bar.finish_and_clear();
    problems
}

async fn publish_one(server: &Server, path: &Path, origin: Origin) -> Result<()> {
    let bytes = tokio::fs::read(path)
        .await
        .context("cannot read the file")?;
    let (slug, version) = app::catalog::identity(&bytes)?;
    // A version that the operator has removed is deprecated in the store, and stays so.
    let snapshot = server.app.catalog.snapshot();
    if origin == Origin::Release && snapshot.release(&slug, &version).is_ok() {
        return Ok(());
    }
    let signature = toolkits::signature_beside(path)?;
    let terms = app::catalog::Terms {
        signature: signature.as_deref(),
        breaking: false,
    };
    app::catalog::publish(&server.app, &slug, &version, bytes.into(), terms).await?;
    Ok(())
}
