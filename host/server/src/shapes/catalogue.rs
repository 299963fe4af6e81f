//! Shapes of tools.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A tool in one version.
#[derive(ToSchema)]
pub(crate) struct Tool {
    slug: String,
    name: String,
    description: String,
    human_description: String,
    toolkit: ToolToolkit,
    /// A JSON Schema.
    input_parameters: Map<String, Value>,
    /// A JSON Schema of the whole response of an execution.
    output_parameters: Map<String, Value>,
    no_auth: bool,
    version: String,
    available_versions: Vec<String>,
    scopes: Vec<String>,
    #[schema(required)]
    scope_requirements: Option<ScopeRequirements>,
    tags: Vec<String>,
    is_deprecated: bool,
    deprecated: ToolDeprecated,
}

#[derive(ToSchema)]
struct ToolToolkit {
    slug: String,
    name: String,
    logo: String,
}

#[derive(ToSchema)]
struct ToolDeprecated {
    #[serde(rename = "displayName")]
    display_name: String,
    version: String,
    available_versions: Vec<String>,
    is_deprecated: bool,
    toolkit: ToolkitLogo,
}

#[derive(ToSchema)]
struct ToolkitLogo {
    logo: String,
}

/// The scopes that a tool needs, all of them.
#[derive(ToSchema)]
struct ScopeRequirements {
    all_of: Vec<String>,
}

#[derive(ToSchema)]
pub(crate) struct RequiredScopes {
    scopes_required: Vec<String>,
    per_tool_requirements: Vec<ScopesOfTool>,
}

#[derive(ToSchema)]
struct ScopesOfTool {
    tool: String,
    #[schema(required)]
    scope_requirements: Option<ScopeRequirements>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum LegacyKind {
    ConnectedAccount,
    AuthConfig,
    TriggerInstance,
}

#[derive(ToSchema)]
pub(crate) struct NanoId {
    nanoid: String,
}
