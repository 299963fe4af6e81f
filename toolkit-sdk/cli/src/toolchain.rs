//! Search for a Rust toolchain that can compile toolkits.
//!
//! Problem: guests are compiled for `wasm32-unknown-unknown`. Many machines have a Rust toolchain
//! without that target, some of them without a way to download it. The standard library can then be
//! compiled from its source, by the active toolchain or by the distribution's.
//!
//! Guarantee: the order of [`next`] is the whole decision, a pure function of [`Probe`]. `toolkit
//! build` never changes the machine; only `toolkit setup` does. All settings reach cargo through
//! the environment, so that no file contains a path of a machine.

use std::{
    env,
    ffi::OsString,
    fmt::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::compiler;

/// Target of every toolkit.
pub(crate) const GUEST_TARGET: &str = "wasm32-unknown-unknown";
/// Debian packages of [`Mode::Debian`].
pub(crate) const DEBIAN_PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "lld"];

const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_STD_SOURCE: &str = "/usr/lib/rustlib/src/rust/library";
const DEBIAN_LINKER: &str = "wasm-ld";
/// Oldest version of Rust that compiles the SDK.
const MIN_RUST: &str = env!("CARGO_PKG_RUST_VERSION");
/// Linker that is part of Rust. The compiler adds its folder to the linker's search path.
const RUST_LINKER: &str = "rust-lld";

/// Optimization of a compiled toolkit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Profile {
    /// The author's release profile, with which toolkits are published.
    #[default]
    Published,
    /// Compiles an edit in a fraction of the time: crates are not optimized together.
    Quick,
}

impl Profile {
    /// Returns the variables of cargo that change the author's release profile.
    fn variables(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Published => &[],
            Self::Quick => &[
                ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
                ("CARGO_PROFILE_RELEASE_LTO", "off"),
            ],
        }
    }
}

/// Variables that an outer cargo or rustup may have set and that would select another compiler,
/// target or flag.
const INHERITED_VARIABLES: [&str; 14] = [
    "CARGO",
    "CARGO_BUILD_RUSTC",
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_MAKEFLAGS",
    "MAKEFLAGS",
    "MFLAGS",
    "RUSTC",
    "RUSTC_BOOTSTRAP",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTDOC",
    "RUSTFLAGS",
    "RUSTUP_TOOLCHAIN",
];

/// A way to compile a toolkit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// The active toolchain has the target.
    Native,
    /// The active toolchain compiles the standard library from its `rust-src`.
    BuildStd,
    /// Debian's toolchain compiles the standard library from `rust-web-src`.
    Debian,
}

/// Facts about this machine. Compilers older than [`MIN_RUST`] do not count.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Probe {
    /// True if the active `rustc` has the target's libraries.
    pub(crate) target: bool,
    /// True if the active `rustc` has the source of its standard library.
    pub(crate) source: bool,
    /// True if `rustup` is installed.
    pub(crate) rustup: bool,
    /// True if Debian's compiler, cargo, library source and `wasm-ld` are all installed.
    pub(crate) debian: bool,
    /// True if this process may install Debian packages.
    pub(crate) apt: bool,
}

/// Next step to get a toolchain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A working toolchain was found.
    Use(Mode),
    /// Run `rustup target add`, once.
    AddTarget,
    /// Run `apt-get install` for [`DEBIAN_PACKAGES`], once.
    Install,
    /// Manual installation is required.
    GiveUp,
}

/// Steps that were already tried or must not be taken.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AttemptedSteps {
    pub(crate) target: bool,
    pub(crate) packages: bool,
}

/// Decides the next step.
pub(crate) fn next(probed: Probe, attempted: AttemptedSteps) -> Step {
    match probed {
        Probe { target: true, .. } => Step::Use(Mode::Native),
        Probe { rustup: true, .. } if !attempted.target => Step::AddTarget,
        Probe { source: true, .. } => Step::Use(Mode::BuildStd),
        Probe { debian: true, .. } => Step::Use(Mode::Debian),
        Probe { apt: true, .. } if !attempted.packages => Step::Install,
        _ => Step::GiveUp,
    }
}

