//! `toolhost import-legacy`: loads UUIDs of an older system for clients that still use them.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, anyhow, ensure};
use app::{Clock, legacy};

use crate::{
    config::Config,
    open::{self, Stop},
    terminal::Terminal,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File with one JSON object per line
    file: PathBuf,
}

pub(crate) const FORM: &str = "A line names a project, what is meant, its id in the older system and its id here:
  {\"project\": \"proj_…\", \"type\": \"CONNECTED_ACCOUNT\", \"uuid\": \"6f0c…\", \"nanoid\": \"ca_…\"}
Types are CONNECTED_ACCOUNT, AUTH_CONFIG and TRIGGER_INSTANCE. Every line is checked before anything is written; what was
loaded before may be loaded again. The embedded store needs a stopped server, PostgreSQL does not.";

pub(crate) async fn run(
    config: &Config,
    args: &Args,
    terminal: Terminal,
) -> Result<ExitCode, Stop> {
    let text = read(args)?;
    let data = config.data.display();
    if config.database().is_none() && !config.data.exists() {
        return Err(anyhow!(
            "there is no installation at {data}: set `data` to the one that clients use"
        )
        .into());
    }
    let store = open::store(config).await?;
    let done = legacy::load(&store, &text, Clock::system().now()).await;
    store.close().await;
    let loaded =
        done.map_err(|cause| anyhow!("{} was not loaded:\n  {cause}", args.file.display()))?;
    terminal.good(&format!(
        "{} ids are new, {} were known",
        loaded.new, loaded.known
    ));
    Ok(ExitCode::SUCCESS)
}

fn read(args: &Args) -> anyhow::Result<String> {
    let file = args.file.display();
    let size = std::fs::metadata(&args.file)
        .with_context(|| format!("cannot read {file}"))?
        .len();
    ensure!(
        size <= legacy::MAX_FILE_BYTES,
        "{file} is larger than {} MiB: load it in parts",
        legacy::MAX_FILE_BYTES >> 20
    );
    std::fs::read_to_string(&args.file).with_context(|| format!("cannot read {file}"))
}
