//! Opens the parts that a server is built on: key file, store, vault, HTTP client and sandbox.
//!
//! The order guarantees that a damaged store or a wrong key is found before anything is written.

mod data_directory;
mod stop;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result};
use api::connected_accounts;
use app::{
    App, Clock, Parts, Time,
    catalog::SchemaFile,
    core::{
        large_work::LargeWork,
        trace::{EndedSpans, Tracer},
        vault::{KeyFile, KeyFileError, OpenError, Vault},
    },
    lifecycle::archive,
    runs::log::Writer,
};
use sandbox::{Compiler, Sandbox};
use settings::{Allocator, Config, MAX_BUSY_CALLS_PER_PROJECT, QUEUE_TIMEOUT};
use store::{Blobs, Bucket, BucketError, Folder, Store};
use workbench::Shell;

use self::data_directory::{COMPILED_FOLDER, make_private};
use crate::memory::return_free_memory_now;

pub(crate) use self::{
    data_directory::{check_private, store_folder},
    stop::Stop,
};

/// All opened parts of a server.
pub(crate) struct Opened {
    /// The app, which performs every operation.
    pub app: Arc<App>,
    /// Writer of the execution log. It has to run alongside the app.
    pub writer: Writer,
    /// The store, which has to be closed at the end.
    pub store: Store,
    /// Spans that have ended; `None` if nothing is traced.
    pub spans: Option<EndedSpans>,
    /// True if the store was never used before this start.
    pub new: bool,
}

/// Opens the store, the vault, the sandbox and the app.
///
/// # Errors
/// Exit code 78 if starting would lose or expose data, 1 otherwise.
pub(crate) async fn open(config: &Config) -> Result<Opened, Stop> {
    let clock = Clock::system();
    let trusted = config.trusted_keys()?;
    let store = fresh_store(config).await?;
    let (vault, new) = vault(config, &store, clock.now()).await?;
    let net = net::Client::new(config.net()?)
        .map_err(|cause| anyhow::anyhow!("cannot create the HTTP client: {}", cause.message))?;
    let account_data = connected_accounts::event_data(&config.operator_word);
    let sandbox = sandbox(config, &vault, net.clone()).await?;
    let model = config.model()?;
    let schema_file = SchemaFile::create_in(&config.data)
        .with_context(|| format!("cannot write to {}", config.data.display()))?;
    let traced = config.traces();
    let traced = traced.map(|settings| Tracer::new(settings, clock.clone()));
    let (tracer, spans) = traced.unzip();
    let large_work = LargeWork::start(return_free_memory_now)
        .context("cannot start the threads for large work")?;
    let parts = Parts {
        store: store.clone(),
        vault: Arc::new(vault),
        sandbox,
        scripts: config.scripts(),
        large_work,
        schema_file,
        clock,
        log: config.recording(),
        files: config.files(),
        connections: config.connections(net.clone()),
        webhooks: config.webhooks(net, account_data),
        sink: config.sink_url()?,
        triggers: config.triggers(),
        sessions: config.sessions(),
        trusted,
        model,
        quotas: config.limits.quotas(),
        shell: Shell::new(own_program()?, config.shell()),
        tracer: tracer.unwrap_or_default(),
    };
    let (app, writer) = App::open(parts).await?;
    Ok(Opened {
        app,
        writer,
        store,
        spans,
        new,
    })
}

/// Opens the vault of a store. Returns also true if the store was never used before.
async fn vault(config: &Config, store: &Store, now: Time) -> Result<(Vault, bool), Stop> {
    // The order matters: another node may write the first record in the meantime, and that record
    // is the vault's.
    let empty = archive::is_empty(store).await?;
    let new = !Vault::exists(store).await?;
    if new && !empty {
        store.clone().close().await;
        let (location, remedy) = match config.database() {
            Some(_) => (
                "the database in `store`".to_owned(),
                "import again into an empty database",
            ),
            None => (
                config.data.display().to_string(),
                "move it away and import again",
            ),
        };
        return Err(Stop::refused(format_args!(
            "{location} contains records but no keys, because an import into it was interrupted: {remedy}"
        )));
    }
    let key = key(&config.key_file(), new)?;
    let opened = Vault::open(store.clone(), &key, now).await;
    let vault = opened.map_err(|cause| match cause {
        OpenError::WrongKey => Stop::refused(format_args!(
            "the key file {} does not belong to {}: restore the matching key file, or set `key_file` to its path",
            config.key_file().display(),
            config.data.display()
        )),
        OpenError::Store(cause) => cause.into(),
    })?;
    Ok((vault, new))
}

