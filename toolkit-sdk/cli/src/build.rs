//! `toolkit build`: builds `dist/<slug>.wasm` from source.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use chrono::Utc;
use clap::Args;
use manifest::{Manifest, Version};
use serde::Serialize;

use crate::{
    compiler,
    component::{self, Component},
    foreign::Source,
    import::{
        folder::{self, Guest},
        interpreter,
    },
    progress,
    toolchain::{self, Mode, Profile},
    workspace::{self, Module, Workspace},
};

/// Default folder of `--all`.
const DEFAULT_FOLDER: &str = "toolkits";

/// Compile a toolkit to a component.
#[derive(Debug, Args)]
pub(crate) struct Build {
    #[command(flatten)]
    target: BuildTarget,
    /// Dated version to publish under, instead of the one in the source.
    #[arg(long, value_name = "YYYYMMDD_NN")]
    version: Option<Version>,
    /// Folder for the components [default: `dist` in the workspace].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print a JSON array.
    #[arg(long)]
    json: bool,
}

/// Crates to build, and how to compile them.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct BuildTarget {
    /// Folder of the toolkit, or of a workspace of toolkits [default: the current one]; or an
    /// existing component, if nothing is to be built.
    path: Option<PathBuf>,
    /// Every toolkit of the workspace at PATH [default: `toolkits` if there is such a folder].
    #[arg(long)]
    all: bool,
    /// Toolchain to compile with [default: the first that works here].
    #[arg(long, value_enum, env = "TOOLKIT_TOOLCHAIN")]
    toolchain: Option<Mode>,
    /// Profile of the compiler.
    #[arg(skip)]
    profile: Profile,
}

/// A built toolkit.
#[derive(Debug, Serialize)]
pub(crate) struct Built {
    /// Path of the component.
    pub(crate) file: PathBuf,
    /// Folder of the crate.
    pub(crate) folder: PathBuf,
    pub(crate) sha256: String,
    /// Size of the component in bytes.
    pub(crate) size: u64,
    pub(crate) imports: Vec<String>,
    #[serde(skip)]
    pub(crate) manifest: Manifest,
    /// True if neither the author nor an argument chose the version.
    #[serde(skip)]
    pub(crate) is_dated: bool,
    /// Report of the import in the folder, if there is one.
    #[serde(skip)]
    pub(crate) report: Option<import::Report>,
}

/// Runs the command.
pub(crate) fn run(options: &Build) -> Result<()> {
    let built = build(
        &options.target,
        options.version.as_ref(),
        options.out.as_deref(),
    )?;
    if options.json {
        let list: Vec<_> = built.iter().map(record).collect();
        println!("{}", serde_json::to_string_pretty(&list)?);
    } else if options.target.all {
        built.iter().for_each(summarize);
    } else {
        built.iter().for_each(report);
    }
    Ok(())
}

impl BuildTarget {
    /// Selects the crate or crates at a path.
    pub(crate) fn at(path: PathBuf, toolchain: Option<Mode>) -> Self {
        Self {
            path: Some(path),
            all: false,
            toolchain,
            profile: Profile::Published,
        }
    }

    /// Compiles with another profile.
    pub(crate) fn with_profile(self, profile: Profile) -> Self {
        Self { profile, ..self }
    }

    /// Returns the given path if it is a file.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.path.as_deref().filter(|path| path.is_file())
    }

    /// Returns the named component, or builds the named crates and returns their components.
    pub(crate) fn components(&self, version: Option<&Version>) -> Result<Vec<PathBuf>> {
        match (self.file(), version) {
            (Some(file), None) => Ok(vec![file.to_owned()]),
            (Some(file), Some(_)) => {
                bail!(
                    "{} is a built component; use --version with a folder",
                    file.display()
                )
            }
            (None, version) => Ok(build(self, version, None)?
                .into_iter()
                .map(|built| built.file)
                .collect()),
        }
    }

    fn folder(&self) -> PathBuf {
        match &self.path {
            Some(path) => path.clone(),
            None if self.all && Path::new(DEFAULT_FOLDER).join("Cargo.toml").is_file() => {
                DEFAULT_FOLDER.into()
            }
            None => ".".into(),
        }
    }
}

