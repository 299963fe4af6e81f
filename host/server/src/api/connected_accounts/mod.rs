//! Connected accounts.

mod requests;
mod sharing;
mod status;
mod views;

use std::sync::Arc;

use app::{
    accounts::{self, Changes, NewAccount, NewLink},
    core::ids::{AccountId, AuthConfigId},
};
use axum::extract::State;

use self::{
    requests::{
        Complete, Create, Link, ListQuery, Refresh, RefreshQuery, RemoveQuery, SetStatus, Update,
    },
    views::{
        CompletedView, CreatedView, DetailView, LinkView, RefreshedView, RevokedView, UpdatedView,
        View,
    },
};
use crate::{
    Server,
    api::object,
    http::{
        auth::ProjectKey,
        body::OptionalJson,
        error::ApiResult,
        operation::run_to_completion,
        page::{Listed, Page},
        path::Path,
        query::Query,
        reply::{Created, Json, Success},
        signature::IN_TABLE,
    },
};

/// Connects an account. If its user has to authorize at the provider, `redirect_url` starts that.
#[utoipa::path(
    post,
    path = IN_TABLE,
    responses(
        (status = 404, description = "The auth config does not exist"),
        (status = 501, description = "The toolkit has no request that verifies a credential"),
    ),
)]
pub(crate) async fn create(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Json(body): Json<Create>,
) -> ApiResult<Created<CreatedView>> {
    let request = new_account(body)?;
    let account = accounts::create(&server.app, &key.project, request).await?;
    Ok(Created(account.into()))
}

fn new_account(body: Create) -> ApiResult<NewAccount> {
    let connection = body.connection;
    let state = connection.state.unwrap_or_default();
    let mut values = object("connection.data", connection.data)?;
    values.extend(object("connection.state.val", state.val)?);
    let callback_url = connection.callback_url.or(connection.redirect_uri);
    Ok(NewAccount {
        auth_config: AuthConfigId::parse(&body.auth_config.id)?,
        user_id: connection.user_id,
        scheme: state.auth_scheme,
        values,
        alias: connection.alias,
        sharing: connection.experimental.unwrap_or_default().into(),
        callback_url: callback_url.filter(|url| !url.is_empty()),
        validate: body.validate_credentials == Some(true),
    })
}

/// Lists accounts.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn list(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Query(query): Query<ListQuery>,
    page: Page,
) -> ApiResult<Json<Listed<View>>> {
    let filter = query.into_filter(page.as_of()?);
    let window = page.window(filter.by_change)?;
    let found = accounts::list(&server.app, &key.project, &filter, window).await?;
    // In any other order, new or changed accounts can move between pages, so no time is recorded.
    let newest = found
        .items
        .first()
        .filter(|_| !filter.by_change && !filter.ascending);
    let page = page.with_newest(newest.map(|newest| newest.record.created_at));
    let items = found.items.into_iter().map(View::from).collect();
    Ok(Json(Listed::after(items, &page, found.total, found.next)))
}

/// Reads an account.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn read(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> ApiResult<Json<DetailView>> {
    let account = accounts::get(&server.app, &key.project, &AccountId::parse(&id)?).await?;
    Ok(Json(account.into()))
}

/// Creates an account and the URL of a page on which its user connects it.
#[utoipa::path(
    post,
    path = IN_TABLE,
    responses((status = 404, description = "The auth config does not exist")),
)]
pub(crate) async fn link(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Json(body): Json<Link>,
) -> ApiResult<Created<LinkView>> {
    let request = NewLink {
        auth_config: AuthConfigId::parse(&body.auth_config_id)?,
        user_id: body.user_id,
        callback_url: body.callback_url.filter(|url| !url.is_empty()),
        values: object("connection_data", body.connection_data)?,
        alias: body.alias,
        sharing: body.experimental.unwrap_or_default().into(),
    };
    let link = accounts::link(&server.app, &key.project, request).await?;
    Ok(Created(link.into()))
}

/// Confirms that the user who authorized at a provider is the right one.
///
/// The account becomes active.
#[utoipa::path(
    post,
    path = IN_TABLE,
    responses((status = 404, description = "The session does not exist or has ended")),
)]
pub(crate) async fn complete(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Json(body): Json<Complete>,
) -> ApiResult<Json<CompletedView>> {
    let completing = async move {
        accounts::complete(&server.app, &key.project, &body.session_uri, &body.user_id).await
    };
    let completion = run_to_completion(completing).await?;
    Ok(Json(completion.into()))
}

/// Starts a new connection of an account.
///
/// An active account keeps its current credential until the new connection is complete.
#[utoipa::path(
    post,
    path = IN_TABLE,
    responses((status = 501, description = "The toolkit has no request that verifies a credential")),
)]
pub(crate) async fn refresh(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    Query(query): Query<RefreshQuery>,
    OptionalJson(body): OptionalJson<Refresh>,
) -> ApiResult<Json<RefreshedView>> {
    let id = AccountId::parse(&id)?;
    let callback_url = body.redirect_url.filter(|url| !url.is_empty());
    let callback_url = callback_url.or(query.redirect_url);
    let mut started = accounts::reconnect(&server.app, &key.project, &id, callback_url).await?;
    if started.redirect_url.is_none() && body.validate_credentials == Some(true) {
        started.status = accounts::verify_credential(&server.app, &key.project, &id).await?;
    }
    Ok(Json(RefreshedView::new(&id, started)))
}

/// Changes the alias of an account, its sharing, or fields of a credential that a user entered.
#[utoipa::path(patch, path = IN_TABLE)]
pub(crate) async fn update(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    Json(body): Json<Update>,
) -> ApiResult<Json<UpdatedView>> {
    let id = AccountId::parse(&id)?;
    let state = body.connection.map(|connection| connection.state);
    let changes = Changes {
        alias: body.alias,
        fields: state.map(|state| (state.auth_scheme, state.val)),
        sharing: body.experimental.unwrap_or_default().into(),
    };
    let status = accounts::change(&server.app, &key.project, &id, changes).await?;
    Ok(Json(UpdatedView::new(&id, status)))
}

/// Revokes an account's credential, at the provider too if the provider supports it.
#[utoipa::path(post, path = IN_TABLE)]
pub(crate) async fn revoke(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> ApiResult<Json<RevokedView>> {
    let id = AccountId::parse(&id)?;
    let revoked = accounts::revoke(&server.app, &key.project, &id).await?;
    Ok(Json(RevokedView::new(&id, revoked)))
}

/// Deletes an account and erases its credential.
#[utoipa::path(delete, path = IN_TABLE)]
pub(crate) async fn remove(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    Query(query): Query<RemoveQuery>,
) -> ApiResult<Json<Success>> {
    let id = AccountId::parse(&id)?;
    let revoke = query.revoke_on_delete.unwrap_or(false);
    accounts::remove(&server.app, &key.project, &id, revoke).await?;
    Ok(Json(Success::OK))
}

/// Pauses or resumes an account.
#[utoipa::path(patch, path = IN_TABLE)]
pub(crate) async fn set_status(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    Json(body): Json<SetStatus>,
) -> ApiResult<Json<Success>> {
    let id = AccountId::parse(&id)?;
    accounts::set_enabled(&server.app, &key.project, &id, body.enabled).await?;
    Ok(Json(Success::OK))
}
