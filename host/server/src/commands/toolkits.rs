//! `toolhost toolkits`: lists published toolkits, publishes more from a registry or a file, and
//! deprecates versions.
//!
//! Components are fetched in this process, at the operator's command: the server itself never
//! contacts a registry. The checks of a publication, signatures included, are the same as for every
//! other publication.

mod target;

use std::path::{Path, PathBuf};

use anyhow::Context;
use app::catalog::Terms;
use bytes::Bytes;
use registry::{Access, OCI_SCHEME, RegistryReference};
use serde_json::Value;
use settings::Config;
use target::Target;

use crate::{
    commands::running::{ServerArgs, text},
    open::Stop,
    terminal::Terminal,
};

const _: () = assert!(
    registry::MAX_COMPONENT_BYTES == app::catalog::MAX_COMPONENT_BYTES,
    "a component from a registry can be published"
);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Publish a component from a registry or a file
    #[command(after_help = ADD_EXAMPLES)]
    Add {
        /// oci://HOST/PATH[:TAG][@sha256:…], or a *.wasm file with its signature next to it
        from: String,
        #[command(flatten)]
        access: Box<Access>,
        /// Publish even if it breaks compatibility with an earlier version of the same day
        #[arg(long)]
        breaking: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// List the published toolkits, newest version first
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Deprecate a version; a deprecated version is used only if it is named exactly
    Remove {
        /// Slug of the toolkit
        slug: String,
        /// Version to deprecate
        #[arg(value_name = "YYYYMMDD_NN")]
        version: String,
    },
}

const ADD_EXAMPLES: &str = "Examples:
  toolhost toolkits add oci://registry.example/tools/hello:20260101_00
  toolhost toolkits add oci://registry.example/tools/hello@sha256:6c3c… --username ci
  toolhost toolkits add dist/hello.wasm";

/// A component that was fetched for publication.
struct Fetched {
    /// Origin of the component, with its digest if it has one.
    origin: String,
    component: Bytes,
    signature: Option<String>,
}

pub(crate) async fn run(config: &Config, args: &Args, terminal: Terminal) -> Result<(), Stop> {
    match &args.action {
        Action::Add {
            from,
            access,
            breaking,
            json,
        } => {
            // This happens before the store is opened: a slow registry must not keep a server from
            // starting.
            let fetched = fetch(from, access).await?;
            let target = Target::find(config, &args.server).await?;
            let terms = Terms {
                signature: fetched.signature.as_deref(),
                breaking: *breaking,
            };
            let done = target.publish(fetched.component, terms).await;
            target.close().await;
            let (new, view) = done?;
            print_published(&view, &fetched.origin, new, *json, terminal);
        }
        Action::List { json } => {
            let target = Target::find(config, &args.server).await?;
            let found = target.list().await;
            target.close().await;
            let found = found?;
            match json {
                true => terminal.line(&format!("{:#}", Value::Array(found))),
                false => found.iter().for_each(|view| print_entry(view, terminal)),
            }
        }
        Action::Remove { slug, version } => {
            let target = Target::find(config, &args.server).await?;
            let done = target.deprecate(slug, version).await;
            target.close().await;
            done?;
            terminal.good(&format!(
                "{slug} {version} is deprecated: only calls that name this version use it"
            ));
        }
    }
    Ok(())
}

async fn fetch(from: &str, access: &Access) -> anyhow::Result<Fetched> {
    if from.starts_with(OCI_SCHEME) {
        let pulled = RegistryReference::new(from, access)?.pull().await?;
        return Ok(Fetched {
            origin: format!("{OCI_SCHEME}{}", pulled.reference),
            component: pulled.component,
            signature: pulled.signature,
        });
    }
    let path = Path::new(from);
    let read = tokio::fs::read(path).await;
    let component = read.with_context(|| {
        format!("cannot read the file {from}; a reference to a registry begins with {OCI_SCHEME}")
    })?;
    let signature = signature_beside(path)?;
    Ok(Fetched {
        origin: from.to_owned(),
        component: component.into(),
        signature,
    })
}

/// Reads the signature file that `toolkit sign` wrote next to a component, if there is one.
pub(super) fn signature_beside(component: &Path) -> anyhow::Result<Option<String>> {
    let mut name = component.as_os_str().to_owned();
    name.push(".minisig");
    let path = PathBuf::from(name);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text)),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(cause).with_context(|| format!("cannot read {}", path.display())),
    }
}

fn print_published(view: &Value, origin: &str, new: bool, json: bool, terminal: Terminal) {
    if json {
        let mut view = view.clone();
        view["origin"] = origin.into();
        return terminal.line(&format!("{view:#}"));
    }
    let done = if new {
        "is published"
    } else {
        "was already published with the same bytes"
    };
    terminal.good(&format!(
        "{} {} {done}",
        text(view, "slug"),
        text(view, "version")
    ));
    terminal.pair("from", origin);
    terminal.pair("component", text(view, "digest"));
    if let Some(key) = view["signed_by"].as_str() {
        terminal.pair("signed by", key);
    }
}

fn print_entry(view: &Value, terminal: Terminal) {
    let signed = view["signed_by"]
        .as_str()
        .map_or_else(String::new, |key| format!("  signed by {key}"));
    let deprecated = if view["is_deprecated"] == true {
        "  deprecated"
    } else {
        ""
    };
    let columns = format!("{:<24}  {}", text(view, "slug"), text(view, "version"));
    terminal.entry(
        &columns,
        &format!("{}{signed}{deprecated}", text(view, "digest")),
    );
}
