//! Connected accounts.

use std::sync::Arc;

use app::{
    Error,
    clock::iso,
    connections::{
        self, AccountType, AccountView, AclChange, Changes, Filter, NewAccount, NewLink, Sharing,
        SharingChange, Status, parse_object,
    },
    ids::{AccountId, AuthConfigId},
};
use axum::{extract::State, response::Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::{
    Server,
    doors::link,
    http::{
        auth::ProjectKey, branding::Branding, error::ApiResult, path::Path, reply::Json,
        scaffold::RawQuery, scaffold::created, scaffold::ok, scaffold::record_list,
    },
    shapes,
};

#[derive(Deserialize, ToSchema)]
#[schema(as = ConnectAccount)]
pub(crate) struct Create {
    auth_config: ConfigId,
    connection: Connection,
    #[serde(default)]
    validate_credentials: Option<bool>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = AuthConfigId)]
struct ConfigId {
    id: String,
}

#[derive(Deserialize, ToSchema)]
struct Connection {
    #[serde(default)]
    state: Option<StateBody>,
    /// The older spelling of `state.val`.
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    data: Option<Value>,
    #[serde(default)]
    user_id: Option<String>,
    #[serde(default)]
    alias: Option<String>,
    /// URL to which the user's browser is redirected at the end.
    #[serde(default)]
    callback_url: Option<String>,
    /// The older spelling of `callback_url`.
    #[serde(default)]
    redirect_uri: Option<String>,
    #[serde(default)]
    experimental: Option<Shared>,
}

/// The users that may use an account in addition to its own user. In a change, absent members stay
/// as they are.
#[derive(Deserialize, ToSchema)]
#[schema(as = ShareAccount)]
struct Shared {
    /// Without it `PRIVATE`: only the account's own user.
    #[serde(default)]
    account_type: Option<Kind>,
    /// Only for a shared account; without it, only the account's own user may use the shared
    /// account.
    #[serde(default)]
    acl_config_for_shared: Option<Lists>,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schema(as = SharedOrNot)]
enum Kind {
    Private,
    Shared,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = SharedWith)]
struct Lists {
    /// True if all users may use it, except those in `not_allowed_user_ids`.
    #[serde(default)]
    allow_all_users: Option<bool>,
    #[schema(max_items = 1000)]
    #[serde(default)]
    allowed_user_ids: Option<Vec<String>>,
    /// Users that are never allowed, regardless of the other members.
    #[schema(max_items = 1000)]
    #[serde(default)]
    not_allowed_user_ids: Option<Vec<String>>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = ConnectionState)]
struct StateBody {
    #[serde(default, rename = "authScheme")]
    auth_scheme: Option<String>,
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    val: Option<Value>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = SetAccountStatus)]
pub(crate) struct SetStatus {
    enabled: bool,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = LinkAccount)]
pub(crate) struct Link {
    auth_config_id: String,
    user_id: String,
    #[serde(default)]
    callback_url: Option<String>,
    /// Fields that are known already; the user is not asked for the secret ones of them.
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    connection_data: Option<Value>,
    #[serde(default)]
    alias: Option<String>,
    #[serde(default)]
    experimental: Option<Shared>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = CompleteConnection)]
pub(crate) struct Complete {
    session_uri: String,
    user_id: String,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = RefreshAccount)]
pub(crate) struct Refresh {
    /// URL to which the user's browser is redirected at the end.
    #[serde(default)]
    redirect_url: Option<String>,
    #[serde(default)]
    validate_credentials: Option<bool>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = UpdateAccount)]
pub(crate) struct Update {
    /// An empty text clears it.
    #[serde(default)]
    alias: Option<String>,
    #[serde(default)]
    connection: Option<UpdatedConnection>,
    #[serde(default)]
    experimental: Option<Shared>,
}

#[derive(Deserialize, ToSchema)]
struct UpdatedConnection {
    state: UpdatedState,
}

#[derive(Deserialize, ToSchema)]
struct UpdatedState {
    #[serde(rename = "authScheme")]
    auth_scheme: String,
    /// Merged into the existing fields; null clears a field.
    val: Map<String, Value>,
}

