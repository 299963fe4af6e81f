//! Case files of a toolkit. The name of a case's folder is the slug of the tool or trigger in lower
//! case, without the toolkit's slug.

use std::path::{Path, PathBuf};

use manifest::{
    Manifest, SubscriptionAction, Tool, Trigger,
    cases::{self, Case},
};

/// Tool or trigger of a case.
#[derive(Debug, Clone, Copy)]
pub(super) enum Subject<'a> {
    Tool(&'a Tool),
    Trigger(&'a Trigger),
}

impl Subject<'_> {
    fn slug(&self) -> &str {
        match self {
            Self::Tool(tool) => &tool.slug,
            Self::Trigger(trigger) => &trigger.slug,
        }
    }
}

/// A parsed case file.
#[derive(Debug)]
pub(super) struct CaseFile<'a> {
    pub(super) subject: Subject<'a>,
    /// Name of the case, for example `list_stories/success`.
    pub(super) name: String,
    pub(super) file: PathBuf,
    pub(super) case: Case,
}

/// Reads all cases below `folder`. Reports invalid files and missing cases.
pub(super) fn load<'a>(
    manifest: &'a Manifest,
    folder: &Path,
    problems: &mut Vec<String>,
) -> Vec<CaseFile<'a>> {
    let mut files = Vec::new();
    for directory in folders(folder) {
        let name = file_name(&directory);
        let Some(subject) = subject(manifest, &name) else {
            problems.push(format!(
                "cases/{name}: no tool or trigger has the slug {}",
                slug(manifest, &name)
            ));
            continue;
        };
        for file in cases::files(&directory) {
            let name = format!("{name}/{}", file_name(&file.with_extension("")));
            match Case::read(&file) {
                Ok(case) => files.push(CaseFile {
                    subject,
                    name,
                    file,
                    case,
                }),
                Err(problem) => problems.push(format!("cases/{name}.json: {problem}")),
            }
        }
    }
    // A tool without code of its own, which only passes responses on, needs no case.
    let written = manifest.tools.iter().filter(|tool| !tool.loose_output);
    let tools = written.map(|tool| tool.slug.as_str());
    let triggers = manifest
        .triggers
        .iter()
        .map(|trigger| trigger.slug.as_str());
    problems.extend(
        tools
            .chain(triggers)
            .flat_map(|slug| missing(manifest, slug, &files)),
    );
    let subscribing = manifest
        .triggers
        .iter()
        .filter(|trigger| trigger.subscription.is_some());
    problems
        .extend(subscribing.flat_map(|trigger| missing_subscriptions(manifest, trigger, &files)));
    files
}

/// Reports a missing success case or failure case of a tool or trigger.
fn missing(manifest: &Manifest, slug: &str, files: &[CaseFile<'_>]) -> Vec<String> {
    let folder = folder_name(&manifest.slug, slug);
    let cases: Vec<_> = files
        .iter()
        .filter(|file| file.subject.slug() == slug)
        .map(|file| &file.case)
        .collect();
    let mut problems = Vec::new();
    if cases.iter().all(|case| case.data.is_none()) {
        problems.push(format!(
            "{slug}: no case expects a success; write cases/{folder}/success.json with `data`"
        ));
    }
    if cases.iter().all(|case| case.error.is_none()) {
        problems.push(format!(
            "{slug}: no case expects a failure; write cases/{folder}/failure.json with `error`"
        ));
    }
    problems
}

/// Reports missing cases of a trigger's subscription: a success of each action, and a failure.
fn missing_subscriptions(
    manifest: &Manifest,
    trigger: &Trigger,
    files: &[CaseFile<'_>],
) -> Vec<String> {
    let folder = folder_name(&manifest.slug, &trigger.slug);
    [
        ("subscribe", SubscriptionAction::Subscribe, false),
        ("unsubscribe", SubscriptionAction::Unsubscribe, false),
        ("subscribe_failure", SubscriptionAction::Subscribe, true),
    ]
    .into_iter()
    .filter(|(_, action, fails)| {
        !files.iter().any(|file| {
            let subscription = file.case.subscription.as_ref();
            file.subject.slug() == trigger.slug
                && subscription.is_some_and(|given| given.action == *action)
                && file.case.error.is_some() == *fails
        })
    })
    .map(|(name, action, fails)| {
        let slug = &trigger.slug;
        let (action, end) = match action {
            SubscriptionAction::Subscribe => ("subscribe", fails),
            SubscriptionAction::Unsubscribe => ("unsubscribe", fails),
        };
        let end = if end { "fails to" } else { "does" };
        format!(
            "{slug}: no case {end} {action}; write cases/{folder}/{name}.json with `subscription`"
        )
    })
    .collect()
}

/// Returns the name of the folder with the cases of a tool or trigger.
pub(crate) fn folder_name(toolkit: &str, slug: &str) -> String {
    let slug = slug.to_ascii_lowercase();
    slug.strip_prefix(&format!("{toolkit}_"))
        .unwrap_or(&slug)
        .to_owned()
}

fn subject<'a>(manifest: &'a Manifest, folder: &str) -> Option<Subject<'a>> {
    let slug = slug(manifest, folder);
    let tool = manifest.tool(&slug).map(Subject::Tool);
    tool.or_else(|| manifest.trigger(&slug).map(Subject::Trigger))
}

fn slug(manifest: &Manifest, folder: &str) -> String {
    format!("{}_{folder}", manifest.slug).to_ascii_uppercase()
}

/// Lists the folders, sorted by name, so that reports have a stable order.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = folder
        .read_dir()
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut folders: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn manifest() -> Manifest {
        let tool = |slug: &str| json!({ "slug": slug, "name": "n", "description": "d", "input": { "type": "object" }, "output": {} });
        serde_json::from_value(json!({
            "abi": "1.0.0", "sdk": "toolkit-sdk 0.1.0", "slug": "hello", "name": "Hello", "description": "Greets.",
            "version": "20261121_00", "tools": [tool("HELLO_GREET"), tool("HELLO_SHOUT")],
            "triggers": [{ "slug": "HELLO_HEARD", "name": "n", "description": "d", "kind": "poll", "config": {}, "payload": {} }],
        }))
        .unwrap()
    }

    #[test]
    fn all_case_file_problems_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("greet/success.json", r#"{ "data": 1 }"#);
        write(
            "greet/failure.json",
            r#"{ "error": { "kind": "not_found" } }"#,
        );
        write(
            "shout/both.json",
            r#"{ "data": 1, "error": { "kind": "x" } }"#,
        );
        write("shout/neither.json", "{}");
        write("shout/typo.json", r#"{ "data": 1, "exchange": [] }"#);
        write("whisper/success.json", r#"{ "data": 1 }"#);
        let manifest = manifest();
        let mut problems = Vec::new();
        let files = load(&manifest, folder.path(), &mut problems);
        let names: Vec<_> = files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["greet/failure", "greet/success"]);
        let all = problems.join("\n");
        for expected in [
            "both.json",
            "neither.json",
            "unknown field `exchange`",
            "HELLO_WHISPER",
            "cases/shout/success.json",
            "cases/shout/failure.json",
            "cases/heard/success.json",
            "cases/heard/failure.json",
        ] {
            assert!(all.contains(expected), "{expected} is not in\n{all}");
        }
        assert!(!all.contains("cases/greet/"), "{all}");
    }
}
