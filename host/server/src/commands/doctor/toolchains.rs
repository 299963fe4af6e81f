//! Detection of the toolchains that build toolkits.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::Finding::{self, Good, Note};

const GUEST_TARGET: &str = "wasm32-unknown-unknown";
/// Debian's packages that together build toolkits.
const DEBIAN_PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "lld"];

/// Toolchains on this machine that can build toolkits. They are the same ones that `toolkit setup`
/// knows, in its order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Toolchains {
    /// True if the active `rustc` has the target's standard library.
    target: bool,
    /// True if the active `rustc` has the source of the standard library, which it compiles for the
    /// target.
    source: bool,
    /// True for each package of [`DEBIAN_PACKAGES`] that is installed.
    debian: [bool; 4],
}

impl Toolchains {
    /// Detects the toolchains.
    pub(super) fn detect() -> Self {
        let rustc_path = |arguments: &[&str]| {
            let output = Command::new("rustc")
                .arg("--print")
                .args(arguments)
                .env_remove("RUSTUP_TOOLCHAIN")
                // The check installs no toolchain that a file in the current folder names.
                .env("RUSTUP_AUTO_INSTALL", "0")
                .output();
            let output = output.ok().filter(|output| output.status.success())?;
            Some(PathBuf::from(
                String::from_utf8_lossy(&output.stdout).trim(),
            ))
        };
        let libraries = rustc_path(&["target-libdir", "--target", GUEST_TARGET])
            .and_then(|folder| folder.read_dir().ok());
        let is_core = |name: &str| name.starts_with("libcore-") && name.ends_with(".rlib");
        let linker = Command::new("wasm-ld")
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success());
        Self {
            target: libraries.is_some_and(|mut all| {
                all.any(|one| one.is_ok_and(|one| one.file_name().to_str().is_some_and(is_core)))
            }),
            source: rustc_path(&["sysroot"]).is_some_and(|root| {
                root.join("lib/rustlib/src/rust/library/std/Cargo.toml")
                    .is_file()
            }),
            debian: [
                Path::new("/usr/bin/rustc").is_file(),
                Path::new("/usr/bin/cargo").is_file(),
                Path::new("/usr/lib/rustlib/src/rust/library").is_dir(),
                linker,
            ],
        }
    }

    /// Returns the finding about these toolchains.
    pub(super) fn finding(self) -> Finding {
        let missing: Vec<_> = DEBIAN_PACKAGES
            .iter()
            .zip(self.debian)
            .filter(|(_, installed)| !installed)
            .map(|(name, _)| *name)
            .collect();
        match self {
            Self { target: true, .. } => Good(format!("toolkits can be built on this machine: rustc has the target {GUEST_TARGET}")),
            Self { source: true, .. } => Good(
                "toolkits can be built on this machine: rustc lacks their target, but compiles the standard library from rust-src"
                    .to_owned(),
            ),
            _ if missing.is_empty() => Good("toolkits can be built on this machine: Debian's rustc-web compiles them".to_owned()),
            // If both Debian's compiler and source are missing, Debian's toolchain is not in use.
            Self { debian: [true, _, _, _] | [_, _, true, _], .. } => Note(format!(
                "toolkits cannot be built on this machine: Debian's toolchain lacks {}; run `toolkit setup` if you want to build \
                 toolkits",
                missing.join(", ")
            )),
            _ => Note(format!(
                "toolkits cannot be built on this machine: no compiler for {GUEST_TARGET} is installed; run `toolkit setup` if you \
                 want to build toolkits"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rustfmt::skip]
    #[test]
    fn toolchains_and_missing_packages_are_reported() {
        let found = |target, source, debian| Toolchains { target, source, debian };
        let (all, none) = ([true; 4], [false; 4]);
        let part = [true, true, false, false];
        let other_part = [false, true, false, true];
        for (found, good, word) in [
            (found(false, false, none), false, "no compiler for wasm32-unknown-unknown"),
            (found(true, false, none), true, "rustc has the target wasm32-unknown-unknown"),
            (found(false, true, none), true, "rust-src"),
            (found(false, false, all), true, "Debian's rustc-web"),
            (found(false, false, part), false, "lacks rust-web-src, lld"),
            (found(false, false, other_part), false, "no compiler"),
        ] {
            let finding = found.finding();
            let text = match &finding {
                Good(text) if good => text,
                Note(text) if !good => text,
                other => panic!("{found:?}: {other:?}"),
            };
            assert!(text.contains(word), "{text}");
        }
    }
}