/// Connects an account. If its user has to authorize at the provider, `redirect_url` starts that.
#[utoipa::path(
    post,
    path = "/connected_accounts",
    request_body = Create,
    responses(
        (status = 201, description = "The account", body = shapes::NewAccount),
        (status = 404, description = "There is no such auth config"),
        (status = 501, description = "The toolkit has no way to tell whether a credential works"),
    ),
)]
pub(crate) async fn create(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Json(body): Json<Create>,
) -> ApiResult<Response> {
    let connection = body.connection;
    let (scheme, val) = connection
        .state
        .map_or((None, None), |state| (state.auth_scheme, state.val));
    let mut given = parse_object("connection.data", connection.data)?;
    given.extend(parse_object("connection.state.val", val)?);
    let request = NewAccount {
        auth_config: AuthConfigId::parse(&body.auth_config.id)?,
        user_id: connection.user_id,
        scheme,
        values: given,
        alias: connection.alias,
        sharing: sharing(connection.experimental),
        callback_url: connection
            .callback_url
            .or(connection.redirect_uri)
            .filter(|url| !url.is_empty()),
        validate: body.validate_credentials == Some(true),
    };
    let shown = connections::create(&server.app, &key.project, request).await?;
    let account = &shown.record.body;
    created(&json!({
        "id": shown.record.id,
        "connectionData": state(&shown),
        "status": account.status.as_str(),
        "redirect_url": shown.redirect_url,
        "redirect_uri": shown.redirect_url,
        "deprecated": {"uuid": account.uuid, "authConfigUuid": shown.config_uuid},
        "experimental": shared(&account.sharing),
    }))
}

/// Lists accounts.
#[utoipa::path(
    get,
    path = "/connected_accounts",
    params(
        ("toolkit_slugs" = Option<Vec<String>>, Query, explode = false, description = "Of these toolkits"),
        ("statuses" = inline(Option<Vec<shapes::AccountStatus>>), Query, explode = false, description = "In one of these states"),
        ("user_ids" = Option<Vec<String>>, Query, explode = false, description = "Of these users"),
        ("auth_config_ids" = Option<Vec<String>>, Query, explode = false, description = "Of these auth configs"),
        ("connected_account_ids" = Option<Vec<String>>, Query, explode = false, description = "These accounts"),
        ("order_by" = inline(Option<shapes::AccountOrder>), Query, description = "`created_at` without it"),
        ("order_direction" = inline(Option<shapes::Direction>), Query, description = "`desc` without it"),
        ("account_type" = inline(Option<shapes::AccountType>), Query, description = "`PRIVATE` without it"),
        shapes::Paging,
    ),
    responses((status = 200, description = "A page of accounts", body = shapes::Listed<shapes::Account>)),
)]
pub(crate) async fn list(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    query: RawQuery,
) -> ApiResult<Response> {
    let statuses = query
        .list("statuses")?
        .into_iter()
        .map(|status| status.to_ascii_uppercase())
        .collect::<Vec<_>>();
    if let Some(unknown) = statuses.iter().find(|given| {
        !Status::ALL
            .iter()
            .any(|known| known.as_str() == given.as_str())
    }) {
        return Err(Error::invalid(format!("statuses: `{unknown}` is not a status")).into());
    }
    let page = query.page()?;
    let account_type = match query.choice("account_type", &["PRIVATE", "SHARED", "ALL"])? {
        None | Some(0) => Some(AccountType::Private),
        Some(1) => Some(AccountType::Shared),
        Some(_) => None,
    };
    let filter = Filter {
        toolkits: query
            .list("toolkit_slugs")?
            .into_iter()
            .map(|slug| slug.to_ascii_lowercase())
            .collect(),
        statuses,
        users: query.list("user_ids")?,
        auth_configs: query.list("auth_config_ids")?,
        ids: query.list("connected_account_ids")?,
        account_type,
        by_change: query.choice("order_by", &["created_at", "updated_at"])? == Some(1),
        ascending: query.choice("order_direction", &["asc", "desc"])? == Some(0),
        until: page.as_of()?,
    };
    let found = connections::list(
        &server.app,
        &key.project,
        &filter,
        page.window(filter.by_change)?,
    )
    .await?;
    let items = found
        .items
        .iter()
        .map(|shown| Value::Object(view(shown, &server.branding)))
        .collect();
    // In any other order, new or changed accounts can move between pages, so no time is recorded.
    let newest = found
        .items
        .first()
        .filter(|_| !filter.by_change && !filter.ascending);
    let page = page.with_newest(newest.map(|shown| shown.record.created_at));
    ok(&record_list("items", items, page, found.total, found.next))
}

