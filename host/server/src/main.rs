//! The server and the operator's commands.

mod commands;
mod control;

mod installed;
mod limits;
mod memory;
mod metrics;
mod open;
mod router;
mod telemetry;
mod terminal;

use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
};

use api::description;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use http::branding::Branding;
use settings::{Config, Flags, Loaded, LogFormat};

use crate::{
    commands::{
        archive, command_line, doctor, events, health, help, keys, legacy, logs,
        mcp as mcp_command, members, oauth_apps, projects, serve, toolkits, verify,
    },
    open::Stop,
    terminal::Terminal,
};

/// A self-hosted integration platform for AI agents.
#[derive(Parser)]
#[command(name = "toolhost", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Subcommand)]
enum Command {
    /// Start the server
    ///
    /// The first start creates keys and a demo project.
    #[command(after_long_help = settings::help())]
    Serve(serve::Args),
    /// Check the machine and the installation
    ///
    /// Each problem is printed with its remedy. A running server and its data stay as they are.
    Doctor(doctor::Args),
    /// Ask the server if it is ready
    ///
    /// It is the one that runs on the data directory, or else the one at the address of the settings. The
    /// exit code is 1 if it is not.
    Health,
    /// Read every record and file of the store and report damage
    Verify,
    /// Write the installation into one encrypted file
    ///
    /// The file is a backup, or moves the installation to another store.
    #[command(after_help = archive::EXPORT_EXAMPLES)]
    Export(archive::Export),
    /// Load a file that `export` wrote into an empty store
    #[command(after_help = archive::IMPORT_EXAMPLES)]
    Import(archive::Import),
    /// Load legacy ids, for clients of an older system
    #[command(after_help = legacy::FILE_FORMAT)]
    ImportLegacy(legacy::Args),
    /// Show and replace the master key; list, add and revoke API keys
    Keys(keys::Args),
    /// List, add and remove projects
    Projects(projects::Args),
    /// List, add and remove members, whose keys work in every project
    Members(members::Args),
    /// List, set and remove the operator's OAuth apps at providers
    OauthApps(oauth_apps::Args),
    /// Follow events; list webhook deliveries and send them again
    #[command(after_help = events::HELP_EXAMPLES)]
    Events(events::Args),
    /// Export the cassette of an execution from the execution log
    Logs(logs::Args),
    /// Serve an MCP server to an assistant that starts programs
    Mcp(mcp_command::Args),
    /// Publish toolkits from a registry or a file; list and deprecate
    Toolkits(toolkits::Args),
    /// Print the OpenAPI description of the API
    ///
    /// The server returns the same at /api/v3/openapi.json.
    Openapi,
    /// Print the settings in effect, or a file with every setting
    ///
    /// Each setting in effect is printed with its source.
    #[command(after_help = commands::config::HELP_EXAMPLES)]
    Config(commands::config::Args),
    /// Print every limit with its value and its setting
    ///
    /// Each limit is printed with the effect of exceeding it.
    Limits,
    /// Print the completions of this command for a shell
    Completions(command_line::Completions),
    /// Write the manual pages of this command into a folder
    Man(command_line::Man),
}

fn main() -> ExitCode {
    // The server starts this same program to work on untrusted input in a process with limits.
    let first = std::env::args_os().nth(1).unwrap_or_default();
    if first == sandbox::COMPILE_ARG {
        return sandbox::compile_child();
    }
    if first == workbench::SHELL_ARG {
        return workbench::shell_child();
    }
    let matches = help::prepare(Cli::command()).get_matches();
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    match run(cli) {
        Ok(code) => code,
        Err(Stop { line, code, .. }) => {
            // An error while writing to standard error has no remedy; the exit code still reports
            // the failure.
            let _ = writeln!(std::io::stderr(), "toolhost: {line}");
            ExitCode::from(code)
        }
    }
}

