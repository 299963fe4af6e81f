//! Toolkits: listing, reading and publishing.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use app::{
    Error, Record,
    catalog::{
        self, AuthMode, AuthScheme, ChangelogEntry, Field, LATEST, Release, ScopeRequest, Snapshot,
        Terms, Toolkit, ToolkitFilter, ToolkitKind, ToolkitOrder,
    },
    clock::iso,
    connections::apps::{self, OauthApp},
};
use axum::{extract::State, http::HeaderMap, response::Response};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::{
    Server,
    api::texts,
    http::{
        auth::{OrganizationKey, ProjectKey},
        body::ComponentBytes,
        branding::{Branding, DEFAULT},
        error::ApiResult,
        page::Page,
        path::Path,
        reply::Json,
        scaffold::RawQuery,
        scaffold::choice,
        scaffold::created,
        scaffold::cursor_list,
        scaffold::ok,
    },
    shapes,
};

/// Values of `sort_by`.
const ORDERS: [&str; 2] = ["usage", "alphabetically"];
/// Kinds of toolkits for `type` and `managed_by`.
const KINDS: [ToolkitKind; 3] = [ToolkitKind::Native, ToolkitKind::Any, ToolkitKind::Custom];
/// Maximum number of toolkits that one request may name.
const NAMED: usize = 1_000;
/// Maximum number of scopes, and of tools, that one request may name.
const SCOPES: usize = 1_000;

/// Header of a publication: base64 of the component's minisign file.
pub(crate) const SIGNATURE: &str = "x-toolkit-signature";

/// Lists toolkits.
#[utoipa::path(
    get,
    path = "/toolkits",
    params(
        ("category" = Option<String>, Query, description = "Of a category, by id or name"),
        ("managed_by" = inline(Option<shapes::ManagedBy>), Query, deprecated, description = "The older spelling of `type`"),
        ("type" = inline(Option<shapes::ToolkitType>), Query, description = "Of the platform, of the project, or both"),
        ("sort_by" = inline(Option<shapes::ToolkitOrder>), Query, description = "Most used first, or by name"),
        ("include_deprecated" = Option<bool>, Query, description = "Deprecated ones too; without it they are left out"),
        ("search" = Option<String>, Query, description = "Part of slug, name or description"),
        shapes::Paging,
    ),
    responses((status = 200, description = "A page of toolkits", body = shapes::Listed<shapes::Toolkit>)),
)]
pub(crate) async fn list(
    _key: ProjectKey,
    State(server): State<Arc<Server>>,
    query: RawQuery,
) -> ApiResult<Response> {
    let older = query.choice(
        "managed_by",
        &[&server.branding.rename(DEFAULT), "all", "project"],
    )?;
    let newer = query.choice("type", &["native", "all", "custom"])?;
    let filter = ToolkitFilter {
        slugs: Vec::new(),
        category: query.text("category")?.unwrap_or_default().to_owned(),
        search: query.text("search")?.unwrap_or_default().to_owned(),
        deprecated: query.boolean("include_deprecated")?.unwrap_or(false),
        order: order(&server, query.choice("sort_by", &ORDERS)?).await?,
        kind: newer
            .or(older)
            .map_or(ToolkitKind::Any, |place| KINDS[place]),
    };
    listed(&server, &filter, query.page()?).await
}

#[derive(Deserialize, ToSchema)]
#[schema(as = ListToolkits)]
pub(crate) struct Several {
    #[serde(default)]
    toolkits: Option<Vec<String>>,
    #[serde(default)]
    category: Option<String>,
    #[serde(default)]
    managed_by: Option<String>,
    #[serde(default)]
    sort_by: Option<String>,
    #[serde(default)]
    limit: Option<f64>,
    #[serde(default)]
    cursor: Option<String>,
}

