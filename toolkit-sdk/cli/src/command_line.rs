//! `toolkit completions` and `toolkit man`: the command line as shells and `man` read it; and the list of
//! commands in its help.

use std::{fmt::Write as _, fs, path::PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_complete::Shell;

/// Commands by heading.
const COMMAND_GROUPS: [(&str, &[&str]); 4] = [
    (
        "Writing",
        &["new", "import", "setup", "dev", "run", "build", "inspect"],
    ),
    ("Testing", &["check", "record", "replay"]),
    (
        "Publishing",
        &["publish", "diff", "deprecate", "sign", "push", "pull"],
    ),
    ("Reference", &["completions", "man", "help"]),
];

/// Puts the commands of the help under headings.
pub(crate) fn with_headings(mut command: Command) -> Command {
    command.build();
    let names = COMMAND_GROUPS.iter().flat_map(|(_, names)| *names);
    let width = names.map(|name| name.len()).max().unwrap_or_default();
    let header = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    let mut list = String::new();
    for (heading, names) in COMMAND_GROUPS {
        // Writing to a string cannot fail.
        let _ = writeln!(list, "{header}{heading}:{header:#}");
        for name in names {
            let about = command
                .find_subcommand(name)
                .and_then(Command::get_about)
                .map(ToString::to_string)
                .unwrap_or_default();
            // The description of a command with examples has its period, the others have lost it.
            let about = about.trim_end_matches('.');
            let _ = writeln!(list, "  {literal}{name:<width$}{literal:#}  {about}");
        }
        list.push('\n');
    }
    let options = format!("{header}Options:{header:#}\n{{options}}");
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{options}"
    ))
}

/// Print the completions of this command for a shell.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Shell to complete commands in.
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
