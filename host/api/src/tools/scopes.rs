//! OAuth scopes that tools need.

use std::collections::BTreeSet;

use app::catalog::{self, ResolvedTool, Tool};
use http::{ApiResult, IN_TABLE, Json, Prefix, ProjectKey, errors};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Maximum number of tools that one request may name.
const MAX_TOOLS: usize = 1_000;

/// Tools whose scopes are requested.
#[derive(Deserialize, ToSchema)]
#[schema(as = RequireScopes)]
pub(crate) struct ScopesRequest {
    tools: Vec<String>,
    version: Option<String>,
}

/// The scopes that a tool needs, all of them.
#[derive(Serialize, ToSchema)]
pub(super) struct ScopeRequirements {
    all_of: Vec<String>,
}

impl ScopeRequirements {
    pub(super) fn new(tool: &Tool) -> Option<Self> {
        let all_of = &tool.scopes;
        (!all_of.is_empty()).then(|| Self {
            all_of: all_of.clone(),
        })
    }
}

view! {
    /// The scopes that tools need, together and each.
    #[schema(as = RequiredScopes)]
    pub(crate) struct ScopesView from tools: &[ResolvedTool] where {
        let all: BTreeSet<_> = tools.iter().flat_map(|found| &found.tool.scopes).collect();
    } {
        scopes_required: Vec<String> = all.into_iter().cloned().collect(),
        per_tool_requirements: Vec<ToolScopesView> = tools.iter().map(Into::into).collect(),
    }
}

view! {
    #[schema(as = ScopesOfTool)]
    struct ToolScopesView from found: &ResolvedTool {
        tool: String = found.tool.slug.to_string(),
        scope_requirements!: Option<ScopeRequirements> = ScopeRequirements::new(&found.tool),
    }
}

/// Returns the scopes that the given tools need.
#[utoipa::path(post, path = IN_TABLE, operation_id = "scopes")]
pub(crate) async fn required(
    key: ProjectKey,
    prefix: Prefix,
    Json(body): Json<ScopesRequest>,
) -> ApiResult<Json<ScopesView>> {
    if !(1..=MAX_TOOLS).contains(&body.tools.len()) {
        return Err(errors::invalid(format!("tools: 1 to {MAX_TOOLS} slugs")).into());
    }
    let version = body.version.as_deref().unwrap_or(prefix.tool_version());
    let found = catalog::find_tools(&key.app().catalog.snapshot(), &body.tools, version)?;
    Ok(Json(found.as_slice().into()))
}