/// Lists toolkits by name: more than fit into a query, or deprecated ones.
#[utoipa::path(
    post,
    path = "/toolkits/multi",
    request_body = Option<Several>,
    responses((status = 200, description = "A page of toolkits", body = shapes::Listed<shapes::Toolkit>)),
)]
pub(crate) async fn several(
    _key: ProjectKey,
    State(server): State<Arc<Server>>,
    Json(body): Json<Several>,
) -> ApiResult<Response> {
    let managed_by = choice(
        "managed_by",
        body.managed_by.as_deref(),
        &[&server.branding.rename(DEFAULT), "all", "project"],
    )?;
    let slugs = body.toolkits.unwrap_or_default();
    if slugs.len() > NAMED {
        return Err(Error::invalid(format!("toolkits: at most {NAMED}")).into());
    }
    let filter = ToolkitFilter {
        deprecated: !slugs.is_empty(),
        slugs,
        category: body.category.unwrap_or_default(),
        search: String::new(),
        order: order(
            &server,
            choice("sort_by", body.sort_by.as_deref(), &ORDERS)?,
        )
        .await?,
        kind: managed_by.map_or(ToolkitKind::Any, |place| KINDS[place]),
    };
    let cursor = body.cursor.filter(|cursor| !cursor.is_empty());
    listed(&server, &filter, Page::new(body.limit, cursor.as_deref())?).await
}

async fn listed(server: &Server, filter: &ToolkitFilter, page: Page) -> ApiResult<Response> {
    let (index, page) = snapshot(server, page)?;
    let managed: HashSet<_> = apps::list(&server.app)
        .await?
        .into_iter()
        .map(|app| app.id)
        .collect();
    let (found, total) = page.cut(index.find_toolkits(filter));
    let items = found
        .iter()
        .map(|toolkit| item(toolkit, managed.contains(&*toolkit.slug), &server.branding))
        .collect();
    ok(&cursor_list("items", items, page, total))
}

/// Returns the order of a list by its index in [`ORDERS`].
async fn order(server: &Server, place: Option<usize>) -> ApiResult<ToolkitOrder> {
    Ok(match place {
        None => ToolkitOrder::Newest,
        Some(0) => ToolkitOrder::Usage(catalog::usage(&server.app).await?),
        Some(_) => ToolkitOrder::Name,
    })
}

/// Returns the same snapshot of the catalog for all pages of a list. Later publications appear in
/// the next list.
pub(super) fn snapshot(server: &Server, page: Page) -> ApiResult<(Arc<Snapshot>, Page)> {
    let index = server.app.catalog.snapshot_at(page.as_of()?);
    let page = page.with_newest(Some(index.as_of()));
    Ok((index, page))
}

/// Lists the categories in use.
#[utoipa::path(
    get,
    path = "/toolkits/categories",
    params(shapes::Paging),
    responses((status = 200, description = "A page of categories", body = shapes::Listed<shapes::Category>)),
)]
pub(crate) async fn categories(
    _key: ProjectKey,
    State(server): State<Arc<Server>>,
    query: RawQuery,
) -> ApiResult<Response> {
    let (index, page) = snapshot(&server, query.page()?)?;
    let (found, total) = page.cut(index.categories());
    let items = found
        .iter()
        .map(|id| json!({"id": id, "name": category_name(id)}))
        .collect();
    ok(&cursor_list("items", items, page, total))
}

/// Reads one version of a toolkit.
#[utoipa::path(
    get,
    path = "/toolkits/{slug}",
    params(("version" = Option<String>, Query, description = "A version or `latest`, which is meant without one")),
    responses((status = 200, description = "The toolkit", body = shapes::ToolkitDetail)),
)]
pub(crate) async fn read(
    _key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(slug): Path<String>,
    query: RawQuery,
) -> ApiResult<Response> {
    let index = server.app.catalog.snapshot();
    let release = index.release(&slug, query.text("version")?.unwrap_or(LATEST))?;
    let toolkit = index
        .toolkit(&slug)
        .ok_or_else(|| Error::ToolkitNotFound(slug.clone()))?;
    let managed = apps::list(&server.app)
        .await?
        .into_iter()
        .find(|app| *app.id == *toolkit.slug);
    ok(&detail(
        toolkit,
        release,
        managed.as_ref(),
        &server.branding,
    ))
}

