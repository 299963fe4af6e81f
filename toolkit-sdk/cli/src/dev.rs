//! `toolkit dev`: serves a toolkit on the real API and rebuilds it after each change.
//!
//! Problem: to try a tool as an agent calls it, an author needs a server, a project, a key, and a
//! new published version after each edit.
//!
//! Guarantee: the served version is the newest source that compiled. A failed build does not
//! replace the last good one. A change during a build is built next. The same source is not built
//! twice, and the same component is not published twice.
//!
//! Basis: `toolhost`, the production server, runs alongside this command on a temporary folder. The
//! command uses only its API: each good build is published as a new version.

mod accounts;
mod api;
mod calls;
mod console;
mod release;
mod server;
mod sources;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::Instant,
};

use anyhow::{Context, Result, bail};
use clap::Args;
use ipnet::IpNet;
use net::Rewrite;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::oneshot,
};
use url::Url;

use crate::{
    build::{self, BuildTarget, Built},
    toolchain::{Mode, Profile},
};
use api::Api;
use calls::Calls;
use console::{Console, Event};
use release::Releases;
use server::Server;
use sources::{Snapshot, Sources};

/// Serve a toolkit on a temporary server, rebuilt after each change.
///
/// The toolkit has the real API, and polls and webhooks are shown as they run. Builds are compiled as quickly
/// as possible: `toolkit publish` optimizes further.
///
/// The server lives as long as this command. It has one project, whose key is part of the printed
/// command to paste.
#[derive(Debug, Args)]
#[command(after_help = HELP_EXAMPLES)]
pub(crate) struct Dev {
    /// Folder of the toolkit [default: the current one].
    path: Option<PathBuf>,
    /// Publish to this running server instead; its keys come from TOOLHOST_ORG_API_KEY and
    /// TOOLHOST_API_KEY.
    #[arg(long, value_name = "URL", value_parser = crate::publish::server_url)]
    server: Option<Url>,
    /// Key of the organization, for --server.
    #[arg(long, env = "TOOLHOST_ORG_API_KEY", hide_env_values = true)]
    org_key: Option<String>,
    /// Key of the project, for --server.
    #[arg(long, env = "TOOLHOST_API_KEY", hide_env_values = true)]
    key: Option<String>,
    /// Port of the temporary server; 0 takes a free one.
    #[arg(long, default_value_t = 0, conflicts_with = "server")]
    port: u16,
    /// JSON file with the fields of an account; otherwise each comes from the environment as
    /// TOOLKIT_<FIELD>.
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,
    /// Send one origin to another, for example https://api.example.com=http://127.0.0.1:4010.
    #[arg(long, env = "TOOLKIT_REWRITE", value_name = "FROM=TO", value_parser = crate::run::rewrite, value_delimiter = ',')]
    rewrite: Vec<Rewrite>,
    /// Private network that may be reached, for example 10.0.0.0/8.
    #[arg(long, value_name = "CIDR", conflicts_with = "server")]
    allow: Vec<IpNet>,
    /// Toolchain to compile with [default: the first that works here].
    #[arg(long, value_enum, env = "TOOLKIT_TOOLCHAIN")]
    toolchain: Option<Mode>,
    /// Print one JSON object a line: serving, building, built, failed, connected, call, trigger.
    #[arg(long)]
    json: bool,
}

const HELP_EXAMPLES: &str = "Examples:
  toolkit dev
  toolkit dev my-toolkit --port 8080
  TOOLKIT_API_KEY=… toolkit dev my-toolkit       connects an account with the key
  toolkit dev my-toolkit --rewrite https://api.example.com=http://127.0.0.1:4010

Triggers are served, too: polls and webhooks are shown as they run. To fire one by hand with a recorded input, without a server:
  toolkit run my-toolkit --trigger NEW_ITEM --config '{}' --cursor 7
  toolkit run my-toolkit --trigger PUSHED --case my-toolkit/cases/pushed/success.json";

