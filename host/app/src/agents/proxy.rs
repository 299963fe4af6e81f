//! Proxy requests of a session.

use super::{SessionCaller, errors, scope, selection};
use crate::{
    App, Result,
    accounts::CustomCredential,
    core::truncate,
    runs::{self, Proxy, ProxyResponse},
};

/// Sends a request to the provider of a toolkit with an account of the session's user, and records
/// it. The session decides about user and account of the request; `account` is the id or the alias of
/// the one that the call asks for.
///
/// # Errors
/// Fails if the toolkit does not exist, if the session does not permit proxy requests to it, if the
/// user has no usable account, or for a reason of `runs::proxy`.
pub async fn proxy(
    app: &App,
    caller: &SessionCaller,
    toolkit: &str,
    account: Option<&str>,
    request: Proxy,
) -> Result<ProxyResponse> {
    let catalog = app.catalog.snapshot();
    let found = catalog.toolkit(toolkit.trim());
    let found = found.ok_or_else(|| errors::invalid_toolkit_slugs(truncate(toolkit)))?;
    let release = found.current();
    let config = caller.config();
    scope::check_proxy(config, &release.slug)?;
    let selected = match &request.custom {
        Some(CustomCredential::Connection { toolkit, .. })
            if !toolkit.eq_ignore_ascii_case(&release.slug) =>
        {
            return Err(errors::session_invalid(
                "custom_connection_data.toolkitSlug: must be the toolkit of the request",
            ));
        }
        Some(_) => None,
        None => Some(selection::select(app, caller, release, account).await?),
    };
    let request = Proxy {
        user_id: Some(config.user_id.clone()),
        account: selected,
        session: caller.id.clone(),
        ..request
    };
    runs::proxy(app, &caller.project, request).await
}
