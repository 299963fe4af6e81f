//! `toolhost import-legacy`: loads UUIDs of an older system for clients that still use them.

use std::path::PathBuf;

use anyhow::{Context, anyhow, ensure};
use app::{Clock, lifecycle::legacy_ids};
use settings::Config;

use crate::{
    open::{self, Stop},
    terminal::Terminal,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File with one JSON object per line
    file: PathBuf,
}

pub(crate) const FILE_FORMAT: &str = "Each line contains a project, the type of an object, its id in the older system and its id in this installation:

  {\"project\":\"proj_…\",\"type\":\"CONNECTED_ACCOUNT\",\"uuid\":\"6f0c…\",\"nanoid\":\"ca_…\"}

The types are CONNECTED_ACCOUNT, AUTH_CONFIG and TRIGGER_INSTANCE. Every line is checked before anything is written. Lines that are \
already loaded may be loaded again. The embedded store needs a stopped server; PostgreSQL does not.";

pub(crate) async fn run(config: &Config, args: &Args, terminal: Terminal) -> Result<(), Stop> {
    let text = read(args)?;
    open::check_exists(
        config,
        "set `data` to the one of the server that clients use",
    )?;
    let store = open::store(config).await?;
    let done = legacy_ids::load(&store, &text, Clock::system().now()).await;
    store.close().await;
    let loaded =
        done.map_err(|cause| anyhow!("{} was not loaded:\n  {cause}", args.file.display()))?;
    terminal.good(&format!(
        "{} legacy ids loaded, {} already known",
        loaded.new, loaded.known
    ));
    Ok(())
}

fn read(args: &Args) -> anyhow::Result<String> {
    let file = args.file.display();
    let size = std::fs::metadata(&args.file)
        .with_context(|| format!("cannot read {file}"))?
        .len();
    ensure!(
        size <= legacy_ids::MAX_FILE_BYTES,
        "{file} is larger than {} MiB: split it and load the parts one by one",
        legacy_ids::MAX_FILE_BYTES >> 20
    );
    std::fs::read_to_string(&args.file).with_context(|| format!("cannot read {file}"))
}