/// Checks that a folder contains a toolkit in any language.
pub(crate) fn check_folder(folder: &Path) -> Result<()> {
    let is_toolkit = folder.join("Cargo.toml").is_file()
        || folder::is_alone(folder)
        || Source::at(folder).is_some();
    if is_toolkit {
        Ok(())
    } else {
        Err(workspace::not_a_toolkit(folder))
    }
}

/// Builds the components and writes them.
pub(crate) fn build(
    what: &BuildTarget,
    version: Option<&Version>,
    out: Option<&Path>,
) -> Result<Vec<Built>> {
    if let Some(file) = what.file() {
        bail!("{} is a file; name the folder of a toolkit", file.display());
    }
    let folder = what.folder();
    // With `--all`, all components go to one folder. A single toolkit keeps its own `dist`.
    let shared = what.all.then(|| folder.join("dist"));
    let apart = out.or(shared.as_deref());
    let mut within = vec![folder.clone()];
    if what.all {
        within.extend(folders_in(&folder)?);
    }
    let imports: Vec<&PathBuf> = within
        .iter()
        .filter(|folder| folder::is_alone(folder))
        .collect();
    let others: Vec<Source> = within
        .iter()
        .filter_map(|folder| Source::at(folder))
        .collect();
    let mut built: Vec<Built> = Vec::new();
    if imports.is_empty() && others.is_empty() || folder.join("Cargo.toml").is_file() {
        built.extend(build_crates(what, &folder, version, out)?);
    }
    if !imports.is_empty() {
        built.extend(build_imports(&imports, version, apart)?);
    }
    for source in &others {
        built.push(build_foreign(source, version, apart)?);
    }
    built.sort_by(|one, other| one.file.cmp(&other.file));
    if let Some(pair) = built.windows(2).find(|pair| pair[0].file == pair[1].file) {
        let first = pair[0].folder.display();
        let second = pair[1].folder.display();
        bail!(
            "{first} and {second} have the same slug `{}`; rename one of them",
            pair[0].manifest.slug
        );
    }
    Ok(built)
}

/// Builds crates: one run of cargo compiles all of them, then each is encoded.
fn build_crates(
    what: &BuildTarget,
    folder: &Path,
    version: Option<&Version>,
    out: Option<&Path>,
) -> Result<Vec<Built>> {
    let mode = toolchain::find(what.toolchain)?;
    let workspace = Workspace::read(mode, folder)?;
    let packages = if what.all {
        workspace.all()?
    } else {
        workspace.select(folder)?
    };
    let modules = workspace.compile(mode, what.profile, &packages)?;
    let out = out.map_or_else(|| workspace.root.join("dist"), Path::to_owned);
    let counter = progress::counter("encoding", modules.len());
    modules
        .iter()
        .map(|module| {
            let (made, report) = encode(module, version, &workspace.cache(mode, what.profile))?;
            counter.step();
            finish(made, report, &module.package.folder, &out)
        })
        .collect()
}

/// Lists the folders in a folder, sorted by name.
fn folders_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut folders: Vec<_> = read
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    Ok(folders)
}

/// Builds imports without a crate. All of them share one guest, which is part of this command.
fn build_imports(
    folders: &[&PathBuf],
    version: Option<&Version>,
    out: Option<&Path>,
) -> Result<Vec<Built>> {
    let _spinner = progress::spinner("making tools");
    folders
        .iter()
        .map(|folder| {
            let (made, report) = folder::added(
                folder,
                interpreter::INTERPRETER_MODULE.to_vec(),
                serde_json::Value::Null,
            )
            .and_then(|guest| component_of(guest, version))
            .with_context(|| format!("cannot build {}", folder.display()))?;
            let out = out.map_or_else(|| folder.join("dist"), Path::to_owned);
            finish(made, report, folder, &out)
        })
        .collect()
}

fn component_of(
    guest: Guest,
    version: Option<&Version>,
) -> Result<(Component, Option<import::Report>)> {
    let made = component::from_module(&guest.core, guest.described, version, &today()?)?;
    Ok((made, guest.report))
}

