//! `toolkit pull`: pulls a component from a registry.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result};
use clap::Args;
use registry::{Access, RegistryReference};

use crate::{component, progress, sign};

const HELP_EXAMPLES: &str = "Examples:
  toolkit pull registry.example/tools/hello:20260101_00 --key toolkit.pub
  toolkit pull registry.example/tools/hello@sha256:6c3c… -o hello.wasm";

/// Pull a component from an OCI registry.
#[derive(Debug, Args)]
#[command(after_help = HELP_EXAMPLES)]
pub(crate) struct Pull {
    /// Source: HOST[:PORT]/PATH[:TAG][@sha256:…]. A tag and a digest together must mean the same.
    reference: String,
    /// File to write [default: SLUG.wasm]. A signature is written next to it.
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Refuse a component that this public key, or the key in this file, did not sign.
    #[arg(long, value_name = "KEY|FILE")]
    key: Option<String>,
    #[command(flatten)]
    access: Access,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) async fn run(options: &Pull) -> Result<ExitCode> {
    let place = RegistryReference::new(&options.reference, &options.access)?;
    let spinner = progress::spinner(&format!("pulling {}", options.reference));
    let pulled = place.pull().await?;
    drop(spinner);
    let manifest = component::manifest_of(&pulled.component)
        .with_context(|| format!("{} is not a toolkit", pulled.reference))?;
    let signature = pulled.signature.as_deref();
    if let Some(key) = &options.key {
        let signature = signature.with_context(|| format!("{} is not signed", pulled.reference))?;
        sign::verify(key, &pulled.component, signature)?;
    }
    let file = options
        .out
        .clone()
        .unwrap_or_else(|| format!("{}.wasm", manifest.slug).into());
    write(&file, &pulled.component)?;
    if let Some(signature) = signature {
        write(&sign::beside(&file), signature.as_bytes())?;
    }
    let signer = signature.and_then(sign::signer);
    if options.json {
        let object = serde_json::json!({
            "slug": manifest.slug, "version": manifest.version, "reference": pulled.reference, "digest": pulled.digest,
            "sha256": sandbox::Digest::compute(&pulled.component), "size": pulled.component.len(), "file": file,
            "signed_by": signer, "verified": options.key.is_some(),
        });
        println!("{object:#}");
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "pulled {} {} to {}",
        manifest.slug,
        manifest.version,
        file.display()
    );
    println!("{}", pulled.reference);
    match (signer, &options.key) {
        (Some(key), Some(_)) => println!("signed by {key}, verified"),
        (Some(key), None) => println!("signed by {key}, not verified; verify it with --key"),
        (None, _) => println!("not signed"),
    }
    Ok(ExitCode::SUCCESS)
}

fn write(file: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(file, bytes).with_context(|| format!("cannot write {}", file.display()))
}
