//! `toolhost serve`: config → store → sandbox → app → listen → toolkits → serve → drain.
//!
//! The address is bound first, so that a second server on it fails before it changes anything. A
//! first start prints an explanation; a later one prints only the address.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use app::accounts::oauth_apps;
use futures::{StreamExt, stream};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use store::{Health, Store};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::{oneshot, watch},
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    Server,
    commands::{
        demo,
        first_run::{self, Keys},
        toolkits,
    },
    config::Config,
    control::Control,
    http::{listen, router},
    mcp, memory, metrics,
    open::{self, Opened, Stop},
    telemetry::Exporter,
    terminal::Terminal,
};

/// Timeout for writing the log after everything else has ended.
const LOG_FLUSH_TIMEOUT: Duration = Duration::from_secs(15);
/// Timeout for the last export of spans.
const SPAN_EXPORT_TIMEOUT: Duration = Duration::from_secs(3);
/// Interval at which the store is checked for a failure.
const STORE_CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Interval at which a start that publishes toolkits says how far it is.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);
/// Exit code of a server whose store failed while it ran (`EX_IOERR`).
const EXIT_STORE_FAILED: u8 = 74;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Publish every *.wasm component in this folder; skip those that are already published
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
    let listener = bind(&config.listen, "listen").await?;
    let address = listener
        .local_addr()
        .context("cannot read the address of the listener")
        .map_err(Stop::from)?;
    let metrics_listener = match &config.metrics.listen {
        Some(listen) => Some(bind(listen, "metrics.listen").await?),
        None => None,
    };
    let fresh = !config.data.exists();
    let Opened {
        app,
        writer,
        store,
        spans,
        new,
    } = open::open(&config).await?;
    memory::return_free_memory_now();
    let clock = app.clock.clone();
    let collector = config.collector()?;
    let exporter = collector.map(|collector| Exporter::new(collector, clock));
    let exporter = exporter.transpose()?.map(Arc::new);
    let server = Arc::new(Server::new(app, config)?);
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
    let url = url(&server.config, address);
    server.app.files.links.set_base_url(&url);
    first_run::write_env(&server.config.env_file(), &url, &keys, new || fresh)?;

    let mut writing = JoinSet::new();
    writing.spawn(writer.run());
    let mut exporting = JoinSet::new();
    if let (Some(exporter), Some(spans)) = (&exporter, spans) {
        exporting.spawn(exporter.clone().export_spans(spans));
    }
    let (stop, stopping) = watch::channel(false);
    let mut serving = JoinSet::new();
    let drain = Duration::from_secs(server.config.limits.drain_s);
    serving.spawn(listen::serve(
        listener,
        server.clone(),
        router::router(server.clone()),
        stopping.clone(),
        drain,
    ));
    let metrics_address = metrics_listener
        .as_ref()
        .and_then(|listener| listener.local_addr().ok());
    if let Some(listener) = metrics_listener {
        let router = metrics::router(server.clone());
        serving.spawn(listen::serve(
            listener,
            server.clone(),
            router,
            stopping,
            drain,
        ));
    }

    // Tasks that run beside the server and may end at any point.
    let mut beside = JoinSet::new();
    match Control::open(&server.config.data) {
        Ok(control) => {
            let vault = server.app.vault.clone();
            let clock = server.app.clock.clone();
            beside.spawn(control.serve(store.clone(), vault, clock, server.config.key_file()));
        }
        // The path may be too long for a socket, or the file system may not support sockets.
        // Everything else works without one.
        Err(cause) => {
            tracing::warn!(
                "`toolhost export` and `toolhost keys` work only while the server is stopped: {cause:#}"
            )
        }
    }

    if let Some(exporter) = exporter {
        beside.spawn(exporter.export_metrics(server.clone()));
    }
    let working = server.clone();
    beside.spawn(async move {
        tokio::join!(
            working.app.watch_changes(),
            working.app.run_jobs(),
            mcp::watch_cancellations(&working),
            memory::return_free_memory()
        );
    });

    let mut signals = Signals::new(args.until_stdin_ends)?;
    let start = Start {
        url,
        keys,
        new,
        address,
        metrics_address,
    };
    let mut code = ExitCode::SUCCESS;
    let announced = async {
        announce(&server, &args, &start, terminal).await?;
        std::future::pending::<Result<(), Stop>>().await
    };
    tokio::select! {
        done = announced => done?,
        () = signals.wait() => {}
        why = failure(&store) => {
            tracing::error!(why, "the store failed; the server stops, because only a restart can determine which records are stored");
            code = ExitCode::from(EXIT_STORE_FAILED);
        }
    }
    tracing::info!("the server is stopping");
    server.set_serving(false);
    // Sending fails only if serving ended by itself, which does not happen.
    let _ = stop.send(true);
    let drained = async { while serving.join_next().await.is_some() {} };
    tokio::select! {
        () = drained => {}
        () = signals.wait() => {
            tracing::warn!("received a second signal to stop: unfinished requests are aborted");
            serving.shutdown().await;
        }
    }
    // An export that is aborted reports it; it must not delay the last writes.
    beside.shutdown().await;
    // The log and the spans end once no task can add records.
    drop(server.detached.take());
    drop(server);
    if timeout(LOG_FLUSH_TIMEOUT, writing.join_next())
        .await
        .is_err()
    {
        tracing::error!("the execution log was not written before the timeout");
    }
    let exported = timeout(SPAN_EXPORT_TIMEOUT, exporting.join_next()).await;
    if exported.is_err() {
        tracing::warn!(
            "spans were not exported before the timeout: the collector does not respond"
        );
    }
    store.close().await;
    tracing::info!("the server has stopped");
    Ok(code)
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

