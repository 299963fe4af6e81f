//! Runs case files natively. Their format is described in [`manifest::cases`].

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use manifest::AuthMode;
use manifest::cases::{Case, CaseResult, GivenFile, files};
use serde_json::{Value, json};

use super::{Host, host};
use crate::rt::{self, Toolkit};
use crate::{Inbound, Result, ToolError};

/// Runs all cases and returns the problems. A tool without cases is a problem too.
pub(super) fn run_all(toolkit: &Toolkit, folder: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    let mut files = Vec::new();
    for tool in toolkit.tools {
        let cases = files_of(folder, tool.function, tool.suffix);
        if cases.is_empty() {
            problems.push(format!(
                "the tool `{0}` has no case: write {1}/{0}/success.json",
                tool.function,
                folder.display()
            ));
        }
        files.extend(cases);
    }
    for trigger in toolkit.triggers {
        files.extend(files_of(folder, trigger.function, trigger.suffix));
    }
    problems.extend(
        files
            .iter()
            .filter_map(|file| run_file(toolkit, file).err()),
    );
    problems
}

/// Returns the case files of a tool or trigger. Their folder is the slug in lower case without the
/// toolkit's name, or the name of the function.
fn files_of(folder: &Path, function: &str, suffix: &str) -> Vec<PathBuf> {
    let by_slug = suffix.to_ascii_lowercase();
    let mut found = files(&folder.join(function));
    if by_slug != function {
        found.extend(files(&folder.join(by_slug)));
    }
    found
}

/// Runs one case file.
pub(super) fn run_file(toolkit: &Toolkit, file: &Path) -> Result<(), String> {
    let case = Case::read(file).map_err(|problem| format!("{}: {problem}", file.display()))?;
    let folder = file
        .parent()
        .and_then(Path::file_name)
        .and_then(|folder| folder.to_str())
        .unwrap_or_default();
    run_case(toolkit, folder, &case).map_err(|problem| format!("{}:\n{problem}", file.display()))
}

/// Runs one case of the tool or trigger called `name`.
///
/// # Errors
/// A description of the problem.
pub fn run_case(toolkit: &Toolkit, name: &str, case: &Case) -> Result<(), String> {
    let caught = catch_unwind(AssertUnwindSafe(|| {
        scripted(toolkit, name, case)
            .run(|| run(toolkit, name, case))
            .0
    }));
    let outcome = caught.map_err(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        text.unwrap_or("the toolkit panicked").to_owned()
    })?;
    let problem = match &outcome {
        Ok(data) => case.judge(CaseResult::Data(data)),
        Err(error) => case.judge(CaseResult::Error {
            kind: error.kind(),
            message: error.text(),
        }),
    };
    problem.map_or(Ok(()), Err)
}

fn scripted(toolkit: &Toolkit, name: &str, case: &Case) -> Host {
    let host = host().any_order();
    let mut scripted = case.exchanges.iter().cloned().fold(host, Host::expect);
    if let Some(now) = case.now {
        scripted = scripted.now(now);
    }
    for (name, value) in fields(toolkit, name, case) {
        scripted = scripted.field(&name, &value);
    }
    for GivenFile {
        id,
        name,
        mimetype,
        text,
    } in &case.files
    {
        scripted = scripted.file(id, name, mimetype, text.as_bytes());
    }
    scripted
}

/// Returns the fields of the account that the case runs with.
fn fields(toolkit: &Toolkit, name: &str, case: &Case) -> BTreeMap<String, String> {
    let manifest = (toolkit.describe)();
    let mut tools = toolkit.tools.iter();
    let tool = tools
        .find(|tool| is_called(name, tool.function, tool.suffix))
        .and_then(|tool| manifest.tool(&slug(toolkit, tool.suffix)));
    let anonymous = tool.is_some_and(|tool| tool.no_auth);
    let mut schemes = manifest.auth.iter();
    let scheme = schemes.find(|scheme| scheme.mode != AuthMode::NoAuth);
    let mut fields = case.fields.clone();
    if let Some(scheme) = scheme.filter(|_| !anonymous) {
        let values = case.account_values(scheme);
        fields.extend(scheme.open_fields(|name| values.get(name).cloned()));
    }
    fields
}

/// Returns true if the cases in the folder `name` are those of this tool or trigger.
fn is_called(name: &str, function: &str, suffix: &str) -> bool {
    function == name || suffix.eq_ignore_ascii_case(name)
}

fn slug(toolkit: &Toolkit, suffix: &str) -> String {
    format!("{}_{suffix}", toolkit.slug.to_ascii_uppercase())
}

fn run(toolkit: &Toolkit, name: &str, case: &Case) -> Result<Value> {
    let arguments = case.arguments.to_string().into_bytes();
    if let Some(tool) = toolkit
        .tools
        .iter()
        .find(|tool| is_called(name, tool.function, tool.suffix))
    {
        let data = rt::execute(toolkit, &slug(toolkit, tool.suffix), arguments)?;
        return Ok(serde_json::from_slice(&data)?);
    }
    let Some(trigger) = toolkit
        .triggers
        .iter()
        .find(|trigger| is_called(name, trigger.function, trigger.suffix))
    else {
        return Err(ToolError::internal(format!(
            "no tool or trigger is called `{name}`"
        )));
    };
    if let Some(subscription) = &case.subscription {
        let call = serde_json::to_vec(&subscription.call(&case.arguments))?;
        let data = rt::execute(toolkit, &slug(toolkit, trigger.suffix), call)?;
        return Ok(serde_json::from_slice(&data)?);
    }
    match &trigger.source {
        rt::Source::Poll(_) => {
            let cursor_before = case
                .cursor
                .as_ref()
                .map(Value::to_string)
                .unwrap_or_default();
            let polled = rt::poll_trigger(
                toolkit,
                &slug(toolkit, trigger.suffix),
                &arguments,
                cursor_before.as_bytes(),
            )?;
            let cursor: Value = serde_json::from_slice(&polled.cursor)?;
            Ok(json!({ "events": events(polled.events)?, "cursor": cursor, "more": polled.more }))
        }
        rt::Source::Webhook(_) => {
            let received = rt::receive_trigger(
                toolkit,
                &slug(toolkit, trigger.suffix),
                &arguments,
                inbound(case),
            )?;
            let body = String::from_utf8_lossy(&received.body).into_owned();
            Ok(
                json!({ "events": events(received.events)?, "status": received.status, "body": body }),
            )
        }
    }
}

fn events(events: Vec<(String, Vec<u8>)>) -> Result<Vec<Value>> {
    events
        .into_iter()
        .map(|(id, payload)| {
            let payload: Value = serde_json::from_slice(&payload)?;
            Ok(json!({ "id": id, "payload": payload }))
        })
        .collect()
}

fn inbound(case: &Case) -> Inbound {
    let Some(given) = &case.request else {
        return Inbound::default();
    };
    let (headers, body) = given.parts();
    Inbound {
        method: given.method.clone(),
        path: given.path.clone(),
        headers,
        body,
    }
}