/// Finds a toolchain without changing the machine. Fails with advice on how to install one.
pub(crate) fn find(wanted: Option<Mode>) -> Result<Mode> {
    let probed = probe();
    if let Some(mode) = wanted {
        return wanted_mode(probed, mode);
    }
    match next(
        probed,
        AttemptedSteps {
            target: true,
            packages: true,
        },
    ) {
        Step::Use(mode) => Ok(mode),
        _ => bail!(
            "no toolchain compiles for {GUEST_TARGET} here; run `toolkit setup`\n\n{}",
            install_instructions()
        ),
    }
}

/// Returns the requested mode if this machine supports it.
pub(crate) fn wanted_mode(probed: Probe, mode: Mode) -> Result<Mode> {
    let (there, missing) = match mode {
        Mode::Native => (
            probed.target,
            format!(
                "the active rustc has no target {GUEST_TARGET}: `rustup target add {GUEST_TARGET}`"
            ),
        ),
        Mode::BuildStd => (
            probed.source,
            "the active rustc has no library source: `rustup component add rust-src`".to_owned(),
        ),
        Mode::Debian => (
            probed.debian,
            format!(
                "some of Debian's packages are missing: `apt-get install -y {}`",
                DEBIAN_PACKAGES.join(" ")
            ),
        ),
    };
    if there { Ok(mode) } else { bail!("{missing}") }
}

/// Returns the two installation options as text.
pub(crate) fn install_instructions() -> String {
    format!(
        "Rust {MIN_RUST} or later is needed. There are two ways to get it:\n  with rustup:                         rustup target add {GUEST_TARGET}\n  \
         as root, if Debian has that version: apt-get install -y {}",
        DEBIAN_PACKAGES.join(" ")
    )
}

/// Collects the facts about this machine.
pub(crate) fn probe() -> Probe {
    let libraries =
        rustc_output(&["--print", "target-libdir", "--target", GUEST_TARGET]).map(PathBuf::from);
    let sysroot = rustc_output(&["--print", "sysroot"]).map(PathBuf::from);
    let is_active_recent = is_recent(clean_command("rustc").arg("--version"));
    Probe {
        target: is_active_recent && libraries.is_some_and(|folder| has_core(&folder)),
        source: is_active_recent
            && sysroot.is_some_and(|root| {
                root.join("lib/rustlib/src/rust/library/std/Cargo.toml")
                    .is_file()
            }),
        rustup: on_path("rustup").is_some(),
        debian: Path::new(DEBIAN_CARGO).is_file()
            && Path::new(DEBIAN_STD_SOURCE).is_dir()
            && on_path(DEBIAN_LINKER).is_some()
            && is_recent(clean_command(DEBIAN_RUSTC).arg("--version")),
        apt: Path::new("/etc/debian_version").is_file()
            && on_path("apt-get").is_some()
            && is_root(),
    }
}

/// Returns true if Debian's compiler, which may not be installed yet, is recent.
pub(crate) fn is_debian_recent() -> bool {
    let package = ["show", "--no-all-versions", DEBIAN_PACKAGES[0]];
    is_recent(clean_command("apt-cache").args(package))
}

/// Returns true if a command prints a compiler version not older than [`MIN_RUST`].
fn is_recent(command: &mut Command) -> bool {
    let output = command.stderr(Stdio::null()).output();
    output.is_ok_and(|output| names_recent_version(&String::from_utf8_lossy(&output.stdout)))
}

/// Returns true if the version in `rustc 1.95.0 (…)`, or in the line `Version: 1.95.0+dfsg1-1` of a
/// package, is not older than [`MIN_RUST`].
fn names_recent_version(text: &str) -> bool {
    let line = text.lines().find_map(|line| {
        line.strip_prefix("rustc ")
            .or(line.strip_prefix("Version: "))
    });
    line.and_then(major_and_minor)
        .is_some_and(|version| Some(version) >= major_and_minor(MIN_RUST))
}