/// Runs the command until it is interrupted or the server ends.
pub(crate) async fn run(options: &Dev) -> Result<ExitCode> {
    let path = options.path.clone().unwrap_or_else(|| ".".into());
    let folder = path
        .canonicalize()
        .with_context(|| format!("cannot read {}", path.display()))?;
    if !folder.is_dir() {
        bail!(
            "{} is a file; name the folder of a toolkit",
            folder.display()
        );
    }
    build::check_folder(&folder)?;
    let mut stop = Stop::listen()?;
    let console = Console::new(options.json);
    let mut sources = Sources::watch(folder.clone());
    let mut server = tokio::select! {
        opened = Server::open(options, console) => opened?,
        () = stop.requested() => return Ok(ExitCode::SUCCESS),
    };
    console.print(&Event::Serving(&server.api));
    let components = tempfile::tempdir().context("cannot make a temporary folder")?;
    let api = server.api.clone();
    let build_loop = BuildLoop {
        options,
        folder: &folder,
        out: components.path(),
        api: &api,
        console: &console,
    };
    let mut calls = Calls::new(&api, &console);
    let ended = tokio::select! {
        failed = build_loop.run_loop(&mut sources) => failed,
        never = calls.run_loop() => never,
        ended = server.exit_error() => Err(ended),
        () = stop.requested() => Ok(()),
    };
    server.stop().await;
    ended.map(|()| ExitCode::SUCCESS)
}

/// Build and publish loop.
struct BuildLoop<'d> {
    options: &'d Dev,
    folder: &'d Path,
    /// Folder for built components, separate from the toolkit's own `dist`.
    out: &'d Path,
    api: &'d Api,
    console: &'d Console,
}

impl BuildLoop<'_> {
    /// Builds now and after each change. Returns only on a failure outside the toolkit.
    async fn run_loop(&self, sources: &mut Sources) -> Result<()> {
        let mut releases = Releases::new(self.api);
        let mut connected = false;
        let mut built = Snapshot::default();
        loop {
            let now = sources.changed_from(&built).await?;
            self.console.print(&Event::Building {
                changed: &now.changed_from(&built),
            });
            let begun = Instant::now();
            match self.build(&mut releases).await {
                Ok(served) => {
                    for one in &served {
                        self.console.print(&Event::Built {
                            served: one,
                            api: self.api,
                            took: begun.elapsed(),
                        });
                    }
                    if !connected {
                        connected =
                            accounts::connect(self.api, self.options, &served, self.console).await;
                    }
                }
                Err(cause) => self.console.print(&Event::Failed(&format!("{cause:#}"))),
            }
            built = now;
            // The lock file that cargo has written is part of the built state.
            built.take_lock_file(&sources.scan()?);
        }
    }

    async fn build(&self, releases: &mut Releases<'_>) -> Result<Vec<release::Served>> {
        let what = BuildTarget::at(self.folder.to_owned(), self.options.toolchain)
            .with_profile(Profile::Quick);
        let out = self.out.to_owned();
        let (done, built) = oneshot::channel::<Result<Vec<Built>>>();
        // This thread does not belong to the runtime, so that the command can end without waiting
        // for the compiler.
        thread::spawn(move || done.send(build::build(&what, None, Some(&out))));
        let mut served = Vec::new();
        for one in built
            .await
            .context("the build thread ended unexpectedly")??
        {
            served.push(releases.serve(&one).await?);
        }
        Ok(served)
    }
}

/// Signals that end the command: ctrl-c and others.
struct Stop([tokio::signal::unix::Signal; 3]);

fn listen(kind: SignalKind) -> Result<tokio::signal::unix::Signal> {
    signal(kind).context("cannot listen for signals")
}

impl Stop {
    fn listen() -> Result<Self> {
        Ok(Self([
            listen(SignalKind::interrupt())?,
            listen(SignalKind::terminate())?,
            listen(SignalKind::hangup())?,
        ]))
    }

    async fn requested(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
