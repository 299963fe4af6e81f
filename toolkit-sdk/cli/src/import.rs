//! `toolkit import`: creates a toolkit without code from the description of an API.

pub(crate) mod folder;
pub(crate) mod interpreter;
mod mcp;
mod module;

use std::{
    collections::BTreeMap,
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use import::{Api, Report, Server, Unsupported};
use manifest::{AuthMode, AuthScheme, Field, Placement, Version};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    build::{self, BuildTarget, Built},
    progress, slug,
    toolchain::Mode,
};
use folder::Source;

/// Maximum number of lines of one kind in the report.
const MAX_SHOWN_LINES: usize = 12;

/// Make a toolkit from the description of an API.
///
/// The folder then builds, checks and publishes like any toolkit. Run it again when the description
/// changes: `overlay.toml`, where you choose, rename and correct, stays as it is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolkit import openapi petstore.yaml --slug petstore
  toolkit import openapi api.json --slug acme --auth bearer --server https://api.acme.com/v1
  toolkit import openapi api.json --slug acme --overlay acme.toml -o toolkits/acme
  toolkit import discovery calendar.v3.json --slug googlecalendar
  toolkit import graphql schema.graphql --slug acme --server https://api.acme.com/graphql
  toolkit import mcp https://mcp.acme.com/mcp --slug acme")]
pub(crate) struct Import {
    /// Kind of the description.
    kind: Kind,
    /// The description; `-` for standard input. Of an MCP server also its address.
    file: PathBuf,
    /// Slug of the toolkit.
    #[arg(long)]
    slug: String,
    /// Choices, names and corrections; copied into the folder.
    #[arg(long, value_name = "FILE")]
    overlay: Option<PathBuf>,
    /// Folder of the toolkit [default: the slug].
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Base address of the API, if the description lacks it or states another one.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Auth scheme, if the description does not name one: `bearer`, `basic`, `none`, `header:NAME`,
    /// `query:NAME`.
    #[arg(long, value_name = "HOW")]
    auth: Option<String>,
    /// Token for an MCP server whose tools are listed. It is not stored.
    #[arg(long, env = "TOOLKIT_MCP_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Dated version to build.
    #[arg(long, value_name = "YYYYMMDD_NN")]
    version: Option<Version>,
    /// Toolchain to compile with, if the folder is also a crate [default: the first that works
    /// here].
    #[arg(long, value_enum, env = "TOOLKIT_TOOLCHAIN")]
    toolchain: Option<Mode>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A kind of description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// A document of Google's API Discovery Service.
    Discovery,
    /// GraphQL: the schema language, or the answer to an introspection query.
    Graphql,
    /// The tools of an MCP server: its address, or the answer to `tools/list`.
    Mcp,
    /// OpenAPI 3.0 and 3.1, Swagger 2.0; JSON or YAML.
    Openapi,
}

impl Kind {
    fn read(self, bytes: &[u8]) -> import::Result<Api> {
        match self {
            Self::Discovery => import::discovery(bytes),
            Self::Graphql => import::graphql(bytes),
            Self::Mcp => import::mcp(bytes),
            Self::Openapi => import::openapi(bytes),
        }
    }
}

/// Runs the command.
pub(crate) async fn run(options: &Import) -> Result<()> {
    slug::check(&options.slug)?;
    let folder = options
        .out
        .clone()
        .unwrap_or_else(|| options.slug.clone().into());
    let bytes = options.read().await?;
    let api = {
        let _spinner =
            progress::spinner(&format!("reading {}", progress::size(bytes.len() as u64)));
        let api = options
            .kind
            .read(&bytes)
            .with_context(|| format!("cannot read {}", options.file.display()))?;
        options.settle(api)?
    };
    Source {
        kind: options.kind,
        slug: options.slug.clone(),
        api,
    }
    .write(&folder)?;
    if let Some(given) = &options.overlay {
        // The overlay is parsed before it is copied, so that an invalid one does not replace the
        // folder's own.
        folder::read_overlay(given)?;
        let file = folder::overlay_like(&folder, given);
        fs::copy(given, &file).with_context(|| format!("cannot write {}", file.display()))?;
    }
    ignore(&folder)?;
    let components = build::build(
        &BuildTarget::at(folder, options.toolchain),
        options.version.as_ref(),
        None,
    )?;
    let built = components.first().context("nothing was built")?;
    let report = built
        .report
        .as_ref()
        .context("import.json was deleted during the build")?;
    if options.json {
        println!("{}", serde_json::to_string_pretty(&record(built, report))?);
    } else {
        print(built, report);
    }
    Ok(())
}

fn read(file: &Path) -> Result<Vec<u8>> {
    if file == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin()
            .read_to_end(&mut bytes)
            .context("cannot read standard input")?;
        return Ok(bytes);
    }
    fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}

/// Excludes build outputs and secret keys from version control.
fn ignore(folder: &Path) -> Result<()> {
    let file = folder.join(".gitignore");
    if file.is_file() {
        return Ok(());
    }
    fs::write(&file, "/dist\n/target\n*.key\n")
        .with_context(|| format!("cannot write {}", file.display()))
}

