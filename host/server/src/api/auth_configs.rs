//! Auth configs.

use std::sync::Arc;

use app::{
    Error, Record,
    auth_configs::{self, AuthConfig, Changes, Credentials, Filter, NewAuthConfig, Proxy, Status},
    catalog::LATEST,
    clock::iso,
    connections::mask,
    ids::AuthConfigId,
};
use axum::{extract::State, response::Response};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::{
    Server,
    api::{object, texts, toolkits::field_view},
    auth::ProjectKey,
    extract::{Json, Path, Query},
    respond::{Reply, created, ok, record_list},
    shapes,
    web::link,
};

#[derive(Deserialize, ToSchema)]
#[schema(as = CreateAuthConfig)]
pub(crate) struct Create {
    toolkit: ToolkitName,
    #[serde(default)]
    auth_config: Option<CreateConfig>,
}

#[derive(Deserialize, ToSchema)]
struct ToolkitName {
    slug: String,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = AuthConfigSettings)]
struct CreateConfig {
    r#type: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default, rename = "authScheme")]
    auth_scheme: Option<String>,
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    credentials: Option<Value>,
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    shared_credentials: Option<Value>,
    #[serde(default)]
    proxy_config: Option<ProxyConfig>,
    #[serde(default, deserialize_with = "texts")]
    restrict_to_following_tools: Vec<String>,
    #[serde(default)]
    tool_access_config: Option<ToolAccess>,
    #[serde(default)]
    is_enabled_for_tool_router: Option<bool>,
}

#[derive(Default, Deserialize, ToSchema)]
struct ToolAccess {
    #[serde(default, deserialize_with = "texts")]
    tools_for_connected_account_creation: Vec<String>,
    #[serde(default, deserialize_with = "texts")]
    tools_available_for_execution: Vec<String>,
}

/// The HTTP proxy through which requests to the provider are sent.
#[derive(Deserialize, ToSchema)]
struct ProxyConfig {
    /// `http://host:port` or `https://host:port`.
    proxy_url: String,
    /// `user:password`, a bearer token, or a complete value of `proxy-authorization` with its
    /// scheme.
    #[serde(default)]
    proxy_auth_key: Option<String>,
}

impl From<ProxyConfig> for Proxy {
    fn from(config: ProxyConfig) -> Self {
        Self {
            url: config.proxy_url,
            key: config.proxy_auth_key.filter(|key| !key.is_empty()),
        }
    }
}

/// Changes to an auth config. Null or an empty list clears members that have one.
#[derive(Deserialize, ToSchema)]
#[schema(as = UpdateAuthConfig)]
pub(crate) struct Update {
    /// The existing kind of the auth config.
    #[schema(value_type = shapes::AuthConfigKind)]
    r#type: String,
    #[serde(default)]
    name: Option<String>,
    /// Merged into the existing credentials, name by name.
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    credentials: Option<Value>,
    /// A text with commas or spaces, or a list; with `default`, the scopes requested in addition to
    /// the operator's.
    #[serde(default, deserialize_with = "present")]
    scopes: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    user_scopes: Option<Value>,
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    shared_credentials: Option<Value>,
    /// Null for direct requests without a proxy.
    #[schema(value_type = Option<ProxyConfig>)]
    #[serde(default, deserialize_with = "present_or_null")]
    proxy_config: Option<Option<ProxyConfig>>,
    #[serde(default, deserialize_with = "cleared")]
    restrict_to_following_tools: Option<Vec<String>>,
    #[serde(default)]
    tool_access_config: Option<UpdatedToolAccess>,
    #[serde(default)]
    is_enabled_for_tool_router: Option<bool>,
}

#[derive(Default, Deserialize, ToSchema)]
struct UpdatedToolAccess {
    #[serde(default, deserialize_with = "cleared")]
    tools_for_connected_account_creation: Option<Vec<String>>,
    #[serde(default, deserialize_with = "cleared")]
    tools_available_for_execution: Option<Vec<String>>,
}

/// Reads a member that is present, null included.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// Reads a member that is present, as its type or null.
fn present_or_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(from).map(Some)
}

/// Reads a list that is present; null is read as an empty list.
fn cleared<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    texts(from).map(Some)
}

/// Creates an auth config.
#[utoipa::path(
    post,
    path = "/auth_configs",
    request_body = Create,
    responses(
        (status = 201, description = "The auth config", body = shapes::NewAuthConfig),
        (status = 404, description = "There is no such toolkit"),
    ),
)]
pub(crate) async fn create(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Json(body): Json<Create>,
) -> Reply<Response> {
    let request = new(&server, body)?;
    let made = auth_configs::create(&server.app, &key.project, request).await?;
    created(&json!({
        "toolkit": {"slug": made.body.toolkit},
        "auth_config": {
            "id": made.id,
            "auth_scheme": made.body.scheme,
            server.words.say("is_service_managed"): made.body.managed,
            "restrict_to_following_tools": made.body.restrict_to,
        },
    }))
}

