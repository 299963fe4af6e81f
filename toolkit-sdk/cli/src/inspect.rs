//! `toolkit inspect`: prints a summary of a component without running it.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use manifest::{EgressRule, Hints, Manifest};

use crate::{component, progress};

/// Show what a component says about itself, without running it.
#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// The component.
    file: PathBuf,
    /// Print one JSON object, with the whole manifest.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(options: &Inspect) -> Result<()> {
    let file = options.file.display();
    if options.file.is_dir() {
        bail!(
            "{file} is a folder; build the toolkit in it with `toolkit build`, and name the component"
        );
    }
    let bytes = fs::read(&options.file).with_context(|| format!("cannot read {file}"))?;
    let manifest = manifest::extract(&bytes).with_context(|| format!("cannot read {file}"))?;
    let imports = component::imports(&bytes)?;
    let digest = sandbox::Digest::compute(&bytes);
    if options.json {
        let object = serde_json::json!({
            "manifest": manifest,
            "imports": imports,
            "size": bytes.len(),
            "sha256": digest,
            "problems": manifest.problems(),
        });
        println!("{object:#}");
        return Ok(());
    }
    println!("{} {} · {}", manifest.slug, manifest.version, manifest.name);
    println!("{}\n", manifest.description);
    println!(
        "size      {}   sha256 {digest}",
        progress::size(bytes.len() as u64)
    );
    println!("built     {} for contract {}", manifest.sdk, manifest.abi);
    println!("imports   {}", imports.join("\n          "));
    describe(&manifest);
    for problem in manifest.problems() {
        println!("problem   {problem}");
    }
    Ok(())
}

fn describe(manifest: &Manifest) {
    println!("egress    {}", egress(&manifest.egress));
    for scheme in &manifest.auth {
        let fields: Vec<_> = scheme
            .fields
            .iter()
            .map(|field| field.name.as_str())
            .collect();
        println!("account   {} ({})", scheme.mode.as_str(), fields.join(", "));
    }
    for tool in &manifest.tools {
        println!("tool      {}  {}", tool.slug, hints(tool.hints));
        if let Some(own) = &tool.egress {
            println!("            reaches {}", egress(own));
        }
    }
    for trigger in &manifest.triggers {
        println!("trigger   {}  {:?}", trigger.slug, trigger.kind);
    }
}

fn egress(rules: &[EgressRule]) -> String {
    if rules.is_empty() {
        "nothing".to_owned()
    } else {
        rules
            .iter()
            .map(EgressRule::to_string)
            .collect::<Vec<_>>()
            .join("\n          ")
    }
}

fn hints(hints: Hints) -> String {
    let words = [
        (hints.read_only, "read-only"),
        (hints.destructive, "destructive"),
        (hints.idempotent, "idempotent"),
        (hints.open_world, "open-world"),
    ];
    words
        .iter()
        .filter(|(set, _)| *set)
        .map(|(_, word)| *word)
        .collect::<Vec<_>>()
        .join(", ")
}
