//! Toolkits: what is there, and publishing.

use std::sync::Arc;

use app::{
    Error,
    catalog::{self, AuthMode, AuthScheme, Entry, Field, LATEST, Release, Terms, Toolkit, ToolkitFilter, ToolkitKind},
    clock::iso,
};
use axum::{extract::State, http::HeaderMap, response::Response};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    Server,
    auth::{OrgKey, ProjectKey},
    extract::{ComponentBytes, Path, Query},
    respond::{Reply, created, cursor_list, ok},
    words::Words,
};

/// Header of a publication: base64 of the component's minisign file.
pub(crate) const SIGNATURE: &str = "x-toolkit-signature";

/// Lists toolkits.
pub(crate) async fn list(_key: ProjectKey, State(server): State<Arc<Server>>, query: Query) -> Reply<Response> {
    const KINDS: [ToolkitKind; 3] = [ToolkitKind::Native, ToolkitKind::Any, ToolkitKind::Custom];
    let older = query.choice("managed_by", &[server.words.lower.as_str(), "all", "project"])?;
    let newer = query.choice("type", &["native", "all", "custom"])?;
    let filter = ToolkitFilter {
        category: query.text("category")?.unwrap_or_default().to_owned(),
        search: query.text("search")?.unwrap_or_default().to_owned(),
        deprecated: query.boolean("include_deprecated")?.unwrap_or(false),
        alphabetically: query.choice("sort_by", &["usage", "alphabetically"])? == Some(1),
        kind: newer.or(older).map_or(ToolkitKind::Any, |place| KINDS[place]),
    };
    let page = query.page()?;
    let (found, total) = page.cut(server.app.catalog.index().find_toolkits(&filter));
    let items = found.iter().map(|toolkit| item(toolkit, &server.words)).collect();
    ok(&cursor_list("items", items, page, total))
}

/// Lists the categories in use.
pub(crate) async fn categories(_key: ProjectKey, State(server): State<Arc<Server>>, query: Query) -> Reply<Response> {
    let page = query.page()?;
    let (found, total) = page.cut(server.app.catalog.index().categories());
    let items = found.iter().map(|id| json!({"id": id, "name": category_name(id)})).collect();
    ok(&cursor_list("items", items, page, total))
}

/// Reads a toolkit in one version.
pub(crate) async fn read(
    _key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(slug): Path<String>,
    query: Query,
) -> Reply<Response> {
    let index = server.app.catalog.index();
    let release = index.release(&slug, query.text("version")?.unwrap_or(LATEST))?;
    let toolkit = index.toolkit(&slug).ok_or_else(|| Error::ToolkitNotFound(slug.clone()))?;
    ok(&detail(toolkit, release, &server.words))
}

/// Lists every version of every toolkit, for the operator.
pub(crate) async fn published(_key: OrgKey, State(server): State<Arc<Server>>, query: Query) -> Reply<Response> {
    let page = query.page()?;
    let index = server.app.catalog.index();
    let (found, total) = page.cut(index.releases().collect());
    let items = found.iter().map(|release| published_view(release)).collect();
    ok(&cursor_list("items", items, page, total))
}

/// Lists what changed from version to version of every toolkit.
pub(crate) async fn changelog(_key: ProjectKey, State(server): State<Arc<Server>>) -> Reply<Response> {
    let all = catalog::changelog(&server.app).await?;
    let items: Vec<_> = all.iter().map(|(toolkit, entries)| changes_view(toolkit, entries)).collect();
    ok(&json!({ "items": items }))
}

fn changes_view(toolkit: &Toolkit, entries: &[Entry]) -> Value {
    let name = &toolkit.current().name;
    let version = |entry: &Entry| json!({ "version": entry.version, "changelog": entry.text });
    let versions: Vec<_> = entries.iter().map(version).collect();
    json!({ "slug": toolkit.slug, "name": name, "display_name": name, "versions": versions })
}

/// Reads a version with its manifest, for those who publish.
pub(crate) async fn read_version(
    _key: OrgKey,
    State(server): State<Arc<Server>>,
    Path((slug, version)): Path<(String, String)>,
) -> Reply<Response> {
    let release = server.app.catalog.release(&slug, &version)?;
    let mut view = published_view(&release);
    view["manifest"] = json!(catalog::manifest_of(&server.app, &release.slug, release.version.as_str()).await?);
    ok(&view)
}

/// Publishes a component under a version: 201, or 200 when it was there already.
pub(crate) async fn publish(
    _key: OrgKey,
    State(server): State<Arc<Server>>,
    Path((slug, version)): Path<(String, String)>,
    query: Query,
    headers: HeaderMap,
    ComponentBytes(component): ComponentBytes,
) -> Reply<Response> {
    let signature = signature(&headers)?;
    let terms = Terms { signature: signature.as_deref(), breaking: query.boolean("breaking")?.unwrap_or(false) };
    let slug = slug.to_ascii_lowercase();
    let published = catalog::publish(&server.app, &slug, &version, component, terms).await?;
    let view = published_view(&published.release);
    if published.new { created(&view) } else { ok(&view) }
}

