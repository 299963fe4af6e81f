//! What can be called: toolkits, their dated versions, their tools.
//!
//! The catalogue lives in memory and is swapped whole, so that a lookup takes no lock and a reader never sees half a
//! publication. It is read from the store once, at start; after that the only way it changes is [`publish`] and
//! [`deprecate`], which commit first and swap then.

mod changes;
mod check;
mod metered;
mod packed;
mod publish;
mod scopes;
mod search;
mod signature;
mod texts;
mod usage;
mod validators;
mod versions;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, atomic::AtomicI64},
};

use arc_swap::ArcSwap;
use manifest::{EgressRule, Hints, Manifest, Version};
use sandbox::{Digest, Limits, Policy};
use serde_json::{Value, json, value::RawValue};
use store::Time;

pub use changes::{Entry, changelog};
pub use check::{MAX_SCHEMA_BYTES, MAX_STEPS, MAX_STEPS_PER_BYTE, Schema};
pub use manifest::{AuthMode, AuthScheme, Field};
pub(crate) use publish::{COLLECTION, blob, refresh};
pub use publish::{COMPONENT, Published, Terms, deprecate, identity, load, manifest_of, publish};
pub use scopes::{Recommended, Wanted, recommended, scheme, tools_of};
pub use search::{ToolFilter, ToolkitFilter, ToolkitKind, ToolkitOrder, VersionWish};
pub use signature::TrustedKeys;
pub use texts::Texts;
pub use usage::{Counts, usage};
pub(crate) use usage::{USAGE, Usage};
pub use validators::{
    LARGE_CHECK_DEADLINE, MAX_INLINE_CHECK_BYTES, MAX_LARGE_CHECKS, MAX_VALIDATOR_BYTES, MAX_VALIDATORS,
};
pub use versions::{BASE, LATEST};
use versions::{Unresolved, resolve};

use crate::{Error, Result, files};

/// The catalogue.
pub struct Catalog {
    current: ArcSwap<Index>,
    /// When the newest change known here was made, in milliseconds since 1970.
    newest: AtomicI64,
    /// Held while a publication commits and swaps, so that swaps happen in the order of commits.
    changing: tokio::sync::Mutex<Texts>,
    changelogs: changes::Changelogs,
    /// Held while the schemas of a toolkit are compiled to see that they can be.
    compiling: Arc<tokio::sync::Semaphore>,
}

/// One state of the catalogue.
#[derive(Debug, Clone, Default)]
pub struct Index {
    toolkits: BTreeMap<Arc<str>, Arc<Toolkit>>,
    /// Which toolkit has a tool in any of its versions.
    tools: HashMap<Arc<str>, Arc<str>>,
}

/// A toolkit with all its versions.
#[derive(Debug, Clone)]
pub struct Toolkit {
    /// Lower case.
    pub slug: Arc<str>,
    /// By version, which sorts by time. Never empty.
    pub releases: BTreeMap<String, Arc<Release>>,
}

/// One version of a toolkit.
#[derive(Debug, Clone)]
pub struct Release {
    /// The toolkit.
    pub slug: Arc<str>,
    /// For people.
    pub name: String,
    /// One or two sentences.
    pub description: String,
    /// An SVG document or `data:` URL; empty when there is none.
    pub logo: String,
    /// Lower-case words.
    pub categories: Vec<String>,
    /// The dated version.
    pub version: Version,
    /// Ways to connect an account.
    pub auth: Vec<AuthScheme>,
    /// Hosts it may reach.
    pub egress: Vec<EgressRule>,
    /// In the order of the manifest.
    pub tools: Vec<Arc<Tool>>,
    places: HashMap<Arc<str>, usize>,
    /// How many kinds of events it reports.
    pub triggers: usize,
    /// SHA-256 of the component.
    pub digest: Digest,
    /// Bytes of the component.
    pub size: u64,
    /// Id of the key that signed it, where signatures were required.
    pub signed_by: Option<String>,
    /// When it was published.
    pub published_at: Time,
    /// Since when it is left to those who name it exactly.
    pub deprecated_at: Option<Time>,
}

