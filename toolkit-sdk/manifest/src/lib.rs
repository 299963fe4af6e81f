//! The manifest: a toolkit's description of itself.
//!
//! The manifest is stored in a custom section of the component ([`SECTION_NAME`]), so listing
//! toolkits never runs guest code. It is untrusted data: [`Manifest::from_json`] refuses anything
//! that is not JSON of this shape, and [`Manifest::problems`] lists all other errors.

mod auth;
#[cfg(not(target_arch = "wasm32"))]
pub mod cases;
#[cfg(not(target_arch = "wasm32"))]
mod diff;
pub mod disposition;
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
pub mod rpc;
mod section;
mod sign;
#[cfg(not(target_arch = "wasm32"))]
mod spelling;
mod subscription;
#[cfg(not(target_arch = "wasm32"))]
mod template;
mod trigger;
mod version;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use auth::{
    ACCESS_TOKEN, AuthMode, AuthScheme, Check, ClientCertificate, Field, FieldFormat, Placement,
};
#[cfg(not(target_arch = "wasm32"))]
pub use diff::{Change, Party, diff};
pub use egress::EgressRule;
pub use flow::{
    Algorithm, Assertion, Call, CallFormat, CallMethod, Callback, ClientAuth, Condition, Expiry,
    ExpiryKind, FLOW_VALUES, Identity, OAuth1, OAuth2, Pick, Rejection, Step, TokenAnswer,
    TokenResponse,
};
#[cfg(not(target_arch = "wasm32"))]
pub use form::{FieldProblem, Filled};
#[cfg(not(target_arch = "wasm32"))]
pub use path::at;
#[cfg(not(target_arch = "wasm32"))]
pub use problems::{
    MAX_DESCRIPTION_BYTES, MAX_MANIFEST_BYTES, MAX_PATTERNS_PER_SCHEMA, MAX_SCHEMA_BYTES,
    MAX_SCHEMA_CHAIN, MAX_SCHEMA_DEPTH, MAX_SCHEMAS_PER_VALUE, MAX_TOOLS, SchemaCost, cleaned,
    host_problem, is_hidden, is_python_keyword, is_slug, joined_lines, sanitized_logo, schema_cost,
    schema_problems, template_matches_host,
};
pub use request::{HTTP_METHODS, is_platform_header};
pub use section::{ReadError, SECTION_NAME, embed, extract};
pub use sign::{OAUTH1_VALUES, REQUEST_VALUES, RSA_SHA1_PROBLEM, Sign, SignatureMethod};
#[cfg(not(target_arch = "wasm32"))]
pub use spelling::{
    did_you_mean, is_meant_as, is_near_miss, is_part, is_prefix, is_same, nearest, suggested,
};
pub use subscription::{
    CASE_URL, SECRET_PLACEHOLDER, Subscribing, Subscription, SubscriptionAction, SubscriptionCall,
};
#[cfg(not(target_arch = "wasm32"))]
pub use template::{Digest, Hash, Source, fill, fill_each};
pub use trigger::{Trigger, TriggerKind, write_only_names};
pub use version::{InvalidVersion, Version};

/// The contract version this crate describes: the WIT package `toolhost:toolkit@1.0.0`.
pub const ABI_VERSION: &str = "1.0.0";

/// A toolkit: tools, triggers and auth schemes of one provider.
///
/// `S` is the type that a schema is read as. A schema takes about ten times more memory as a tree
/// than as text, so a program that keeps many manifests reads schemas as text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "S: Deserialize<'de>"))]
pub struct Manifest<S = Value> {
    /// Version of the host contract the component was built for, for example `1.0.0`.
    pub abi: String,
    /// Name and version of the SDK that built it, for example `toolkit-sdk 0.1.0`.
    pub sdk: String,
    /// Slug in lower case, `[a-z][a-z0-9_]{1,47}`, unique on a server.
    pub slug: String,
    /// Display name, for example `Hacker News`.
    pub name: String,
    /// Description of one or two sentences.
    pub description: String,
    /// Logo as an SVG document or a `data:` URL of an image, at most 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logo: Option<String>,
    /// Categories as lower-case words, for example `developer-tools`.
    #[serde(default)]
    pub categories: Vec<String>,
    /// Dated version.
    pub version: Version,
    /// Schemes to connect an account. Empty means that no account is needed.
    #[serde(default)]
    pub auth: Vec<AuthScheme>,
    /// Hosts the toolkit may reach. A tool may narrow them, never widen them.
    #[serde(default)]
    pub egress: Vec<EgressRule>,
    /// Tools, at most 2,000.
    #[serde(default)]
    pub tools: Vec<Tool<S>>,
    /// Events the toolkit can report.
    #[serde(default)]
    pub triggers: Vec<Trigger<S>>,
    /// Limits that its calls need beyond the server's defaults. The operator's ceilings take
    /// precedence.
    #[serde(default)]
    pub limits: Limits,
}

