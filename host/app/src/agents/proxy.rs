//! Proxy requests of a session.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{SessionCaller, errors, scope, selection, toolkits};
use crate::{
    App, Result,
    accounts::CustomCredential,
    core::json::RawJson,
    projects::permissions::Area,
    runs::{self, Proxy, ProxyBody, ProxyResponse, ResponseBody},
};

/// A proxy request of an assistant or a script.
#[derive(Deserialize)]
pub(super) struct ProxyCall {
    #[serde(alias = "toolkit")]
    toolkit_slug: String,
    method: String,
    endpoint: String,
    query: Option<BTreeMap<String, Value>>,
    headers: Option<BTreeMap<String, Value>>,
    /// Id or alias of the account; the one that the session selects without it.
    account: Option<String>,
}

/// The response of a provider to an assistant or a script.
#[derive(Serialize)]
pub(super) struct ProxyAnswer {
    status: u16,
    headers: BTreeMap<String, String>,
    data: RawJson,
    /// Link to a body that is binary or too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

impl ProxyCall {
    /// Sends the request, with the body as it is written in `arguments`, the JSON of this call. `function`
    /// is the name of what is called, for errors. Fails if the key of the caller may not send proxy requests,
    /// and for the reasons of [`proxy`].
    pub(super) async fn send(
        self,
        app: &App,
        caller: &SessionCaller,
        function: &str,
        arguments: &Bytes,
    ) -> Result<ProxyAnswer> {
        if !caller.rights.proxy {
            // Otherwise an assistant or a script would do what the key may not.
            let area = Area::ProxyExecute.into_str();
            return Err(errors::key_permission("write", area));
        }
        let body = ProxyBody::find_in(app, &caller.project.tenant, arguments.clone()).await?;
        let request = Proxy {
            user_id: None,
            account: None,
            custom: None,
            endpoint: self.endpoint,
            method: self.method.to_ascii_uppercase(),
            headers: texts(self.headers),
            query: texts(self.query),
            body: body.map_err(|cause| errors::arguments_invalid(function, cause.to_string()))?,
            session: None,
            request_id: caller.request_id.clone(),
        };
        let account = self.account.as_deref().map(str::trim);
        let response = proxy(app, caller, &self.toolkit_slug, account, request).await?;
        Ok(response.into())
    }
}

impl From<ProxyResponse> for ProxyAnswer {
    fn from(response: ProxyResponse) -> Self {
        let (data, url) = match response.body {
            ResponseBody::Json(data) => (data, None),
            ResponseBody::File(link) => (RawJson::NULL_VALUE, Some(link.url)),
        };
        Self {
            status: response.status,
            headers: response.headers,
            data,
            url,
        }
    }
}

/// Returns names with their values as text; null is left out.
fn texts(values: Option<BTreeMap<String, Value>>) -> Vec<(String, String)> {
    values
        .unwrap_or_default()
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| match value {
            Value::String(text) => (name, text),
            other => (name, other.to_string()),
        })
        .collect()
}

/// Sends a request to the provider of a toolkit with an account of the session's user, and records
/// it. The session decides about user and account of the request; `account` is the id or the alias
/// of the one that the call asks for. Fails if the toolkit does not exist, if the session does not
/// permit proxy requests to it, if the user lacks a usable account, or for a reason of
/// `runs::proxy`.
pub async fn proxy(
    app: &App,
    caller: &SessionCaller,
    toolkit: &str,
    account: Option<&str>,
    request: Proxy,
) -> Result<ProxyResponse> {
    let catalog = app.catalog.snapshot();
    let release = toolkits::named(&catalog, "toolkit_slug", toolkit)?.current();
    let config = caller.config();
    scope::check_proxy(config, &release.slug)?;
    let selected = match request.custom.as_deref() {
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