/// Lists every version of every toolkit, for the operator.
#[utoipa::path(
    get,
    path = "/org/toolkits",
    params(shapes::Paging),
    responses((status = 200, description = "A page of versions", body = shapes::Listed<shapes::Published>)),
    security(("organization" = [])),
)]
pub(crate) async fn published(
    _key: OrganizationKey,
    State(server): State<Arc<Server>>,
    query: RawQuery,
) -> ApiResult<Response> {
    let page = query.page()?;
    let index = server.app.catalog.snapshot();
    let (found, total) = page.cut(index.releases().collect());
    let items = found
        .iter()
        .map(|release| published_view(release))
        .collect();
    ok(&cursor_list("items", items, page, total))
}

/// Lists the changes between versions of every toolkit.
#[utoipa::path(
    get,
    path = "/toolkits/changelog",
    responses((status = 200, description = "The newest versions of every toolkit", body = shapes::Changelog)),
)]
pub(crate) async fn changelog(
    _key: ProjectKey,
    State(server): State<Arc<Server>>,
) -> ApiResult<Response> {
    let all = catalog::changelog(&server.app).await?;
    let items: Vec<_> = all
        .iter()
        .map(|(toolkit, entries)| changes_view(toolkit, entries))
        .collect();
    ok(&json!({ "items": items }))
}

/// Returns the factors that scopes depend on besides the tools. There are none for any toolkit.
#[utoipa::path(
    get,
    path = "/toolkits/{slug}/scopes/grant_context",
    params(
        ("auth_scheme" = Option<String>, Query, description = "One of the toolkit's schemes; its first without it"),
        ("toolkit_version" = Option<String>, Query, description = "A version or `latest`, which is meant without one"),
    ),
    responses((status = 200, description = "What scopes depend on", body = shapes::GrantContext)),
)]
pub(crate) async fn grant_context(
    _key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(slug): Path<String>,
    query: RawQuery,
) -> ApiResult<Response> {
    let version = query.text("toolkit_version")?.unwrap_or(LATEST);
    let release = server.app.catalog.release(&slug, version)?;
    let (mode, _) = catalog::scheme(&release, query.text("auth_scheme")?)?;
    ok(&json!({
        "auth_scheme": mode,
        "toolkit_version": release.version,
        "grant_context_dimensions": [],
        "default_grant_context": {},
    }))
}

#[derive(Deserialize, ToSchema)]
#[schema(as = RecommendScopes)]
pub(crate) struct Recommend {
    tools: Vec<String>,
    #[serde(default)]
    auth_scheme: Option<String>,
    #[serde(default)]
    toolkit_version: Option<String>,
    #[serde(default)]
    grant_context: Option<Map<String, Value>>,
    #[serde(default, deserialize_with = "texts")]
    include: Vec<String>,
    #[serde(default, deserialize_with = "texts")]
    exclude: Vec<String>,
    #[serde(default)]
    available_scopes: Option<Vec<String>>,
}

