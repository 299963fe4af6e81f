//! The author's crates: selection of toolkits and their compilation with cargo.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Error, Result, anyhow, bail};
use serde::Deserialize;

use crate::{
    sdk,
    shared_target::SharedTarget,
    toolchain::{Mode, Profile},
};

/// A cargo workspace with toolkits.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// Folder of the workspace.
    pub(crate) root: PathBuf,
    /// Target folder of cargo; each mode has its own subfolder.
    target: PathBuf,
    /// All crates that are compiled to a module.
    toolkits: Vec<Package>,
    /// True if a crate takes the SDK from this command.
    packed_sdk: bool,
}

/// Crate of one toolkit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Package id of cargo, which no dependency of the same name has.
    pub(crate) id: String,
    /// Folder of its `Cargo.toml`.
    pub(crate) folder: PathBuf,
    /// Name of its module, without an extension.
    pub(crate) module: String,
}

/// A compiled core module.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) package: Package,
    pub(crate) file: PathBuf,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<MetadataPackage>,
    workspace_root: PathBuf,
    target_directory: PathBuf,
}

#[derive(Deserialize)]
struct MetadataPackage {
    id: String,
    name: String,
    manifest_path: PathBuf,
    targets: Vec<Target>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// Registry or repository. `None` for a path.
    source: Option<String>,
}

/// One line of cargo's `--message-format=json`.
#[derive(Deserialize)]
struct Message {
    reason: String,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

/// Returns the error for a folder that contains no toolkit in any language.
pub(crate) fn not_a_toolkit(folder: &Path) -> Error {
    let shown = folder.display();
    let problem = if folder.exists() {
        "has no Cargo.toml, tools.js, tools.ts, tools.py or import.json"
    } else {
        "does not exist"
    };
    anyhow!("`{shown}` {problem}; name the folder of a toolkit, or create one with `toolkit new`")
}

impl MetadataPackage {
    fn takes_packed_sdk(&self) -> bool {
        self.dependencies.iter().any(|dependency| {
            let source = dependency.source.as_deref().unwrap_or_default();
            dependency.name == sdk::LIBRARY_NAME && source.starts_with("registry+")
        })
    }
}

impl Target {
    fn is_module(&self) -> bool {
        self.kind.iter().any(|kind| kind == "cdylib")
    }
}

impl Workspace {
    /// Reads the metadata of the crate or workspace in `folder` from cargo.
    pub(crate) fn read(mode: Mode, folder: &Path) -> Result<Self> {
        let file = folder.join("Cargo.toml");
        if !file.is_file() {
            return Err(not_a_toolkit(folder));
        }
        let mut command = mode.cargo();
        command
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .current_dir(folder);
        let output = command
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| cannot_run(&command))?;
        if !output.status.success() {
            bail!("cargo cannot read {}", file.display());
        }
        let metadata: Metadata = serde_json::from_slice(&output.stdout)
            .context("cannot read the output of cargo metadata")?;
        Ok(Self {
            root: metadata.workspace_root,
            target: metadata.target_directory,
            packed_sdk: metadata
                .packages
                .iter()
                .any(MetadataPackage::takes_packed_sdk),
            toolkits: metadata.packages.into_iter().filter_map(package).collect(),
        })
    }

    /// Returns the toolkit in `folder`, or all toolkits if it is the folder of a workspace without
    /// a crate.
    pub(crate) fn select(&self, folder: &Path) -> Result<Vec<Package>> {
        let folder = folder
            .canonicalize()
            .with_context(|| format!("cannot read {}", folder.display()))?;
        let matches: Vec<_> = self
            .toolkits
            .iter()
            .filter(|package| same_folder(&package.folder, &folder))
            .cloned()
            .collect();
        match matches.is_empty() {
            false => Ok(matches),
            true if same_folder(&self.root, &folder) => self.all(),
            true => bail!(
                "{} is a crate but not a toolkit; its Cargo.toml needs `[lib]` with `crate-type = [\"cdylib\"]`",
                folder.display()
            ),
        }
    }

    /// Returns all toolkits.
    pub(crate) fn all(&self) -> Result<Vec<Package>> {
        if self.toolkits.is_empty() {
            bail!(
                "no crate in {} is a toolkit; make one with `toolkit new`",
                self.root.display()
            );
        }
        Ok(self.toolkits.clone())
    }

    /// Returns the folder in which descriptions of compiled modules are cached.
    pub(crate) fn cache(&self, mode: Mode, profile: Profile) -> PathBuf {
        self.target.join(mode.folder_for(profile)).join("described")
    }

    /// Lets cargo find the SDK, if a crate takes it from this command. Returns true if one does.
    pub(crate) fn link_sdk(&self) -> Result<bool> {
        if self.packed_sdk {
            sdk::link(&self.root)?;
        }
        Ok(self.packed_sdk)
    }

