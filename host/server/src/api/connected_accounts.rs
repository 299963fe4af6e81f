//! Connected accounts.

use std::sync::Arc;

use app::{
    Error,
    clock::iso,
    connections::{self, Filter, NewAccount, Shown, values},
    ids::{AccountId, AuthConfigId},
};
use axum::{extract::State, response::Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::{
    Server,
    auth::ProjectKey,
    extract::{Json, Path, Query},
    respond::{Reply, created, cursor_list, ok},
    shapes,
    words::Words,
};

const STATUSES: [&str; 7] = ["INITIALIZING", "INITIATED", "ACTIVE", "FAILED", "EXPIRED", "INACTIVE", "REVOKED"];

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

/// Connects an account.
#[utoipa::path(
    post,
    path = "/connected_accounts",
    request_body = Create,
    responses(
        (status = 201, description = "The account", body = shapes::NewAccount),
        (status = 404, description = "There is no such auth config"),
        (status = 501, description = "The server cannot do a part of it"),
    ),
)]
pub(crate) async fn create(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Json(body): Json<Create>,
) -> Reply<Response> {
    if body.validate_credentials == Some(true) {
        return Err(Error::Unsupported("`validate_credentials`").into());
    }
    let connection = body.connection;
    let (scheme, val) = connection.state.map_or((None, None), |state| (state.auth_scheme, state.val));
    let mut given = values("connection.data", connection.data)?;
    given.extend(values("connection.state.val", val)?);
    let request = NewAccount {
        auth_config: AuthConfigId::parse(&body.auth_config.id)?,
        user_id: connection.user_id,
        scheme,
        values: given,
        alias: connection.alias,
    };
    let shown = connections::create(&server.app, &key.project, request).await?;
    let account = &shown.record.body;
    created(&json!({
        "id": shown.record.id,
        "connectionData": state(&shown),
        "status": account.status.as_str(),
        "redirect_url": null,
        "redirect_uri": null,
        "deprecated": {"uuid": account.uuid, "authConfigUuid": shown.config_uuid},
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
        ("account_type" = inline(Option<shapes::AccountType>), Query, description = "`PRIVATE` without it; accounts are not shared"),
        shapes::Paging,
    ),
    responses((status = 200, description = "A page of accounts", body = shapes::Listed<shapes::Account>)),
)]
pub(crate) async fn list(key: ProjectKey, State(server): State<Arc<Server>>, query: Query) -> Reply<Response> {
    let statuses = query.list("statuses")?.into_iter().map(|status| status.to_ascii_uppercase()).collect::<Vec<_>>();
    if let Some(unknown) = statuses.iter().find(|status| !STATUSES.contains(&status.as_str())) {
        return Err(Error::invalid(format!("statuses: `{unknown}` is not a status")).into());
    }
    let page = query.page()?;
    let filter = Filter {
        toolkits: query.list("toolkit_slugs")?.into_iter().map(|slug| slug.to_ascii_lowercase()).collect(),
        statuses,
        users: query.list("user_ids")?,
        auth_configs: query.list("auth_config_ids")?,
        ids: query.list("connected_account_ids")?,
        by_change: query.choice("order_by", &["created_at", "updated_at"])? == Some(1),
        ascending: query.choice("order_direction", &["asc", "desc"])? == Some(0),
        until: page.moment()?,
    };
    // Accounts are private to their user until they can be shared.
    let shared = query.choice("account_type", &["PRIVATE", "SHARED", "ALL"])? == Some(1);
    let (found, total) = if shared {
        (Vec::new(), 0)
    } else {
        connections::list(&server.app, &key.project, &filter, page.offset(), page.limit).await?
    };
    let items = found.iter().map(|shown| Value::Object(view(shown, &server.words))).collect();
    // In another order what is new stands elsewhere, or what is changed moves.
    let newest = found.first().filter(|_| !filter.by_change && !filter.ascending);
    let page = page.marked(newest.map(|shown| shown.record.created_at));
    ok(&cursor_list("items", items, page, total))
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
) -> Reply<Response> {
    let shown = connections::get(&server.app, &key.project, &AccountId::parse(&id)?).await?;
    let mut view = view(&shown, &server.words);
    view.insert("params".into(), Value::Object(val(&shown)));
    ok(&view)
}

/// Deletes an account and erases its credential.
#[utoipa::path(
    delete,
    path = "/connected_accounts/{nanoid}",
    responses((status = 200, description = "It is deleted", body = shapes::Done)),
)]
pub(crate) async fn remove(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> Reply<Response> {
    connections::remove(&server.app, &key.project, &AccountId::parse(&id)?).await?;
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
) -> Reply<Response> {
    connections::set_enabled(&server.app, &key.project, &AccountId::parse(&id)?, body.enabled).await?;
    ok(&json!({"success": true}))
}

fn view(shown: &Shown, words: &Words) -> Map<String, Value> {
    let Shown { record, .. } = shown;
    let account = &record.body;
    let mut auth_config = json!({
        "auth_scheme": account.scheme,
        "id": account.auth_config,
        "is_disabled": shown.config_disabled,
        words.say("is_service_managed"): shown.managed,
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
        "is_disabled": account.status == connections::Status::Inactive,
        "deprecated": {"labels": [], "uuid": account.uuid},
        "word_id": null,
        "alias": account.alias,
        "experimental": {"account_type": "PRIVATE"},
        "authScheme": account.scheme,
    });
    match view {
        Value::Object(view) => view,
        _ => Map::new(),
    }
}

fn state(shown: &Shown) -> Value {
    json!({"authScheme": shown.record.body.scheme, "val": val(shown)})
}

fn val(shown: &Shown) -> Map<String, Value> {
    let mut val = shown.values.clone();
    val.insert("status".into(), shown.record.body.status.as_str().into());
    val
}
