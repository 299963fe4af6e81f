//! Webhook endpoints: addresses at which providers deliver events.

mod types;

use app::{
    core::ids::EndpointId,
    events::endpoints::{self, ValueChange},
};
use http::{ApiResult, CreatedOrExisting, IN_TABLE, Json, Path, ProjectKey, Query, Success};

use self::types::{Create, Items, ListQuery, SetValues, SetupQuery, SetupView, Summary, View};

/// Creates an endpoint (201), or finds the one with the same toolkit and client id (200).
#[utoipa::path(post, path = IN_TABLE, responses(
    (status = 404, description = "The toolkit does not exist"),
    (status = 422, description = "The project has too many endpoints"),
))]
pub(crate) async fn create(
    key: ProjectKey,
    Json(body): Json<Create>,
) -> ApiResult<CreatedOrExisting<View>> {
    let Create {
        toolkit_slug,
        client_id,
    } = body;
    let (endpoint, is_new) =
        endpoints::create(key.app(), &key.project, &toolkit_slug, &client_id).await?;
    Ok(CreatedOrExisting(is_new, endpoint.into()))
}

/// Lists the endpoints, newest first.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn list(
    key: ProjectKey,
    Query(query): Query<ListQuery>,
) -> ApiResult<Json<Items>> {
    let toolkit = query.toolkit_slug.as_deref();
    let found = endpoints::list(key.app(), &key.project, toolkit).await?;
    let items = found.into_iter().map(Summary::from).collect();
    Ok(Json(Items { items }))
}

/// Lists the values that endpoints of a toolkit can have.
#[utoipa::path(get, path = IN_TABLE, responses(
    (status = 404, description = "The toolkit does not exist"),
))]
pub(crate) async fn setup(
    key: ProjectKey,
    Query(query): Query<SetupQuery>,
) -> ApiResult<Json<SetupView>> {
    let fields = endpoints::setup_fields(key.app(), &query.toolkit_slug)?;
    let toolkit_slug = query.toolkit_slug.to_ascii_lowercase();
    Ok(Json(SetupView::new(toolkit_slug, fields)))
}

/// Reads an endpoint.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn read(key: ProjectKey, Path(id): Path<EndpointId>) -> ApiResult<Json<View>> {
    let endpoint = endpoints::get(key.app(), &key.project, &id).await?;
    Ok(Json(endpoint.into()))
}

/// Changes values of an endpoint: those that are left out stay as they are.
#[utoipa::path(patch, path = IN_TABLE)]
pub(crate) async fn update(
    key: ProjectKey,
    Path(id): Path<EndpointId>,
    Json(body): Json<SetValues>,
) -> ApiResult<Json<View>> {
    set(&key, &id, &body, ValueChange::Merge).await
}

/// Sets all values of an endpoint: those that are left out are erased.
#[utoipa::path(post, path = IN_TABLE)]
pub(crate) async fn replace(
    key: ProjectKey,
    Path(id): Path<EndpointId>,
    Json(body): Json<SetValues>,
) -> ApiResult<Json<View>> {
    set(&key, &id, &body, ValueChange::Replace).await
}

async fn set(
    key: &ProjectKey,
    id: &EndpointId,
    body: &SetValues,
    change: ValueChange,
) -> ApiResult<Json<View>> {
    let (app, project) = (key.app(), &key.project);
    let endpoint = endpoints::set_values(app, project, id, &body.data, change).await?;
    Ok(Json(endpoint.into()))
}

/// Deletes an endpoint and erases its values.
#[utoipa::path(delete, path = IN_TABLE)]
pub(crate) async fn remove(
    key: ProjectKey,
    Path(id): Path<EndpointId>,
) -> ApiResult<Json<Success>> {
    endpoints::remove(key.app(), &key.project, &id).await?;
    Ok(Json(Success::WITHOUT_MESSAGE))
}
