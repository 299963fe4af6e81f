//! `toolhost serve`: config → store → sandbox → app → listen → toolkits → serve → drain.
//!
//! The address is taken first, so that a second server on it fails before it touches anything. Clients are told apart from
//! people: a first start explains itself, a later one says where it is.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use app::connections::apps;
use futures::{StreamExt, stream};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use store::{Health, Store};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::{oneshot, watch},
    task::JoinSet,
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
    listen, memory,
    open::{self, Opened, Stop},
    routes,
    terminal::Terminal,
};

/// How long the log may take to be written once everything else has ended.
const LAST_WRITES: Duration = Duration::from_secs(15);
/// How often it is looked whether the store has failed.
const LOOK: Duration = Duration::from_millis(500);
/// Exit code of a server whose store has failed while it ran (`EX_IOERR`).
const STORE_FAILED: u8 = 74;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Publish every *.wasm component of this folder; what is published already is skipped
    #[arg(long, value_name = "DIR")]
    toolkits: Option<PathBuf>,
    /// Run a documents tool on this file through HTTP and show its answer
    #[arg(long, value_name = "FILE")]
    demo: Option<PathBuf>,
    /// When ready, write address and keys to this file as JSON
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// When ready, print address and keys as one line of JSON and nothing else
    #[arg(long)]
    json_ready: bool,
    /// Stop when standard input ends, so that the server does not outlive the program that started it
    #[arg(long)]
    until_stdin_ends: bool,
}

pub(crate) async fn run(config: Config, args: Args, terminal: Terminal) -> Result<ExitCode, Stop> {
    let listener = bind(&config.listen).await?;
    let address = listener.local_addr().context("read the address listened on").map_err(Stop::from)?;
    let fresh = !config.data.exists();
    let Opened { app, writer, store, new } = open::open(&config).await?;
    memory::give_back_now();
    let server = Arc::new(Server::new(app, config)?);
    let keys = if new { first_run::make(&server.app).await? } else { first_run::find(&server.app).await? };
    for client in server.config.oauth_apps() {
        let what = format!("keep the client that the settings have for {}", client.toolkit);
        apps::named(&server.app, client).await.context(what)?;
    }
    let url = url(&server.config, address);
    server.app.files.links.lead_to(&url);
    first_run::write_env(&server.config.env_file(), &url, &keys, new || fresh)?;

    let mut writing = JoinSet::new();
    writing.spawn(writer.run());
    let (stop, stopping) = watch::channel(false);
    let mut serving = JoinSet::new();
    let drain = Duration::from_secs(server.config.limits.drain_s);
    serving.spawn(listen::serve(listener, server.clone(), routes::router(server.clone()), stopping, drain));

    // What goes on beside serving and may end at any point.
    let mut beside = JoinSet::new();
    match Control::open(&server.config.data) {
        Ok(control) => {
            let (vault, clock) = (server.app.vault.clone(), server.app.clock.clone());
            beside.spawn(control.serve(store.clone(), vault, clock, server.config.key_file()));
        }
        // A path too long for a socket, a file system without them: everything else works.
        Err(cause) => tracing::warn!("`toolhost export` and `toolhost keys` need a stopped server: {cause:#}"),
    }

    let working = server.clone();
    beside.spawn(async move {
        tokio::join!(working.app.follow(), working.app.work(), memory::give_back());
    });

    let mut signals = Signals::new(args.until_stdin_ends)?;
    let start = Start { url, keys, new, address };
    let mut code = ExitCode::SUCCESS;
    let announced = async {
        announce(&server, &args, &start, terminal).await?;
        std::future::pending::<Result<(), Stop>>().await
    };
    tokio::select! {
        done = announced => done?,
        () = signals.wait() => {}
        why = failure(&store) => {
            tracing::error!(why, "the store has failed: stopping, since only a new start finds out what it holds");
            code = ExitCode::from(STORE_FAILED);
        }
    }
    server.set_serving(false);
    // Nobody listens when serving has ended by itself, which it does not.
    let _ = stop.send(true);
    let drained = async { while serving.join_next().await.is_some() {} };
    tokio::select! {
        () = drained => {}
        () = signals.wait() => {
            tracing::warn!("stopped a second time: what still runs is cut");
            serving.shutdown().await;
        }
    }
    // An export that is cut says so; it must not hold back the last writes.
    beside.shutdown().await;
    // The log ends when nobody can enter records any more.
    drop(server);
    if tokio::time::timeout(LAST_WRITES, writing.join_next()).await.is_err() {
        tracing::error!("the execution log could not be written in time");
    }
    store.close().await;
    Ok(code)
}