/// Recommends the scopes to request so that the given tools can run.
#[utoipa::path(
    post,
    path = "/toolkits/{slug}/scopes/recommended",
    request_body = Recommend,
    responses((status = 200, description = "The scopes", body = shapes::RecommendedScopes)),
)]
pub(crate) async fn recommend(
    _key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(slug): Path<String>,
    Json(body): Json<Recommend>,
) -> ApiResult<Response> {
    let release = server
        .app
        .catalog
        .release(&slug, body.toolkit_version.as_deref().unwrap_or(LATEST))?;
    let scope_request = ScopeRequest {
        tools: body.tools,
        include: body.include,
        exclude: body.exclude,
        available: body.available_scopes,
    };
    let lists = [
        &scope_request.tools,
        &scope_request.include,
        &scope_request.exclude,
    ];
    if lists
        .into_iter()
        .chain(&scope_request.available)
        .any(|list| list.len() > SCOPES)
    {
        return Err(Error::invalid(format!("body: a list has at most {SCOPES} entries")).into());
    }
    let found = catalog::recommend_scopes(&release, body.auth_scheme.as_deref(), &scope_request)?;
    ok(&json!({
        "auth_scheme": found.mode,
        "toolkit_version": release.version,
        "grant_context": body.grant_context.unwrap_or_default(),
        "scopes": {"least_privilege": found.scopes, "fewest": found.scopes, "conditional": []},
    }))
}

fn changes_view(toolkit: &Toolkit, entries: &[ChangelogEntry]) -> Value {
    let name = &toolkit.current().name;
    let version =
        |entry: &ChangelogEntry| json!({ "version": entry.version, "changelog": entry.text });
    let versions: Vec<_> = entries.iter().map(version).collect();
    json!({ "slug": toolkit.slug, "name": name, "display_name": name, "versions": versions })
}

/// Reads a version with its manifest, for publishers.
#[utoipa::path(
    get,
    path = "/toolkits/{slug}/versions/{version}",
    responses((status = 200, description = "The version", body = shapes::PublishedWithManifest)),
    security(("organization" = [])),
)]
pub(crate) async fn read_version(
    _key: OrganizationKey,
    State(server): State<Arc<Server>>,
    Path((slug, version)): Path<(String, String)>,
) -> ApiResult<Response> {
    let release = server.app.catalog.release(&slug, &version)?;
    let mut view = published_view(&release);
    view["manifest"] =
        json!(catalog::manifest_of(&server.app, &release.slug, release.version.as_str()).await?);
    ok(&view)
}

/// Publishes a component under a version: 201, or 200 if it was published before.
#[utoipa::path(
    put,
    path = "/toolkits/{slug}/versions/{version}",
    params(
        ("breaking" = Option<bool>, Query, description = "Publish although it breaks what works with an earlier version of the day"),
        ("x-toolkit-signature" = Option<String>, Header, description = "Base64 of the component's minisign file"),
    ),
    request_body(content = Vec<u8>, content_type = "application/wasm", description = "The component"),
    responses(
        (status = 201, description = "It is published", body = shapes::Published),
        (status = 200, description = "These very bytes stood under the version already", body = shapes::Published),
        (status = 403, description = "The server takes components of known signers only"),
        (status = 409, description = "Other bytes stand under the version"),
        (status = 422, description = "The component is past a limit, or breaks what works"),
    ),
    security(("organization" = [])),
)]
pub(crate) async fn publish(
    _key: OrganizationKey,
    State(server): State<Arc<Server>>,
    Path((slug, version)): Path<(String, String)>,
    query: RawQuery,
    headers: HeaderMap,
    ComponentBytes(component): ComponentBytes,
) -> ApiResult<Response> {
    let signature = signature(&headers)?;
    let terms = Terms {
        signature: signature.as_deref(),
        breaking: query.boolean("breaking")?.unwrap_or(false),
    };
    let slug = slug.to_ascii_lowercase();
    let published = catalog::publish(&server.app, &slug, &version, component, terms).await?;
    let view = published_view(&published.release);
    if published.new {
        created(&view)
    } else {
        ok(&view)
    }
}

/// Deprecates a version: it is then used only if it is named exactly.
#[utoipa::path(
    delete,
    path = "/toolkits/{slug}/versions/{version}",
    responses((status = 200, description = "It is left to those who name it exactly", body = shapes::Published)),
    security(("organization" = [])),
)]
pub(crate) async fn deprecate(
    _key: OrganizationKey,
    State(server): State<Arc<Server>>,
    Path((slug, version)): Path<(String, String)>,
) -> ApiResult<Response> {
    ok(&published_view(
        &*catalog::deprecate(&server.app, &slug, &version).await?,
    ))
}

