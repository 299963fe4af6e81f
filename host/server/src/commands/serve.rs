//! `toolhost serve`: config → bind → store → sandbox → app → serve → toolkits → drain.
//!
//! The address is bound first, so that a second server on it fails before it changes anything. A
//! first start prints an explanation; a later one prints only the address.

mod announcement;
mod publication;
mod signals;

use std::{
    io::ErrorKind,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, anyhow};
use app::accounts::{self, oauth_apps};
use axum::Router;
use http::{Server, listen};
use settings::Config;
use store::{Health, Store};
use tokio::{
    net::TcpListener,
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};

use self::{
    announcement::{Start, announce},
    publication::Publication,
    signals::Signals,
};
use crate::{
    commands::first_run::{self, Keys},
    control::{Addresses, Control, ControlContext},
    memory, metrics,
    open::{self, Opened, Stop},
    router,
    telemetry::Exporter,
    terminal::Terminal,
};

/// Timeout for writing the log after everything else has ended.
const LOG_FLUSH_TIMEOUT: Duration = Duration::from_secs(15);
/// Timeout for the last export of spans.
const SPAN_EXPORT_TIMEOUT: Duration = Duration::from_secs(3);
/// Interval at which the store is checked for a failure.
const STORE_CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Exit code of a server whose store failed while it ran (`EX_IOERR`).
const EXIT_STORE_FAILED: u8 = 74;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Publish every *.wasm component in this folder; skip those that are already published
    /// [default: the setting `toolkits`, else the components of the release that the store lacks]
    #[arg(long, value_name = "DIR")]
    toolkits: Option<PathBuf>,
    /// Run a tool of the documents toolkit on this file over HTTP and print its result
    #[arg(long, value_name = "FILE")]
    demo: Option<PathBuf>,
    /// Write the address and the keys to this file as JSON when the server is ready
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// Print only the address and the keys, as one line of JSON, when the server is ready
    #[arg(long)]
    json_ready: bool,
    /// Stop when standard input ends, so that the server does not outlive the program that started
    /// it
    #[arg(long)]
    until_stdin_ends: bool,
}

pub(crate) async fn run(config: Config, args: Args, terminal: Terminal) -> Result<ExitCode, Stop> {
    let (listener, address) = bind(&config.listen, "listen").await?;
    let metrics_listener = match &config.metrics.listen {
        Some(listen) => Some(bind(listen, "metrics.listen").await?),
        None => None,
    };
    publication::check(&config, args.toolkits.as_deref())?;
    let fresh = is_unused(&config.data);
    let Opened {
        app,
        writer,
        store,
        spans,
        new,
    } = open::open(&config).await?;
    memory::return_free_memory_now();
    let collector = config.collector()?;
    let exporter = collector.map(|collector| Exporter::new(collector, app.clock.clone()));
    let exporter = exporter.transpose()?.map(Arc::new);
    let server = Arc::new(Server::new(app, config)?);
    let (url, keys) = set_up(&server, address, new, fresh).await?;
    let publication = Publication::find(&server, args.toolkits.as_deref()).await?;
    let mut writing = JoinSet::new();
    writing.spawn(writer.run());
    let mut exporting = JoinSet::new();
    if let (Some(exporter), Some(spans)) = (&exporter, spans) {
        exporting.spawn(exporter.clone().export_spans(spans));
    }
    let stop = watch::Sender::new(false);
    let mut serving = JoinSet::new();
    let mcp_state = Arc::new(mcp::State::default());
    let router = router::router(server.clone(), mcp_state.clone());
    serve(&mut serving, &server, listener, router, &stop);
    let metrics_address = metrics_listener.map(|(listener, address)| {
        let router = metrics::router(server.clone());
        serve(&mut serving, &server, listener, router, &stop);
        address
    });
    let addresses = Addresses {
        url: url.clone(),
        listen: address,
    };
    let mut beside = run_beside(&server, mcp_state, &store, addresses, exporter);
    let mut signals = Signals::new(args.until_stdin_ends)?;
    let start = Start {
        url,
        keys,
        new,
        address,
        metrics_address,
        publication,
    };
    let announced = announce(&server, &args, start, terminal);
    // Also after a failure everything ends in order: tasks that lose the runtime report that the
    // store has failed.
    let outcome = until_stopped(announced, &store, &mut signals).await;
    tracing::info!("the server is stopping");
    server.set_serving(false);
    stop.send_replace(true);
    end_requests(&server, &mut serving, &mut beside, &mut signals).await;
    // The log and the spans end once no task can add records.
    drop(server);
    finish(&mut writing, &mut exporting).await;
    store.close().await;
    tracing::info!("the server has stopped");
    outcome
}

/// Returns true if no server has used a data directory: it is missing or empty.
fn is_unused(data: &Path) -> bool {
    std::fs::read_dir(data).map_or(true, |mut entries| entries.next().is_none())
}

/// Stores what the first start creates and what the settings contain. Returns the address where
/// clients reach the server, and the keys of the first project.
async fn set_up(
    server: &Server,
    address: SocketAddr,
    new: bool,
    fresh: bool,
) -> Result<(String, Keys), Stop> {
    let keys = if new {
        first_run::create(&server.app).await?
    } else {
        first_run::find(&server.app).await?
    };
    for client in server.config.oauth_apps() {
        let message = format!(
            "cannot store the OAuth app that the settings have for {}",
            client.toolkit
        );
        oauth_apps::set_from_settings(&server.app, client)
            .await
            .context(message)?;
    }
    let url = announced_url(&server.config, address);
    server.app.files.links.set_base_url(&url);
    first_run::write_env(&server.config.env_file(), &url, &keys, new || fresh)?;
    Ok((url, keys))
}

