//! `toolhost oauth-apps`: the operator's OAuth apps at providers. Managed over the API of a running
//! server.

use std::io::{BufRead, IsTerminal};

use anyhow::{Context, bail};
use net::Method;
use serde_json::json;
use settings::Config;
use zeroize::Zeroizing;

use crate::{
    commands::running::{ServerArgs, text},
    open::Stop,
    terminal::Terminal,
};

const OAUTH_APPS_PATH: &str = "org/oauth_apps";

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
    /// List the OAuth apps, without their secrets
    List,
    /// Set or replace the OAuth app of a toolkit; its secret is read from the terminal or from
    /// standard input
    Set {
        /// Slug of the toolkit
        toolkit: String,
        /// Client id that the provider issued
        client_id: String,
        /// Scope to request for every connection; can be repeated
        #[arg(long)]
        scope: Vec<String>,
        /// Set a client without a secret
        #[arg(long)]
        public: bool,
    },
    /// Remove the OAuth app of a toolkit
    Remove {
        /// Slug of the toolkit
        toolkit: String,
    },
}

const HELP_EXAMPLES: &str =
    "With an OAuth app of the operator, projects connect accounts without an OAuth app of their own. Register the callback \
URL <server>/api/v3/toolkits/auth/callback at the provider.

Examples:
  toolhost oauth-apps set github Iv1.8a61f9b3a7aba766 < secret.txt
  toolhost oauth-apps list";

pub(crate) async fn run(config: &Config, args: &Args, terminal: Terminal) -> Result<(), Stop> {
    let server = args.server.reach(config)?;
    match &args.action {
        Action::List => {
            let clients = server.items(OAUTH_APPS_PATH).await?;
            if clients.is_empty() {
                terminal.status("there are no OAuth apps: `toolhost oauth-apps set` sets one");
            }
            for client in clients {
                let toolkit = format!("{:<24}", text(&client, "toolkit"));
                terminal.entry(&toolkit, text(&client, "client_id"));
            }
        }
        Action::Set {
            toolkit,
            client_id,
            scope,
            public,
        } => {
            let secret = if *public {
                Zeroizing::default()
            } else {
                secret()?
            };
            let body =
                json!({"client_id": client_id, "client_secret": secret.as_str(), "scopes": scope});
            server
                .send_json(Method::PUT, &format!("{OAUTH_APPS_PATH}/{toolkit}"), &body)
                .await?;
            terminal.good(&format!(
                "projects can connect accounts of {toolkit} with this OAuth app"
            ));
        }
        Action::Remove { toolkit } => {
            server
                .delete(&format!("{OAUTH_APPS_PATH}/{toolkit}"))
                .await?;
            terminal.good(&format!("the OAuth app of {toolkit} is removed"));
        }
    }
    Ok(())
}

/// Reads the secret from the first line of the input. It is not an option, because every user of
/// the machine can read the arguments of a process.
fn secret() -> anyhow::Result<Zeroizing<String>> {
    let asking = console::Term::stderr();
    let text = if std::io::stdin().is_terminal() && asking.is_term() {
        asking.write_str("Client secret: ")?;
        asking
            .read_secure_line()
            .map(Zeroizing::new)
            .context("cannot read the secret from the terminal")?
    } else {
        let mut line = Zeroizing::new(String::new());
        std::io::stdin()
            .lock()
            .read_line(&mut line)
            .context("cannot read the secret from standard input")?;
        line
    };
    let text = Zeroizing::new(text.trim().to_owned());
    if text.is_empty() {
        bail!(
            "the client secret is empty: pass it on standard input, or use --public for a client without a secret"
        );
    }
    Ok(text)
}
