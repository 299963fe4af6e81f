//! `toolhost doctor`: reports problems of an installation in plain text. Changes nothing, also beside
//! a running server.
//!
//! A cross marks a problem that keeps the server from starting or from being trusted; an
//! exclamation mark is a warning.

mod records;
mod toolchains;

use std::process::ExitCode;

use app::core::vault::{KeyFile, KeyFileError};
use tokio::net::TcpListener;

use self::{
    records::{Records, clock, database, embedded},
    toolchains::Toolchains,
};
use crate::{
    commands::health::{self, Answer},
    config::Config,
    control,
    open::{self, Stop},
    terminal::Terminal,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Also write, read and delete an object in the bucket of `blobs`
    #[arg(long)]
    write: bool,
}

#[derive(Debug)]
enum Finding {
    Good(String),
    Note(String),
    Bad(String),
}
use Finding::{Bad, Good, Note};

pub(crate) async fn run(
    config: &Config,
    args: &Args,
    terminal: Terminal,
) -> Result<ExitCode, Stop> {
    let running = control::is_running(&config.data);
    let (data, records, reference) = match config.database() {
        Some(url) => database(config, url).await,
        None => embedded(config, running),
    };
    let findings = [
        address(config, running).await?,
        data,
        blobs(config, args.write).await,
        key_file(config, records),
        clock(reference),
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
    Ok(ExitCode::from(u8::from(problems > 0)))
}

/// Checks the address of the settings. A server of the data directory is expected on it while one
/// is `running`.
async fn address(config: &Config, running: bool) -> Result<Finding, Stop> {
    let listen = &config.listen;
    let data = config.data.display();
    Ok(match (health::ask(config).await?, running) {
        (Answer::Ready, true) => Good(format!(
            "a server runs on {data}, and a server answers on {listen}: it is ready"
        )),
        (Answer::NotReady(reason), true) => Bad(format!(
            "a server runs on {data}, and a server answers on {listen}: it is not ready, because {reason}"
        )),
        (Answer::OtherProgram | Answer::Nothing, true) => Note(format!(
            "a server runs on {data}, but not on {listen}: it was started with another value of `listen`"
        )),
        (Answer::Ready | Answer::NotReady(_), false) => Bad(format!(
            "a server answers on {listen}, but none runs on {data}: set `data` to the data directory of that server to check it, \
             or `listen` to another address to start a second server"
        )),
        (Answer::OtherProgram, false) => Bad(format!(
            "another program accepts connections on {listen}: set `listen` to another address"
        )),
        (Answer::Nothing, false) => free_address(listen).await,
    })
}

async fn free_address(listen: &str) -> Finding {
    match TcpListener::bind(listen).await {
        Ok(_) => Good(format!("the address {listen} is free")),
        Err(cause) if cause.kind() == std::io::ErrorKind::AddrInUse => Bad(format!(
            "another program uses the address {listen}, although it accepts no connections: set `listen` to another address"
        )),
        Err(cause) => Bad(format!(
            "cannot listen on {listen}: {cause}; set `listen` to an address of this machine"
        )),
    }
}

async fn blobs(config: &Config, write: bool) -> Finding {
    let bucket = match open::bucket(config) {
        Ok(Some(bucket)) => bucket,
        Ok(None) if config.database().is_some() => {
            let alone = "components are stored in the data directory of this machine, where other servers on the same database \
                         cannot read them: set `blobs` to a bucket if several servers share the database";
            return Note(alone.to_owned());
        }
        Ok(None) => {
            return Good(
                "components and other large values are stored in the data directory".to_owned(),
            );
        }
        Err(stop) => return Bad(stop.line),
    };
    if write {
        return match bucket.check_operations().await {
            Ok(()) => Good(format!(
                "objects can be listed, written, read and deleted in {bucket}"
            )),
            Err(cause) => Bad(cause.to_string()),
        };
    }
    match bucket.probe().await {
        Ok(()) => Good(format!(
            "objects can be listed in {bucket}; `toolhost doctor --write` also writes, reads and deletes one"
        )),
        Err(cause) => Bad(cause.to_string()),
    }
}

fn key_file(config: &Config, records: Records) -> Finding {
    let path = config.key_file();
    let shown = path.display();
    match (KeyFile::read(&path), records) {
        (Ok(_), _) => Good(format!(
            "the key file {shown} exists, and only its owner can read it"
        )),
        (Err(KeyFileError::Missing(_)), Records::Missing) => Good(format!(
            "the key file {shown} does not exist; the first start creates it"
        )),
        (Err(KeyFileError::Missing(_)), Records::Unknown) => Note(format!(
            "the key file {shown} does not exist; only a first start creates it"
        )),
        (Err(cause), _) => Bad(cause.to_string()),
    }
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

fn swap() -> Finding {
    match std::fs::read_to_string("/proc/swaps") {
        Ok(text) if text.lines().count() > 1 => Note(
            "swap is on: keys and credentials in memory may be written to disk; encrypt the swap space"
                .to_owned(),
        ),
        Ok(_) => Good("swap is off".to_owned()),
        Err(_) => Note("the state of swap is unknown: /proc/swaps cannot be read".to_owned()),
    }
}
