//! The variables that a script leaves to the next one of its session. They hold data of the user, as
//! the execution log does, so they are sealed.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;

use super::super::{SessionCaller, errors, session_files};
use crate::{
    App, Result,
    core::vault::{DataKey, SealContext, Sealed},
};

/// Returns the variables of a session, if a script has left any.
pub(super) async fn load(app: &App, caller: &SessionCaller) -> Result<Option<Bytes>> {
    let Some(stored) = session_files::variables(app, caller).await? else {
        return Ok(None);
    };
    let opened = convert(app, caller, stored, |key, context, stored| {
        let sealed: Sealed<String> = serde_json::from_slice(&stored).map_err(errors::internal)?;
        BASE64
            .decode(key.open(context, &sealed)?)
            .map_err(errors::internal)
    });
    opened.await.map(Some)
}

pub(super) async fn seal(app: &App, caller: &SessionCaller, variables: Bytes) -> Result<Bytes> {
    let sealed = convert(app, caller, variables, |key, context, variables| {
        let sealed = key.seal(context, &BASE64.encode(variables))?;
        serde_json::to_vec(&sealed).map_err(errors::internal)
    });
    sealed.await
}

/// Seals or opens variables in the turn of their project.
async fn convert(
    app: &App,
    caller: &SessionCaller,
    variables: Bytes,
    work: fn(&DataKey, SealContext<'_>, Bytes) -> Result<Vec<u8>>,
) -> Result<Bytes> {
    let project = caller.project.id.clone();
    let session = caller.session_id().to_owned();
    let key = app.vault.key(project.as_str(), app.clock.now()).await?;
    let size = variables.len();
    let converted = app
        .large_work
        .run(&caller.project.tenant, size, move || {
            let context = SealContext {
                collection: session_files::COLLECTION.name,
                project: project.as_str(),
                id: &session,
                field: "variables",
            };
            work(&key, context, variables)
        })
        .await??;
    Ok(converted.into())
}
