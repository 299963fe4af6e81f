//! First work of a server: publishes toolkits, prints the greeting, and lets clients in.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use futures::{StreamExt, stream};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use tokio::time::sleep;

use super::Args;
use crate::{
    Server,
    commands::{
        demo,
        first_run::{self, Keys},
        toolkits,
    },
    metrics,
    open::Stop,
    terminal::Terminal,
};

/// Interval at which a start that publishes toolkits says how far it is.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// Facts known at startup.
pub(super) struct Start {
    pub(super) url: String,
    pub(super) keys: Keys,
    pub(super) new: bool,
    pub(super) address: SocketAddr,
    pub(super) metrics_address: Option<SocketAddr>,
}

/// Publishes the toolkits, prints the greeting, and lets clients in.
pub(super) async fn announce(
    server: &Arc<Server>,
    args: &Args,
    start: &Start,
    terminal: Terminal,
) -> Result<(), Stop> {
    let folder = args.toolkits.as_ref().or(server.config.toolkits.as_ref());
    let problems = match folder {
        Some(folder) => publish(server, folder, (!args.json_ready).then_some(terminal)).await?,
        None => Vec::new(),
    };
    server.set_serving(true);
    let metrics_url = start
        .metrics_address
        .map(|address| format!("http://{address}{}", metrics::METRICS_PATH));
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        address = %start.address,
        metrics = start.metrics_address.map(tracing::field::display),
        "the server has started"
    );
    let ready = json!({
        "ready": true,
        "url": start.url,
        "metrics_url": metrics_url,
        "pid": std::process::id(),
        "project_id": start.keys.project,
        "api_key": start.keys.project_key.as_str(),
        "org_api_key": start.keys.organization_key.as_str(),
    });
    if let Some(path) = &args.ready_file {
        first_run::write_private(path, &ready.to_string())?;
    }
    if args.json_ready {
        terminal.line(&ready.to_string());
        return Ok(());
    }
    first_run::print_summary(server, &start.url, start.address, start.new, terminal);
    if let Some(url) = &metrics_url {
        terminal.pair("metrics", url);
    }
    for problem in &problems {
        terminal.bad(problem);
    }
    if let Some(file) = &args.demo {
        demo::run(&server.config, start.address, &start.keys, file, terminal).await;
    }
    if start.new {
        first_run::print_examples(server, terminal);
    }
    Ok(())
}

/// Publishes the components of a folder, and returns the problems. A component that cannot be
/// published does not prevent the others.
async fn publish(
    server: &Arc<Server>,
    folder: &Path,
    progress: Option<Terminal>,
) -> Result<Vec<String>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .with_context(|| format!("cannot read the folder of toolkits {}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "wasm")
        })
        .collect();
    files.sort();
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
                let done = publish_one(&server, &path).await;
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
        loop {
            sleep(PROGRESS_INTERVAL).await;
            if let Some(terminal) = progress {
                let total = bar.length().unwrap_or_default();
                terminal.line(&format!(
                    "publishing toolkits: {} of {total}",
                    bar.position()
                ));
            }
        }
    };
    let problems = tokio::select! {
        problems = publications => problems,
        () = reported => Vec::new(),
    };
    bar.finish_and_clear();
    Ok(problems)
}

async fn publish_one(server: &Server, path: &Path) -> Result<()> {
    let bytes = tokio::fs::read(path)
        .await
        .context("cannot read the file")?;
    let (slug, version) = app::catalog::identity(&bytes)?;
    let signature = toolkits::signature_beside(path)?;
    let terms = app::catalog::Terms {
        signature: signature.as_deref(),
        breaking: false,
    };
    app::catalog::publish(&server.app, &slug, &version, bytes.into(), terms).await?;
    Ok(())
}
