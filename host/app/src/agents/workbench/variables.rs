//! The variables that a script leaves to the next one of its session. They hold data of the user, as
//! the execution log does, so they are sealed.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;

use super::super::{SessionCaller, errors, session_files};
use crate::{
    App, Result,
    core::vault::{SealContext, Sealed},
};

/// Returns the variables of a session, if a script has left any.
pub(super) async fn load(app: &App, caller: &SessionCaller) -> Result<Option<Bytes>> {
    let Some(stored) = session_files::variables(app, caller).await? else {
        return Ok(None);
    };
    let (project, id) = (
        caller.project.id.to_string(),
        caller.session_id().to_owned(),
    );
    let key = app.vault.key(&project, app.clock.now()).await?;
    let size = stored.len();
    let open = move || {
        let sealed: Sealed<String> = serde_json::from_slice(&stored).map_err(errors::internal)?;
        let text = key.open(context(&project, &id), &sealed)?;
        let bytes = BASE64.decode(text).map_err(errors::internal)?;
        Ok(Some(bytes.into()))
    };
    let turns = &app.large_work;
    turns.run(&caller.project.tenant, size, open).await?
}

/// Seals variables for their session.
pub(super) async fn seal(app: &App, caller: &SessionCaller, variables: Bytes) -> Result<Bytes> {
    let (project, id) = (
        caller.project.id.to_string(),
        caller.session_id().to_owned(),
    );
    let key = app.vault.key(&project, app.clock.now()).await?;
    let size = variables.len();
    let seal = move || {
        let sealed = key.seal(context(&project, &id), &BASE64.encode(variables))?;
        let bytes = serde_json::to_vec(&sealed).map_err(errors::internal)?;
        Ok(bytes.into())
    };
    let turns = &app.large_work;
    turns.run(&caller.project.tenant, size, seal).await?
}

fn context<'a>(project: &'a str, session: &'a str) -> SealContext<'a> {
    SealContext {
        collection: session_files::COLLECTION.name,
        project,
        id: session,
        field: "variables",
    }
}
