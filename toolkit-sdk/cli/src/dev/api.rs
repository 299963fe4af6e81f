//! The few requests that this command sends to the server.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use reqwest::{Client, Method};
use serde_json::Value;
use url::Url;

use crate::publish;

/// Everything but publishing is quick.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server and the keys to it.
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
        Ok(Self { client: publish::client()?, url, org_key, key })
    }

    /// The address of the server, without a slash at its end.
    pub(crate) fn base(&self) -> &str {
        self.url.as_str().trim_end_matches('/')
    }

    /// Asks with the project's key. None when there is no such thing.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Option<Value>> {
        let address = format!("{}/api/v3.1{path}", self.base());
        let mut request = self.client.request(method, address).header("x-api-key", &self.key).timeout(PATIENCE);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.with_context(|| format!("cannot reach {}", self.url))?;
        let status = response.status();
        let text = response.text().await.context("the server's answer was cut off")?;
        let answer = serde_json::from_str(&text).unwrap_or(Value::String(text));
        match status.as_u16() {
            200..300 => Ok(Some(answer)),
            404 => Ok(None),
            other => bail!("{path}: {}", publish::refusal(other, &answer)),
        }
    }
}
