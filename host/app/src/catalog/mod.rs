//! The catalog: toolkits, their dated versions, and their tools.
//!
//! The catalog is kept in memory and replaced as a whole, so that a lookup takes no lock and a
//! reader never sees half of a publication. It is read from the store once, at start. After that it
//! changes only through [`publish`] and [`set_deprecated`], and through `refresh`, which reads the
//! publications of other servers. Each change is committed to the store before it becomes visible
//! in memory.

mod budgeted;
mod changes;
mod check;
mod compressed;
mod described_names;
pub mod errors;
mod pending;
mod publish;
mod release;
mod schema;
mod schema_file;
mod scopes;
mod search;
mod signature;
mod snapshot;
mod tool_index;
mod trigger;
mod trigger_list;
mod usage;
mod validators;
mod versions;

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicI64},
};

use ahash::HashMap;
use arc_swap::ArcSwap;
use manifest::{EgressRule, Hints, Version};
use sandbox::{Digest, Limits, Policy};
use store::Time;
use tokio::sync::watch;

pub use changes::{ChangelogEntry, changelog, changes};
pub(crate) use check::{Accepted, accept_with, schema_problems_of};
pub use check::{MAX_SCHEMA_BYTES, MAX_STEPS, MAX_STEPS_PER_BYTE};
pub(crate) use described_names::{UnknownName, misspellings, undescribed_names};
pub use manifest::{AuthMode, AuthScheme, Field, TriggerKind};
pub(crate) use publish::{COLLECTION, PUBLICATIONS_COLLECTION, blob, refresh};
pub use publish::{
    MAX_COMPONENT_BYTES, Published, Terms, identity, load, manifest_of, publish, set_deprecated,
};
pub use schema::{LARGE_CHECK_DEADLINE, Schema};
pub use schema_file::SchemaFile;
pub use scopes::{RecommendedScopes, ScopeRequest, find_tools, recommend_scopes, scheme};
pub use search::{
    ToolFilter, ToolkitFilter, ToolkitKind, ToolkitOrder, VersionSelector, list_tools,
};
pub use signature::TrustedKeys;
pub use tool_index::{Match, RankedTool, SearchField, ToolIndex};
pub use trigger::{ResolvedTrigger, TriggerType};
pub use usage::{Counts, usage};
pub(crate) use usage::{USAGE_COLLECTION, Usage};
pub use validators::{MAX_VALIDATOR_BYTES, MAX_VALIDATORS};
pub use versions::{BASE, LATEST, is_version};

use crate::Result;

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
    /// A lock held while a publication is committed and made visible, so that changes become visible
    /// in the order of their commits.
    changing: tokio::sync::Mutex<SchemaFile>,
    changelogs: changes::Changelogs,
    /// The permit for compiling the schemas of a toolkit for validation.
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
    /// The toolkits that the start of this server is still publishing.
    pending: pending::Pending,
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
    /// The logo, as an SVG document or a `data:` URL. Empty if the toolkit does not have one.
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

    /// Finds a tool in a version of its toolkit. Fails if the selected version lacks the tool, or if
    /// every version is deprecated.
    pub fn tool(&self, slug: &str, version: &str) -> Result<ResolvedTool> {
        self.current.load().tool(slug, version)
    }

    /// Finds a trigger type in a version of its toolkit. Fails if the version lacks it.
    pub(crate) fn trigger(&self, slug: &str, version: &str) -> Result<ResolvedTrigger> {
        let versions = VersionSelector::all(version);
        self.current.load().trigger(slug, &versions)
    }

    /// Finds a version of a toolkit. Fails if the toolkit or the version does not exist.
    pub fn release(&self, slug: &str, version: &str) -> Result<Arc<Release>> {
        self.current.load().release(slug, version).cloned()
    }
}
