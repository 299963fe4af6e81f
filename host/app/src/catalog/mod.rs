//! The catalog: toolkits, their dated versions, and their tools.
//!
//! The catalog is kept in memory and replaced as a whole, so that a lookup takes no lock and a
//! reader never sees half of a publication. It is read from the store once, at start. After that it
//! changes only through [`publish`] and [`deprecate`], and through `refresh`, which reads the
//! publications of other servers. Each change is committed to the store before it becomes visible
//! in memory.

mod changes;
mod check;
mod compressed;
pub mod errors;
mod metered;
mod publish;
mod schema_file;
mod scopes;
mod search;
mod signature;
mod tool_index;
mod trigger;
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
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json, value::RawValue};
use store::Time;
use tokio::sync::watch;

pub use changes::{ChangelogEntry, changelog, changes};
pub use check::{LARGE_CHECK_DEADLINE, MAX_SCHEMA_BYTES, MAX_STEPS, MAX_STEPS_PER_BYTE, Schema};
pub(crate) use check::{problems_with, schema_problem_of};
pub use manifest::{AuthMode, AuthScheme, Field, TriggerKind};
pub(crate) use publish::{COLLECTION, PUBLICATIONS_COLLECTION, blob, refresh};
pub use publish::{
    MAX_COMPONENT_BYTES, Published, Terms, deprecate, identity, load, manifest_of, publish, restore,
};
pub use schema_file::SchemaFile;
pub use scopes::{RecommendedScopes, ScopeRequest, find_tools, recommend_scopes, scheme};
pub use search::{ToolFilter, ToolkitFilter, ToolkitKind, ToolkitOrder, VersionSelector};
pub use signature::TrustedKeys;
pub use tool_index::{Match, RankedTool, SearchField, ToolIndex};
pub use trigger::{ResolvedTrigger, TriggerType};
pub use usage::{Counts, usage};
pub(crate) use usage::{USAGE_COLLECTION, Usage};
pub use validators::{MAX_VALIDATOR_BYTES, MAX_VALIDATORS};
pub use versions::{BASE, LATEST};
use versions::{Unresolved, resolve};

use crate::{Result, core::truncate};

/// The schema keyword that marks an argument as a file.
pub(crate) const FILE_KEYWORD: &str = "file_uploadable";

/// The catalog of the installation.
pub struct Catalog {
    current: ArcSwap<Snapshot>,
    changes: watch::Sender<()>,
    /// The time of the newest change known to this server, in epoch milliseconds.
    newest: AtomicI64,
    /// The revision of the record that every publication changes, as of the last publication of
    /// this server.
    fence: AtomicI64,
    /// A lock that is held while a publication is committed and made visible, so that changes
    /// become visible in the order of their commits.
    changing: tokio::sync::Mutex<SchemaFile>,
    changelogs: changes::Changelogs,
    /// A permit that is held while the schemas of a toolkit are compiled for validation.
    compiling: Arc<tokio::sync::Semaphore>,
    index: tool_index::BuiltIndex,
}

/// A snapshot of the catalog.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    toolkits: BTreeMap<Arc<str>, Arc<Toolkit>>,
    /// The toolkit of each tool, for tools of all versions.
    tools: HashMap<Arc<str>, Arc<str>>,
    /// The toolkit of each trigger type, for those of all versions.
    triggers: HashMap<Arc<str>, Arc<str>>,
}

/// A toolkit and all its versions.
#[derive(Debug, Clone)]
pub struct Toolkit {
    /// The slug, in lower case.
    pub slug: Arc<str>,
    /// The releases by version, which sorts by time. Never empty.
    pub releases: BTreeMap<String, Arc<Release>>,
}

