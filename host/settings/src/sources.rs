//! Origin of each value, and errors that name it.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    path::{Path, PathBuf},
};

use config::{ConfigError, Map, Value, ValueKind};
use manifest::nearest;

use super::{
    removed,
    setting::{ANY_NAME, Setting},
    values::has_credentials,
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

/// A value that its key does not permit.
#[derive(Debug)]
pub(super) struct Problem {
    key: String,
    text: String,
}

impl Problem {
    /// Describes a problem in a message that names the key.
    pub(super) fn new(key: &str, text: impl ToString) -> Self {
        Self {
            key: key.to_owned(),
            text: text.to_string(),
        }
    }

    /// Returns the value of a key, or the problem with it.
    pub(super) fn of<T>(key: &str, value: Result<T, impl ToString>) -> Result<T, Self> {
        value.map_err(|cause| Self::new(key, cause))
    }

    /// Returns a problem with a key if its value is not valid. The text follows the key.
    pub(super) fn unless(valid: bool, key: &str, text: impl fmt::Display) -> Result<(), Self> {
        if valid {
            Ok(())
        } else {
            Err(Self::new(key, format!("`{key}` {text}")))
        }
    }
}

/// The settings file, and the origin of each value other than a default.
#[derive(Debug, Default)]
pub struct Sources {
    file: SettingsFile,
    values: BTreeMap<String, Source>,
}

impl Sources {
    /// Returns the origin of the value of a key.
    pub(super) fn find(&self, key: &str) -> &Source {
        self.values.get(key).unwrap_or(&Source::Default)
    }

    /// Returns the settings file.
    pub(super) fn settings_file(&self) -> &SettingsFile {
        &self.file
    }

    /// Notes the settings file.
    pub(super) fn set_settings_file(&mut self, file: SettingsFile) {
        self.file = file;
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

    /// Refuses keys that are neither settings nor removed ones.
    pub(super) fn check_known(&self, settings: &[Setting]) -> Result<(), Problem> {
        let unknown = self.values.keys().find(|key| {
            let is_known = settings.iter().any(|setting| matches(&setting.key, key));
            !is_known && removed::replacement(key).is_none()
        });
        let Some(key) = unknown else {
            return Ok(());
        };
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
        Err(Problem::new(
            key,
            format!("`{key}` is not a setting: correct or remove it{question}; {hint}"),
        ))
    }

    /// Returns the question whether another setting was meant, in the spelling of the source from
    /// which the key was read; empty if no setting is similar. A removed setting counts if only its
    /// separators are others, such as one underscore in the environment.
    fn similar_setting(&self, key: &str, settings: &[Setting]) -> String {
        let spelled = |known: &str| match self.find(key) {
            Source::Environment(_) => variable(known),
            _ => known.to_owned(),
        };
        if let Some((removed, replacement)) = removed::similar(key) {
            let name = spelled(removed);
            return format!("; `{name}` was removed in this version: {replacement}");
        }
        let keys = settings.iter().map(|setting| &*setting.key);
        nearest(key, keys).map_or_else(String::new, |similar| {
            format!("; did you mean `{}`?", spelled(similar))
        })
    }

    /// Adds the origin of the value to a problem.
    pub(super) fn blame(&self, problem: Problem) -> anyhow::Error {
        let Problem { key, text } = problem;
        match self.find(&key) {
            Source::Default => anyhow::anyhow!("{text}"),
            source => anyhow::anyhow!("{text} (from {source})"),
        }
    }

    /// Explains a value that has the wrong type, with the doc comment of its setting.
    pub(super) fn explain(&self, error: ConfigError, settings: &[Setting]) -> anyhow::Error {
        let (key, text) = match error {
            ConfigError::Type {
                key: Some(key),
                unexpected,
                expected,
                ..
            } => (key, format!("it is a {unexpected} and must be {expected}")),
            ConfigError::At {
                key: Some(key),
                error,
                ..
            } => (key, describe(&error.to_string())),
            other => return anyhow::Error::new(other).context("read the settings"),
        };
        let text = if has_credentials(&text) {
            "the value is not valid, and is not shown because it contains a credential".to_owned()
        } else {
            text
        };
        let setting = settings.iter().find(|setting| matches(&setting.key, &key));
        let doc = setting.map_or("", |setting| setting.doc);
        let text = format!("`{key}`: {text}; correct or remove it");
        let blamed = self.blame(Problem { key, text });
        anyhow::anyhow!("{blamed}. {doc}")
    }
}

/// Describes a wrong value without the names of Rust types that the error of a parser contains.
fn describe(error: &str) -> String {
    if let Some((_, value)) = error.split_once(" does not have variant constructor ") {
        return format!("`{value}` is not one of its values");
    }
    if error.starts_with("relative URL without a base") {
        return "it must be a URL that begins with its scheme, for example `https://`".to_owned();
    }
    error.to_owned()
}

/// Returns the name of a setting in the environment.
pub(super) fn variable(key: &str) -> String {
    format!("TOOLHOST_{}", key.to_uppercase().replace('.', "__"))
}

/// Returns true if a key has the form of a setting's key.
fn matches(pattern: &str, key: &str) -> bool {
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