/// Leaves a version to those who name it exactly.
pub(crate) async fn deprecate(
    _key: OrgKey,
    State(server): State<Arc<Server>>,
    Path((slug, version)): Path<(String, String)>,
) -> Reply<Response> {
    ok(&published_view(&*catalog::deprecate(&server.app, &slug, &version).await?))
}

/// What the signature header holds: a minisign file, in base64 because it has several lines.
fn signature(headers: &HeaderMap) -> Reply<Option<String>> {
    let Some(value) = headers.get(SIGNATURE) else { return Ok(None) };
    let text = STANDARD.decode(value.as_bytes()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.map(Some).ok_or_else(|| Error::SignatureInvalid(format!("`{SIGNATURE}` is not base64 of a text")).into())
}

/// A version, for those who publish.
pub(crate) fn published_view(release: &Release) -> Value {
    json!({
        "slug": release.slug,
        "name": release.name,
        "version": release.version,
        "digest": format!("sha256:{}", release.digest),
        "size": release.size,
        "signed_by": release.signed_by,
        "tools_count": release.tools.len(),
        "triggers_count": release.triggers,
        "created_at": iso(release.published_at),
        "is_deprecated": release.deprecated_at.is_some(),
        "deprecated_at": release.deprecated_at.map(iso),
    })
}

fn item(toolkit: &Toolkit, words: &Words) -> Value {
    let release = toolkit.current();
    json!({
        "slug": toolkit.slug,
        "name": release.name,
        "auth_schemes": modes(release).iter().map(|mode| mode.as_str()).collect::<Vec<_>>(),
        words.managed_auth_schemes.as_str(): [],
        "is_local_toolkit": false,
        "no_auth": release.no_auth(),
        "deprecated": {"toolkitId": toolkit.slug},
        "meta": meta(toolkit, release, "id"),
        "type": "native",
        "auth_guide_url": null,
        "access": "all",
    })
}

/// What lists and details both tell; they differ in what a category's identifier is called.
fn meta(toolkit: &Toolkit, release: &Release, category_key: &str) -> Value {
    json!({
        "created_at": iso(toolkit.created_at()),
        "updated_at": iso(toolkit.updated_at()),
        "description": release.description,
        "logo": release.logo,
        "app_url": null,
        "categories": release.categories.iter()
            .map(|id| json!({category_key: id, "name": category_name(id)})).collect::<Vec<_>>(),
        "triggers_count": release.triggers,
        "tools_count": release.tools.len(),
        "version": release.version,
    })
}

fn detail(toolkit: &Toolkit, release: &Release, words: &Words) -> Value {
    let schemes: Vec<_> = modes(release).into_iter().map(|mode| scheme_view(mode, release.scheme(mode))).collect();
    let base_url = release.auth.iter().find_map(|scheme| scheme.base_url.clone());
    let mut meta = meta(toolkit, release, "slug");
    meta["available_versions"] = json!(toolkit.versions());
    let mut view = json!({
        "slug": toolkit.slug,
        "name": release.name,
        "enabled": !toolkit.is_deprecated(),
        words.managed_auth_schemes.as_str(): [],
        words.managed_auth.as_str(): [],
        "is_local_toolkit": false,
        "auth_config_details": schemes,
        "meta": meta,
        "deprecated": {"toolkitId": toolkit.slug, "rawProxyInfoByAuthSchemes": []},
        "type": "native",
        "auth_guide_url": null,
        "access": "all",
    });
    if let Some(url) = base_url {
        view["base_url"] = url.into();
    }
    view
}

/// The schemes a toolkit can be connected with; one without any runs without an account.
fn modes(release: &Release) -> Vec<AuthMode> {
    let declared: Vec<_> = release.auth.iter().map(|scheme| scheme.mode).collect();
    if declared.is_empty() { vec![AuthMode::NoAuth] } else { declared }
}

fn scheme_view(mode: AuthMode, scheme: Option<&AuthScheme>) -> Value {
    let fields = scheme.map_or(&[][..], |scheme| &scheme.fields);
    let (optional, required): (Vec<_>, Vec<_>) =
        fields.iter().partition(|field| field.optional || field.default.is_some());
    let views = |fields: Vec<&Field>| fields.into_iter().map(field_view).collect::<Vec<_>>();
    json!({
        "mode": mode.as_str(),
        "name": scheme.map_or("No authentication", |scheme| scheme.name.as_str()),
        "fields": {
            "auth_config_creation": {"required": [], "optional": []},
            "connected_account_initiation": {"required": views(required), "optional": views(optional)},
        },
        "auth_hint_url": null,
    })
}

/// A field as forms show it.
pub(super) fn field_view(field: &Field) -> Value {
    json!({
        "name": field.name,
        "displayName": field.title,
        "type": "string",
        "description": field.description,
        "required": !field.optional && field.default.is_none(),
        "default": field.default,
        "legacy_template_name": field.name,
        "is_secret": field.secret,
        "user_visible": true,
    })
}

/// `developer-tools` for people: `Developer tools`.
fn category_name(id: &str) -> String {
    let mut letters = id.chars().map(|c| if c == '-' || c == '_' { ' ' } else { c });
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_are_named_for_people() {
        assert_eq!(category_name("developer-tools"), "Developer tools");
        assert_eq!(category_name(""), "");
    }
}