/// Reads an account.
#[utoipa::path(
    get,
    path = "/connected_accounts/{nanoid}",
    responses((status = 200, description = "The account", body = shapes::AccountDetail)),
)]
pub(crate) async fn read(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> ApiResult<Response> {
    let shown = connections::get(&server.app, &key.project, &AccountId::parse(&id)?).await?;
    let mut view = view(&shown, &server.branding);
    view.insert("params".into(), Value::Object(val(&shown)));
    ok(&view)
}

/// Creates an account and the URL of a page on which its user connects it.
#[utoipa::path(
    post,
    path = "/connected_accounts/link",
    request_body = Link,
    responses(
        (status = 201, description = "The way to the page, which ends", body = shapes::Link),
        (status = 404, description = "There is no such auth config"),
    ),
)]
pub(crate) async fn link(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Json(body): Json<Link>,
) -> ApiResult<Response> {
    let request = NewLink {
        auth_config: AuthConfigId::parse(&body.auth_config_id)?,
        user_id: body.user_id,
        callback_url: body.callback_url.filter(|url| !url.is_empty()),
        values: parse_object("connection_data", body.connection_data)?,
        alias: body.alias,
        sharing: sharing(body.experimental),
    };
    let made = connections::link(&server.app, &key.project, request).await?;
    created(&json!({
        "link_token": made.token,
        "redirect_url": made.url,
        "expires_at": iso(made.expires_at),
        "connected_account_id": made.account,
        "experimental": shared(&made.sharing),
    }))
}

/// Confirms that the user who authorized at a provider is the right one.
///
/// The account becomes active.
#[utoipa::path(
    post,
    path = "/connected_accounts/complete_auth",
    request_body = Complete,
    responses(
        (status = 200, description = "The account is active", body = shapes::Completed),
        (status = 404, description = "Nothing waits to be completed by this name"),
    ),
)]
pub(crate) async fn complete(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Json(body): Json<Complete>,
) -> ApiResult<Response> {
    let completing = async move {
        connections::complete(&server.app, &key.project, &body.session_uri, &body.user_id).await
    };
    let done = link::to_the_end(completing).await?;
    ok(&json!({"connected_account_id": done.0, "toolkit_slug": done.1}))
}

/// Starts a new connection of an account.
///
/// An active account keeps its current credential until the new connection is complete.
#[utoipa::path(
    post,
    path = "/connected_accounts/{nanoid}/refresh",
    params(("redirect_url" = Option<String>, Query, description = "Where the user's browser goes in the end")),
    request_body = Option<Refresh>,
    responses(
        (status = 200, description = "Where the user goes, if anywhere", body = shapes::Refreshed),
        (status = 501, description = "The toolkit has no way to tell whether a credential works"),
    ),
)]
pub(crate) async fn refresh(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    query: RawQuery,
    Json(body): Json<Refresh>,
) -> ApiResult<Response> {
    let id = AccountId::parse(&id)?;
    let in_query = query.text("redirect_url")?.map(str::to_owned);
    let callback = body.redirect_url.filter(|url| !url.is_empty()).or(in_query);
    let (mut status, url) =
        connections::reconnect(&server.app, &key.project, &id, callback).await?;
    if url.is_none() && body.validate_credentials == Some(true) {
        status = connections::verify_credential(&server.app, &key.project, &id).await?;
    }
    ok(&json!({"id": id, "status": status.as_str(), "redirect_url": url}))
}

/// Changes the alias of an account, its sharing, or fields of a credential that a user entered.
#[utoipa::path(
    patch,
    path = "/connected_accounts/{nanoid}",
    request_body = Update,
    responses((status = 200, description = "It is changed", body = shapes::Updated)),
)]
pub(crate) async fn update(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    Json(body): Json<Update>,
) -> ApiResult<Response> {
    let id = AccountId::parse(&id)?;
    let fields = body
        .connection
        .map(|connection| (connection.state.auth_scheme, connection.state.val));
    let changes = Changes {
        alias: body.alias,
        fields,
        sharing: sharing(body.experimental),
    };
    let status = connections::change(&server.app, &key.project, &id, changes).await?;
    ok(&json!({"success": true, "id": id, "status": status.as_str()}))
}

