//! The values that endpoints of a toolkit can have.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    App, Result,
    catalog::{LATEST, Release},
    events::errors,
};

/// A value that an endpoint can have.
#[derive(Debug, PartialEq, Eq)]
pub struct SetupField {
    /// Display name.
    pub title: String,
    /// Description, which says where to find the value.
    pub description: String,
    /// True if no event can be received without it.
    pub is_required: bool,
}

/// Returns the values that endpoints of a toolkit can have, by name. Fails if the toolkit does not
/// exist or has no webhook trigger.
pub fn setup_fields(app: &App, toolkit: &str) -> Result<BTreeMap<String, SetupField>> {
    setup_fields_of(&*app.catalog.release(toolkit, LATEST)?)
}

/// Returns the secrets in the configurations of the webhook triggers.
pub(super) fn setup_fields_of(release: &Release) -> Result<BTreeMap<String, SetupField>> {
    let triggers = release.triggers.iter();
    let schemas = triggers
        .filter(|trigger| trigger.kind.receives_webhooks())
        .map(|trigger| trigger.config.text())
        .collect::<Result<Vec<_>>>()?;
    if schemas.is_empty() {
        return Err(errors::no_webhook_trigger(&release.slug));
    }
    let mut fields = BTreeMap::new();
    for schema in schemas {
        let schema: Value = serde_json::from_str(schema.get()).unwrap_or_default();
        for (name, field) in secrets_of(&schema) {
            fields.entry(name).or_insert(field);
        }
    }
    Ok(fields)
}

fn secrets_of(schema: &Value) -> Vec<(String, SetupField)> {
    let required = schema["required"].as_array().into_iter().flatten();
    let required: BTreeSet<_> = required.filter_map(Value::as_str).collect();
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties
        .filter(|(_, property)| property["writeOnly"] == true)
        .map(|(name, property)| {
            let title = property["title"].as_str();
            let field = SetupField {
                title: title.map_or_else(|| name.replace('_', " "), str::to_owned),
                description: property["description"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
                is_required: required.contains(name.as_str()),
            };
            (name.clone(), field)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn setup_fields_are_the_secrets_of_schemas() {
        let schema = json!({
            "properties": {
                "signing_secret": { "type": "string", "writeOnly": true, "description": "At the app." },
                "token": { "type": "string", "writeOnly": true, "title": "Token" },
                "channel": { "type": "string" },
            },
            "required": ["signing_secret", "channel"],
        });
        let field = |title: &str, description: &str, is_required| SetupField {
            title: title.to_owned(),
            description: description.to_owned(),
            is_required,
        };
        let expected = [
            (
                "signing_secret".to_owned(),
                field("signing secret", "At the app.", true),
            ),
            ("token".to_owned(), field("Token", "", false)),
        ];
        assert_eq!(secrets_of(&schema), expected);
        assert_eq!(secrets_of(&json!(true)), []);
    }
}
