//! API requests of `toolkit dev` to its server.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use reqwest::{Client, Method};
use serde_json::Value;
use url::Url;

use crate::publish;

/// Timeout of all requests but publishing.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A server and its keys.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) client: Client,
    pub(crate) url: Url,
    /// Key of the organization.
    pub(crate) org_key: String,
    /// Key of the project.
    pub(crate) key: String,
}

impl Api {
    pub(crate) fn new(url: Url, org_key: String, key: String) -> Result<Self> {
        Ok(Self {
            client: publish::client()?,
            url,
            org_key,
            key,
        })
    }

    /// Returns the server as a target for publishing.
    pub(crate) fn publisher(&self) -> publish::Server {
        publish::Server::new(self.url.clone(), self.org_key.clone())
    }

    /// Returns the address of the server without a trailing slash.
    pub(crate) fn base(&self) -> &str {
        self.url.as_str().trim_end_matches('/')
    }

    /// Sends a request with the project's key. Returns `None` if the resource does not exist.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Option<Value>> {
        let address = format!("{}/api/v3.1{path}", self.base());
        let mut request = self
            .client
            .request(method, address)
            .header("x-api-key", &self.key)
            .timeout(REQUEST_TIMEOUT);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request
            .send()
            .await
            .with_context(|| format!("cannot reach {}", self.url))?;
        let status = response.status();
        let text = response
            .text()
            .await
            .context("the server's response is incomplete")?;
        let answer = serde_json::from_str(&text).unwrap_or(Value::String(text));
        match status.as_u16() {
            200..300 => Ok(Some(answer)),
            404 => Ok(None),
            other => bail!("{path}: {}", publish::refusal(other, &answer)),
        }
    }
}
