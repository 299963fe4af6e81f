//! Trigger types: the kinds of events that toolkits report, per version.

use std::{collections::BTreeSet, sync::Arc};

use manifest::{Subscribing, TriggerKind, joined_lines};
use sandbox::{Limits, Policy};
use serde_json::value::RawValue;

use super::{Release, Schema, SchemaFile};

/// A trigger type of one version.
#[derive(Debug)]
pub struct TriggerType {
    /// The slug, in upper case.
    pub slug: Arc<str>,
    /// The display name.
    pub name: String,
    /// A description of the event and its data.
    pub description: String,
    /// The delivery of the event: by polling or by webhook.
    pub kind: TriggerKind,
    /// The schema of the configuration of an instance.
    pub config: Schema,
    /// The schema of the data of one event.
    pub payload: Schema,
    /// True if instances need no account.
    pub no_auth: bool,
    /// The network policy of the trigger's requests.
    pub policy: Arc<Policy>,
    /// The resource limits of one call.
    pub limits: Limits,
    /// Ability to subscribe at the provider.
    pub subscription: Option<Subscribing>,
    /// OAuth scopes that the trigger needs.
    pub scopes: Vec<String>,
}

/// A trigger type and its release.
#[derive(Debug, Clone)]
pub struct ResolvedTrigger {
    /// The release.
    pub release: Arc<Release>,
    /// The trigger type.
    pub trigger: Arc<TriggerType>,
}

impl TriggerType {
    /// Creates a trigger type. `shared` is the policy of those without their own egress rules.
    pub(super) fn new(
        trigger: manifest::Trigger<&RawValue>,
        shared: &Arc<Policy>,
        no_auth: bool,
        limits: Limits,
        schema_file: &mut SchemaFile,
    ) -> Self {
        let write_only = write_only_names(trigger.config);
        let policy = if trigger.egress.is_none() && write_only.is_empty() {
            shared.clone()
        } else {
            Arc::new(Policy {
                egress: trigger.egress.unwrap_or_else(|| shared.egress.clone()),
                read_only: false,
                write_only,
                webhook_secret: None,
            })
        };
        Self {
            slug: trigger.slug.to_ascii_uppercase().into(),
            name: trigger.name,
            description: joined_lines(&trigger.description),
            kind: trigger.kind,
            config: Schema::new(schema_file.add(trigger.config), schema_file.validators()),
            payload: Schema::new(schema_file.add(trigger.payload), schema_file.validators()),
            no_auth,
            policy,
            limits,
            subscription: trigger.subscription,
            scopes: trigger.scopes,
        }
    }
}

/// Returns the names of the secret properties of a configuration schema. Most schemas lack such
/// properties, and are not parsed.
fn write_only_names(schema: &RawValue) -> BTreeSet<String> {
    let has_any = schema.get().contains("writeOnly");
    let schema = has_any.then(|| serde_json::from_str(schema.get()).ok());
    let names = schema.flatten();
    names.map_or_else(BTreeSet::new, |schema| manifest::write_only_names(&schema))
}
