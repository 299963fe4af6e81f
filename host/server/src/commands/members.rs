//! `toolhost members`: the members of the organization, each with a key. Managed over the API of a
//! running server.

use std::process::ExitCode;

use net::Method;
use serde_json::{Value, json};

use crate::{commands::running::Named, config::Config, open::Stop, terminal::Terminal};

const PATH: &str = "org/members";

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
    /// List the members, newest first
    List,
    /// Add a member; the key is printed once
    Add {
        /// Mail address
        email: String,
        /// admin may do everything in every project, viewer may only read
        #[arg(long, default_value = "viewer")]
        role: String,
        /// Display name
        #[arg(long, default_value = "")]
        name: String,
        /// Name or id of the project when a request names none [default: the oldest]
        #[arg(long)]
        project: Option<String>,
    },
    /// Remove a member, whose key stops working at once
    Remove {
        /// Mail address or id
        member: String,
    },
}

const EXAMPLES: &str = "Examples:
  toolhost members add ada@example.com --role admin
  toolhost members remove ada@example.com";

pub(crate) async fn run(
    config: &Config,
    args: &Args,
    terminal: Terminal,
) -> Result<ExitCode, Stop> {
    let server = args.server.reach(config)?;
    match &args.what {
        What::List => {
            for member in server.all(PATH, "items").await? {
                let text = |name: &str| member[name].as_str().unwrap_or_default();
                let rest = format!("{}  {}", text("role"), text("name"));
                terminal.line(&format!(
                    "{}  {:<32}  {}",
                    text("id"),
                    text("email"),
                    terminal.dim(&rest)
                ));
            }
        }
        What::Add {
            email,
            role,
            name,
            project,
        } => {
            let project = match project {
                Some(given) => Some(server.project(given).await?),
                None => None,
            };
            let body = json!({"email": email, "role": role, "name": name, "project_id": project});
            let made = server.ask_json(Method::POST, PATH, &body).await?;
            terminal.line(made["key"].as_str().unwrap_or_default());
        }
        What::Remove { member } => {
            let all = server.all(PATH, "items").await?;
            let found = all
                .iter()
                .find(|own| own["id"] == *member || own["email"] == member.to_lowercase());
            let id = found.and_then(|own| own["id"].as_str());
            let id = id.ok_or_else(|| anyhow::anyhow!("there is no member `{member}`"))?;
            server
                .ask_json(Method::DELETE, &format!("{PATH}/{id}"), &Value::Null)
                .await?;
            terminal.good(&format!("{member} is removed"));
        }
    }
    Ok(ExitCode::SUCCESS)
}
