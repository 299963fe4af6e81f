//! `toolkit completions` and `toolkit man`: the command line as shells and `man` read it.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_complete::Shell;

/// Print the completions of this command for a shell.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Shell that is to complete commands.
    shell: Shell,
}

/// Write the manual pages of this command into a folder.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Folder of the pages; it is created if it is missing.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Prints the completions of a command.
pub(crate) fn completions(mut command: Command, options: &Completions) {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command, name, &mut script);
    print!("{}", String::from_utf8_lossy(&script));
}

/// Writes the manual pages of a command and its subcommands.
pub(crate) fn man(command: Command, options: &Man) -> Result<()> {
    let folder = options.folder.display();
    fs::create_dir_all(&options.folder)
        .and_then(|()| clap_mangen::generate_to(command, &options.folder))
        .with_context(|| format!("cannot write manual pages to {folder}"))
}
