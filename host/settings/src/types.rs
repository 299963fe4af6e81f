//! Values as the types of their settings, and those that do not fit.

use anyhow::Context;
use config::{ConfigError, Value, ValueKind};
use serde_json::json;

use super::{
    Config, Setting,
    problems::{Problem, Problems},
    sources::matches,
    values::has_credentials,
};

/// Reads values as settings. One of the wrong type is a problem, and counts as not set.
///
/// # Errors
/// If an error is not about a value.
pub(super) fn read(
    mut values: Value,
    settings: &[Setting],
    problems: &mut Problems,
) -> anyhow::Result<Config> {
    loop {
        let read: Result<Config, ConfigError> = values.clone().try_deserialize();
        let error = match read {
            Ok(config) => return Ok(config),
            Err(error) => error,
        };
        let problem = explain(error, settings)?;
        let is_removed = remove(&mut values, &problem.key);
        anyhow::ensure!(is_removed, "{}", problem.text);
        problems.add(problem);
    }
}

/// Removes the value of a key, which may lie in nested tables. Returns false if the key is missing.
fn remove(values: &mut Value, key: &str) -> bool {
    let ValueKind::Table(table) = &mut values.kind else {
        return false;
    };
    table.remove(key).is_some()
        || table.iter_mut().any(|(name, value)| {
            let rest = key.strip_prefix(name.as_str());
            rest.and_then(|rest| rest.strip_prefix('.'))
                .is_some_and(|rest| remove(value, rest))
        })
}

/// Explains a value that has the wrong type, with the doc comment of its setting or with its values.
fn explain(error: ConfigError, settings: &[Setting]) -> anyhow::Result<Problem> {
    let (path, text) = match error {
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
        } => (key, error.to_string()),
        other => return Err(other).context("read the settings"),
    };
    // The path may name an element of a list.
    let key = path.split('[').next().unwrap_or_default();
    if let Some((_, value)) = text.split_once(" does not have variant constructor ") {
        let allowed = allowed_values(key, value).unwrap_or_default();
        let text = format!("`{key}`: it is `{value}` and must be one of {allowed}");
        return Ok(Problem::new(key, text));
    }
    let reason = if has_credentials(&text) {
        "the value is not valid, and is not shown because it contains a credential"
    } else if text.starts_with("relative URL without a base") {
        "it must be a URL that begins with its scheme, for example `https://`"
    } else {
        text.as_str()
    };
    let setting = settings.iter().find(|setting| matches(&setting.key, key));
    Ok(Problem {
        doc: setting.map_or("", |setting| setting.doc),
        ..Problem::new(key, format!("`{key}`: {reason}; correct or remove it"))
    })
}

/// Returns the values of an enumerated setting, which the error of `serde` about another value lists.
fn allowed_values(key: &str, other: &str) -> Option<String> {
    let names = key.rsplit('.');
    let nested = names.fold(json!(other), |inner, name| json!({ name: inner }));
    let error = serde_json::from_value::<Config>(nested).err()?.to_string();
    let (_, expected) = error.rsplit_once("expected ")?;
    let listed = expected.strip_prefix("one of ").unwrap_or(expected);
    Some(listed.replace(" or ", ", "))
}
