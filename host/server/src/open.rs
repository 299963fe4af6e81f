//! Opens what the server stands on: key file, store, vault, the way out, the sandbox. In this order, so that a damaged store
//! or a wrong key is found before anything is written.

use std::{
    fmt::Display,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use app::{
    App, Clock, Parts, archive,
    catalog::Texts,
    tools::log::{Settings as LogSettings, Writer},
    vault::{KeyFile, KeyFileError, OpenError, Vault},
};
use sandbox::{CompileLimits, Compiler, Sandbox};
use store::{Blobs, Bucket, BucketError, Folder, Store};

use crate::config::{Allocator, Config};

/// Exit code of a start that would lose or expose something: damaged store, wrong or unsafe key.
const REFUSED: u8 = 78;

/// Why a command ends without doing its work: one line for the operator, and the exit code.
#[derive(Debug)]
pub(crate) struct Stop {
    /// What was found, and what to do.
    pub line: String,
    /// Exit code.
    pub code: u8,
    /// Another process has the store.
    pub locked: bool,
}

impl Stop {
    fn refused(cause: impl Display) -> Self {
        Self { line: cause.to_string(), code: REFUSED, locked: false }
    }
}

impl From<anyhow::Error> for Stop {
    fn from(cause: anyhow::Error) -> Self {
        Self { line: format!("{cause:#}"), code: 1, locked: false }
    }
}

impl From<app::Error> for Stop {
    fn from(cause: app::Error) -> Self {
        Self { line: cause.to_string(), code: 1, locked: false }
    }
}

/// Everything, opened.
pub(crate) struct Opened {
    /// The house.
    pub app: App,
    /// To be run beside it.
    pub writer: Writer,
    /// To be closed at the end.
    pub store: Store,
    /// Whether the data directory was empty.
    pub new: bool,
}

/// Opens everything.
///
/// # Errors
/// With code 78 when starting would lose or expose something, with 1 otherwise.
pub(crate) async fn open(config: &Config) -> Result<Opened, Stop> {
    let clock = Clock::system();
    let trusted = config.trusted_keys()?;
    let store = fresh_store(config).await?;
    // In this order: another node may make the first record meanwhile, which is the vault's.
    let empty = archive::is_empty(&store).await?;
    let new = !Vault::exists(&store).await?;
    if new && !empty {
        store.close().await;
        let (place, repair) = match config.database() {
            Some(_) => ("the database in `store`".to_owned(), "import again into an empty one"),
            None => (config.data.display().to_string(), "move it away and import again"),
        };
        return Err(Stop::refused(format_args!(
            "{place} holds records and no keys: an import into it was broken off; {repair}"
        )));
    }
    let key = key(&config.key_file(), new)?;
    let vault = Vault::open(store.clone(), &key, clock.now()).await.map_err(|cause| match cause {
        OpenError::WrongKey => Stop::refused(format_args!(
            "the key file {} is not the one of {}; put the right one back or set `key_file`",
            config.key_file().display(),
            config.data.display()
        )),
        OpenError::Store(cause) => cause.into(),
    })?;
    let vault = Arc::new(vault);
    let net =
        net::Client::new(config.net()?).map_err(|cause| anyhow::anyhow!("prepare the way out: {}", cause.message))?;
    let connections = config.connections(net.clone());
    let sandbox = sandbox(config, &vault, net).await?;
    let log = LogSettings {
        wait: config.logs.wait,
        buffer: config.logs.buffer,
        buffer_bytes: config.logs.buffer_mib << 20,
        payload: config.logs.payload_kib * 1024,
        cassettes: config.logs.cassettes,
        cassette: config.logs.cassette_kib * 1024,
        retention: config.retention(),
    };
    let model = config.model()?;
    let files = config.files();
    let texts = Texts::within(&config.data).with_context(|| format!("write into {}", config.data.display()))?;
    let quotas = config.quotas();
    let own = store.clone();
    let parts = Parts { store: own, vault, sandbox, texts, clock, log, files, connections, trusted, model, quotas };
    let (app, writer) = App::open(parts).await?;
    Ok(Opened { app, writer, store, new })
}

/// Opens the store alone.
///
/// # Errors
/// With code 78 when it is damaged, or is a database that cannot be used.
pub(crate) async fn store(config: &Config) -> Result<Store, Stop> {
    let at = store_folder(&config.data);
    let bucket = match bucket(config)? {
        Some(bucket) => {
            match bucket.probe().await {
                Ok(()) => {}
                // What is compiled here already runs without it.
                Err(cause @ BucketError::Away { .. }) => tracing::warn!(%cause, "started without the bucket of blobs"),
                Err(cause) => return Err(anyhow::anyhow!(cause).into()),
            }
            Some(bucket)
        }
        None => None,
    };
    let opened = match config.database() {
        Some(url) => {
            let blobs: Arc<dyn Blobs> = match bucket {
                Some(bucket) => Arc::new(bucket),
                None => Arc::new(Folder::open(&at.join("blobs")).context("open the folder of blobs")?),
            };
            Store::connect(url, blobs, app::COLLECTIONS).await
        }
        None => tokio::task::spawn_blocking(move || match bucket {
            Some(bucket) => Store::open_beside(&at, app::COLLECTIONS, Arc::new(bucket)),
            None => Store::open(&at, app::COLLECTIONS),
        })
        .await
        .context("open the store")?,
    };
    opened.map_err(|cause| match cause {
        store::OpenError::Locked { .. } => Stop { line: cause.to_string(), code: 1, locked: true },
        store::OpenError::Io { .. } => Stop { line: cause.to_string(), code: 1, locked: false },
        store::OpenError::Damaged { .. } | store::OpenError::Declaration { .. } | store::OpenError::Database { .. } => {
            Stop::refused(cause)
        }
    })
}

/// Opens the store alone, making it where it is missing.
///
/// # Errors
/// As [`store`].
pub(crate) async fn fresh_store(config: &Config) -> Result<Store, Stop> {
    make_private(&config.data)?;
    store(config).await
}

/// The bucket of the blobs, if they are in one. Nothing was asked of it yet.
///
/// # Errors
/// When the settings make no client.
pub(crate) fn bucket(config: &Config) -> Result<Option<Bucket>, Stop> {
    let settings = config.bucket()?;
    settings.map(Bucket::new).transpose().map_err(|cause| anyhow::anyhow!(cause).into())
}

/// Where the store lies in the data directory.
pub(crate) fn store_folder(data: &Path) -> PathBuf {
    data.join("store")
}

/// Opens the vault on a store that was used before.
///
/// # Errors
/// With code 78 when the key is missing, unsafe or wrong.
fn key(path: &Path, new: bool) -> Result<KeyFile, Stop> {
    match KeyFile::read(path) {
        Ok(key) => Ok(key),
        Err(KeyFileError::Missing(_)) if new => KeyFile::create(path).map_err(Stop::refused),
        Err(cause) => Err(Stop::refused(cause)),
    }
}

async fn sandbox(config: &Config, vault: &Vault, net: net::Client) -> Result<Sandbox, Stop> {
    let program = std::env::current_exe().context("find the server's own program").map_err(Stop::from)?;
    let wanted = &config.sandbox;
    let mut settings = sandbox::Settings::new(config.data.join("compiled"), *vault.derive("compiled components"), net);
    let compiling = CompileLimits {
        cpu_seconds: wanted.compile_cpu_s,
        wall: Duration::from_secs(wanted.compile_wall_s),
        memory: wanted.compile_memory_mib << 20,
    };
    settings.compiler = Compiler::Child(program, compiling);
    settings.allocator = match wanted.allocator {
        Allocator::Pooling => sandbox::Allocator::Pooling,
        Allocator::OnDemand => sandbox::Allocator::OnDemand,
    };
    settings.live = wanted.live;
    settings.live_per_tenant = wanted.live_per_project;
    settings.busy_per_tenant = wanted.busy_per_project;
    settings.queue = wanted.queue;
    settings.queue_per_tenant = wanted.queue_per_project;
    settings.queue_wait = Duration::from_millis(wanted.queue_wait_ms);
    settings.node_memory = wanted.memory_mib << 20;
    settings.resident = wanted.resident.unwrap_or(settings.resident);
    settings.guest_threads = wanted.threads.unwrap_or(settings.guest_threads);
    let opened = tokio::task::spawn_blocking(move || Sandbox::open(settings)).await.context("open the sandbox")?;
    opened.map_err(|cause| anyhow::anyhow!("open the sandbox: {cause}").into())
}

/// Makes a folder that only its owner can look into; one that is there has to be such a folder.
fn make_private(folder: &Path) -> Result<(), Stop> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| format!("make the data directory {}", folder.display())).map_err(Stop::from)?;
    check_private(folder)
}

/// Refuses a data directory that others can look into or write to, as a key file is refused that they can read.
///
/// # Errors
/// With code 78 when they can.
pub(crate) fn check_private(folder: &Path) -> Result<(), Stop> {
    let found = std::fs::metadata(folder);
    let found = found.with_context(|| format!("look at the data directory {}", folder.display()))?;
    if found.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(Stop::refused(format_args!(
        "the data directory {} can be read or changed by others; run `chmod 700` on it, or set `data` to a folder inside it, \
         which the start makes",
        folder.display()
    )))
}
