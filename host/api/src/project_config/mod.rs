//! Settings of a project.

mod types;

use app::projects::{self, Config};

pub(crate) use self::types::Update;
use http::{ApiResult, IN_TABLE, Json, OptionalJson, ProjectKey};

use self::types::View;

/// Reads the settings of the project.
#[utoipa::path(get, path = IN_TABLE, operation_id = "read_config")]
pub(crate) async fn read(key: ProjectKey) -> ApiResult<Json<View>> {
    Ok(Json(key.project.stored.config.clone().into()))
}

/// Changes the given settings, effective from the next request.
#[utoipa::path(patch, path = IN_TABLE, operation_id = "update_config")]
pub(crate) async fn update(
    key: ProjectKey,
    OptionalJson(update): OptionalJson<Update>,
) -> ApiResult<Json<View>> {
    update.check()?;
    let config = projects::configure(key.app(), &key.project, |config: &mut Config| {
        update.apply(config)
    })
    .await?;
    Ok(Json(config.into()))
}
