//! `toolhost keys`: the master key, and API keys.
//!
//! The master keys, and the API keys in full, are requested from a running server over its control
//! socket, or read from the data of a stopped one. API keys are listed, created and revoked by a
//! running server over its API.

use anyhow::{Context, anyhow, bail};
use app::{
    core::vault::MasterKeyUsage,
    projects::permissions::{Access, Area, Permissions},
};
use manifest::did_you_mean;
use net::Method;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use settings::Config;

use crate::{
    commands::running::{Running, ServerArgs, text},
    control::{self, ControlCommand, OwnedKey},
    open::{self, Opened, Stop},
    terminal::Terminal,
};

/// Words for the access to an area.
const ACCESS_WORDS: [&str; 4] = ["none", "read", "write", "read_write"];

#[derive(Debug, clap::Args)]
#[command(after_help = HELP_EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print the organization key and the keys of every project in full; the server may run
    Show,
    /// Replace the master key and seal every data key with the new one; the server may run
    ///
    /// The key file contains both keys until the old key seals nothing. If the command is
    /// interrupted, nothing is lost; run it again to continue. Copies of the data directory that
    /// were made before need the old key file; exports contain their key. If several servers use one
    /// database, stop all but one, and give the others the new key file before they start.
    Rotate,
    /// List the API keys of a project, with the time of their last use
    List {
        /// Name or id of the project
        #[arg(env = "TOOLHOST_PROJECT_ID")]
        project: String,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Add an API key to a project; the key is printed once
    Add {
        /// Name or id of the project
        project: String,
        /// Name of the key, which states its purpose
        name: String,
        /// Permission of the key, for example tools=read; can be repeated [default: all
        /// permissions]
        #[arg(long, value_name = "AREA=ACCESS")]
        allow: Vec<String>,
        /// Address or range from which the key can be used; can be repeated [default: any address]
        #[arg(long, value_name = "ADDRESS")]
        from: Vec<String>,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Revoke an API key of a project immediately
    Revoke {
        /// Name or id of the project
        project: String,
        /// Id of the key, which `toolhost keys list` prints
        key: String,
        #[command(flatten)]
        server: ServerArgs,
    },
}

const HELP_EXAMPLES: &str =
    "Without a command: print the master keys and the number of data keys that each of them seals.

Examples:
  toolhost keys
  toolhost keys rotate
  toolhost keys add demo dashboard --allow observability=read --from 10.0.0.0/8
  toolhost keys revoke demo key_f3Yq0vB1xw2K";

pub(crate) async fn run(config: &Config, args: &Args, terminal: Terminal) -> Result<(), Stop> {
    match &args.action {
        Some(Action::List { project, server }) => {
            list(&server.reach(config)?, project, terminal).await?
        }
        Some(Action::Add {
            project,
            name,
            allow,
            from,
            server,
        }) => {
            let addresses = (!from.is_empty()).then_some(from);
            let body =
                json!({"name": name, "permissions": permissions(allow)?, "allowed_ips": addresses});
            let server = server.reach(config)?;
            let path = keys_path(&server, project).await?;
            let created = server.send_json(Method::POST, &path, &body).await?;
            terminal.line(text(&created, "key"));
        }
        Some(Action::Revoke {
            project,
            key,
            server,
        }) => {
            let server = server.reach(config)?;
            let path = keys_path(&server, project).await?;
            server.delete(&format!("{path}/{key}")).await?;
            terminal.good(&format!("{key} is revoked"));
        }
        local => run_local(config, local.as_ref(), terminal).await?,
    }
    Ok(())
}

/// Runs the commands that need the data directory or the database.
async fn run_local(
    config: &Config,
    action: Option<&Action>,
    terminal: Terminal,
) -> Result<(), Stop> {
    open::check_exists(config, "set --data to the one of the server")?;
    match action {
        Some(Action::Show) => show_all(config, terminal).await?,
        Some(Action::Rotate) => {
            let keys = master_keys(config, ControlCommand::Rotate).await?;
            terminal.good("the master key is replaced, and the new one seals every data key");
            print_master_keys(&keys, config, terminal);
            terminal.note("keep a copy of the new key file elsewhere; a copy of the old one opens only copies of the data directory made before");
        }
        _ => {
            let keys = master_keys(config, ControlCommand::Keys).await?;
            print_master_keys(&keys, config, terminal);
        }
    }
    Ok(())
}

async fn keys_path(server: &Running, project: &str) -> Result<String, Stop> {
    let id = server.project(project).await?;
    Ok(format!("org/owner/project/{id}/api_keys"))
}

async fn list(server: &Running, project: &str, terminal: Terminal) -> Result<(), Stop> {
    for key in server.items(&keys_path(server, project).await?).await? {
        let used = key["last_used_at"]
            .as_str()
            .map_or("never used".to_owned(), |time| format!("used {time}"));
        let limits = if key["permissions"].is_null() {
            ""
        } else {
            "  restricted"
        };
        let start = format!("{}  {:<24}", text(&key, "id"), text(&key, "name"));
        terminal.entry(&start, &format!("{used}{limits}"));
    }
    Ok(())
}

/// Formats permissions as requests have them; null, which means everything, if the list is empty.
fn permissions(allow: &[String]) -> anyhow::Result<Value> {
    let pairs = allow.iter().map(|text| permission(text));
    let pairs = pairs.collect::<anyhow::Result<Vec<_>>>()?;
    Ok(if pairs.is_empty() {
        Value::Null
    } else {
        pairs.into()
    })
}

fn permission(text: &str) -> anyhow::Result<Value> {
    let (area, access) = text
        .split_once('=')
        .with_context(|| format!("--allow {text}: the value must be AREA=ACCESS"))?;
    let all = Permissions::reading();
    let areas: Vec<_> = all.iter().map(|(area, _)| area.into_str()).collect();
    check_word::<Area>("area", area, &areas)?;
    check_word::<Access>("access", access, &ACCESS_WORDS)?;
    Ok(json!({"preset": area, "access": access}))
}

/// Checks one of the two words of a permission.
fn check_word<T: DeserializeOwned>(kind: &str, word: &str, known: &[&str]) -> anyhow::Result<()> {
    if serde_json::from_value::<T>(word.into()).is_ok() {
        return Ok(());
    }
    let similar = did_you_mean(word, known);
    let known = known.join(", ");
    bail!("--allow: `{word}` is not an {kind}{similar}\n  it must be one of {known}")
}

fn print_master_keys(keys: &[MasterKeyUsage], config: &Config, terminal: Terminal) {
    for MasterKeyUsage { id, current, seals } in keys {
        let state = if *current {
            "in use"
        } else {
            "being replaced; continue with `toolhost keys rotate`"
        };
        terminal.entry(&format!("  {id}  seals {seals} data keys"), state);
    }
    terminal.pair("file", &config.key_file().display().to_string());
}

/// Returns the master keys of a running or a stopped server after performing the command.
async fn master_keys(
    config: &Config,
    command: ControlCommand,
) -> Result<Vec<MasterKeyUsage>, Stop> {
    // A shared database is not locked by one process. The control socket tells if a server runs
    // here.
    if control::is_running(&config.data) {
        return Ok(control::request(&config.data, command).await?);
    }
    let Opened { app, store, .. } = open::open(config).await?;
    let done = match command {
        ControlCommand::Rotate => {
            control::rotate(&app.vault, &config.key_file(), app.clock.now()).await
        }
        _ => app.vault.masters().await.map_err(Into::into),
    };
    drop(app);
    store.close().await;
    done.map_err(|cause| anyhow!(cause).into())
}

/// Returns the API keys of a running or a stopped server.
async fn api_keys(config: &Config) -> Result<Vec<OwnedKey>, Stop> {
    if control::is_running(&config.data) {
        return Ok(control::request(&config.data, ControlCommand::ApiKeys).await?);
    }
    let Opened { app, store, .. } = open::open(config).await.map_err(|stop| {
        // A server without a control socket has the store open.
        let env_file = config.env_file();
        if !stop.locked || !env_file.exists() {
            return stop;
        }
        let line = format!(
            "{}; the keys of the first project are in {}",
            stop.line,
            env_file.display()
        );
        Stop { line, ..stop }
    })?;
    let keys = control::api_keys(&app).await;
    drop(app);
    store.close().await;
    Ok(keys?)
}

async fn show_all(config: &Config, terminal: Terminal) -> Result<(), Stop> {
    let keys = api_keys(config).await?;
    terminal.line(&terminal.bold(&format!("{:<24}  {:<12}  KEY", "OWNER", "KIND")));
    for OwnedKey {
        owner,
        kind,
        name,
        secret,
        restricted,
    } in &keys
    {
        let limits = if *restricted { "  restricted" } else { "" };
        let columns = format!("{owner:<24}  {kind:<12}  {}", secret.as_str());
        terminal.entry(&columns, &format!("{name}{limits}"));
    }
    Ok(())
}