/// Starts to serve the connections of a listener until `stop`.
fn serve(
    serving: &mut JoinSet<()>,
    server: &Arc<Server>,
    listener: TcpListener,
    router: Router,
    stop: &watch::Sender<bool>,
) {
    let drain = Duration::from_secs(server.config.limits.drain_s);
    let stopping = stop.subscribe();
    serving.spawn(listen::serve(
        listener,
        server.clone(),
        router,
        stopping,
        drain,
    ));
}

/// Starts the tasks that run alongside the server and may end at any point.
fn run_beside(
    server: &Arc<Server>,
    mcp_state: Arc<mcp::State>,
    store: &Store,
    addresses: Addresses,
    exporter: Option<Arc<Exporter>>,
) -> JoinSet<()> {
    let mut beside = JoinSet::new();
    if let Some(control) = open_control(&server.config.data) {
        beside.spawn(control.serve(ControlContext {
            app: server.app.clone(),
            store: store.clone(),
            key_file: server.config.key_file(),
            addresses,
        }));
    }
    if let Some(exporter) = exporter {
        beside.spawn(exporter.export_metrics(server.clone()));
    }
    let working = server.clone();
    beside.spawn(async move {
        tokio::join!(
            working.app.watch_changes(),
            working.app.run_jobs(),
            mcp_state.watch_cancellations(&working.app),
            memory::return_free_memory()
        );
    });
    beside
}

/// Opens the control socket. The path may be too long for a socket, or the file system may not support
/// sockets. Everything else works without one.
fn open_control(data: &Path) -> Option<Control> {
    let opened = Control::open(data).inspect_err(|cause| {
        tracing::warn!(
            "`toolhost export` and `toolhost keys` work only while the server is stopped: {cause:#}"
        );
    });
    opened.ok()
}

/// Announces the server, and waits until a signal or a failure of the store stops it. Returns the
/// exit code.
async fn until_stopped(
    announced: impl Future<Output = Result<(), Stop>>,
    store: &Store,
    signals: &mut Signals,
) -> Result<ExitCode, Stop> {
    let announced = async {
        announced.await?;
        std::future::pending::<Result<(), Stop>>().await
    };
    tokio::select! {
        done = announced => done?,
        () = signals.wait() => {}
        why = failure(store) => {
            tracing::error!(why, "the store failed; the server stops, because only a restart can determine which records are stored");
            return Ok(ExitCode::from(EXIT_STORE_FAILED));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits until the store accepts no more writes, and returns the reason.
async fn failure(store: &Store) -> String {
    loop {
        if let Health::Failed(why) = store.health() {
            return why;
        }
        sleep(STORE_CHECK_INTERVAL).await;
    }
}

/// Ends the requests of a server and the tasks alongside it, and writes what they have counted.
async fn end_requests(
    server: &Server,
    serving: &mut JoinSet<()>,
    beside: &mut JoinSet<()>,
    signals: &mut Signals,
) {
    drain(serving, signals).await;
    // An aborted export reports it; it must not delay the last writes.
    beside.shutdown().await;
    // An aborted call starts no further refresh.
    server.detached.abort();
    // A provider that has replaced a refresh token may reject the old one after the next start, and
    // keeps a client that this server does not know.
    accounts::finish_tasks(&server.app).await;
    let written = timeout(LOG_FLUSH_TIMEOUT, server.app.write_counts()).await;
    if written.is_err() {
        tracing::warn!("last uses of keys and daily quotas were not written before the timeout");
    }
}

/// Waits for the open connections, or cuts them at a second signal.
async fn drain(serving: &mut JoinSet<()>, signals: &mut Signals) {
    let drained = async { while serving.join_next().await.is_some() {} };
    tokio::select! {
        () = drained => {}
        () = signals.wait() => {
            tracing::warn!("received a second signal to stop: unfinished requests are aborted");
            serving.shutdown().await;
        }
    }
}

/// Waits for the last writes to the log and the last export of spans.
async fn finish(writing: &mut JoinSet<()>, exporting: &mut JoinSet<()>) {
    let written = timeout(LOG_FLUSH_TIMEOUT, writing.join_next()).await;
    if written.is_err() {
        tracing::error!("the execution log was not written before the timeout");
    }
    let exported = timeout(SPAN_EXPORT_TIMEOUT, exporting.join_next()).await;
    if exported.is_err() {
        tracing::warn!(
            "spans were not exported before the timeout: the collector does not respond"
        );
    }
}

/// Binds an address that a setting names. Returns also the address itself, with its port.
async fn bind(listen: &str, setting: &str) -> Result<(TcpListener, SocketAddr)> {
    let bound = TcpListener::bind(listen).await;
    let listener = bound.map_err(|cause| {
        let remedy = match cause.kind() {
            ErrorKind::AddrInUse => {
                format!("stop the program that uses it, or set `{setting}` to another address")
            }
            _ => format!(
                "set `{setting}` to an address of this machine with a permitted port, for example 127.0.0.1:8080"
            ),
        };
        anyhow!("cannot listen on {listen}: {cause}; {remedy}")
    })?;
    let address = listener
        .local_addr()
        .context("cannot read the address of the listener")?;
    Ok((listener, address))
}

/// Returns the URL that clients of a server on an address are told.
pub(super) fn announced_url(config: &Config, address: SocketAddr) -> String {
    if let Some(url) = &config.public_url {
        return url.as_str().trim_end_matches('/').to_owned();
    }
    if address.ip().is_unspecified() {
        format!("http://127.0.0.1:{}", address.port())
    } else {
        format!("http://{address}")
    }
}
