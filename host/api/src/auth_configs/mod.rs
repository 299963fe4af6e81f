//! Auth configs.

mod requests;
mod views;

use app::{
    Record,
    accounts::auth_configs::{
        self, AuthConfig, Changes, Credentials, Filter, NewAuthConfig, Proxy, Status,
    },
    catalog::LATEST,
    core::{ids::AuthConfigId, spelling::other_word_meant},
};

pub(crate) use self::requests::ToolkitSlug;
use http::{
    ApiResult, Created, IN_TABLE, Json, Listed, Page, Path, Position, ProjectKey, Query, Server,
    Success, SuccessWithMessage, branding::DEFAULT_BRAND, errors, run_to_completion,
};

use self::{
    requests::{Create, Kind, ListQuery, RemoveQuery, Update},
    views::{CreatedView, View},
};

/// Creates an auth config.
#[utoipa::path(post, path = IN_TABLE, responses(
    (status = 404, description = "The toolkit does not exist"),
))]
pub(crate) async fn create(
    key: ProjectKey,
    Json(body): Json<Create>,
) -> ApiResult<Created<CreatedView>> {
    let request = new(&key.server, body)?;
    let record = auth_configs::create(key.app(), &key.project, request).await?;
    Ok(Created(record.into()))
}

fn new(server: &Server, body: Create) -> ApiResult<NewAuthConfig> {
    let toolkit = body.toolkit.slug;
    let Some(config) = body.auth_config else {
        return Ok(NewAuthConfig {
            toolkit,
            in_sessions: true,
            ..NewAuthConfig::default()
        });
    };
    let managed = server.branding.rename("use_service_managed_auth");
    let scheme = match config.r#type.as_str() {
        "use_custom_auth" => {
            let scheme = config.auth_scheme;
            Some(scheme.ok_or_else(|| {
                errors::invalid("auth_config.authScheme: is required with use_custom_auth")
            })?)
        }
        kind if *kind == *managed => None,
        kind => {
            let word = server.branding.rename(DEFAULT_BRAND);
            let question = other_word_meant(kind, &word, [&*managed]);
            return Err(errors::invalid(format!(
                "auth_config.type: must be use_custom_auth or {managed}{question}"
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
            own: config.credentials.unwrap_or_default(),
            shared: config
                .shared_connection_fields
                .or(config.shared_credentials)
                .unwrap_or_default(),
            proxy: config.proxy_config.map(Proxy::from),
        },
        restrict_to: config.restrict_to_following_tools,
        tools_for_execution: access.tools_available_for_execution,
        tools_for_connection: access.tools_for_connected_account_creation,
        in_sessions: config.is_enabled_for_tool_router.unwrap_or(true),
    })
}

/// Lists auth configs, newest first.
#[utoipa::path(get, path = IN_TABLE)]
#[expect(deprecated, reason = "older clients send these filters")]
pub(crate) async fn list(
    key: ProjectKey,
    Query(query): Query<ListQuery>,
    page: Page,
) -> ApiResult<Json<Listed<View>>> {
    let mut toolkits = query.toolkit_slug;
    if toolkits.is_empty() {
        toolkits.extend(query.deprecated_app_id);
    }
    let filter = Filter {
        toolkits,
        managed: query.is_service_managed,
        disabled: query.show_disabled.unwrap_or(false),
        status: query.deprecated_status.map(Status::from),
        search: query.search.unwrap_or_default(),
        until: page.as_of()?,
    };
    let found = auth_configs::list(key.app(), &key.project, &filter, page.window(false)?).await?;
    let page = page.with_newest(found.items.first().map(|newest| newest.created_at));
    let items = views(&key, found.items).await?;
    let position = Position::after(&page, found.total, found.next);
    Ok(Json(Listed { items, position }))
}

/// Reads an auth config.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn read(key: ProjectKey, Path(id): Path<AuthConfigId>) -> ApiResult<Json<View>> {
    let record = auth_configs::get(key.app(), &key.project, &id).await?;
    let mut views = views(&key, vec![record]).await?;
    Ok(Json(views.remove(0)))
}

/// Changes an auth config: members that are left out stay as they are.
#[utoipa::path(patch, path = IN_TABLE)]
pub(crate) async fn update(
    key: ProjectKey,
    Path(id): Path<AuthConfigId>,
    Json(body): Json<Update>,
) -> ApiResult<Json<SuccessWithMessage>> {
    let mut own = body.credentials.unwrap_or_default();
    for (name, given) in [("scopes", body.scopes), ("user_scopes", body.user_scopes)] {
        own.extend(given.map(|value| (name.to_owned(), value)));
    }
    let access = body.tool_access_config.unwrap_or_default();
    let changes = Changes {
        managed: body.r#type == Kind::Default,
        name: body.name,
        own,
        shared: body
            .shared_connection_fields
            .or(body.shared_credentials)
            .unwrap_or_default(),
        proxy: body.proxy_config.map(|proxy| proxy.map(Proxy::from)),
        restrict_to: body.restrict_to_following_tools,
        tools_for_execution: access.tools_available_for_execution,
        tools_for_connection: access.tools_for_connected_account_creation,
        in_sessions: body.is_enabled_for_tool_router,
    };
    auth_configs::change(key.app(), &key.project, &id, changes).await?;
    Ok(Json(Success::with("the auth config is changed")))
}

/// Deletes an auth config; tools cannot be run with its accounts any more.
#[utoipa::path(delete, path = IN_TABLE)]
pub(crate) async fn remove(
    key: ProjectKey,
    Path(id): Path<AuthConfigId>,
    Query(query): Query<RemoveQuery>,
) -> ApiResult<Json<SuccessWithMessage>> {
    let revoke = query.revoke_on_delete.unwrap_or(false);
    let server = key.server.clone();
    let removal = run_to_completion(&server.app, async move {
        auth_configs::remove(key.app(), &key.project, &id, revoke).await
    });
    removal.await?;
    Ok(Json(Success::with("the auth config is deleted")))
}

/// Enables or disables an auth config.
#[utoipa::path(patch, path = IN_TABLE)]
pub(crate) async fn set_status(
    key: ProjectKey,
    Path((id, status)): Path<(AuthConfigId, String)>,
) -> ApiResult<Json<SuccessWithMessage>> {
    let (status, message) = match status.to_ascii_uppercase().as_str() {
        "ENABLED" => (Status::Enabled, "the auth config is enabled"),
        "DISABLED" => (Status::Disabled, "the auth config is disabled"),
        _ => return Err(errors::invalid("status: must be ENABLED or DISABLED").into()),
    };
    auth_configs::set_status(key.app(), &key.project, &id, status).await?;
    Ok(Json(Success::with(message)))
}

async fn views(key: &ProjectKey, records: Vec<Record<AuthConfig>>) -> ApiResult<Vec<View>> {
    let app = key.app();
    let ids: Vec<&str> = records.iter().map(|record| &*record.id).collect();
    let accounts = auth_configs::active_accounts(app, &key.project, &ids).await?;
    let mut views = Vec::with_capacity(records.len());
    for record in records {
        let credentials = auth_configs::credentials(app, &record).await?;
        let accounts = accounts.get(&record.id).copied().unwrap_or_default();
        let release = app.catalog.release(&record.body.toolkit, LATEST).ok();
        let release = release.as_deref();
        views.push(View::new(record, &credentials, accounts, release));
    }
    Ok(views)
}
