//! What a toolkit says about itself.
//!
//! The manifest travels in a custom section of the component ([`SECTION`]), so that listing toolkits never runs guest
//! code. It is data from outside: [`Manifest::from_json`] refuses what is not JSON of this shape, [`Manifest::problems`] lists
//! everything else that is wrong, all at once.

mod auth;
#[cfg(not(target_arch = "wasm32"))]
pub mod cases;
#[cfg(not(target_arch = "wasm32"))]
mod diff;
mod egress;
mod flow;
#[cfg(not(target_arch = "wasm32"))]
mod form;
#[cfg(not(target_arch = "wasm32"))]
mod path;
pub mod plan;
#[cfg(not(target_arch = "wasm32"))]
mod problems;
mod request;
mod section;
mod sign;
#[cfg(not(target_arch = "wasm32"))]
mod template;
mod trigger;
mod version;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use auth::{ACCESS_TOKEN, AuthMode, AuthScheme, Check, ClientCertificate, Field, FieldFormat, Placement};
#[cfg(not(target_arch = "wasm32"))]
pub use diff::{Change, Party, diff};
pub use egress::EgressRule;
pub use flow::{
    Algorithm, Assertion, Call, CallFormat, CallMethod, Callback, ClientAuth, Condition, Expiry, ExpiryKind,
    FLOW_VALUES, Identity, OAuth1, OAuth2, Pick, Step, TokenAnswer, TokenResponse,
};
#[cfg(not(target_arch = "wasm32"))]
pub use form::{FieldProblem, Filled};
#[cfg(not(target_arch = "wasm32"))]
pub use path::at;
#[cfg(not(target_arch = "wasm32"))]
pub use problems::{
    DEEPEST_SCHEMA, LARGEST_DESCRIPTION, LARGEST_MANIFEST, LARGEST_SCHEMA, MAX_PATTERNS_PER_SCHEMA, MAX_SCHEMA_CHAIN,
    MAX_SCHEMAS_PER_VALUE, MOST_TOOLS, SchemaCost, cleaned, host_problem, is_slug, leads_to, schema_cost, shown_logo,
};
pub use request::{METHODS, is_platforms};
pub use section::{ReadError, SECTION, embed, extract};
pub use sign::{OAUTH1_VALUES, REQUEST_VALUES, Sign, SignatureMethod};
#[cfg(not(target_arch = "wasm32"))]
pub use template::{Digest, Hash, Source, fill, fill_each};
pub use trigger::{Trigger, TriggerKind};
pub use version::{InvalidVersion, Version};

/// The contract version this crate describes: the WIT package `toolhost:toolkit@1.0.0`.
pub const ABI: &str = "1.0.0";

/// A toolkit: tools, triggers and auth schemes of one external application.
///
/// `S` is what a schema is read as. As a tree a schema takes some ten times the memory of its text: who keeps many manifests
/// reads them as texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "S: Deserialize<'de>"))]
pub struct Manifest<S = Value> {
    /// Version of the host contract the component was built for, for example `1.0.0`.
    pub abi: String,
    /// Name and version of the SDK that built it, for example `toolkit-sdk 0.1.0`.
    pub sdk: String,
    /// Lower case, `[a-z][a-z0-9_]{1,47}`; unique on a server.
    pub slug: String,
    /// For people, for example `Hacker News`.
    pub name: String,
    /// One or two sentences.
    pub description: String,
    /// An SVG document or a `data:` URL of an image, at most 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logo: Option<String>,
    /// Lower-case words, for example `developer-tools`.
    #[serde(default)]
    pub categories: Vec<String>,
    /// The dated version.
    pub version: Version,
    /// Ways to connect an account; empty means that no account is needed.
    #[serde(default)]
    pub auth: Vec<AuthScheme>,
    /// Hosts the toolkit may reach. A tool may narrow them, never widen.
    #[serde(default)]
    pub egress: Vec<EgressRule>,
    /// At most 2,000.
    #[serde(default)]
    pub tools: Vec<Tool<S>>,
    /// Events the toolkit can report.
    #[serde(default)]
    pub triggers: Vec<Trigger<S>>,
    /// What its calls need beyond the server's defaults; the operator's ceilings win.
    #[serde(default)]
    pub limits: Limits,
}

/// One thing an agent can do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "S: Deserialize<'de>"))]
pub struct Tool<S = Value> {
    /// `TOOLKIT_VERB_NOUN`, upper case, at most 64 characters, beginning with the toolkit's slug.
    pub slug: String,
    /// For people, for example `List stories`.
    pub name: String,
    /// What the agent reads to choose this tool. At most 4 KiB.
    pub description: String,
    /// JSON Schema of the arguments; an object schema.
    pub input: S,
    /// JSON Schema of the data a success answers.
    pub output: S,
    /// Whether the data may differ from `output`. A tool that passes on what an application answers cannot promise that it is
    /// as described: such data only has to be an object.
    #[serde(default, skip_serializing_if = "is_false")]
    pub loose_output: bool,
    /// What the tool does to the outside world.
    #[serde(default)]
    pub hints: Hints,
    /// Free labels. `important` puts the tool among the few that are shown first.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Scopes of the external application that the tool needs, all of them.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Hosts this tool may reach; absent means all of the toolkit's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<Vec<EgressRule>>,
    /// Runs without an account even though the toolkit has auth schemes.
    #[serde(default)]
    pub no_auth: bool,
    /// Arguments that work, shown to agents; each must satisfy `input`.
    #[serde(default)]
    pub examples: Vec<S>,
}

/// Hints after the Model Context Protocol. What is not said is assumed for the worse.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hints {
    /// Changes nothing outside. Enforced: such a tool may only send GET and HEAD unless an egress rule names the method.
    #[serde(default)]
    pub read_only: bool,
    /// May delete or overwrite.
    #[serde(default)]
    pub destructive: bool,
    /// Doing it twice is the same as doing it once.
    #[serde(default)]
    pub idempotent: bool,
    /// Reaches an open set of things, such as the web.
    #[serde(default)]
    pub open_world: bool,
}

/// Limits a toolkit asks for; absent means the server's default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Memory of one call in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// Processor time of one call in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u32>,
    /// Wall-clock time of one call in milliseconds, waiting included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

impl Manifest {
    /// Reads a manifest from JSON.
    ///
    /// # Errors
    /// When the bytes are not JSON of this shape; the message names the place.
    pub fn from_json(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// Finds a tool by slug, in any case.
    #[must_use]
    pub fn tool(&self, slug: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.slug.eq_ignore_ascii_case(slug))
    }

    /// Finds a trigger by slug, in any case.
    #[must_use]
    pub fn trigger(&self, slug: &str) -> Option<&Trigger> {
        self.triggers.iter().find(|trigger| trigger.slug.eq_ignore_ascii_case(slug))
    }

    /// Finds an auth scheme by mode.
    #[must_use]
    pub fn scheme(&self, mode: AuthMode) -> Option<&AuthScheme> {
        self.auth.iter().find(|scheme| scheme.mode == mode)
    }
}

impl<S> Manifest<S> {
    /// Whether every tool runs without an account.
    #[must_use]
    pub fn no_auth(&self) -> bool {
        self.auth.iter().all(|scheme| scheme.mode == AuthMode::NoAuth)
    }
}