/// Encodes a core module as a component, together with the import in its folder. Returns the
/// component and the report of the import.
fn encode(
    module: &Module,
    version: Option<&Version>,
    cache: &Path,
) -> Result<(Component, Option<import::Report>)> {
    let core = read_file(&module.file)?;
    let lean = compiler::lean(&module.file)
        .map(|file| read_file(&file))
        .transpose()?;
    component::describe(&core, cache)
        .and_then(|described| {
            folder::added(&module.package.folder, lean.unwrap_or(core), described)
        })
        .and_then(|guest| component_of(guest, version))
        .with_context(|| format!("cannot build `{}`", module.package.name))
}

fn read_file(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}

fn build_foreign(source: &Source, version: Option<&Version>, out: Option<&Path>) -> Result<Built> {
    let made = source
        .compile()
        .and_then(|compiled| {
            component::describe_with(compiled.component, compiled.described, version, &today()?)
        })
        .with_context(|| format!("cannot build {}", source.folder.display()))?;
    finish(
        made,
        None,
        &source.folder,
        &out.map_or_else(|| source.folder.join("dist"), Path::to_owned),
    )
}

/// Writes a component and its digest.
fn finish(
    made: Component,
    report: Option<import::Report>,
    folder: &Path,
    out: &Path,
) -> Result<Built> {
    let slug = &made.manifest.slug;
    if !slug
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    {
        bail!(
            "`{slug}`, the slug of {}, cannot name a file; use a-z, 0-9 and _",
            folder.display()
        );
    }
    fs::create_dir_all(out).with_context(|| format!("cannot make the folder {}", out.display()))?;
    let file = out.join(format!("{slug}.wasm"));
    let sha256 = write_component(&file, slug, &made.bytes)?;
    let size = made.bytes.len() as u64;
    Ok(Built {
        file,
        folder: folder.to_owned(),
        sha256,
        size,
        imports: made.imports,
        manifest: made.manifest,
        is_dated: made.is_dated,
        report,
    })
}

/// Writes the component of a toolkit and the file with its digest, and returns the digest.
pub(crate) fn write_component(file: &Path, slug: &str, bytes: &[u8]) -> Result<String> {
    let sha256 = sandbox::Digest::compute(bytes).to_string();
    write(file, bytes)?;
    write(
        &file.with_extension("wasm.sha256"),
        format!("{sha256}  {slug}.wasm\n").as_bytes(),
    )?;
    Ok(sha256)
}

fn write(file: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(file, bytes).with_context(|| format!("cannot write {}", file.display()))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a version is dated by the day it was built; the argument overrides it"
)]
fn today() -> Result<Version> {
    Ok(Utc::now().format("%Y%m%d_00").to_string().parse()?)
}

fn record(built: &Built) -> serde_json::Value {
    let Manifest {
        tools, triggers, ..
    } = &built.manifest;
    serde_json::json!({
        "slug": built.manifest.slug,
        "version": built.manifest.version,
        "file": built.file,
        "sha256": built.sha256,
        "size": built.size,
        "imports": built.imports,
        "tools": tools.iter().map(|tool| tool.slug.as_str()).collect::<Vec<_>>(),
        "triggers": triggers.iter().map(|trigger| trigger.slug.as_str()).collect::<Vec<_>>(),
    })
}

/// Prints one line about one of many toolkits.
fn summarize(built: &Built) {
    let Manifest {
        slug,
        version,
        tools,
        triggers,
        ..
    } = &built.manifest;
    println!(
        "{slug} {version}  {}  {}, {}  {}",
        progress::size(built.size),
        progress::counted(tools.len(), "tool"),
        progress::counted(triggers.len(), "trigger"),
        built.file.display()
    );
}

fn report(built: &Built) {
    let Manifest {
        slug,
        version,
        tools,
        triggers,
        ..
    } = &built.manifest;
    println!("{slug} {version}  {}", built.file.display());
    println!(
        "  size     {}  sha256 {}",
        progress::size(built.size),
        built.sha256
    );
    println!("  imports  {}", built.imports.join(", "));
    println!("  tools    {} ({} triggers)", tools.len(), triggers.len());
    for tool in tools {
        println!("    {}", tool.slug);
    }
}
