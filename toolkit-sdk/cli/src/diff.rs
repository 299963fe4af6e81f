//! `toolkit diff`: lists the changes between two versions of a toolkit and marks the breaking ones.

use std::{fs, path::Path, process::ExitCode};

use anyhow::{Context, Result};
use clap::Args;
use manifest::{Change, Manifest};

use crate::{outcome, publish::Server, toolchain::Mode};

/// Show the changes between two versions, and the users they break.
///
/// Each of OLD and NEW is a component, the folder of a toolkit, which is built first, or
/// SLUG@VERSION on a server, where VERSION may be `latest`. A change that breaks callers or
/// connected accounts makes the exit code 1.
///
/// Examples:
///   toolkit diff example@latest .
///   toolkit diff old/example.wasm dist/example.wasm --json
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Diff {
    /// Old version.
    old: String,
    /// New version.
    new: String,
    #[command(flatten)]
    server: Server,
    /// Toolchain to compile with, if OLD or NEW is a folder.
    #[arg(long, value_enum, env = "TOOLKIT_TOOLCHAIN")]
    toolchain: Option<Mode>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) async fn run(options: &Diff) -> Result<ExitCode> {
    if [&options.old, &options.new]
        .into_iter()
        .any(|what| published(what).is_some())
    {
        options.server.key()?;
    }
    let old = read(options, &options.old).await?;
    let new = read(options, &options.new).await?;
    let changes = manifest::diff(&old, &new);
    let breaking = changes.iter().any(Change::is_breaking);
    if options.json {
        let object = serde_json::json!({
            "old": described(&old),
            "new": described(&new),
            "breaking": breaking,
            "changes": changes,
        });
        println!("{object:#}");
    } else {
        print(&old, &new, &changes);
    }
    Ok(outcome::exit_code(!breaking))
}

/// Returns slug and version of a manifest.
fn described(manifest: &Manifest) -> serde_json::Value {
    serde_json::json!({ "slug": manifest.slug, "version": manifest.version })
}

/// Returns slug and version if they, and no file, are what is named.
fn published(what: &str) -> Option<(&str, &str)> {
    what.split_once('@').filter(|_| !Path::new(what).exists())
}

async fn read(options: &Diff, what: &str) -> Result<Manifest> {
    if let Some((slug, version)) = published(what) {
        return options.server.manifest(slug, version).await;
    }
    let component = match Path::new(what) {
        file if file.is_file() => fs::read(file)
            .with_context(|| format!("cannot read {what}"))?
            .into(),
        folder => crate::run::component(folder, options.toolchain)?,
    };
    manifest::extract(&component).with_context(|| format!("cannot read {what}"))
}

fn print(old: &Manifest, new: &Manifest, changes: &[Change]) {
    println!(
        "{} {} → {} {}",
        old.slug, old.version, new.slug, new.version
    );
    for change in changes {
        println!(
            "  {} {change}",
            if change.is_breaking() { '✗' } else { '·' }
        );
    }
    let breaking = changes.iter().filter(|change| change.is_breaking()).count();
    match (changes.len(), breaking) {
        (0, _) => println!("  ✓ no difference"),
        (all, 0) => println!("  ✓ {all} differences, all compatible"),
        (all, breaking) => println!("  ✗ {breaking} of {all} differences are breaking"),
    }
}
