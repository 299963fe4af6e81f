//! Compilers of other languages, installed once for all toolkits.
//!
//! Each compiler has its own folder in the user's cache, named by a digest of its files, so that
//! another release of this command uses another folder. Packages come from the language's registry,
//! at pinned versions whose digests are checked. Install scripts are not run.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::{Language, files};
use crate::{host, progress};

/// Name of the file that marks a complete installation.
const READY_FILE: &str = "ready";
/// Python version of the compiler, which determines the packages that a toolkit may use.
const PYTHON_VERSION: &str = "3.14";
/// Python program that runs `componentize-py` without its own traceback, which says nothing about
/// the toolkit.
const COMPONENTIZE_SCRIPT: &str = "
import sys
from componentize_py import script
try:
    sys.exit(script())
except AssertionError as problem:
    sys.exit(str(problem).split('\\nCaused by:')[0].strip())
";

/// An installed compiler.
#[derive(Debug)]
pub(crate) struct Compiler {
    language: Language,
    folder: PathBuf,
}

/// Finds the compiler of a language, or installs it.
pub(crate) fn prepare(language: Language) -> Result<Compiler> {
    let files = language.compiler();
    let name = files::digest_of(files.iter().map(|(path, text)| (*path, text.as_bytes())));
    let compilers = host::cache()?.join("compilers");
    let folder = compilers.join(format!("{}-{}", language.name(), &name[..16]));
    if !folder.join(READY_FILE).is_file() {
        let fresh = compilers.join(format!("{}.new", std::process::id()));
        files::write(&fresh, files)?;
        install(language, &fresh).inspect_err(|_| drop(fs::remove_dir_all(&fresh)))?;
        fs::write(fresh.join(READY_FILE), "")
            .with_context(|| format!("cannot write to {}", fresh.display()))?;
        // Another run of this command may have installed the same compiler meanwhile.
        if fs::rename(&fresh, &folder).is_err() {
            fs::remove_dir_all(&fresh)
                .with_context(|| format!("cannot remove {}", fresh.display()))?;
        }
    }
    Ok(Compiler { language, folder })
}

fn install(language: Language, folder: &Path) -> Result<()> {
    let _spinner = progress::spinner(&format!(
        "installing the compiler of {} toolkits",
        language.name()
    ));
    match language {
        Language::Js => npm(folder),
        Language::Python => {
            let mut pip = pip(folder, "requirements.txt", &folder.join("packages"));
            pip.args(["--require-hashes", "--no-deps"]);
            run_install(&mut pip, language)
        }
    }
}

impl Compiler {
    /// Compiles the toolkit in `folder`, whose library is in `kept`, to a component.
    pub(super) fn compile(
        &self,
        folder: &Path,
        entry: &str,
        kept: &Path,
        output: &Path,
    ) -> Result<()> {
        match self.language {
            Language::Js => {
                if has_dependencies(folder)? {
                    npm(folder)?;
                }
                let asked = json!({
                    "entry": folder.join(entry),
                    "library": kept.join("toolkit-sdk"),
                    "output": output,
                });
                let mut node = Command::new("node");
                node.arg(self.folder.join("build.mjs"))
                    .arg(asked.to_string());
                run_compiler(&mut node, self.language)
            }
            Language::Python => {
                let environment = kept.join("environment");
                requirements(folder, &environment)?;
                let mut python = Command::new("python3");
                python
                    .args(["-c", COMPONENTIZE_SCRIPT, "--wit-path"])
                    .arg(self.folder.join("wit"));
                python
                    .args([
                        "--world",
                        "toolkit",
                        "componentize",
                        "toolkit_entry",
                        "--python-path",
                    ])
                    .arg(kept);
                python
                    .arg("--python-path")
                    .arg(folder)
                    .arg("--output")
                    .arg(output);
                // Without an environment the compiler would use any packages installed on this
                // machine.
                python
                    .env("PYTHONPATH", self.folder.join("packages"))
                    .env("VIRTUAL_ENV", environment);
                python.env("RUST_BACKTRACE", "0");
                run_compiler(&mut python, self.language)
            }
        }
    }
}