/// Waits until the store acknowledges nothing any more, and says why.
async fn failure(store: &Store) -> String {
    loop {
        if let Health::Failed(why) = store.health() {
            return why;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// What is known at a start.
struct Start {
    url: String,
    keys: Keys,
    new: bool,
    address: SocketAddr,
}

/// Publishes, says hello, and lets clients in.
async fn announce(server: &Arc<Server>, args: &Args, start: &Start, terminal: Terminal) -> Result<(), Stop> {
    let folder = args.toolkits.as_ref().or(server.config.toolkits.as_ref());
    let published = match folder {
        Some(folder) => publish(server, folder).await?,
        None => Published::default(),
    };
    server.set_serving(true);
    let ready = json!({
        "ready": true,
        "url": start.url,
        "pid": std::process::id(),
        "project_id": start.keys.project,
        "api_key": start.keys.project_key.as_str(),
        "org_api_key": start.keys.organisation_key.as_str(),
    });
    if let Some(path) = &args.ready_file {
        first_run::write_private(path, &ready.to_string())?;
    }
    if args.json_ready {
        terminal.line(&ready.to_string());
        return Ok(());
    }
    first_run::greet(server, &start.url, start.new, terminal);
    for problem in &published.problems {
        terminal.bad(problem);
    }
    if let Some(file) = &args.demo {
        demo::run(start.address, &start.keys, file, terminal).await;
    }
    if start.new {
        first_run::lines_to_paste(server, terminal);
    }
    Ok(())
}

#[derive(Default)]
struct Published {
    problems: Vec<String>,
}

/// Publishes the components of a folder. One that cannot be published does not keep the others.
async fn publish(server: &Arc<Server>, folder: &Path) -> Result<Published> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .with_context(|| format!("read the folder of toolkits {}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "wasm"))
        .collect();
    files.sort();
    let bar = ProgressBar::new(files.len() as u64).with_style(
        ProgressStyle::with_template("  publishing {pos}/{len} {wide_bar:.dim} {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let problems: Vec<_> = stream::iter(files)
        .map(|path| {
            let (server, bar) = (server.clone(), bar.clone());
            async move {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                bar.set_message(name.clone());
                let done = publish_one(&server, &path).await;
                bar.inc(1);
                done.err().map(|cause| format!("{name}: {cause:#}"))
            }
        })
        .buffer_unordered(cores)
        .filter_map(std::future::ready)
        .collect()
        .await;
    bar.finish_and_clear();
    Ok(Published { problems })
}

async fn publish_one(server: &Server, path: &Path) -> Result<()> {
    let bytes = tokio::fs::read(path).await.context("cannot be read")?;
    let (slug, version) = app::catalog::identity(&bytes)?;
    let signature = toolkits::signature_beside(path)?;
    let terms = app::catalog::Terms { signature: signature.as_deref(), breaking: false };
    app::catalog::publish(&server.app, &slug, &version, bytes.into(), terms).await?;
    Ok(())
}

async fn bind(listen: &str) -> Result<TcpListener, Stop> {
    let bound = TcpListener::bind(listen).await;
    bound
        .with_context(|| format!("cannot listen on {listen}; is another server running there? Set `listen` to another"))
        .map_err(Stop::from)
}

/// Where clients reach the server.
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

/// SIGTERM, ctrl-c, and the end of standard input when that is to mean the same.
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    input: Option<oneshot::Receiver<()>>,
}

impl Signals {
    fn new(until_stdin_ends: bool) -> Result<Self, Stop> {
        let on = |kind| signal(kind).context("listen for signals").map_err(Stop::from);
        let input = until_stdin_ends.then(|| {
            let (ended, input) = oneshot::channel();
            // A thread that nobody waits for: reading standard input cannot be broken off.
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
                ended.send(())
            });
            input
        });
        Ok(Self { terminate: on(SignalKind::terminate())?, interrupt: on(SignalKind::interrupt())?, input })
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
        // It ends once; the second time is a signal.
        self.input = None;
    }
}
