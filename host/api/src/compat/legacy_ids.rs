//! Translation of the legacy ids of older clients to current ids.

use app::lifecycle::legacy_ids::{self, Kind};
use http::{ApiResult, IN_TABLE, Json, ProjectKey, Query};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// Legacy id, and the kind of object that it names.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct LegacyId {
    /// Kind of the object.
    #[param(inline)]
    r#type: LegacyKind,
    /// The legacy id.
    #[param(value_type = String)]
    uuid: Uuid,
}

mirror! {
    #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
    enum LegacyKind of Kind {
        ConnectedAccount,
        AuthConfig,
        TriggerInstance,
    }
}

/// The current id.
#[derive(Serialize, ToSchema)]
#[schema(as = NanoId)]
pub(crate) struct CurrentId {
    nanoid: String,
}

/// Returns the current id for a legacy id.
#[utoipa::path(get, path = IN_TABLE, operation_id = "nanoid", responses(
    (status = 404, description = "The project never had such an object"),
    (status = 410, description = "The object is deleted"),
))]
pub(crate) async fn translate(
    key: ProjectKey,
    Query(LegacyId { r#type, uuid }): Query<LegacyId>,
) -> ApiResult<Json<CurrentId>> {
    let nanoid = legacy_ids::translate(key.app(), &key.project, r#type.into(), uuid).await?;
    Ok(Json(CurrentId { nanoid }))
}