/// Revokes an account's credential, at the provider too if the provider supports it.
#[utoipa::path(
    post,
    path = "/connected_accounts/{nanoid}/revoke",
    responses((status = 200, description = "It is taken back", body = shapes::Revoked)),
)]
pub(crate) async fn revoke(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> ApiResult<Response> {
    let id = AccountId::parse(&id)?;
    let revoked = connections::revoke(&server.app, &key.project, &id).await?;
    ok(&json!({
        "revoked_tokens": revoked,
        "connected_account": {"id": id, "status": Status::Revoked.as_str()},
    }))
}

/// Deletes an account and erases its credential.
#[utoipa::path(
    delete,
    path = "/connected_accounts/{nanoid}",
    params(("revoke_on_delete" = Option<bool>, Query, description = "The application is told to forget its tokens, too")),
    responses((status = 200, description = "It is deleted", body = shapes::Done)),
)]
pub(crate) async fn remove(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    query: RawQuery,
) -> ApiResult<Response> {
    let revoke = query.boolean("revoke_on_delete")?.unwrap_or(false);
    connections::remove(&server.app, &key.project, &AccountId::parse(&id)?, revoke).await?;
    ok(&json!({"success": true}))
}

/// Pauses or resumes an account.
#[utoipa::path(
    patch,
    path = "/connected_accounts/{nanoid}/status",
    request_body = SetStatus,
    responses((status = 200, description = "It is paused or resumed", body = shapes::Done)),
)]
pub(crate) async fn set_status(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    Json(body): Json<SetStatus>,
) -> ApiResult<Response> {
    connections::set_enabled(
        &server.app,
        &key.project,
        &AccountId::parse(&id)?,
        body.enabled,
    )
    .await?;
    ok(&json!({"success": true}))
}

fn view(shown: &AccountView, branding: &Branding) -> Map<String, Value> {
    let AccountView { record, .. } = shown;
    let account = &record.body;
    let mut auth_config = json!({
        "auth_scheme": account.scheme,
        "id": account.auth_config,
        "is_disabled": shown.config_disabled,
        branding.rename("is_service_managed"): shown.managed,
    });
    if let Some(uuid) = shown.config_uuid {
        auth_config["deprecated"] = json!({"uuid": uuid});
    }
    let view = json!({
        "toolkit": {"slug": account.toolkit},
        "auth_config": auth_config,
        "id": record.id,
        "user_id": account.user_id,
        "status": account.status.as_str(),
        "created_at": iso(record.created_at),
        "updated_at": iso(record.updated_at),
        "state": state(shown),
        "data": val(shown),
        "status_reason": account.status_reason,
        "is_disabled": account.status == Status::Inactive,
        "deprecated": {"labels": [], "uuid": account.uuid},
        "word_id": null,
        "alias": account.alias,
        "experimental": shared(&account.sharing),
        "authScheme": account.scheme,
    });
    match view {
        Value::Object(view) => view,
        _ => Map::new(),
    }
}

/// Reads the sharing of an account from a request.
fn sharing(given: Option<Shared>) -> SharingChange {
    let Some(Shared {
        account_type,
        acl_config_for_shared,
    }) = given
    else {
        return SharingChange::default();
    };
    let account_type = account_type.map(|kind| match kind {
        Kind::Private => AccountType::Private,
        Kind::Shared => AccountType::Shared,
    });
    let acl = acl_config_for_shared.map(|lists| AclChange {
        allow_all_users: lists.allow_all_users,
        allowed_user_ids: lists.allowed_user_ids,
        not_allowed_user_ids: lists.not_allowed_user_ids,
    });
    SharingChange { account_type, acl }
}

/// Returns the sharing of an account as responses show it.
fn shared(sharing: &Sharing) -> Value {
    match sharing.account_type {
        AccountType::Private => json!({"account_type": sharing.account_type}),
        AccountType::Shared => json!(sharing),
    }
}

fn state(shown: &AccountView) -> Value {
    json!({"authScheme": shown.record.body.scheme, "val": val(shown)})
}

fn val(shown: &AccountView) -> Map<String, Value> {
    let mut val = shown.values.clone();
    let account = &shown.record.body;
    val.insert("status".into(), account.status.as_str().into());
    if let Some(failure) = &account.failure {
        val.insert("error".into(), failure.error.as_str().into());
        val.insert(
            "error_description".into(),
            failure.description.as_str().into(),
        );
    }
    if account.status == Status::Expired {
        val.insert("expired_at".into(), iso(shown.record.updated_at).into());
    }
    val
}
