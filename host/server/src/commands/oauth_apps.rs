//! `toolhost oauth-apps`: the operator's OAuth apps at providers. Managed over the API of a running
//! server.

use std::{io::BufRead, process::ExitCode};

use anyhow::{Context, bail};
use net::Method;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::{commands::running::Named, config::Config, open::Stop, terminal::Terminal};

const PATH: &str = "org/oauth_apps";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    server: Named,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List the OAuth apps; secrets are not shown
    List,
    /// Set the OAuth app of a toolkit and replace an earlier one; its secret is asked for, or read
    /// from standard input
    Set {
        /// Slug
        toolkit: String,
        /// Client id that the provider issued
        client_id: String,
        /// Scope to request for every connection; several may be given
        #[arg(long)]
        scope: Vec<String>,
        /// The client has no secret
        #[arg(long)]
        public: bool,
    },
    /// Remove the OAuth app of a toolkit
    Remove {
        /// Slug
        toolkit: String,
    },
}

const EXAMPLES: &str =
    "With a client of yours, projects connect accounts without one of their own. Register at the application
the address <server>/api/v3/toolkits/auth/callback.

Examples:
  toolhost oauth-apps set github Iv1.8a61f9b3a7aba766 < secret.txt
  toolhost oauth-apps list";

pub(crate) async fn run(
    config: &Config,
    args: &Args,
    terminal: Terminal,
) -> Result<ExitCode, Stop> {
    let server = args.server.reach(config)?;
    match &args.what {
        What::List => {
            let all = server.ask_json(Method::GET, PATH, &Value::Null).await?;
            for client in all["items"].as_array().into_iter().flatten() {
                let text = |name: &str| client[name].as_str().unwrap_or_default();
                terminal.line(&format!(
                    "{:<24}  {}",
                    text("toolkit"),
                    terminal.dim(text("client_id"))
                ));
            }
        }
        What::Set {
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
                .ask_json(Method::PUT, &format!("{PATH}/{toolkit}"), &body)
                .await?;
            terminal.good(&format!(
                "projects can connect accounts of {toolkit} with this client"
            ));
        }
        What::Remove { toolkit } => {
            server
                .ask_json(Method::DELETE, &format!("{PATH}/{toolkit}"), &Value::Null)
                .await?;
            terminal.good(&format!("the client of {toolkit} is forgotten"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the secret from the first line of the input. It is not an option, because every user of
/// the machine can read the arguments of a process.
fn secret() -> anyhow::Result<Zeroizing<String>> {
    let asking = console::Term::stderr();
    let text = if asking.is_term() {
        asking.write_str("Client secret: ")?;
        asking
            .read_secure_line()
            .map(Zeroizing::new)
            .context("ask for the secret")?
    } else {
        let mut line = Zeroizing::new(String::new());
        std::io::stdin()
            .lock()
            .read_line(&mut line)
            .context("read the secret from standard input")?;
        line
    };
    let text = Zeroizing::new(text.trim().to_owned());
    if text.is_empty() {
        bail!("there is no secret: give it on standard input, or say --public");
    }
    Ok(text)
}