fn major_and_minor(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version
        .split(|c: char| !c.is_ascii_digit())
        .map(|number| number.parse::<u32>().ok());
    Some((numbers.next()??, numbers.next()??))
}

fn has_core(folder: &Path) -> bool {
    let Ok(entries) = folder.read_dir() else {
        return false;
    };
    entries.flatten().any(|entry| {
        let file_name = entry.file_name();
        let name = file_name.to_string_lossy();
        name.starts_with("libcore-") && name.ends_with(".rlib")
    })
}

/// Runs the active `rustc` and returns its output as one line.
fn rustc_output(arguments: &[&str]) -> Option<String> {
    let output = clean_command("rustc")
        .args(arguments)
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").stderr(Stdio::null()).output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Finds a program on the search path.
#[expect(
    clippy::disallowed_methods,
    reason = "the search path is a fact of the machine, not a setting"
)]
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let paths = env::var_os("PATH")?;
    env::split_paths(&paths)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Creates a command without inherited variables that would select another compiler, target or
/// flag.
pub(crate) fn clean_command(program: &str) -> Command {
    let mut command = Command::new(program);
    for name in INHERITED_VARIABLES {
        command.env_remove(name);
    }
    command
}

impl Mode {
    /// Returns the folder below cargo's target folder. The modes build different libraries of the
    /// same name and therefore must not share a folder.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::BuildStd | Self::Debian => "build-std",
        }
    }

    /// Returns the folder for a profile. Cargo gives the modules of two profiles the same file name,
    /// so that they must not share a folder either.
    pub(crate) fn folder_for(self, profile: Profile) -> String {
        match profile {
            Profile::Published => self.folder().to_owned(),
            Profile::Quick => format!("{}-dev", self.folder()),
        }
    }

    /// Describes the mode in one line.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Native => "the active Rust toolchain",
            Self::BuildStd => {
                "the active Rust toolchain, standard library compiled from its source"
            }
            Self::Debian => "Debian's Rust toolchain, standard library compiled from its source",
        }
    }

    /// Returns the cargo command of this mode, without a subcommand.
    pub(crate) fn cargo(self) -> Command {
        match self {
            Self::Native | Self::BuildStd => clean_command("cargo"),
            Self::Debian => clean_command(DEBIAN_CARGO),
        }
    }

    /// Returns `cargo build` for the target in a profile.
    pub(crate) fn cargo_build(self, profile: Profile) -> Command {
        let mut command = self.cargo();
        command.args(["build", "--release", "--target", GUEST_TARGET]);
        for (name, value) in self.environment() {
            command.env(name, value);
        }
        command.envs(profile.variables().iter().copied());
        if self != Self::Native {
            command.arg("-Zbuild-std=std,panic_abort");
        }
        compiler::wrap_compiler(
            &mut command,
            if self == Self::Debian {
                DEBIAN_LINKER
            } else {
                RUST_LINKER
            },
        );
        command
    }

    fn environment(self) -> Vec<(&'static str, OsString)> {
        let mut flags = toolkit_flags();
        let mut environment: Vec<(&str, OsString)> = Vec::new();
        if self != Self::Native {
            environment.push(("RUSTC_BOOTSTRAP", "1".into()));
        }
        if self == Self::Debian {
            environment.push(("RUSTC", DEBIAN_RUSTC.into()));
            environment.push((
                "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER",
                DEBIAN_LINKER.into(),
            ));
            let _ = write!(flags, " -Clinker-flavor=wasm-ld");
        }
        environment.push((
            "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS",
            flags.into(),
        ));
        environment
    }
}

/// Returns the compiler flags of every toolkit: its stack size, and the SDK as source of
/// randomness. They are the same for all toolkits, because other flags require another build of the
/// standard library and of the SDK.
fn toolkit_flags() -> String {
    let mut flags =
        format!("-Clink-arg=-zstack-size={STACK_BYTES} --cfg getrandom_backend=\"custom\"");
    // This renames sources of the standard library; `compiler` renames those of crates. Cargo
    // splits flags at spaces.
    if let Some(root) = rustc_output(&["--print", "sysroot"]).filter(|root| !root.contains(' ')) {
        let _ = write!(flags, " --remap-path-prefix={root}=/rust");
    }
    flags
}

