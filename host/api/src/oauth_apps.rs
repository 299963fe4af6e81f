//! The operator's OAuth apps at providers. Auth configs of the managed kind connect accounts with
//! them.

use app::{
    Record,
    accounts::oauth_apps::{self, NewOauthApp, OauthApp},
    core::clock::iso,
};
use http::{ApiResult, Deleted, IN_TABLE, Json, OrganizationKey, Path};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[schema(as = SetOauthApp)]
pub(crate) struct Set {
    client_id: String,
    /// Left out for a client without one.
    client_secret: Option<String>,
    /// Scopes requested for every connection, in addition to those of the toolkit.
    scopes: Option<Vec<String>>,
}

view! {
    /// The operator's OAuth app at a provider, without its secret.
    #[schema(as = OauthApp)]
    pub(crate) struct View from record: Record<OauthApp> {
        /// Slug of the toolkit.
        toolkit: String = record.id,
        client_id: String = record.body.client_id,
        scopes: Vec<String> = record.body.scopes,
        #[schema(format = DateTime)] created_at: String = iso(record.created_at),
        #[schema(format = DateTime)] updated_at: String = iso(record.updated_at),
    }
}

/// All OAuth apps.
#[derive(Serialize, ToSchema)]
#[schema(as = OauthApps)]
pub(crate) struct ListView {
    items: Vec<View>,
}

/// Lists the OAuth apps by toolkit, without their secrets.
#[utoipa::path(get, path = IN_TABLE, operation_id = "list_oauth_apps")]
pub(crate) async fn list(key: OrganizationKey) -> ApiResult<Json<ListView>> {
    let apps = oauth_apps::list(key.app()).await?;
    let items = apps.into_iter().map(View::from).collect();
    Ok(Json(ListView { items }))
}

/// Sets the OAuth app of a toolkit and replaces an earlier one.
///
/// Projects can then use the managed kind of auth config.
#[utoipa::path(put, path = IN_TABLE, operation_id = "set_oauth_app", responses(
    (status = 404, description = "The toolkit does not exist"),
))]
pub(crate) async fn set(
    key: OrganizationKey,
    Path(slug): Path<String>,
    Json(body): Json<Set>,
) -> ApiResult<Json<View>> {
    let new = NewOauthApp {
        toolkit: slug,
        client_id: body.client_id,
        client_secret: body.client_secret.unwrap_or_default(),
        scopes: body.scopes.unwrap_or_default(),
    };
    let record = oauth_apps::set(key.app(), new).await?;
    Ok(Json(record.into()))
}

/// Removes an OAuth app. Accounts that were connected with it work until their tokens expire.
#[utoipa::path(delete, path = IN_TABLE, operation_id = "remove_oauth_app")]
pub(crate) async fn remove(
    key: OrganizationKey,
    Path(slug): Path<String>,
) -> ApiResult<Json<Deleted>> {
    oauth_apps::remove(key.app(), &slug).await?;
    Ok(Json(Deleted::SUCCESS_STATUS))
}
