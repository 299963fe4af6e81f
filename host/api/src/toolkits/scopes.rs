//! OAuth scopes that the tools of a toolkit need.

use app::catalog::{self, AuthMode, LATEST, RecommendedScopes, Release, ScopeRequest};
use http::{ApiResult, IN_TABLE, Json, Path, ProjectKey, Query, errors};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use crate::texts;

/// Maximum number of scopes, and of tools, that one request may name.
const MAX_LIST_ENTRIES: usize = 1_000;

/// Selection of an auth scheme and a version.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct GrantContextQuery {
    /// One of the toolkit's schemes; without it OAuth 2.0, or else its first.
    auth_scheme: Option<String>,
    /// A version or `latest`, which is the default.
    toolkit_version: Option<String>,
}

view! {
    /// Factors that scopes depend on.
    #[schema(as = GrantContext)]
    pub(crate) struct GrantContextView from (mode: AuthMode, release: &Release) {
        auth_scheme: &'static str = mode.as_str(),
        toolkit_version: String = release.version.as_str().to_owned(),
        /// Factors that scopes depend on in addition to the tools. Always empty.
        grant_context_dimensions: Vec<Map<String, Value>> = Vec::new(),
        default_grant_context: Map<String, Value> = Map::new(),
    }
}

/// Returns the factors that scopes depend on in addition to the tools. The list is empty for every
/// toolkit.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn grant_context(
    key: ProjectKey,
    Path(slug): Path<String>,
    Query(query): Query<GrantContextQuery>,
) -> ApiResult<Json<GrantContextView>> {
    let version = query.toolkit_version.as_deref().unwrap_or(LATEST);
    let release = key.app().catalog.release(&slug, version)?;
    let (mode, _) = catalog::scheme(&release, query.auth_scheme.as_deref())?;
    Ok(Json(GrantContextView::new(mode, &release)))
}

#[derive(Deserialize, ToSchema)]
#[schema(as = RecommendScopes)]
pub(crate) struct Recommend {
    tools: Vec<String>,
    auth_scheme: Option<String>,
    toolkit_version: Option<String>,
    grant_context: Option<Map<String, Value>>,
    #[serde(default, deserialize_with = "texts")]
    include: Vec<String>,
    #[serde(default, deserialize_with = "texts")]
    exclude: Vec<String>,
    available_scopes: Option<Vec<String>>,
}

view! {
    /// The scopes to request.
    #[schema(as = RecommendedScopes)]
    pub(crate) struct RecommendedView from (
        release: &Release,
        grant_context: Map<String, Value>,
        found: RecommendedScopes,
    ) {
        auth_scheme: &'static str = found.mode.as_str(),
        toolkit_version: String = release.version.as_str().to_owned(),
        grant_context: Map<String, Value> = grant_context,
        scopes: ScopeChoices = found.scopes.into(),
    }
}

view! {
    struct ScopeChoices from scopes: Vec<String> {
        least_privilege: Vec<String> = scopes.clone(),
        fewest: Vec<String> = scopes,
        conditional: Vec<Map<String, Value>> = Vec::new(),
    }
}

/// Recommends the scopes to request so that the given tools can run.
#[utoipa::path(post, path = IN_TABLE)]
pub(crate) async fn recommend(
    key: ProjectKey,
    Path(slug): Path<String>,
    Json(body): Json<Recommend>,
) -> ApiResult<Json<RecommendedView>> {
    let version = body.toolkit_version.as_deref().unwrap_or(LATEST);
    let release = key.app().catalog.release(&slug, version)?;
    let request = ScopeRequest {
        tools: body.tools,
        include: body.include,
        exclude: body.exclude,
        available: body.available_scopes,
    };
    check_lengths(&request)?;
    let found = catalog::recommend_scopes(&release, body.auth_scheme.as_deref(), &request)?;
    let context = body.grant_context.unwrap_or_default();
    Ok(Json(RecommendedView::new(&release, context, found)))
}

fn check_lengths(request: &ScopeRequest) -> ApiResult<()> {
    let lists = [&request.tools, &request.include, &request.exclude];
    let mut lists = lists.into_iter().chain(&request.available);
    if lists.any(|list| list.len() > MAX_LIST_ENTRIES) {
        let problem = format!("body: a list has at most {MAX_LIST_ENTRIES} entries");
        return Err(errors::invalid(problem).into());
    }
    Ok(())
}
