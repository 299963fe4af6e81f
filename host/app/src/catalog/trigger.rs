//! Trigger types: the kinds of events that toolkits report, per version.

use std::{collections::BTreeSet, sync::Arc};

use manifest::{Subscribing, TriggerKind};
use sandbox::{Limits, Policy};
use serde_json::value::RawValue;

use super::{
    Release, Schema, SchemaFile, Snapshot, Toolkit, VersionSelector, errors,
    search::{listed_release, slug_matches},
};
use crate::{Result, core::truncate};

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
            description: trigger.description,
            kind: trigger.kind,
            config: Schema::new(schema_file.add(trigger.config), schema_file.validators()),
            payload: Schema::new(schema_file.add(trigger.payload), schema_file.validators()),
            no_auth,
            policy,
            limits,
            subscription: trigger.subscription,
        }
    }
}

/// Returns the names of the secret properties of a configuration schema. Most schemas have none,
/// and are not parsed.
fn write_only_names(schema: &RawValue) -> BTreeSet<String> {
    let has_any = schema.get().contains("writeOnly");
    let schema = has_any.then(|| serde_json::from_str(schema.get()).ok());
    schema
        .flatten()
        .map(|schema| manifest::write_only_names(&schema))
        .unwrap_or_default()
}

impl Release {
    /// Finds a trigger type by its slug, in upper or lower case.
    #[must_use]
    pub fn trigger(&self, slug: &str) -> Option<&Arc<TriggerType>> {
        self.triggers
            .iter()
            .find(|trigger| trigger.slug.eq_ignore_ascii_case(slug))
    }
}

impl Snapshot {
    /// Returns the toolkit that has a trigger type in any of its versions.
    #[must_use]
    pub fn toolkit_of_trigger(&self, slug: &str) -> Option<&Arc<Toolkit>> {
        self.toolkits
            .get(self.triggers.get(slug.to_ascii_uppercase().as_str())?)
    }

    /// Finds a trigger type in the selected version of its toolkit.
    ///
    /// # Errors
    /// Returns an error if the selected version has no such trigger type.
    pub fn trigger(&self, slug: &str, versions: &VersionSelector) -> Result<ResolvedTrigger> {
        let toolkit = self.toolkit_of_trigger(slug);
        let version = toolkit.map_or(&*versions.default, |toolkit| {
            versions.for_toolkit(&toolkit.slug)
        });
        let found = toolkit.and_then(|toolkit| {
            let release = listed_release(toolkit, version)?;
            Some(ResolvedTrigger {
                release: release.clone(),
                trigger: release.trigger(slug)?.clone(),
            })
        });
        found.ok_or_else(|| errors::trigger_type_not_found(truncate(slug), truncate(version)))
    }

    /// Returns the trigger types of the given toolkits, or of all toolkits that are not completely
    /// deprecated. The newest toolkit is first.
    #[must_use]
    pub fn triggers(
        &self,
        toolkits: &[String],
        versions: &VersionSelector,
    ) -> Vec<ResolvedTrigger> {
        let listed = self.newest_first().into_iter().filter(|toolkit| {
            slug_matches(toolkits, &toolkit.slug)
                && !(toolkits.is_empty() && toolkit.is_deprecated())
        });
        let releases = listed
            .filter_map(|toolkit| listed_release(toolkit, versions.for_toolkit(&toolkit.slug)));
        let each = releases.flat_map(|release| {
            release.triggers.iter().map(|trigger| ResolvedTrigger {
                release: release.clone(),
                trigger: trigger.clone(),
            })
        });
        each.collect()
    }
}