/// Facts known at startup.
struct Start {
    url: String,
    keys: Keys,
    new: bool,
    address: SocketAddr,
    metrics_address: Option<SocketAddr>,
}

/// Publishes the toolkits, prints the greeting, and lets clients in.
async fn announce(
    server: &Arc<Server>,
    args: &Args,
    start: &Start,
    terminal: Terminal,
) -> Result<(), Stop> {
    let folder = args.toolkits.as_ref().or(server.config.toolkits.as_ref());
    let problems = match folder {
        Some(folder) => publish(server, folder, (!args.json_ready).then_some(terminal)).await?,
        None => Vec::new(),
    };
    server.set_serving(true);
    let metrics_url = start
        .metrics_address
        .map(|address| format!("http://{address}{}", metrics::METRICS_PATH));
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        address = %start.address,
        metrics = start.metrics_address.map(tracing::field::display),
        "the server has started"
    );
    let ready = json!({
        "ready": true,
        "url": start.url,
        "metrics_url": metrics_url,
        "pid": std::process::id(),
        "project_id": start.keys.project,
        "api_key": start.keys.project_key.as_str(),
        "org_api_key": start.keys.organization_key.as_str(),
    });
    if let Some(path) = &args.ready_file {
        first_run::write_private(path, &ready.to_string())?;
    }
    if args.json_ready {
        terminal.line(&ready.to_string());
        return Ok(());
    }
    first_run::print_summary(server, &start.url, start.new, terminal);
    if let Some(url) = &metrics_url {
        terminal.pair("metrics", url);
    }
    for problem in &problems {
        terminal.bad(problem);
    }
    if let Some(file) = &args.demo {
        demo::run(&server.config, start.address, &start.keys, file, terminal).await;
    }
    if start.new {
        first_run::print_examples(server, terminal);
    }
    Ok(())
}

/// Publishes the components of a folder, and returns the problems. A component that cannot be
/// published does not prevent the others.
async fn publish(
    server: &Arc<Server>,
    folder: &Path,
    progress: Option<Terminal>,
) -> Result<Vec<String>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .with_context(|| format!("cannot read the folder of toolkits {}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "wasm")
        })
        .collect();
    files.sort();
    let bar = ProgressBar::new(files.len() as u64).with_style(
        ProgressStyle::with_template("  publishing {pos}/{len} {wide_bar:.dim} {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let publications = stream::iter(files)
        .map(|path| {
            let server = server.clone();
            let bar = bar.clone();
            async move {
                let name = path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                bar.set_message(name.clone());
                let done = publish_one(&server, &path).await;
                bar.inc(1);
                done.err().map(|cause| format!("{name}: {cause:#}"))
            }
        })
        .buffer_unordered(cores)
        .filter_map(std::future::ready)
        .collect::<Vec<_>>();
    // On a terminal there is a bar.
    let progress = progress.filter(|_| bar.is_hidden());
    let reported = async {
        loop {
            sleep(PROGRESS_INTERVAL).await;
            if let Some(terminal) = progress {
                let total = bar.length().unwrap_or_default();
                terminal.line(&format!(
                    "publishing toolkits: {} of {total}",
                    bar.position()
                ));
            }
        }
    };
    let problems = tokio::select! {
        problems = publications => problems,
        () = reported => Vec::new(),
    };
    bar.finish_and_clear();
    Ok(problems)
}

async fn publish_one(server: &Server, path: &Path) -> Result<()> {
    let bytes = tokio::fs::read(path)
        .await
        .context("cannot read the file")?;
    let (slug, version) = app::catalog::identity(&bytes)?;
    let signature = toolkits::signature_beside(path)?;
    let terms = app::catalog::Terms {
        signature: signature.as_deref(),
        breaking: false,
    };
    app::catalog::publish(&server.app, &slug, &version, bytes.into(), terms).await?;
    Ok(())
}

/// Binds an address that a setting names.
async fn bind(listen: &str, setting: &str) -> Result<TcpListener, Stop> {
    let bound = TcpListener::bind(listen).await;
    bound
        .with_context(|| format!("cannot listen on {listen}; if another program uses this address, stop it or set `{setting}` to another one"))
        .map_err(Stop::from)
}

/// Returns the address where clients reach the server.
fn url(config: &Config, address: SocketAddr) -> String {
    if let Some(url) = &config.public_url {
        return url.as_str().trim_end_matches('/').to_owned();
    }
    if address.ip().is_unspecified() {
        format!("http://127.0.0.1:{}", address.port())
    } else {
        format!("http://{address}")
    }
}

/// SIGTERM, ctrl-c, and the end of standard input if it is to stop the server.
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    input: Option<oneshot::Receiver<()>>,
}

impl Signals {
    fn new(until_stdin_ends: bool) -> Result<Self, Stop> {
        let on = |kind| {
            signal(kind)
                .context("cannot listen for signals")
                .map_err(Stop::from)
        };
        let input = until_stdin_ends.then(|| {
            let (ended, input) = oneshot::channel();
            // The thread is never joined: reading standard input cannot be interrupted.
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
                ended.send(())
            });
            input
        });
        Ok(Self {
            terminate: on(SignalKind::terminate())?,
            interrupt: on(SignalKind::interrupt())?,
            input,
        })
    }

    async fn wait(&mut self) {
        let input = async {
            match &mut self.input {
                Some(input) => drop(input.await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            () = input => {}
        }
        // Standard input ends once; only a signal can come a second time.
        self.input = None;
    }
}
