//! Lookups in a snapshot of the catalog and in a toolkit.

use std::{collections::BTreeMap, sync::Arc};

use ahash::HashMap;
use manifest::{did_you_mean, is_prefix, suggested};
use store::Time;

use super::{
    LATEST, Release, ResolvedTool, Snapshot, Toolkit, errors,
    versions::{Unresolved, described_version, resolve},
};
use crate::{Error, Result, core::shown_slug};

/// Maximum number of characters of a slug that are compared with others.
const MAX_COMPARED_CHARS: usize = 64;

impl Snapshot {
    /// Finds a tool in a version of its toolkit. Fails if the selected version lacks the tool, or if
    /// every version is deprecated.
    pub fn tool(&self, slug: &str, version: &str) -> Result<ResolvedTool> {
        self.resolve_tool(slug, version)
            .map_err(|cause| match cause {
                Unresolved::Unknown => self.unknown_tool(slug, version),
                Unresolved::Deprecated => errors::tool_deprecated(shown_slug(slug)),
            })
    }

    /// Finds a tool as [`tool`](Self::tool) does, where the caller needs no error.
    #[must_use]
    pub fn find_tool(&self, slug: &str, version: &str) -> Option<ResolvedTool> {
        self.resolve_tool(slug, version).ok()
    }

    fn resolve_tool(
        &self,
        slug: &str,
        version: &str,
    ) -> std::result::Result<ResolvedTool, Unresolved> {
        let toolkit = self
            .tools
            .get(slug)
            .or_else(|| self.tools.get(slug.to_ascii_uppercase().as_str()))
            .and_then(|toolkit| self.toolkits.get(toolkit));
        let release = toolkit.ok_or(Unresolved::Unknown)?.release(version)?;
        let tool = release.tool(slug).ok_or(Unresolved::Unknown)?;
        Ok(ResolvedTool {
            release: release.clone(),
            tool: tool.clone(),
        })
    }

    fn unknown_tool(&self, slug: &str, version: &str) -> Error {
        let in_version = match version {
            "" => String::new(),
            version => format!(" in {}", described_version(version)),
        };
        self.missing([slug], || {
            errors::tool_not_found(shown_slug(slug), &in_version, &self.similar_tool(slug))
        })
    }

    /// Returns the question whether another tool was meant; empty if no tool is similar, or if
    /// another version has the tool.
    #[must_use]
    pub fn similar_tool(&self, slug: &str) -> String {
        self.similar_slug(slug, &self.tools, |release| {
            release.tools.iter().map(|tool| &*tool.slug).collect()
        })
    }

    /// Variant of [`similar_tool`](Self::similar_tool) for trigger types.
    #[must_use]
    pub(super) fn similar_trigger(&self, slug: &str) -> String {
        self.similar_slug(slug, &self.triggers, |release| {
            let triggers = release.triggers.iter();
            triggers.map(|trigger| &*trigger.slug).collect()
        })
    }

    /// Variant of [`similar_tool`](Self::similar_tool) for toolkits.
    #[must_use]
    pub fn similar_toolkit(&self, slug: &str) -> String {
        did_you_mean(slug, self.toolkits.keys())
    }

    /// Returns the question whether another of all slugs was meant; empty if the slug is one of them. It is
    /// the slug of which the name lacks only the toolkit, or one of a single toolkit: the one whose slug
    /// the name starts with, or whose slug is most similar to the first word of the name. A name without
    /// separators, such as `githubCreateIssue`, is one word.
    fn similar_slug<'s>(
        &'s self,
        slug: &str,
        all: &'s HashMap<Arc<str>, Arc<str>>,
        slugs_of: impl FnOnce(&'s Release) -> Vec<&'s str>,
    ) -> String {
        if all.contains_key(slug.to_ascii_uppercase().as_str()) {
            return String::new();
        }
        let start: String = slug.chars().take(MAX_COMPARED_CHARS).collect();
        let name = start.to_ascii_lowercase().replace(['-', ' '], "_");
        let mut prefixes = name.rmatch_indices('_').map(|(end, _)| &name[..end]);
        let named = prefixes.find_map(|prefix| self.toolkits.get(prefix));
        let ending = format!("_{}", name.to_ascii_uppercase());
        if named.is_none()
            && let Some(complete) = all.keys().filter(|known| known.ends_with(&ending)).min()
        {
            return did_you_mean(&name, [complete]);
        }
        let toolkit = named.or_else(|| self.similar_first_word(&name));
        let release: Option<&'s Release> = toolkit.map(|toolkit| &**toolkit.current());
        did_you_mean(&name, release.map(slugs_of).unwrap_or_default())
    }

    /// Returns the toolkit whose slug is similar to the first word of a name, or is its start.
    fn similar_first_word(&self, name: &str) -> Option<&Arc<Toolkit>> {
        let word = name.split('_').next().unwrap_or_default();
        let similar = suggested(word, self.toolkits.keys());
        similar
            .and_then(|slug| self.toolkits.get(slug))
            .or_else(|| {
                let toolkits = self.toolkits.values();
                toolkits
                    .filter(|toolkit| is_prefix(&toolkit.slug, name))
                    .max_by_key(|toolkit| toolkit.slug.len())
            })
    }

    /// Returns the error for a toolkit that does not exist.
    #[must_use]
    pub fn unknown_toolkit(&self, slug: &str) -> Error {
        self.missing([slug], || {
            errors::toolkit_not_found(shown_slug(slug), &self.similar_toolkit(slug))
        })
    }