/// Reads the signature header: a minisign file, in base64 because it has several lines.
fn signature(headers: &HeaderMap) -> ApiResult<Option<String>> {
    let Some(value) = headers.get(SIGNATURE) else {
        return Ok(None);
    };
    let text = STANDARD
        .decode(value.as_bytes())
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    text.map(Some).ok_or_else(|| {
        Error::SignatureInvalid(format!("`{SIGNATURE}` is not base64 of a text")).into()
    })
}

/// Returns a version as publishers see it.
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

/// Returns the view of a toolkit. `managed` is true if the operator has an OAuth app at its
/// provider.
fn item(toolkit: &Toolkit, managed: bool, branding: &Branding) -> Value {
    let release = toolkit.current();
    let managed = managed && release.scheme(AuthMode::Oauth2).is_some();
    json!({
        "slug": toolkit.slug,
        "name": release.name,
        "auth_schemes": modes(release).iter().map(|mode| mode.as_str()).collect::<Vec<_>>(),
        branding.rename("service_managed_auth_schemes"): if managed { vec![AuthMode::Oauth2.as_str()] } else { Vec::new() },
        "is_local_toolkit": false,
        "no_auth": release.no_auth(),
        "deprecated": {"toolkitId": toolkit.slug},
        "meta": meta(toolkit, release, "id"),
        "type": "native",
        "auth_guide_url": null,
        "access": "all",
    })
}

/// Returns the members that lists and details share; the key of a category's identifier differs.
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

