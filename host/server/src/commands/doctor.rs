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
    vault::{KeyFile, KeyFileError},
};
use tokio::net::{TcpListener, TcpStream};

use crate::{
    config::Config,
    open::{self, Stop},
    terminal::Terminal,
};

/// Clock difference, in milliseconds, above which signed links and leases are unreliable.
const SKEW_MS: i64 = 5_000;
const GUEST_TARGET: &str = "wasm32-unknown-unknown";
/// Debian's packages that together build toolkits.
const DEBIAN: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "lld"];

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
        Toolchains::found().judge(),
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
        Ok(_) => Good(format!("{listen} is free to listen on")),
        Err(cause) if cause.kind() == std::io::ErrorKind::AddrInUse => {
            let answers = if TcpStream::connect(listen).await.is_ok() {
                "something answers there"
            } else {
                "nothing answers there"
            };
            Bad(format!(
                "{listen} is taken ({answers}); stop the other program or set `listen`"
            ))
        }
        Err(cause) => Bad(format!(
            "{listen} cannot be listened on: {cause}; set `listen` to an address of this machine"
        )),
    }
}

async fn data(config: &Config) -> Finding {
    if config.data.exists()
        && let Err(stop) = open::check_private(&config.data)
    {
        return Bad(stop.line);
    }
    if config.database().is_some() {
        return match open::store(config).await {
            Ok(store) => {
                store.close().await;
                Good("the database opens, and has every table and index".to_owned())
            }
            Err(stop) => Bad(stop.line),
        };
    }
    let shown = config.data.display();
    if !config.data.exists() {
        return Good(format!(
            "the data directory {shown} will be made by the first start"
        ));
    }
    match open::store(config).await {
        Ok(store) => {
            store.close().await;
            Good(format!(
                "the data directory {shown} opens, and only its owner can look into it"
            ))
        }
        Err(stop) => Bad(stop.line),
    }
}

async fn blobs(config: &Config) -> Finding {
    let bucket = match open::bucket(config) {
        Ok(Some(bucket)) => bucket,
        Ok(None) if config.database().is_some() => {
            let alone = "components lie in the data directory of this machine: other servers on the same database do not \
                         find them; set `blobs` to a bucket";
            return Note(alone.to_owned());
        }
        Ok(None) => {
            return Good("components and other large values lie in the data directory".to_owned());
        }
        Err(stop) => return Bad(stop.line),
    };
    match bucket.check_operations().await {
        Ok(()) => Good(format!(
            "{bucket} can be listed, written, read and deleted in"
        )),
        Err(cause) => Bad(cause.to_string()),
    }
}

fn key_file(config: &Config) -> Finding {
    let path = config.key_file();
    match KeyFile::read(&path) {
        Ok(_) => Good(format!(
            "the key file {} is there and only its owner can read it",
            path.display()
        )),
        Err(KeyFileError::Missing(_)) if !config.data.exists() => Good(format!(
            "the key file {} will be made by the first start",
            path.display()
        )),
        Err(cause) => Bad(cause.to_string()),
    }
}

/// Compares the clock with that of the data directory's file system, which may be on another
/// machine. Any other external clock would require sending a request.
fn clock(data: &Path) -> Finding {
    let folder = if data.exists() { data } else { Path::new(".") };
    let probe = tempfile_time(folder);
    let Some(theirs) = probe else {
        return Note(format!(
            "the clock was not compared: {} takes no file",
            folder.display()
        ));
    };
    let skew = (Clock::system().now().0 - theirs).abs();
    if skew > SKEW_MS {
        Bad(format!(
            "the clock is {} s off the file system's; correct the machine's time",
            skew / 1000
        ))
    } else {
        Good("the clock agrees with the file system's; nothing else was asked".to_owned())
    }
}

