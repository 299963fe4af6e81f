//! `toolhost completions` and `toolhost man`: the command line as shells and `man` read it.

use std::path::PathBuf;

use anyhow::Context;
use clap_complete::Shell;

use crate::{open::Stop, terminal::Terminal};

#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// Shell that completes commands
    shell: Shell,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// Folder of the pages; it is created if it is missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Prints the completions of a command.
pub(crate) fn completions(mut command: clap::Command, args: &Completions, terminal: Terminal) {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    terminal.line(String::from_utf8_lossy(&script).trim_end());
}

/// Writes the manual pages of a command and its subcommands.
pub(crate) fn man(command: clap::Command, args: &Man) -> Result<(), Stop> {
    let folder = args.folder.display();
    std::fs::create_dir_all(&args.folder)
        .and_then(|()| clap_mangen::generate_to(command, &args.folder))
        .with_context(|| format!("cannot write manual pages to {folder}"))?;
    Ok(())
}