/// One version of a toolkit.
#[derive(Debug, Clone)]
pub struct Release {
    /// The slug of the toolkit.
    pub slug: Arc<str>,
    /// The display name.
    pub name: String,
    /// A description of one or two sentences.
    pub description: String,
    /// The logo, as an SVG document or a `data:` URL. Empty if the toolkit has none.
    pub logo: String,
    /// The categories, as lower-case words.
    pub categories: Vec<String>,
    /// The dated version.
    pub version: Version,
    /// The auth schemes by which accounts can be connected.
    pub auth: Vec<AuthScheme>,
    /// The hosts that the toolkit may reach.
    pub egress: Vec<EgressRule>,
    /// The tools, in the order of the manifest.
    pub tools: Vec<Arc<Tool>>,
    tool_positions: HashMap<Arc<str>, usize>,
    /// The trigger types, in the order of the manifest.
    pub triggers: Vec<Arc<TriggerType>>,
    /// The SHA-256 digest of the component.
    pub digest: Digest,
    /// The size of the component, in bytes.
    pub size: u64,
    /// The id of the key that signed the component, if signatures were required.
    pub signed_by: Option<String>,
    /// The publication time.
    pub published_at: Time,
    /// The time of the deprecation. A deprecated version is used only if it is named exactly.
    pub deprecated_at: Option<Time>,
}

/// One tool of one version.
#[derive(Debug)]
pub struct Tool {
    /// The slug, in upper case.
    pub slug: Arc<str>,
    /// The display name.
    pub name: String,
    /// The description by which an agent chooses the tool.
    pub description: String,
    /// The names of the arguments.
    pub parameters: Box<[Box<str>]>,
    /// The schema of the arguments.
    pub input: Schema,
    /// The schema of the data of a successful result.
    pub output: Schema,
    /// The hints about the effects of the tool.
    pub hints: Hints,
    /// Free labels.
    pub tags: Vec<String>,
    /// Other words for what the tool does, by which a search finds it.
    pub synonyms: Vec<String>,
    /// The OAuth scopes of the provider that the tool needs, all of them.
    pub scopes: Vec<String>,
    /// True if the tool runs without an account.
    pub no_auth: bool,
    /// The network policy of the tool's requests.
    pub policy: Arc<Policy>,
    /// The resource limits of one call.
    pub limits: Limits,
    /// True if the arguments may name files.
    pub takes_files: bool,
}

/// A tool and its release.
#[derive(Debug, Clone)]
pub struct ResolvedTool {
    /// The release.
    pub release: Arc<Release>,
    /// The tool.
    pub tool: Arc<Tool>,
}

impl Catalog {
    fn new(snapshot: Snapshot, newest: i64, schema_file: SchemaFile) -> Self {
        Self {
            current: ArcSwap::from_pointee(snapshot),
            changes: watch::Sender::new(()),
            newest: AtomicI64::new(newest),
            fence: AtomicI64::new(publish::UNKNOWN_FENCE),
            changing: tokio::sync::Mutex::new(schema_file),
            changelogs: changes::Changelogs::default(),
            compiling: Arc::new(tokio::sync::Semaphore::new(1)),
            index: tool_index::BuiltIndex::default(),
        }
    }

    /// Returns the current snapshot.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Returns a receiver that sees each later change of the catalog, by this server or another one.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Returns the current snapshot, or the part of it that existed at a time.
    #[must_use]
    pub fn snapshot_at(&self, as_of: Option<Time>) -> Arc<Snapshot> {
        let snapshot = self.snapshot();
        match as_of {
            Some(as_of) if as_of < snapshot.as_of() => Arc::new(snapshot.at(as_of)),
            _ => snapshot,
        }
    }

    /// Finds a tool in a version of its toolkit.
    ///
    /// # Errors
    /// Returns an error if the selected version has no such tool, or if every version is
    /// deprecated.
    pub fn tool(&self, slug: &str, version: &str) -> Result<ResolvedTool> {
        self.current.load().tool(slug, version)
    }

    /// Finds a version of a toolkit.
    ///
    /// # Errors
    /// Returns an error if the toolkit or the version does not exist.
    pub fn release(&self, slug: &str, version: &str) -> Result<Arc<Release>> {
        self.current.load().release(slug, version).cloned()
    }
}

