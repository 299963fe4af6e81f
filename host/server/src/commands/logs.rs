//! `toolhost logs export`: writes the cassette of an execution for the toolkit author.
//!
//! The cassette is read over the API with the project's own key, because its content belongs to the
//! project.

use std::path::PathBuf;

use anyhow::Context;
use net::{Body, Method};
use sandbox::cassette::Cassette;
use settings::Config;

use super::running::{ProjectArgs, check_id};
use crate::{commands::first_run, open::Stop, terminal::Terminal};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Write the cassette of an execution, which `toolkit replay` replays
    ///
    /// The server keeps cassettes when `logs.cassettes` is `failed` or `all`.
    #[command(after_help = HELP_EXAMPLES)]
    Export(Export),
}

#[derive(Debug, clap::Args)]
struct Export {
    /// Id of the execution log, which is `log_id` in the response
    log_id: String,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    project: ProjectArgs,
}

const HELP_EXAMPLES: &str = "Examples:
  toolhost logs export log_a1b2C3d4E5f6 -o failed.json
  toolkit replay my-toolkit failed.json";

pub(crate) async fn run(config: &Config, args: &Args, terminal: Terminal) -> Result<(), Stop> {
    let Action::Export(Export {
        log_id,
        output,
        project,
    }) = &args.action;
    check_id(log_id, "an execution log: use `log_id` of the response")?;
    let server = project.reach(config)?;
    let path = format!("logs/tool_execution/{log_id}/cassette");
    let (_, cassette) = server.send(Method::GET, &path, Body::Empty, None).await?;
    let cassette =
        Cassette::from_json(&cassette).context("the response of the server is not a cassette")?;
    let cassette =
        serde_json::to_string_pretty(&cassette).context("cannot write the cassette")? + "\n";
    match output {
        Some(file) => {
            first_run::write_private(file, &cassette)?;
            terminal.good(&format!(
                "the cassette of {log_id} is in {}",
                file.display()
            ));
        }
        None => terminal.line(cassette.trim_end()),
    }
    Ok(())
}
