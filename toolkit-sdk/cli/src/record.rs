//! `toolkit record`: runs one live call and writes a cassette.

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::{
    progress,
    run::{Run, call, print_call},
};

/// Maximum content of a cassette in bytes. Including its JSON, it stays below the maximum size of a
/// file to replay.
const MAX_RESPONSE_BYTES: usize = 32 << 20;

/// Run one call as `toolkit run` does, and write all its input from outside to a cassette file.
///
/// The file holds requests, responses, time and randomness, and no credential. `toolkit replay`
/// runs the call again with it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Record {
    #[command(flatten)]
    run: Run,
    /// File to write the cassette to.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

const EXAMPLES: &str = "Examples:
  toolkit record . get_item '{\"id\": 7}' -o item-7.json
  toolkit replay . item-7.json";

/// Runs the command. A failed call is recorded, too, and returns exit code 1.
pub(crate) async fn run(options: &Record) -> Result<ExitCode> {
    let done = call(&options.run, Some(MAX_RESPONSE_BYTES)).await?;
    let Some(cassette) = &done.cassette else {
        bail!(
            "nothing was recorded: the call's data exceeds {}",
            progress::size(MAX_RESPONSE_BYTES as u64)
        );
    };
    let text = serde_json::to_string_pretty(cassette)? + "\n";
    fs::write(&options.output, text)
        .with_context(|| format!("cannot write {}", options.output.display()))?;
    let ended = print_call(&options.run, &done)?;
    eprintln!("\nrecorded {}", options.output.display());
    Ok(ended)
}
