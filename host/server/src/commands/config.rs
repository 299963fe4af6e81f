//! `toolhost config`: prints the settings in effect and where each comes from.

use settings::{Config, Sources};

use crate::{open::Stop, terminal::Terminal};

pub(crate) const HELP_EXAMPLES: &str = "\
Examples:
  toolhost config                              print the settings of a server started here
  TOOLHOST_LOG=info toolhost config            print the effect of a change
  toolhost config --example > toolhost.toml    create a settings file";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print a settings file with every setting, its default, range and unit, commented out
    #[arg(long)]
    example: bool,
    /// Print every setting as the table in docs/configuration.md
    #[arg(long, conflicts_with = "example")]
    table: bool,
}

/// Prints the settings in effect, or descriptions of all settings.
pub(crate) fn run(
    config: &Config,
    sources: &Sources,
    args: &Args,
    terminal: Terminal,
) -> Result<(), Stop> {
    let text = if args.example {
        settings::example()
    } else if args.table {
        settings::table()
    } else {
        settings::effective(config, sources)?
    };
    terminal.line(text.trim_end());
    Ok(())
}
