//! Lookups and lists of trigger types.

use std::sync::Arc;

use super::{
    Release, ResolvedTrigger, Snapshot, Toolkit, TriggerType, VersionSelector, errors,
    search::{listed_release, slug_matches},
    versions::described_version,
};
use crate::{Result, core::shown_slug};

impl Release {
    /// Finds a trigger type by its slug, in upper or lower case.
    #[must_use]
    pub fn trigger(&self, slug: &str) -> Option<&Arc<TriggerType>> {
        let mut triggers = self.triggers.iter();
        triggers.find(|trigger| trigger.slug.eq_ignore_ascii_case(slug))
    }
}

impl Snapshot {
    /// Returns the toolkit that has a trigger type in any of its versions.
    #[must_use]
    pub fn toolkit_of_trigger(&self, slug: &str) -> Option<&Arc<Toolkit>> {
        self.toolkits
            .get(self.triggers.get(slug.to_ascii_uppercase().as_str())?)
    }

    /// Finds a trigger type in the selected version of its toolkit. Fails if the selected version
    /// lacks the trigger type.
    pub fn trigger(&self, slug: &str, versions: &VersionSelector) -> Result<ResolvedTrigger> {
        let toolkit = self.toolkit_of_trigger(slug);
        let version = toolkit.map_or(&*versions.default, |toolkit| {
            versions.for_toolkit(&toolkit.slug)
        });
        let trigger = toolkit.and_then(|toolkit| {
            let release = listed_release(toolkit, version)?;
            Some(ResolvedTrigger {
                release: release.clone(),
                trigger: release.trigger(slug)?.clone(),
            })
        });
        trigger.ok_or_else(|| {
            self.missing([slug], || {
                let similar = self.similar_trigger(slug);
                errors::trigger_type_not_found(
                    shown_slug(slug),
                    described_version(version),
                    &similar,
                )
            })
        })
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
