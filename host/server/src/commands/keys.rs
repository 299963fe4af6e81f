//! `toolhost keys`: shows API keys, from the stopped server's own data.

use std::process::ExitCode;

use app::{ids::OrganisationId, projects};

use crate::{
    config::Config,
    open::{self, Opened, Stop},
    terminal::Terminal,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Print the organisation key and the keys of every project in full
    Show,
}

pub(crate) async fn run(config: &Config, args: &Args, terminal: Terminal) -> Result<ExitCode, Stop> {
    let What::Show = args.what;
    if config.database().is_none() && !config.data.exists() {
        return Err(anyhow::anyhow!("there is no data directory at {}", config.data.display()).into());
    }
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
    Ok(ExitCode::SUCCESS)
}

async fn show(app: &app::App, name: &str, owner: &str, terminal: Terminal) -> Result<(), Stop> {
    for key in projects::show_keys(app, owner).await? {
        terminal.line(&format!("{name:<24}  {}  {}", key.secret.as_str(), terminal.dim(&key.name)));
    }
    Ok(())
}