fn detail(
    toolkit: &Toolkit,
    release: &Release,
    app: Option<&Record<OauthApp>>,
    branding: &Branding,
) -> Value {
    let flow = release
        .scheme(AuthMode::Oauth2)
        .and_then(|scheme| scheme.oauth2.as_ref());
    let managed = app.zip(flow).map(|(app, flow)| {
        let available: BTreeSet<_> = flow.scopes.iter().chain(&app.body.scopes).collect();
        json!({"mode": AuthMode::Oauth2.as_str(), "scopes": {"available": available}})
    });
    let schemes: Vec<_> = modes(release)
        .into_iter()
        .map(|mode| scheme_view(mode, release.scheme(mode)))
        .collect();
    let base_url = release
        .auth
        .iter()
        .find_map(|scheme| scheme.base_url.clone());
    let mut meta = meta(toolkit, release, "slug");
    meta["available_versions"] = json!(toolkit.versions());
    let mut view = json!({
        "slug": toolkit.slug,
        "name": release.name,
        "enabled": !toolkit.is_deprecated(),
        branding.rename("service_managed_auth_schemes"): managed.iter().map(|managed| &managed["mode"]).collect::<Vec<_>>(),
        branding.rename("service_managed_auth"): managed.iter().collect::<Vec<_>>(),
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

/// Returns the schemes with which a toolkit can be connected; one without any runs without an
/// account.
fn modes(release: &Release) -> Vec<AuthMode> {
    let declared: Vec<_> = release.auth.iter().map(|scheme| scheme.mode).collect();
    if declared.is_empty() {
        vec![AuthMode::NoAuth]
    } else {
        declared
    }
}

fn scheme_view(mode: AuthMode, scheme: Option<&AuthScheme>) -> Value {
    let fields = scheme.map_or(&[][..], |scheme| &scheme.fields);
    let (optional, required): (Vec<_>, Vec<_>) = fields
        .iter()
        .filter(|field| !field.hidden)
        .partition(|field| field.optional || field.default.is_some());
    let views = |fields: Vec<&Field>| fields.into_iter().map(field_view).collect::<Vec<_>>();
    let flow = scheme.and_then(|scheme| scheme.oauth2.as_ref());
    let scopes = flow.map_or(&[][..], |flow| &flow.scopes);
    let oauth1 = scheme.and_then(|scheme| scheme.oauth1.as_ref());
    let (client, asked) = match (flow, oauth1) {
        (Some(_), _) => client_fields(mode, scopes),
        (None, Some(_)) => {
            let signs = scheme
                .and_then(|scheme| scheme.sign.as_ref())
                .is_some_and(|sign| sign.has_private_key());
            (consumer_fields(signs), Vec::new())
        }
        (None, None) => (Vec::new(), Vec::new()),
    };
    let mut view = json!({
        "mode": mode.as_str(),
        "name": scheme.map_or("No authentication", |scheme| scheme.name.as_str()),
        "fields": {
            "auth_config_creation": {"required": client, "optional": asked},
            "connected_account_initiation": {"required": views(required), "optional": views(optional)},
        },
        "auth_hint_url": null,
        "required_scopes": scopes,
    });
    if let Some(flow) = flow {
        view["deprecated_auth_provider_details"] =
            json!({"authorization_url": flow.authorize_url, "token_url": flow.token_url});
    }
    if let Some(flow) = oauth1 {
        view["deprecated_auth_provider_details"] =
            json!({"authorization_url": flow.authorize_url, "token_url": flow.token_url});
    }
    if let Some(url) = scheme.and_then(|scheme| scheme.base_url.as_ref()) {
        view["proxy"] = json!({"base_url": url});
    }
    view
}

/// Returns the fields of an auth config of OAuth 1.0: a private key if it `signs`, else a secret.
fn consumer_fields(signs: bool) -> Vec<Value> {
    let field = |name: &str, title: &str, description: &str, secret| {
        let (name, title, description) =
            (name.to_owned(), title.to_owned(), description.to_owned());
        field_view(&Field {
            name,
            title,
            description,
            secret,
            ..Field::default()
        })
    };
    let given = "As the application gave it to you.";
    let own = "In PEM; the application has the public key that belongs to it.";
    let proof = if signs {
        field("private_key", "Private key", own, true)
    } else {
        field("consumer_secret", "Consumer secret", given, true)
    };
    vec![field("consumer_key", "Consumer key", given, false), proof]
}

/// Returns the required and the optional fields of an auth config of OAuth 2.0.
fn client_fields(mode: AuthMode, scopes: &[String]) -> (Vec<Value>, Vec<Value>) {
    let field =
        |name: &str, title: &str, description: &str, secret: bool, default: Option<String>| {
            let optional = default.is_some();
            field_view(&Field {
                name: name.to_owned(),
                title: title.to_owned(),
                description: description.to_owned(),
                secret,
                optional,
                default: default.filter(|text| !text.is_empty()),
                ..Field::default()
            })
        };
    // If the server registers the client itself, no client has to be entered.
    let made = matches!(mode, AuthMode::DcrOauth | AuthMode::CimdOauth);
    let client = vec![
        field(
            "client_id",
            "Client id",
            "As the application gave it to you.",
            false,
            None,
        ),
        field(
            "client_secret",
            "Client secret",
            "As the application gave it to you.",
            true,
            None,
        ),
    ];
    let optional = vec![
        field(
            "scopes",
            "Scopes",
            "What every connection asks for.",
            false,
            Some(scopes.join(",")),
        ),
        field(
            "oauth_redirect_uri",
            "Redirect URI",
            "Where the application sends people back to.",
            false,
            Some(String::new()),
        ),
    ];
    (if made { Vec::new() } else { client }, optional)
}

/// Returns a field as forms show it.
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

/// Returns the display name of a category: `developer-tools` becomes `Developer tools`.
fn category_name(id: &str) -> String {
    let mut letters = id
        .chars()
        .map(|c| if c == '-' || c == '_' { ' ' } else { c });
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
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