/// One action that an agent can perform.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "S: Deserialize<'de>"))]
pub struct Tool<S = Value> {
    /// Slug `TOOLKIT_VERB_NOUN`, upper case, at most 64 characters, beginning with the toolkit's
    /// slug.
    pub slug: String,
    /// Display name, for example `List stories`.
    pub name: String,
    /// Description that the agent reads to choose this tool. At most 4 KiB.
    pub description: String,
    /// JSON Schema of the arguments, an object schema.
    pub input: S,
    /// JSON Schema of the data of a success.
    pub output: S,
    /// True if the data may differ from `output`. A tool that passes on a provider's response
    /// cannot promise its shape. Such data only has to be an object.
    #[serde(default, skip_serializing_if = "is_false")]
    pub loose_output: bool,
    /// Effects of the tool outside the platform.
    #[serde(default)]
    pub hints: Hints,
    /// Free labels. `important` puts the tool among the few that are shown first.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Other words and short phrases for what the tool does, by which a search finds it. They are
    /// not shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub synonyms: Vec<String>,
    /// Scopes of the provider that the tool needs, all of them.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Hosts this tool may reach; all of the toolkit's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<Vec<EgressRule>>,
    /// True if the tool runs without an account even though the toolkit has auth schemes.
    #[serde(default)]
    pub no_auth: bool,
    /// Valid arguments, shown to agents. Each must satisfy `input`.
    #[serde(default)]
    pub examples: Vec<S>,
}

/// Hints after the Model Context Protocol. If a hint is not set, the worse case is assumed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hints {
    /// True if the tool changes nothing outside. Enforced: such a tool may only send GET and HEAD
    /// unless an egress rule names the method.
    #[serde(default)]
    pub read_only: bool,
    /// True if the tool may delete or overwrite data.
    #[serde(default)]
    pub destructive: bool,
    /// True if a repeated call has the same effect as one call.
    #[serde(default)]
    pub idempotent: bool,
    /// True if the tool reaches an open set of things, such as the web.
    #[serde(default)]
    pub open_world: bool,
}

/// Limits a toolkit asks for. Absent means the server's default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Memory of one call, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// Processor time of one call, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u32>,
    /// Wall-clock time of one call in milliseconds, waiting included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u32>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}

impl Manifest {
    /// Reads a manifest from JSON.
    ///
    /// # Errors
    /// An error if the bytes are not JSON of this shape. The message names the position.
    pub fn from_json(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// Finds a tool by slug, in any case.
    #[must_use]
    pub fn tool(&self, slug: &str) -> Option<&Tool> {
        self.tools
            .iter()
            .find(|tool| tool.slug.eq_ignore_ascii_case(slug))
    }

    /// Finds a trigger by slug, in any case.
    #[must_use]
    pub fn trigger(&self, slug: &str) -> Option<&Trigger> {
        self.triggers
            .iter()
            .find(|trigger| trigger.slug.eq_ignore_ascii_case(slug))
    }

    /// Finds an auth scheme by mode.
    #[must_use]
    pub fn scheme(&self, mode: AuthMode) -> Option<&AuthScheme> {
        self.auth.iter().find(|scheme| scheme.mode == mode)
    }
}

impl<S> Manifest<S> {
    /// Returns true if every tool runs without an account.
    #[must_use]
    pub fn no_auth(&self) -> bool {
        self.auth
            .iter()
            .all(|scheme| scheme.mode == AuthMode::NoAuth)
    }
}
