//! Texts about settings: help, the table of the manual, the example file, the effective values.

use anyhow::{Context, Result};
use serde_json::Value;

use super::{
    Config, absolute, all,
    setting::{ANY_NAME, Setting},
    sources::{SettingsFile, Source, Sources},
    value_at,
    values::{HIDDEN_TEXT, has_credentials},
};

/// Width of comments in the example file.
const COMMENT_COLUMNS: usize = 98;

/// Formats every setting as `toolhost serve --help` shows it, which keeps the indentation of a line that it
/// wraps.
pub fn help() -> String {
    let about = "Settings, in toolhost.toml or in the environment (net.allow is TOOLHOST_NET__ALLOW, lists have commas):\n";
    about.to_owned() + &all().iter().map(help_entry).collect::<String>()
}

fn help_entry(setting: &Setting) -> String {
    let text = format!("{} {}", setting.doc, facts(setting))
        .replace('`', "")
        .replace("**", "");
    format!("  {}\n      {text}\n", setting.key)
}

/// Formats every setting as a row of the table in `docs/configuration.md`.
pub fn table() -> String {
    let head = "| Setting | Default | Range | Meaning |\n|---|---|---|---|\n";
    head.to_owned() + &all().iter().map(table_row).collect::<String>()
}

fn table_row(setting: &Setting) -> String {
    let Setting { key, doc, .. } = setting;
    let example = match &setting.example {
        Some(value) if value.is_array() => format!(" Example: `{}`.", plain(value)),
        _ => String::new(),
    };
    let default = setting.default_text();
    format!(
        "| `{key}` | {default} | {} | {doc}{example} |\n",
        setting.range_text()
    )
}

/// Formats a settings file in which every setting has its default and is commented out.
pub fn example() -> String {
    let mut text = "\
# Settings of toolhost: every setting, commented out, with its default or else an example. Remove the
# `#` before a setting to change it, and save the file as toolhost.toml or name it with `--config`.
# A setting is also read from the environment: `net.allow` is TOOLHOST_NET__ALLOW.
#
# `toolhost config --example` prints this file, `toolhost config` the settings in effect.
"
    .to_owned();
    let mut group = String::new();
    for setting in all() {
        text.push('\n');
        if setting.group() != group {
            group = setting.group().to_owned();
            let comment = if group.contains(ANY_NAME) { "#" } else { "" };
            text.push_str(&wrap(setting.group_doc));
            text.push_str(&format!("{comment}[{group}]\n\n"));
        }
        let value = setting.example.as_ref().unwrap_or(&setting.default);
        text.push_str(&wrap(setting.doc));
        text.push_str(&format!("# {}\n", facts(&setting)));
        text.push_str(&format!("#{} = {}\n", setting.name(), toml(value)));
    }
    text.replace("**", "")
}

/// Formats the settings in effect as a settings file that names the source of each. Secrets are
/// commented out and not shown.
///
/// # Errors
/// If a path is not Unicode text.
pub fn effective(config: &Config, sources: &Sources) -> Result<String> {
    let values = serde_json::to_value(config).context("print a path that is not Unicode")?;
    let file = match &sources.file {
        SettingsFile::Read(path) => absolute(path).display().to_string(),
        SettingsFile::Unreadable(path) => {
            format!("none; this user may not read {}", path.display())
        }
        SettingsFile::Missing => "none".to_owned(),
    };
    let mut text = format!(
        "# Settings in effect, with their sources. Secrets are not shown.\n# Settings file: {file}\n\n"
    );
    let mut group = String::new();
    for Effective {
        key,
        value,
        setting,
    } in with_values(&values)
    {
        let this_group = key[..key.len() - 1].join(".");
        if this_group != group {
            let names = key[..key.len() - 1].iter().map(|name| toml_key(name));
            let names: Vec<_> = names.collect();
            text.push_str(&format!("\n[{}]\n", names.join(".")));
            group = this_group;
        }
        let source = sources.find(&key.join("."));
        text.push_str(&line(&setting, &value, source));
    }
    Ok(text)
}

/// A setting in effect.
struct Effective {
    /// Names of its groups, and its own.
    key: Vec<String>,
    value: Value,
    setting: Setting,
}

/// Lists the settings with their values; those with any name once for each name that has a value.
fn with_values(values: &Value) -> Vec<Effective> {
    let mut listed = Vec::new();
    let (named, fixed): (Vec<_>, Vec<_>) = all()
        .into_iter()
        .partition(|setting| setting.group().contains(ANY_NAME));
    for setting in fixed {
        listed.push(Effective {
            key: setting.key.split('.').map(str::to_owned).collect(),
            value: value_at(values, &setting.key),
            setting,
        });
    }
    let apps = values["oauth_apps"].as_object();
    for (slug, app) in apps.into_iter().flatten() {
        for setting in &named {
            listed.push(Effective {
                key: vec!["oauth_apps".into(), slug.clone(), setting.name().into()],
                value: app[setting.name()].clone(),
                setting: setting.clone(),
            });
        }
    }
    listed
}

/// Formats a setting in effect as a line.
fn line(setting: &Setting, value: &Value, source: &Source) -> String {
    let name = setting.name();
    if value.is_null() {
        let default = setting.default_text().replace('`', "");
        return format!("# {name} is not set: {default}\n");
    }
    if is_secret(value) {
        return format!("# {name} = {}  # {source}\n", toml(&HIDDEN_TEXT.into()));
    }
    let unit = setting.unit.map(|unit| format!("{unit}, "));
    format!(
        "{name} = {}  # {}{source}\n",
        toml(value),
        unit.unwrap_or_default()
    )
}

/// Returns true for a secret setting, and for an address that contains a credential.
fn is_secret(value: &Value) -> bool {
    match value {
        Value::String(text) => text == HIDDEN_TEXT || has_credentials(text),
        Value::Array(parts) => parts.iter().any(is_secret),
        _ => false,
    }
}

/// Formats default, range and the meaning of 0 as a sentence.
fn facts(setting: &Setting) -> String {
    let range = setting.range_text();
    let separator = if range.is_empty() { "" } else { "; " };
    format!("Default: {}{separator}{range}.", setting.default_text())
}

/// Formats a value without the quotes of a string.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// Formats a value as TOML. JSON texts, numbers, booleans and lists are TOML, except for one
/// character.
fn toml(value: &Value) -> String {
    value.to_string().replace('\u{7f}', "\\u007f")
}

/// Formats a part of a key as TOML.
fn toml_key(name: &str) -> String {
    let is_bare = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if !name.is_empty() && is_bare {
        name.to_owned()
    } else {
        toml(&name.into())
    }
}

/// Formats text as comment lines.
fn wrap(text: &str) -> String {
    let mut lines = String::new();
    let mut columns = usize::MAX;
    for word in text.split_whitespace() {
        if columns.saturating_add(word.len()) > COMMENT_COLUMNS {
            if !lines.is_empty() {
                lines.push('\n');
            }
            lines.push('#');
            columns = 1;
        }
        lines.push(' ');
        lines.push_str(word);
        columns += word.len() + 1;
    }
    lines + "\n"
}