/// Returns the time that a file system gives to a new file, in milliseconds since 1970.
fn tempfile_time(folder: &Path) -> Option<i64> {
    let path = folder.join(format!(".toolhost-doctor-{}", std::process::id()));
    std::fs::write(&path, b"").ok()?;
    let modified = std::fs::metadata(&path).and_then(|meta| meta.modified());
    let _ = std::fs::remove_file(&path);
    let since = modified.ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

fn public_url(config: &Config) -> Finding {
    match &config.public_url {
        Some(url) => Good(format!("clients are told to use {url}")),
        None => Note(format!(
            "`public_url` is not set: clients are told {}, which other machines may not reach",
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
    /// True for each package of [`DEBIAN`] that is installed.
    debian: [bool; 4],
}

impl Toolchains {
    fn found() -> Self {
        let active = |question: &[&str]| {
            let asked = Command::new("rustc")
                .arg("--print")
                .args(question)
                .env_remove("RUSTUP_TOOLCHAIN")
                .output();
            let asked = asked.ok().filter(|output| output.status.success())?;
            Some(PathBuf::from(String::from_utf8_lossy(&asked.stdout).trim()))
        };
        let libraries = active(&["target-libdir", "--target", GUEST_TARGET])
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
            source: active(&["sysroot"]).is_some_and(|root| {
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

    fn judge(self) -> Finding {
        let missing: Vec<_> = DEBIAN
            .iter()
            .zip(self.debian)
            .filter(|(_, there)| !there)
            .map(|(name, _)| *name)
            .collect();
        match self {
            Self { target: true, .. } => Good(format!("toolkits can be built here: rustc has {GUEST_TARGET}")),
            Self { source: true, .. } => Good(
                "toolkits can be built here: rustc has no target for them, but compiles the standard library from rust-src"
                    .to_owned(),
            ),
            _ if missing.is_empty() => Good("toolkits can be built here: Debian's rustc-web compiles them".to_owned()),
            // Without Debian's compiler and source there is no Debian toolchain to complete.
            Self { debian: [true, _, _, _] | [_, _, true, _], .. } => Note(format!(
                "toolkits cannot be built here: of Debian's toolchain {} is missing; run `toolkit setup` if you want to build \
                 some",
                missing.join(", ")
            )),
            _ => Note(format!(
                "toolkits cannot be built here: nothing compiles for {GUEST_TARGET}; run `toolkit setup` if you want to \
                 build some"
            )),
        }
    }
}

fn swap() -> Finding {
    match std::fs::read_to_string("/proc/swaps") {
        Ok(text) if text.lines().count() > 1 => {
            Note("swap is on: keys and credentials in memory may reach the disk; encrypt it or turn it off".to_owned())
        }
        Ok(_) => Good("swap is off".to_owned()),
        Err(_) => Note("whether swap is on could not be read".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toolchains_and_missing_packages_are_reported() {
        let nothing = Toolchains {
            target: false,
            source: false,
            debian: [false; 4],
        };
        for (found, good, word) in [
            (
                nothing,
                false,
                "nothing compiles for wasm32-unknown-unknown",
            ),
            (
                Toolchains {
                    target: true,
                    ..nothing
                },
                true,
                "rustc has wasm32-unknown-unknown",
            ),
            (
                Toolchains {
                    source: true,
                    ..nothing
                },
                true,
                "rust-src",
            ),
            (
                Toolchains {
                    debian: [true; 4],
                    ..nothing
                },
                true,
                "Debian's rustc-web",
            ),
            (
                Toolchains {
                    debian: [true, true, false, false],
                    ..nothing
                },
                false,
                "rust-web-src, lld is missing",
            ),
            (
                Toolchains {
                    debian: [false, true, false, true],
                    ..nothing
                },
                false,
                "nothing compiles",
            ),
        ] {
            let finding = found.judge();
            let said = match &finding {
                Good(text) if good => text,
                Note(text) if !good => text,
                other => panic!("{found:?}: {other:?}"),
            };
            assert!(said.contains(word), "{said}");
        }
    }
}
