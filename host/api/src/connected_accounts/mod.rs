//! Connected accounts.

mod requests;
pub(crate) mod sharing;
mod status;
mod views;

use std::sync::Arc;

use app::{
    accounts::{self, Changes, NewAccount, NewLink},
    core::ids::{AccountId, AuthConfigId},
    events::AccountData,
    lifecycle,
};
use http::{
    ApiResult, Branding, Created, IN_TABLE, Json, Listed, OptionalJson, Page, Path, ProjectKey,
    Query, Success, branding::Branded, run_to_completion,
};

use self::{
    requests::{
        Complete, Create, Link, ListQuery, Refresh, RefreshQuery, RemoveQuery, SetStatus, Update,
    },
    views::{
        CompletedView, CreatedView, DetailView, LinkView, RefreshedView, RevokedView, UpdatedView,
        View,
    },
};

/// Returns the function that writes an account as [`read`] returns it, for events.
pub fn event_data(operator_word: &str) -> AccountData {
    let branding = Branding::new(operator_word);
    Arc::new(move |account| serde_json::to_vec(&Branded(&DetailView::from(account), &branding)))
}

/// Connects an account. If its user has to authorize at the provider, `redirect_url` starts that.
#[utoipa::path(post, path = IN_TABLE, responses(
    (status = 404, description = "The auth config does not exist"),
    (status = 501, description = "The toolkit has no request that verifies a credential"),
))]
pub(crate) async fn create(
    key: ProjectKey,
    Json(body): Json<Create>,
) -> ApiResult<Created<CreatedView>> {
    let request = new_account(body)?;
    let account = accounts::create(key.app(), &key.project, request).await?;
    Ok(Created(account.into()))
}

fn new_account(body: Create) -> ApiResult<NewAccount> {
    let connection = body.connection;
    let state = connection.state.unwrap_or_default();
    let mut values = connection.data.unwrap_or_default();
    values.extend(state.val.unwrap_or_default());
    let callback_url = connection.callback_url.or(connection.redirect_uri);
    Ok(NewAccount {
        auth_config: AuthConfigId::parse(&body.auth_config.id)
            .map_err(|error| error.at("auth_config.id"))?,
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
    Query(query): Query<ListQuery>,
    page: Page,
) -> ApiResult<Json<Listed<View>>> {
    let filter = query.into_filter(page.as_of()?);
    let window = page.window(filter.by_change)?;
    let found = accounts::list(key.app(), &key.project, &filter, window).await?;
    // In any other order, new or changed accounts can move between pages, so no time is recorded.
    let newest = found
        .items
        .first()
        .filter(|_| !filter.by_change && !filter.ascending);
    let page = page.with_newest(newest.map(|newest| newest.record.created_at));
    Ok(Json(Listed::after(found, &page)))
}

/// Reads an account.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn read(
    key: ProjectKey,
    Path(id): Path<AccountId>,
) -> ApiResult<Json<DetailView>> {
    let account = accounts::get(key.app(), &key.project, &id).await?;
    Ok(Json(account.into()))
}

/// Creates an account and the URL of a page on which its user connects it.
#[utoipa::path(post, path = IN_TABLE, responses(
    (status = 404, description = "The auth config does not exist"),
))]
pub(crate) async fn link(key: ProjectKey, Json(body): Json<Link>) -> ApiResult<Created<LinkView>> {
    let request = NewLink {
        auth_config: AuthConfigId::parse(&body.auth_config_id)
            .map_err(|error| error.at("auth_config_id"))?,
        user_id: body.user_id,
        callback_url: body.callback_url.filter(|url| !url.is_empty()),
        values: body.connection_data.unwrap_or_default(),
        alias: body.alias,
        sharing: body.experimental.unwrap_or_default().into(),
    };
    let link = accounts::link(key.app(), &key.project, request).await?;
    Ok(Created(link.into()))
}

/// Confirms that the user who authorized at a provider is the right one.
///
/// The account becomes active.
#[utoipa::path(post, path = IN_TABLE, responses(
    (status = 404, description = "The session does not exist or has ended"),
))]
pub(crate) async fn complete(
    key: ProjectKey,
    Json(body): Json<Complete>,
) -> ApiResult<Json<CompletedView>> {
    let server = key.server.clone();
    let completion = run_to_completion(&server.app, async move {
        accounts::complete(key.app(), &key.project, &body.session_uri, &body.user_id).await
    });
    Ok(Json(completion.await?.into()))
}

/// Starts a new connection of an account.
///
/// An active account keeps its current credential until the new connection is complete.
#[utoipa::path(post, path = IN_TABLE, responses(
    (status = 501, description = "The toolkit has no request that verifies a credential"),
))]
pub(crate) async fn refresh(
    key: ProjectKey,
    Path(id): Path<AccountId>,
    Query(query): Query<RefreshQuery>,
    OptionalJson(body): OptionalJson<Refresh>,
) -> ApiResult<Json<RefreshedView>> {
    let callback_url = body
        .redirect_url
        .or(body.body_redirect_url)
        .filter(|url| !url.is_empty())
        .or(query.redirect_url);
    let mut started = accounts::reconnect(key.app(), &key.project, &id, callback_url).await?;
    if started.redirect_url.is_none() && body.validate_credentials == Some(true) {
        started.status = accounts::verify_credential(key.app(), &key.project, &id).await?;
    }
    Ok(Json(RefreshedView::new(&id, started)))
}

/// Changes the alias of an account, its sharing, or fields of a credential that a user entered.
#[utoipa::path(patch, path = IN_TABLE)]
pub(crate) async fn update(
    key: ProjectKey,
    Path(id): Path<AccountId>,
    Json(body): Json<Update>,
) -> ApiResult<Json<UpdatedView>> {
    let state = body.connection.map(|connection| connection.state);
    let changes = Changes {
        alias: body.alias,
        fields: state.map(|state| (state.auth_scheme, state.val)),
        sharing: body.experimental.unwrap_or_default().into(),
    };
    let status = accounts::change(key.app(), &key.project, &id, changes).await?;
    Ok(Json(UpdatedView::new(&id, status)))
}

/// Revokes an account's credential, at the provider too if the provider supports it.
#[utoipa::path(post, path = IN_TABLE, responses(
    (status = 409, description = "The credential was revoked before"),
))]
pub(crate) async fn revoke(
    key: ProjectKey,
    Path(id): Path<AccountId>,
) -> ApiResult<Json<RevokedView>> {
    let revoked = accounts::revoke(key.app(), &key.project, &id).await?;
    Ok(Json(RevokedView::new(&id, revoked)))
}

/// Deletes an account with its trigger instances, and erases its credential.
#[utoipa::path(delete, path = IN_TABLE)]
pub(crate) async fn remove(
    key: ProjectKey,
    Path(id): Path<AccountId>,
    Query(query): Query<RemoveQuery>,
) -> ApiResult<Json<Success>> {
    let revoke = query.revoke_on_delete.unwrap_or(false);
    lifecycle::remove_account(key.app(), &key.project, &id, revoke).await?;
    Ok(Json(Success::WITHOUT_MESSAGE))
}

/// Pauses or resumes an account.
#[utoipa::path(patch, path = IN_TABLE)]
pub(crate) async fn set_status(
    key: ProjectKey,
    Path(id): Path<AccountId>,
    Json(body): Json<SetStatus>,
) -> ApiResult<Json<Success>> {
    accounts::set_enabled(key.app(), &key.project, &id, body.enabled).await?;
    Ok(Json(Success::WITHOUT_MESSAGE))
}