fn new(server: &Server, body: Create) -> Reply<NewAuthConfig> {
    let toolkit = body.toolkit.slug;
    let Some(config) = body.auth_config else {
        return Ok(NewAuthConfig {
            toolkit,
            ..NewAuthConfig::default()
        });
    };
    let managed = server.words.say("use_service_managed_auth");
    let scheme = match config.r#type.as_str() {
        "use_custom_auth" => {
            let scheme = config.auth_scheme;
            Some(scheme.ok_or_else(|| {
                Error::invalid("auth_config.authScheme: is required with use_custom_auth")
            })?)
        }
        kind if *kind == *managed => None,
        _ => {
            return Err(Error::invalid(format!(
                "auth_config.type: must be use_custom_auth or {managed}"
            ))
            .into());
        }
    };
    let access = config.tool_access_config.unwrap_or_default();
    Ok(NewAuthConfig {
        toolkit,
        scheme,
        name: config.name,
        credentials: Credentials {
            own: object("auth_config.credentials", config.credentials)?,
            shared: object("auth_config.shared_credentials", config.shared_credentials)?,
            proxy: config.proxy_config.map(Proxy::from),
        },
        restrict_to: config.restrict_to_following_tools,
        tools_for_execution: access.tools_available_for_execution,
        tools_for_connection: access.tools_for_connected_account_creation,
        in_sessions: config.is_enabled_for_tool_router.unwrap_or(true),
    })
}

/// Lists auth configs, newest first.
#[utoipa::path(
    get,
    path = "/auth_configs",
    params(
        ("is_service_managed" = Option<bool>, Query, description = "With credentials of the server, or without"),
        ("toolkit_slug" = Option<Vec<String>>, Query, explode = false, description = "Of these toolkits"),
        ("deprecated_app_id" = Option<String>, Query, deprecated, description = "Of this toolkit"),
        ("deprecated_status" = inline(Option<shapes::Switch>), Query, deprecated, description = "Of this status"),
        ("show_disabled" = Option<bool>, Query, description = "Disabled ones too; without it they are left out"),
        ("search" = Option<String>, Query, description = "Part of the name"),
        shapes::Paging,
    ),
    responses((status = 200, description = "A page of auth configs", body = shapes::Listed<shapes::AuthConfig>)),
)]
pub(crate) async fn list(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    query: Query,
) -> Reply<Response> {
    let mut toolkits = query.list("toolkit_slug")?;
    if toolkits.is_empty() {
        toolkits.extend(query.text("deprecated_app_id")?.map(str::to_owned));
    }
    let page = query.page()?;
    let status = query.choice("deprecated_status", &["ENABLED", "DISABLED"])?;
    let filter = Filter {
        toolkits,
        managed: query.boolean(&server.words.say("is_service_managed"))?,
        disabled: query.boolean("show_disabled")?.unwrap_or(false),
        status: status.map(|place| {
            if place == 0 {
                Status::Enabled
            } else {
                Status::Disabled
            }
        }),
        search: query.text("search")?.unwrap_or_default().to_owned(),
        until: page.moment()?,
    };
    let found = auth_configs::list(&server.app, &key.project, &filter, page.window(false)?).await?;
    let mut items = Vec::with_capacity(found.items.len());
    for record in &found.items {
        items.push(view(&server, &key, record).await?);
    }
    let page = page.marked(found.items.first().map(|newest| newest.created_at));
    ok(&record_list("items", items, page, found.total, found.next))
}

/// Reads an auth config.
#[utoipa::path(
    get,
    path = "/auth_configs/{nanoid}",
    responses((status = 200, description = "The auth config", body = shapes::AuthConfig)),
)]
pub(crate) async fn read(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> Reply<Response> {
    let record = auth_configs::get(&server.app, &key.project, &AuthConfigId::parse(&id)?).await?;
    ok(&view(&server, &key, &record).await?)
}

/// Changes an auth config: members that are left out stay as they are.
#[utoipa::path(
    patch,
    path = "/auth_configs/{nanoid}",
    request_body = Update,
    responses((status = 200, description = "It is changed", body = shapes::Done)),
)]
pub(crate) async fn update(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    Json(body): Json<Update>,
) -> Reply<Response> {
    let id = AuthConfigId::parse(&id)?;
    let managed = match body.r#type.as_str() {
        "custom" => false,
        "default" => true,
        _ => return Err(Error::invalid("type: must be custom or default").into()),
    };
    let mut own = object("credentials", body.credentials)?;
    for (name, given) in [("scopes", body.scopes), ("user_scopes", body.user_scopes)] {
        own.extend(given.map(|value| (name.to_owned(), value)));
    }
    let access = body.tool_access_config.unwrap_or_default();
    let changes = Changes {
        managed,
        name: body.name,
        own,
        shared: object("shared_credentials", body.shared_credentials)?,
        proxy: body.proxy_config.map(|proxy| proxy.map(Proxy::from)),
        restrict_to: body.restrict_to_following_tools,
        tools_for_execution: access.tools_available_for_execution,
        tools_for_connection: access.tools_for_connected_account_creation,
        in_sessions: body.is_enabled_for_tool_router,
    };
    auth_configs::change(&server.app, &key.project, &id, changes).await?;
    ok(&json!({"success": true}))
}

