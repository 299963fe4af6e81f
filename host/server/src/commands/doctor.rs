//! `toolhost doctor`: reports problems of an installation in plain text.
//!
//! A cross marks a problem that keeps the server from starting or from being trusted; an
//! exclamation mark is a warning.

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::SystemTime,
};

use app::{
    Clock,
    core::vault::{KeyFile, KeyFileError},
};
use tokio::net::{TcpListener, TcpStream};

use crate::{
    config::Config,
    open::{self, Stop},
    terminal::Terminal,
};

/// Clock difference, in milliseconds, above which signed links and leases are unreliable.
const MAX_CLOCK_SKEW_MS: i64 = 5_000;
const GUEST_TARGET: &str = "wasm32-unknown-unknown";
/// Debian's packages that together build toolkits.
const DEBIAN_PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "lld"];

#[derive(Debug)]
enum Finding {
    Good(String),
    Note(String),
    Bad(String),
}
use Finding::{Bad, Good, Note};

pub(crate) async fn run(config: &Config, terminal: Terminal) -> Result<ExitCode, Stop> {
    let findings = [
        port(&config.listen).await,
        data(config).await,
        blobs(config).await,
        key_file(config),
        clock(&config.data),
        public_url(config),
        Toolchains::detect().finding(),
        swap(),
    ];
    let mut problems = 0;
    for finding in &findings {
        match finding {
            Good(text) => terminal.good(text),
            Note(text) => terminal.note(text),
            Bad(text) => {
                problems += 1;
                terminal.bad(text);
            }
        }
    }
    Ok(if problems == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn port(listen: &str) -> Finding {
    match TcpListener::bind(listen).await {
        Ok(_) => Good(format!("the address {listen} is free")),
        Err(cause) if cause.kind() == std::io::ErrorKind::AddrInUse => {
            let usage = if TcpStream::connect(listen).await.is_ok() {
                "a program accepts connections on it"
            } else {
                "no program accepts connections on it"
            };
            Bad(format!(
                "the address {listen} is in use ({usage}): stop the program that uses it, or set `listen` to another address"
            ))
        }
        Err(cause) => Bad(format!(
            "cannot listen on {listen}: {cause}; set `listen` to an address of this machine"
        )),
    }
}

async fn data(config: &Config) -> Finding {
    let exists = config.data.exists();
    if exists && let Err(stop) = open::check_private(&config.data) {
        return Bad(stop.line);
    }
    let shown = config.data.display();
    let good = match config.database() {
        Some(_) => "the database can be opened and has every table and index".to_owned(),
        None if exists => {
            format!("the data directory {shown} can be opened, and only its owner has access to it")
        }
        None => {
            return Good(format!(
                "the data directory {shown} will be created by the first start"
            ));
        }
    };
    match open::store(config).await {
        Ok(store) => {
            store.close().await;
            Good(good)
        }
        Err(stop) => Bad(stop.line),
    }
}

async fn blobs(config: &Config) -> Finding {
    let bucket = match open::bucket(config) {
        Ok(Some(bucket)) => bucket,
        Ok(None) if config.database().is_some() => {
            let alone = "components are stored in the data directory of this machine, where other servers on the same database \
                         cannot read them: set `blobs` to a bucket";
            return Note(alone.to_owned());
        }
        Ok(None) => {
            return Good(
                "components and other large values are stored in the data directory".to_owned(),
            );
        }
        Err(stop) => return Bad(stop.line),
    };
    match bucket.check_operations().await {
        Ok(()) => Good(format!(
            "objects can be listed, written, read and deleted in {bucket}"
        )),
        Err(cause) => Bad(cause.to_string()),
    }
}

fn key_file(config: &Config) -> Finding {
    let path = config.key_file();
    match KeyFile::read(&path) {
        Ok(_) => Good(format!(
            "the key file {} exists, and only its owner can read it",
            path.display()
        )),
        Err(KeyFileError::Missing(_)) if !config.data.exists() => Good(format!(
            "the key file {} will be created by the first start",
            path.display()
        )),
        Err(cause) => Bad(cause.to_string()),
    }
}

/// Compares the clock with that of the data directory's file system, which may be on another
/// machine. Any other external clock would require sending a request.
fn clock(data: &Path) -> Finding {
    let folder = if data.exists() { data } else { Path::new(".") };
    let Some(file_time) = file_system_time(folder) else {
        return Note(format!(
            "the clock was not checked: no file can be created in {}",
            folder.display()
        ));
    };
    let skew = (Clock::system().now().0 - file_time).abs();
    if skew > MAX_CLOCK_SKEW_MS {
        Bad(format!(
            "the clock differs by {} s from the clock of the file system: correct the time of this machine",
            skew / 1000
        ))
    } else {
        Good("the clock agrees with the clock of the file system; it was compared with no other clock".to_owned())
    }
}

/// Returns the time that a file system gives to a new file, in milliseconds since 1970.
fn file_system_time(folder: &Path) -> Option<i64> {
    let path = folder.join(format!(".toolhost-doctor-{}", std::process::id()));
    std::fs::write(&path, b"").ok()?;
    let modified = std::fs::metadata(&path).and_then(|meta| meta.modified());
    let _ = std::fs::remove_file(&path);
    let since = modified.ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

fn public_url(config: &Config) -> Finding {
    match &config.public_url {
        Some(url) => Good(format!(
            "clients receive {url} as the address of the server"
        )),
        None => Note(format!(
            "`public_url` is not set: clients receive {} as the address of the server, which other machines may not reach",
            config.listen
        )),
    }
}

/// Toolchains on this machine that can build toolkits. They are the same ones that `toolkit setup`
/// knows, in its order.
#[derive(Debug, Clone, Copy)]
struct Toolchains {
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
    fn detect() -> Self {
        let rustc_path = |arguments: &[&str]| {
            let output = Command::new("rustc")
                .arg("--print")
                .args(arguments)
                .env_remove("RUSTUP_TOOLCHAIN")
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
    fn finding(self) -> Finding {
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

fn swap() -> Finding {
    match std::fs::read_to_string("/proc/swaps") {
        Ok(text) if text.lines().count() > 1 => {
            Note("swap is on: keys and credentials in memory may be written to disk; encrypt the swap space or turn it off".to_owned())
        }
        Ok(_) => Good("swap is off".to_owned()),
        Err(_) => Note("the state of swap is unknown: /proc/swaps cannot be read".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toolchains_and_missing_packages_are_reported() {
        let found = |target, source, debian| Toolchains {
            target,
            source,
            debian,
        };
        let (all, none) = ([true; 4], [false; 4]);
        for (found, good, word) in [
            (
                found(false, false, none),
                false,
                "no compiler for wasm32-unknown-unknown",
            ),
            (
                found(true, false, none),
                true,
                "rustc has the target wasm32-unknown-unknown",
            ),
            (found(false, true, none), true, "rust-src"),
            (found(false, false, all), true, "Debian's rustc-web"),
            (
                found(false, false, [true, true, false, false]),
                false,
                "lacks rust-web-src, lld",
            ),
            (
                found(false, false, [false, true, false, true]),
                false,
                "no compiler",
            ),
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