    /// Compiles toolkits in one run of cargo, which prints its own progress and errors.
    pub(crate) fn compile(
        &self,
        mode: Mode,
        profile: Profile,
        packages: &[Package],
    ) -> Result<Vec<Module>> {
        let folder = mode.folder_for(profile);
        let target = self.target.join(&folder);
        let command = mode.cargo_build(profile);
        if !self.shares_target() {
            return self.compile_in(&target, command, packages);
        }
        let shared = SharedTarget::lock(&folder, packages)?;
        let modules = self.compile_in(&shared.folder, command, packages)?;
        modules
            .into_iter()
            .map(|module| shared.copy(module, &target))
            .collect()
    }

    /// Returns true if the compiled library is shared with other toolkits. An author who sets
    /// another target folder wants everything there.
    fn shares_target(&self) -> bool {
        self.packed_sdk && self.target == self.root.join("target")
    }

    fn compile_in(
        &self,
        target: &Path,
        mut command: Command,
        packages: &[Package],
    ) -> Result<Vec<Module>> {
        if self.packed_sdk {
            command.arg("--config").arg(sdk::link(&self.root)?);
        }
        for package in packages {
            command.args(["--package", &package.id]);
        }
        command.args([
            "--lib",
            "--message-format",
            "json-render-diagnostics",
            "--target-dir",
        ]);
        command.arg(target).current_dir(&self.root);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut child = command.spawn().with_context(|| cannot_run(&command))?;
        let mut modules = Vec::new();
        for line in BufReader::new(
            child
                .stdout
                .take()
                .context("cargo has no standard output")?,
        )
        .lines()
        {
            let line = line.context("cannot read cargo's output")?;
            let Ok(message) = serde_json::from_str::<Message>(&line) else {
                continue;
            };
            modules.extend(module(message, packages));
        }
        if !child
            .wait()
            .context("cannot read cargo's exit status")?
            .success()
        {
            bail!("the toolkit does not compile; see cargo's output above");
        }
        match packages
            .iter()
            .find(|package| !modules.iter().any(|module| module.package == **package))
        {
            Some(missing) => bail!("cargo made no module of `{}`", missing.name),
            None => Ok(modules),
        }
    }
}

fn package(package: MetadataPackage) -> Option<Package> {
    let folder = package.manifest_path.parent()?.to_owned();
    let module = package.targets.into_iter().find(Target::is_module)?;
    Some(Package {
        name: package.name,
        id: package.id,
        folder,
        module: module.name.replace('-', "_"),
    })
}

/// Returns the module that a message of cargo reports, if it belongs to one of the packages.
fn module(message: Message, packages: &[Package]) -> Option<Module> {
    if message.reason != "compiler-artifact"
        || !message.target.as_ref().is_some_and(Target::is_module)
    {
        return None;
    }
    let folder = message.manifest_path?;
    let package = packages
        .iter()
        .find(|package| folder.parent() == Some(&package.folder))?
        .clone();
    let file = message
        .filenames
        .into_iter()
        .find(|file| file.extension().is_some_and(|end| end == "wasm"))?;
    Some(Module { package, file })
}

fn same_folder(one: &Path, canonical: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| one == canonical) || one == canonical
}

fn cannot_run(command: &Command) -> String {
    format!(
        "cannot run {}; install Rust, then run `toolkit setup`",
        command.get_program().to_string_lossy()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_is_found_in_cargo_messages() {
        let ours = Package {
            name: "hello".to_owned(),
            id: "path+file:///work/hello#0.1.0".to_owned(),
            folder: "/work/hello".into(),
            module: "hello".to_owned(),
        };
        let read = |json: &str| {
            module(
                serde_json::from_str(json).unwrap(),
                std::slice::from_ref(&ours),
            )
        };
        let found = read(
            r#"{"reason":"compiler-artifact","manifest_path":"/work/hello/Cargo.toml","target":{"kind":["cdylib"],"name":"hello"},
                "filenames":["/t/hello.d","/t/hello.wasm"]}"#,
        );
        assert_eq!(found.unwrap().file, Path::new("/t/hello.wasm"));
        for other in [
            r#"{"reason":"compiler-artifact","manifest_path":"/work/hello/Cargo.toml","target":{"kind":["custom-build"],"name":"build-script-build"},"filenames":[]}"#,
            r#"{"reason":"compiler-artifact","manifest_path":"/work/else/Cargo.toml","target":{"kind":["cdylib"],"name":"hello"},"filenames":["/t/else.wasm"]}"#,
            r#"{"reason":"build-finished","success":true}"#,
        ] {
            assert!(read(other).is_none(), "{other}");
        }
    }

    #[test]
    fn folder_without_crate_error_names_toolkit_new() {
        let empty = tempfile::tempdir().unwrap();
        let error = Workspace::read(Mode::Native, empty.path())
            .unwrap_err()
            .to_string();
        assert!(error.contains("toolkit new"), "{error}");
    }
}