fn run(cli: Cli) -> Result<ExitCode, Stop> {
    let Loaded {
        config,
        sources,
        warnings,
        no_color,
    } = settings::load(&cli.flags)?;
    start_logging(&config, no_color)?;
    for warning in warnings {
        tracing::warn!(target: settings::WARNING_TARGET, "{warning}");
    }
    log_panics();
    // A process whose memory is private may not open it.
    sandbox::open_page_map();
    keep_memory_private();
    raise_open_files();
    let terminal = Terminal::new(no_color);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("api")
        .enable_all()
        .build()
        .map_err(|cause| anyhow::anyhow!("cannot start the runtime: {cause}"))?;
    runtime.block_on(async {
        match cli.command {
            Command::Serve(args) => return serve::run(config, args, terminal).await,
            Command::Doctor(args) => return doctor::run(&config, &args, terminal).await,
            Command::Verify => return verify::run(&config, terminal).await,
            Command::Health => {
                health::run(&config, cli.flags.listen.as_deref(), terminal).await?;
            }
            Command::Export(args) => archive::export(&config, &args, terminal).await?,
            Command::Import(args) => archive::import(&config, &args, terminal).await?,
            Command::ImportLegacy(args) => legacy::run(&config, &args, terminal).await?,
            Command::Keys(args) => keys::run(&config, &args, terminal).await?,
            Command::Projects(args) => projects::run(&config, &args, terminal).await?,
            Command::Members(args) => members::run(&config, &args, terminal).await?,
            Command::OauthApps(args) => oauth_apps::run(&config, &args, terminal).await?,
            Command::Events(args) => events::run(&config, &args, terminal).await?,
            Command::Logs(args) => logs::run(&config, &args, terminal).await?,
            Command::Mcp(args) => mcp_command::run(&config, &args, terminal).await?,
            Command::Toolkits(args) => toolkits::run(&config, &args, terminal).await?,
            Command::Openapi => {
                let branding = Branding::new(&config.operator_word);
                terminal.line(description::text(&router::operations(), &branding, "").trim_end());
            }
            Command::Config(args) => commands::config::run(&config, &sources, &args, terminal)?,
            Command::Limits => terminal.line(limits::page().trim_end()),
            Command::Completions(args) => {
                command_line::completions(Cli::command(), &args, terminal);
            }
            Command::Man(args) => command_line::man(Cli::command(), &args)?,
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Filter for dependencies that would log credentials or data, each at the most verbose level at
/// which it does not. The setting `log` overrides it for a crate that it names.
///
/// - `oci_client` logs the response of a registry's token endpoint at `debug`.
/// - `rmcp` logs errors of requests at `warn`, among them connection links, notifications of
///   clients at `info`, and arguments and results at `debug`.
/// - `sled` logs whole pages at `trace`. It also logs at shutdown from threads that can no longer
///   log, which would abort the process.
/// - `sqlx_postgres` logs at `warn` lines of a `.pgpass` file that it cannot parse, and the values
///   of unknown parameters of a database URL.
/// - `wasmtime_wasi` logs at `trace` the numbers that guests get from it, among them random ones.
const QUIET_CRATES: &str =
    "oci_client=warn,rmcp=error,sled=warn,sqlx_postgres=error,wasmtime_wasi=info";

fn start_logging(config: &Config, no_color: bool) -> anyhow::Result<()> {
    let filter = config
        .log_filter(QUIET_CRATES)
        .map_err(anyhow::Error::msg)?;
    let color = !no_color && std::io::stderr().is_terminal();
    // A line that cannot be written is dropped. Reporting it would go to the same broken output and
    // end the process.
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .log_internal_errors(false)
        .with_ansi(color);
    match config.log_format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
    Ok(())
}

/// Logs a panic as one line. A panic while reading a damaged store is reported by the refusal to
/// start.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let thread = thread.name().unwrap_or_default();
        if thread == store::OPENING_THREAD {
            tracing::debug!(%panic, "the store cannot be read");
        } else {
            tracing::error!(thread, %panic, "the server panicked");
        }
    }));
}

/// Raises the limit of open files to the most that is allowed. Loaded components hold files open,
/// and the usual limit is for programs that cannot handle more.
fn raise_open_files() {
    let allowed = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    let raised = rustix::process::Rlimit {
        current: allowed,
        maximum: allowed,
    };
    if let Err(cause) = rustix::process::setrlimit(rustix::process::Resource::Nofile, raised) {
        tracing::warn!(%cause, "cannot raise the limit of open files");
    }
}

/// Protects keys and credentials in memory from core dumps and from other processes of the same
/// user.
fn keep_memory_private() {
    let none = rustix::process::Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    if let Err(cause) = rustix::process::setrlimit(rustix::process::Resource::Core, none) {
        tracing::warn!(%cause, "cannot disable core dumps");
    }
    #[cfg(target_os = "linux")]
    if let Err(cause) =
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
    {
        tracing::warn!(%cause, "cannot protect the memory of the server from other processes of the same user");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::{DumpableBehavior, dumpable_behavior};

    #[test]
    fn memory_is_read_by_no_other_process() {
        super::keep_memory_private();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }
}
