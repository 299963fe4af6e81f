//! `toolkit push`: pushes a component to a registry.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use registry::{Access, ComponentInfo, OCI_SCHEME, RegistryReference};

use crate::{build::BuildTarget, component, progress, sign};

const HELP_EXAMPLES: &str = "Examples:
  toolkit push registry.example/tools/hello            # builds the toolkit here; its version becomes the tag
  toolkit push localhost:5000/hello:20260101_00 dist/hello.wasm";

/// Push a component or a toolkit to an OCI registry.
///
/// A toolkit is built first.
#[derive(Debug, Args)]
#[command(after_help = HELP_EXAMPLES)]
pub(crate) struct Push {
    /// Destination: HOST[:PORT]/PATH[:TAG].
    reference: String,
    #[command(flatten)]
    target: BuildTarget,
    #[command(flatten)]
    access: Access,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) async fn run(options: &Push) -> Result<ExitCode> {
    let place = RegistryReference::new(&options.reference, &options.access)?;
    let files = options.target.components(None)?;
    let [file] = files.as_slice() else {
        bail!(
            "a reference names one toolkit, but {} were built",
            files.len()
        )
    };
    let (bytes, manifest) = component::read(file)?;
    let signature = sign::read_beside(file, &bytes)?;
    let slug = manifest.slug;
    let version = manifest.version.to_string();
    let about = ComponentInfo {
        slug: slug.clone(),
        description: manifest.description,
        version: version.clone(),
    };
    let spinner = progress::spinner(&format!("pushing {slug} {version}"));
    let pushed = place.push(bytes, &about, signature.as_deref()).await?;
    drop(spinner);
    let signer = signature.as_deref().and_then(sign::signer);
    if options.json {
        let object = serde_json::json!({
            "slug": slug, "version": version, "reference": pushed.reference, "digest": pushed.digest, "signed_by": signer,
        });
        println!("{object:#}");
    } else {
        println!(
            "pushed {slug} {version}{}",
            signer.map_or_else(String::new, |key| format!(", signed by {key}"))
        );
        println!("toolhost toolkits add {OCI_SCHEME}{}", pushed.reference);
    }
    Ok(ExitCode::SUCCESS)
}
