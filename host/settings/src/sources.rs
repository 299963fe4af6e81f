//! Origin of each value, and errors that name it.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    path::{Path, PathBuf},
};

use config::{Map, Value, ValueKind};
use manifest::nearest;

use super::{
    problems::{Problem, Problems},
    removed,
    setting::{ANY_NAME, Setting},
};

/// The settings file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum SettingsFile {
    /// A file to read. It is an error if it cannot be read.
    Read(PathBuf),
    /// The file of the machine, which this user may not read. It does not count.
    Unreadable(PathBuf),
    /// No file.
    #[default]
    Missing,
}

/// Origin of the value of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Flag(&'static str),
    Environment(String),
    File(PathBuf),
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "flag {name}"),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// The settings file, and the origin of each value other than a default.
#[derive(Debug, Default)]
pub struct Sources {
    pub(super) file: SettingsFile,
    values: BTreeMap<String, Source>,
}

impl Sources {
    /// Returns the origin of the value of a key.
    pub(super) fn find(&self, key: &str) -> &Source {
        self.values.get(key).unwrap_or(&Source::Default)
    }

    /// Returns true if the key has a value other than the default.
    pub(super) fn contains(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// Adds the keys of a file.
    pub(super) fn add_file(&mut self, path: &Path, values: &Map<String, Value>) {
        let mut keys = Vec::new();
        list_keys("", values, &mut keys);
        let source = Source::File(path.to_owned());
        self.values
            .extend(keys.into_iter().map(|key| (key, source.clone())));
    }

    /// Adds the settings among the variables of the environment.
    pub(super) fn add_environment(&mut self, variables: &HashMap<String, String>) {
        for (name, _) in variables.iter().filter(|(_, value)| !value.is_empty()) {
            let name_of_key = name.to_lowercase();
            if let Some(key) = name_of_key.strip_prefix("toolhost_") {
                self.set_variable(&key.replace("__", "."), name);
            }
        }
    }

    /// Notes the variable of the environment that has the value of a key.
    pub(super) fn set_variable(&mut self, key: &str, name: &str) {
        self.values
            .insert(key.to_owned(), Source::Environment(name.to_owned()));
    }

    /// Notes the flag that has the value of a key.
    pub(super) fn set_flag(&mut self, key: &str, flag: &'static str) {
        self.values.insert(key.to_owned(), Source::Flag(flag));
    }

    /// Warns of settings that were removed.
    pub(super) fn warnings(&self) -> Vec<String> {
        let removed = self.values.iter().filter_map(|(key, source)| {
            let replacement = removed::replacement(key)?;
            Some(format!(
                "setting `{key}` was removed in this version and has no effect; {replacement} (from {source})"
            ))
        });
        removed.collect()
    }

    /// Adds the keys that are neither settings nor removed ones to the problems.
    pub(super) fn check_known(&self, settings: &[Setting], problems: &mut Problems) {
        for key in self.values.keys() {
            let is_known = settings.iter().any(|setting| matches(&setting.key, key));
            if !is_known && removed::replacement(key).is_none() {
                problems.add(self.unknown_key(key, settings));
            }
        }
    }

    fn unknown_key(&self, key: &str, settings: &[Setting]) -> Problem {
        let group = key.rsplit_once('.').map_or("", |(group, _)| group);
        let in_group = settings
            .iter()
            .filter(|setting| matches(setting.group(), group));
        let names: Vec<_> = in_group.map(Setting::name).collect();
        let hint = if names.is_empty() {
            "`toolhost serve --help` lists the settings".to_owned()
        } else {
            format!("known here: {}", names.join(", "))
        };
        let question = self.similar_setting(key, settings);
        Problem::new(
            key,
            format!("`{key}` is not a setting: correct or remove it{question}; {hint}"),
        )
    }

    /// Returns the question whether another setting was meant, in the spelling of the source from
    /// which the key was read; empty if no setting is similar. Of a similar removed setting it says what
    /// holds instead.
    fn similar_setting(&self, key: &str, settings: &[Setting]) -> String {
        let known = settings.iter().map(|setting| &*setting.key);
        let removed = removed::REMOVED_SETTINGS
            .iter()
            .map(|(removed, _)| *removed);
        let Some(similar) = nearest(key, known.chain(removed)) else {
            return String::new();
        };
        let spelled = match self.find(key) {
            Source::Environment(_) => variable(similar),
            _ => similar.to_owned(),
        };
        match removed::replacement(similar) {
            Some(replacement) => {
                format!("; `{spelled}` was removed in this version: {replacement}")
            }
            None => format!("; did you mean `{spelled}`?"),
        }
    }

    /// Refuses the values if there are problems. The error has a line for each, and a warning for each
    /// removed setting.
    pub(super) fn refuse(&self, problems: &Problems) -> anyhow::Result<()> {
        if problems.0.is_empty() {
            return Ok(());
        }
        let lines: Vec<_> = problems
            .0
            .iter()
            .map(|problem| self.line(problem))
            .collect();
        let mut message = match &lines[..] {
            [line] => line.clone(),
            lines => format!("the settings are not valid:\n  {}", lines.join("\n  ")),
        };
        for warning in self.warnings() {
            message.push_str(&format!("\nwarning: {warning}"));
        }
        Err(anyhow::anyhow!(message))
    }

    /// Returns a problem with the origin of the value.
    fn line(&self, problem: &Problem) -> String {
        let mut line = problem.text.clone();
        let source = self.find(&problem.key);
        if *source != Source::Default {
            line.push_str(&format!(" (from {source})"));
        }
        if !problem.doc.is_empty() {
            line.push_str(&format!(". {}", problem.doc));
        }
        line
    }
}

/// Returns the name of a setting in the environment.
pub(super) fn variable(key: &str) -> String {
    format!("TOOLHOST_{}", key.to_uppercase().replace('.', "__"))
}

/// Returns true if a key has the form of a setting's key.
pub(super) fn matches(pattern: &str, key: &str) -> bool {
    let mut names = key.split('.');
    let all_fit = pattern.split('.').all(|part| {
        names
            .next()
            .is_some_and(|name| part == ANY_NAME || part == name)
    });
    all_fit && names.next().is_none()
}

/// Lists the full keys of all values in a table.
fn list_keys(prefix: &str, values: &Map<String, Value>, keys: &mut Vec<String>) {
    for (name, value) in values {
        let key = format!("{prefix}{name}");
        match &value.kind {
            ValueKind::Table(table) => list_keys(&format!("{key}."), table, keys),
            _ => keys.push(key),
        }
    }
}
