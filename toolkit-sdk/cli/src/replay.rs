//! `toolkit replay`: replays a recorded call without a network.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use manifest::{Manifest, cases};
use sandbox::{
    Clock, Outcome,
    cassette::{Cassette, RecordedAction, RecordedResult},
    kind,
};

use crate::{
    host::{self, Host},
    outcome, progress,
    toolchain::Mode,
};

/// Replay a recorded call without a network.
///
/// Nothing is sent, and all input from outside comes from the file.
///
/// The exit code is 0 if the outcome is the recorded one, even if that is an error; otherwise it is
/// 1, and the difference is shown.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// A component, or the folder of a toolkit, which is built first.
    target: PathBuf,
    /// Cassette that `toolkit record` or `toolhost logs export` wrote.
    cassette: PathBuf,
    /// Toolchain to compile with, if TARGET is a folder.
    #[arg(long, value_enum, env = "TOOLKIT_TOOLCHAIN")]
    toolchain: Option<Mode>,
    /// Print one JSON object with everything.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) async fn run(options: &Replay) -> Result<ExitCode> {
    let cassette = read(&options.cassette)?;
    let component = crate::run::component(&options.target, options.toolchain)?;
    let host = {
        let _spinner = progress::spinner("compiling");
        Host::open(
            component,
            host::network(Vec::new(), Vec::new()),
            Clock::System,
        )
        .await?
    };
    check_target(&host.installed.manifest, &cassette.call)?;
    let outcome = {
        let _spinner = progress::spinner("replaying");
        host.replay(&cassette).await?
    };
    let differs = difference(&cassette, &outcome)?;
    if options.json {
        let mut record = outcome::record(&outcome);
        record["same"] = differs.is_none().into();
        record["differs"] = differs.clone().into();
        println!("{}", serde_json::to_string_pretty(&record)?);
    } else {
        crate::run::report(&outcome, None);
        match &differs {
            None => eprintln!("\nas recorded"),
            Some(how) => eprintln!("\nthe replay differs from the recording: {how}"),
        }
        if cassette.component != host.installed.digest {
            eprintln!("recorded with another build: {}", cassette.component);
        }
    }
    Ok(outcome::exit_code(differs.is_none()))
}

fn read(file: &Path) -> Result<Cassette> {
    let text = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    // The text of the error contains its cause.
    Cassette::from_json(&text).map_err(|cause| anyhow!("cannot replay {}: {cause}", file.display()))
}

/// Checks that the toolkit has the recorded tool or trigger.
fn check_target(manifest: &Manifest, asked: &RecordedAction) -> Result<()> {
    let (slug, known) = match asked {
        RecordedAction::Execute { tool, .. } => (tool, manifest.tool(tool).is_some()),
        RecordedAction::Poll { trigger, .. } | RecordedAction::Receive { trigger, .. } => {
            (trigger, manifest.trigger(trigger).is_some())
        }
    };
    if known {
        Ok(())
    } else {
        bail!(
            "the cassette records `{slug}`, which `{}` does not have",
            manifest.slug
        )
    }
}

/// Describes the difference between the recorded and the replayed outcome.
fn difference(cassette: &Cassette, outcome: &Outcome) -> Result<Option<String>> {
    if cassette.matches(outcome) {
        return Ok(None);
    }
    if let Err(failure) = &outcome.output
        && failure.kind == kind::REPLAY_DIFFERS
    {
        return Ok(Some(failure.message.clone()));
    }
    let recorded = serde_json::to_value(&cassette.ended)?;
    let now = serde_json::to_value(RecordedResult::new(outcome))?;
    let lines = cases::difference(&recorded, &now)
        .unwrap_or_else(|| "  the values are the same, the bytes are not".to_owned());
    Ok(Some(format!(
        "the outcome differs (- recorded, + now):\n{lines}"
    )))
}