    /// Finds a toolkit by its slug, in upper or lower case.
    #[must_use]
    pub fn toolkit(&self, slug: &str) -> Option<&Arc<Toolkit>> {
        self.toolkits
            .get(slug)
            .or_else(|| self.toolkits.get(slug.to_ascii_lowercase().as_str()))
    }

    /// Iterates over all toolkits, by slug.
    pub fn toolkits(&self) -> impl Iterator<Item = &Arc<Toolkit>> {
        self.toolkits.values()
    }

    /// Iterates over all releases, by slug, newest version first.
    pub fn releases(&self) -> impl Iterator<Item = &Arc<Release>> {
        self.toolkits
            .values()
            .flat_map(|toolkit| toolkit.releases.values().rev())
    }

    /// Returns the releases of a toolkit, newest version first. Fails if the toolkit does not
    /// exist.
    pub fn releases_of(&self, slug: &str) -> Result<Vec<&Arc<Release>>> {
        let toolkit = self
            .toolkit(slug)
            .ok_or_else(|| self.unknown_toolkit(slug))?;
        Ok(toolkit.releases.values().rev().collect())
    }

    /// Finds a tool in the latest version of its toolkit, or in the latest one of those that were
    /// published up to a time. Fails if the version or the tool does not exist.
    pub fn tool_as_of(&self, slug: &str, as_of: Option<Time>) -> Result<ResolvedTool> {
        let Some(as_of) = as_of else {
            return self.tool(slug, LATEST);
        };
        let toolkit = self.toolkit_of(slug);
        let release = toolkit
            .and_then(|toolkit| toolkit.current_as_of(Some(as_of)))
            .ok_or_else(|| self.unknown_tool(slug, ""))?;
        self.tool(slug, release.version.as_str())
    }

    /// Finds a version of a toolkit. Fails if the toolkit or the version does not exist.
    pub fn release(&self, slug: &str, version: &str) -> Result<&Arc<Release>> {
        let toolkit = self
            .toolkit(slug)
            .ok_or_else(|| self.unknown_toolkit(slug))?;
        match toolkit.release(version) {
            Ok(release) => Ok(release),
            // A toolkit remains readable even if all its versions are deprecated.
            Err(Unresolved::Deprecated) => Ok(toolkit.newest()),
            Err(Unresolved::Unknown) => Err(self.missing([slug], || {
                errors::version_not_found(shown_slug(slug), described_version(version))
            })),
        }
    }

    /// Returns the toolkit that has a tool in any of its versions.
    #[must_use]
    pub fn toolkit_of(&self, tool: &str) -> Option<&Arc<Toolkit>> {
        self.toolkits
            .get(self.tools.get(tool.to_ascii_uppercase().as_str())?)
    }

    /// Inserts a release, and replaces an existing one of the same version.
    pub(super) fn put(&mut self, release: Arc<Release>) {
        let slug = &release.slug;
        let mut toolkit = match self.toolkits.get(slug) {
            Some(toolkit) => Toolkit::clone(toolkit),
            None => Toolkit {
                slug: slug.clone(),
                releases: BTreeMap::new(),
            },
        };
        for tool in &release.tools {
            self.tools.insert(tool.slug.clone(), slug.clone());
        }
        for trigger in &release.triggers {
            self.triggers.insert(trigger.slug.clone(), slug.clone());
        }
        self.pending.remove(slug);
        let version = release.version.as_str().to_owned();
        toolkit.releases.insert(version, release.clone());
        self.toolkits.insert(slug.clone(), Arc::new(toolkit));
    }
}

impl Toolkit {
    pub(super) fn release(&self, version: &str) -> std::result::Result<&Arc<Release>, Unresolved> {
        resolve(&self.releases, version, |release| {
            release.deprecated_at.is_some()
        })
    }

    /// Returns the release with the greatest version, deprecated or not.
    #[must_use]
    pub fn newest(&self) -> &Arc<Release> {
        let newest = self.releases.values().next_back();
        newest.expect("a toolkit is made by its first release")
    }

    /// Returns the release used when no version is named, or the newest one if all are deprecated.
    #[must_use]
    pub fn current(&self) -> &Arc<Release> {
        self.release(LATEST).unwrap_or_else(|_| self.newest())
    }

    /// Returns the latest release that is not deprecated, among all or among those that were published
    /// up to a time.
    #[must_use]
    pub fn current_as_of(&self, as_of: Option<Time>) -> Option<&Arc<Release>> {
        self.releases.values().rev().find(|release| {
            release.deprecated_at.is_none()
                && as_of.is_none_or(|as_of| release.published_at <= as_of)
        })
    }

    /// Returns true if every version is deprecated.
    #[must_use]
    pub fn is_deprecated(&self) -> bool {
        let mut releases = self.releases.values();
        releases.all(|release| release.deprecated_at.is_some())
    }

    /// Returns the publication time of the first version.
    #[must_use]
    pub fn created_at(&self) -> Time {
        self.published_at().min().unwrap_or_default()
    }

    /// Returns the publication time of the last version.
    #[must_use]
    pub fn updated_at(&self) -> Time {
        self.published_at().max().unwrap_or_default()
    }

    fn published_at(&self) -> impl Iterator<Item = Time> {
        self.releases.values().map(|release| release.published_at)
    }

    /// Returns all versions, newest first.
    #[must_use]
    pub fn versions(&self) -> Vec<&str> {
        self.releases.keys().rev().map(String::as_str).collect()
    }
}
