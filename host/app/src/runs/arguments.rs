//! Arguments of an execution: sent by the caller, or made from a prompt.
use std::mem;

use bytes::Bytes;
use sandbox::{File, Reservation};

use super::{
    errors,
    prompt::{self, Prompt, Tokens},
};
use crate::{
    App, Result,
    catalog::{Accepted, Tool},
    files,
    projects::{Project, SharedProject},
};

/// The input of an execution.
#[derive(Debug)]
pub enum Input {
    /// The arguments, a JSON object as received.
    Arguments(Bytes),
    /// A prompt that a language model turns into arguments.
    Prompt(Box<Prompt>),
}

/// Arguments that match the schema of a tool.
pub(super) struct Arguments {
    pub json: Bytes,
    /// The files that the arguments name.
    pub files: Vec<File>,
    /// The reservation for the memory of the files.
    pub files_memory: Option<Reservation>,
    /// The tokens used, if a language model made the arguments.
    pub tokens: Option<Tokens>,
    /// The names that the schema does not describe, if the caller sent the arguments.
    pub unknown: Vec<String>,
}

/// Input whose arguments are valid. A prompt is still to become arguments.
pub(super) enum CheckedInput {
    Arguments(Arguments),
    Prompt(Box<Prompt>),
}

/// Checks the arguments of a call that does not run yet. Fails if the call would fail because of them.
pub(crate) async fn check_arguments(
    app: &App,
    project: &SharedProject,
    tool: &Tool,
    arguments: Bytes,
) -> Result<()> {
    let checked = Box::pin(check(app, project, tool, Input::Arguments(arguments))).await;
    checked.map(drop)
}

/// Loads the files that arguments name, and validates the arguments.
pub(super) async fn check(
    app: &App,
    project: &SharedProject,
    tool: &Tool,
    input: Input,
) -> Result<CheckedInput> {
    let json = match input {
        Input::Arguments(json) => json,
        Input::Prompt(prompt) => return Ok(CheckedInput::Prompt(prompt)),
    };
    let mut arguments = Arguments::new(json, None);
    arguments.load_files(app, project, tool).await?;
    let (large, json) = (&app.large_work, &arguments.json);
    let accepted = tool.input.accept(large, &project.tenant, json).await?;
    let accepted = accepted
        .and_then(Accepted::without_misspellings)
        .map_err(|problems| errors::arguments_invalid(&tool.slug, problems))?;
    arguments.json = accepted.value;
    let unknown = accepted.unknown.into_iter();
    arguments.unknown = unknown.map(|unknown| unknown.name).collect();
    Ok(CheckedInput::Arguments(arguments))
}

impl Arguments {
    fn new(json: Bytes, tokens: Option<Tokens>) -> Self {
        Self {
            json,
            files: Vec::new(),
            files_memory: None,
            tokens,
            unknown: Vec::new(),
        }
    }

    /// Makes arguments from a prompt, with the files that they name. Calls the language model.
    pub(super) async fn from_prompt(
        app: &App,
        project: &SharedProject,
        tool: &Tool,
        prompt: &Prompt,
    ) -> Result<Self> {
        let (json, tokens) = prompt::to_arguments(app, project, tool, prompt).await?;
        let mut arguments = Self::new(json, Some(tokens));
        arguments.load_files(app, project, tool).await?;
        Ok(arguments)
    }

    /// Loads the files that the arguments name.
    async fn load_files(&mut self, app: &App, project: &SharedProject, tool: &Tool) -> Result<()> {
        if tool.takes_files {
            let json = mem::take(&mut self.json);
            (self.json, self.files, self.files_memory) =
                Box::pin(files::resolve_files(app, project, tool, json)).await?;
        }
        Ok(())
    }
}

/// Turns a prompt into arguments for a tool without executing the tool. Fails if the tool does not
/// exist, no model is configured, or the model finds no valid arguments.
pub async fn arguments_for_prompt(
    app: &App,
    project: &Project,
    tool: &str,
    version: &str,
    prompt: &Prompt,
) -> Result<Bytes> {
    let resolved = app.catalog.tool(tool, version)?;
    Ok(prompt::to_arguments(app, project, &resolved.tool, prompt)
        .await?
        .0)
}
