//! `toolhost keys`: the master key, and API keys.
//!
//! The master key is asked of a running server, or found in the data of a stopped one; API keys in the latter alone, because a
//! running server's are in `<data>.env`.

use std::{io::Read, process::ExitCode};

use anyhow::{Context, anyhow};
use app::{ids::OrganisationId, projects, vault::Master};

use crate::{
    config::Config,
    control::{self, Ask, Reply},
    open::{self, Opened, Stop},
    terminal::Terminal,
};

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Print the organisation key and the keys of every project in full
    Show,
    /// Replace the master key: everything it sealed is sealed by a new one, while the server runs
    ///
    /// The key file has both keys until the old one seals nothing. When this is interrupted, nothing is lost; run it again
    /// and it goes on. Copies of the data directory made before need the old key file; exports bring their key along. Of
    /// several servers on one database all but one must be stopped, and get the new key file before they start.
    Rotate,
}

const EXAMPLES: &str = "Without a command: which master keys there are, and how many secrets each seals.

Examples:
  toolhost keys
  toolhost keys rotate";

pub(crate) async fn run(config: &Config, args: &Args, terminal: Terminal) -> Result<ExitCode, Stop> {
    if config.database().is_none() && !config.data.exists() {
        return Err(anyhow!("there is no data directory at {}", config.data.display()).into());
    }
    match args.what {
        Some(What::Show) => show_all(config, terminal).await?,
        None => tell(&masters(config, Ask::Keys).await?, config, terminal),
        Some(What::Rotate) => {
            let masters = masters(config, Ask::Rotate).await?;
            terminal.good("the master key is a new one, and everything is sealed by it");
            tell(&masters, config, terminal);
            terminal.note("keep a copy of the key file elsewhere; the copy you have opens only what was copied before");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn tell(masters: &[Master], config: &Config, terminal: Terminal) {
    for Master { id, current, seals } in masters {
        let state = if *current { "in use" } else { "being replaced: `toolhost keys rotate` goes on" };
        terminal.line(&format!("  {id}  seals {seals} data keys  {}", terminal.dim(state)));
    }
    terminal.pair("file", &config.key_file().display().to_string());
}

/// The master keys, of a running server or a stopped one, after what was asked is done.
async fn masters(config: &Config, ask: Ask) -> Result<Vec<Master>, Stop> {
    // A shared database belongs to no process alone: whether a server runs here, its socket tells.
    if control::is_there(&config.data) {
        let data = config.data.clone();
        let asking = tokio::task::spawn_blocking(move || {
            let mut text = String::new();
            control::ask(&data, ask)?.read_to_string(&mut text)?;
            serde_json::from_str::<Reply>(&text).context("the server stopped before it was done; run this again")
        });
        let reply = asking.await.context("ask the server")??;
        return reply.map_err(|cause| anyhow!(cause).into());
    }
    let Opened { app, store, .. } = open::open(config).await?;
    let done = match ask {
        Ask::Rotate => control::rotate(&app.vault, &config.key_file(), app.clock.now()).await,
        _ => app.vault.masters().await.map_err(Into::into),
    };
    drop(app);
    store.close().await;
    done.map_err(|cause| anyhow!(cause).into())
}

async fn show_all(config: &Config, terminal: Terminal) -> Result<(), Stop> {
    let Opened { app, store, .. } = open::open(config).await.map_err(|stop| Stop {
        line: format!("{}; the keys of a running server are in {}", stop.line, config.env_file().display()),
        ..stop
    })?;
    if let Some(organisation) = projects::organisation(&app).await? {
        show(&app, &organisation.body.name, &organisation.id, terminal).await?;
        let id = OrganisationId::parse(&organisation.id)?;
        for page in 0.. {
            let (found, _) = projects::list(&app, &id, page * 500, 500).await?;
            for project in &found {
                show(&app, &project.stored.name, project.id.as_str(), terminal).await?;
            }
            if found.len() < 500 {
                break;
            }
        }
    }
    drop(app);
    store.close().await;
    Ok(())
}

async fn show(app: &app::App, name: &str, owner: &str, terminal: Terminal) -> Result<(), Stop> {
    for key in projects::show_keys(app, owner).await? {
        terminal.line(&format!("{name:<24}  {}  {}", key.secret.as_str(), terminal.dim(&key.name)));
    }
    Ok(())
}
