//! Secret parts of an auth config: the client at the provider, shared values, and the proxy.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::{Record, Time};

use super::AuthConfig;
use crate::{
    App, Result,
    accounts::errors,
    core::vault::{SealContext, Vault},
};

/// Proxy for requests to the provider: tool requests, proxy requests of callers, and token
/// requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proxy {
    /// Address of the proxy: `http://host:port` or `https://host:port`.
    pub url: String,
    /// Credential of the proxy: `user:password`, a bearer token, or a complete value of
    /// `proxy-authorization` with its scheme.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl Proxy {
    /// Builds the proxy with its `proxy-authorization` value (RFC 9110, section 11.7.2; RFC 7617;
    /// RFC 6750). Fails if the URL or the key cannot be used, with the path of the property, which starts
    /// with `path`.
    pub(super) fn to_net_proxy(&self, path: &str) -> Result<net::Proxy> {
        let authorization = self.key.as_deref().map(|key| match key {
            whole if whole.contains(' ') => whole.to_owned(),
            pair if pair.contains(':') => format!("Basic {}", BASE64.encode(pair)),
            token => format!("Bearer {token}"),
        });
        net::Proxy::new(&self.url, authorization.as_deref()).map_err(|cause| {
            let property = match cause {
                net::InvalidProxy::Address => "proxy_url",
                net::InvalidProxy::Authorization => "proxy_auth_key",
            };
            errors::invalid(format!("{path}proxy_config.{property}: {cause}"))
        })
    }
}

/// Secret parts of an auth config, decrypted.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Credentials {
    /// Client credentials under scheme-specific names, `scopes`, and `user_scopes`.
    pub own: Map<String, Value>,
    /// Values that each account inherits unless it sets its own.
    pub shared: Map<String, Value>,
    /// Proxy for requests to the provider, or `None` for direct connections.
    pub proxy: Option<Proxy>,
}

impl Credentials {
    /// Returns the proxy for requests to the provider, if one is set.
    pub(crate) fn net_proxy(&self) -> Result<Option<Arc<net::Proxy>>> {
        let proxy = self.proxy.as_ref().map(|proxy| proxy.to_net_proxy(""));
        Ok(proxy.transpose()?.map(Arc::new))
    }
}

/// Decrypts the secret parts. Fails if they cannot be decrypted.
pub async fn credentials(app: &App, record: &Record<AuthConfig>) -> Result<Credentials> {
    open_credentials(&app.vault, record, app.clock.now()).await
}

/// Variant of [`credentials`] for callers that have only the vault.
pub(crate) async fn open_credentials(
    vault: &Vault,
    record: &Record<AuthConfig>,
    now: Time,
) -> Result<Credentials> {
    let key = vault.key(&record.project, now).await?;
    let config = &record.body;
    Ok(Credentials {
        own: key.open(SealContext::of(record, "credentials"), &config.credentials)?,
        shared: key.open(SealContext::of(record, "shared"), &config.shared)?,
        proxy: config
            .proxy
            .as_ref()
            .map(|proxy| key.open(SealContext::of(record, "proxy"), proxy))
            .transpose()?,
    })
}

/// Returns the proxy for requests to the provider of an auth config, if one is set.
pub(crate) async fn net_proxy(
    app: &App,
    record: &Record<AuthConfig>,
) -> Result<Option<Arc<net::Proxy>>> {
    if record.body.proxy.is_none() {
        return Ok(None);
    }
    credentials(app, record).await?.net_proxy()
}

/// Returns the scopes stored under a name: a list, or a string separated by commas or spaces.
pub(crate) fn scopes(own: &Map<String, Value>, name: &str) -> Vec<String> {
    match own.get(name) {
        Some(Value::String(text)) => text
            .split([',', ' '])
            .map(str::trim)
            .filter(|scope| !scope.is_empty())
            .map(str::to_owned)
            .collect(),
        // A scope in a list may contain any character.
        Some(Value::Array(list)) => {
            let texts = list.iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