/// Stack size of a guest in bytes. Rust's default of 1 MiB would have to be cleared after every
/// call.
const STACK_BYTES: u32 = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a machine with the facts of a list of words.
    fn machine(facts: &str) -> Probe {
        Probe {
            target: facts.contains("target"),
            source: facts.contains("source"),
            rustup: facts.contains("rustup"),
            debian: facts.contains("debian"),
            apt: facts.contains("apt"),
        }
    }

    #[test]
    fn compilers_older_than_the_sdk_do_not_count() {
        for (text, expected) in [
            ("rustc 1.95.0 (59807616e 2026-04-14)\n", true),
            ("rustc 2.0.0-nightly", true),
            ("rustc 1.85.0 (4d91de4e4 2025-02-17)", false),
            ("Package: rustc-web\nVersion: 1.95.0+dfsg1-1\n", true),
            (
                "Package: rustc-web\nVersion: 1.85.0+dfsg3-1~deb12u3\n",
                false,
            ),
            ("", false),
        ] {
            assert_eq!(names_recent_version(text), expected, "{text}");
        }
    }

    #[test]
    fn next_step_follows_from_facts_and_attempts() {
        for (facts, attempts, step) in [
            (
                "target source rustup debian apt",
                "",
                Step::Use(Mode::Native),
            ),
            ("source rustup debian", "", Step::AddTarget),
            ("source rustup debian", "target", Step::Use(Mode::BuildStd)),
            ("rustup debian", "target", Step::Use(Mode::Debian)),
            ("apt", "", Step::Install),
            ("apt", "packages", Step::GiveUp),
            ("", "", Step::GiveUp),
        ] {
            let attempted = AttemptedSteps {
                target: attempts.contains("target"),
                packages: attempts.contains("packages"),
            };
            let found = next(machine(facts), attempted);
            assert_eq!(found, step, "{facts}; attempted: {attempts}");
        }
    }

    #[test]
    fn the_way_out_names_both_commands_in_full() {
        let text = install_instructions();
        for command in [
            "rustup target add wasm32-unknown-unknown",
            "apt-get install -y rustc-web cargo-web rust-web-src lld",
        ] {
            assert!(text.contains(command), "{text}");
        }
    }

    #[test]
    fn missing_mode_error_names_the_installation() {
        for (mode, part) in [
            (Mode::Native, "rustup target add"),
            (Mode::Debian, "rust-web-src"),
        ] {
            let refused = wanted_mode(machine(""), mode).unwrap_err().to_string();
            assert!(refused.contains(part), "{refused}");
        }
        let found = wanted_mode(machine("source"), Mode::BuildStd);
        assert_eq!(found.unwrap(), Mode::BuildStd);
    }

    #[test]
    fn only_build_std_modes_unlock_unstable_flags() {
        let bootstrap = |mode: Mode| {
            mode.environment()
                .iter()
                .any(|(name, _)| *name == "RUSTC_BOOTSTRAP")
        };
        assert!(!bootstrap(Mode::Native));
        assert!(bootstrap(Mode::BuildStd) && bootstrap(Mode::Debian));
    }

    #[test]
    fn inherited_cargo_variables_are_removed() {
        let command = Mode::Debian.cargo_build(Profile::Published);
        let set = |name: &str| {
            command
                .get_envs()
                .find(|(key, _)| *key == name)
                .and_then(|(_, value)| value)
        };
        assert_eq!(command.get_program(), DEBIAN_CARGO);
        assert_eq!(set("RUSTC"), Some(DEBIAN_RUSTC.as_ref()));
        for removed in ["RUSTUP_TOOLCHAIN", "CARGO_ENCODED_RUSTFLAGS"] {
            let mut variables = command.get_envs();
            assert!(variables.any(|(name, value)| name == removed && value.is_none()));
        }
    }
}
