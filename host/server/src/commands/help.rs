//! Help of the command line: commands under headings, and only flags that mean something to a command.

use std::fmt::Write as _;

use clap::Command;

/// Commands by heading.
const COMMAND_GROUPS: [(&str, &[&str]); 4] = [
    ("Server", &["serve", "health", "doctor", "config"]),
    (
        "Administration",
        &[
            "projects",
            "keys",
            "members",
            "toolkits",
            "oauth-apps",
            "events",
            "logs",
            "mcp",
        ],
    ),
    ("Data", &["verify", "export", "import", "import-legacy"]),
    (
        "Reference",
        &["openapi", "limits", "completions", "man", "help"],
    ),
];
/// Ids of the flags that are settings.
const SETTING_FLAGS: [&str; 5] = ["config", "store", "data", "key_file", "listen"];
/// Flags of commands that work on the data.
const DATA_FLAGS: &[&str] = &["config", "store", "data", "key_file"];
/// Flags of commands that send requests to a running server, whose address is next to its data.
const CLIENT_FLAGS: &[&str] = &["config", "data"];
/// Flags by command. Subcommands without an entry use those of their command, and commands without
/// one use all.
const USED_FLAGS: [(&str, &[&str]); 20] = [
    ("health", &["config", "data", "listen"]),
    ("verify", DATA_FLAGS),
    ("export", DATA_FLAGS),
    ("import", DATA_FLAGS),
    ("import-legacy", DATA_FLAGS),
    ("keys", DATA_FLAGS),
    ("keys list", CLIENT_FLAGS),
    ("keys add", CLIENT_FLAGS),
    ("keys revoke", CLIENT_FLAGS),
    ("members", CLIENT_FLAGS),
    ("projects", CLIENT_FLAGS),
    ("oauth-apps", CLIENT_FLAGS),
    ("events", CLIENT_FLAGS),
    ("logs", CLIENT_FLAGS),
    ("mcp", CLIENT_FLAGS),
    ("toolkits", DATA_FLAGS),
    ("openapi", &["config"]),
    ("limits", &[]),
    ("completions", &[]),
    ("man", &[]),
];

/// Prepares the help of a command line.
pub(crate) fn prepare(mut command: Command) -> Command {
    // Flags of the command become flags of its subcommands, whose help can then leave them out.
    command.build();
    let list = command_list(&command);
    let command = hide_unused_flags(command, "", &SETTING_FLAGS);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{{options}}"
    ))
}

/// Formats the commands under their headings.
fn command_list(command: &Command) -> String {
    let width = command.get_subcommands().map(|sub| sub.get_name().len());
    let width = width.max().unwrap_or_default();
    let header = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    let mut list = String::new();
    for (heading, names) in COMMAND_GROUPS {
        // Writing to a string cannot fail.
        let _ = writeln!(list, "{header}{heading}:{header:#}");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(list, "  {literal}{name:<width$}{literal:#}  {about}");
        }
        list.push('\n');
    }
    let _ = writeln!(list, "{header}Options:{header:#}");
    list
}

/// Hides flags of settings that mean nothing to a command from its help.
fn hide_unused_flags(command: Command, path: &str, inherited: &[&'static str]) -> Command {
    let entry = USED_FLAGS.iter().find(|(name, _)| *name == path);
    let used = entry.map_or(inherited, |(_, used)| *used);
    let names: Vec<String> = command
        .get_subcommands()
        .map(|sub| sub.get_name().to_owned())
        .collect();
    let command = names.into_iter().fold(command, |command, name| {
        let path = format!("{path} {name}");
        command.mut_subcommand(name, |sub| hide_unused_flags(sub, path.trim(), used))
    });
    command.mut_args(|arg| {
        let id = arg.get_id().as_str();
        let is_unused = SETTING_FLAGS.contains(&id) && !used.contains(&id);
        if is_unused { arg.hide(true) } else { arg }
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    fn help(path: &[&str]) -> String {
        let mut command = prepare(Cli::command());
        let mut command = &mut command;
        for name in path {
            command = command.find_subcommand_mut(name).unwrap();
        }
        command.clone().render_long_help().to_string()
    }

    #[test]
    fn each_command_has_a_heading() {
        let command = prepare(Cli::command());
        let mut listed: Vec<_> = COMMAND_GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .collect();
        let mut known: Vec<_> = command.get_subcommands().map(Command::get_name).collect();
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(listed.into_iter().copied().collect::<Vec<_>>(), known);
        let help = help(&[]);
        for line in help.lines().filter(|line| !line.contains("--")) {
            assert!(line.chars().count() <= 100, "{line}");
        }
        for part in ["Administration:\n  projects", "Options:\n      --config"] {
            assert!(help.contains(part), "{part} is not in\n{help}");
        }
    }

    #[test]
    fn help_shows_only_flags_of_its_command() {
        for (path, shown, hidden) in [
            (&["completions"][..], &[][..], &["--data", "--store"][..]),
            (
                &["keys", "list"],
                &["--data", "--url"],
                &["--store", "--listen"],
            ),
            (
                &["keys", "rotate"],
                &["--store", "--key-file"],
                &["--listen"],
            ),
            (&["health"], &["--listen"], &["--key-file"]),
            (&["serve"], &["--listen", "--store"], &[]),
        ] {
            let help = help(path);
            for flag in shown {
                assert!(
                    help.contains(&format!("{flag} <")),
                    "{path:?}: {flag}: {help}"
                );
            }
            for flag in hidden {
                assert!(
                    !help.contains(&format!("{flag} <")),
                    "{path:?}: {flag}: {help}"
                );
            }
        }
    }

    #[test]
    fn hidden_flags_still_work() {
        let matches =
            prepare(Cli::command()).try_get_matches_from(["toolhost", "man", "d", "--data", "x"]);
        assert!(matches.is_ok(), "{matches:?}");
    }
}
