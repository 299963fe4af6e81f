//! Translation of the legacy ids of older clients to current ids.

use std::sync::Arc;

use app::lifecycle::legacy_ids::{self, Kind};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::{
    Server,
    http::{auth::ProjectKey, error::ApiResult, query::Query, reply::Json, signature::IN_TABLE},
};

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

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum LegacyKind {
    ConnectedAccount,
    AuthConfig,
    TriggerInstance,
}

impl From<LegacyKind> for Kind {
    fn from(kind: LegacyKind) -> Self {
        match kind {
            LegacyKind::ConnectedAccount => Self::ConnectedAccount,
            LegacyKind::AuthConfig => Self::AuthConfig,
            LegacyKind::TriggerInstance => Self::TriggerInstance,
        }
    }
}

/// The current id.
#[derive(Serialize, ToSchema)]
#[schema(as = NanoId)]
pub(crate) struct CurrentId {
    nanoid: String,
}

/// Returns the current id for a legacy id.
#[utoipa::path(
    get,
    path = IN_TABLE,
    operation_id = "nanoid",
    responses(
        (status = 404, description = "The project never had such an object"),
        (status = 410, description = "The object is deleted"),
    ),
)]
pub(crate) async fn translate(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Query(LegacyId { r#type, uuid }): Query<LegacyId>,
) -> ApiResult<Json<CurrentId>> {
    let nanoid = legacy_ids::translate(&server.app, &key.project, r#type.into(), uuid).await?;
    Ok(Json(CurrentId { nanoid }))
}
