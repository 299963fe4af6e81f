//! `toolhost projects`: the projects of the organization. Managed over the API of a running server.

use std::io::IsTerminal;

use anyhow::{Context, bail};
use net::Method;
use serde_json::json;
use settings::Config;

use crate::{
    commands::running::{ServerArgs, text},
    open::Stop,
    terminal::Terminal,
};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP_EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List the projects, newest first
    List,
    /// Add a project; its first API key is printed once
    Add {
        /// Name: 3 to 75 letters, digits, `_` and `-`
        name: String,
    },
    /// Remove a project and erase its data: keys, accounts, auth configs, files and sessions; on a
    /// terminal after its name was typed again
    Remove {
        /// Name or id of the project
        project: String,
        /// Also revoke the tokens of its accounts at the providers
        #[arg(long)]
        revoke: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

const HELP_EXAMPLES: &str = "Examples:
  toolhost projects add staging
  toolhost keys add staging ci --allow tools=read
  toolhost projects remove staging";

pub(crate) async fn run(config: &Config, args: &Args, terminal: Terminal) -> Result<(), Stop> {
    let server = args.server.reach(config)?;
    match &args.action {
        Action::List => {
            for project in server.projects().await? {
                let columns = format!("{}  {:<32}", text(&project, "id"), text(&project, "name"));
                terminal.entry(&columns, text(&project, "created_at"));
            }
        }
        Action::Add { name } => {
            let body = json!({"name": name, "should_create_api_key": true});
            let path = "org/owner/project/new";
            let created = server.send_json(Method::POST, path, &body).await?;
            terminal.line(text(&created, "api_key"));
        }
        Action::Remove {
            project,
            revoke,
            yes,
        } => {
            let id = server.project(project).await?;
            if !yes {
                confirm(project)?;
            }
            let path = format!("org/owner/project/{id}?revoke_on_delete={revoke}");
            server.delete(&path).await?;
            terminal.good(&format!("the project {project} is removed"));
        }
    }
    Ok(())
}

/// Asks on a terminal whether a project is to be removed.
fn confirm(project: &str) -> anyhow::Result<()> {
    let asking = console::Term::stderr();
    if !std::io::stdin().is_terminal() || !asking.is_term() {
        return Ok(());
    }
    asking.write_str(&format!("Type {project} again to erase all of its data: "))?;
    let typed = asking
        .read_line()
        .context("cannot read from the terminal")?;
    if typed.trim() != project {
        bail!("nothing was removed: the answer is not {project}");
    }
    Ok(())
}