impl Import {
    async fn read(&self) -> Result<Vec<u8>> {
        let url = self
            .file
            .to_str()
            .filter(|text| text.starts_with("https://") || text.starts_with("http://"));
        match url {
            Some(url) if self.kind == Kind::Mcp => {
                let _spinner = progress::spinner(&format!("asking {url}"));
                mcp::listing(url, self.token.as_deref()).await
            }
            _ => read(&self.file),
        }
    }

    /// Applies the command line options.
    fn settle(&self, mut api: Api) -> Result<Api> {
        if let Some(url) = &self.server {
            let variables = api
                .servers
                .first()
                .map(|server| server.variables.clone())
                .unwrap_or_default();
            api.servers = vec![Server {
                url: url.trim_end_matches('/').to_owned(),
                variables,
            }];
            api.operations
                .iter_mut()
                .for_each(|operation| operation.server = None);
        }
        if let Some(how) = &self.auth {
            api.auth = auth(how)?;
        }
        Ok(api)
    }
}

/// Parses the value of `--auth`.
fn auth(how: &str) -> Result<Vec<AuthScheme>> {
    let (mode, name, fields, placement) = match how.split_once(':') {
        None if how == "none" => return Ok(Vec::new()),
        None if how == "bearer" => (
            AuthMode::BearerToken,
            "Access token",
            vec![Field::new("token", "Token", true)],
            Placement::header("authorization", "Bearer {token}"),
        ),
        None if how == "basic" => (
            AuthMode::Basic,
            "User name and password",
            vec![
                Field::new("username", "User name", false),
                Field::new("password", "Password", true),
            ],
            Placement::basic("{username}", "{password}"),
        ),
        Some((place @ ("header" | "query"), name)) if !name.is_empty() => (
            AuthMode::ApiKey,
            "API key",
            vec![Field::new("api_key", "API key", true)],
            match place {
                "header" => Placement::header(name.to_ascii_lowercase(), "{api_key}"),
                _ => Placement::query(name, "{api_key}"),
            },
        ),
        _ => bail!(
            "`{how}` is not one of bearer, basic, none, header:NAME and query:NAME; write other schemes in the overlay"
        ),
    };
    Ok(vec![AuthScheme {
        mode,
        name: name.to_owned(),
        fields,
        request: vec![placement],
        ..AuthScheme::default()
    }])
}

fn record(built: &Built, report: &Report) -> serde_json::Value {
    json!({
        "slug": built.manifest.slug,
        "version": built.manifest.version,
        "folder": built.folder,
        "file": built.file,
        "sha256": built.sha256,
        "size": built.size,
        "operations": report.taken,
        "not_chosen": report.not_chosen,
        "unsupported": report.unsupported,
    })
}

fn print(built: &Built, report: &Report) {
    let (unusable, parts): (Vec<_>, Vec<_>) =
        report.unsupported.iter().partition(|entry| entry.unusable);
    let left_out: std::collections::BTreeSet<_> = unusable
        .iter()
        .filter_map(|entry| entry.operation.as_ref())
        .collect();
    println!(
        "{} {}  {}",
        built.manifest.slug,
        built.manifest.version,
        built.file.display()
    );
    println!("  size        {}", progress::size(built.size));
    println!(
        "  operations  {} taken, {} not chosen, {} left out",
        report.taken.len(),
        report.not_chosen,
        left_out.len()
    );
    let auth: Vec<&str> = built
        .manifest
        .auth
        .iter()
        .map(|scheme| scheme.mode.as_str())
        .collect();
    println!(
        "  auth        {}",
        if auth.is_empty() {
            "none; add one with --auth".to_owned()
        } else {
            auth.join(", ")
        }
    );
    let hosts: Vec<&str> = built
        .manifest
        .egress
        .iter()
        .map(|rule| rule.host.as_str())
        .take(MAX_SHOWN_LINES)
        .collect();
    println!("  hosts       {}", hosts.join(", "));
    list("left out, because they need an unsupported part", &unusable);
    list("not carried over", &parts);
}

/// Prints unsupported parts, each with the operations that lack them.
fn list(title: &str, entries: &[&Unsupported]) {
    if entries.is_empty() {
        return;
    }
    let mut by_what: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for entry in entries {
        by_what
            .entry(&entry.what)
            .or_default()
            .extend(entry.operation.as_deref());
    }
    println!("  {title}:");
    let mut groups: Vec<_> = by_what.into_iter().collect();
    groups.sort_by_key(|(what, operations)| (std::cmp::Reverse(operations.len()), *what));
    for (what, operations) in groups.iter().take(MAX_SHOWN_LINES) {
        match operations.as_slice() {
            [] => println!("    {what}"),
            [one] => println!("    {what} ({one})"),
            [first, ..] => println!("    {what} ({first} and {} more)", operations.len() - 1),
        }
    }
    if groups.len() > MAX_SHOWN_LINES {
        println!(
            "    and {} more; --json lists all",
            groups.len() - MAX_SHOWN_LINES
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stands_for_a_way_to_connect() {
        assert_eq!(auth("none").unwrap(), []);
        for (how, mode) in [
            ("bearer", AuthMode::BearerToken),
            ("basic", AuthMode::Basic),
            ("header:X-Key", AuthMode::ApiKey),
            ("query:key", AuthMode::ApiKey),
        ] {
            assert_eq!(auth(how).unwrap()[0].mode, mode, "{how}");
        }
        for wrong in ["", "token", "header:", "cookie:a"] {
            assert!(auth(wrong).is_err(), "{wrong}");
        }
    }
}
