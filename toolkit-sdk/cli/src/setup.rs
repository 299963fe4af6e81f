//! `toolkit setup`: finds or installs the compiler for toolkits, and lets cargo find the SDK.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::{
    foreign::{self, Language},
    progress,
    toolchain::{self, AttemptedSteps, DEBIAN_PACKAGES, GUEST_TARGET, Mode, Step},
    workspace::Workspace,
};

/// Timeout of `rustup target add`, which downloads about 20 MB. Without a network it fails
/// immediately or hangs.
const TARGET_INSTALL_TIMEOUT: Duration = Duration::from_secs(90);

/// Find or install what compiles toolkits.
///
/// In the folder of a toolkit in Rust, it also lets cargo find the SDK.
#[derive(Debug, Args)]
pub(crate) struct Setup {
    /// Folder of a toolkit in Rust, such as a fresh clone, from which cargo finds the SDK.
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Set up for toolkits in another language than Rust; may be given several times.
    #[arg(long, value_enum, conflicts_with = "toolchain")]
    lang: Vec<Language>,
    /// Look only for this toolchain.
    #[arg(long, value_enum, env = "TOOLKIT_TOOLCHAIN")]
    toolchain: Option<Mode>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(options: &Setup) -> Result<()> {
    if !options.lang.is_empty() {
        return options
            .lang
            .iter()
            .try_for_each(|language| other(*language, options.json));
    }
    let mode = match options.toolchain {
        Some(wanted) => toolchain::wanted_mode(toolchain::probe(), wanted)?,
        None => search()?,
    };
    let linked = link_sdk(mode, &options.path)?;
    if options.json {
        println!(
            "{}",
            serde_json::json!({ "toolchain": mode.folder(), "description": mode.describe() })
        );
    } else {
        println!("toolkits are compiled by {}", mode.describe());
        if linked {
            println!("cargo finds the SDK from {}", options.path.display());
        }
    }
    Ok(())
}

/// Lets cargo find the SDK from the toolkit in a folder. Returns false if no toolkit takes it from
/// this command.
fn link_sdk(mode: Mode, folder: &Path) -> Result<bool> {
    if !folder.join("Cargo.toml").is_file() {
        return Ok(false);
    }
    Workspace::read(mode, folder)?.link_sdk()
}

/// Installs the compiler of another language, and the packages that it needs if this is possible.
fn other(language: Language, json: bool) -> Result<()> {
    let packages = language.packages();
    if !language.is_installed() {
        if !toolchain::probe().apt {
            bail!("{}", language.missing());
        }
        install(packages)?;
    }
    foreign::prepare(language)?;
    if json {
        println!("{}", serde_json::json!({ "language": language.name() }));
    } else {
        println!("{} toolkits can be compiled", language.name());
    }
    Ok(())
}

fn search() -> Result<Mode> {
    let mut attempted = AttemptedSteps::default();
    loop {
        match toolchain::next(toolchain::probe(), attempted) {
            Step::Use(mode) => return Ok(mode),
            Step::AddTarget => {
                attempted.target = true;
                add_target();
            }
            Step::Install if toolchain::is_debian_recent() => {
                attempted.packages = true;
                install(&DEBIAN_PACKAGES).with_context(toolchain::install_instructions)?;
            }
            Step::Install | Step::GiveUp => bail!(
                "no toolchain compiles for {GUEST_TARGET} here\n\n{}",
                toolchain::install_instructions()
            ),
        }
    }
}

/// Adds the target with rustup. A failure is ignored: the search continues with its next step.
fn add_target() {
    let _spinner = progress::spinner(&format!("rustup target add {GUEST_TARGET}"));
    let mut command = toolchain::clean_command("rustup");
    command
        .args(["target", "add", GUEST_TARGET])
        .env("RUSTUP_MAX_RETRIES", "0");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Ok(child) = command.spawn() {
        wait(child, TARGET_INSTALL_TIMEOUT);
    }
}

/// Waits for a child process and kills it after the limit.
fn wait(mut child: Child, limit: Duration) {
    let deadline = Instant::now() + limit;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() >= deadline {
            // The process may have ended meanwhile, and has ended afterwards in any case.
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn install(packages: &[&str]) -> Result<()> {
    eprintln!("apt-get install -y {}", packages.join(" "));
    let mut command = Command::new("apt-get");
    command
        .args(["install", "-y", "--no-install-recommends"])
        .args(packages)
        .env("DEBIAN_FRONTEND", "noninteractive");
    // The output of apt is hidden, because standard output is reserved for the result.
    let status = command
        .stdout(Stdio::null())
        .status()
        .context("cannot run apt-get")?;
    if !status.success() {
        bail!("apt-get could not install {}", packages.join(" "));
    }
    Ok(())
}