/// One tool of one version.
#[derive(Debug)]
pub struct Tool {
    /// Upper case.
    pub slug: Arc<str>,
    /// For people.
    pub name: String,
    /// What an agent reads to choose it.
    pub description: String,
    /// Of its arguments.
    pub input: Schema,
    /// Of the data of a success.
    pub output: Schema,
    /// What it does to the outside world.
    pub hints: Hints,
    /// Free labels.
    pub tags: Vec<String>,
    /// Of the external application, all needed.
    pub scopes: Vec<String>,
    /// Runs without an account.
    pub no_auth: bool,
    /// Where its requests may go.
    pub policy: Arc<Policy>,
    /// What one call may use.
    pub limits: Limits,
    /// Whether its arguments may name files.
    pub takes_files: bool,
}

/// A tool and the version it belongs to.
#[derive(Debug, Clone)]
pub struct Found {
    /// The version.
    pub release: Arc<Release>,
    /// The tool.
    pub tool: Arc<Tool>,
}

impl Catalog {
    fn new(index: Index, newest: i64, texts: Texts) -> Self {
        Self {
            current: ArcSwap::from_pointee(index),
            newest: AtomicI64::new(newest),
            changing: tokio::sync::Mutex::new(texts),
            changelogs: changes::Changelogs::default(),
            compiling: Arc::new(tokio::sync::Semaphore::new(1)),
        }
    }

    /// The present state, to look at at leisure.
    #[must_use]
    pub fn index(&self) -> Arc<Index> {
        self.current.load_full()
    }

    /// The present state, or what of it was there at a moment.
    #[must_use]
    pub fn index_at(&self, moment: Option<Time>) -> Arc<Index> {
        let index = self.index();
        match moment {
            Some(moment) if moment < index.moment() => Arc::new(index.at(moment)),
            _ => index,
        }
    }

    /// Finds a tool in a version of its toolkit.
    ///
    /// # Errors
    /// When there is no such tool in the version meant.
    pub fn tool(&self, slug: &str, version: &str) -> Result<Found> {
        self.current.load().tool(slug, version)
    }

    /// Finds a version of a toolkit.
    ///
    /// # Errors
    /// When there is no such toolkit or version.
    pub fn release(&self, slug: &str, version: &str) -> Result<Arc<Release>> {
        self.current.load().release(slug, version).cloned()
    }
}

impl Index {
    /// Finds a tool in a version of its toolkit.
    ///
    /// # Errors
    /// When there is no such tool in the version meant.
    pub fn tool(&self, slug: &str, version: &str) -> Result<Found> {
        let unknown = || Error::ToolNotFound { slug: cut(slug), version: cut(version) };
        let toolkit = match self.tools.get(slug) {
            Some(toolkit) => toolkit,
            None => self.tools.get(slug.to_ascii_uppercase().as_str()).ok_or_else(unknown)?,
        };
        let toolkit = self.toolkits.get(toolkit).ok_or_else(unknown)?;
        let release = toolkit.release(version).map_err(|cause| match cause {
            Unresolved::Unknown => unknown(),
            Unresolved::Deprecated => Error::ToolDeprecated(cut(slug)),
        })?;
        let tool = release.tool(slug).ok_or_else(unknown)?;
        Ok(Found { release: release.clone(), tool: tool.clone() })
    }

    /// Finds a toolkit by slug, in any case.
    #[must_use]
    pub fn toolkit(&self, slug: &str) -> Option<&Arc<Toolkit>> {
        self.toolkits.get(slug).or_else(|| self.toolkits.get(slug.to_ascii_lowercase().as_str()))
    }

    /// All toolkits, by slug.
    pub fn toolkits(&self) -> impl Iterator<Item = &Arc<Toolkit>> {
        self.toolkits.values()
    }

    /// Every version, by slug, newest first.
    pub fn releases(&self) -> impl Iterator<Item = &Arc<Release>> {
        self.toolkits.values().flat_map(|toolkit| toolkit.releases.values().rev())
    }

