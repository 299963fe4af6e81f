//! `toolkit record`: runs one live call and writes a cassette or a case.

mod case;
mod signing;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;

use crate::{
    check,
    foreign::files,
    progress,
    run::{CallOptions, FinishedCall, call, print_call},
};

/// Maximum content of a cassette in bytes. Including its JSON, it stays below the maximum size of a
/// file to replay.
const MAX_RESPONSE_BYTES: usize = 32 << 20;

/// Run one call as `toolkit run` does, and record it.
///
/// A cassette holds requests, responses, time and randomness, and no credential. `toolkit replay`
/// runs the call again with it. A case holds the same call as `toolkit check` runs it; the request of
/// a webhook is signed again with a placeholder of the secret.
#[derive(Debug, Args)]
#[command(after_help = HELP_EXAMPLES)]
pub(crate) struct Record {
    #[command(flatten)]
    call: CallOptions,
    /// File to write the cassette to.
    #[arg(short, long, value_name = "FILE", required_unless_present = "case")]
    output: Option<PathBuf>,
    /// Name of a case to write, for example `success`: it becomes cases/TOOL/NAME.json in the
    /// toolkit's folder.
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
}

const HELP_EXAMPLES: &str = "Examples:
  toolkit record . get_item '{\"id\": 7}' -o item-7.json
  toolkit replay . item-7.json
  toolkit record . get_item '{\"id\": 7}' --case success
  toolkit record . --trigger PUSHED --config @config.json --request @push.json --case pushed
  toolkit check";

/// Runs the command. A failed call is recorded, too, and returns exit code 1.
pub(crate) async fn run(options: &Record) -> Result<ExitCode> {
    if let Some(name) = &options.case {
        check_name(name)?;
        if !options.call.target.is_dir() {
            bail!(
                "{} is no folder; --case needs the folder of the toolkit",
                options.call.target.display()
            );
        }
    }
    let done = call(&options.call, None, Some(MAX_RESPONSE_BYTES)).await?;
    let Some(cassette) = &done.cassette else {
        bail!(
            "nothing was recorded: the call's data exceeds {}",
            progress::size(MAX_RESPONSE_BYTES as u64)
        );
    };
    if let Some(file) = &options.output {
        let text = serde_json::to_string_pretty(cassette)? + "\n";
        fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let case = options
        .case
        .as_deref()
        .map(|name| write_case(&options.call.target, name, &done))
        .transpose()?;
    let ended = print_call(&options.call, &done)?;
    if let Some(file) = &options.output {
        eprintln!("\nrecorded {}", file.display());
    }
    if let Some(file) = case {
        let file = file.display();
        eprintln!(
            "\nrecorded {file}; it holds what the provider sent: read it before you share it"
        );
    }
    Ok(ended)
}

fn check_name(name: &str) -> Result<()> {
    let is_plain = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if name.is_empty() || !is_plain {
        bail!("`{name}` cannot name a case; use letters, digits, `_` and `-`");
    }
    Ok(())
}

/// Writes the case of a call into the folder of its toolkit, and returns its file.
fn write_case(toolkit: &Path, name: &str, done: &FinishedCall) -> Result<PathBuf> {
    let cassette = done.cassette.as_ref().context("nothing was recorded")?;
    let folder = check::folder_name(&done.toolkit, case::slug(cassette));
    let file = toolkit
        .join("cases")
        .join(folder)
        .join(name)
        .with_extension("json");
    if file.exists() {
        bail!(
            "{} exists; choose another name, or correct it with `toolkit check --bless`",
            file.display()
        );
    }
    let case = case::from_call(cassette, done)?;
    files::write_file(&file, &format!("{:#}\n", json!(case)))?;
    Ok(file)
}