/// Opens the store alone.
///
/// # Errors
/// Exit code 78 if the store is damaged or is a database that cannot be used, 1 if a later attempt
/// may succeed.
pub(crate) async fn store(config: &Config) -> Result<Store, Stop> {
    let at = store_folder(&config.data);
    let bucket = bucket(config)?;
    if let Some(bucket) = &bucket
        && let Err(cause) = bucket.probe().await
    {
        // Components that are compiled on this machine already run without the bucket.
        if !matches!(cause, BucketError::Unreachable { .. }) {
            return Err(anyhow::anyhow!(cause).into());
        }
        tracing::warn!(%cause, "the bucket for large values is unreachable; continuing without it");
    }
    let opened = match config.database() {
        Some(url) => {
            let blobs: Arc<dyn Blobs> = match bucket {
                Some(bucket) => Arc::new(bucket),
                None => Arc::new(
                    Folder::open(&at.join("blobs"))
                        .context("cannot open the folder for large values")?,
                ),
            };
            Store::connect(url, blobs, app::COLLECTIONS).await
        }
        None => tokio::task::spawn_blocking(move || match bucket {
            Some(bucket) => Store::open_beside(&at, app::COLLECTIONS, Arc::new(bucket)),
            None => Store::open(&at, app::COLLECTIONS),
        })
        .await
        .context("cannot open the store")?,
    };
    opened.map_err(|cause| match cause {
        store::OpenError::Locked { .. } => Stop {
            locked: true,
            ..Stop::failed(cause)
        },
        store::OpenError::Io { .. }
        | store::OpenError::Database {
            temporary: true, ..
        } => Stop::failed(cause),
        store::OpenError::Damaged { .. }
        | store::OpenError::Declaration { .. }
        | store::OpenError::Database {
            temporary: false, ..
        } => Stop::refused(cause),
    })
}

/// Refuses a data directory that does not exist. Records in a database do not need one.
///
/// # Errors
/// With `remedy` as the advice.
pub(crate) fn check_exists(config: &Config, remedy: &str) -> Result<(), Stop> {
    if config.database().is_some() || config.data.exists() {
        return Ok(());
    }
    let data = config.data.display();
    Err(anyhow::anyhow!("the data directory {data} does not exist: {remedy}").into())
}

/// Opens the store alone and creates the data directory if it is missing.
///
/// # Errors
/// As [`store`].
pub(crate) async fn fresh_store(config: &Config) -> Result<Store, Stop> {
    make_private(&config.data)?;
    store(config).await
}

/// Returns the bucket of the blobs if blobs are stored in a bucket. Sends no request to it.
///
/// # Errors
/// If no client can be built from the settings.
pub(crate) fn bucket(config: &Config) -> Result<Option<Bucket>, Stop> {
    let settings = config.bucket()?;
    settings
        .map(Bucket::new)
        .transpose()
        .map_err(|cause| anyhow::anyhow!(cause).into())
}

/// Reads the master key file, or creates it if the installation is `new`.
///
/// # Errors
/// Exit code 78 if the key is missing, unsafe or wrong.
fn key(path: &Path, new: bool) -> Result<KeyFile, Stop> {
    match KeyFile::read(path) {
        Ok(key) => Ok(key),
        Err(KeyFileError::Missing(_)) if new => KeyFile::create(path).map_err(Stop::refused),
        Err(cause) => Err(Stop::refused(cause)),
    }
}

/// Returns the path of the server's program, which also works on untrusted input in child processes.
fn own_program() -> Result<PathBuf, Stop> {
    let program = std::env::current_exe();
    let program = program.context("cannot find the path of the server's program");
    program.map_err(Stop::from)
}

async fn sandbox(config: &Config, vault: &Vault, net: net::Client) -> Result<Sandbox, Stop> {
    let wanted = &config.sandbox;
    let mut settings = sandbox::Settings::new(
        config.data.join(COMPILED_FOLDER),
        *vault.derive("compiled components"),
        net,
    );
    settings.compiler = Compiler::Child(own_program()?, wanted.compile_limits());
    settings.allocator = match wanted.allocator {
        Allocator::Pooling => sandbox::Allocator::Pooling,
        Allocator::OnDemand => sandbox::Allocator::OnDemand,
    };
    settings.live = wanted.live;
    settings.live_per_tenant = wanted.live_per_project();
    settings.busy_per_tenant = MAX_BUSY_CALLS_PER_PROJECT;
    settings.queue = wanted.queue();
    settings.queue_per_tenant = wanted.queue_per_project();
    settings.queue_wait = QUEUE_TIMEOUT;
    settings.node_memory = wanted.memory_bytes();
    settings.resident_bytes = wanted.memory_bytes();
    let opened = tokio::task::spawn_blocking(move || Sandbox::open(settings))
        .await
        .context("cannot open the sandbox")?;
    opened.map_err(|cause| anyhow::anyhow!("cannot open the sandbox: {cause}").into())
}