/// Deletes an auth config; tools cannot be run with its accounts any more.
#[utoipa::path(
    delete,
    path = "/auth_configs/{nanoid}",
    params(("revoke_on_delete" = Option<bool>, Query, description = "The credentials of its accounts are taken back first, too")),
    responses((status = 200, description = "It is deleted", body = shapes::DoneWithMessage)),
)]
pub(crate) async fn remove(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    query: Query,
) -> Reply<Response> {
    let (id, revoke) = (
        AuthConfigId::parse(&id)?,
        query.boolean("revoke_on_delete")?.unwrap_or(false),
    );
    let removing =
        async move { auth_configs::remove(&server.app, &key.project, &id, revoke).await };
    link::run_to_completion(removing).await?;
    ok(&json!({"success": true, "message": "the auth config is deleted"}))
}

/// Enables or disables an auth config.
#[utoipa::path(
    patch,
    path = "/auth_configs/{nanoid}/{status}",
    responses((status = 200, description = "It has the status", body = shapes::Done)),
)]
pub(crate) async fn set_status(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path((id, status)): Path<(String, String)>,
) -> Reply<Response> {
    let id = AuthConfigId::parse(&id)?;
    let status = match status.to_ascii_uppercase().as_str() {
        "ENABLED" => Status::Enabled,
        "DISABLED" => Status::Disabled,
        _ => return Err(Error::invalid("status: must be ENABLED or DISABLED").into()),
    };
    auth_configs::set_status(&server.app, &key.project, &id, status).await?;
    ok(&json!({"success": true}))
}

async fn view(server: &Server, key: &ProjectKey, record: &Record<AuthConfig>) -> Reply<Value> {
    let config = &record.body;
    let credentials = auth_configs::credentials(&server.app, &key.project, record).await?;
    let connections = auth_configs::active_accounts(&server.app, &key.project, &record.id).await?;
    let release = server.app.catalog.release(&config.toolkit, LATEST).ok();
    let scheme = release
        .as_deref()
        .and_then(|release| release.scheme(config.scheme));
    let fields: Vec<_> = scheme
        .map_or(&[][..], |scheme| &scheme.fields)
        .iter()
        .map(expected)
        .collect();
    Ok(json!({
        "id": record.id,
        "uuid": config.uuid,
        "type": if config.managed { "default" } else { "custom" },
        "toolkit": {
            "slug": config.toolkit,
            "logo": release.as_ref().map_or("", |release| release.logo.as_str()),
            "auth_guide_url": null,
            "auth_hint_url": null,
        },
        "name": config.name,
        "auth_scheme": config.scheme,
        server.words.say("is_service_managed"): config.managed,
        "credentials": masked(&credentials.own),
        "proxy_config": credentials.proxy.as_ref().map(shown),
        "status": config.status.as_str(),
        "created_by": "operator",
        "created_at": iso(record.created_at),
        "last_updated_at": iso(record.updated_at),
        "no_of_connections": connections,
        "expected_input_fields": fields,
        "restrict_to_following_tools": config.restrict_to,
        "tool_access_config": {
            "tools_for_connected_account_creation": config.tools_for_connection,
            "tools_available_for_execution": config.tools_for_execution,
        },
        "shared_credentials": masked(&credentials.shared),
        "deprecated_params": {
            "default_connector_id": null,
            "member_uuid": config.uuid,
            "toolkit_id": config.toolkit,
            "expected_input_fields": fields,
        },
        "is_enabled_for_tool_router": config.in_sessions,
    }))
}

/// Returns a field as this resource spells it: without `default` if it has none.
fn expected(field: &app::catalog::Field) -> Value {
    let mut view = field_view(field);
    if let Value::Object(members) = &mut view
        && field.default.is_none()
    {
        members.remove("default");
    }
    view
}

/// Returns a proxy with its key masked.
fn shown(proxy: &Proxy) -> Value {
    let mut view = json!({"proxy_url": proxy.url});
    if let Some(key) = &proxy.key {
        view["proxy_auth_key"] = mask(&key.as_str().into());
    }
    view
}

/// Masks every value except the scopes, which are no secrets.
fn masked(values: &Map<String, Value>) -> Map<String, Value> {
    let open = |name: &str| matches!(name, "scopes" | "user_scopes");
    values
        .iter()
        .map(|(name, value)| {
            (
                name.clone(),
                if open(name) {
                    value.clone()
                } else {
                    mask(value)
                },
            )
        })
        .collect()
}
