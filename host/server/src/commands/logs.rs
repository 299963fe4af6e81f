//! `toolhost logs export`: writes the cassette of an execution for the toolkit author.
//!
//! The cassette is read over the API with the project's own key, because its content belongs to the
//! project.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context;
use net::{Body, Method};
use sandbox::cassette::Cassette;
use zeroize::Zeroizing;

use super::running::{Key, Running};
use crate::{commands::first_run, config::Config, http::auth, open::Stop, terminal::Terminal};

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
    #[command(after_help = EXAMPLES)]
    Export(Export),
}

#[derive(Debug, clap::Args)]
struct Export {
    /// Id of the execution log, which is `log_id` in the response
    log_id: String,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// URL of the server [default: the one in <data>.env]
    #[arg(long)]
    url: Option<url::Url>,
    /// API key of the project [default: the one in <data>.env]
    #[arg(long, env = "TOOLHOST_API_KEY", hide_env_values = true)]
    api_key: Option<Zeroizing<String>>,
}

const EXAMPLES: &str = "Examples:
  toolhost logs export log_a1b2C3d4E5f6 -o failed.json
  toolkit replay my-toolkit failed.json";

pub(crate) async fn run(
    config: &Config,
    args: &Args,
    terminal: Terminal,
) -> Result<ExitCode, Stop> {
    let Action::Export(Export {
        log_id,
        output,
        url,
        api_key,
    }) = &args.action;
    if !log_id
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    {
        return Err(anyhow::anyhow!(
            "`{log_id}` is not the id of an execution log: use `log_id` of the response"
        )
        .into());
    }
    let key = Key {
        header: auth::PROJECT,
        flag: "--api-key",
        name: "TOOLHOST_API_KEY",
        given: api_key.clone(),
    };
    let server = Running::new(config, url.as_ref(), key)?;
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
    Ok(ExitCode::SUCCESS)
}