    /// Finds a version of a toolkit.
    ///
    /// # Errors
    /// When there is no such toolkit or version.
    pub fn release(&self, slug: &str, version: &str) -> Result<&Arc<Release>> {
        let toolkit = self.toolkit(slug).ok_or_else(|| Error::ToolkitNotFound(cut(slug)))?;
        match toolkit.release(version) {
            Ok(release) => Ok(release),
            // A toolkit can still be looked at when nothing of it should be started any more.
            Err(Unresolved::Deprecated) => Ok(toolkit.newest()),
            Err(Unresolved::Unknown) => Err(Error::VersionNotFound { slug: cut(slug), version: cut(version) }),
        }
    }

    /// Which toolkit has a tool, in any version.
    #[must_use]
    pub fn toolkit_of(&self, tool: &str) -> Option<&Arc<Toolkit>> {
        self.toolkits.get(self.tools.get(tool.to_ascii_uppercase().as_str())?)
    }

    /// Puts a release in, replacing the one of the same version.
    fn put(&mut self, release: Arc<Release>) {
        let slug = &release.slug;
        let fresh = || Toolkit { slug: slug.clone(), releases: BTreeMap::new() };
        let mut toolkit = self.toolkits.get(slug).map_or_else(fresh, |toolkit| Toolkit::clone(toolkit));
        for tool in &release.tools {
            self.tools.insert(tool.slug.clone(), slug.clone());
        }
        toolkit.releases.insert(release.version.as_str().to_owned(), release.clone());
        self.toolkits.insert(slug.clone(), Arc::new(toolkit));
    }
}

impl Toolkit {
    fn release(&self, version: &str) -> std::result::Result<&Arc<Release>, Unresolved> {
        resolve(&self.releases, version, |release| release.deprecated_at.is_some())
    }

    /// The greatest version, deprecated or not.
    #[must_use]
    pub fn newest(&self) -> &Arc<Release> {
        self.releases.values().next_back().expect("a toolkit is made by its first release")
    }

    /// The version that answers when none is named, or the newest when all are deprecated.
    #[must_use]
    pub fn current(&self) -> &Arc<Release> {
        self.release(LATEST).unwrap_or_else(|_| self.newest())
    }

    /// Whether every version is deprecated.
    #[must_use]
    pub fn is_deprecated(&self) -> bool {
        self.releases.values().all(|release| release.deprecated_at.is_some())
    }

    /// When its first version was published.
    #[must_use]
    pub fn created_at(&self) -> Time {
        self.releases.values().map(|release| release.published_at).min().unwrap_or_default()
    }

    /// When its last version was published.
    #[must_use]
    pub fn updated_at(&self) -> Time {
        self.releases.values().map(|release| release.published_at).max().unwrap_or_default()
    }

    /// All versions, newest first.
    #[must_use]
    pub fn versions(&self) -> Vec<&str> {
        self.releases.keys().rev().map(String::as_str).collect()
    }
}

impl Release {
    /// The schemas of its tools go into the file of texts.
    pub(crate) fn new(
        manifest: Manifest<&RawValue>,
        digest: Digest,
        size: u64,
        published_at: Time,
        texts: &mut Texts,
    ) -> Result<Self> {
        let limits = Limits::default().asked(manifest.limits);
        let unneeded = manifest.no_auth();
        let shared = [true, false].map(|read_only| Arc::new(Policy { egress: manifest.egress.clone(), read_only }));
        let tool = |tool| Arc::new(Tool::new(tool, &shared, unneeded, limits, texts));
        let tools: Vec<_> = manifest.tools.into_iter().map(tool).collect();
        texts.write()?;
        let places = tools.iter().enumerate().map(|(place, tool)| (tool.slug.clone(), place)).collect();
        Ok(Self {
            slug: manifest.slug.into(),
            name: manifest.name,
            description: manifest.description,
            logo: manifest.logo.as_deref().map(manifest::shown_logo).unwrap_or_default(),
            categories: manifest.categories,
            version: manifest.version,
            auth: manifest.auth,
            egress: manifest.egress,
            tools,
            places,
            triggers: manifest.triggers.len(),
            digest,
            size,
            signed_by: None,
            published_at,
            deprecated_at: None,
        })
    }

    /// Finds a tool by slug, in any case.
    #[must_use]
    pub fn tool(&self, slug: &str) -> Option<&Arc<Tool>> {
        let place = self.places.get(slug).or_else(|| self.places.get(slug.to_ascii_uppercase().as_str()))?;
        self.tools.get(*place)
    }

