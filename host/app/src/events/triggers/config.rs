//! Configurations of trigger instances: their validation, their identity, and their masked form.

use std::collections::BTreeSet;

use bytes::Bytes;
use manifest::write_only_names;
use serde_json::{Map, Value};

use crate::{
    App, Result, accounts,
    catalog::{ResolvedTrigger, TriggerType},
    core::truncate,
    events::errors,
    projects::Project,
};

/// The configuration of an instance.
pub(super) type Config = Map<String, Value>;

/// Checks a configuration against the schema of its trigger type. `complete` has further values, which
/// are those of other trigger types as well. Returns it without the members that are null where the
/// schema does not allow null. Fails if it does not match the schema, or if the schema does not describe
/// a name of `config`.
pub(super) async fn accept(
    app: &App,
    project: &Project,
    trigger: &TriggerType,
    config: &Config,
    complete: &Config,
) -> Result<Config> {
    let text = Bytes::from(text(complete)?);
    let (large, schema) = (&app.large_work, &trigger.config);
    let accepted = schema.accept(large, &project.tenant, &text).await?;
    let accepted = accepted.map_err(|problems| errors::config_invalid(&trigger.slug, problems))?;
    let names: BTreeSet<_> = config.keys().map(|name| truncate(name)).collect();
    let unknown = accepted.unknown.iter();
    let mut problems: Vec<_> = unknown
        .filter(|unknown| names.contains(&unknown.name))
        .map(|unknown| unknown.problem("field"))
        .collect();
    if !problems.is_empty() {
        problems.push(known_fields(trigger));
    }
    errors::refuse_problems(problems, |problems| {
        errors::config_invalid(&trigger.slug, problems)
    })?;
    serde_json::from_slice(&accepted.value)
        .map_err(|cause| errors::internal(format!("cannot read a configuration: {cause}")))
}

/// Returns the line of an error with the fields that the schema of a trigger type describes.
fn known_fields(trigger: &TriggerType) -> String {
    let schema = schema(trigger).unwrap_or_default();
    let fields = schema["properties"].as_object().into_iter().flatten();
    let names: Vec<_> = fields.map(|(name, _)| format!("`{name}`")).collect();
    match &names[..] {
        [] => "the trigger type has no fields".to_owned(),
        names => format!("known fields are {}", names.join(", ")),
    }
}

/// Returns the schema of the configurations of a trigger type, if it can be read.
fn schema(trigger: &TriggerType) -> Option<Value> {
    let text = trigger.config.text().ok()?;
    serde_json::from_str(text.get()).ok()
}

/// Returns a configuration as JSON. Fails only if memory cannot be written.
pub(super) fn text(config: &Config) -> Result<String> {
    serde_json::to_string(config)
        .map_err(|cause| errors::internal(format!("cannot write a configuration: {cause}")))
}

/// Returns the identity of an instance: equal for configurations that differ only in the order of
/// their members. The hash is keyed, because a configuration may hold a secret.
pub(super) fn identity(app: &App, trigger: &str, account: &str, config: &Config) -> String {
    let mut sorted = Value::Object(config.clone());
    sorted.sort_all_objects();
    let message = format!("{trigger}\0{account}\0{sorted}");
    let purpose = "identity of trigger instances";
    app.vault.hash_text(purpose, &message)
}

/// Masks the secrets of a configuration: the values of all properties that the schema marks as
/// `writeOnly`. Without the schema, every value is masked.
pub(super) fn mask(found: Option<&ResolvedTrigger>, config: Config) -> Config {
    let Some(schema) = found.and_then(|found| schema(&found.trigger)) else {
        let members = config.into_iter();
        let masked = members.map(|(name, value)| (name, accounts::mask(&value)));
        return masked.collect();
    };
    masked_members(config, &write_only_names(&schema))
}

fn masked_members(members: Config, secrets: &BTreeSet<String>) -> Config {
    let members = members.into_iter().map(|(name, value)| {
        let value = match secrets.contains(&name) {
            true => accounts::mask(&value),
            false => masked(value, secrets),
        };
        (name, value)
    });
    members.collect()
}

fn masked(value: Value, secrets: &BTreeSet<String>) -> Value {
    match value {
        Value::Object(members) => masked_members(members, secrets).into(),
        Value::Array(items) => {
            let items = items.into_iter();
            items.map(|item| masked(item, secrets)).collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn write_only_properties_are_masked_at_any_depth() {
        let schema = json!({
            "properties": {
                "secret": { "type": "string", "writeOnly": true },
                "words": { "type": "array" },
                "inner": { "$ref": "#/$defs/Inner" },
            },
            "$defs": { "Inner": { "properties": { "token": { "writeOnly": true } } } },
        });
        let config = json!({
            "secret": "abcdefgh", "words": ["abcdefgh"], "inner": { "token": "abcdefgh", "name": "abcdefgh" },
        });
        let Value::Object(config) = config else {
            unreachable!("it is an object")
        };
        assert_eq!(
            Value::Object(masked_members(config, &write_only_names(&schema))),
            json!({
                "secret": "abcd...", "words": ["abcdefgh"], "inner": { "token": "abcd...", "name": "abcdefgh" },
            })
        );
    }
}
