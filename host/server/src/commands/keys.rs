//! `toolhost keys`: the master key, and API keys.
//!
//! The master keys are requested from a running server, or read from the data of a stopped one. API
//! keys are listed, created and revoked by a running server over its API. All of them are shown in
//! full from the data of a stopped server.

use std::{io::Read, process::ExitCode};

use anyhow::{Context, anyhow};
use app::{Window, ids::OrganizationId, projects, vault::MasterKeyUsage};
use net::Method;
use serde_json::{Value, json};

use crate::{
    commands::running::{Named, Running},
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
    /// Print the organization key and the keys of every project in full
    Show,
    /// Replace the master key: everything it sealed is sealed by a new one, while the server runs
    ///
    /// The key file has both keys until the old one seals nothing. If this is interrupted, nothing
    /// is lost; run it again and it continues. Copies of the data directory made before need the
    /// old key file; exports contain their key. Of several servers on one database all but one must
    /// be stopped, and get the new key file before they start.
    Rotate,
    /// List the API keys of a project, with the time of their last use
    List {
        /// Name or id
        project: String,
        #[command(flatten)]
        server: Named,
    },
    /// Add an API key to a project; it is printed once
    Add {
        /// Name or id
        project: String,
        /// Purpose of the key
        name: String,
        /// Permission of the key, for example tools=read; several may be given [default:
        /// everything]
        #[arg(long, value_name = "AREA=ACCESS")]
        allow: Vec<String>,
        /// Address or range it may be used from; several may be given [default: anywhere]
        #[arg(long, value_name = "ADDRESS")]
        from: Vec<String>,
        #[command(flatten)]
        server: Named,
    },
    /// Revoke an API key of a project at once
    Revoke {
        /// Name or id
        project: String,
        /// The key's id, as `toolhost keys list` prints it
        key: String,
        #[command(flatten)]
        server: Named,
    },
}

const EXAMPLES: &str =
    "Without a command: which master keys there are, and how many secrets each seals.

Examples:
  toolhost keys
  toolhost keys rotate
  toolhost keys add demo dashboard --allow observability=read --from 10.0.0.0/8
  toolhost keys revoke demo key_f3Yq0vB1xw2K";

pub(crate) async fn run(
    config: &Config,
    args: &Args,
    terminal: Terminal,
) -> Result<ExitCode, Stop> {
    match &args.what {
        Some(What::List { project, server }) => {
            list(&server.reach(config)?, project, terminal).await?
        }
        Some(What::Add {
            project,
            name,
            allow,
            from,
            server,
        }) => {
            let body =
                json!({"name": name, "permissions": permissions(allow)?, "allowed_ips": from});
            add(&server.reach(config)?, project, &body, terminal).await?;
        }
        Some(What::Revoke {
            project,
            key,
            server,
        }) => {
            let server = server.reach(config)?;
            let path = format!(
                "org/owner/project/{}/api_keys/{key}",
                server.project(project).await?
            );
            server.ask_json(Method::DELETE, &path, &Value::Null).await?;
            terminal.good(&format!("{key} opens nothing any more"));
        }
        here => of_this_machine(config, here.as_ref(), terminal).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the commands that need the data directory or the database.
async fn of_this_machine(
    config: &Config,
    what: Option<&What>,
    terminal: Terminal,
) -> Result<(), Stop> {
    if config.database().is_none() && !config.data.exists() {
        return Err(anyhow!("there is no data directory at {}", config.data.display()).into());
    }
    match what {
        Some(What::Show) => show_all(config, terminal).await?,
        Some(What::Rotate) => {
            let masters = masters(config, Ask::Rotate).await?;
            terminal.good("the master key is a new one, and everything is sealed by it");
            tell(&masters, config, terminal);
            terminal.note("keep a copy of the key file elsewhere; the copy you have opens only what was copied before");
        }
        _ => tell(&masters(config, Ask::Keys).await?, config, terminal),
    }
    Ok(())
}

async fn list(server: &Running, project: &str, terminal: Terminal) -> Result<(), Stop> {
    let path = format!(
        "org/owner/project/{}/api_keys",
        server.project(project).await?
    );
    let keys = server.ask_json(Method::GET, &path, &Value::Null).await?;
    for key in keys["items"].as_array().into_iter().flatten() {
        let text = |name: &str| key[name].as_str().unwrap_or_default();
        let used = key["last_used_at"]
            .as_str()
            .map_or("never used".to_owned(), |time| format!("used {time}"));
        let limits = if key["permissions"].is_null() {
            ""
        } else {
            "  restricted"
        };
        terminal.line(&format!(
            "{}  {:<24}  {}",
            text("id"),
            text("name"),
            terminal.dim(&format!("{used}{limits}"))
        ));
    }
    Ok(())
}

async fn add(
    server: &Running,
    project: &str,
    body: &Value,
    terminal: Terminal,
) -> Result<(), Stop> {
    let path = format!(
        "org/owner/project/{}/api_keys",
        server.project(project).await?
    );
    let made = server.ask_json(Method::POST, &path, body).await?;
    terminal.line(made["key"].as_str().unwrap_or_default());
    Ok(())
}

/// Formats permissions as requests have them; null, which means everything, if none are given.
fn permissions(allow: &[String]) -> anyhow::Result<Value> {
    let read = |text: &String| {
        let (area, access) = text
            .split_once('=')
            .with_context(|| format!("--allow {text}: must be AREA=ACCESS"))?;
        Ok(json!({"preset": area, "access": access}))
    };
    let pairs = allow.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(if pairs.is_empty() {
        Value::Null
    } else {
        pairs.into()
    })
}

fn tell(masters: &[MasterKeyUsage], config: &Config, terminal: Terminal) {
    for MasterKeyUsage { id, current, seals } in masters {
        let state = if *current {
            "in use"
        } else {
            "being replaced: `toolhost keys rotate` goes on"
        };
        terminal.line(&format!(
            "  {id}  seals {seals} data keys  {}",
            terminal.dim(state)
        ));
    }
    terminal.pair("file", &config.key_file().display().to_string());
}

/// Returns the master keys of a running or a stopped server after performing the command.
async fn masters(config: &Config, ask: Ask) -> Result<Vec<MasterKeyUsage>, Stop> {
    // A shared database is not locked by one process. The control socket tells if a server runs
    // here.
    if control::is_there(&config.data) {
        let data = config.data.clone();
        let asking = tokio::task::spawn_blocking(move || {
            let mut text = String::new();
            control::ask(&data, ask)?.read_to_string(&mut text)?;
            serde_json::from_str::<Reply>(&text)
                .context("the server stopped before it was done; run this again")
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
        line: format!(
            "{}; the keys of a running server are in {}",
            stop.line,
            config.env_file().display()
        ),
        ..stop
    })?;
    if let Some(organization) = projects::organization(&app).await? {
        show(&app, &organization.body.name, &organization.id, terminal).await?;
        let id = OrganizationId::parse(&organization.id)?;
        let mut window = Window::first(500);
        loop {
            let found = projects::list(&app, &id, window.clone()).await?;
            for project in &found.items {
                show(&app, &project.stored.name, project.id.as_str(), terminal).await?;
            }
            let Some(last) = found.next else { break };
            window = window.after(last);
        }
    }
    drop(app);
    store.close().await;
    Ok(())
}

async fn show(app: &app::App, name: &str, owner: &str, terminal: Terminal) -> Result<(), Stop> {
    for key in projects::show_keys(app, owner).await? {
        terminal.line(&format!(
            "{name:<24}  {}  {}",
            key.secret.as_str(),
            terminal.dim(&key.name)
        ));
    }
    Ok(())
}
