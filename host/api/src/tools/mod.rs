//! Tools: the catalog, executions, and proxy requests.

pub(crate) mod arguments;
mod client_schema;
mod converter;
pub mod custom_credential;
pub(crate) mod execution;
pub(crate) mod proxy;
mod requests;
pub(crate) mod scopes;
mod views;

use app::{
    accounts::auth_configs,
    catalog::ToolFilter,
    core::ids::{AccountId, AuthConfigId},
};

pub(super) use self::{
    converter::Converter,
    requests::ToolkitVersions,
    views::{ToolkitView, View},
};
use http::{ApiResult, IN_TABLE, Json, Listed, Page, Path, Prefix, ProjectKey, Query, errors};

use self::{
    requests::{ListQuery, ReadQuery},
    views::Slugs,
};
use crate::toolkits::snapshot;

/// Lists tools. With a search, the tools that fit it best are first, ranked as in sessions.
#[utoipa::path(get, path = IN_TABLE, responses(
    (status = 404, description = "The project has no such auth config"),
))]
#[expect(deprecated, reason = "older clients send the older spelling")]
pub(crate) async fn list(
    key: ProjectKey,
    prefix: Prefix,
    converter: Converter,
    Query(query): Query<ListQuery>,
    page: Page,
) -> ApiResult<Json<Listed<View>>> {
    let mut filter = ToolFilter {
        slugs: query.tool_slugs,
        toolkits: query.toolkit_slug,
        tags: query.tags,
        scopes: query.scopes,
        important: query.important,
        search: query.query.or(query.search).unwrap_or_default(),
        deprecated: query.include_deprecated.unwrap_or(true),
        versions: query.toolkit_versions.selector(prefix.tool_version())?,
    };
    if !query.auth_config_ids.is_empty() {
        let ids = &query.auth_config_ids;
        filter.toolkits = toolkits_of_auth_configs(&key, ids, filter.toolkits).await?;
    }
    let (catalog, page) = snapshot(key.app(), page)?;
    let found = app::catalog::list_tools(key.app(), &key.project, &catalog, filter).await?;
    let (found, total) = page.cut(found);
    let views = found
        .iter()
        .map(|found| View::new(&catalog, found, converter));
    let views = views.collect::<Result<_, _>>()?;
    Ok(Json(Listed::counted(views, &page, total)))
}

/// Returns the toolkits of the given auth configs, restricted to those asked for. If no toolkit
/// remains, the list holds an empty name, which matches no toolkit.
async fn toolkits_of_auth_configs(
    key: &ProjectKey,
    ids: &[String],
    asked: Vec<String>,
) -> ApiResult<Vec<String>> {
    let mut toolkits = Vec::new();
    for id in ids {
        let id = AuthConfigId::parse(id).map_err(|error| error.at("auth_config_ids"))?;
        let config = auth_configs::get(key.app(), &key.project, &id).await?;
        toolkits.push(config.body.toolkit);
    }
    toolkits
        .retain(|slug| asked.is_empty() || asked.iter().any(|one| one.eq_ignore_ascii_case(slug)));
    if toolkits.is_empty() {
        toolkits.push(String::new());
    }
    Ok(toolkits)
}

/// Lists the slugs of all tools.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn slugs(key: ProjectKey) -> ApiResult<Json<Slugs>> {
    let catalog = key.app().catalog.snapshot();
    let releases = catalog.toolkits().map(|toolkit| toolkit.current());
    let slugs = releases.flat_map(|release| release.tools.iter().map(|tool| &tool.slug));
    Ok(Json(Slugs(slugs.map(ToString::to_string).collect())))
}

/// Reads one version of a tool.
#[utoipa::path(get, path = IN_TABLE, responses(
    (status = 410, description = "The tool is deprecated in every version"),
))]
pub(crate) async fn read(
    key: ProjectKey,
    prefix: Prefix,
    converter: Converter,
    Path(slug): Path<String>,
    Query(query): Query<ReadQuery>,
) -> ApiResult<Json<View>> {
    let catalog = key.app().catalog.snapshot();
    let versions = query.toolkit_versions.selector(prefix.tool_version())?;
    let toolkit = catalog.toolkit_of(&slug);
    let toolkit = toolkit.map(|toolkit| &*toolkit.slug).unwrap_or_default();
    let version = query.version.as_deref();
    let version = version.unwrap_or_else(|| versions.for_toolkit(toolkit));
    let found = catalog.tool(&slug, version)?;
    Ok(Json(View::new(&catalog, &found, converter)?))
}

/// Value of `connected_account_id` for an account that a vendor's service bills. This server does
/// not have such accounts, and uses no other account instead.
const INSTANT_ACCOUNT: &str = "instant_account";

/// Returns the account that a request names.
///
/// # Errors
/// If it is malformed or empty, or not an account of this server.
fn named_account(given: Option<String>) -> ApiResult<Option<AccountId>> {
    let Some(given) = given else {
        return Ok(None);
    };
    if given.trim() == INSTANT_ACCOUNT {
        let problem = format!(
            "connected_account_id: {INSTANT_ACCOUNT}: this server does not have it, and uses no other account instead"
        );
        return Err(errors::invalid(problem).into());
    }
    let account = AccountId::parse(given.trim());
    let account = account.map_err(|error| error.at("connected_account_id"))?;
    Ok(Some(account))
}

/// Returns a string unless it is empty or white space.
fn not_blank(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}
