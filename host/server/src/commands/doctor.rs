//! `toolhost doctor`: reports problems of an installation in plain text. Changes nothing, even
//! while a server runs: the file that tries a write is unnamed.
//!
//! A cross marks a problem that keeps the server from starting or from being trusted; an
//! exclamation mark is a warning.

mod address;
mod disk;
mod records;

use std::process::ExitCode;

use app::core::vault::{KeyFile, KeyFileError};
use settings::Config;

use self::{
    address::{address, announced},
    disk::disk,
    records::{Records, clock, database, embedded},
};
use crate::{
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
    let addresses = control::addresses(&config.data).await;
    let findings = [
        address(config, running, addresses.as_ref()).await?,
        data,
        disk(config),
        blobs(config, args.write).await,
        key_file(config, records),
        clock(reference),
        announced(config, addresses.as_ref()).await,
        swap(),
    ];
    for finding in &findings {
        match finding {
            Good(text) => terminal.good(text),
            Note(text) => terminal.note(text),
            Bad(text) => terminal.bad(text),
        }
    }
    let has_problem = findings.iter().any(|finding| matches!(finding, Bad(_)));
    Ok(ExitCode::from(u8::from(has_problem)))
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