    /// Whether every tool runs without an account.
    #[must_use]
    pub fn no_auth(&self) -> bool {
        self.auth.iter().all(|scheme| scheme.mode == AuthMode::NoAuth)
    }

    /// Finds an auth scheme.
    #[must_use]
    pub fn scheme(&self, mode: AuthMode) -> Option<&AuthScheme> {
        self.auth.iter().find(|scheme| scheme.mode == mode)
    }
}

impl Tool {
    /// `shared` are the policies of tools without rules of their own: one that only reads, and one that does not.
    fn new(
        tool: manifest::Tool<&RawValue>,
        shared: &[Arc<Policy>; 2],
        unneeded: bool,
        limits: Limits,
        texts: &mut Texts,
    ) -> Self {
        let output = texts.add(tool.output);
        let read_only = tool.hints.read_only;
        let policy = match tool.egress {
            Some(egress) => Arc::new(Policy { egress, read_only }),
            None => shared[usize::from(!read_only)].clone(),
        };
        Self {
            slug: tool.slug.to_ascii_uppercase().into(),
            name: tool.name,
            description: tool.description,
            takes_files: files::takes(tool.input.get()),
            input: Schema::new(texts.add(tool.input), texts.validators()),
            output: if tool.loose_output {
                Schema::loose(output, texts.validators())
            } else {
                Schema::new(output, texts.validators())
            },
            hints: tool.hints,
            tags: tool.tags,
            scopes: tool.scopes,
            no_auth: tool.no_auth || unneeded,
            policy,
            limits,
        }
    }

    /// The schema of a whole answer: `data` as the tool declares it, and what every answer has beside it.
    ///
    /// Definitions move to the top, where the references inside `data` look for them.
    ///
    /// # Errors
    /// As [`Schema::text`].
    pub fn answer_schema(&self) -> Result<Value> {
        let mut data: Value = serde_json::from_str(self.output.text()?.get()).unwrap_or_default();
        let definitions: Vec<_> = ["$defs", "definitions"]
            .into_iter()
            .filter_map(|name| Some((name, data.as_object_mut()?.shift_remove(name)?)))
            .collect();
        if data["type"] != "object" {
            // Clients want an object: see how `tools` answers.
            data = json!({"type": "object", "properties": {"result": data}, "required": ["result"]});
        }
        let mut whole = json!({
            "type": "object",
            "title": "Answer",
            "properties": {
                "data": data,
                "error": {"type": ["string", "null"], "description": "Why the tool failed."},
                "successful": {"type": "boolean", "description": "Whether the tool succeeded."},
            },
            "required": ["data", "successful"],
        });
        definitions.into_iter().for_each(|(name, definition)| whole[name] = definition);
        Ok(whole)
    }

    /// Whether it is among the few that are shown first.
    #[must_use]
    pub fn is_important(&self) -> bool {
        self.tags.iter().any(|tag| tag.eq_ignore_ascii_case("important"))
    }
}

/// As much of a text from outside as a message needs.
fn cut(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(output: Value) -> Value {
        let tool = json!({"slug": "A_B", "name": "b", "description": "", "input": {}, "output": output});
        let mut texts = Texts::within(&tempfile::env::temp_dir()).unwrap();
        let text = tool.to_string();
        let tool = serde_json::from_str(&text).unwrap();
        let tool = Tool::new(tool, &<[Arc<Policy>; 2]>::default(), true, Limits::default(), &mut texts);
        texts.write().unwrap();
        tool.answer_schema().unwrap()
    }

    #[test]
    fn definitions_stand_where_references_look_for_them() {
        let whole =
            answers(json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": true}}));
        assert_eq!(whole["$defs"], json!({"X": true}));
        assert_eq!(whole["properties"]["data"], json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}}));
    }

    #[test]
    fn what_is_no_object_is_described_as_the_member_it_is_answered_as() {
        let whole = answers(json!({"type": "array"}));
        assert_eq!(whole["properties"]["data"]["properties"]["result"], json!({"type": "array"}));
    }
}