/// Installs the packages of a `package.json`.
fn npm(folder: &Path) -> Result<()> {
    let mut npm = Command::new("npm");
    npm.args([
        "install",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel",
        "error",
    ])
    .current_dir(folder);
    run_install(&mut npm, Language::Js)
}

fn has_dependencies(folder: &Path) -> Result<bool> {
    let file = folder.join("package.json");
    let Ok(text) = fs::read(&file) else {
        return Ok(false);
    };
    let package: Value =
        serde_json::from_slice(&text).with_context(|| format!("{} is not JSON", file.display()))?;
    Ok(package["dependencies"]
        .as_object()
        .is_some_and(|packages| !packages.is_empty()))
}

/// Installs the packages of a `requirements.txt`. Only pure Python packages run in a toolkit.
fn requirements(folder: &Path, environment: &Path) -> Result<()> {
    let packages = environment.join("lib").join("site-packages");
    // Packages of an earlier list must not stay importable.
    drop(fs::remove_dir_all(environment));
    fs::create_dir_all(&packages)
        .with_context(|| format!("cannot make the folder {}", packages.display()))?;
    let file = folder.join("requirements.txt");
    if !file.is_file() {
        return Ok(());
    }
    let mut pip = pip(folder, "requirements.txt", &packages);
    pip.args([
        "--platform",
        "any",
        "--implementation",
        "py",
        "--abi",
        "none",
        "--python-version",
        PYTHON_VERSION,
    ]);
    run_install(&mut pip, Language::Python).with_context(|| {
        format!(
            "cannot install the packages in {}; a toolkit can use only packages written in pure Python",
            file.display()
        )
    })
}

fn pip(folder: &Path, list: &str, target: &Path) -> Command {
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
        "--no-compile",
    ]);
    pip.args(["--root-user-action", "ignore"]);
    pip.args(["--only-binary", ":all:", "--requirement", list, "--target"])
        .arg(target)
        .current_dir(folder);
    pip
}

/// Runs an installation step. Its output goes to the user.
fn run_install(command: &mut Command, language: Language) -> Result<()> {
    if !run(command, language)? {
        let what = command.get_program().to_string_lossy();
        bail!(
            "`{what}` could not install the compiler; see its output above, or: {}",
            language.missing()
        );
    }
    Ok(())
}

fn run_compiler(command: &mut Command, language: Language) -> Result<()> {
    if !run(command, language)? {
        bail!("the toolkit does not compile; see the compiler's output above");
    }
    Ok(())
}

fn run(command: &mut Command, language: Language) -> Result<bool> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    Ok(status.with_context(|| language.missing())?.success())
}

impl Language {
    /// Returns the Debian packages that the compiler needs.
    pub(crate) fn packages(self) -> &'static [&'static str] {
        match self {
            Self::Js => &["nodejs", "npm"],
            Self::Python => &["python3", "python3-pip"],
        }
    }

    /// Returns true if these programs are installed.
    pub(crate) fn is_installed(self) -> bool {
        let probes: &[&[&str]] = match self {
            Self::Js => &[&["node", "--version"], &["npm", "--version"]],
            Self::Python => &[&["python3", "-m", "pip", "--version"]],
        };
        probes.iter().all(|command| {
            let mut probe = Command::new(command[0]);
            probe
                .args(&command[1..])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            probe.status().is_ok_and(|status| status.success())
        })
    }

    /// Returns the installation advice for missing programs.
    pub(crate) fn missing(self) -> String {
        let needs = match self {
            Self::Js => "JavaScript toolkits are compiled with Node.js 18 or newer and npm",
            Self::Python => "Python toolkits are compiled with Python 3.9 or newer and pip",
        };
        format!(
            "{needs}; on Debian: apt-get install -y {}",
            self.packages().join(" ")
        )
    }
}
