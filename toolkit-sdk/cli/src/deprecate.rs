//! `toolkit deprecate`: deprecates a published version, or ends its deprecation.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use crate::publish::{Server, org_refusal};

/// Deprecate a published version.
///
/// It is then used only by calls that name it.
///
/// Examples:
///   toolkit deprecate example@20261121_00
///   toolkit deprecate example@20261121_00 --undo
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Deprecate {
    /// Version to deprecate.
    #[arg(value_name = "SLUG@VERSION")]
    version: String,
    #[command(flatten)]
    server: Server,
    /// End the deprecation.
    #[arg(long)]
    undo: bool,
    /// Print the version as one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs the command. Returns exit code 1 if the server refuses.
pub(crate) async fn run(options: &Deprecate) -> Result<ExitCode> {
    let name = &options.version;
    let (slug, version) = name
        .split_once('@')
        .with_context(|| format!("`{name}` names no version; write SLUG@VERSION"))?;
    let (status, answer) = options
        .server
        .deprecate(slug, version, options.undo)
        .await?;
    if status != 200 {
        eprintln!("cannot change {name}: {}", org_refusal(status, &answer));
        return Ok(ExitCode::FAILURE);
    }
    if options.json {
        println!("{answer:#}");
    } else if options.undo {
        println!("{name} is not deprecated");
    } else {
        println!("{name} is deprecated: only calls that name this version use it");
    }
    Ok(ExitCode::SUCCESS)
}
