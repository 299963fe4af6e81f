//! `toolhost export` and `toolhost import`: a whole installation in one encrypted file.

use std::{
    io::{BufReader, Read},
    path::PathBuf,
    sync::Arc,
};

use anyhow::{Context, anyhow, bail};
use app::core::vault::KeyFile;
use app::lifecycle::archive::{self, ArchiveError, Counts, Lock, MIN_PASSPHRASE_CHARS, Unlock};
use indicatif::{ProgressBar, ProgressStyle};
use settings::Config;
use tokio::net::UnixStream;
use zeroize::Zeroizing;

use crate::{
    commands::first_run,
    control::{self, ControlCommand},
    open::{self, Stop},
    terminal::Terminal,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// File to create; it must not exist yet
    file: PathBuf,
    /// Encrypt for an age recipient, which `age-keygen` creates, instead of with a passphrase
    #[arg(long, value_name = "age1…", conflicts_with = "passphrase_file")]
    recipient: Option<String>,
    #[command(flatten)]
    passphrase: Passphrase,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Import {
    /// File that `toolhost export` wrote
    file: PathBuf,
    /// File that contains the age identity of the recipient
    #[arg(long, value_name = "FILE", conflicts_with = "passphrase_file")]
    identity: Option<PathBuf>,
    #[command(flatten)]
    passphrase: Passphrase,
}

/// Source of the passphrase. By default the passphrase is read from the terminal.
#[derive(Debug, clap::Args)]
struct Passphrase {
    /// File whose first line is the passphrase [default: TOOLHOST_PASSPHRASE, or read from the
    /// terminal]
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    // Hidden as an option, because every user of the machine can read the arguments of a process.
    #[arg(long, env = "TOOLHOST_PASSPHRASE", hide = true, hide_env_values = true)]
    passphrase: Option<Zeroizing<String>>,
}

/// Opens the data to write into the archive.
type Source = Box<dyn FnOnce() -> Result<Box<dyn Read>, String> + Send>;

// Help wraps at the width of the terminal, so that a paragraph is one line.
pub(crate) const EXPORT_EXAMPLES: &str = "The file contains the records, the secrets, the components and the master key. The passphrase or the age \
identity gives access to all of them. The server may run during an export. On the embedded store, the file contains the records of one \
moment, and writes wait while the records are read.

Examples:
  toolhost export backup.age
  toolhost export backup.age --recipient age1ql3z7hjy54pw3…";

pub(crate) const IMPORT_EXAMPLES: &str =
    "The file is read to its end before anything is written. The store must be empty, and the key file must not \
contain another key.

Examples:
  toolhost import backup.age --data ./restored
  toolhost import backup.age --identity backup-key.txt";

pub(crate) async fn export(config: &Config, args: &Export, terminal: Terminal) -> Result<(), Stop> {
    open::check_exists(config, "set --data to the one to export")?;
    let key = KeyFile::read(&config.key_file()).map_err(|cause| anyhow!(cause))?;
    let lock = match &args.recipient {
        Some(recipient) => Lock::recipient(recipient),
        None => Lock::passphrase(&args.passphrase.get("New passphrase of the file", true)?),
    };
    let lock = lock.map_err(|cause| anyhow!(cause))?;
    let file = args.file.clone();
    let write = move |from: Source| {
        let bar = progress_bar("exporting", None);
        let counts = archive::pack(from, &file, &lock, &key, &mut |counts| {
            show_progress(&bar, counts)
        });
        bar.finish_and_clear();
        counts
    };
    let exported = match open::store(config).await {
        Ok(store) => {
            let (ours, theirs) =
                std::os::unix::net::UnixStream::pair().context("cannot create a socket pair")?;
            ours.set_nonblocking(true)
                .context("cannot create a socket pair")?;
            let mut ours = UnixStream::from_std(ours).context("cannot create a socket pair")?;
            let writing = tokio::task::spawn_blocking(move || {
                write(Box::new(|| Ok(Box::new(BufReader::new(theirs)))))
            });
            let read = archive::export_frames(&store, &mut ours).await;
            drop(ours);
            let written = writing.await.context("cannot write the archive")?;
            store.close().await;
            // If writing failed, reading fails too because its reader is gone; then the write error
            // is the cause.
            if let (Err(cause), Err(ArchiveError::Incomplete(_))) = (read, &written) {
                return Err(cause.into());
            }
            written
        }
        Err(stop) if stop.locked => {
            let data = config.data.clone();
            let writing = tokio::task::spawn_blocking(move || {
                write(Box::new(move || {
                    match control::send(&data, ControlCommand::Export) {
                        Ok(response) => Ok(Box::new(response) as Box<dyn Read>),
                        Err(cause) => Err(format!("{cause:#}")),
                    }
                }))
            });
            writing.await.context("cannot write the archive")?
        }
        Err(stop) => return Err(stop),
    };
    let counts = exported.map_err(|cause| anyhow!(cause))?;
    terminal.good(&format!(
        "{} contains {}",
        args.file.display(),
        describe(counts)
    ));
    terminal.note("the file contains every secret and the master key: protect the passphrase or the age identity that decrypts it");
    Ok(())
}

pub(crate) async fn import(config: &Config, args: &Import, terminal: Terminal) -> Result<(), Stop> {
    let archive_file = tokio::fs::metadata(&args.file).await;
    archive_file.with_context(|| format!("cannot read {}", args.file.display()))?;
    let unlock = match &args.identity {
        Some(file) => Unlock::identities(file).map_err(|cause| anyhow!(cause))?,
        None => Unlock::passphrase(&args.passphrase.get("Passphrase of the file", false)?),
    };
    let file = args.file.clone();
    let unlock = Arc::new(unlock);
    let checking = unlock.clone();
    let checked = tokio::task::spawn_blocking(move || {
        let bar = progress_bar("checking", None);
        let checked = archive::check(&file, &checking, &mut |counts| show_progress(&bar, counts));
        bar.finish_and_clear();
        checked
    });
    let checked = checked
        .await
        .context("cannot read the archive")?
        .map_err(|cause| anyhow!(cause))?;
    let counts = checked.counts;
    let made_by = checked.made_by.clone();
    let store = open::fresh_store(config).await?;
    let done = async {
        if !archive::is_empty(&store).await? {
            return Err(ArchiveError::NotEmpty.into());
        }
        checked.key.restore(&config.key_file())?;
        let bar = progress_bar("importing", Some(counts.records + counts.blobs));
        archive::restore(&store, checked, unlock, &mut |counts| {
            show_progress(&bar, counts)
        })
        .await?;
        bar.finish_and_clear();
        Ok::<_, anyhow::Error>(())
    };
    let done = done.await;
    store.close().await;
    done?;
    let env_file = config.env_file();
    first_run::request_env(&env_file)?;
    let location = match config.database() {
        Some(_) => "the database".to_owned(),
        None => config.data.display().to_string(),
    };
    terminal.good(&format!("{location} now contains {}", describe(counts)));
    terminal.pair("created by", &format!("toolhost {made_by}"));
    terminal.pair(
        "master key",
        &format!("{}  (keep a copy elsewhere)", config.key_file().display()),
    );
    terminal.line(&format!(
        "  with the same settings, `toolhost serve` starts the server and writes the keys to {}",
        env_file.display()
    ));
    Ok(())
}

impl Passphrase {
    fn get(&self, prompt: &str, twice: bool) -> anyhow::Result<Zeroizing<String>> {
        if let Some(file) = &self.passphrase_file {
            let text = std::fs::read_to_string(file)
                .map(Zeroizing::new)
                .with_context(|| format!("cannot read {}", file.display()))?;
            return Ok(Zeroizing::new(
                text.lines().next().unwrap_or_default().to_owned(),
            ));
        }
        if let Some(text) = &self.passphrase {
            return Ok(text.clone());
        }
        let console = console::Term::stderr();
        if !console.is_term() {
            bail!(
                "cannot read a passphrase, because standard error is not a terminal: set --passphrase-file or TOOLHOST_PASSPHRASE"
            );
        }
        let ask = |prompt: &str| {
            console.write_str(&format!("{prompt}: "))?;
            console.read_secure_line().map(Zeroizing::new)
        };
        let text = ask(prompt).context("cannot read the passphrase from the terminal")?;
        if twice
            && *ask("Repeat the passphrase")
                .context("cannot read the passphrase from the terminal")?
                != *text
        {
            bail!(
                "the two passphrases differ: enter the same passphrase twice; it needs at least {MIN_PASSPHRASE_CHARS} characters, for example several words"
            );
        }
        Ok(text)
    }
}

fn progress_bar(doing: &str, all: Option<u64>) -> ProgressBar {
    let (template, bar) = match all {
        Some(all) => (
            "  {prefix} {pos}/{len} {wide_bar:.dim} {msg}",
            ProgressBar::new(all),
        ),
        None => (
            "  {prefix} {spinner} {pos} {msg}",
            ProgressBar::new_spinner(),
        ),
    };
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.with_style(style).with_prefix(doing.to_owned())
}

fn show_progress(bar: &ProgressBar, counts: Counts) {
    bar.set_position(counts.records + counts.blobs);
    if counts.records.is_multiple_of(256) {
        bar.set_message(format_bytes(counts.bytes));
    }
}

fn describe(counts: Counts) -> String {
    format!(
        "{} records and {} files, {}",
        counts.records,
        counts.blobs,
        format_bytes(counts.bytes)
    )
}

/// Formats a number of bytes with a unit, rounded down.
pub(super) fn format_bytes(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} bytes"),
        1_024..1_048_576 => format!("{} KiB", bytes >> 10),
        1_048_576..10_737_418_240 => format!("{} MiB", bytes >> 20),
        _ => format!("{} GiB", bytes >> 30),
    }
}
