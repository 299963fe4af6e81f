//! The command for toolkit authors: creates, builds, checks, runs and publishes toolkits.
//!
//! Toolkits run in the production sandbox, so that a toolkit that passes here also passes on a
//! server.

#![expect(
    clippy::print_stdout,
    reason = "the result of a command goes to standard output"
)]

mod account;
mod build;
mod check;
mod command_line;
mod compiler;
mod component;
mod deprecate;
mod dev;
mod diff;
mod foreign;
mod host;
mod import;
mod inspect;
mod new;
mod outcome;
mod progress;
mod publish;
mod pull;
mod push;
mod record;
mod replay;
mod run;
mod schema;
mod sdk;
mod setup;
mod shared_target;
mod sign;
mod slug;
mod toolchain;
mod workspace;

use std::{
    panic,
    process::{self, ExitCode},
};

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Make, build, check, run and publish toolkits.
#[derive(Debug, Parser)]
#[command(name = "toolkit", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    New(new::New),
    Build(build::Build),
    Check(check::Check),
    Deprecate(deprecate::Deprecate),
    Dev(dev::Dev),
    Diff(diff::Diff),
    Run(run::Run),
    Import(import::Import),
    Inspect(inspect::Inspect),
    Publish(publish::Publish),
    Pull(pull::Pull),
    Push(push::Push),
    Record(record::Record),
    Replay(replay::Replay),
    Setup(setup::Setup),
    Sign(sign::Sign),
    #[command(hide = true)]
    Interpreter(import::interpreter::Interpreter),
    Completions(command_line::Completions),
    Man(command_line::Man),
}

/// Exit code of a command whose output nobody reads, as if `SIGPIPE` had ended it.
const UNREAD_OUTPUT_CODE: i32 = 141;

fn main() -> ExitCode {
    end_quietly_at_unread_output();
    compiler::run_as_wrapper().unwrap_or_else(command_line)
}

#[tokio::main]
async fn command_line() -> ExitCode {
    let matches = command_line::with_headings(Cli::command()).get_matches();
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    match run(cli.command).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Ends without a report when the reader of the output ends first, as `head` does. `println!` panics
/// then.
fn end_quietly_at_unread_output() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let text = panic.payload_as_str().unwrap_or_default();
        if text.starts_with("failed printing to stdout: Broken pipe") {
            process::exit(UNREAD_OUTPUT_CODE);
        }
        report(panic);
    }));
}

async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::New(options) => new::run(&options)?,
        Command::Build(options) => build::run(&options)?,
        Command::Check(options) => return check::run(&options).await,
        Command::Deprecate(options) => return deprecate::run(&options).await,
        Command::Dev(options) => return dev::run(&options).await,
        Command::Diff(options) => return diff::run(&options).await,
        Command::Import(options) => import::run(&options).await?,
        Command::Run(options) => return self::run::run(&options).await,
        Command::Inspect(options) => inspect::run(&options)?,
        Command::Publish(options) => return publish::run(&options).await,
        Command::Pull(options) => return pull::run(&options).await,
        Command::Push(options) => return push::run(&options).await,
        Command::Record(options) => return record::run(&options).await,
        Command::Replay(options) => return replay::run(&options).await,
        Command::Setup(options) => setup::run(&options)?,
        Command::Sign(options) => return sign::run(&options),
        Command::Interpreter(options) => import::interpreter::run(&options)?,
        Command::Completions(options) => command_line::completions(Cli::command(), &options),
        Command::Man(options) => command_line::man(Cli::command(), &options)?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn each_command_has_a_heading() {
        let command = command_line::with_headings(Cli::command());
        let help = command.clone().render_help().to_string();
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let line = format!("\n  {} ", sub.get_name());
            assert_eq!(help.matches(&line).count(), 1, "{line}{help}");
        }
        for part in ["Testing:\n  check", "Options:\n  -h, --help"] {
            assert!(help.contains(part), "{part} is not in\n{help}");
        }
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{line}");
            assert!(!line.ends_with('.'), "{line}");
        }
    }

    #[test]
    fn run_takes_a_tool_or_a_trigger() {
        let parse = |line: &str| Cli::try_parse_from(line.split(' ')).map(|_| ());
        assert!(parse("toolkit run t.wasm GREET --arg name=Ada").is_ok());
        assert!(parse(r#"toolkit run t.wasm GREET {"name":"Ada"}"#).is_ok());
        assert!(parse("toolkit run t.wasm --trigger NEW --cursor 5").is_ok());
        assert!(parse("toolkit run t.wasm --trigger NEW --case new.json").is_ok());
        for wrong in [
            "toolkit run t.wasm",
            "toolkit run t.wasm GREET --trigger NEW",
            "toolkit run t.wasm GREET {} --arg name=Ada",
            "toolkit run t.wasm GREET --cursor 5",
            "toolkit run t.wasm GREET {} --case greet.json",
            "toolkit build . --version 2026",
            "toolkit run t.wasm GREET --rewrite https://a.example",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