impl Snapshot {
    /// Finds a tool in a version of its toolkit.
    ///
    /// # Errors
    /// Returns an error if the selected version has no such tool, or if every version is
    /// deprecated.
    pub fn tool(&self, slug: &str, version: &str) -> Result<ResolvedTool> {
        let unknown = || {
            let in_version = match version {
                "" => String::new(),
                version => format!(" in version {}", truncate(version)),
            };
            errors::tool_not_found(truncate(slug), &in_version)
        };
        let toolkit = match self.tools.get(slug) {
            Some(toolkit) => toolkit,
            None => self
                .tools
                .get(slug.to_ascii_uppercase().as_str())
                .ok_or_else(unknown)?,
        };
        let toolkit = self.toolkits.get(toolkit).ok_or_else(unknown)?;
        let release = toolkit.release(version).map_err(|cause| match cause {
            Unresolved::Unknown => unknown(),
            Unresolved::Deprecated => errors::tool_deprecated(truncate(slug)),
        })?;
        let tool = release.tool(slug).ok_or_else(unknown)?;
        Ok(ResolvedTool {
            release: release.clone(),
            tool: tool.clone(),
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

    /// Returns the releases of a toolkit, newest version first.
    ///
    /// # Errors
    /// Returns an error if the toolkit does not exist.
    pub fn releases_of(&self, slug: &str) -> Result<Vec<&Arc<Release>>> {
        let toolkit = self
            .toolkit(slug)
            .ok_or_else(|| errors::toolkit_not_found(truncate(slug)))?;
        Ok(toolkit.releases.values().rev().collect())
    }

    /// Finds a tool in the latest version of its toolkit, or in the latest one of those that were
    /// published up to a time.
    ///
    /// # Errors
    /// Returns an error if there is no such version, or if it has no such tool.
    pub fn tool_as_of(&self, slug: &str, as_of: Option<Time>) -> Result<ResolvedTool> {
        let Some(as_of) = as_of else {
            return self.tool(slug, LATEST);
        };
        let toolkit = self.toolkit_of(slug);
        let release = toolkit.and_then(|toolkit| toolkit.current_as_of(Some(as_of)));
        let release = release.ok_or_else(|| errors::tool_not_found(truncate(slug), ""))?;
        self.tool(slug, release.version.as_str())
    }

    /// Finds a version of a toolkit.
    ///
    /// # Errors
    /// Returns an error if the toolkit or the version does not exist.
    pub fn release(&self, slug: &str, version: &str) -> Result<&Arc<Release>> {
        let toolkit = self
            .toolkit(slug)
            .ok_or_else(|| errors::toolkit_not_found(truncate(slug)))?;
        match toolkit.release(version) {
            Ok(release) => Ok(release),
            // A toolkit remains readable even if all its versions are deprecated.
            Err(Unresolved::Deprecated) => Ok(toolkit.newest()),
            Err(Unresolved::Unknown) => {
                Err(errors::version_not_found(truncate(slug), truncate(version)))
            }
        }
    }

    /// Returns the toolkit that has a tool in any of its versions.
    #[must_use]
    pub fn toolkit_of(&self, tool: &str) -> Option<&Arc<Toolkit>> {
        self.toolkits
            .get(self.tools.get(tool.to_ascii_uppercase().as_str())?)
    }

    /// Inserts a release, and replaces an existing one of the same version.
    fn put(&mut self, release: Arc<Release>) {
        let slug = &release.slug;
        let fresh = || Toolkit {
            slug: slug.clone(),
            releases: BTreeMap::new(),
        };
        let mut toolkit = self
            .toolkits
            .get(slug)
            .map_or_else(fresh, |toolkit| Toolkit::clone(toolkit));
        for tool in &release.tools {
            self.tools.insert(tool.slug.clone(), slug.clone());
        }
        for trigger in &release.triggers {
            self.triggers.insert(trigger.slug.clone(), slug.clone());
        }
        toolkit
            .releases
            .insert(release.version.as_str().to_owned(), release.clone());
        self.toolkits.insert(slug.clone(), Arc::new(toolkit));
    }
}

impl Toolkit {
    fn release(&self, version: &str) -> std::result::Result<&Arc<Release>, Unresolved> {
        resolve(&self.releases, version, |release| {
            release.deprecated_at.is_some()
        })
    }

    /// Returns the release with the greatest version, deprecated or not.
    #[must_use]
    pub fn newest(&self) -> &Arc<Release> {
        self.releases
            .values()
            .next_back()
            .expect("a toolkit is made by its first release")
    }

    /// Returns the release used when no version is named, or the newest one if all are deprecated.
    #[must_use]
    pub fn current(&self) -> &Arc<Release> {
        self.release(LATEST).unwrap_or_else(|_| self.newest())
    }

    /// Returns the latest release that is not deprecated, of all or of those that were published up
    /// to a time.
    #[must_use]
    pub fn current_as_of(&self, as_of: Option<Time>) -> Option<&Arc<Release>> {
        let is_known = |release: &&Arc<Release>| {
            release.deprecated_at.is_none()
                && as_of.is_none_or(|as_of| release.published_at <= as_of)
        };
        self.releases.values().rev().find(is_known)
    }

    /// Returns true if every version is deprecated.
    #[must_use]
    pub fn is_deprecated(&self) -> bool {
        self.releases
            .values()
            .all(|release| release.deprecated_at.is_some())
    }

    /// Returns the publication time of the first version.
    #[must_use]
    pub fn created_at(&self) -> Time {
        self.releases
            .values()
            .map(|release| release.published_at)
            .min()
            .unwrap_or_default()
    }

    /// Returns the publication time of the last version.
    #[must_use]
    pub fn updated_at(&self) -> Time {
        self.releases
            .values()
            .map(|release| release.published_at)
            .max()
            .unwrap_or_default()
    }

    /// Returns all versions, newest first.
    #[must_use]
    pub fn versions(&self) -> Vec<&str> {
        self.releases.keys().rev().map(String::as_str).collect()
    }
}

impl Release {
    /// Creates a release from a manifest. The schemas of its tools are written to the schema file.
    pub(crate) fn new(
        manifest: Manifest<&RawValue>,
        digest: Digest,
        size: u64,
        published_at: Time,
        schema_file: &mut SchemaFile,
    ) -> Result<Self> {
        let limits = Limits::default().with_requested(manifest.limits);
        let no_auth = manifest.no_auth();
        let shared = [true, false].map(|read_only| {
            Arc::new(Policy {
                egress: manifest.egress.clone(),
                read_only,
                ..Policy::default()
            })
        });
        let tool = |tool| Arc::new(Tool::new(tool, &shared, no_auth, limits, schema_file));
        let tools: Vec<_> = manifest.tools.into_iter().map(tool).collect();
        let trigger = |trigger| {
            let trigger = TriggerType::new(trigger, &shared[1], no_auth, limits, schema_file);
            Arc::new(trigger)
        };
        let triggers = manifest.triggers.into_iter().map(trigger).collect();
        schema_file.write()?;
        let tool_positions = tools
            .iter()
            .enumerate()
            .map(|(position, tool)| (tool.slug.clone(), position))
            .collect();
        Ok(Self {
            slug: manifest.slug.into(),
            name: manifest.name,
            description: manifest.description,
            logo: manifest
                .logo
                .as_deref()
                .map(manifest::sanitized_logo)
                .unwrap_or_default(),
            categories: manifest.categories,
            version: manifest.version,
            auth: manifest.auth,
            egress: manifest.egress,
            tools,
            tool_positions,
            triggers,
            digest,
            size,
            signed_by: None,
            published_at,
            deprecated_at: None,
        })
    }

    /// Finds a tool by its slug, in upper or lower case.
    #[must_use]
    pub fn tool(&self, slug: &str) -> Option<&Arc<Tool>> {
        let position = self
            .tool_positions
            .get(slug)
            .or_else(|| self.tool_positions.get(slug.to_ascii_uppercase().as_str()))?;
        self.tools.get(*position)
    }

    /// Returns true if every tool runs without an account.
    #[must_use]
    pub fn no_auth(&self) -> bool {
        self.auth
            .iter()
            .all(|scheme| scheme.mode == AuthMode::NoAuth)
    }

    /// Finds an auth scheme by its mode.
    #[must_use]
    pub fn scheme(&self, mode: AuthMode) -> Option<&AuthScheme> {
        self.auth.iter().find(|scheme| scheme.mode == mode)
    }
}

/// Returns the names of the arguments that a schema declares.
fn parameters(input: &RawValue) -> Box<[Box<str>]> {
    #[derive(Deserialize)]
    struct Input {
        properties: Option<BTreeMap<Box<str>, IgnoredAny>>,
    }
    let input: Option<Input> = serde_json::from_str(input.get()).ok();
    let properties = input.and_then(|input| input.properties);
    properties.unwrap_or_default().into_keys().collect()
}

impl Tool {
    /// Creates a tool. `shared` holds the policies of tools without their own egress rules: the
    /// first for read-only tools, the second for all others.
    fn new(
        tool: manifest::Tool<&RawValue>,
        shared: &[Arc<Policy>; 2],
        no_auth: bool,
        limits: Limits,
        schema_file: &mut SchemaFile,
    ) -> Self {
        let output = schema_file.add(tool.output);
        let read_only = tool.hints.read_only;
        let policy = match tool.egress {
            Some(egress) => Arc::new(Policy {
                egress,
                read_only,
                ..Policy::default()
            }),
            None => shared[usize::from(!read_only)].clone(),
        };
        Self {
            slug: tool.slug.to_ascii_uppercase().into(),
            name: tool.name,
            description: tool.description,
            takes_files: tool.input.get().contains(FILE_KEYWORD),
            parameters: parameters(tool.input),
            input: Schema::new(schema_file.add(tool.input), schema_file.validators()),
            output: if tool.loose_output {
                Schema::loose(output, schema_file.validators())
            } else {
                Schema::new(output, schema_file.validators())
            },
            hints: tool.hints,
            tags: tool.tags,
            synonyms: tool.synonyms,
            scopes: tool.scopes,
            no_auth: tool.no_auth || no_auth,
            policy,
            limits,
        }
    }

    /// Returns the schema of a complete result: `data` as the tool declares it, and the members
    /// that every result has.
    ///
    /// Definitions move to the top level, where the references inside `data` look for them.
    ///
    /// # Errors
    /// Returns an error if [`Schema::text`] does.
    pub fn response_schema(&self) -> Result<Value> {
        let mut data: Value = serde_json::from_str(self.output.text()?.get()).unwrap_or_default();
        let definitions: Vec<_> = ["$defs", "definitions"]
            .into_iter()
            .filter_map(|name| Some((name, data.as_object_mut()?.shift_remove(name)?)))
            .collect();
        if data["type"] != "object" {
            // Clients expect an object, so other results are wrapped in one, as `tools` does for
            // results.
            data =
                json!({"type": "object", "properties": {"result": data}, "required": ["result"]});
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
        definitions
            .into_iter()
            .for_each(|(name, definition)| whole[name] = definition);
        Ok(whole)
    }

    /// Returns true if the tool is tagged as important, that is, listed first.
    #[must_use]
    pub fn is_important(&self) -> bool {
        self.tags
            .iter()
            .any(|tag| tag.eq_ignore_ascii_case("important"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(output: Value) -> Value {
        let tool =
            json!({"slug": "A_B", "name": "b", "description": "", "input": {}, "output": output});
        let mut schema_file = SchemaFile::create_in(&tempfile::env::temp_dir()).unwrap();
        let text = tool.to_string();
        let tool = serde_json::from_str(&text).unwrap();
        let tool = Tool::new(
            tool,
            &<[Arc<Policy>; 2]>::default(),
            true,
            Limits::default(),
            &mut schema_file,
        );
        schema_file.write().unwrap();
        tool.response_schema().unwrap()
    }

    #[test]
    fn definitions_stand_where_references_look_for_them() {
        let whole = answers(
            json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": true}}),
        );
        assert_eq!(whole["$defs"], json!({"X": true}));
        assert_eq!(
            whole["properties"]["data"],
            json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}})
        );
    }

    #[test]
    fn non_object_output_is_wrapped_in_result() {
        let whole = answers(json!({"type": "array"}));
        assert_eq!(
            whole["properties"]["data"]["properties"]["result"],
            json!({"type": "array"})
        );
    }
}
