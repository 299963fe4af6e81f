//! `toolhost members`: the members of the organization, each with a key. Managed over the API of a
//! running server.

use net::Method;
use serde_json::json;
use settings::Config;

use crate::{
    commands::running::{ServerArgs, text},
    open::Stop,
    terminal::Terminal,
};

const MEMBERS_PATH: &str = "org/members";

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
    /// List the members, newest first
    List,
    /// Add a member; the key is printed once
    Add {
        /// Email address
        email: String,
        /// Role: `admin` has all permissions in every project, `viewer` can only read
        #[arg(long, default_value = "viewer")]
        role: String,
        /// Display name
        #[arg(long)]
        name: Option<String>,
        /// Name or id of the project of requests that do not name one [default: the oldest project]
        #[arg(long)]
        project: Option<String>,
    },
    /// Remove a member; its key stops working immediately
    Remove {
        /// Email address or id of the member
        member: String,
    },
}

const HELP_EXAMPLES: &str = "Examples:
  toolhost members add ada@example.com --role admin
  toolhost members remove ada@example.com";

pub(crate) async fn run(config: &Config, args: &Args, terminal: Terminal) -> Result<(), Stop> {
    let server = args.server.reach(config)?;
    match &args.action {
        Action::List => {
            let members = server.all(MEMBERS_PATH, "items").await?;
            if members.is_empty() {
                terminal.status("there are no members: `toolhost members add` adds one");
            }
            for member in members {
                let columns = format!("{}  {:<32}", text(&member, "id"), text(&member, "email"));
                terminal.entry(
                    &columns,
                    &format!("{}  {}", text(&member, "role"), text(&member, "name")),
                );
            }
        }
        Action::Add {
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
            let created = server.send_json(Method::POST, MEMBERS_PATH, &body).await?;
            terminal.line(text(&created, "key"));
        }
        Action::Remove { member } => {
            let all = server.all(MEMBERS_PATH, "items").await?;
            let found = all
                .iter()
                .find(|own| own["id"] == *member || own["email"] == member.to_lowercase());
            let id = found.and_then(|own| own["id"].as_str());
            let id = id.ok_or_else(|| {
                anyhow::anyhow!(
                    "member `{member}` does not exist: `toolhost members list` prints all members"
                )
            })?;
            server.delete(&format!("{MEMBERS_PATH}/{id}")).await?;
            terminal.good(&format!("{member} is removed"));
        }
    }
    Ok(())
}
