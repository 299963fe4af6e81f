//! `llm.*`: the language model that turns prompts into arguments.

use std::time::Duration;

use anyhow::{Context, Result};
use app::runs::prompt::Settings as ModelSettings;
use url::Url;

use super::{
    Config, Sandbox,
    problems::Problems,
    setting::settings,
    values::{List, Secret},
};

/// Headers of a request to a language model that describe its body and its destination. Clients
/// cannot set them.
#[rustfmt::skip]
const RESERVED_HEADERS: [&str; 8] = [
    "host", "connection", "content-length", "content-type", "transfer-encoding", "accept-encoding",
    "expect", "upgrade",
];

/// Tokens of a completion.
pub const MAX_COMPLETION_TOKENS: u32 = 2_048;

settings! {
    /// The language model that turns prompts into arguments.
    pub struct Llm {
        /// An endpoint of chat completions, without `/chat/completions`; it may be on this machine.
        /// The `text` of users is sent to it. Set it if clients send prompts.
        #[setting(example = "https://api.example.com/v1")] pub base_url: Option<Url>,
        /// The name of the model at the endpoint.
        #[setting(example = "small-model")] pub model: Option<String>,
        /// The key for the endpoint, sent as a bearer token.
        #[setting(example = "secret")] pub key: Option<Secret>,
        /// Headers of `x-llm-gateway-headers` that are forwarded, for a gateway that needs them;
        /// others are left out.
        #[setting(example = ["x-team"])] pub headers: List,
        /// Timeout for making arguments. Raise it for a slow model.
        #[setting(unit = "s", range = 1..=300)] pub timeout_s: u64 = 30,
    }
}

impl Llm {
    pub(super) fn check(&self, problems: &mut Problems) {
        let (given, missing) = match self.base_url {
            Some(_) => ("llm.base_url", "llm.model"),
            None => ("llm.model", "llm.base_url"),
        };
        problems.unless(
            self.base_url.is_some() == self.model.is_some(),
            given,
            format!("is set without `{missing}`: set both or neither"),
        );
        problems.unless(
            self.base_url.as_ref().is_none_or(|url| {
                matches!(url.scheme(), "http" | "https") && url.query().is_none()
            }),
            "llm.base_url",
            "must be an http address without a query",
        );
        for name in self.headers.iter() {
            let header = name.parse::<net::header::HeaderName>();
            problems.unless(
                header.is_ok_and(|name| !RESERVED_HEADERS.contains(&name.as_str())),
                "llm.headers",
                format!(
                    "contains `{name}`, which is not the name of a header that a caller may set"
                ),
            );
        }
    }
}

impl Sandbox {
    /// Returns the number of prompts processed concurrently.
    pub const fn prompts(&self) -> usize {
        self.live_part(32)
    }

    /// Returns the number of prompts of one project processed concurrently.
    pub const fn prompts_per_project(&self) -> usize {
        self.live_part(64)
    }
}

impl Config {
    /// Returns the language model and its HTTP client. The operator chose its address, so it may be
    /// on this machine; the client is used for nothing else.
    ///
    /// # Errors
    /// If the client cannot be built.
    pub fn model(&self) -> Result<Option<ModelSettings>> {
        let llm = &self.llm;
        let (Some(base), Some(model)) = (&llm.base_url, &llm.model) else {
            return Ok(None);
        };
        let address = format!("{}/chat/completions", base.as_str().trim_end_matches('/'));
        let headers = llm.headers.iter().map(|name| name.to_ascii_lowercase());
        Ok(Some(ModelSettings {
            client: self.unrestricted_client("the language model")?,
            url: address.parse().context("read `llm.base_url`")?,
            model: model.clone(),
            key: llm.key.as_ref().map(|key| key.expose().clone()),
            headers: headers.collect(),
            timeout: Duration::from_secs(llm.timeout_s),
            max_tokens: MAX_COMPLETION_TOKENS,
            max_concurrent: self.sandbox.prompts(),
            max_concurrent_per_project: self.sandbox.prompts_per_project(),
        }))
    }

    /// Builds an HTTP client that may reach private addresses. `target` is the only destination
    /// that the operator permits.
    pub(super) fn unrestricted_client(&self, target: &str) -> Result<net::Client> {
        let client = net::Client::new(self.unrestricted_net()?);
        client.map_err(|cause| anyhow::anyhow!("build the client for {target}: {}", cause.message))
    }
}
